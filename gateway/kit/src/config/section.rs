//! A table of a file, and the readers of its keys.
//!
//! | module | subject |
//! | --- | --- |
//! | `texts` | strings, lists of them, and what they are parsed to |
//! | `files` | files and secrets that keys name |

mod files;
mod texts;

use std::{fmt::Display, ops::RangeInclusive, path::PathBuf, time::Duration};

use serde::Serialize;
use serde_json::{Value as Json, json};
use toml::de::DeTable;
use zeroize::Zeroizing;

use super::{
    document::{Document, dotted},
    error::{Invalid, Problem, Read},
    settings::{Setting, ValueSource},
    value::Value,
};
use crate::secret::Secret;

/// Allowed values of a secret, for messages.
pub const SECRET: &str = "\"env:NAME\", \"file:PATH\", or the secret itself";
/// Allowed values of an address, for messages.
pub const ADDRESS: &str = "an IP address and a port, for example \"127.0.0.1:7001\"";
/// Allowed value of the key of a table.
pub(super) const TABLE: &str = "a table";
/// Stands for the name of a table that the file's author chooses, while keys are described.
pub(super) const NAME: &str = "NAME";

/// A table of the file. Each reader takes one key; keys that are never read are unknown.
pub struct Section<'d> {
    document: &'d Document<'d>,
    path: String,
    /// The line on which the table begins; `None` for the root.
    line: Option<usize>,
    table: Option<&'d DeTable<'d>>,
}

/// A type of whole numbers.
pub trait Number: Copy + Display + PartialOrd + Serialize + TryFrom<i64> {}

impl<T: Copy + Display + PartialOrd + Serialize + TryFrom<i64>> Number for T {}

/// A file that a key names.
pub struct NamedFile {
    /// Path as the key gives it.
    pub path: PathBuf,
    /// Its content, up to 4 MiB. Zeroized when dropped.
    pub content: Zeroizing<Vec<u8>>,
}

impl<'d> Value<'d> {
    /// Reads the value as a table.
    ///
    /// # Errors
    ///
    /// The value is not a table, or `read` fails.
    pub fn section<T>(&self, read: impl FnOnce(&mut Section<'d>) -> Read<T>) -> Read<T> {
        let Some(table) = self.spanned.get_ref().as_table() else {
            // The value is not shown: in place of a table, it may be a secret.
            return Err(self.invalid_unshown(TABLE));
        };
        let mut section = Section::new(
            self.document,
            self.key.clone(),
            Some(self.line()),
            Some(table),
        );
        let outcome = read(&mut section);
        // Also after a failure: a misspelt key is often why a required one is missing.
        section.close();
        outcome
    }
}

/// A reader fails if its value is invalid, or missing though required. It has reported that then, and the caller reads on: every
/// problem of a file is shown at once.
#[expect(clippy::missing_errors_doc, reason = "above, for all readers")]
impl<'d> Section<'d> {
    pub(super) const fn root(document: &'d Document<'d>, table: &'d DeTable<'d>) -> Self {
        Self::new(document, String::new(), None, Some(table))
    }

    pub(super) const fn new(
        document: &'d Document<'d>,
        path: String,
        line: Option<usize>,
        table: Option<&'d DeTable<'d>>,
    ) -> Self {
        Self {
            document,
            path,
            line,
            table,
        }
    }

    /// Records every key that was not read as unknown.
    pub(super) fn close(self) {
        for (key, _) in self.table.into_iter().flatten() {
            let name = key.get_ref();
            if !self.document.is_known(&self.path, name) {
                let line = self.document.line(&key.span());
                self.document.note_unknown(&self.path, name, line);
            }
        }
    }

    /// Returns the value of a key, if the file has it. `allowed` is for the description of the key; unless
    /// [`Self::describe`] has said otherwise, it is a string.
    pub fn find(&mut self, key: &str, allowed: &str) -> Option<Value<'d>> {
        self.describe(key, allowed, text_schema(allowed));
        let spanned = self.table?.get(key)?;
        Some(Value {
            document: self.document,
            key: self.key(key),
            spanned,
        })
    }

    /// Describes a key that is to be read: its allowed values, in words and as JSON Schema. The first description counts.
    pub fn describe(&self, key: &str, allowed: &str, schema: Json) {
        self.document.note_known(&self.path, key, allowed, schema);
    }

    /// Where the table is in the file, for example `versions.v1`; empty for the root.
    #[must_use]
    pub fn table_path(&self) -> &str {
        &self.path
    }

