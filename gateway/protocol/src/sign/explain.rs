//! Explaining a signature mismatch: finds the mistake of a client with the right key. CONTRACT 3.
//!
//! Only a client with the key can produce a match, so the hint reveals nothing to others. The hint for no match reveals
//! nothing either: it is the same for every signature.

mod slip;

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::Sha512;
use subtle::ConstantTimeEq;

pub use self::slip::Slip;
use super::{
    AppKey, Canonical, Sign, SignAlgorithm, SignCover, SignEmpty, SignLayout, SignProfile,
    SignValues, TIME, canonical::respell_escapes, digest,
};
use crate::param::Params;

/// Limit on the canonical string of a search, in bytes: it is hashed about thirty times.
pub const MAX_CANONICAL_BYTES: usize = 8 * 1024;

/// A signature as a client sent it: of MD5, SHA-1, SHA-256 or SHA-512, supported or not. Must not be logged, so `Debug`
/// does not print it.
pub struct GivenSign(Vec<u8>);

impl GivenSign {
    /// Lengths of MD5, SHA-1, SHA-256 and SHA-512, in bytes.
    const LENGTHS: [usize; 4] = [16, 20, 32, 64];

    /// Reads hex of either letter case; `None` for anything that none of these algorithms produces.
    #[must_use]
    pub fn from_hex(hex_digits: &[u8]) -> Option<Self> {
        let is_possible = |bytes: &Vec<u8>| Self::LENGTHS.contains(&bytes.len());
        hex::decode(hex_digits).ok().filter(is_possible).map(Self)
    }

    fn matches(&self, digest: &[u8]) -> bool {
        self.0.ct_eq(digest).into()
    }
}

impl From<Sign> for GivenSign {
    fn from(sign: Sign) -> Self {
        Self(sign.as_bytes().to_vec())
    }
}

hide_in_debug!(GivenSign);

/// Looks for the one mistake, or the other preset, with which `given` was made.
///
/// `previous_key` is no longer valid. Returns [`Slip::KeyOrValue`] if nothing matches; `None` without a search if the
/// parameters are larger than [`MAX_CANONICAL_BYTES`].
#[must_use]
pub fn explain(
    given: &GivenSign,
    profile: &SignProfile,
    key: &AppKey,
    previous_key: Option<&AppKey>,
    target: (&str, &str),
    params: &Params<'_>,
) -> Option<Slip> {
    let length =
        |param: &crate::param::Param<'_>| param.wire_key().len() + param.wire_value().len() + 2;
    if params.iter().map(length).sum::<usize>() + target.1.len() > MAX_CANONICAL_BYTES {
        return None;
    }
    let search = Search {
        given,
        key,
        signed: Canonical::new(profile, target, params),
    };
    let previous = || {
        let previous = Search {
            key: previous_key?,
            ..search
        };
        previous.matches(profile).then_some(Slip::PreviousKey)
    };
    search
        .other_rule()
        .or_else(|| search.other_writing())
        .or_else(|| search.other_pairs())
        .or_else(|| search.other_hmac())
        .or_else(|| search.other_preset())
        .or_else(previous)
        .or(Some(Slip::KeyOrValue))
}

#[derive(Clone, Copy)]
struct Search<'a, 'p> {
    given: &'a GivenSign,
    key: &'a AppKey,
    /// What should have been signed.
    signed: Canonical<'a, 'p>,
}

