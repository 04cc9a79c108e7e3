//! How to sign in each language: the code of SIGNING.md, which says what of it the tests run.

use std::sync::LazyLock;

use maud::{Markup, html};

use super::page::Reader;

/// The languages, as the document names them and as they are called.
const LANGUAGES: [(&str, &str); 6] = [
    ("python", "Python"),
    ("js", "JavaScript"),
    ("go", "Go"),
    ("java", "Java"),
    ("php", "PHP"),
    ("csharp", "C#"),
];

/// The code of each language.
static SAMPLES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let document = include_str!("../../protocol/SIGNING.md");
    let code = |language| {
        let (_, rest) = document.split_once(&format!("```{language}\n"))?;
        Some(rest.split_once("```")?.0)
    };
    let all = LANGUAGES.into_iter();
    all.filter_map(|(word, name)| Some((name, code(word)?)))
        .collect()
});

/// The samples, folded.
pub(super) fn samples(reader: &Reader) -> Markup {
    html! {
        h2 { (reader.text("console_samples")) }
        p { (reader.text("console_samples_how")) }
        @for (name, code) in SAMPLES.iter() {
            details { summary { (name) } pre { code { (code) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_code() {
        let names: Vec<_> = SAMPLES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, LANGUAGES.map(|(_, name)| name));
        for (name, code) in SAMPLES.iter() {
            assert!(code.contains("sign"), "{name}");
        }
    }
}
