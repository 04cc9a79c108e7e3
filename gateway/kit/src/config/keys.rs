//! All keys of a program's file, for its command `keys`.
//!
//! Allowed values and defaults come from the readers, which read no file for this. Meanings are the comments of the
//! example files. A test of each program checks that readers and examples have the same keys and defaults.

pub mod schema;
#[doc(hidden)]
pub mod testing;

use std::{mem::take, path::Path};

use serde::Serialize;

use super::{
    document::{Document, dotted},
    error::Read,
    read_root,
    section::{NAME, Section, TABLE},
    uncommented,
};

/// Units of numbers, as names of keys end.
const UNITS: [&str; 7] = [
    "bytes_per_second",
    "per_second",
    "seconds",
    "days",
    "bytes",
    "percent",
    "per_million",
];

/// A key, or a table that an example explains.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    /// Its dotted name. `NAME` stands for a name that the file's author chooses, `[]` for one table of a list.
    pub key: String,
    /// Its comment in the example; empty if there is none.
    pub meaning: String,
    /// The unit of its number.
    pub unit: Option<String>,
    /// Its type, range or values.
    pub allowed: String,
    /// Its default as TOML, or in words if it depends on other keys.
    pub default: Option<String>,
    /// Whether a reload applies it; otherwise a new process is needed.
    pub reload: bool,
    /// What its reader allows, as JSON Schema.
    #[serde(skip)]
    pub schema: serde_json::Value,
}

/// A key or a table of an example.
#[derive(Debug)]
struct Explained<'e> {
    /// Dotted name, for example `log.filter`.
    key: String,
    /// Its value as written, whether it is commented out or not; empty for a table.
    value: &'e str,
    /// The comment above it in the example.
    meaning: String,
}

/// Describes the keys that `read` reads, in its order. If several examples have a key, the first one explains it.
pub fn keys<T>(
    read: impl FnOnce(&mut Section<'_>) -> Read<T>,
    examples: &[&str],
    needs_restart: impl Fn(&str) -> bool,
) -> Vec<Key> {
    let mut document = Document::new(Path::new(""), "");
    document.is_described = true;
    let mut root = Section::new(&document, String::new(), None, None);
    // Required keys are missing: there is no file.
    let _ = read_root(&mut root, read);
    let (described, defaults) = document.into_described();
    let explained: Vec<_> = examples.iter().flat_map(|text| explained(text)).collect();
    let describe = |(key, allowed, schema): (String, String, _)| Key {
        meaning: meaning(&key, &explained).unwrap_or_default(),
        unit: (UNITS.iter().find(|unit| key.ends_with(*unit))).map(|unit| unit.replace('_', " ")),
        allowed,
        default: (defaults.iter())
            .find_map(|setting| (setting.key == key).then(|| setting.shown.clone())),
        // The second is for a table whose keys all need a new process.
        reload: !needs_restart(&key) && !needs_restart(&format!("{key}.")),
        schema,
        key,
    };
    let keys = described.into_iter().map(describe);
    // A table that no example explains is only the name of its keys.
    keys.filter(|key| key.allowed != TABLE || !key.meaning.is_empty())
        .collect()
}

/// The keys and tables of an example, commented out or not. A key's meaning is the comment above it, from the last line
/// without text, and the one behind its value. Without both, it is the last comment above a key of the table, or above
/// the table. Indented comments, which show commands, do not count.
fn explained(text: &str) -> Vec<Explained<'_>> {
    let (mut all, mut table) = (Vec::new(), String::new());
    let (mut above, mut last) = (String::new(), String::new());
    for line in text.lines() {
        let code = uncommented(line).unwrap_or(line);
        let words = code.strip_prefix("# ");
        let (name, value) = match code.split_once(" = ") {
            _ if code.starts_with('[') => (code, ""),
            Some(setting) if !code.starts_with('#') => setting,
            _ => {
                let words = words.filter(|words| !words.starts_with(' '));
                above = words.map_or_else(String::new, |words| format!("{above}{words} "));
                continue;
            }
        };
        let (value, behind) = value.split_once(" # ").unwrap_or((value, ""));
        let own = format!("{above}{behind}");
        let is_table = value.is_empty();
        if is_table || !above.is_empty() {
            last = take(&mut above);
        }
        let meaning = if own.is_empty() { &last } else { &own };
        let key = match name.trim_matches(['[', ']']) {
            header if is_table => header.to_owned(),
            key => dotted(&table, key),
        };
        all.push(Explained {
            key: key.clone(),
            value: value.trim_end(),
            meaning: meaning.trim_end().to_owned(),
        });
        if is_table {
            let item = if name.starts_with("[[") { "[]" } else { "" };
            table = key + item;
        }
    }
    all
}

/// What the examples say of a key; `None` if they do not have it.
fn meaning(key: &str, explained: &[Explained<'_>]) -> Option<String> {
    let explanation = |key: &str| explained.iter().find(|named| is_named(key, &named.key));
    if let Some(own) = explanation(key) {
        return Some(own.meaning.clone());
    }
    // A table in a list of tables can have keys of the table around the list.
    let (list, name) = key.split_once("[].")?;
    let around = dotted(list.rsplit_once('.').map_or("", |(around, _)| around), name);
    if meaning(&around, explained).is_some() {
        return Some(format!("As {around}."));
    }
    // An explained list of the same name in another table has the same keys.
    let nested = format!(".{list}");
    let mut lists = explained.iter().map(|named| &*named.key);
    if explanation(list).is_some()
        && let Some(elsewhere) = lists.find(|key| key.ends_with(&nested))
        && let Some(meaning) = meaning(&format!("{elsewhere}[].{name}"), explained)
    {
        return Some(meaning);
    }
    // A list of tables in one line explains their keys.
    let (list, name) = key.rsplit_once("[].")?;
    let list = explanation(list).filter(|list| list.value.contains(&format!("{name} = ")));
    list.map(|list| list.meaning.clone())
}

/// Whether a dotted name is this key of [`Key::key`], with any name for `NAME` and any index.
fn is_named(key: &str, name: &str) -> bool {
    key.split('.').count() == name.split('.').count() && is_below(key, name)
}

/// Whether a dotted name is this key, or a table that it is in.
#[must_use]
pub fn is_below(key: &str, name: &str) -> bool {
    let mut parts = key.split('.');
    let is_part = |part: &str, name: &str| {
        let item = part.strip_suffix(']');
        let is_item = |list: &str| name.starts_with(list) || list.strip_suffix('[') == Some(name);
        part == NAME || part == name || item.is_some_and(is_item)
    };
    name.split('.')
        .all(|name| parts.next().is_some_and(|part| is_part(part, name)))
}

#[cfg(test)]
mod tests;