impl<'p> Search<'_, 'p> {
    /// Another order, or a profile that differs in one rule.
    fn other_rule(&self) -> Option<Slip> {
        let unsorted = Canonical {
            is_sorted: false,
            ..self.signed
        };
        if self.is_made_from(&unsorted) {
            return Some(Slip::Unsorted);
        }
        let profile = self.signed.profile;
        let with = |change: &dyn Fn(&mut SignProfile)| {
            let mut other = profile.clone();
            change(&mut other);
            other
        };
        let empty = |empty, slip| (with(&|other| other.empty = empty), slip);
        let values = |values, slip| (with(&|other| other.values = values), slip);
        let cover = |cover| (with(&|other| other.cover = cover), Slip::Cover);
        let algorithm = |one| (with(&|other| other.algorithm = one), Slip::Algorithm);
        let layout = |layout| {
            let slip = match (profile.layout, layout) {
                (SignLayout::Pairs, SignLayout::PairsKey) => Slip::KeyLabelled,
                (SignLayout::PairsKey, SignLayout::Pairs) => Slip::KeyNotLabelled,
                _ => Slip::Layout,
            };
            (with(&|other| other.layout = layout), slip)
        };
        let rules = [
            empty(SignEmpty::Drop, Slip::EmptyDropped),
            empty(SignEmpty::Keep, Slip::EmptyKept),
            values(SignValues::Decoded, Slip::Decoded),
            values(SignValues::Wire, Slip::Encoded),
            cover(SignCover::Request),
            cover(SignCover::Parameters),
            algorithm(SignAlgorithm::HmacSha256),
            algorithm(SignAlgorithm::Md5),
        ];
        let mut others = rules.into_iter().chain(SignLayout::ALL.map(layout));
        let matching = others.find(|(other, _)| other != profile && self.matches(other));
        matching.map(|(_, slip)| slip)
    }

    /// The right pairs, but another way of writing the string.
    fn other_writing(&self) -> Option<Slip> {
        let written = self.signed.to_vec(self.key);
        let lower_case = <[u8]>::make_ascii_lowercase;
        let upper_case = <[u8]>::make_ascii_uppercase;
        let strings = [
            (
                [self.key.as_bytes(), &self.signed.pairs()].concat(),
                Slip::KeyInFront,
            ),
            ([&written[..], b"\n"].concat(), Slip::TrailingNewline),
            ([&written[..], b"\r\n"].concat(), Slip::TrailingNewline),
            // The key itself may contain a `%`. Missing a hint for such a key is acceptable.
            (respell_escapes(&written, lower_case), Slip::EscapeCase),
            (respell_escapes(&written, upper_case), Slip::EscapeCase),
            (replace(&written, b"+", b"%20"), Slip::SpaceAsEscape),
            (replace(&written, b"%20", b"+"), Slip::SpaceAsPlus),
        ];
        let algorithm = self.signed.profile.algorithm;
        let is_signed = |(string, _): &&(Vec<u8>, Slip)| {
            let sign = digest(algorithm, self.key, |sink| sink(string));
            self.given.matches(sign.as_bytes())
        };
        strings.iter().find(is_signed).map(|(_, slip)| *slip)
    }

    /// Other pairs.
    fn other_pairs(&self) -> Option<Slip> {
        let mut without_time = self.signed.profile.clone();
        without_time.leave_out.push(TIME.to_owned());
        if self.matches(&without_time) {
            return Some(Slip::TimeNotSigned);
        }
        let body = Canonical {
            is_body_only: true,
            ..self.signed
        };
        self.is_made_from(&body).then_some(Slip::QueryLeftOut)
    }

    /// HMAC with another hash.
    fn other_hmac(&self) -> Option<Slip> {
        let profile = self.signed.profile;
        let hmac = SignProfile {
            algorithm: SignAlgorithm::HmacSha256,
            ..profile.clone()
        };
        let written = self.with(&hmac).to_vec(self.key);
        let is_other = match self.given.0.len() {
            16 => self.given.matches(&mac::<Hmac<Md5>>(self.key, &written)),
            20 => self.given.matches(&mac::<Hmac<Sha1>>(self.key, &written)),
            64 => self.given.matches(&mac::<Hmac<Sha512>>(self.key, &written)),
            _ => false,
        };
        is_other.then_some(match profile.algorithm {
            SignAlgorithm::Md5 => Slip::Algorithm,
            SignAlgorithm::HmacSha256 => Slip::HmacHash,
        })
    }

    /// Another preset as a whole.
    fn other_preset(&self) -> Option<Slip> {
        let is_of = |name: &&str| {
            let preset = SignProfile::preset(name);
            preset.is_some_and(|preset| {
                self.matches(&SignProfile {
                    cover: self.signed.profile.cover,
                    ..preset
                })
            })
        };
        let mut presets = SignProfile::PRESETS.into_iter();
        presets.find(is_of).map(Slip::Preset)
    }

    fn matches(&self, profile: &SignProfile) -> bool {
        self.is_made_from(&self.with(profile))
    }

    fn is_made_from(&self, canonical: &Canonical<'_, '_>) -> bool {
        let sign = digest(canonical.profile.algorithm, self.key, |sink| {
            canonical.write(self.key, sink)
        });
        self.given.matches(sign.as_bytes())
    }

    fn with<'s>(&'s self, profile: &'s SignProfile) -> Canonical<'s, 'p> {
        Canonical {
            profile,
            ..self.signed
        }
    }
}

fn mac<M: Mac + KeyInit>(key: &AppKey, written: &[u8]) -> Vec<u8> {
    let mut mac =
        <M as KeyInit>::new_from_slice(key.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(written);
    mac.finalize().into_bytes().to_vec()
}

fn replace(written: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some((&first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(old) {
            replaced.extend_from_slice(new);
            rest = after;
        } else {
            replaced.push(first);
            rest = after;
        }
    }
    replaced
}
