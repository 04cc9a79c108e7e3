//! Explaining a signature mismatch: finds the mistake of a client with the right key. CONTRACT 3.
//!
//! A `Recipe` says how a string is written and hashed; an `Edit` is one departure from the profile's. To produce a
//! match, a client needs the key, except for strings and keys that need none, such as [`Slip::KeyMissing`]. What others learn
//! is listed in SIGNING.md, Hints: rules of an application, which are not secret.

mod edit;
mod encoding;
mod given;
mod head;
mod naming;
mod recipe;
mod sent;
mod slip;
mod table;

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher},
};

use self::{
    edit::{Departures, Edit},
    given::Hash,
    recipe::Recipe,
    sent::Sent,
};
pub use self::{
    given::GivenSign,
    head::explain_head,
    slip::{OtherHash, Respelling, ShortText, Slip, StringChange},
};
use super::{AppKey, SignAlgorithm, SignCover, SignProfile};
use crate::param::{Param, Params};

/// Limit on path and parameters of a search, in bytes.
pub const MAX_CANONICAL_BYTES: usize = 8 * 1024;

/// Limit on the work of a search: bytes that are written, and bytes that are hashed times the hash's weight.
pub const MAX_WORK: usize = 940_000;

/// The work of a string in addition to its bytes, and for each of its pairs.
const WORK_OF_STRING: usize = 64;
const WORK_OF_PAIR: usize = 40;
/// The work of a change of each name and value, as a multiple of the work of writing it.
const WORK_OF_CHANGE: usize = 8;

/// What explains a signature: a mistake, and perhaps a second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The first mistake.
    pub slip: Slip,
    /// The other one, if there are two.
    pub second: Option<Slip>,
}

impl From<Slip> for Explanation {
    fn from(slip: Slip) -> Self {
        Self { slip, second: None }
    }
}

/// The explanation of a `sign` that no algorithm produces. Needs no search.
#[must_use]
pub fn explain_form(algorithm: SignAlgorithm) -> Explanation {
    Slip::SignForm(other_hash_of(algorithm, "none")).into()
}

/// Looks for the mistake, the two frequent ones, or the other preset, with which `given` was made.
///
/// `target` is method, host and path; `previous_key` is no longer valid. Returns [`Slip::KeyOrValue`] if nothing matches and `given` has the form of the
/// profile. Without a search it returns [`Slip::TooLarge`] if the parameters are larger than [`MAX_CANONICAL_BYTES`], and
/// [`Slip::NotSearched`] if `is_allowed`, which is asked for other requests alone, returns `false`.
pub fn explain(
    given: &GivenSign,
    profile: &SignProfile,
    key: &AppKey,
    previous_key: Option<&AppKey>,
    target: (&str, &str, &str),
    params: &Params<'_>,
    is_allowed: impl FnOnce() -> bool,
) -> Explanation {
    let length = |param: &Param<'_>| param.wire_key().len() + param.wire_value().len() + 2;
    if params.iter().map(length).sum::<usize>() + target.2.len() > MAX_CANONICAL_BYTES {
        return Slip::TooLarge.into();
    }
    // After the size, since this counts the search: a request that is too large uses up none.
    if !is_allowed() {
        return Slip::NotSearched.into();
    }
    let presets = presets();
    let sent = Sent::new(target, params);
    Search::new(given, profile, key, &presets, &sent).run(previous_key)
}

fn presets() -> Vec<(&'static str, SignProfile)> {
    let presets = SignProfile::PRESETS.into_iter();
    let presets = presets.filter_map(|name| Some((name, SignProfile::preset(name)?)));
    presets.collect()
}

struct Search<'a> {
    given: &'a GivenSign,
    profile: &'a SignProfile,
    key: &'a AppKey,
    presets: &'a [(&'static str, SignProfile)],
    sent: &'a Sent<'a>,
    /// What was written and hashed so far.
    work: usize,
    /// Hashes of the strings, with what they were signed by: none is signed twice.
    tried: HashSet<u64>,
    string: Vec<u8>,
}

