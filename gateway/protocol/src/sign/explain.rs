//! Explaining a signature mismatch: finds the mistake of a client with the right key. CONTRACT 3.
//!
//! Only a client with the key can produce a match, so the hint reveals nothing to others. The hint for no match reveals
//! nothing either: it is the same for every signature.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::Sha512;
use subtle::ConstantTimeEq;

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

/// A mistake in signing, which the hint explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slip {
    /// The pairs were not sorted.
    Unsorted,
    /// Empty values were omitted, but must be signed.
    EmptyDropped,
    /// Empty values were signed, but must be omitted.
    EmptyKept,
    /// Decoded values were signed instead of those sent.
    Decoded,
    /// Encoded values were signed instead of decoded ones.
    Encoded,
    /// `&key=` preceded the key, but must not.
    KeyLabelled,
    /// `&key=` is missing before the key.
    KeyNotLabelled,
    /// The key was at the start of the string.
    KeyInFront,
    /// Keys and values were joined in another layout.
    Layout,
    /// A line break followed the string.
    TrailingNewline,
    /// Percent-escapes had another letter case than in the request.
    EscapeCase,
    /// Method and path were omitted, or included although the profile does not cover them.
    Cover,
    /// The other algorithm was used.
    Algorithm,
    /// HMAC with another hash was used.
    HmacHash,
    /// `time` was omitted.
    TimeNotSigned,
    /// A space was sent as `+` and signed as `%20`.
    SpaceAsEscape,
    /// A space was sent as `%20` and signed as `+`.
    SpaceAsPlus,
    /// The pairs of the query were omitted.
    QueryLeftOut,
    /// Another preset was used as a whole.
    Preset(&'static str),
    /// The previous key was used after its overlap.
    PreviousKey,
    /// None of these: the key or a value is probably wrong.
    KeyOrValue,
}

impl Slip {
    /// One of each kind, with an empty name as the preset's.
    pub const ALL: [Self; 21] = [
        Self::Unsorted,
        Self::EmptyDropped,
        Self::EmptyKept,
        Self::Decoded,
        Self::Encoded,
        Self::KeyLabelled,
        Self::KeyNotLabelled,
        Self::KeyInFront,
        Self::Layout,
        Self::TrailingNewline,
        Self::EscapeCase,
        Self::Cover,
        Self::Algorithm,
        Self::HmacHash,
        Self::TimeNotSigned,
        Self::SpaceAsEscape,
        Self::SpaceAsPlus,
        Self::QueryLeftOut,
        Self::Preset(""),
        Self::PreviousKey,
        Self::KeyOrValue,
    ];

    /// The key of the hint's text in the language files.
    #[must_use]
    pub const fn text_id(self) -> &'static str {
        match self {
            Self::Unsorted => "hint_unsorted",
            Self::EmptyDropped => "hint_empty_dropped",
            Self::EmptyKept => "hint_empty_kept",
            Self::Decoded => "hint_decoded",
            Self::Encoded => "hint_encoded",
            Self::KeyLabelled => "hint_key_labelled",
            Self::KeyNotLabelled => "hint_key_not_labelled",
            Self::KeyInFront => "hint_key_in_front",
            Self::Layout => "hint_layout",
            Self::TrailingNewline => "hint_trailing_newline",
            Self::EscapeCase => "hint_escape_case",
            Self::Cover => "hint_cover",
            Self::Algorithm => "hint_algorithm",
            Self::HmacHash => "hint_hmac_hash",
            Self::TimeNotSigned => "hint_time_not_signed",
            Self::SpaceAsEscape => "hint_space_as_escape",
            Self::SpaceAsPlus => "hint_space_as_plus",
            Self::QueryLeftOut => "hint_query_left_out",
            Self::Preset(_) => "hint_preset",
            Self::PreviousKey => "hint_previous_key",
            Self::KeyOrValue => "hint_key_or_value",
        }
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
        let others = [
            (
                SignProfile {
                    empty,
                    ..profile.clone()
                },
                empty_slip,
            ),
            (
                SignProfile {
                    values,
                    ..profile.clone()
                },
                values_slip,
            ),
            (
                SignProfile {
                    cover,
                    ..profile.clone()
                },
                Slip::Cover,
            ),
            (
                SignProfile {
                    algorithm,
                    ..profile.clone()
                },
                Slip::Algorithm,
            ),
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
            (
                SignProfile {
                    layout,
                    ..profile.clone()
                },
                slip,
            )
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
