//! What is shown and stored of a document: paths and shapes, no values.

use crate::raw::{self, JsonType};

/// Stands for a member's name that looks like data.
pub(crate) const HIDDEN: &str = "*";

/// Ends a path that is too long.
const CUT: &str = "…";

/// Largest length of a path in bytes, without [`CUT`].
const MAX_PATH: usize = 256;

/// Largest number of characters of a name that is shown.
const MAX_NAME: usize = 64;

/// Largest number of digits in a name that is shown.
const MAX_DIGITS: usize = 3;

/// The name as it is shown: [`HIDDEN`] if it looks like data, such as a number, an address or a text.
pub(crate) fn name(name: &str) -> &str {
    let is_sign = |letter: char| matches!(letter, '_' | '$' | '@');
    let may_begin = |letter: char| letter.is_alphabetic() || is_sign(letter);
    let may_follow = |letter: char| letter.is_alphanumeric() || is_sign(letter) || letter == '-';
    let is_identifier = name.starts_with(may_begin)
        && name.chars().all(may_follow)
        && name.chars().count() <= MAX_NAME
        && name.chars().filter(|letter| letter.is_numeric()).count() <= MAX_DIGITS;
    if is_identifier { name } else { HIDDEN }
}

/// What a value is, without the value.
pub(crate) fn shape(value: &str) -> String {
    match JsonType::of(value) {
        JsonType::Object => format!("object({})", raw::members(value).map_or(0, |all| all.len())),
        JsonType::Array => format!("array({})", raw::items(value).map_or(0, |all| all.len())),
        JsonType::String => format!("string({})", length(value)),
        JsonType::Number => "number".to_owned(),
        JsonType::Boolean => "boolean".to_owned(),
        JsonType::Null => "null".to_owned(),
    }
}

/// The characters of a string. If it is no Unicode text, the characters of its escaped form.
fn length(string: &str) -> usize {
    match raw::decoded(string) {
        Some(text) => text.chars().count(),
        None => string.chars().count() - 2,
    }
}

/// The text of the path to the value that is being compared.
#[derive(Debug)]
pub(crate) struct PathText {
    text: String,
    is_cut: bool,
}

/// A path before a step was added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    length: usize,
    is_cut: bool,
}

impl PathText {
    pub(crate) fn root() -> Self {
        let text = "$".to_owned();
        Self {
            text,
            is_cut: false,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the path is too long to be shown.
    pub(crate) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Adds a step to the member with this name, which [`name`] returned.
    pub(crate) fn push_member(&mut self, name: &str) -> Mark {
        self.push(&[".", name])
    }

    /// Adds a step to an array's items.
    pub(crate) fn push_items(&mut self) -> Mark {
        self.push(&["[]"])
    }

    fn push(&mut self, step: &[&str]) -> Mark {
        let (length, is_cut) = (self.text.len(), self.is_cut);
        let added: usize = step.iter().map(|part| part.len()).sum();
        if !is_cut && length + added > MAX_PATH {
            self.is_cut = true;
            self.text.push_str(CUT);
        } else if !is_cut {
            self.text.extend(step.iter().copied());
        }
        Mark { length, is_cut }
    }

    /// Removes the step that was added after `mark`.
    pub(crate) fn reset(&mut self, mark: Mark) {
        self.text.truncate(mark.length);
        self.is_cut = mark.is_cut;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_data_are_hidden() {
        let longest = "a".repeat(MAX_NAME);
        for shown in [
            "a",
            "_id",
            "$ref",
            "@type",
            "created-at",
            "张",
            "é1",
            "sha256",
            &longest,
        ] {
            assert_eq!(name(shown), shown);
        }
        let too_long = "a".repeat(MAX_NAME + 1);
        for hidden in [
            "",
            "1",
            "-a",
            "a b",
            "a.b",
            "a@b.example",
            "a[]",
            "user1234",
            "a1b2c3d4",
            "a\u{7}",
            "+1",
            "😀",
            "a１２３４",
            &too_long,
        ] {
            assert_eq!(name(hidden), HIDDEN, "{hidden}");
        }
    }

    #[test]
    fn a_shape_has_no_value() {
        for (value, expected) in [
            ("{ }", "object(0)"),
            (r#"{"a":1,"b":{"c":2}}"#, "object(2)"),
            ("[[],[1,2]]", "array(2)"),
            (r#""\u00e9a😀""#, "string(3)"),
            (r#""\ud800""#, "string(6)"),
            ("\"\"", "string(0)"),
            ("-1.5", "number"),
            ("true", "boolean"),
            ("null", "null"),
        ] {
            assert_eq!(shape(value), expected);
        }
    }

    #[test]
    fn a_long_path_is_cut() {
        let mut path = PathText::root();
        let name = "é".repeat(63);
        let first = path.push_member(&name);
        path.push_member(&name);
        let expected = format!("$.{name}.{name}");
        assert_eq!((path.as_str(), path.is_cut()), (expected.as_str(), false));
        let cut = path.push_items();
        let expected = format!("{expected}{CUT}");
        assert_eq!((path.as_str(), path.is_cut()), (expected.as_str(), true));
        let further = path.push_items();
        assert_eq!(path.as_str(), expected);
        path.reset(further);
        assert_eq!((path.as_str(), path.is_cut()), (expected.as_str(), true));
        path.reset(cut);
        assert!(!path.is_cut());
        path.reset(first);
        assert_eq!(path.as_str(), "$");
    }
}
