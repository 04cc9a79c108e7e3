//! JSON objects whose members have unique names.
//!
//! A name that is there twice means one thing to one reader and another to the next: RFC 7515 section 4 and RFC 7519
//! section 4 let a reader reject it. Only the members that are asked for are decoded, so what others have (numbers that
//! fit no float, halves of surrogate pairs, deep nesting) is not read.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer as _,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of an object.
pub(crate) struct Object<'d>(BTreeMap<String, &'d RawValue>);

impl<'d> Object<'d> {
    /// Reads an object.
    ///
    /// # Errors
    ///
    /// `malformed`: the bytes are not UTF-8, not JSON, or JSON of another type. `ambiguous`: a name is there twice.
    pub(crate) fn read<F>(document: &'d [u8], malformed: F, ambiguous: F) -> Result<Self, F> {
        let parse = || {
            let text = std::str::from_utf8(document).ok()?;
            let mut json = serde_json::Deserializer::from_str(text);
            let members = json.deserialize_map(InOrder).ok()?;
            json.end().ok().map(|()| members)
        };
        let members = parse().ok_or(malformed)?;
        // A map alone would take the last of two members, where another reader takes the first.
        let number = members.len();
        let unique: BTreeMap<_, _> = members.into_iter().collect();
        match unique.len() == number {
            true => Ok(Self(unique)),
            false => Err(ambiguous),
        }
    }

    /// Whether there is such a member, be it `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A member's value. `null` counts as absent (OIDC Core section 5.1).
    ///
    /// # Errors
    ///
    /// `fault`: it has another type.
    pub(crate) fn get<T: Deserialize<'d>, F>(&self, name: &str, fault: F) -> Result<Option<T>, F> {
        match self.0.get(name) {
            Some(value) => serde_json::from_str(value.get()).map_err(|_| fault),
            None => Ok(None),
        }
    }
}

/// Reads the members in their order.
struct InOrder;

impl<'d> Visitor<'d> for InOrder {
    type Value = Vec<(String, &'d RawValue)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_OBJECT: &str = "not an object";
    const DUPLICATE: &str = "duplicate";

    fn read(document: &[u8]) -> Result<Object<'_>, &'static str> {
        Object::read(document, NOT_OBJECT, DUPLICATE)
    }

    #[test]
    fn an_object_has_unique_names() {
        let deep = [r#"{"a":"#, &"[".repeat(9_000), &"]".repeat(9_000), "}"].concat();
        for (document, fault) in [
            (r#"{"a":1}"#, None),
            (r#" { "a" : 1e400, "b": "\ud800" } "#, None),
            (&deep, None),
            (r#"{"a":{"b":1,"b":2}}"#, None),
            (r#"{"a":1,"a":1}"#, Some(DUPLICATE)),
            (r#"{"a":1,"\u0061":1}"#, Some(DUPLICATE)),
            (r#"{"a":1,"A":1}"#, None),
            ("", Some(NOT_OBJECT)),
            ("null", Some(NOT_OBJECT)),
            (r#"["a"]"#, Some(NOT_OBJECT)),
            (r#"{"a":1}{}"#, Some(NOT_OBJECT)),
            (r#"{"a":1,}"#, Some(NOT_OBJECT)),
            (r#"{"a":NaN}"#, Some(NOT_OBJECT)),
            (r#"{"\ud800":1}"#, Some(NOT_OBJECT)),
            ("{\"a\":1}\0", Some(NOT_OBJECT)),
            ("\u{feff}{}", Some(NOT_OBJECT)),
        ] {
            assert_eq!(read(document.as_bytes()).err(), fault, "{document}");
        }
        assert!(read(b"{\"a\":\"\xff\"}").is_err());
    }

    #[test]
    fn a_member_has_the_type_that_is_asked_for() {
        let object = read(br#"{"text":"\u0061","none":null,"number":1.5}"#).unwrap();
        assert_eq!(object.get("text", ()), Ok(Some("a".to_owned())));
        assert_eq!(object.get::<String, _>("none", ()), Ok(None));
        assert_eq!(object.get::<String, _>("other", ()), Ok(None));
        assert!(object.get::<String, _>("number", ()).is_err());
        assert!(object.get::<f64, _>("text", ()).is_err());
        assert!(object.has("none") && !object.has("other"));
    }
}
