//! Escapes stored text before a person sees it.

use signpost_protocol::app::is_invisible;

/// The text with its control and format characters escaped: a terminal would interpret them, or show other text around
/// them.
pub fn printable(text: &str) -> String {
    escaped(text, |character, out| {
        out.extend(character.escape_unicode());
    })
}

/// The same of a text of several lines, which keeps its line feeds.
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// JSON with the same characters escaped in its way. They are only inside of strings.
pub fn printable_json(json: &str) -> String {
    escaped(json, |character, out| {
        let mut units = [0; 2];
        let units = character.encode_utf16(&mut units).iter();
        out.extend(units.map(|unit| format!("\\u{unit:04x}")));
    })
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_invisible(character) {
            escape(character, &mut shown);
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_the_vectors_replace_is_escaped() {
        let vectors = include_str!("../../../../tests/vectors/text-vectors.json");
        let vectors: Value = serde_json::from_str(vectors).unwrap();
        for case in vectors["cases"].as_array().unwrap() {
            let of = |name: &str| case[name].as_str().unwrap();
            let characters = of("text").chars().zip(of("shown").chars());
            let expected: String = characters
                .map(|(one, shown)| match one == shown {
                    true => one.to_string(),
                    false => one.escape_unicode().to_string(),
                })
                .collect();
            assert_eq!(printable(of("text")), expected, "{}", case["name"]);
        }
    }

    #[test]
    fn a_text_of_lines_keeps_them() {
        assert_eq!(printable_lines("a\u{1b}\nb\n"), "a\\u{1b}\nb\n");
    }

    #[test]
    fn characters_that_change_the_text_around_them_are_escaped_in_json() {
        let shown = printable_json(&json!({ "a": "x\u{202e}y\u{e0041}\u{1b}é" }).to_string());
        assert_eq!(shown, r#"{"a":"x\u202ey\udb40\udc41\u001bé"}"#);
        let read: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(read["a"], "x\u{202e}y\u{e0041}\u{1b}é");
    }
}