impl<'a> Search<'a> {
    fn new(
        given: &'a GivenSign,
        profile: &'a SignProfile,
        key: &'a AppKey,
        presets: &'a [(&'static str, SignProfile)],
        sent: &'a Sent<'a>,
    ) -> Self {
        Self {
            given,
            profile,
            key,
            presets,
            sent,
            work: 0,
            tried: HashSet::new(),
            string: Vec::new(),
        }
    }

    fn run(&mut self, previous_key: Option<&AppKey>) -> Explanation {
        // The search signs with the present key alone. So the previous key is tried before, with the right string only.
        let right = Recipe::of(self.profile);
        if let Some(previous_key) = previous_key
            && self.attempt(&right, previous_key) == Some(true)
        {
            return Slip::PreviousKey.into();
        }
        let mut frequent = Vec::new();
        for (start, slips) in &self.starts(&right) {
            match self.single(start, slips) {
                Ok(explanation) => return explanation,
                Err(new) if start.hash == right.hash => frequent = new,
                Err(_) => {}
            }
        }
        let both = self.both(&right, &frequent);
        both.unwrap_or_else(|| self.unexplained())
    }

    /// The hashes that make signatures of this form, the profile's first, with the mistakes that they are.
    fn starts(&self, right: &Recipe<'a>) -> Vec<(Recipe<'a>, Vec<Slip>)> {
        let form = self.form();
        let start = |&hash: &Hash| {
            let is_right = hash == right.hash;
            let other = other_hash(self.profile, hash.name());
            let slip = match self.profile.algorithm {
                SignAlgorithm::HmacSha256 if hash.is_hmac() => Slip::HmacHash(other),
                _ => Slip::Algorithm(other),
            };
            let slips = form.into_iter().chain((!is_right).then_some(slip));
            let recipe = right.with_hash(hash, self.profile.layout);
            (recipe, slips.collect())
        };
        self.given.hashes().iter().map(start).collect()
    }

    /// What the form of `sign` says, if it is not plain hex.
    fn form(&self) -> Option<Slip> {
        let form = self.given.form()?;
        Some(Slip::SignForm(other_hash(self.profile, form)))
    }

    /// The start itself, or one departure from it. Otherwise returns the frequent departures that have a string of their
    /// own.
    fn single(&mut self, start: &Recipe<'a>, slips: &[Slip]) -> Result<Explanation, Vec<Edit<'a>>> {
        let is_match = self.attempt(start, self.key) == Some(true);
        if let (true, [slip, others @ ..]) = (is_match, slips) {
            let (slip, second) = (*slip, others.first().copied());
            return Ok(Explanation { slip, second });
        }
        let mut departures = Departures::usual(start, self.sent, self.presets);
        match slips {
            [] => departures.add_rare(start, self.sent),
            [_] if start.hash != Hash::Md5Twice => {}
            _ => return Err(Vec::new()),
        }
        let mut frequent = Vec::new();
        for (edit, is_frequent) in departures.all {
            match self.attempt(&edit.apply(start), self.key) {
                Some(true) => {
                    let rule = Recipe::of(self.profile);
                    return Ok(match slips {
                        [first, ..] => Explanation {
                            slip: *first,
                            second: naming::second_slip(&edit, start, &rule, self.sent),
                        },
                        [] => naming::slip(&edit, &rule, self.sent).into(),
                    });
                }
                Some(false) if is_frequent => frequent.push(edit),
                _ => {}
            }
        }
        Err(frequent)
    }

    /// Two of the frequent departures.
    fn both(&mut self, right: &Recipe<'a>, frequent: &[Edit<'a>]) -> Option<Explanation> {
        for (index, first) in frequent.iter().enumerate() {
            for second in frequent[index + 1..]
                .iter()
                .filter(|edit| !edit.excludes(first))
            {
                let recipe = second.apply(&first.apply(right));
                if self.attempt(&recipe, self.key) == Some(true) {
                    return Some(Explanation {
                        slip: naming::slip(first, right, self.sent),
                        second: Some(naming::slip(second, right, self.sent)),
                    });
                }
            }
        }
        None
    }

    /// What the form of `sign` says if nothing matches; otherwise what else the request suggests.
    fn unexplained(&self) -> Explanation {
        if let Some(slip) = self.form() {
            return slip.into();
        }
        if !self
            .given
            .hashes()
            .contains(&Hash::of(self.profile.algorithm))
        {
            return Slip::Algorithm(other_hash(self.profile, "none")).into();
        }
        let mut pairs = self.sent.pairs.iter();
        let second = if !pairs.all(|pair| pair.key.is_ascii() && pair.value.is_ascii()) {
            Some(Slip::Charset)
        } else {
            let covers = self.profile.cover == SignCover::Request;
            covers.then_some(Slip::CoverRule)
        };
        Explanation {
            slip: Slip::KeyOrValue,
            second,
        }
    }

    /// Whether `given` was made so; `None` if that was tried before, or the work is done.
    fn attempt(&mut self, recipe: &Recipe<'_>, key: &AppKey) -> Option<bool> {
        if self.work >= MAX_WORK {
            return None;
        }
        let key = recipe.key(key)?;
        recipe.write(self.sent, &key, &mut self.string);
        let length = WORK_OF_STRING + self.string.len();
        let change = if recipe.change.is_some() {
            WORK_OF_CHANGE
        } else {
            1
        };
        let written = change * (length + WORK_OF_PAIR * self.sent.pairs.len());
        self.work = MAX_WORK.min(self.work + written);
        // A hash without a secret suffices: a collision only leaves a string untried.
        let mut hasher = DefaultHasher::new();
        (recipe.hash, &self.string, recipe.is_swapped).hash(&mut hasher);
        // Otherwise the string has the key, if anything has.
        if recipe.hash.is_hmac() {
            key.hash(&mut hasher);
        }
        if !self.tried.insert(hasher.finish()) {
            return None;
        }
        let hashed = recipe.hash.weight() * length;
        let is_affordable = self.work + hashed <= MAX_WORK;
        // Spent in any case: a search that cannot afford a string ends, and does not go on with cheaper ones.
        self.work = MAX_WORK.min(self.work + hashed);
        if !is_affordable {
            return None;
        }
        Some(match recipe.is_swapped {
            true => self.given.is_made(recipe.hash, &self.string, &key),
            false => self.given.is_made(recipe.hash, &key, &self.string),
        })
    }
}

