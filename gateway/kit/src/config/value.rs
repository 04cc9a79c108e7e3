//! One value of a file.

use std::borrow::Cow;

use serde_json::Value as Json;
use toml::{Spanned, de::DeValue};

use super::{
    document::Document,
    error::{Invalid, Problem},
    settings::{Setting, ValueSource},
};

/// Messages cut values at this many characters.
const MAX_SHOWN: usize = 80;

/// A value and its key.
pub struct Value<'d> {
    pub(super) document: &'d Document<'d>,
    pub(super) key: String,
    pub(super) spanned: &'d Spanned<DeValue<'d>>,
}

impl<'d> Value<'d> {
    /// The string, if the value is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&'d str> {
        self.spanned.get_ref().as_str()
    }

    /// The text of a time: of a string, or of a date or time of TOML as RFC 3339 writes it.
    #[must_use]
    pub fn as_time_text(&self) -> Option<Cow<'d, str>> {
        match self.spanned.get_ref() {
            DeValue::Datetime(time) => Some(time.to_string().into()),
            value => value.as_str().map(Cow::Borrowed),
        }
    }

    /// The number, if the value is a whole number of 64 bits.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        let integer = self.spanned.get_ref().as_integer()?;
        i64::from_str_radix(integer.as_str(), integer.radix()).ok()
    }

    /// The number, if the value is one: whole or with decimals.
    #[must_use]
    pub fn as_decimal(&self) -> Option<f64> {
        match self.spanned.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) => integer.as_str().parse().ok(),
            _ => None,
        }
    }

    /// The value as JSON; `None` if JSON has no such value: a time, or a number beyond its range.
    #[must_use]
    pub fn to_json(&self) -> Option<Json> {
        json_of(self.spanned.get_ref())
    }

    /// The boolean, if the value is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        self.spanned.get_ref().as_bool()
    }

    /// Whether the value is a table.
    #[must_use]
    pub fn is_table(&self) -> bool {
        self.spanned.get_ref().is_table()
    }

    /// The items, if the value is a list. The key of an item has its index: `backends[0]`.
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

    /// Lists the value as a setting. `shown` is its normal form, the same for every spelling.
    pub fn set(&self, shown: impl Into<String>) {
        self.document.set(Setting {
            key: self.key.clone(),
            shown: shown.into(),
            secret: None,
            source: ValueSource::File,
        });
    }

    /// Reports a problem with the value.
    #[must_use]
    pub fn problem(&self, value: &str, allowed: &str) -> Invalid {
        let text = format!("found {value}; allowed: {allowed}");
        let problem = Problem::new(Some(self.line()), self.key.clone(), text);
        self.document.problems.borrow_mut().push(problem);
        Invalid
    }

    /// Reports the value as invalid, and shows it.
    #[must_use]
    pub fn invalid(&self, allowed: &str) -> Invalid {
        self.problem(&self.shown(), allowed)
    }

    /// Reports the value as invalid, and shows only its type: it may be a secret.
    #[must_use]
    pub fn invalid_unshown(&self, allowed: &str) -> Invalid {
        self.problem(self.kind(), allowed)
    }

    /// The value as written. Of a URL only the scheme is shown, since it may hold a password. A value with an `@` is
    /// not shown at all: the `@` may follow a password.
    #[must_use]
    pub fn shown(&self) -> String {
        let written = self.document.written(self.spanned.span());
        let words: Vec<_> = written.split_whitespace().collect();
        let written = words.join(" ");
        if let Some((scheme, _)) = written.split_once("://") {
            return format!("{scheme}://…");
        }
        if written.contains('@') {
            return "a string with an @".to_owned();
        }
        match written.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => format!("{}…", &written[..end]),
            None => written,
        }
    }

    fn kind(&self) -> &'static str {
        match self.spanned.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        }
    }

    pub(super) fn line(&self) -> usize {
        self.document.line(&self.spanned.span())
    }
}

fn json_of(value: &DeValue<'_>) -> Option<Json> {
    Some(match value {
        DeValue::String(text) => Json::from(&**text),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()?
            .into(),
        DeValue::Float(number) => {
            serde_json::Number::from_f64(number.as_str().parse().ok()?)?.into()
        }
        DeValue::Boolean(flag) => Json::from(*flag),
        DeValue::Datetime(_) => return None,
        DeValue::Array(items) => {
            let items = items.iter().map(|item| json_of(item.get_ref()));
            items.collect::<Option<Vec<_>>>()?.into()
        }
        DeValue::Table(members) => {
            let member = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
                let name: &Cow<'_, str> = name.get_ref();
                Some((name.to_string(), json_of(value.get_ref())?))
            };
            Json::Object(members.iter().map(member).collect::<Option<_>>()?)
        }
    })
}