    /// Whether the file has the key. While keys are described, it has every table, so each key counts as present.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        let is_present = self.table.is_some_and(|table| table.contains_key(key));
        is_present || self.document.is_described
    }

    fn empty(&self, path: String) -> Self {
        Section::new(self.document, path, None, None)
    }

    /// While keys are described, reads an empty table of the list of that name, so that its keys are described, too.
    pub fn describe_item<T>(&self, key: &str, read: impl FnOnce(&mut Section<'d>) -> Read<T>) {
        if self.document.is_described {
            // Without a file, required keys are missing.
            let _ = read(&mut self.empty(format!("{}[]", self.key(key))));
        }
    }

    /// Reads the table of that name. If the file has none, an empty one is read.
    pub fn section<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Section<'d>) -> Read<T>,
    ) -> Read<T> {
        match self.find_table(key) {
            Some(value) => value.section(read),
            None => read(&mut self.empty(self.key(key))),
        }
    }

    fn find_table(&mut self, key: &str) -> Option<Value<'d>> {
        self.describe(key, TABLE, json!({ "type": "object" }));
        self.find(key, TABLE)
    }

    /// Reads the table of that name, if the file has one.
    pub fn optional_section<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Section<'d>) -> Read<T>,
    ) -> Read<Option<T>> {
        if self.has(key) {
            return self.section(key, read).map(Some);
        }
        // Looked up nevertheless: only this makes the key known.
        Ok(self.find_table(key).and(None))
    }

    /// Reads each table in the table of that name, in the order of their names. An invalid one is `None`.
    pub fn sections<T>(
        &mut self,
        key: &str,
        mut read: impl FnMut(&str, &mut Section<'d>) -> Read<T>,
    ) -> Read<Vec<(String, Option<T>)>> {
        self.section(key, |outer| {
            let names = outer.table.into_iter().flat_map(|table| table.keys());
            let names = names.map(|name| name.get_ref().to_string());
            let any = outer.document.is_described.then(|| NAME.to_owned());
            let names: Vec<String> = names.chain(any).collect();
            Ok(names
                .into_iter()
                .map(|name| {
                    let section = outer.section(&name, |section| read(&name, section));
                    (name, section.ok())
                })
                .collect())
        })
    }

    /// Reads a list of tables, `[[…]]`, of at most `max`; none if the file has none. Returns each with its value, for
    /// problems between them.
    pub fn tables<T>(
        &mut self,
        key: &str,
        max: usize,
        read: impl FnMut(&mut Section<'d>) -> Read<T>,
    ) -> Read<Vec<(Value<'d>, T)>> {
        let mut read = read;
        let allowed = format!("at most {max} tables [[{}]]", self.key(key));
        self.describe(key, &allowed, json!({ "type": "array", "maxItems": max }));
        let Some(value) = self.find(key, &allowed) else {
            self.describe_item(key, read);
            self.set(key, "0 tables");
            return Ok(Vec::new());
        };
        let items = value.items();
        let items = items.ok_or_else(|| value.invalid_unshown(&allowed))?;
        if items.len() > max {
            return Err(value.problem(&format!("{} tables", items.len()), &allowed));
        }
        // All of them, before the first failure ends this: the problems of every table are reported.
        let all: Vec<_> = items.iter().map(|item| item.section(&mut read)).collect();
        self.set(key, format!("{} tables", all.len()));
        items
            .into_iter()
            .zip(all)
            .map(|(item, table)| Ok((item, table?)))
            .collect()
    }

    /// Reads `true` or `false`.
    pub fn flag(&mut self, key: &str, default: bool) -> Read<bool> {
        const ALLOWED: &str = "true or false";
        self.describe(key, ALLOWED, json!({ "type": "boolean" }));
        let flag = match self.find(key, ALLOWED) {
            None => default,
            Some(value) => value
                .as_bool()
                .ok_or_else(|| value.invalid_unshown(ALLOWED))?,
        };
        self.set(key, flag.to_string());
        Ok(flag)
    }

    /// Reads a whole number in an inclusive range.
    pub fn number<T: Number>(
        &mut self,
        key: &str,
        range: RangeInclusive<T>,
        default: T,
    ) -> Read<T> {
        let number = self.optional_number(key, &range)?;
        Ok(number.unwrap_or_else(|| {
            self.set(key, default.to_string());
            default
        }))
    }

    /// Reads a whole number in an inclusive range, if the file has the key.
    pub fn optional_number<T: Number>(
        &mut self,
        key: &str,
        range: &RangeInclusive<T>,
    ) -> Read<Option<T>> {
        let allowed = numbers(range);
        let (min, max) = (range.start(), range.end());
        let schema = json!({ "type": "integer", "minimum": min, "maximum": max });
        self.describe(key, &allowed, schema);
        let Some(value) = self.find(key, &allowed) else {
            return Ok(None);
        };
        // Anything else may be a secret in the wrong place.
        let integer = value.as_integer();
        let integer = integer.ok_or_else(|| value.invalid_unshown(&allowed))?;
        let number = T::try_from(integer).ok();
        let number = number.filter(|number| range.contains(number));
        let number = number.ok_or_else(|| value.invalid(&allowed))?;
        self.set(key, number.to_string());
        Ok(Some(number))
    }

    /// Reads a whole number in an inclusive range. It has no default.
    pub fn required_number<T: Number>(&mut self, key: &str, range: &RangeInclusive<T>) -> Read<T> {
        let number = self.optional_number(key, range)?;
        number.ok_or_else(|| self.missing(key, &numbers(range)))
    }

    /// Reads a share in percent, with decimals.
    pub fn percent(&mut self, key: &str, default: f64) -> Read<f64> {
        const ALLOWED: &str = "a number from 0 to 100, for example 0.5";
        let schema = json!({ "type": "number", "minimum": 0, "maximum": 100 });
        self.describe(key, ALLOWED, schema);
        let percent = match self.find(key, ALLOWED) {
            None => default,
            Some(value) => {
                let decimal = value.as_decimal();
                let decimal = decimal.ok_or_else(|| value.invalid_unshown(ALLOWED))?;
                let percent = Some(decimal).filter(|share| (0.0..=100.0).contains(share));
                percent.ok_or_else(|| value.invalid(ALLOWED))?
            }
        };
        self.set(key, percent.to_string());
        Ok(percent)
    }

    /// Reads a duration in whole seconds.
    pub fn seconds(
        &mut self,
        key: &str,
        range: RangeInclusive<u64>,
        default: u64,
    ) -> Read<Duration> {
        self.number(key, range, default).map(Duration::from_secs)
    }

    /// Lists a string. One that may hold a password, as in a URL with user information, is compared but not shown.
    fn set_text(&self, key: &str, text: &str) {
        if text.contains('@') {
            let scheme = text.split_once("://").map_or("…", |(scheme, _)| scheme);
            let shown = format!("\"{scheme}://…\"");
            self.set_hidden(key, &shown, Secret::from(text.to_owned()));
        } else {
            self.set(key, format!("{text:?}"));
        }
    }

    /// Lists a setting under this section.
    pub fn set(&self, key: &str, shown: impl Into<String>) {
        self.add(key, shown.into(), None, None);
    }

    /// Lists a setting whose value is compared but not shown.
    pub fn set_hidden(&self, key: &str, shown: &str, value: Secret) {
        self.add(key, shown.to_owned(), Some(value), None);
    }

    /// Lists a setting. `source` is what holds the value, if it is not the configuration file.
    fn add(&self, key: &str, shown: String, secret: Option<Secret>, source: Option<ValueSource>) {
        // An empty table shows its defaults: nothing else of it would be listed.
        let is_in_file = |table: &DeTable<'_>| table.is_empty() || table.contains_key(key);
        self.document.set(Setting {
            key: self.key(key),
            shown,
            secret,
            source: match self.table.is_some_and(is_in_file) {
                true => source.unwrap_or(ValueSource::File),
                false => ValueSource::Default,
            },
        });
    }

    /// Reports a problem with a key.
    pub fn problem(&self, key: &str, value: &str, allowed: &str) -> Invalid {
        self.report(key, format!("found {value}; allowed: {allowed}"), false)
    }

    /// Reports a missing key.
    pub fn missing(&self, key: &str, allowed: &str) -> Invalid {
        self.report(key, format!("missing; allowed: {allowed}"), true)
    }

    fn report(&self, key: &str, text: String, is_missing: bool) -> Invalid {
        let present = self.table.and_then(|table| table.get_key_value(key));
        let line = present.map(|(key, _)| self.document.line(&key.span()));
        let problem = Problem::new(line.or(self.line), self.key(key), text);
        self.document.problems.borrow_mut().push(Problem {
            is_missing,
            ..problem
        });
        Invalid
    }

    fn key(&self, key: &str) -> String {
        dotted(&self.path, key)
    }
}

/// The schema of a string. Where only quoted words are allowed, it is one of them.
fn text_schema(allowed: &str) -> Json {
    let parts = allowed.split(", ").flat_map(|part| part.split(" or "));
    let words = parts.map(|part| part.strip_prefix('"')?.strip_suffix('"'));
    match words.collect::<Option<Vec<_>>>() {
        Some(words) => json!({ "enum": words }),
        None => json!({ "type": "string" }),
    }
}

/// Allowed values of a whole number, for messages.
fn numbers<T: Display>(range: &RangeInclusive<T>) -> String {
    format!("a whole number from {} to {}", range.start(), range.end())
}
