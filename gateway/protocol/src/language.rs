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

    /// The language of a request: the best match of the convention header, otherwise of `Accept-Language`, otherwise
    /// `en`; never an error. All lines of `Accept-Language` are one list (RFC 9110 section 5.3).
    #[must_use]
    pub fn of_request<'a>(
        own: Option<&[u8]>,
        accept_language: impl IntoIterator<Item = &'a [u8]>,
    ) -> Self {
        own.and_then(|list| Self::best_match([list]))
            .or_else(|| Self::best_match(accept_language))
            .unwrap_or_default()
    }

    /// The best match of a list of language ranges with weights (RFC 9110 section 12.5.4), in one or several lines; one tag is
    /// such a list.
    ///
    /// The highest weight wins; of equal ones, the first.
    fn best_match<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut best = (None, 0.0);
        let ranges = lines.into_iter();
        let ranges = ranges.flat_map(|line| line.split(|byte| *byte == b','));
        for range in ranges.take(MAX_RANGES) {
            let mut parts = range.splitn(2, |byte| *byte == b';');
            let tag = parts.next().unwrap_or_default().trim_ascii();
            let weight = parts.next().map_or(1.0, quality);
            // A weight of 0 means "not acceptable" (RFC 9110 section 12.4.2): it never exceeds the start.
            if weight > best.1
                && let Some(language) = Self::lookup(tag)
            {
                best = (Some(language), weight);
            }
        }
        best.0
    }

    /// Lookup (RFC 4647 section 3.4): subtags that say nothing here fall away. `*` is the default.
    ///
    /// Chinese is written in the script that the tag names, otherwise in its region's. `_` separates as `-` does,
    /// and what follows `.` or `@` in a POSIX locale says nothing.
    fn lookup(tag: &[u8]) -> Option<Self> {
        let tag = tag.split(|byte| b".@".contains(byte)).next()?;
        let mut subtags = tag.split(|byte| b"-_".contains(byte));
        let primary = subtags.next()?;
        let is = |subtag: &[u8], known: &[&str]| {
            known
                .iter()
                .any(|known| subtag.eq_ignore_ascii_case(known.as_bytes()))
        };
        if !is(primary, &["zh", "cmn", "yue"]) {
            let is_primary = |language: &Self| is(primary, &[language.tag()]);
            let named = [Self::En, Self::Ja, Self::Ko].into_iter().find(is_primary);
            return named.or_else(|| (primary == b"*").then(Self::default));
        }
        let mut chosen = is(primary, &["yue"]).then_some(Self::ZhTw);
        // A single character begins extensions, which do not say how the text is written.
        for subtag in subtags.take_while(|subtag| subtag.len() > 1) {
            if is(subtag, &["hans", "cn", "sg", "my"]) {
                return Some(Self::ZhCn);
            }
            if is(subtag, &["hant", "tw", "hk", "mo"]) {
                return Some(Self::ZhTw);
            }
            if is(subtag, &["yue"]) {
                chosen = Some(Self::ZhTw);
            }
        }
        chosen.or(Some(Self::ZhCn))
    }
}

/// Limit on the ranges that are examined; a browser sends a handful.
const MAX_RANGES: usize = 32;

fn quality(weight: &[u8]) -> f32 {
    std::str::from_utf8(weight.trim_ascii())
        .ok()
        .and_then(|weight| weight.strip_prefix("q=").or(weight.strip_prefix("Q=")))
        .and_then(|number| number.parse().ok())
        .filter(|number| (0.0..=1.0).contains(number))
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_finds_its_language() {
        for (tags, language) in [
            (
                "en EN en-GB en_US.UTF-8 en-Latn-x-a * *-CH",
                Some(Language::En),
            ),
            ("ja ja-JP JA_jp ja_JP.eucJP ja-Latn", Some(Language::Ja)),
            ("ko ko-KR ko-Kore-KR ko_KR@hanja", Some(Language::Ko)),
            (
                "zh ZH-cn zh_CN zh_CN.GB18030 zh-Hans zh-Hans-CN zh-Hans-TW zh-SG zh-MY zh-cmn-Hans cmn cmn-Hans \
                 cmn-CN yue-Hans zh-yue-CN zh-US zh-u-rg-twzzzz zh-x-hant",
                Some(Language::ZhCn),
            ),
            (
                "zh-TW zh_TW.Big5 zh-Hant zh-Hant-CN zh-HK zh-MO zh-Hant-HK zh_HK@currency zh-yue zh-yue-HK yue \
                 cmn-TW cmn-Hant",
                Some(Language::ZhTw),
            ),
            ("fr jax zhx C POSIX - _ .UTF-8 x-en i-klingon \u{e9}", None),
        ] {
            for tag in tags.split(' ') {
                assert_eq!(Language::best_match([tag.as_bytes()]), language, "{tag}");
            }
        }
        assert_eq!(Language::best_match([&b""[..]]), None);
        assert_eq!(Language::best_match([&b"\xff"[..]]), None);
    }

    #[test]
    fn the_highest_weight_wins() {
        for (list, language) in [
            ("fr, de;q=0.9", None),
            ("fr, ja;q=0.1", Some(Language::Ja)),
            ("zh-Hant-HK, en;q=0.5", Some(Language::ZhTw)),
            ("en;q=0.3, ko-KR; q=0.8 ,ja;Q=0.7", Some(Language::Ko)),
            ("ja, en", Some(Language::Ja)),
            (", ,ja", Some(Language::Ja)),
            ("ko;q=0, ja;q=nonsense, zh;q=2, en;q=NaN, en;q", None),
            ("fr, *;q=0.1", Some(Language::En)),
        ] {
            assert_eq!(Language::best_match([list.as_bytes()]), language, "{list}");
        }
        let far = format!("{}ja", "fr,".repeat(MAX_RANGES));
        assert_eq!(Language::best_match([far.as_bytes()]), None);
    }

    #[test]
    fn several_lines_are_one_list() {
        for (lines, language) in [
            (["fr", "ko"], Some(Language::Ko)),
            (["ja;q=0.5", "en;q=0.1, ko;q=0.8"], Some(Language::Ko)),
            (["ja", "ko"], Some(Language::Ja)),
            (["", "zh-HK"], Some(Language::ZhTw)),
        ] {
            assert_eq!(Language::best_match(lines.map(str::as_bytes)), language);
        }
        let long = ["fr,".repeat(MAX_RANGES - 1), "ja".to_owned()];
        assert_eq!(
            Language::best_match(long.iter().map(String::as_bytes)),
            None
        );
    }

    #[test]
    fn the_convention_header_wins_if_it_names_a_language() {
        for (own, accepted, language) in [
            (Some("ko-KR"), Some("ja"), Language::Ko),
            (Some("fr"), Some("ja-JP"), Language::Ja),
            (Some(""), Some("ja"), Language::Ja),
            (None, Some("zh-HK"), Language::ZhTw),
            (Some("fr"), Some("de"), Language::En),
            (None, None, Language::En),
        ] {
            let [own, accepted] = [own, accepted].map(|value| value.map(str::as_bytes));
            assert_eq!(Language::of_request(own, accepted), language, "{own:?}");
        }
    }
}
