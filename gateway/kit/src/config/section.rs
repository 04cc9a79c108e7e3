//! A table of a file, and the readers of its keys.

use std::{
    fmt::Display,
    net::SocketAddr,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use toml::de::DeTable;
use zeroize::Zeroizing;

use super::{
    document::{Document, dotted},
    error::Problem,
    settings::{ReadFile, read_regular},
    value::Value,
};
use crate::secret::{Secret, SecretSource};

/// Allowed values of a secret, for messages.
pub const SECRET: &str = "\"env:NAME\", \"file:PATH\", or the secret itself";
/// Allowed values of an address, for messages.
pub const ADDRESS: &str = "an IP address and a port, for example \"127.0.0.1:7001\"";

/// A value is invalid or missing. The problem is recorded already: reading continues, to find the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

/// The result of reading a key.
pub type Read<T> = Result<T, Invalid>;

/// A table of the file. Each reader takes one key; keys that are never read are unknown.
pub struct Section<'d> {
    document: &'d Document<'d>,
    path: String,
    /// The line on which the table begins; `None` for the root.
    line: Option<usize>,
    table: Option<&'d DeTable<'d>>,
}

/// A file that a key names.
pub struct NamedFile {
    /// Its path.
    pub path: PathBuf,
    /// Its content, up to 4 MiB. Zeroized when dropped.
    pub content: Zeroizing<Vec<u8>>,
}

impl<'d> Section<'d> {
    pub(super) const fn root(document: &'d Document<'d>, table: &'d DeTable<'d>) -> Self {
        Self::new(document, String::new(), None, table)
    }

    pub(super) const fn new(
        document: &'d Document<'d>,
        path: String,
        line: Option<usize>,
        table: &'d DeTable<'d>,
    ) -> Self {
        Self {
            document,
            path,
            line,
            table: Some(table),
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

    /// Returns the value of a key, if the file has it.
    pub fn find(&mut self, key: &str) -> Option<Value<'d>> {
        self.document.note_known(&self.path, key);
        let spanned = self.table?.get(key)?;
        Some(Value::new(self.document, self.key(key), spanned))
    }

    /// Where the table is in the file, for example `versions.v1`; empty for the root.
    #[must_use]
    pub fn table_path(&self) -> &str {
        &self.path
    }

    /// Whether the file has the key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// Reads the table of that name. If the file has none, an empty one is read.
    ///
    /// # Errors
    ///
    /// The value is not a table, or `read` fails.
    pub fn section<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Section<'d>) -> Read<T>,
    ) -> Read<T> {
        match self.find(key) {
            Some(value) => value.section(read),
            None => read(&mut Section {
                document: self.document,
                path: self.key(key),
                line: None,
                table: None,
            }),
        }
    }

