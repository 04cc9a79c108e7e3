//! Explaining a signature mismatch: finds the mistake of a client with the right key. CONTRACT 3.
//!
//! A [`Recipe`] says how a string is written and hashed; an [`Edit`] is one departure from the profile's. Only a client
//! with the key can produce a match, so the hint reveals nothing to others. The hint for no match depends on the form of
//! `sign` alone.

mod edit;
mod encoding;
mod given;
mod recipe;
mod slip;

pub use self::{
    given::GivenSign,
    slip::{OtherHash, Respelling, ShortText, Slip},
};
use self::{
    given::Hash,
    recipe::{Recipe, Sent},
};
use super::{AppKey, SignAlgorithm, SignProfile};
use crate::param::Params;

/// Limit on path and parameters of a search, in bytes.
pub const MAX_CANONICAL_BYTES: usize = 8 * 1024;

/// Limit on the work of a search, in bytes that are written and hashed with MD5; those of SHA count twice. Several hundred
/// strings of a usual request; 28 of [`MAX_CANONICAL_BYTES`] with MD5, 14 with HMAC-SHA-256.
pub const MAX_WORK: usize = 29 * MAX_CANONICAL_BYTES;

/// The work of a string in addition to its bytes, and for each of its pairs.
const WORK_OF_STRING: usize = 256;
const WORK_OF_PAIR: usize = 24;

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
pub fn explain_form(profile: &SignProfile) -> Explanation {
    Slip::SignForm(other_hash(profile, "none")).into()
}

/// Looks for the mistake, the two frequent ones, or the other preset, with which `given` was made.
///
/// `previous_key` is no longer valid. Returns [`Slip::KeyOrValue`] if nothing matches and `given` has the form of the
/// profile; `None` without a search if the parameters are larger than [`MAX_CANONICAL_BYTES`].
#[must_use]
pub fn explain(
    given: &GivenSign,
    profile: &SignProfile,
    key: &AppKey,
    previous_key: Option<&AppKey>,
    target: (&str, &str),
    params: &Params<'_>,
) -> Option<Explanation> {
    let length =
        |param: &crate::param::Param<'_>| param.wire_key().len() + param.wire_value().len() + 2;
    if params.iter().map(length).sum::<usize>() + target.1.len() > MAX_CANONICAL_BYTES {
        return None;
    }
    let mut search = Search {
        given,
        profile,
        key,
        sent: &Sent::new(target, params),
        work: 0,
    };
    Some(search.run(previous_key))
}

struct Search<'a> {
    given: &'a GivenSign,
    profile: &'a SignProfile,
    key: &'a AppKey,
    sent: &'a Sent<'a>,
    /// What was hashed so far.
    work: usize,
}

