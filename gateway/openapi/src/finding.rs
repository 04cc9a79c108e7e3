//! What differs between two documents.

use std::{borrow::Cow, fmt};

use serde::Serialize;
use serde_json::Value;

/// All that differs.
#[derive(Debug, Default)]
pub struct Report {
    /// By operation.
    pub findings: Vec<Finding>,
    /// Whether the findings are all that differs: false beyond a limit.
    pub is_complete: bool,
    /// The operations of the old document.
    pub operations: Vec<Known>,
}

impl Report {
    /// The findings that break clients, by operation.
    #[must_use]
    pub fn broken(&self) -> Vec<Vec<&Finding>> {
        let breaking = self.findings.iter().filter(|finding| finding.is_breaking);
        let breaking: Vec<_> = breaking.collect();
        let operations = breaking.chunk_by(|one, other| one.operation == other.operation);
        operations.map(<[_]>::to_vec).collect()
    }

    /// How many findings break clients.
    #[must_use]
    pub fn breaking(&self) -> usize {
        self.broken().iter().map(Vec::len).sum()
    }

    /// An operation of the old document.
    #[must_use]
    pub fn known(&self, operation: &str) -> Option<&Known> {
        self.operations.iter().find(|known| known.name == operation)
    }
}

/// An operation of the old document.
#[derive(Debug)]
pub struct Known {
    /// As [`Finding::operation`].
    pub name: String,
    /// `POST`.
    pub method: String,
    /// Its path with that of the server, as clients send it: `/api/orders/{id}`.
    pub path: String,
}

/// One difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// Method and path in the old document, `POST /orders`; `*` for all.
    pub operation: String,
    /// Where in it: `response 200 $.items[].id`.
    pub place: String,
    /// What kind of change: `property-removed`, `enum-value-added`, …
    pub kind: Cow<'static, str>,
    /// Whether a client of the old document can fail, or get something else.
    #[serde(rename = "breaking")]
    pub is_breaking: bool,
    /// What changed.
    pub text: String,
    /// The status that a response has in the old document.
    #[serde(skip)]
    pub status: Option<String>,
    /// Steps of a bridge that make up for it, as far as documents show it. Empty if there are none.
    #[serde(skip)]
    pub steps: Vec<Step>,
}

/// A step of a change in the gateway's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The key of its list: `request`, `request_body` or `response`.
    pub list: &'static str,
    /// Its keys: the first one says what it does, and where.
    pub keys: Vec<(&'static str, Value)>,
}

impl Step {
    /// Puts its paths below another one.
    pub(crate) fn lift(&mut self, prefix: &str) {
        let is_move = self.keys.first().is_some_and(|(key, _)| *key == "move");
        for (_, path) in self.keys.iter_mut().take(1 + usize::from(is_move)) {
            *path = format!("{prefix}{}", path.as_str().unwrap_or_default()).into();
        }
    }

    /// Makes it a step of a parameter, as the fields of a form are; false if that cannot be.
    pub(crate) fn is_for_form(&mut self) -> bool {
        self.list = "request";
        let (key, at) = &mut self.keys[0];
        let name = at.as_str().and_then(|at| at.strip_prefix("$."));
        let name =
            name.filter(|name| !name.contains(['.', '[']) && matches!(*key, "rename" | "default"));
        let name = name.map(Value::from);
        name.is_some_and(|name| {
            *at = name;
            true
        })
    }
}

impl fmt::Display for Step {
    /// As the configuration has it. A text of JSON is one of TOML.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self
            .keys
            .iter()
            .map(|(key, value)| format!("{key} = {value}"));
        write!(formatter, "{{ {} }}", keys.collect::<Vec<_>>().join(", "))
    }
}