    /// Reads the table of that name, if the file has one.
    ///
    /// # Errors
    ///
    /// As [`Self::section`].
    pub fn optional_section<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Section<'d>) -> Read<T>,
    ) -> Read<Option<T>> {
        let value = self.find(key);
        value.map(|value| value.section(read)).transpose()
    }

    /// Reads each table in the table of that name, in the order of their names. An invalid one is `None`.
    ///
    /// # Errors
    ///
    /// The value is not a table.
    pub fn sections<T>(
        &mut self,
        key: &str,
        mut read: impl FnMut(&str, &mut Section<'d>) -> Read<T>,
    ) -> Read<Vec<(String, Option<T>)>> {
        self.section(key, |outer| {
            let names = outer.table.into_iter().flat_map(|table| table.keys());
            let names: Vec<String> = names.map(|name| name.get_ref().to_string()).collect();
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
    ///
    /// # Errors
    ///
    /// The value is not a list, is too long, or `read` fails for one. All are read before, so that every problem is
    /// reported.
    pub fn tables<T>(
        &mut self,
        key: &str,
        max: usize,
        read: impl FnMut(&mut Section<'d>) -> Read<T>,
    ) -> Read<Vec<(Value<'d>, T)>> {
        let Some(value) = self.find(key) else {
            self.set(key, "0 tables");
            return Ok(Vec::new());
        };
        let allowed = format!("at most {max} tables [[{}]]", self.key(key));
        let items = value.items();
        let items = items.ok_or_else(|| value.invalid_unshown(&allowed))?;
        if items.len() > max {
            return Err(value.problem(&format!("{} tables", items.len()), &allowed));
        }
        let mut read = read;
        let all: Vec<_> = items.iter().map(|item| item.section(&mut read)).collect();
        self.set(key, format!("{} tables", all.len()));
        items
            .into_iter()
            .zip(all)
            .map(|(item, read)| Ok((item, read?)))
            .collect()
    }

    /// Reads `true` or `false`.
    ///
    /// # Errors
    ///
    /// The value is neither.
    pub fn flag(&mut self, key: &str, default: bool) -> Read<bool> {
        let flag = match self.find(key) {
            None => default,
            Some(value) => value
                .as_bool()
                .ok_or_else(|| value.invalid_unshown("true or false"))?,
        };
        self.set(key, flag.to_string());
        Ok(flag)
    }

    /// Reads a whole number in an inclusive range.
    ///
    /// # Errors
    ///
    /// The value is not a whole number, or out of range.
    pub fn number<T>(&mut self, key: &str, range: RangeInclusive<T>, default: T) -> Read<T>
    where
        T: Copy + Display + PartialOrd + TryFrom<i64>,
    {
        let number = match self.find(key) {
            None => default,
            Some(value) => {
                let allowed =
                    || format!("a whole number from {} to {}", range.start(), range.end());
                let found = value.as_integer();
                let Some(found) = found else {
                    // Anything else may be a secret in the wrong place.
                    return Err(value.invalid_unshown(&allowed()));
                };
                let number = T::try_from(found).ok();
                let number = number.filter(|number| range.contains(number));
                number.ok_or_else(|| value.invalid(&allowed()))?
            }
        };
        self.set(key, number.to_string());
        Ok(number)
    }

    /// Reads a duration in whole seconds.
    ///
    /// # Errors
    ///
    /// As [`Self::number`].
    pub fn seconds(
        &mut self,
        key: &str,
        range: RangeInclusive<u64>,
        default: u64,
    ) -> Read<Duration> {
        self.number(key, range, default).map(Duration::from_secs)
    }

    /// Reads one of a few words.
    ///
    /// # Errors
    ///
    /// The value is none of them.
    pub fn choice<T: Copy + PartialEq>(
        &mut self,
        key: &str,
        choices: &[(&str, T)],
        default: T,
    ) -> Read<T> {
        let quoted = |(word, _): &(&str, T)| format!("\"{word}\"");
        let choice = match self.find(key) {
            None => default,
            Some(value) => {
                let given = value.as_str();
                let is_given = |(word, _): &&(&str, T)| given == Some(*word);
                let found = choices.iter().find(is_given);
                let (_, choice) = found.ok_or_else(|| {
                    let words: Vec<_> = choices.iter().map(quoted).collect();
                    let words = words.join(", ");
                    match given {
                        Some(_) => value.invalid(&words),
                        None => value.invalid_unshown(&words),
                    }
                })?;
                *choice
            }
        };
        let chosen = choices.iter().find(|(_, one)| *one == choice);
        self.set(key, chosen.map(quoted).unwrap_or_default());
        Ok(choice)
    }

    /// Reads a string and parses it, if the file has the key.
    ///
    /// # Errors
    ///
    /// The value is not a string, or does not parse.
    pub fn optional<T: FromStr>(&mut self, key: &str, allowed: &str) -> Read<Option<T>> {
        self.optional_by(key, allowed, |text| text.parse().ok())
    }

    /// As [`Self::optional`], with a parser of the caller's.
    ///
    /// # Errors
    ///
    /// The value is not a string, or does not parse.
    pub fn optional_by<T>(
        &mut self,
        key: &str,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Read<Option<T>> {
        let Some(value) = self.find(key) else {
            return Ok(None);
        };
        let text = value.as_str();
        let text = text.ok_or_else(|| value.invalid_unshown(allowed))?;
        let parsed = parse(text).ok_or_else(|| value.invalid(allowed))?;
        self.set_text(key, text);
        Ok(Some(parsed))
    }

    /// Reads a string and parses it, or the default.
    ///
    /// # Errors
    ///
    /// The value is not a string, or does not parse. The default must parse.
    pub fn parsed<T: FromStr>(&mut self, key: &str, default: &str, allowed: &str) -> Read<T> {
        self.parsed_by(key, default, allowed, |text| text.parse().ok())
    }

    /// As [`Self::parsed`], with a parser of the caller's.
    ///
    /// # Errors
    ///
    /// The value is not a string, or does not parse.
    pub fn parsed_by<T>(
        &mut self,
        key: &str,
        default: &str,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Read<T> {
        match self.optional_by(key, allowed, &parse)? {
            Some(parsed) => Ok(parsed),
            None => {
                self.set(key, format!("{default:?}"));
                parse(default).ok_or(Invalid)
            }
        }
    }

    /// Reads a required string and parses it.
    ///
    /// # Errors
    ///
    /// The value is missing, is not a string, or does not parse.
    pub fn required<T: FromStr>(&mut self, key: &str, allowed: &str) -> Read<T> {
        self.required_by(key, allowed, |text| text.parse().ok())
    }

    /// As [`Self::required`], with a parser of the caller's.
    ///
    /// # Errors
    ///
    /// The value is missing, is not a string, or does not parse.
    pub fn required_by<T>(
        &mut self,
        key: &str,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Read<T> {
        let read = self.optional_by(key, allowed, parse)?;
        read.ok_or_else(|| self.missing(key, allowed))
    }

    /// Reads an IP address and a port.
    ///
    /// # Errors
    ///
    /// The value is anything else.
    pub fn address(&mut self, key: &str, default: &str) -> Read<SocketAddr> {
        self.parsed(key, default, ADDRESS)
    }

    /// Reads a list of strings and parses each.
    ///
    /// # Errors
    ///
    /// The value is not a list of strings, or one of them does not parse.
    pub fn list<T>(
        &mut self,
        key: &str,
        default: &[&str],
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Read<Vec<T>> {
        let (texts, value) = match self.find(key) {
            None => (default.to_vec(), None),
            Some(value) => {
                let items = value.items();
                let texts = items.and_then(|items| items.iter().map(Value::as_str).collect());
                let texts: Option<Vec<_>> = texts;
                match texts {
                    Some(texts) => (texts, Some(value)),
                    None => return Err(value.invalid(&format!("a list of {allowed}"))),
                }
            }
        };
        let parsed: Option<Vec<T>> = texts.iter().map(|text| parse(text)).collect();
        let parsed = parsed.ok_or_else(|| match value {
            Some(value) => value.invalid(&format!("a list of {allowed}")),
            None => Invalid,
        })?;
        self.set(key, format!("{texts:?}"));
        Ok(parsed)
    }

    /// Reads a file path, if the file has the key.
    ///
    /// # Errors
    ///
    /// The value is not a string, or empty.
    pub fn path(&mut self, key: &str) -> Read<Option<PathBuf>> {
        self.optional_by(key, "a file path", |text| {
            (!text.is_empty()).then(|| PathBuf::from(text))
        })
    }

    /// Reads a file by its path, if the configuration has the key. The file is watched, and its content is compared at a
    /// reload, but never shown.
    ///
    /// # Errors
    ///
    /// The value is not a string, or empty, or the file cannot be read.
    pub fn file(&mut self, key: &str) -> Read<Option<NamedFile>> {
        let Some(value) = self.find(key) else {
            return Ok(None);
        };
        let path = value.as_str().filter(|text| !text.is_empty());
        let path = path.ok_or_else(|| value.invalid_unshown("a file path"))?;
        let path = PathBuf::from(path);
        let content = read_regular(&path);
        let read = ReadFile::new(&path, content.as_ref().ok().map(|content| &content[..]));
        let compared = format!("{read:?}");
        self.document.add_file(read);
        let content = content.map_err(|cause| {
            let found = format!("{}, which cannot be read ({cause})", path.display());
            self.problem(key, &found, "the path of a file that this program can read")
        })?;
        self.set_hidden(
            key,
            &format!("\"{}\"", path.display()),
            Secret::from(compared),
        );
        Ok(Some(NamedFile { path, content }))
    }

    /// Reads a secret from its source, if the file has the key. The secret is never shown.
    ///
    /// # Errors
    ///
    /// The value is not a string, or the variable or file that it names has no secret.
    pub fn secret(&mut self, key: &str) -> Read<Option<Secret>> {
        self.secret_source(key, SECRET)?
            .map(|source| self.fetch(key, source, SECRET))
            .transpose()
    }

    /// Reads a required secret from its source.
    ///
    /// # Errors
    ///
    /// As [`Self::secret`], or the key is missing.
    pub fn required_secret(&mut self, key: &str) -> Read<Secret> {
        self.secret(key)?.ok_or_else(|| self.missing(key, SECRET))
    }

    /// Reads where a secret comes from, if the file has the key. The value is never shown.
    ///
    /// # Errors
    ///
    /// The value is not a string.
    pub fn secret_source(&mut self, key: &str, allowed: &str) -> Read<Option<SecretSource>> {
        let Some(value) = self.find(key) else {
            return Ok(None);
        };
        let text = value.as_str();
        let text = text.ok_or_else(|| value.invalid_unshown(allowed))?;
        Ok(Some(SecretSource::from(text)))
    }

    /// Fetches a secret, lists it as a setting, and records the file that holds it.
    ///
    /// # Errors
    ///
    /// The source has no secret.
    pub fn fetch(&mut self, key: &str, source: SecretSource, allowed: &str) -> Read<Secret> {
        if let SecretSource::Literal(_) = source {
            self.note_secret(key, None);
        }
        let secret = self.read_source(key, source, allowed)?;
        self.set_hidden(key, "(secret)", secret.clone());
        Ok(secret)
    }

    /// Notes that `file`, or without one the configuration file, holds a secret: [`Self::secret_warnings`].
    pub fn note_secret(&self, key: &str, file: Option<&Path>) {
        self.document.add_secret(self.key(key), file);
    }

    /// Notes that the value of a key is known to everyone, so that its file need not be kept from other users.
    pub fn note_public(&self, key: &str) {
        self.document.remove_secret(&self.key(key));
    }

    /// A warning for each file that other users may read, and that holds a secret read so far. Blocks.
    #[must_use]
    pub fn secret_warnings(&self) -> Vec<String> {
        self.document.secret_warnings()
    }

    /// Reads a secret from its source, and records the file that it comes from.
    pub(super) fn read_source(
        &self,
        key: &str,
        source: SecretSource,
        allowed: &str,
    ) -> Read<Secret> {
        let path = match &source {
            SecretSource::File(path) => Some(path.clone()),
            SecretSource::Env(_) | SecretSource::Literal(_) => None,
        };
        if let Some(path) = &path {
            self.note_secret(key, Some(path));
        }
        let secret = source.read_with(|content| {
            if let Some(path) = &path {
                self.document.add_file(ReadFile::new(path, content));
            }
        });
        secret.map_err(|error| self.problem(key, &error.to_string(), allowed))
    }

    /// Records a file whose content is part of the configuration, as it was read.
    pub fn record_file(&self, file: ReadFile) {
        self.document.add_file(file);
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
        self.document.set(self.key(key), shown.into(), None);
    }

    /// Lists a setting whose value is compared but not shown.
    pub fn set_hidden(&self, key: &str, shown: &str, value: Secret) {
        self.document
            .set(self.key(key), shown.to_owned(), Some(value));
    }

    /// Reports a problem with a key.
    pub fn problem(&self, key: &str, found: &str, allowed: &str) -> Invalid {
        self.report(key, format!("found {found}; allowed: {allowed}"), false)
    }

    /// Reports a missing key.
    pub fn missing(&self, key: &str, allowed: &str) -> Invalid {
        self.report(key, format!("missing; allowed: {allowed}"), true)
    }

    fn report(&self, key: &str, text: String, is_missing: bool) -> Invalid {
        let found = self.table.and_then(|table| table.get_key_value(key));
        let line = found.map(|(key, _)| self.document.line(&key.span()));
        self.document.add_problem(Problem {
            line: line.or(self.line),
            key: self.key(key),
            text,
            is_missing,
        });
        Invalid
    }

    fn key(&self, key: &str) -> String {
        dotted(&self.path, key)
    }
}
