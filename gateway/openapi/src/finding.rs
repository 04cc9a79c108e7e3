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

impl Known {
    /// A path that a client can send.
    #[must_use]
    pub fn sample(&self) -> String {
        crate::compare::with_variables(&self.path, "1")
    }
}

impl Report {
    /// How many findings break clients.
    #[must_use]
    pub fn breaking(&self) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.is_breaking)
            .count()
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Method and path in the old document, `POST /orders`; `*` for all.
    pub operation: String,
    /// Where in it.
    #[serde(serialize_with = "as_text")]
    pub place: Place,
    /// What kind of change: `property-removed`, `enum-value-added`, …
    pub kind: Cow<'static, str>,
    /// Whether a client of the old document can fail, or get something else.
    #[serde(rename = "breaking")]
    pub is_breaking: bool,
    /// What changed.
    pub text: String,
    /// Steps of a bridge that make up for it, as far as documents show it. Empty if there are none.
    #[serde(skip)]
    pub steps: Vec<Step>,
}

/// A part of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Itself.
    #[default]
    Operation,
    /// A parameter: where it is sent, its name, and the path of a value inside.
    Parameter(String, String, String),
    /// The body of a request: its type of content, and the path of a value inside.
    RequestBody(String, String),
    /// A response: its status, the type of content, and the path of a value inside.
    Response(String, String, String),
    /// A header of a response: status and name.
    Header(String, String),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let media = |media: &str| match media {
            "" | "application/json" => String::new(),
            media => format!(" ({media})"),
        };
        let (text, path) = match self {
            Self::Operation => ("operation".to_owned(), ""),
            Self::Parameter(within, name, path) if path == "$" => {
                (format!("parameter {within} {name}"), "")
            }
            Self::Parameter(within, name, path) => (format!("parameter {within} {name}"), &**path),
            Self::RequestBody(kind, path) => (format!("request body{}", media(kind)), &**path),
            Self::Response(status, kind, path) => {
                (format!("response {status}{}", media(kind)), &**path)
            }
            Self::Header(status, name) => (format!("response {status} header {name}"), ""),
        };
        formatter.write_str(&text)?;
        match path {
            "" => Ok(()),
            path => write!(formatter, " {path}"),
        }
    }
}

fn as_text<S: serde::Serializer>(place: &Place, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(place)
}

/// A step of a change in the gateway's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The list that it belongs to.
    pub list: List,
    /// What it changes: a path in a body, or the name of a parameter; the old beginning of a path.
    pub at: String,
    /// How.
    pub action: Action,
}

/// A list of steps of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum List {
    Request,
    RequestBody,
    Response,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Action {
    Path(String),
    Rename(String),
    Move(String),
    Default(Value),
    Remove,
    ToText,
    ToNumber,
    Wrap(String),
    Unwrap(String),
    Status(u16),
}

impl fmt::Display for Step {
    /// As the configuration has it. A text of JSON is one of TOML.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, beside) = match &self.action {
            Action::Path(to) => ("path", Some(("to", to.as_str().into()))),
            Action::Rename(to) => ("rename", Some(("to", to.as_str().into()))),
            Action::Move(to) => ("move", Some(("to", to.as_str().into()))),
            // A parameter is a text.
            Action::Default(value) if self.list == List::Request && !value.is_string() => {
                ("default", Some(("value", value.to_string().into())))
            }
            Action::Default(value) => ("default", Some(("value", value.clone()))),
            Action::Remove => ("remove", None),
            Action::ToText => ("to_text", None),
            Action::ToNumber => ("to_number", None),
            Action::Wrap(within) => ("wrap", Some(("in", within.as_str().into()))),
            Action::Unwrap(within) => ("unwrap", Some(("in", within.as_str().into()))),
            Action::Status(status) => return write!(formatter, "{{ status = {status} }}"),
        };
        write!(formatter, "{{ {key} = {}", Value::from(self.at.as_str()))?;
        if let Some((key, value)) = beside {
            write!(formatter, ", {key} = {value}")?;
        }
        formatter.write_str(" }")
    }
}
