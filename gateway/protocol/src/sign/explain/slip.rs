//! The mistakes in signing that are explained. CONTRACT 3.

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
