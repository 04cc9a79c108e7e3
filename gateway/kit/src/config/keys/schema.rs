//! A program's file as JSON Schema, draft 2020-12, for editors. It knows the keys and each key's type, range and words, but
//! no relation between keys, and no text that a reader parses.

use serde_json::{Value, json};

use super::Key;
use crate::config::section::NAME;

/// The schema of a file with these keys.
#[must_use]
pub fn file_schema(keys: &[Key]) -> Value {
    let mut root = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema" });
    for key in keys {
        let schema = place(&mut root, &key.key);
        for (name, value) in key.schema.as_object().into_iter().flatten() {
            schema[name] = value.clone();
        }
        schema["description"] = key.meaning.as_str().into();
        if let Some(default) = key.default.as_deref().and_then(as_json) {
            schema["default"] = default;
        }
    }
    root
}

/// The place of a key in the schema. Each table on the way refuses keys that are not described.
fn place<'s>(root: &'s mut Value, key: &str) -> &'s mut Value {
    key.split('.').fold(root, |table, part| {
        if table["type"] == "string" {
            table["type"] = json!(["string", "object"]);
        } else if !table["type"].is_array() {
            table["type"] = "object".into();
        }
        let name = part.trim_end_matches("[]");
        let is_map = name == NAME;
        if !is_map && table["additionalProperties"].is_null() {
            table["additionalProperties"] = false.into();
        }
        let value = match is_map {
            true => &mut table["additionalProperties"],
            false => &mut table["properties"][name],
        };
        match name == part {
            true => value,
            false => &mut value["items"],
        }
    })
}

/// A value of TOML as JSON; `None` for words.
fn as_json(toml: &str) -> Option<Value> {
    let table: toml::Table = toml::from_str(&format!("key = {toml}")).ok()?;
    serde_json::to_value(&table["key"]).ok()
}
