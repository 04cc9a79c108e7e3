//! Explaining a signature mismatch: finds the mistake of a client with the right key. CONTRACT 3.
//!
//! Only a client with the key can produce a match, so the hint reveals nothing to others. The hint for no match reveals
//! nothing either: it is the same for every signature.

mod slip;

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::Sha512;
use subtle::ConstantTimeEq;

pub use self::slip::Slip;
use super::{
    AppKey, Canonical, Order, Sign, SignAlgorithm, SignCover, SignEmpty, SignLayout, SignProfile,
    SignValues, Sink, TIME,
    canonical::{Extent, respell_escapes},
    digest,
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

impl fmt::Debug for GivenSign {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("GivenSign(…)")
    }
}

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
    (method, path): (&str, &str),
    params: &Params<'_>,
) -> Option<Slip> {
    let length =
        |param: &crate::param::Param<'_>| param.wire_key().len() + param.wire_value().len() + 2;
    if params.iter().map(length).sum::<usize>() + path.len() > MAX_CANONICAL_BYTES {
        return None;
    }
    let search = Search {
        given,
        key,
        method,
        path,
        params,
    };
    let previous = || {
        let key = previous_key?;
        let previous = Search { key, ..search };
        previous
            .matches(profile, Order::Sorted)
            .then_some(Slip::PreviousKey)
    };
    search
        .other_profile(profile)
        .or_else(|| search.other_writing(profile))
        .or_else(|| search.other_pairs(profile))
        .or_else(|| search.other_hmac(profile))
        .or_else(|| search.other_preset(profile))
        .or_else(previous)
        .or(Some(Slip::KeyOrValue))
}

#[derive(Clone, Copy)]
struct Search<'a, 'p> {
    given: &'a GivenSign,
    key: &'a AppKey,
    method: &'a str,
    path: &'a str,
    params: &'a Params<'p>,
}

impl<'p> Search<'_, 'p> {
    /// One setting of the profile, or the order, was different.
    fn other_profile(&self, profile: &SignProfile) -> Option<Slip> {
        if self.matches(profile, Order::Appearance) {
            return Some(Slip::Unsorted);
        }
        let (empty, empty_slip) = match profile.empty {
            SignEmpty::Keep => (SignEmpty::Drop, Slip::EmptyDropped),
            SignEmpty::Drop => (SignEmpty::Keep, Slip::EmptyKept),
        };
        let (values, values_slip) = match profile.values {
            SignValues::Wire => (SignValues::Decoded, Slip::Decoded),
            SignValues::Decoded => (SignValues::Wire, Slip::Encoded),
        };
        let cover = match profile.cover {
            SignCover::Parameters => SignCover::Request,
            SignCover::Request => SignCover::Parameters,
        };
        let algorithm = match profile.algorithm {
            SignAlgorithm::Md5 => SignAlgorithm::HmacSha256,
            SignAlgorithm::HmacSha256 => SignAlgorithm::Md5,
        };
        let with = |change: &dyn Fn(&mut SignProfile)| {
            let mut other = profile.clone();
            change(&mut other);
            other
        };
        let others = [
            (with(&|other| other.empty = empty), empty_slip),
            (with(&|other| other.values = values), values_slip),
            (with(&|other| other.cover = cover), Slip::Cover),
            (with(&|other| other.algorithm = algorithm), Slip::Algorithm),
        ];
        let layouts = SignLayout::ALL
            .into_iter()
            .filter(|layout| *layout != profile.layout);
        let layouts = layouts.map(|layout| {
            let slip = match (profile.layout, layout) {
                (SignLayout::Pairs, SignLayout::PairsKey) => Slip::KeyLabelled,
                (SignLayout::PairsKey, SignLayout::Pairs) => Slip::KeyNotLabelled,
                _ => Slip::Layout,
            };
            (with(&|other| other.layout = layout), slip)
        });
        others
            .into_iter()
            .chain(layouts)
            .find_map(|(other, slip)| self.matches(&other, Order::Sorted).then_some(slip))
    }

    /// The profile was right, but the string was written differently.
    fn other_writing(&self, profile: &SignProfile) -> Option<Slip> {
        let canonical = self.canonical(profile, Order::Sorted);
        let mut written = Vec::new();
        canonical.write(self.key, &mut written);
        let mut pairs = Vec::new();
        canonical.write_pairs(&mut pairs);
        let key_in_front = [self.key.as_bytes(), &pairs].concat();
        let with_newline = [&written[..], b"\n"].concat();
        let with_crlf = [&written[..], b"\r\n"].concat();
        // The key itself may contain a `%`. Missing a hint for such a key is acceptable.
        let lower_case = respell_escapes(&written, u8::to_ascii_lowercase);
        let upper_case = respell_escapes(&written, u8::to_ascii_uppercase);
        let escaped_spaces = replace(&written, b"+", b"%20");
        let plus_spaces = replace(&written, b"%20", b"+");
        [
            (&key_in_front[..], Slip::KeyInFront),
            (&with_newline, Slip::TrailingNewline),
            (&with_crlf, Slip::TrailingNewline),
            (&lower_case, Slip::EscapeCase),
            (&upper_case, Slip::EscapeCase),
            (&escaped_spaces, Slip::SpaceAsEscape),
            (&plus_spaces, Slip::SpaceAsPlus),
        ]
        .into_iter()
        .find_map(|(string, slip)| {
            let sign = digest(profile.algorithm, self.key, |sink: &mut dyn Sink| {
                sink.put(string)
            });
            self.given.matches(sign.as_bytes()).then_some(slip)
        })
    }

    /// The profile was right, but pairs were missing.
    fn other_pairs(&self, profile: &SignProfile) -> Option<Slip> {
        let mut without_time = profile.clone();
        without_time.leave_out.push(TIME.to_owned());
        if self.matches(&without_time, Order::Sorted) {
            return Some(Slip::TimeNotSigned);
        }
        let body = Canonical {
            extent: Extent::Body,
            ..self.canonical(profile, Order::Sorted)
        };
        self.is_made_from(&body).then_some(Slip::QueryLeftOut)
    }

    /// HMAC with an unsupported hash was used.
    fn other_hmac(&self, profile: &SignProfile) -> Option<Slip> {
        let hmac = SignProfile {
            algorithm: SignAlgorithm::HmacSha256,
            ..profile.clone()
        };
        let mut written = Vec::new();
        self.canonical(&hmac, Order::Sorted)
            .write(self.key, &mut written);
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

    fn other_preset(&self, profile: &SignProfile) -> Option<Slip> {
        SignProfile::PRESETS.into_iter().find_map(|name| {
            let preset = SignProfile::preset(name)?;
            let other = SignProfile {
                cover: profile.cover,
                ..preset
            };
            self.matches(&other, Order::Sorted)
                .then_some(Slip::Preset(name))
        })
    }

    fn matches(&self, profile: &SignProfile, order: Order) -> bool {
        self.is_made_from(&self.canonical(profile, order))
    }

    fn is_made_from(&self, canonical: &Canonical<'_, '_>) -> bool {
        let sign = digest(canonical.profile.algorithm, self.key, |sink| {
            canonical.write(self.key, sink)
        });
        self.given.matches(sign.as_bytes())
    }

    fn canonical<'s>(&'s self, profile: &'s SignProfile, order: Order) -> Canonical<'s, 'p> {
        Canonical {
            profile,
            method: self.method,
            path: self.path,
            params: self.params,
            order,
            extent: Extent::All,
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
