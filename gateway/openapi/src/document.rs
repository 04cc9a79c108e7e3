//! A document, and what its references lead to.

mod yaml;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// Largest size of a document, in bytes.
pub const MAX_BYTES: usize = 16 << 20;

/// Limit of references that lead to each other.
const MAX_HOPS: usize = 32;

/// An `OpenAPI` document, whose references all lead somewhere.
#[derive(Debug)]
pub struct Document {
    root: Value,
}

/// A document cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {found}; allowed: {allowed}")]
pub struct Unreadable {
    /// Where: a line and a column, or a JSON pointer.
    pub place: String,
    /// What is there.
    pub found: String,
    /// What may be there.
    pub allowed: &'static str,
}

impl Unreadable {
    pub(crate) fn new(place: impl ToString, found: impl ToString, allowed: &'static str) -> Self {
        Self {
            place: place.to_string(),
            found: found.to_string(),
            allowed,
        }
    }
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// It is too large, neither JSON nor YAML, no `OpenAPI` 3.0 or 3.1, or has a reference that leads nowhere.
    pub fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        if bytes.len() > MAX_BYTES {
            let found = format!("{} bytes", bytes.len());
            return Err(Unreadable::new("the file", found, "at most 16 MiB"));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let place = format!("byte {}", error.valid_up_to());
            Unreadable::new(place, "no UTF-8", "UTF-8")
        })?;
        let text = text.trim_start_matches('\u{feff}');
        let root = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| not_json(&error))?
        } else {
            yaml::read(text)?
        };
        let document = Self { root };
        document.check()?;
        Ok(document)
    }

    fn check(&self) -> Result<(), Unreadable> {
        let version = &self.root["openapi"];
        let is_known = version
            .as_str()
            .is_some_and(|version| version.starts_with("3.0.") || version.starts_with("3.1."));
        if !is_known {
            let found = match (version, &self.root["swagger"]) {
                (Value::Null, Value::Null) => "missing".to_owned(),
                (Value::Null, swagger) => format!("swagger {swagger}"),
                (version, _) => version.to_string(),
            };
            return Err(Unreadable::new("/openapi", found, "\"3.0.x\" or \"3.1.x\""));
        }
        for (key, is_needed) in [("paths", true), ("components", false)] {
            match &self.root[key] {
                Value::Object(_) => {}
                Value::Null if !is_needed || version.as_str() > Some("3.1") => {}
                other => return Err(Unreadable::new(format!("/{key}"), kind(other), "an object")),
            }
        }
        self.check_references(&self.root, &mut String::new(), false)
    }

    /// `has_names`: the members' names are the document's own, no keywords.
    fn check_references(
        &self,
        value: &Value,
        place: &mut String,
        has_names: bool,
    ) -> Result<(), Unreadable> {
        const NAMED: [&str; 6] = [
            "properties",
            "patternProperties",
            "$defs",
            "schemas",
            "responses",
            "headers",
        ];
        const VALUES: [&str; 6] = ["example", "examples", "default", "enum", "const", "value"];
        let length = place.len();
        let mut check = |key: &str, value| {
            place.push('/');
            place.push_str(&key.replace('~', "~0").replace('/', "~1"));
            let result = self.check_references(value, place, !has_names && NAMED.contains(&key));
            place.truncate(length);
            result
        };
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    check(&at.to_string(), item)?;
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    // Examples have no references.
                    let is_value = VALUES.contains(&key.as_str()) || key.starts_with("x-");
                    if has_names || !is_value {
                        check(key, member)?;
                    }
                }
                return self.check_reference(members, place);
            }
            _ => {}
        }
        Ok(())
    }

    fn check_reference(&self, of: &Map<String, Value>, place: &str) -> Result<(), Unreadable> {
        let Some(reference) = of.get("$ref").and_then(Value::as_str) else {
            return Ok(());
        };
        let allowed = match self.target(reference) {
            Some(_) if reference.starts_with("#/") => return Ok(()),
            _ if reference.starts_with("#/") => "a reference to a part that exists",
            _ => "a reference into the same document, which begins with #/",
        };
        let found = format!("$ref {reference:?}");
        Err(Unreadable::new(place, found, allowed))
    }

    fn target(&self, reference: &str) -> Option<&Value> {
        let pointer = percent_decode_str(reference.strip_prefix('#')?);
        self.root.pointer(&pointer.decode_utf8().ok()?)
    }

    /// What the reference in `members` leads to, if it has one.
    pub(crate) fn referred(&self, members: &Map<String, Value>) -> Option<&Value> {
        self.target(members.get("$ref")?.as_str()?)
    }

    /// What the value leads to, while it is a reference and nothing else.
    pub(crate) fn plain<'d>(&'d self, mut value: &'d Value) -> &'d Value {
        for _ in 0..MAX_HOPS {
            let members = value.as_object().filter(|members| members.len() == 1);
            match members.and_then(|members| self.referred(members)) {
                Some(target) => value = target,
                None => break,
            }
        }
        value
    }

    /// The value, or what its references lead to.
    pub(crate) fn follow<'d>(&'d self, mut value: &'d Value) -> &'d Value {
        for _ in 0..MAX_HOPS {
            match value.as_object().and_then(|members| self.referred(members)) {
                Some(target) => value = target,
                None => break,
            }
        }
        value
    }

    /// A member of the document, or of a part of it, behind its references. `Null` if there is none.
    pub(crate) fn member<'d>(&'d self, of: &'d Value, key: &str) -> &'d Value {
        self.follow(&self.follow(of)[key])
    }

    /// The members of a member, in order; none if it is no object.
    pub(crate) fn members<'d>(
        &'d self,
        of: &'d Value,
        key: &str,
    ) -> impl Iterator<Item = (&'d str, &'d Value)> {
        let members = self.member(of, key).as_object().into_iter().flatten();
        members.map(|(name, member)| (name.as_str(), self.follow(member)))
    }

    pub(crate) const fn root(&self) -> &Value {
        &self.root
    }
}

fn not_json(error: &serde_json::Error) -> Unreadable {
    let text = error.to_string();
    let found = text.split(" at line ").next().unwrap_or_default();
    let place = format!("line {}, column {}", error.line(), error.column());
    Unreadable::new(place, found, "JSON of at most 127 levels")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "missing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
