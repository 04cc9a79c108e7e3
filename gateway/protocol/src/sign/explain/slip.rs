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
        /// `&key=` preceded the key, but must not.
        KeyLabelled = "hint_key_labelled",
        /// `&key=` is missing before the key.
        KeyNotLabelled = "hint_key_not_labelled",
        /// The key was at the start of the string.
        KeyInFront = "hint_key_in_front",
        /// Keys and values were joined in another layout.
        Layout = "hint_layout",
        /// A line break followed the string.
        TrailingNewline = "hint_trailing_newline",
        /// Percent-escapes had another letter case than in the request.
        EscapeCase = "hint_escape_case",
        /// Method and path were omitted, or included although the profile does not cover them.
        Cover = "hint_cover",
        /// The other algorithm was used.
        Algorithm = "hint_algorithm",
        /// HMAC with another hash was used.
        HmacHash = "hint_hmac_hash",
        /// `time` was omitted.
        TimeNotSigned = "hint_time_not_signed",
        /// A space was sent as `+` and signed as `%20`.
        SpaceAsEscape = "hint_space_as_escape",
        /// A space was sent as `%20` and signed as `+`.
        SpaceAsPlus = "hint_space_as_plus",
        /// The pairs of the query were omitted.
        QueryLeftOut = "hint_query_left_out",
        /// Another preset was used as a whole.
        Preset(&'static str = "") = "hint_preset",
        /// The previous key was used after its overlap.
        PreviousKey = "hint_previous_key",
        /// No search: the limit of searches per second was exceeded.
        NotSearched = "hint_not_searched",
        /// No search: path and parameters are too large.
        TooLarge = "hint_too_large",
        /// None of these: the key or a value is probably wrong.
        KeyOrValue = "hint_key_or_value",
    }
}
