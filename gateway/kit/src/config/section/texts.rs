//! Readers of strings, of lists of them, and of what they are parsed to.

use std::{net::SocketAddr, str::FromStr};

use serde_json::json;

use super::{ADDRESS, Section, text_schema};
use crate::config::{
    error::{Invalid, Read},
    value::Value,
};

/// A reader fails if its value is invalid, or missing though required. It has reported that then, and the caller reads on: every
/// problem of a file is shown at once.
#[expect(clippy::missing_errors_doc, reason = "above, for all readers")]
impl Section<'_> {
    /// Reads one of a few words.
    pub fn choice<T: Copy + PartialEq>(
        &mut self,
        key: &str,
        choices: &[(&str, T)],
        default: T,
    ) -> Read<T> {
        let words: Vec<_> = choices
            .iter()
            .map(|(word, _)| format!("\"{word}\""))
            .collect();
        let parse = |text: &str| {
            let mut choices = choices.iter();
            choices.find_map(|(word, choice)| (*word == text).then_some(*choice))
        };
        let mut all = choices.iter();
        let default = all.find_map(|(word, choice)| (*choice == default).then_some(*word));
        let default = default.unwrap_or_default();
        self.parsed_by(key, default, &words.join(", "), parse)
    }

    /// Reads a string and parses it, if the file has the key.
    pub fn optional<T: FromStr>(&mut self, key: &str, allowed: &str) -> Read<Option<T>> {
        self.optional_by(key, allowed, |text| text.parse().ok())
    }

    /// As [`Self::optional`], with a parser of the caller's.
    pub fn optional_by<T>(
        &mut self,
        key: &str,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Read<Option<T>> {
        let Some(value) = self.find(key, allowed) else {
            return Ok(None);
        };
        let text = value.as_str();
        let text = text.ok_or_else(|| value.invalid_unshown(allowed))?;
        let parsed = parse(text).ok_or_else(|| value.invalid(allowed))?;
        self.set_text(key, text);
        Ok(Some(parsed))
    }

    /// Reads a string and parses it, or the default, which must parse.
    pub fn parsed<T: FromStr>(&mut self, key: &str, default: &str, allowed: &str) -> Read<T> {
        self.parsed_by(key, default, allowed, |text| text.parse().ok())
    }

    /// As [`Self::parsed`], with a parser of the caller's.
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
    pub fn required<T: FromStr>(&mut self, key: &str, allowed: &str) -> Read<T> {
        self.required_by(key, allowed, |text| text.parse().ok())
    }

    /// As [`Self::required`], with a parser of the caller's.
    pub fn required_by<T>(
        &mut self,
        key: &str,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Read<T> {
        let parsed = self.optional_by(key, allowed, parse)?;
        parsed.ok_or_else(|| self.missing(key, allowed))
    }

    /// Reads an IP address and a port.
    pub fn address(&mut self, key: &str, default: &str) -> Read<SocketAddr> {
        self.parsed(key, default, ADDRESS)
    }

    /// Reads a list of strings and parses each.
    pub fn list<T>(
        &mut self,
        key: &str,
        default: &[&str],
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Read<Vec<T>> {
        let schema = json!({ "type": "array", "items": text_schema(allowed) });
        let allowed = format!("a list of {allowed}");
        self.describe(key, &allowed, schema);
        let value = self.find(key, &allowed);
        let texts: Option<Vec<_>> = match &value {
            None => Some(default.to_vec()),
            Some(value) => value
                .items()
                .and_then(|items| items.iter().map(Value::as_str).collect()),
        };
        let parsed = texts.and_then(|texts| {
            let parsed: Option<Vec<T>> = texts.iter().map(|text| parse(text)).collect();
            Some((texts, parsed?))
        });
        let (texts, parsed) =
            parsed.ok_or_else(|| value.map_or(Invalid, |value| value.invalid(&allowed)))?;
        self.set(key, format!("{texts:?}"));
        Ok(parsed)
    }
}
