//! The five languages, and how one is selected. CONTRACT 6.

label_enum! {
    /// A language. Every text exists in each of them.
    #[derive(Default, Hash)]
    pub enum Language {
        /// English, the default.
        #[default]
        En = "en",
        /// Chinese, simplified.
        ZhCn = "zh-CN",
        /// Chinese, traditional.
        ZhTw = "zh-TW",
        /// Japanese.
        Ja = "ja",
        /// Korean.
        Ko = "ko",
    }
}

impl Language {
    /// The BCP 47 tag, as in the language header and in `Content-Language`.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        self.as_str()
    }

    /// The language in the convention header. If it is missing or unknown, `en`; never an error.
    #[must_use]
    pub fn from_header(value: Option<&[u8]>) -> Self {
        let named = |language: &Self| {
            value.is_some_and(|value| language.tag().as_bytes().eq_ignore_ascii_case(value))
        };
        Self::ALL.into_iter().find(named).unwrap_or_default()
    }

    /// The best match of a browser's `Accept-Language` (RFC 9110 section 12.5.4), for pages only.
    ///
    /// The highest weight wins; of equal ones, the first. `zh` with another or no script or region is mapped to the
    /// nearer of the two Chinese variants.
    #[must_use]
    pub fn from_accept_language(value: &str) -> Self {
        let mut best = (Self::default(), 0.0);
        for range in value.split(',').take(MAX_RANGES) {
            let (tag, weight) = match range.split_once(';') {
                Some((tag, weight)) => (tag, quality(weight)),
                None => (range, 1.0),
            };
            if let Some(language) = Self::nearest(tag.trim())
                && weight > best.1
            {
                best = (language, weight);
            }
        }
        best.0
    }

    fn nearest(tag: &str) -> Option<Self> {
        let mut parts = tag.split('-');
        let primary = parts.next()?.to_ascii_lowercase();
        match primary.as_str() {
            "en" => Some(Self::En),
            "ja" => Some(Self::Ja),
            "ko" => Some(Self::Ko),
            "zh" => {
                let is_traditional = |part: &str| {
                    ["hant", "tw", "hk", "mo"]
                        .iter()
                        .any(|known| part.eq_ignore_ascii_case(known))
                };
                let is_simplified = |part: &str| part.eq_ignore_ascii_case("hans");
                let chosen = parts.find(|part| is_traditional(part) || is_simplified(part));
                Some(if chosen.is_some_and(is_traditional) {
                    Self::ZhTw
                } else {
                    Self::ZhCn
                })
            }
            _ => None,
        }
    }
}

/// Limit on the ranges that are examined; a browser sends a handful.
const MAX_RANGES: usize = 32;

fn quality(weight: &str) -> f32 {
    weight
        .trim()
        .strip_prefix("q=")
        .and_then(|number| number.parse().ok())
        .filter(|number| (0.0..=1.0).contains(number))
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_compared_without_letter_case() {
        assert_eq!(Language::from_header(Some(b"ZH-cn")), Language::ZhCn);
        assert_eq!(Language::from_header(Some(b"ja")), Language::Ja);
    }

    #[test]
    fn anything_else_in_the_header_is_english() {
        for other in [&b"fr"[..], b"", b"zh", b"\xff", b"en-GB"] {
            assert_eq!(Language::from_header(Some(other)), Language::En);
        }
        assert_eq!(Language::from_header(None), Language::En);
    }

    #[test]
    fn a_browser_gets_its_best_match() {
        for (value, language) in [
            ("", Language::En),
            ("fr, de;q=0.9", Language::En),
            ("zh", Language::ZhCn),
            ("zh-Hant-HK, en;q=0.5", Language::ZhTw),
            ("zh-Hans-TW", Language::ZhCn),
            ("zh-SG", Language::ZhCn),
            ("en;q=0.3, ko-KR;q=0.8, ja;q=0.7", Language::Ko),
            ("ja, en", Language::Ja),
            ("ko;q=0, ja;q=nonsense", Language::En),
        ] {
            assert_eq!(Language::from_accept_language(value), language, "{value}");
        }
    }
}
