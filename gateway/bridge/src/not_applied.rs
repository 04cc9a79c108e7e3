//! Why an operation was not applied to a body.

use crate::path::{JsonPath, Step};

/// Why a body was not changed: the place in it, and the reason. It has no value of the body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} {reason}")]
pub struct NotApplied {
    path: JsonPath,
    reason: &'static str,
}

impl NotApplied {
    pub(crate) const NOT_JSON: &str = "is not JSON";
    pub(crate) const NOT_AN_OBJECT: &str = "is not an object";
    pub(crate) const NOT_AN_ARRAY: &str = "is not an array";
    pub(crate) const NOT_A_STRING: &str = "is not a string";
    pub(crate) const NOT_A_NUMBER: &str = "is not a number";
    pub(crate) const NOT_NUMERIC: &str = "is a string, but not of a number";
    pub(crate) const NOT_IN_MAP: &str = "is a string that the map does not have";
    pub(crate) const NOT_ONE_ITEM: &str = "does not have exactly one item";
    pub(crate) const NO_MEMBER: &str = "does not have the member to unwrap";
    pub(crate) const TWO_MEMBERS: &str = "has the member to unwrap twice";
    pub(crate) const TWICE: &str = "is there twice";
    pub(crate) const EXISTS: &str = "exists already";
    pub(crate) const NO_VALUE: &str = "has no valid value in the configuration";
    pub(crate) const TOO_MANY: &str = "leads to more than 10,000 values";
    pub(crate) const NOT_ALLOWED: &str = "has an operation that is not allowed";

    pub(crate) fn at(steps: &[Step], reason: &'static str) -> Self {
        let path = JsonPath::from_steps(steps);
        Self { path, reason }
    }

    /// The place: the path of an operation, or of a container on its way.
    #[must_use]
    pub const fn path(&self) -> &JsonPath {
        &self.path
    }

    /// The reason, one of few: what `Display` has behind the path.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        self.reason
    }
}
