//! JSON of providers. Only the requested members are decoded: numbers keep their digits, and an invalid other member
//! does no harm.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde_json::value::RawValue;
use signpost_kit::config::Invalid;

/// Limit of the levels of a [`FieldPath`].
const MAX_LEVELS: usize = 8;

/// A member of an object: the last of this name. `None` if there is none, or `json` is no object.
pub(crate) fn member<'j>(json: &'j RawValue, name: &str) -> Option<&'j RawValue> {
    let members: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(json.get()).ok();
    members?.remove(name)
}

/// The text of a JSON string; `None` for any other value.
pub(crate) fn text(json: &RawValue) -> Option<String> {
    serde_json::from_str(json.get()).ok()
}

/// The place of a field in a provider's record of a user: the names of nested objects' fields, separated by dots, for
/// example `data.open_id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(String);

impl FieldPath {
    /// Returns the value at this place of a record.
    pub(crate) fn find<'v>(&self, record: &'v RawValue) -> Option<&'v RawValue> {
        self.0.split('.').try_fold(record, member)
    }
}

impl FromStr for FieldPath {
    type Err = Invalid;

    fn from_str(path: &str) -> Result<Self, Invalid> {
        let names = path.split('.');
        let is_valid = path.split('.').all(|name| !name.is_empty()) && names.count() <= MAX_LEVELS;
        is_valid.then(|| Self(path.to_owned())).ok_or(Invalid)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_through_nested_objects() {
        let record =
            r#"{ "id": 1, "data": { "open_id": "x", "list": [1] }, "unread": ["\ud800", 1e999] }"#;
        let record: &RawValue = serde_json::from_str(record).unwrap();
        let find = |path: &str| {
            let path = path.parse::<FieldPath>().unwrap();
            path.find(record).map(RawValue::get)
        };
        assert_eq!(find("id"), Some("1"));
        assert_eq!(find("data.open_id"), Some("\"x\""));
        for absent in [
            "data.id",
            "id.x",
            "data.list.0",
            "open_id",
            "data.open_id.x",
        ] {
            assert_eq!(find(absent), None, "{absent}");
        }
        for invalid in ["", ".", "a.", ".a", "a..b", "a.b.c.d.e.f.g.h.i"] {
            assert!(invalid.parse::<FieldPath>().is_err(), "{invalid}");
        }
    }
}
