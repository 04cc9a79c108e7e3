//! Changes that turn the requests and responses of one version into another version's. CONTRACT 5.

use std::ops::RangeInclusive;

use ring::digest;
use signpost_bridge::Operation;

use crate::{config::path_pattern::PathPattern, request::Method};

/// The changes of a version, in the order in which they apply.
#[derive(Clone, Debug)]
pub struct Changes {
    all: Box<[Change]>,
    /// Identifies them: other changes have another digest.
    digest: Box<str>,
}

/// One change, with a name that an operator has given it.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its name in reports, metrics and errors: a word of `[a-z0-9_]`.
    pub name: Box<str>,
    /// The method of its requests; `None`: either.
    pub(super) method: Option<Method>,
    /// The paths of its requests, as the client sends them.
    pub(super) paths: Box<[PathPattern]>,
    /// The statuses of the responses that it changes.
    pub(super) statuses: Box<[RangeInclusive<u16>]>,
    /// The types of content that it passes unchanged, in lower case, without parameters.
    pub(super) pass_types: Box<[Box<str>]>,
    /// What it does with a request.
    pub request: Box<[RequestChange]>,
    /// What it does with the body of a request, which is JSON.
    pub request_body: Box<[Operation]>,
    /// What it does with the body of a response, which is JSON.
    pub response: Box<[Operation]>,
    /// The status that a response gets.
    pub status: Option<u16>,
}

/// One step of a change of a request. Names are decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestChange {
    /// The path, or its beginning, is replaced.
    Path { from: Box<str>, to: Box<str> },
    /// What happens to a parameter.
    Param { name: Box<str>, effect: ParamEffect },
}

/// How a step changes a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamEffect {
    /// It gets another name.
    Rename { to: Box<str> },
    /// It is sent under another name, too.
    Copy { to: Box<str> },
    /// It is left out.
    Remove,
    /// It gets this value, if it is absent.
    Default { value: Box<str> },
    /// It gets this value.
    Constant { value: Box<str> },
    /// Its values are replaced, each by another one.
    Map { values: Box<[(Box<str>, Box<str>)]> },
}

impl Changes {
    pub(super) fn new(all: Vec<Change>) -> Self {
        // Another release may change the digest; another change always does.
        let text = format!("{all:?}");
        let digest = digest::digest(&digest::SHA256, text.as_bytes());
        Self {
            all: all.into(),
            digest: hex::encode(&digest.as_ref()[..8]).into(),
        }
    }

    /// All, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Change> {
        self.all.iter()
    }

    /// 16 hex digits that other changes do not have.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The changes of requests with this method and path, as the client sends them.
    pub fn of<'c>(&'c self, method: Method, path: &'c str) -> impl Iterator<Item = &'c Change> {
        self.iter().filter(move |change| change.takes(method, path))
    }

    /// The path at the other version; `None` if it is the same.
    #[must_use]
    pub fn path(&self, method: Method, path: &str) -> Option<String> {
        // The path of the client chooses the changes; each step then sees the path that the step before left.
        let steps = self.of(method, path).flat_map(|change| &change.request);
        steps.fold(None, |changed, step| match step {
            RequestChange::Path { from, to } => {
                let before = changed.as_deref().unwrap_or(path);
                // As a text, not by segments: conf/guides/bridges.md tells operators that `/account` begins
                // `/accounts`, too.
                let rest = before.strip_prefix(&**from);
                rest.map(|rest| format!("{to}{rest}")).or(changed)
            }
            RequestChange::Param { .. } => changed,
        })
    }

    /// The paths of changes that take a request.
    pub(crate) fn patterns<'c>(
        &'c self,
        method: Method,
        path: &'c str,
    ) -> impl Iterator<Item = &'c PathPattern> {
        let patterns = self.of(method, path).flat_map(|change| &change.paths);
        patterns.filter(move |pattern| pattern.takes(path))
    }

    /// Whether one of them may change the responses to these requests.
    #[must_use]
    pub(crate) fn change_responses(&self, method: Method, path: &str) -> bool {
        self.of(method, path).any(Change::changes_responses)
    }
}

impl Change {
    fn takes(&self, method: Method, path: &str) -> bool {
        self.method.is_none_or(|own| own == method)
            && self.paths.iter().any(|pattern| pattern.takes(path))
    }

    /// The paths of its requests.
    pub fn paths(&self) -> impl Iterator<Item = &PathPattern> {
        self.paths.iter()
    }

    /// The method of its requests; `None`: either.
    #[must_use]
    pub const fn method(&self) -> Option<Method> {
        self.method
    }

    fn changes_responses(&self) -> bool {
        !self.response.is_empty() || self.status.is_some()
    }

    /// Whether it changes responses with this status.
    #[must_use]
    pub(crate) fn changes_status(&self, status: u16) -> bool {
        self.changes_responses() && self.statuses.iter().any(|range| range.contains(&status))
    }

    /// Whether it passes content of this type unchanged. The type is in lower case, without parameters.
    #[must_use]
    pub(crate) fn passes_type(&self, content_type: &str) -> bool {
        self.pass_types
            .iter()
            .any(|passed| **passed == *content_type)
    }
}
