//! The mistakes in signing that are explained. CONTRACT 3.

label_enum! {
    /// A mistake in signing, which the hint explains, or why none was searched: the key of its text in the language files.
    pub enum Slip {
        /// The pairs were not sorted.
        Unsorted = "hint_unsorted",
        /// Empty values were omitted, but must be signed.
        EmptyDropped = "hint_empty_dropped",
        /// Empty values were signed, but must be omitted.
        EmptyKept = "hint_empty_kept",
        /// Decoded values were signed instead of those sent.
        Decoded = "hint_decoded",
        /// Encoded values were signed instead of decoded ones.
        Encoded = "hint_encoded",
        /// Key or value was signed as another function encodes it.
        EncodedDifferently(Respelling = Respelling::NONE) = "hint_encoded_differently",
        /// Encoded once in one of the two, and twice in the other.
        EncodedTwice = "hint_encoded_twice",
        /// An empty value was signed as `null` or the like, or the reverse.
        MissingValue(StringChange = StringChange::NONE) = "hint_missing_value",
        /// Sorted by another rule.
        Order(&'static str = "") = "hint_order",
        /// `&key=` preceded the key, but must not.
        KeyLabelled(StringChange = StringChange::NONE) = "hint_key_labelled",
        /// `&key=` is missing before the key.
        KeyNotLabelled(StringChange = StringChange::NONE) = "hint_key_not_labelled",
        /// The key was at the start of the string.
        KeyInFront(StringChange = StringChange::NONE) = "hint_key_in_front",
        /// With HMAC, the string contained the key.
        KeyInText(StringChange = StringChange::NONE) = "hint_key_in_text",
        /// The string had no key.
        KeyMissing = "hint_key_missing",
        /// The key was decoded, or written in another way.
        KeyForm(&'static str = "") = "hint_key_form",
        /// Keys and values were joined in another layout.
        Layout(StringChange = StringChange::NONE) = "hint_layout",
        /// A line break followed the string or the key.
        TrailingNewline = "hint_trailing_newline",
        /// A superfluous `?` or `&`.
        StraySeparator = "hint_stray_separator",
        /// Percent-escapes had another letter case than in the request.
        EscapeCase = "hint_escape_case",
        /// Method and path were omitted, or included although the profile does not cover them.
        Cover(&'static str = "") = "hint_cover",
        /// Method and path were written in another way.
        CoverForm = "hint_cover_form",
        /// Another algorithm was used, or one that makes signatures of this length.
        Algorithm(OtherHash = OtherHash::NONE) = "hint_algorithm",
        /// HMAC with another hash was used.
        HmacHash(OtherHash = OtherHash::NONE) = "hint_hmac_hash",
        /// `sign` is not in hex.
        SignForm(OtherHash = OtherHash::NONE) = "hint_sign_form",
        /// `time` was omitted.
        TimeNotSigned = "hint_time_not_signed",
        /// A key that is left out was signed.
        ParamSigned(ShortText = ShortText::NONE) = "hint_param_signed",
        /// A key that is signed was left out.
        ParamNotSigned(ShortText = ShortText::NONE) = "hint_param_not_signed",
        /// A space was sent as `+` and signed as `%20`.
        SpaceAsEscape = "hint_space_as_escape",
        /// A space was sent as `%20` and signed as `+`.
        SpaceAsPlus = "hint_space_as_plus",
        /// The parameters were signed as JSON.
        Json = "hint_json",
        /// The pairs of the query were omitted.
        QueryLeftOut = "hint_query_left_out",
        /// Another preset was used as a whole.
        Preset(&'static str = "") = "hint_preset",
        /// Names or values were changed between signing and sending.
        ValueChanged(&'static str = "") = "hint_value_changed",
        /// The pairs of the form were omitted.
        FormLeftOut = "hint_form_left_out",
        /// The key itself was sent. Needs no search.
        KeySent = "hint_key_sent",
        /// `time` or `sign` is missing, but was sent as a header. Needs no search.
        InHeader(&'static str = "") = "hint_in_header",
        /// Signatures of parameters do not cover the body. Needs no search.
        BodyUnsigned = "hint_body_unsigned",
        /// The headers of the signature are missing. Needs no search.
        HeadersMissing = "hint_headers_missing",
        /// The header is missing, but the parameter was sent. Needs no search.
        InParameters(&'static str = "") = "hint_in_parameters",
        /// A line of a signature in headers was written in another way.
        Line(&'static str = "") = "hint_line",
        /// `time` or `sign` is missing, but was sent by this name. Needs no search.
        Misnamed(ShortText = ShortText::NONE) = "hint_misnamed",
        /// The previous key was used after its overlap.
        PreviousKey = "hint_previous_key",
        /// No search: the limit of searches per second was exceeded.
        NotSearched = "hint_not_searched",
        /// No search: path and parameters are too large.
        TooLarge = "hint_too_large",
        /// None of these: the key or a value is wrong.
        KeyOrValue = "hint_key_or_value",
        /// In addition to the last: a key or value is not ASCII.
        Charset = "hint_charset",
        /// In addition to it: method and path are signed.
        CoverRule = "hint_cover_rule",
    }
}

impl Slip {
    /// The arguments of its text. They may come from the request, but are short and printable.
    #[must_use]
    pub fn arguments(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Preset(name) => vec![("preset", name.to_owned())],
            Self::Cover(form)
            | Self::KeyForm(form)
            | Self::Order(form)
            | Self::ValueChanged(form)
            | Self::InHeader(form)
            | Self::InParameters(form)
            | Self::Line(form) => vec![("found", form.to_owned())],
            Self::KeyLabelled(change)
            | Self::KeyNotLabelled(change)
            | Self::KeyInFront(change)
            | Self::KeyInText(change)
            | Self::Layout(change)
            | Self::MissingValue(change) => vec![
                ("rule", change.rule.to_string()),
                ("found", change.found.to_string()),
            ],
            Self::Algorithm(other) | Self::HmacHash(other) | Self::SignForm(other) => vec![
                ("rule", other.rule.to_owned()),
                ("digits", other.digits.to_string()),
                ("found", other.found.to_owned()),
            ],
            Self::ParamSigned(key) | Self::ParamNotSigned(key) | Self::Misnamed(key) => {
                vec![("key", key.to_string())]
            }
            Self::EncodedDifferently(respelling) => vec![
                ("key", respelling.key.to_string()),
                ("signed", respelling.signed.to_string()),
                ("sent", respelling.sent.to_string()),
                ("function", respelling.function.to_owned()),
                (
                    "form",
                    if respelling.is_raw { "raw" } else { "encoded" }.to_owned(),
                ),
            ],
            _ => Vec::new(),
        }
    }
}

/// What was signed, and what had to be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringChange {
    /// The form that the profile, or the request, asks for.
    pub rule: ShortText,
    /// The form that was signed.
    pub found: ShortText,
}

impl StringChange {
    const NONE: Self = Self {
        rule: ShortText::NONE,
        found: ShortText::NONE,
    };
}

/// What was used instead of the profile's algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherHash {
    /// The profile's algorithm.
    pub rule: &'static str,
    /// The number of hex digits of its signature.
    pub digits: usize,
    /// What was used.
    pub found: &'static str,
}

impl OtherHash {
    const NONE: Self = Self {
        rule: "",
        digits: 0,
        found: "",
    };
}

/// A character that was signed in one form, and sent in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Respelling {
    /// The decoded key of the first pair that differs.
    pub key: ShortText,
    /// The form in the signed string.
    pub signed: ShortText,
    /// The form in the request.
    pub sent: ShortText,
    /// The functions that produce the signed form.
    pub function: &'static str,
    /// Whether the signed form may as well be not encoded at all.
    pub is_raw: bool,
}

impl Respelling {
    const NONE: Self = Self {
        key: ShortText::NONE,
        signed: ShortText::NONE,
        sent: ShortText::NONE,
        function: "",
        is_raw: false,
    };
}

/// At most 64 bytes of a request's text, which can be shown: without control characters and invisible marks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ShortText {
    bytes: [u8; Self::MAX],
    length: usize,
}

impl ShortText {
    const MAX: usize = 64;
    const NONE: Self = Self {
        bytes: [0; Self::MAX],
        length: 0,
    };

    /// Cuts the text, and replaces what cannot be shown by `?`.
    #[must_use]
    pub fn new(text: &[u8]) -> Self {
        let mut short = Self::NONE;
        for letter in String::from_utf8_lossy(text).chars() {
            let letter = if is_shown(letter) { letter } else { '?' };
            let end = short.length + letter.len_utf8();
            if end > Self::MAX {
                break;
            }
            letter.encode_utf8(&mut short.bytes[short.length..end]);
            short.length = end;
        }
        short
    }
}

/// Whether a letter stands for itself: no control character, no mark of writing direction, nothing invisible.
fn is_shown(letter: char) -> bool {
    use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};
    // Marks combine with the letter before them, which may be the hint's own.
    !matches!(
        letter.general_category_group(),
        GeneralCategoryGroup::Other | GeneralCategoryGroup::Separator | GeneralCategoryGroup::Mark
    ) || letter == ' '
}

impl std::fmt::Display for ShortText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(&self.bytes[..self.length]))
    }
}

impl std::fmt::Debug for ShortText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.to_string(), formatter)
    }
}