fn other_hash(profile: &SignProfile, used: &'static str) -> OtherHash {
    other_hash_of(profile.algorithm, used)
}

fn algorithm_name(algorithm: SignAlgorithm) -> &'static str {
    Hash::of(algorithm).name()
}

fn other_hash_of(algorithm: SignAlgorithm, used: &'static str) -> OtherHash {
    OtherHash {
        rule: algorithm_name(algorithm),
        digits: match algorithm {
            SignAlgorithm::Md5 => 32,
            SignAlgorithm::HmacSha256 => 64,
        },
        found: used,
    }
}

#[cfg(test)]
mod tests {
    use md5::{Digest, Md5};

    use super::*;

    const TARGET: (&str, &str, &str) = ("POST", "api.example", "/user");
    const KEY: &str = "4283fefc63f0cd0e873a0000c6d07ef7b77e90d3593ad699fc1f7cd5bb2e35cb";

    fn profile(algorithm: SignAlgorithm) -> SignProfile {
        SignProfile {
            algorithm,
            ..SignProfile::default()
        }
    }

    /// The work of a search that finds nothing.
    fn work(algorithm: SignAlgorithm, query: &str, digits: usize) -> usize {
        let params = Params::parse(query.as_bytes(), b"", 9999).unwrap();
        let given = GivenSign::new("0".repeat(digits).as_bytes()).unwrap();
        let (profile, key, presets) = (profile(algorithm), KEY.parse().unwrap(), presets());
        let sent = Sent::new(TARGET, &params);
        let mut search = Search::new(&given, &profile, &key, &presets, &sent);
        search.run(None);
        search.work
    }

