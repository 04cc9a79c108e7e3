//! The place of a field in a provider's record of a user.

use std::{fmt, str::FromStr};

use serde_json::{Map, Value};
use signpost_kit::config::Invalid;

/// Levels of a path.
const MAX_LEVELS: usize = 8;

/// The names of nested objects' fields, separated by dots, for example `data.open_id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(String);

impl FieldPath {
    /// Returns the value at this place of a record.
    #[must_use]
    pub fn find<'v>(&self, record: &'v Map<String, Value>) -> Option<&'v Value> {
        let mut names = self.0.split('.');
        let outermost = record.get(names.next()?)?;
        names.try_fold(outermost, |value, name| value.as_object()?.get(name))
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_through_nested_objects() {
        let record = json!({ "id": 1, "data": { "open_id": "x", "list": [1] } });
        let record = record.as_object().unwrap();
        let find = |path: &str| path.parse::<FieldPath>().unwrap().find(record).cloned();
        assert_eq!(find("id"), Some(json!(1)));
        assert_eq!(find("data.open_id"), Some(json!("x")));
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
