//! The configuration engine: one TOML file, read key by key, so that every problem is reported and not only the first.
//!
//! [`load`] reads a file, and calls the program's own function with its root [`Section`]. Each key is read once, with its
//! default and its range. Keys that nothing reads are unknown. What was read is listed in [`Settings`], so that two
//! configurations can be compared without knowing what the keys mean.
//!
//! | module | subject |
//! | --- | --- |
//! | `document` | a file: its lines, its problems, its settings |
//! | `section` | a table, and how its keys are read |
//! | `value` | one value, as written |
//! | `settings` | what a file sets, and what changes from one file to the next |
//! | `error` | what is wrong with a file |
//! | [`shared_keys`] | the keys that every program has |
//!
//! Values are shown as they are written, except those that may hold a secret. Nothing shows a secret.

mod document;
mod error;
mod section;
mod settings;
pub mod shared_keys;
mod value;

use std::path::Path;

use zeroize::Zeroizing;

use self::document::Document;
pub use self::{
    error::ConfigError,
    section::{ADDRESS, Invalid, Read, SECRET, Section},
    settings::{Change, ReadFile, Settings},
    value::Value,
};

/// A configuration, and the list of what it sets.
#[derive(Debug)]
pub struct Loaded<T> {
    /// What the file means.
    pub config: T,
    /// What it sets, key by key.
    pub settings: Settings,
}

/// Reads the file at `path`. `read` reads the keys of the program; `watch` is read here, for every program.
///
/// # Errors
///
/// The file cannot be read, is not TOML, or has unknown keys or invalid values: all of them.
pub fn load<T>(
    path: &Path,
    read: impl FnOnce(&mut Section<'_>) -> Read<T>,
) -> Result<Loaded<T>, ConfigError> {
    // It may hold secrets.
    let text = std::fs::read_to_string(path).map(Zeroizing::new);
    let text = text.map_err(|cause| ConfigError::Unreadable {
        path: path.to_owned(),
        cause,
    })?;
    parse(path, &text, read)
}

/// Reads a configuration from its text; `path` is for messages only.
///
/// # Errors
///
/// As [`load`].
pub fn parse<T>(
    path: &Path,
    text: &str,
    read: impl FnOnce(&mut Section<'_>) -> Read<T>,
) -> Result<Loaded<T>, ConfigError> {
    let invalid = |problems, files| ConfigError::Invalid {
        path: path.to_owned(),
        problems,
        files,
    };
    let file = ReadFile::new(path, Some(text.as_bytes()));
    let (table, problems) = document::parse(text);
    if !problems.is_empty() {
        return Err(invalid(problems, vec![file]));
    }
    let document = Document::new(text);
    document.depends_on(file);
    let config = {
        let mut root = Section::root(&document, table.get_ref());
        // Whether it is watched is the reload's business; here the key is known, and listed.
        let watch = root.flag("watch", false);
        let config = read(&mut root);
        root.close();
        watch.and(config)
    };
    match (config, document.finish()) {
        (Ok(config), Ok(settings)) => Ok(Loaded { config, settings }),
        (_, Err((problems, files))) => Err(invalid(problems, files)),
        (Err(Invalid), Ok(settings)) => {
            let problem = error::Problem::unexplained();
            Err(invalid(vec![problem], settings.files))
        }
    }
}

/// The line of an example without its `# `, if a key or a table stands behind that: what an operator would put in.
#[cfg(feature = "testing")]
#[must_use]
pub fn uncommented(line: &str) -> Option<&str> {
    let line = line.strip_prefix("# ")?;
    let (key, _) = line.split_once(" = ").unwrap_or(("", ""));
    let is_of_key = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let is_key = !key.is_empty() && key.bytes().all(is_of_key);
    (is_key || line.starts_with('[')).then_some(line)
}

#[cfg(test)]
mod tests;
