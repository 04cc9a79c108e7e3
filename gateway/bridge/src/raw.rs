//! The text of JSON values, read one level at a time.
//!
//! Nothing here recurses: `serde_json` checks the syntax of what it skips in a loop.

use std::{borrow::Cow, fmt};

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What a value is, according to its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonType {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

impl JsonType {
    /// The type of the value that has this text, without white space around it.
    pub(crate) fn of(text: &str) -> Self {
        match text.as_bytes().first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'n') => Self::Null,
            _ => Self::Number,
        }
    }
}

/// The text of the one JSON value in `bytes`, without the white space around it. `None` if they are anything else.
pub(crate) fn value(bytes: &[u8]) -> Option<&str> {
    let value: Option<&RawValue> = serde_json::from_slice(bytes).ok();
    value.map(RawValue::get)
}

/// Whether a text is a JSON number and nothing else.
pub(crate) fn is_number(text: &str) -> bool {
    let number = value(text.as_bytes()).filter(|value| JsonType::of(value) == JsonType::Number);
    // `value` passes over white space, which is no part of a number.
    number.is_some_and(|number| number.len() == text.len())
}

/// The members of an object, each as the texts of its key and its value. `None` if the text is no object.
pub(crate) fn members(text: &str) -> Option<Vec<(&str, &str)>> {
    serde_json::Deserializer::from_str(text)
        .deserialize_map(Members)
        .ok()
}

/// The texts of an array's items. `None` if the text is no array.
pub(crate) fn items(text: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// What the text of a JSON string stands for. `None` if that is no Unicode text: an escape may be half of a surrogate
/// pair.
pub(crate) fn decoded(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(text).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// The text of a JSON string that stands for `decoded`.
pub(crate) fn string(decoded: &str) -> String {
    serde_json::Value::from(decoded).to_string()
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(&'de str, &'de str)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            members.push((key.get(), value.get()));
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_bytes() {
        let text = r#"{"a" : 1.50e+3 , "a\u0062":{ "x": [] },"a":"\ud800","\udc00":null}"#;
        let expected = vec![
            (r#""a""#, "1.50e+3"),
            (r#""a\u0062""#, r#"{ "x": [] }"#),
            (r#""a""#, r#""\ud800""#),
            (r#""\udc00""#, "null"),
        ];
        assert_eq!(members(text), Some(expected));
        assert_eq!(members("{}"), Some(vec![]));
        assert_eq!(items("[ 1, [2] ,{}]"), Some(vec!["1", "[2]", "{}"]));
        for other in ["[]", "1", "\"\"", "null", "{1:2}", "{"] {
            assert_eq!(members(other), None, "{other}");
        }
        assert_eq!(items("{}"), None);
    }

    #[test]
    fn only_one_value_is_json() {
        assert_eq!(value(b" \n[ 1 ]\t"), Some("[ 1 ]"));
        for bad in [
            &b""[..],
            b" ",
            b"1 2",
            b"{",
            b"01",
            b"\"\xff\"",
            b"nul",
            b"[1,]",
        ] {
            assert_eq!(value(bad), None, "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn nesting_of_any_depth_is_read() {
        let deep = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
        let text = value(deep.as_bytes()).unwrap();
        assert_eq!(items(text).unwrap(), [&deep[1..deep.len() - 1]]);
    }

    #[test]
    fn strings_are_decoded() {
        assert_eq!(decoded(r#""a\u0062""#).unwrap(), "ab");
        assert_eq!(decoded(r#""\ud83d\ude00""#).unwrap(), "😀");
        assert_eq!(decoded(r#""\ud83d""#), None);
        assert_eq!(decoded("1"), None);
        assert_eq!(string("a\"\n张"), r#""a\"\n张""#);
    }

    #[test]
    fn numbers_have_nothing_around_them() {
        for number in ["0", "-0", "1e5", "12345678901234567890123.50", "-1E-9999"] {
            assert!(is_number(number), "{number}");
        }
        for other in [
            "", " 1", "1 ", "+1", "01", ".5", "1.", "0x1", "NaN", "true", "１",
        ] {
            assert!(!is_number(other), "{other}");
        }
    }
}
