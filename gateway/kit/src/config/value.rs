//! One value of a file, as it is written.

use toml::{Spanned, de::DeValue};

use super::{
    document::Document,
    error::Problem,
    section::{Invalid, Read, Section},
};

/// Longest value that a message shows, in characters.
const MAX_SHOWN: usize = 80;

/// A value, and the key that it was found under.
pub struct Value<'d> {
    document: &'d Document<'d>,
    key: String,
    spanned: &'d Spanned<DeValue<'d>>,
}

impl<'d> Value<'d> {
    pub(super) const fn new(
        document: &'d Document<'d>,
        key: String,
        spanned: &'d Spanned<DeValue<'d>>,
    ) -> Self {
        Self {
            document,
            key,
            spanned,
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&'d str> {
        self.spanned.get_ref().as_str()
    }

    /// The number, if it is a whole one of 64 bits.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        let integer = self.spanned.get_ref().as_integer()?;
        i64::from_str_radix(integer.as_str(), integer.radix()).ok()
    }

    /// `true` or `false`, if it is one of them.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        self.spanned.get_ref().as_bool()
    }

    /// Whether it is a table.
    #[must_use]
    pub fn is_table(&self) -> bool {
        self.spanned.get_ref().is_table()
    }

    /// Its items, if it is a list; each is known by its number: `backends[0]`.
    #[must_use]
    pub fn items(&self) -> Option<Vec<Self>> {
        let items = self.spanned.get_ref().as_array()?;
        let item = |(index, spanned)| Self {
            document: self.document,
            key: format!("{}[{index}]", self.key),
            spanned,
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    /// Reads it as a table.
    ///
    /// # Errors
    ///
    /// It is no table, or `read` fails.
    pub fn section<T>(&self, read: impl FnOnce(&mut Section<'d>) -> Read<T>) -> Read<T> {
        let Some(table) = self.spanned.get_ref().as_table() else {
            // Not the value: in place of a table, it may be a secret.
            return Err(self.problem(&self.kind(), "a table"));
        };
        let mut section = Section::new(self.document, self.key.clone(), Some(self.line()), table);
        let read = read(&mut section);
        section.close();
        read
    }

    /// Lists it as a setting; `shown` is the value in a form that does not depend on how it is written.
    pub fn set(&self, shown: impl Into<String>) {
        self.document.set(self.key.clone(), shown.into(), None);
    }

    /// Notes a problem with it.
    #[must_use]
    pub fn problem(&self, found: &str, allowed: &str) -> Invalid {
        let text = format!("found {found}; allowed: {allowed}");
        self.document.problem(Problem {
            line: Some(self.line()),
            key: self.key.clone(),
            text,
            is_missing: false,
        });
        Invalid
    }

    /// Notes that it is not what it should be, showing it.
    #[must_use]
    pub fn invalid(&self, allowed: &str) -> Invalid {
        self.problem(&self.shown(), allowed)
    }

    /// Notes that it is not what it should be, showing no more than its type: it may be a secret.
    #[must_use]
    pub fn invalid_unshown(&self, allowed: &str) -> Invalid {
        self.problem(&self.kind(), allowed)
    }

    /// The value as it is written. Of a URL only the scheme is shown, since it may hold a password; and nothing of what has
    /// an `@`, which may stand behind one.
    #[must_use]
    pub fn shown(&self) -> String {
        let written = self.document.written(self.spanned.span());
        let words: Vec<_> = written.split_whitespace().collect();
        let written = words.join(" ");
        if let Some((scheme, _)) = written.split_once("://") {
            return format!("{scheme}://…");
        }
        if written.contains('@') {
            return "a text with an @".to_owned();
        }
        match written.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => format!("{}…", &written[..end]),
            None => written,
        }
    }

    fn kind(&self) -> String {
        match self.spanned.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        }
        .to_owned()
    }

    fn line(&self) -> usize {
        self.document.line(&self.spanned.span())
    }
}
