//! The output of `keys`.

use anyhow::ensure;

use crate::config::keys::{Key, is_below};

/// Lines are wrapped at this many characters.
const WIDTH: usize = 100;

/// Describes the keys that contain one of these texts, or that one names; without texts all keys.
///
/// # Errors
///
/// One of the texts is in no key.
pub(super) fn text(mut keys: Vec<Key>, texts: &[String], json: bool) -> anyhow::Result<String> {
    let is_meant = |key: &str, text: &String| key.contains(text) || is_below(key, text);
    for text in texts {
        let is_known = keys.iter().any(|key| is_meant(&key.key, text));
        ensure!(
            is_known,
            "no key contains {text:?}; without TEXT, all keys are printed"
        );
    }
    keys.retain(|key| texts.is_empty() || texts.iter().any(|text| is_meant(&key.key, text)));
    if json {
        return Ok(serde_json::to_string_pretty(&keys)?);
    }
    let keys: Vec<_> = keys.iter().map(paragraphs).collect();
    Ok(keys.join("\n"))
}

/// What a key allows, and below it its meaning.
fn paragraphs(key: &Key) -> String {
    let optional = |word, text: &Option<String>, end| {
        let text = text.as_ref().map(|text| format!("{word}{text}{end}"));
        text.unwrap_or_default()
    };
    let (unit, default) = (
        optional(" (", &key.unit, ")"),
        optional(", default ", &key.default, ""),
    );
    let change = if key.reload {
        "A reload applies it."
    } else {
        "A change needs a new process."
    };
    let allowed = format!("{}{unit}{default}. {change}", key.allowed);
    wrapped(format!("{} ", key.key), &allowed) + "\n" + &wrapped("   ".to_owned(), &key.meaning)
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
    use super::*;

    fn key(name: &str, default: Option<&str>) -> Key {
        Key {
            key: name.to_owned(),
            meaning: "word ".repeat(30),
            unit: Some("seconds".to_owned()),
            allowed: "a number".to_owned(),
            default: default.map(str::to_owned),
            reload: default.is_some(),
        }
    }

    #[test]
    fn keys_are_selected_by_text_or_by_name() {
        let select = |texts: &[&str]| {
            let keys = vec![
                key("versions.NAME.health.path", None),
                key("log.path", None),
            ];
            let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
            let text = text(keys, &texts, true).map_err(|error| error.to_string())?;
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
        let keys = vec![key("wait_seconds", Some("2")), key("other_seconds", None)];
        let text = text(keys, &[], false).unwrap();
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
