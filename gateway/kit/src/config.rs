//! The configuration engine: reads one TOML file key by key and reports all its problems, not only the first.
//!
//! [`load`] reads a file and calls the program's own function with the root [`Section`]. That function reads each
//! key once, with its default and range. Keys that it does not read are unknown. [`Settings`] lists all values that
//! were read, so that two configurations can be compared without knowing what the keys mean.
//!
//! | module | subject |
//! | --- | --- |
//! | `document` | a file: its lines, its problems, its settings |
//! | `section` | a table, and the readers of its keys |
//! | `value` | one value, as written |
//! | `settings` | the values of a file, and the changes from one file to the next |
//! | [`keys`] | a description of all keys, for the command `keys` |
//! | `error` | the problems of a file |
//! | `secret_files` | warnings about files with secrets that other users may read |
//! | [`shared_keys`] | the keys that all programs share |
//! | [`origin`] | web origins, for example `https://example.com` |
//!
//! Messages show a value as it is written, unless it may hold a secret. Secrets are never shown.

mod document;
mod error;
pub mod keys;
pub mod origin;
mod secret_files;
mod section;
mod settings;
pub mod shared_keys;
mod value;

use std::path::Path;

use zeroize::Zeroizing;

use self::document::Document;
pub use self::{
    error::{ConfigError, Invalid, Problem, Read},
    section::{ADDRESS, NamedFile, SECRET, Section},
    settings::{Change, ReadFile, Setting, Settings, ValueSource, read_regular},
    value::Value,
};

/// A configuration and the list of its settings.
#[derive(Debug)]
pub struct Loaded<T> {
    /// The program's configuration.
    pub config: T,
    /// All settings, key by key.
    pub settings: Settings,
}

/// Reads the file at `path`. `read` reads the program's keys; `watch` is read here, for all programs.
///
/// # Errors
///
/// The file cannot be read, is not TOML, or has unknown keys or invalid values. The error lists all of them.
pub fn load<T>(
    path: &Path,
    read: impl FnOnce(&mut Section<'_>) -> Read<T>,
) -> Result<Loaded<T>, ConfigError> {
    // Zeroized when dropped: the file may hold secrets.
    let text = std::fs::read_to_string(path).map(Zeroizing::new);
    let text = text.map_err(|cause| {
        let unread = ReadFile::new(path, None);
        ConfigError::new(path, format!("cannot be read: {cause}"), vec![unread])
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
    let file = ReadFile::new(path, Some(text.as_bytes()));
    let (table, problems) = document::parse(text);
    if !problems.is_empty() {
        return Err(ConfigError {
            path: path.to_owned(),
            problems,
            files: vec![file],
        });
    }
    let document = Document::new(path, text);
    document.add_file(file);
    let config = {
        let mut root = Section::root(&document, table.get_ref());
        let (watch, config) = read_root(&mut root, read);
        document.settings.borrow_mut().is_watched = matches!(watch, Ok(true));
        root.close();
        watch.and(config)
    };
    let settings = document.finish()?;
    match config {
        Ok(config) => Ok(Loaded { config, settings }),
        // A bug. The program must not start with half a configuration.
        Err(Invalid) => {
            let text = "internal error: a value was rejected without a reason; please report it";
            Err(ConfigError::new(path, text.to_owned(), settings.files))
        }
    }
}

/// Reads `watch`, which all programs have, and the program's own keys.
fn read_root<'d, T>(
    root: &mut Section<'d>,
    read: impl FnOnce(&mut Section<'d>) -> Read<T>,
) -> (Read<bool>, Read<T>) {
    // Watching is up to `reload`; reading the key here makes it known and lists it.
    (root.flag("watch", false), read(root))
}

/// A commented-out key or table header of an example without its `# `; `None` for any other line.
#[must_use]
pub fn uncommented(line: &str) -> Option<&str> {
    let line = line.strip_prefix("# ")?;
    let (key, _) = line.split_once(" = ").unwrap_or(("", ""));
    let is_of_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let is_key = !key.is_empty() && key.bytes().all(is_of_key);
    (is_key || line.starts_with('[')).then_some(line)
}

/// Creates a struct from the results of reading its fields. All are read before the first [`Invalid`]
/// ends this, so that every problem is reported. A field without an expression is a result that was read before.
#[macro_export]
macro_rules! read_all {
    ($struct:ident { $($field:ident $(: $value:expr)?),* $(,)? }) => {{
        $($(let $field = $value;)?)*
        let all_read = move || Ok($struct { $($field: $field?),* });
        let result: $crate::config::Read<_> = all_read();
        result
    }};
}

#[cfg(test)]
mod tests;
