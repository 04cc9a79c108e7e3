//! A mismatch explains itself: what a caller with the right key did differently. CONTRACT 3.
//!
//! Only who holds the key can produce such a match, so telling it gives nothing away.

use super::{
    AppKey, Canonical, Order, Sign, SignAlgorithm, SignCover, SignEmpty, SignLayout, SignProfile,
    SignValues, Sink, canonical::respell_escapes, digest,
};
use crate::param::Params;

/// The longest canonical string that a search is made for, in bytes: it hashes it some thirty times.
pub const LONGEST_CANONICAL: usize = 8 * 1024;

/// What was done differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slip {
    /// The pairs were not sorted.
    Unsorted,
    /// Empty values were left out, and must not be.
    EmptyDropped,
    /// Empty values were kept, and must not be.
    EmptyKept,
    /// Decoded values were signed instead of those on the wire.
    Decoded,
    /// Encoded values were signed instead of the decoded ones.
    Encoded,
    /// `&key=` stood before the key, and must not.
    KeyLabelled,
    /// `&key=` is missing before the key.
    KeyNotLabelled,
    /// The key stood in front.
    KeyInFront,
    /// Keys and values were put together otherwise.
    Layout,
    /// A line break followed the string.
    TrailingNewline,
    /// Percent-escapes were spelled in the other letter case than the request's.
    EscapeCase,
    /// Method and path were left out, or put in where they do not belong.
    Cover,
    /// The other algorithm.
    Algorithm,
    /// Another preset as a whole.
    Preset(&'static str),
    /// The previous key, after its overlap.
    PreviousKey,
}

impl Slip {
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
            Self::Preset(_) => "hint_preset",
            Self::PreviousKey => "hint_previous_key",
        }
    }
}

/// Looks for the one difference, or the other preset, that `given` comes from.
///
/// `previous_key` is one that is valid no more. `None` when nothing matches, or the parameters are
/// larger than [`LONGEST_CANONICAL`].
#[must_use]
pub fn explain(
    given: &Sign,
    profile: &SignProfile,
    key: &AppKey,
    previous_key: Option<&AppKey>,
    (method, path): (&str, &str),
    params: &Params<'_>,
) -> Option<Slip> {
    let length =
        |param: &crate::param::Param<'_>| param.wire_key().len() + param.wire_value().len() + 2;
    if params.iter().map(length).sum::<usize>() + path.len() > LONGEST_CANONICAL {
        return None;
    }
    let search = Search {
        given,
        key,
        method,
        path,
        params,
    };
    search
        .other_profile(profile)
        .or_else(|| search.other_writing(profile))
        .or_else(|| search.other_preset(profile))
        .or_else(|| {
            let previous = Search {
                key: previous_key?,
                ..search
            };
            previous
                .matches(profile, Order::Sorted)
                .then_some(Slip::PreviousKey)
        })
}

#[derive(Clone, Copy)]
struct Search<'a, 'p> {
    given: &'a Sign,
    key: &'a AppKey,
    method: &'a str,
    path: &'a str,
    params: &'a Params<'p>,
}

impl<'p> Search<'_, 'p> {
    /// One setting of the profile differs, or the order.
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

    /// The profile is right, but the string was written otherwise.
    fn other_writing(&self, profile: &SignProfile) -> Option<Slip> {
        let canonical = self.canonical(profile, Order::Sorted);
        let mut written = Vec::new();
        canonical.write(self.key, &mut written);
        let mut pairs = Vec::new();
        canonical.write_pairs(&mut pairs);
        let key_in_front = [self.key.as_bytes(), &pairs].concat();
        let with_newline = [&written[..], b"\n"].concat();
        let with_crlf = [&written[..], b"\r\n"].concat();
        // The key itself could hold a `%`; a hint missed for such a key is no loss.
        let lower_case = respell_escapes(&written, u8::to_ascii_lowercase);
        let upper_case = respell_escapes(&written, u8::to_ascii_uppercase);
        [
            (&key_in_front[..], Slip::KeyInFront),
            (&with_newline, Slip::TrailingNewline),
            (&with_crlf, Slip::TrailingNewline),
            (&lower_case, Slip::EscapeCase),
            (&upper_case, Slip::EscapeCase),
        ]
        .into_iter()
        .find_map(|(string, slip)| {
            let sign = digest(profile.algorithm, self.key, |sink: &mut dyn Sink| {
                sink.put(string)
            });
            sign.matches(self.given).then_some(slip)
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
        let canonical = self.canonical(profile, order);
        let sign = digest(profile.algorithm, self.key, |sink| {
            canonical.write(self.key, sink)
        });
        sign.matches(self.given)
    }

    fn canonical<'s>(&'s self, profile: &'s SignProfile, order: Order) -> Canonical<'s, 'p> {
        Canonical {
            profile,
            method: self.method,
            path: self.path,
            params: self.params,
            order,
        }
    }
}