    #[test]
    fn a_search_has_a_limit_of_work() {
        let many: String = (0..256)
            .map(|index| format!("k{index}=%2Fvalue+it%27s%2F%2F&"))
            .collect();
        let large = format!("{}&b=~%2F+&a=1&e=&time=1", "x=y%2Fz+&".repeat(800));
        let long = format!("b={}&a=1&time=1", "%2Fx+".repeat(1500));
        for algorithm in [SignAlgorithm::Md5, SignAlgorithm::HmacSha256] {
            for digits in [32, 40, 64, 128] {
                for query in [&*many, &large, &long] {
                    assert_eq!(work(algorithm, query, digits), MAX_WORK, "{digits}");
                }
                let usual = work(algorithm, "b=a%2Fb+c&a=1&e=&time=1732104000000", digits);
                assert!(usual < MAX_WORK, "{usual} for {digits}");
            }
        }
    }

    /// What `explain` finds for the sign of `recipe`.
    fn found(
        profile: &SignProfile,
        recipe: &Recipe<'_>,
        sent: &Sent<'_>,
        params: &Params<'_>,
    ) -> Explanation {
        let key: AppKey = KEY.parse().unwrap();
        let mut string = Vec::new();
        let written_key = recipe.key(&key).unwrap();
        recipe.write(sent, &written_key, &mut string);
        let digest = recipe.hash.digest(&written_key, &string);
        let given = GivenSign::new(hex::encode(digest).as_bytes()).unwrap();
        explain(&given, profile, &key, None, sent.target, params, || true)
    }

