//! A provider's name for people, by language.

use signpost_kit::config::{Read, Section};
use signpost_protocol::{app::shown_name, language::Language};

/// Limit of a label in characters.
const MAX_LENGTH: usize = 60;

/// A provider's name on the login pages.
#[derive(Clone, Debug)]
pub struct Label {
    default: String,
    by_language: Vec<(Language, String)>,
}

impl Label {
    /// Reads `label`, a table with the tags of languages.
    pub(super) fn read(section: &mut Section<'_>, default: &str) -> Read<Self> {
        let allowed = format!("1 to {MAX_LENGTH} visible characters");
        let by_language = section.section("label", |section| {
            let texts = Language::ALL.map(|language| {
                let parse = |text: &str| shown_name(text, MAX_LENGTH).map(str::to_owned);
                let text = section.optional_by(language.tag(), &allowed, parse)?;
                Ok(text.map(|text| (language, text)))
            });
            let texts: Read<Vec<_>> = texts.into_iter().collect();
            Ok(texts?.into_iter().flatten().collect())
        });
        Ok(Self {
            default: default.to_owned(),
            by_language: by_language?,
        })
    }

    /// The text in a language; otherwise in English, otherwise the kind's own name or the provider's.
    pub(crate) fn in_language(&self, language: Language) -> &str {
        let find = |wanted| {
            let mut all = self.by_language.iter();
            all.find(|(language, _)| *language == wanted)
        };
        let text = find(language).or_else(|| find(Language::En));
        text.map_or(&self.default, |(_, text)| text)
    }
}