impl Search<'_> {
    fn run(&mut self, previous_key: Option<&AppKey>) -> Explanation {
        let right = Recipe::of(self.profile);
        if let Some(previous_key) = previous_key {
            let string = right.string(self.sent, previous_key.as_bytes());
            if self.is_signed(right.hash, previous_key.as_bytes(), &string) {
                return Slip::PreviousKey.into();
            }
        }
        let starts = self.starts(&right);
        for (start, slips) in &starts {
            if let Some(explanation) = self.single(start, slips) {
                return explanation;
            }
        }
        if let Some(name) = self.preset() {
            return Slip::Preset(name).into();
        }
        let is_possible = self.given.hashes().contains(&right.hash);
        let both = is_possible.then(|| self.both(&right)).flatten();
        both.unwrap_or_else(|| self.unexplained(is_possible))
    }

    /// The hashes that make signatures of this form, the profile's first, with the mistakes that they are.
    fn starts(&self, right: &Recipe) -> Vec<(Recipe, Vec<Slip>)> {
        let form = self.form();
        let start = |&hash: &Hash| {
            let is_right = hash == right.hash;
            let other = other_hash(self.profile, hash.name());
            let slip = match self.profile.algorithm {
                SignAlgorithm::HmacSha256 if hash.is_hmac() => Slip::HmacHash(other),
                _ => Slip::Algorithm(other),
            };
            let slips = form.into_iter().chain((!is_right).then_some(slip));
            let recipe = right.clone().with_hash(hash, self.profile.layout);
            (recipe, slips.collect())
        };
        let mut starts: Vec<_> = self.given.hashes().iter().map(start).collect();
        starts.sort_by_key(|(start, _)| start.hash != right.hash);
        starts
    }

    /// What the form of `sign` says, if it is not plain hex.
    fn form(&self) -> Option<Slip> {
        let found = match self.given {
            given if given.is_base64 => "base64",
            given if given.is_cut() => "cut",
            _ => return None,
        };
        Some(Slip::SignForm(other_hash(self.profile, found)))
    }

    /// The start itself, or one departure from it.
    fn single(&mut self, start: &Recipe, slips: &[Slip]) -> Option<Explanation> {
        if let [slip, others @ ..] = slips
            && self.matches(start)
        {
            let second = others.first().copied();
            return Some(Explanation {
                slip: *slip,
                second,
            });
        }
        let first = match slips {
            [] => None,
            [slip] => Some(*slip),
            _ => return None,
        };
        let mut edits = edit::common(start, self.profile, self.sent);
        edits.extend(edit::rare(start, self.sent));
        let found = edits.iter().find(|(_, edit)| {
            let mut recipe = start.clone();
            edit.apply(&mut recipe);
            self.matches(&recipe)
        })?;
        let slip = edit::named(found, start, self.sent);
        Some(match first {
            Some(first) => Explanation {
                slip: first,
                second: Some(slip),
            },
            None => slip.into(),
        })
    }

    /// Two of the frequent departures.
    fn both(&mut self, right: &Recipe) -> Option<Explanation> {
        let right_key = right.key(self.key)?;
        let right_string = right.string(self.sent, &right_key);
        let mut edits = edit::common(right, self.profile, self.sent);
        edits.retain(|(_, edit)| {
            let mut recipe = right.clone();
            edit.apply(&mut recipe);
            if self.work >= MAX_WORK {
                return false;
            }
            recipe.key(self.key).is_some_and(|key| {
                let string = recipe.string(self.sent, &key);
                self.affords(1, &string) && (key != right_key || string != right_string)
            })
        });
        for (index, first) in edits.iter().enumerate() {
            for second in &edits[index + 1..] {
                let (edit, other) = (&first.1, &second.1);
                let mut recipe = right.clone();
                edit.apply(&mut recipe);
                other.apply(&mut recipe);
                if !edit.excludes(other) && self.matches(&recipe) {
                    return Some(Explanation {
                        slip: edit::named(first, right, self.sent),
                        second: Some(edit::named(second, right, self.sent)),
                    });
                }
            }
        }
        None
    }

    /// Another preset as a whole.
    fn preset(&mut self) -> Option<&'static str> {
        let mut presets = SignProfile::PRESETS.into_iter();
        presets.find(|name| {
            let preset = SignProfile::preset(name).expect("the list has their names");
            let preset = SignProfile {
                cover: self.profile.cover,
                ..preset
            };
            let mut hashes = self.given.hashes().iter();
            hashes.any(|hash| {
                let recipe = Recipe::of(&preset).with_hash(*hash, preset.layout);
                self.matches(&recipe)
            })
        })
    }

    /// What the form of `sign` says if nothing matches.
    fn unexplained(&self, is_possible: bool) -> Explanation {
        match self.form() {
            Some(slip) => slip.into(),
            None if is_possible => Slip::KeyOrValue.into(),
            None => Slip::Algorithm(other_hash(self.profile, "none")).into(),
        }
    }

    fn matches(&mut self, recipe: &Recipe) -> bool {
        let Some(key) = recipe.key(self.key) else {
            return false;
        };
        // Nothing is written any more once the work is done.
        if self.work >= MAX_WORK {
            return false;
        }
        let string = recipe.string(self.sent, &key);
        self.is_signed(recipe.hash, &key, &string)
    }

    fn is_signed(&mut self, hash: Hash, key: &[u8], string: &[u8]) -> bool {
        self.affords(hash.weight(), string) && self.given.matches(&hash.digest(key, string))
    }

    /// Counts the work for a string; `false` if it is too much, and then for all further ones.
    fn affords(&mut self, weight: usize, string: &[u8]) -> bool {
        let work = weight * (string.len() + WORK_OF_STRING + WORK_OF_PAIR * self.sent.pairs.len());
        let is_affordable = self.work + work <= MAX_WORK;
        self.work = if is_affordable {
            self.work + work
        } else {
            MAX_WORK
        };
        is_affordable
    }
}

fn other_hash(profile: &SignProfile, found: &'static str) -> OtherHash {
    OtherHash {
        rule: Hash::of(profile.algorithm).name(),
        digits: match profile.algorithm {
            SignAlgorithm::Md5 => 32,
            SignAlgorithm::HmacSha256 => 64,
        },
        found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut search = Search {
            given: &GivenSign::new("0".repeat(digits).as_bytes()).unwrap(),
            profile: &profile(algorithm),
            key: &KEY.parse().unwrap(),
            sent: &Sent::new(("POST", "/user"), &params),
            work: 0,
        };
        search.run(None);
        search.work
    }

    #[test]
    fn a_search_has_a_limit_of_work() {
        let many: String = (0..256)
            .map(|index| format!("k{index}=%2Fvalue+it%27s&"))
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

    #[test]
    fn no_encoder_has_the_output_of_another() {
        let all: Vec<u8> = (0..=255).collect();
        let mut outputs = encoding::ENCODERS.each_ref().map(|encoder| {
            let mut output = Vec::new();
            encoder.encode(&all, &mut output);
            output
        });
        outputs.sort_unstable();
        assert!(outputs.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_hint_about_an_encoding_names_key_and_both_forms_and_no_value() {
        let key = KEY.parse().unwrap();
        let query = "%0A%E2%80%AEna%27me=secret%27s&time=1";
        let string = format!("%0A%E2%80%AEna'me=secret's&time=1{KEY}");
        let sign = hex::encode(Hash::Md5.digest(b"", string.as_bytes()));
        let found = explain(
            &GivenSign::new(sign.as_bytes()).unwrap(),
            &profile(SignAlgorithm::Md5),
            &key,
            None,
            ("GET", "/"),
            &Params::parse(query.as_bytes(), b"", 9).unwrap(),
        );
        let arguments = found.unwrap().slip.arguments();
        let value = |name| &*arguments.iter().find(|(one, _)| *one == name).unwrap().1;
        assert_eq!(value("key"), "??na'me");
        assert_eq!((value("signed"), value("sent")), ("'", "%27"));
        assert!(value("function").contains("encodeURIComponent"));
        assert!(!format!("{arguments:?}").contains("secret"));
        let cut = ShortText::new("é".repeat(99).as_bytes()).to_string();
        assert_eq!(cut.len(), 64);
    }
}