    /// Whether `recipe` has the right string.
    fn is_right(profile: &SignProfile, recipe: &Recipe<'_>, sent: &Sent<'_>) -> bool {
        let key: AppKey = KEY.parse().unwrap();
        let written = |recipe: &Recipe<'_>| {
            let written_key = recipe.key(&key).unwrap();
            let mut string = Vec::new();
            recipe.write(sent, &written_key, &mut string);
            recipe.hash.digest(&written_key, &string)
        };
        written(recipe) == written(&Recipe::of(profile))
    }

    #[test]
    fn a_request_of_any_size_has_a_hint_for_each_usual_mistake() {
        let many: String = (0..200)
            .map(|index| format!("k{index:03}=%2Fvalue+it%27s%20%e5%bc%a0&"))
            .collect();
        let long = format!("b={}&a=1&e=&time=1", "%2Fx+%e5%bc%a0%20".repeat(470));
        let letters = format!("b={}&a=1&e=&time=1", "x".repeat(8100));
        for algorithm in [SignAlgorithm::Md5, SignAlgorithm::HmacSha256] {
            for query in [&*many, &long, &letters] {
                let (profile, presets) = (profile(algorithm), presets());
                let params = Params::parse(query.as_bytes(), b"", 9999).unwrap();
                let sent = Sent::new(TARGET, &params);
                let right = Recipe::of(&profile);
                let usual = Departures::usual(&right, &sent, &presets).all;
                let first = usual
                    .iter()
                    .position(|(edit, _)| matches!(edit, Edit::Preset(..)));
                for (edit, _) in &usual[..first.unwrap()] {
                    let recipe = edit.apply(&right);
                    let found = found(&profile, &recipe, &sent, &params);
                    let is_found = found.slip != Slip::KeyOrValue;
                    assert!(
                        is_found || is_right(&profile, &recipe, &sent),
                        "{algorithm:?} {}",
                        &query[..9]
                    );
                }
            }
        }
    }

    #[test]
    fn a_departure_is_explained_with_the_key_and_nothing_without_it() {
        let queries = [
            "b=x+y&a=1&e=&time=1",
            "next=%2fa%20b&tag=b&tag=a&sign_type=MD5&time=1",
            "q=it%27s+%E5%BC%A0&user=a@b&e=&time=1",
            "Beta=%25E5&a=null&b=&time=1",
        ];
        for query in queries {
            let params = Params::parse(query.as_bytes(), b"c=1", 99).unwrap();
            let sent = Sent::new(TARGET, &params);
            for (_, preset) in presets() {
                for algorithm in [SignAlgorithm::Md5, SignAlgorithm::HmacSha256] {
                    for cover in [SignCover::Parameters, SignCover::Request] {
                        let profile = SignProfile {
                            algorithm,
                            cover,
                            ..preset.clone()
                        };
                        assert_explained(&profile, &sent, &params);
                    }
                }
            }
        }
    }

    fn assert_explained(profile: &SignProfile, sent: &Sent<'_>, params: &Params<'_>) {
        let presets = presets();
        let right = Recipe::of(profile);
        let usual = Departures::usual(&right, sent, &presets);
        let frequent = usual.all.iter().filter(|(_, is_frequent)| *is_frequent);
        let first: Vec<_> = frequent.map(|(edit, _)| *edit).take(10).collect();
        let pairs = first.iter().flat_map(|edit| {
            let others = first.iter().filter(|other| !other.excludes(edit));
            others.map(|other| other.apply(&edit.apply(&right)))
        });
        let mut departures = Departures {
            all: usual.all.clone(),
        };
        departures.add_rare(&right, sent);
        let singles = departures.all.iter().map(|(edit, _)| edit.apply(&right));
        for recipe in singles.chain(pairs) {
            if is_right(profile, &recipe, sent) {
                continue;
            }
            let slip = found(profile, &recipe, sent, params).slip;
            assert!(slip != Slip::KeyOrValue, "{profile:?} {}", recipe.joining());
        }
        let digest = right.hash.digest(b"another key", b"another text");
        let given = GivenSign::new(hex::encode(digest).as_bytes()).unwrap();
        let key = KEY.parse().unwrap();
        let slip = explain(&given, profile, &key, None, sent.target, params, || true).slip;
        assert_eq!(slip, Slip::KeyOrValue);
    }

    #[test]
    fn a_request_that_is_too_large_takes_no_search() {
        let query = format!("b={}&time=1", "x".repeat(MAX_CANONICAL_BYTES));
        let params = Params::parse(query.as_bytes(), b"", 9).unwrap();
        let given = GivenSign::new("0".repeat(32).as_bytes()).unwrap();
        let (profile, key) = (SignProfile::default(), KEY.parse().unwrap());
        let is_allowed = || panic!("a search is counted");
        let found = explain(&given, &profile, &key, None, TARGET, &params, is_allowed);
        assert_eq!(found.slip, Slip::TooLarge);
    }

    #[test]
    fn no_encoder_has_the_output_of_another() {
        let all: Vec<u8> = (0..=255).collect();
        let outputs = encoding::ENCODERS.iter().map(|encoder| {
            let mut output = Vec::new();
            encoder.encode(&all, &mut output);
            output
        });
        let mut outputs: Vec<_> = outputs.collect();
        outputs.sort_unstable();
        assert!(outputs.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_hint_about_an_encoding_names_key_and_both_forms_and_no_value() {
        let key = KEY.parse().unwrap();
        let query = "%0A%E2%80%AEna%27me=secret%27s&time=1";
        let string = format!("%0A%E2%80%AEna'me=secret's&time=1{KEY}");
        let sign = hex::encode(Md5::digest(string));
        let found = explain(
            &GivenSign::new(sign.as_bytes()).unwrap(),
            &profile(SignAlgorithm::Md5),
            &key,
            None,
            TARGET,
            &Params::parse(query.as_bytes(), b"", 9).unwrap(),
            || true,
        );
        let arguments = found.slip.arguments();
        let value = |name| &*arguments.iter().find(|(one, _)| *one == name).unwrap().1;
        assert_eq!(value("key"), "??na'me");
        assert_eq!((value("signed"), value("sent")), ("'", "%27"));
        assert!(value("function").contains("encodeURIComponent"));
        assert!(!format!("{arguments:?}").contains("secret"));
        let cut = ShortText::new("é".repeat(99).as_bytes()).to_string();
        assert_eq!(cut.len(), 64);
    }
}
