//! The TOML as written, taken key by key, so that every problem is found and not the first alone.
//!
//! Each problem names file, key, what was found and what is allowed. What nobody took is an unknown key.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt::Display,
    fs,
    net::SocketAddr,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use toml::{Table, Value};
use url::Url;

use super::{
    error::{ConfigError, Problem, Problems},
    secret::{Secret, SecretSource},
};

/// A file as written, and what was found wrong with it so far.
pub(super) struct Document {
    path: PathBuf,
    root: Table,
    problems: RefCell<Vec<Problem>>,
}

impl Document {
    pub(super) fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path).map_err(|cause| ConfigError::Unreadable {
            path: path.to_owned(),
            cause,
        })?;
        let root = text
            .parse()
            .map_err(|cause: toml::de::Error| ConfigError::NotToml {
                path: path.to_owned(),
                line: cause
                    .span()
                    .map_or(1, |span| text[..span.start].lines().count().max(1)),
                cause: cause.message().to_owned(),
            })?;
        Ok(Self {
            path: path.to_owned(),
            root,
            problems: RefCell::default(),
        })
    }

    pub(super) fn root(&self) -> Section<'_> {
        Section {
            path: String::new(),
            values: self.root.clone(),
            problems: &self.problems,
        }
    }

    /// The configuration, or everything that is wrong with it.
    pub(super) fn finish<T>(self, config: Option<T>) -> Result<T, ConfigError> {
        let problems = self.problems.into_inner();
        match config {
            Some(config) if problems.is_empty() => Ok(config),
            _ => Err(ConfigError::Problems {
                path: self.path,
                problems: Problems::new(problems),
            }),
        }
    }
}

/// A table of the file. Every key is taken out once; those left when it is dropped are unknown.
pub(super) struct Section<'d> {
    path: String,
    values: Table,
    problems: &'d RefCell<Vec<Problem>>,
}

