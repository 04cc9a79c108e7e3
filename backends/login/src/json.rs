//! JSON of providers, of which only what is asked for is decoded: numbers keep their digits, and what is wrong with another
//! member does not matter.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// A member of an object: the last of this name. `None` if there is none, or `json` is no object.
pub(crate) fn member<'j>(json: &'j RawValue, name: &str) -> Option<&'j RawValue> {
    let members: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(json.get()).ok();
    members?.remove(name)
}

/// A string.
pub(crate) fn text(json: &RawValue) -> Option<String> {
    serde_json::from_str(json.get()).ok()
}
