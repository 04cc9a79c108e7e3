//! The example configurations in `conf/`, key by key.

use std::{collections::BTreeMap, fs, path::Path};

/// The text of an example.
///
/// # Panics
///
/// When it does not exist.
#[must_use]
pub fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conf");
    fs::read_to_string(folder.join(name)).expect("the example is in conf")
}

/// Each key of an example, dotted, with its value. Keys that are commented out count. A list of tables, `[[name]]`, is one
/// key with an empty list.
#[must_use]
pub fn keys(text: &str) -> BTreeMap<String, String> {
    let mut table = String::new();
    let mut keys: BTreeMap<String, String> = BTreeMap::new();
    let mut in_list = false;
    for line in text.lines() {
        let line = uncommented(line).unwrap_or(line);
        if let Some(name) = line.strip_prefix("[[") {
            let name = name.split(']').next().unwrap_or_default();
            // A list in the tables of another list is a part of that one.
            let is_below = |list: &str| {
                name.strip_prefix(list)
                    .is_some_and(|rest| rest.starts_with('.'))
            };
            if !keys
                .iter()
                .any(|(list, value)| value == "[]" && is_below(list))
            {
                keys.insert(name.to_owned(), "[]".to_owned());
            }
            in_list = true;
        } else if let Some(name) = line.strip_prefix('[') {
            in_list = false;
            table = format!("{}.", name.split(']').next().unwrap_or_default());
        } else if let Some((key, value)) = line
            .split_once(" = ")
            .filter(|_| !line.starts_with('#') && !in_list)
        {
            keys.insert(format!("{table}{key}"), value.to_owned());
        }
    }
    keys
}

/// The line without its `# `, if the rest is a key or a table.
#[must_use]
pub fn uncommented(line: &str) -> Option<&str> {
    let line = line.strip_prefix("# ")?;
    let (key, _) = line.split_once(" = ").unwrap_or(("", ""));
    let is_key = !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    (is_key || line.starts_with('[')).then_some(line)
}
