//! Lists that commands print: an entry for each key, metric or problem.

use anyhow::ensure;
use clap::Args;
use serde::Serialize;

use crate::{
    config::keys::{Key, is_below},
    metrics::Family,
};

/// Lines are wrapped at this many characters.
const WIDTH: usize = 100;

/// What of a list is printed, and how.
#[derive(Debug, Args)]
pub struct Selection {
    /// Print only what contains one of these texts. Exit code 1 if there is none.
    #[arg(value_name = "TEXT")]
    texts: Vec<String>,
    /// Print JSON: a list of objects.
    #[arg(long)]
    json: bool,
}

/// What is printed of an item: its name, what stands behind that, and the text below.
pub type Entry = [String; 3];

impl Selection {
    /// The items that it selects, as JSON or for people. `noun` is what they are.
    ///
    /// # Errors
    ///
    /// One of the texts names none.
    pub fn list<T: Serialize>(
        &self,
        noun: &str,
        mut items: Vec<T>,
        entry: impl Fn(&T) -> Entry,
    ) -> anyhow::Result<String> {
        let is_named = |item: &T, text: &String| {
            let [name, ..] = entry(item);
            name.contains(text) || is_below(&name, text)
        };
        for text in &self.texts {
            ensure!(
                items.iter().any(|item| is_named(item, text)),
                "no {noun} contains {text:?}; without TEXT, every {noun} is printed"
            );
        }
        let is_meant = |item: &T| self.texts.iter().any(|text| is_named(item, text));
        items.retain(|item| self.texts.is_empty() || is_meant(item));
        if self.json {
            return Ok(serde_json::to_string_pretty(&items)?);
        }
        let paragraphs = items.iter().map(entry).map(|[name, facts, text]| {
            wrapped(format!("{name} "), &facts) + "\n" + &wrapped("   ".to_owned(), &text)
        });
        Ok(paragraphs.collect::<Vec<_>>().join("\n"))
    }
}

pub(super) fn key(key: &Key) -> Entry {
    let unit = key.unit.iter().map(|unit| format!(" ({unit})"));
    let default = key.default.iter().map(|text| format!(", default {text}"));
    let further: String = unit.chain(default).collect();
    let change = match key.reload {
        true => "A reload applies it.",
        false => "A change needs a new process.",
    };
    let facts = format!("{}{further}. {change}", key.allowed);
    [key.key.clone(), facts, key.meaning.clone()]
}

pub(super) fn family(family: &Family<'_>) -> Entry {
    let (labels, kind) = (family.labels, family.kind.as_str());
    let by = if labels.is_empty() { "" } else { ", by " };
    let facts = format!("{kind}{by}{}", labels.join(", "));
    [family.name.to_owned(), facts, family.help.to_owned()]
}

/// Adds words to a line, and further lines, which are indented.
fn wrapped(mut text: String, words: &str) -> String {
    let mut width = text.chars().count();
    for word in words.split_whitespace() {
        width += 1 + word.chars().count();
        if width > WIDTH {
            text += "\n   ";
            width = 4 + word.chars().count();
        }
        text = text + " " + word;
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn example(name: &str, default: Option<&str>) -> Key {
        Key {
            key: name.to_owned(),
            meaning: "word ".repeat(30),
            unit: Some("seconds".to_owned()),
            allowed: "a number".to_owned(),
            schema: json!({}),
            default: default.map(str::to_owned),
            reload: default.is_some(),
        }
    }

    #[test]
    fn keys_are_selected_by_text_or_by_name() {
        let select = |texts: &[&str]| {
            let keys = vec![
                example("versions.NAME.health.path", None),
                example("log.path", None),
            ];
            let texts = texts.iter().map(|text| (*text).to_owned()).collect();
            let text = Selection { texts, json: true }.list("key", keys, key);
            let text = text.map_err(|error| error.to_string())?;
            Ok::<_, String>(text.matches("\"key\"").count())
        };
        assert_eq!(select(&[]), Ok(2));
        assert_eq!(select(&["path"]), Ok(2));
        for one in [
            "versions.",
            "versions.v1",
            "health",
            "versions.v1.health.path",
        ] {
            assert_eq!(select(&[one]), Ok(1), "{one}");
        }
        assert_eq!(select(&["health", "log"]), Ok(2));
        let unknown = select(&["health", "logs"]).unwrap_err();
        assert!(unknown.starts_with("no key contains \"logs\""), "{unknown}");
    }

    #[test]
    fn lines_are_not_longer_than_a_terminal() {
        let keys = vec![
            example("wait_seconds", Some("2")),
            example("other_seconds", None),
        ];
        let all = Selection {
            texts: Vec::new(),
            json: false,
        };
        let text = all.list("key", keys, key).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "wait_seconds  a number (seconds), default 2. A reload applies it."
        );
        assert_eq!(
            lines[3],
            "other_seconds  a number (seconds). A change needs a new process."
        );
        assert_eq!(lines.len(), 6);
        for line in &lines[1..3] {
            assert!(
                line.starts_with("    word") && line.len() <= WIDTH,
                "{line:?}"
            );
        }
    }
}
