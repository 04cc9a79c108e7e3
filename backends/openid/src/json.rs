//! JSON objects whose members have unique names.
//!
//! A name that is there twice means one thing to one reader and another to the next: RFC 7515 section 4 and RFC 7519
//! section 4 let a reader reject it. Only the members that are asked for are decoded, so what others have (numbers that
//! fit no float, halves of surrogate pairs, deep nesting) is not read.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of an object.
pub(crate) struct Object<'d>(BTreeMap<String, &'d RawValue>);

/// Why there are no members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectFault {
    /// The bytes are not UTF-8, not JSON, or JSON of another type.
    NotObject,
    /// A name is there twice.
    Duplicate,
}

/// A member has another type.
#[derive(Debug)]
pub(crate) struct WrongType;

impl<'d> Object<'d> {
    pub(crate) fn read(document: &'d [u8]) -> Result<Self, ObjectFault> {
        let text = std::str::from_utf8(document).map_err(|_| ObjectFault::NotObject)?;
        let Members(members) = serde_json::from_str(text).map_err(|_| ObjectFault::NotObject)?;
        let mut unique = BTreeMap::new();
        for (name, value) in members {
            if unique.insert(name, value).is_some() {
                return Err(ObjectFault::Duplicate);
            }
        }
        Ok(Self(unique))
    }

    /// Whether there is such a member, be it `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A member's value. `null` counts as absent (OIDC Core section 5.1).
    pub(crate) fn get<T: Deserialize<'d>>(&self, name: &str) -> Result<Option<T>, WrongType> {
        match self.0.get(name) {
            Some(value) => serde_json::from_str(value.get()).map_err(|_| WrongType),
            None => Ok(None),
        }
    }
}

/// The members in their order.
struct Members<'d>(Vec<(String, &'d RawValue)>);

impl<'d> Deserialize<'d> for Members<'d> {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'d> Visitor<'d> for InOrder {
    type Value = Members<'d>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_unique_names() {
        let deep = [r#"{"a":"#, &"[".repeat(9_000), &"]".repeat(9_000), "}"].concat();
        for (document, fault) in [
            (r#"{"a":1}"#, None),
            (r#" { "a" : 1e400, "b": "\ud800" } "#, None),
            (&deep, None),
            (r#"{"a":{"b":1,"b":2}}"#, None),
            (r#"{"a":1,"a":1}"#, Some(ObjectFault::Duplicate)),
            (r#"{"a":1,"\u0061":1}"#, Some(ObjectFault::Duplicate)),
            (r#"{"a":1,"A":1}"#, None),
            ("", Some(ObjectFault::NotObject)),
            ("null", Some(ObjectFault::NotObject)),
            (r#"["a"]"#, Some(ObjectFault::NotObject)),
            (r#"{"a":1}{}"#, Some(ObjectFault::NotObject)),
            (r#"{"a":1,}"#, Some(ObjectFault::NotObject)),
            (r#"{"a":NaN}"#, Some(ObjectFault::NotObject)),
            (r#"{"\ud800":1}"#, Some(ObjectFault::NotObject)),
            ("{\"a\":1}\0", Some(ObjectFault::NotObject)),
            ("\u{feff}{}", Some(ObjectFault::NotObject)),
        ] {
            assert_eq!(Object::read(document.as_bytes()).err(), fault, "{document}");
        }
        assert!(Object::read(b"{\"a\":\"\xff\"}").is_err());
    }

    #[test]
    fn a_member_has_the_type_that_is_asked_for() {
        let object = Object::read(br#"{"text":"\u0061","none":null,"number":1.5}"#).unwrap();
        assert_eq!(object.get("text").unwrap(), Some("a".to_owned()));
        assert_eq!(object.get::<String>("none").unwrap(), None);
        assert_eq!(object.get::<String>("other").unwrap(), None);
        assert!(object.get::<String>("number").is_err());
        assert!(object.get::<f64>("text").is_err());
        assert!(object.has("none") && !object.has("other"));
    }
}
