//! Every text that a user may see, by language and key. CONTRACT 6.
//!
//! The texts are Fluent files for translators, one per language, in `languages/`. They are embedded; each is parsed
//! once, when its language is first used.

use std::sync::OnceLock;

use fluent_bundle::{FluentArgs, FluentResource, FluentValue, concurrent::FluentBundle};

use crate::language::Language;

/// The texts that are shared by all programs.
static TEXTS: Texts = Texts::new([
    include_str!("../languages/en.ftl"),
    include_str!("../languages/zh-CN.ftl"),
    include_str!("../languages/zh-TW.ftl"),
    include_str!("../languages/ja.ftl"),
    include_str!("../languages/ko.ftl"),
]);

/// Formats the text of `id` (`message`, or `message.attribute`) with `args`.
///
/// A missing text or argument is replaced by its name, so that users always see some text.
#[must_use]
pub fn text(language: Language, id: &str, args: &[(&str, &str)]) -> String {
    find(language, id, args).unwrap_or_else(|| id.to_owned())
}

/// As [`text`]; `None` if the language has no text for `id`.
pub fn find(language: Language, id: &str, args: &[(&str, &str)]) -> Option<String> {
    TEXTS.find(language, id, args)
}

/// A Fluent file for each language.
pub struct Texts {
    /// In the order of [`Language::ALL`].
    sources: [&'static str; Language::ALL.len()],
    bundles: [OnceLock<FluentBundle<FluentResource>>; Language::ALL.len()],
}

hide_in_debug!(Texts);

impl Texts {
    /// The texts of these files, in the order of [`Language::ALL`].
    #[must_use]
    pub const fn new(sources: [&'static str; Language::ALL.len()]) -> Self {
        Self {
            sources,
            bundles: [const { OnceLock::new() }; Language::ALL.len()],
        }
    }

    /// Formats the text of `id` with `args`; `None` if the language has no text for it.
    pub fn find(&self, language: Language, id: &str, args: &[(&str, &str)]) -> Option<String> {
        let bundle = self.bundle(language);
        let (message, attribute) = id.split_once('.').unzip();
        let message = bundle.get_message(message.unwrap_or(id))?;
        let pattern = match attribute {
            Some(attribute) => message.get_attribute(attribute)?.value(),
            None => message.value()?,
        };
        let mut values = FluentArgs::with_capacity(args.len());
        for (name, value) in args {
            values.set(*name, FluentValue::from(*value));
        }
        let mut missing_args = Vec::new();
        let text = bundle.format_pattern(pattern, Some(&values), &mut missing_args);
        Some(text.into_owned())
    }

    fn bundle(&self, language: Language) -> &FluentBundle<FluentResource> {
        self.bundles[language as usize].get_or_init(|| {
            let tag = language.tag().parse().expect("our five tags are BCP 47");
            let mut bundle = FluentBundle::new_concurrent(vec![tag]);
            // Isolation marks are for mixed writing directions; all five languages run left to right.
            bundle.set_use_isolating(false);
            let source = self.sources[language as usize].to_owned();
            let resource = FluentResource::try_new(source)
                .expect("the embedded files parse: a test reads each");
            bundle
                .add_resource(resource)
                .expect("no key stands twice: a test reads each file");
            bundle
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// The folders with texts: ours, and the gateway's console.
    const FOLDERS: [&str; 2] = ["languages", "../management/src/console/languages"];

    fn source(folder: &str, language: Language) -> &'static str {
        let root = env!("CARGO_MANIFEST_DIR");
        let path = format!("{root}/{folder}/{}.ftl", language.tag());
        std::fs::read_to_string(path).unwrap().leak()
    }

    /// Every message and attribute of a file, with the names of its arguments and of the variants it chooses from.
    fn keys(source: &str) -> BTreeMap<String, BTreeSet<String>> {
        let mut keys = BTreeMap::new();
        let mut message = String::new();
        let mut last = String::new();
        for line in source.lines().filter(|line| !line.starts_with('#')) {
            if let Some((attribute, _)) = line
                .trim_start()
                .strip_prefix('.')
                .and_then(|rest| rest.split_once(" ="))
            {
                last = format!("{message}.{attribute}");
            } else if let Some((name, _)) = line.split_once(" =").filter(|_| !line.starts_with(' '))
            {
                message = name.to_owned();
                last.clone_from(&message);
            }
            let names: &mut BTreeSet<String> = keys.entry(last.clone()).or_default();
            names.extend(
                line.split("{ $")
                    .skip(1)
                    .map(|rest| rest.split(' ').next().unwrap().to_owned()),
            );
            let variant = line.trim_start().split_inclusive(']').next();
            names.extend(
                variant
                    .filter(|name| name.starts_with(['[', '*']))
                    .map(str::to_owned),
            );
        }
        keys.remove("");
        keys
    }

    #[test]
    fn every_language_has_the_same_texts_with_the_same_arguments() {
        for folder in FOLDERS {
            let texts = Texts::new(Language::ALL.map(|language| source(folder, language)));
            let english = keys(source(folder, Language::En));
            assert!(english.len() > 80);
            for language in Language::ALL {
                let tag = language.tag();
                assert_eq!(keys(source(folder, language)), english, "{tag}");
                for id in english.keys() {
                    assert!(texts.find(language, id, &[]).is_some(), "{id} in {tag}");
                }
            }
        }
    }

    #[test]
    fn texts_have_a_space_between_han_or_kana_and_latin_letters_digits_or_arguments() {
        let is_wide = |letter| matches!(letter, '\u{3041}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}');
        let is_latin = |letter: char| letter.is_ascii_alphanumeric() || "{}".contains(letter);
        for language in [Language::ZhCn, Language::ZhTw, Language::Ja] {
            let lines = FOLDERS.map(|folder| source(folder, language).lines());
            for line in lines.into_iter().flatten() {
                let letters: Vec<_> = line.chars().collect();
                for pair in letters.windows(2).filter(|_| !line.starts_with('#')) {
                    let is_tight = is_wide(pair[0]) && is_latin(pair[1])
                        || is_latin(pair[0]) && is_wide(pair[1]);
                    assert!(!is_tight, "{pair:?} in {}: {line}", language.tag());
                }
            }
        }
    }

    #[test]
    fn korean_needs_no_choice_of_particles() {
        for choice in ["이(가)", "은(는)", "을(를)", "와(과)", "(으)로"] {
            for folder in FOLDERS {
                assert!(!source(folder, Language::Ko).contains(choice), "{choice}");
            }
        }
    }

    /// A part of a text that was moved in front of another one.
    #[test]
    fn no_text_begins_with_a_space_or_with_the_words_of_another_one() {
        for language in Language::ALL {
            let shown = |id: &str| text(language, id, &[("found", "request")]);
            for id in keys(source(FOLDERS[0], language)).keys() {
                let text = shown(id);
                assert!(!text.starts_with(' '), "{id}: {text}");
            }
            let (cover, twice) = (shown("hint_cover"), shown("hint_encoded_twice"));
            let begins = |sentence: &&str| !sentence.is_empty() && cover.starts_with(*sentence);
            let mut sentences = twice.split_inclusive(['.', '。']);
            assert_eq!(sentences.find(begins), None, "{}", language.tag());
        }
    }

    #[test]
    fn arguments_are_put_in_as_they_are() {
        let detail = text(Language::En, "param_missing.detail", &[("name", "<b>")]);
        assert!(detail.contains("<b>"), "{detail}");
    }

    #[test]
    fn a_missing_text_shows_its_key() {
        assert_eq!(text(Language::Ko, "no_such_text", &[]), "no_such_text");
    }

    #[test]
    fn languages_differ() {
        let titles: BTreeSet<_> = Language::ALL
            .iter()
            .map(|language| text(*language, "not_found", &[]))
            .collect();
        assert_eq!(titles.len(), 5);
    }
}