impl<'d> Section<'d> {
    /// The table of that name; an empty one where there is none.
    pub(super) fn section(&mut self, key: &str) -> Section<'d> {
        let values = match self.values.remove(key) {
            Some(Value::Table(table)) => table,
            Some(other) => {
                // Not the value: where a table is expected, somebody may have put its key.
                self.problem(key, &kind(&other), "a table");
                Table::new()
            }
            None => Table::new(),
        };
        Section {
            path: self.key(key),
            values,
            problems: self.problems,
        }
    }

    /// Whether the key is there, and nobody took it yet.
    pub(super) fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// The keys of the table of that name, as long as nobody took it.
    pub(super) fn keys_of(&self, key: &str) -> Vec<String> {
        let table = self.values.get(key).and_then(Value::as_table);
        table.map_or_else(Vec::new, |table| table.keys().cloned().collect())
    }

    /// The table of that name, if there is one.
    pub(super) fn optional_section(&mut self, key: &str) -> Option<Section<'d>> {
        self.values.contains_key(key).then(|| self.section(key))
    }

    /// The tables in the table of that name, by their own names.
    pub(super) fn sections(&mut self, key: &str) -> BTreeMap<String, Section<'d>> {
        let mut outer = self.section(key);
        let names: Vec<String> = outer.values.keys().cloned().collect();
        names
            .into_iter()
            .map(|name| {
                let inner = outer.section(&name);
                (name, inner)
            })
            .collect()
    }

    /// A text that must be there and parse.
    pub(super) fn needed<T: FromStr<Err: Display>>(&mut self, key: &str) -> Option<T> {
        if self.values.contains_key(key) {
            return self.optional(key);
        }
        let allowed = T::from_str("")
            .err()
            .map_or_else(|| "a text".to_owned(), |e| e.to_string());
        self.problem(key, "nothing", &allowed);
        None
    }

    /// A text that parses, or the default, which must.
    pub(super) fn parsed<T: FromStr<Err: Display>>(
        &mut self,
        key: &str,
        default: &str,
    ) -> Option<T> {
        if self.values.contains_key(key) {
            self.optional(key)
        } else {
            default.parse().ok()
        }
    }

    /// A text that parses if it is there.
    pub(super) fn optional<T: FromStr<Err: Display>>(&mut self, key: &str) -> Option<T> {
        let value = self.values.remove(key)?;
        let parsed = value.as_str().ok_or_else(|| "a text".to_owned());
        match parsed.and_then(|text| text.parse().map_err(|error: T::Err| error.to_string())) {
            Ok(parsed) => Some(parsed),
            Err(allowed) => {
                self.problem(key, &shown(&value), &allowed);
                None
            }
        }
    }

    /// A text that parses if it is there; `allowed` says what does, where the parser's words would not help.
    pub(super) fn parsed_as<T: FromStr>(&mut self, key: &str, allowed: &str) -> Option<T> {
        let value = self.values.remove(key)?;
        let parsed = value.as_str().and_then(|text| text.parse().ok());
        if parsed.is_none() {
            self.problem(key, &shown(&value), allowed);
        }
        parsed
    }

    /// A text that `is_right`, or the default.
    pub(super) fn text(
        &mut self,
        key: &str,
        default: &str,
        is_right: impl Fn(&str) -> bool,
        allowed: &str,
    ) -> Option<String> {
        let take = |value: &Value| {
            value
                .as_str()
                .filter(|text| is_right(text))
                .map(str::to_owned)
        };
        self.value(key, default.to_owned(), allowed, take)
    }

    /// A text, if the key is there. What was found in its place is never shown, but for its type.
    #[expect(
        clippy::option_option,
        reason = "outer: whether all is well; inner: whether it is set"
    )]
    pub(super) fn unshown_text(&mut self, key: &str, allowed: &str) -> Option<Option<String>> {
        match self.values.remove(key) {
            None => Some(None),
            Some(Value::String(text)) => Some(Some(text)),
            Some(other) => {
                self.problem(key, &kind(&other), allowed);
                None
            }
        }
    }

    pub(super) fn flag(&mut self, key: &str, default: bool) -> Option<bool> {
        self.value(key, default, "true or false", Value::as_bool)
    }

    pub(super) fn number(
        &mut self,
        key: &str,
        range: RangeInclusive<usize>,
        default: usize,
    ) -> Option<usize> {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        let Some(value) = self.values.remove(key) else {
            return Some(default);
        };
        let taken = value
            .as_integer()
            .and_then(|number| usize::try_from(number).ok())
            .filter(|number| range.contains(number));
        if taken.is_none() {
            // What is no number may be anything, a secret in the wrong place, say.
            let found = if value.is_integer() { shown } else { kind };
            self.problem(key, &found(&value), &allowed);
        }
        taken
    }

    pub(super) fn seconds(
        &mut self,
        key: &str,
        range: RangeInclusive<usize>,
        default: usize,
    ) -> Option<Duration> {
        self.number(key, range, default)
            .map(|seconds| Duration::from_secs(seconds as u64))
    }

    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &str,
        choices: &[(&str, T)],
        default: T,
    ) -> Option<T> {
        let words: Vec<_> = choices
            .iter()
            .map(|(word, _)| format!("\"{word}\""))
            .collect();
        self.value(key, default, &words.join(", "), |value| {
            let chosen = value.as_str()?;
            choices
                .iter()
                .find(|(word, _)| *word == chosen)
                .map(|(_, choice)| *choice)
        })
    }

    /// A list of texts that all parse; empty where there is none.
    pub(super) fn list<T>(
        &mut self,
        key: &str,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.value(key, Vec::new(), &format!("a list of {allowed}"), |value| {
            value
                .as_array()?
                .iter()
                .map(|item| parse(item.as_str()?))
                .collect()
        })
    }

    /// As [`Self::list`]; the default's where there is none.
    pub(super) fn list_or<T>(
        &mut self,
        key: &str,
        default: &[&str],
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        if self.values.contains_key(key) {
            self.list(key, allowed, parse)
        } else {
            default.iter().map(|text| parse(text)).collect()
        }
    }

    /// An IP address and a port; the default's where there is none.
    pub(super) fn address(&mut self, key: &str, default: &str) -> Option<SocketAddr> {
        if self.values.contains_key(key) {
            self.needed_address(key)
        } else {
            default.parse().ok()
        }
    }

    /// An IP address and a port, which must be there.
    pub(super) fn needed_address(&mut self, key: &str) -> Option<SocketAddr> {
        let allowed = "an IP address and a port, \"127.0.0.1:7001\" say";
        if !self.values.contains_key(key) {
            self.problem(key, "nothing", allowed);
        }
        self.parsed_as(key, allowed)
    }

    /// An http or https address without path, query and fragment; by default the one listened on.
    pub(super) fn public_url(&mut self, key: &str, listen: Option<SocketAddr>) -> Option<Url> {
        if !self.values.contains_key(key) {
            return Url::parse(&format!("http://{}", listen?)).ok();
        }
        let unused = Url::parse("http://unused").ok()?;
        self.value(
            key,
            unused,
            "an http or https address without a path, \"https://api.example.com\" say",
            |value| {
                let url = Url::parse(value.as_str()?).ok()?;
                let is_bare =
                    url.path() == "/" && url.query().is_none() && url.fragment().is_none();
                let is_plain =
                    url.username().is_empty() && url.password().is_none() && url.has_host();
                (matches!(url.scheme(), "http" | "https") && is_bare && is_plain).then_some(url)
            },
        )
    }

    /// A secret from its source, if the key is there. What was found is never shown.
    #[expect(
        clippy::option_option,
        reason = "outer: whether all is well; inner: whether it is set"
    )]
    pub(super) fn secret(&mut self, key: &str) -> Option<Option<Secret>> {
        let Some(value) = self.values.remove(key) else {
            return Some(None);
        };
        let source = value.as_str().map(SecretSource::from).ok_or(());
        match source.map(|source| source.read()) {
            Ok(Ok(secret)) => Some(Some(secret)),
            Ok(Err(error)) => {
                self.problem(
                    key,
                    &error.to_string(),
                    "\"env:NAME\", \"file:PATH\", or the secret itself",
                );
                None
            }
            Err(()) => {
                self.problem(
                    key,
                    "no text",
                    "\"env:NAME\", \"file:PATH\", or the secret itself",
                );
                None
            }
        }
    }

    pub(super) fn problem(&self, key: &str, found: &str, allowed: &str) {
        let key = self.key(key);
        self.problems.borrow_mut().push(Problem {
            key,
            found: found.to_owned(),
            allowed: allowed.to_owned(),
        });
    }

    pub(super) fn value<T>(
        &mut self,
        key: &str,
        default: T,
        allowed: &str,
        take: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let Some(value) = self.values.remove(key) else {
            return Some(default);
        };
        let taken = take(&value);
        if taken.is_none() {
            self.problem(key, &shown(&value), allowed);
        }
        taken
    }

    fn key(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        for key in self.values.keys() {
            // The value is not shown: under a misspelled key it may well be a secret.
            self.problem(
                key,
                "an unknown key",
                "the keys that conf/gateway.toml explains",
            );
        }
    }
}

/// A value's type, where nothing more can be shown.
fn kind(value: &Value) -> String {
    format!("a value of type {}", value.type_str())
}

/// A value as a person wrote it; of an address, no more than its scheme, since it may hold a password.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    if let Some((scheme, _)) = text.split_once("://") {
        return format!("{scheme}://…");
    }
    if text.len() <= 80 {
        text
    } else {
        format!("{}…", text.chars().take(80).collect::<String>())
    }
}
