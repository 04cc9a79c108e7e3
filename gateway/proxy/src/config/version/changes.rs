//! Changes that turn the requests and responses of one version into another version's. CONTRACT 5.

use std::{fmt, ops::RangeInclusive, sync::Arc};

use http::{HeaderName, HeaderValue};
use ring::digest;
use signpost_bridge::{Operation, Otherwise};
use signpost_protocol::header::{HeaderNames, HeaderRole};
use url::form_urlencoded::parse;

use super::backend::Backend;
use crate::{config::path_pattern::PathPattern, request::Method, wire::syntax::field::HOP_BY_HOP};

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
    /// What it does with the headers of a response.
    pub headers: Box<[HeaderChange]>,
    /// What changes requests and responses in place of steps.
    pub converter: Option<Converter>,
}

/// A server of the operator's that changes requests and responses.
#[derive(Clone)]
pub struct Converter {
    /// Where it listens.
    pub backend: Arc<Backend>,
}

/// Only the address: a digest that had the backend's number would change with every other backend.
impl fmt::Debug for Converter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = self.backend.upstream.addresses.iter();
        let addresses = addresses.map(|address| (&address.host_port, address.tls.is_some()));
        formatter.debug_list().entries(addresses).finish()
    }
}

/// One step for a header: it gets a value, or is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderChange {
    /// Its name.
    pub name: HeaderName,
    /// Its value; `None`: the header is left out.
    pub value: Option<HeaderValue>,
}

/// Whether changes may touch a header: not what the gateway writes, what belongs to a connection or to a login, or what the
/// form of a body depends on.
pub(crate) fn may_change(names: &HeaderNames, name: &[u8]) -> bool {
    const OTHERS: &str = "accept-encoding deprecation if-modified-since if-none-match if-range range ratelimit \
                          ratelimit-policy set-cookie strict-transport-security sunset vary www-authenticate";
    const CORS: &[u8] = b"access-control-";
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    let is_of_cors = (name.get(..CORS.len())).is_some_and(|start| start.eq_ignore_ascii_case(CORS));
    let role = names.role_of(name);
    matches!(role, HeaderRole::Ordinary | HeaderRole::ContentType)
        && !is_of_cors
        && !OTHERS.split(' ').any(|known| is(known.as_bytes()))
        && !HOP_BY_HOP.iter().any(|known| is(known))
        && !is(names.version_source.as_str().as_bytes())
}

/// One step of a change of a request. Names are decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestChange {
    /// The path, or its beginning, is replaced. `{NAME}` is a segment, or a parameter of the query.
    Path { from: Box<str>, to: Box<str> },
    /// What happens to a header.
    Header(HeaderChange),
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
    Map {
        values: Box<[(Box<str>, Box<str>)]>,
        otherwise: Otherwise,
    },
}

/// A path at the other version, and what of the query it is made of.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ChangedPath {
    /// The path.
    pub path: String,
    /// The parameters of the query that it has now.
    pub taken: Vec<Box<str>>,
    /// The segments that are parameters now.
    pub given: Vec<(Box<str>, String)>,
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

    /// The path at the other version; `None` if it is the same. The path of the client chooses the changes; each step then
    /// sees the path that the step before left, and the query as sent.
    ///
    /// # Errors
    ///
    /// A parameter of the query cannot be a segment: the change, and why, without the value.
    pub fn path(
        &self,
        method: Method,
        path: &str,
        query: &str,
    ) -> Result<Option<ChangedPath>, (&Change, String)> {
        let mut changed = None;
        for change in self.iter().filter(|change| change.takes(method, path)) {
            for step in &change.request {
                if let RequestChange::Path { from, to } = step {
                    let step = replaced((from, to), path, query, &mut changed);
                    step.map_err(|why| (change, why))?;
                }
            }
        }
        Ok(changed)
    }

    /// The first converter of requests with this method and path, and the change that names it.
    pub(crate) fn converter(&self, method: Method, path: &str) -> Option<(&Change, &Converter)> {
        let mut changes = self.iter().filter(|change| change.takes(method, path));
        changes.find_map(|change| Some((change, change.converter.as_ref()?)))
    }

    /// The backends of all converters.
    pub fn converters(&self) -> impl Iterator<Item = &Arc<Backend>> {
        let converters = self.iter().filter_map(|change| change.converter.as_ref());
        converters.map(|converter| &converter.backend)
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
        !self.response.is_empty()
            || self.status.is_some()
            || !self.headers.is_empty()
            || self.converter.is_some()
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

/// Replaces the beginning of a path by a step, if it has it, and the query has what the new path needs.
fn replaced(
    (from, to): (&str, &str),
    path: &str,
    query: &str,
    changed: &mut Option<ChangedPath>,
) -> Result<(), String> {
    let before = changed.as_ref().map_or(path, |changed| &changed.path);
    let Some((mut segments, rest)) = matched(from, before) else {
        return Ok(());
    };
    let (mut new, mut taken) = (String::new(), Vec::new());
    let mut parts = to.split(['{', '}']);
    while let Some(text) = parts.next() {
        new.push_str(text);
        let Some(name) = parts.next() else { break };
        if let Some(at) = segments.iter().position(|(known, _)| *known == name) {
            new.push_str(segments.remove(at).1);
            continue;
        }
        let mut values = parse(query.as_bytes()).filter(|(known, _)| known == name);
        match (values.next(), values.next()) {
            // As any step: an absent parameter is left alone.
            (None, _) => return Ok(()),
            (Some((_, value)), None) => new.push_str(
                &segment(&value).ok_or_else(|| format!("{name} is no segment of a path"))?,
            ),
            (Some(_), Some(_)) => return Err(format!("{name} is there twice")),
        }
        taken.push(Box::from(name));
    }
    new.push_str(rest);
    let given = segments.into_iter();
    let given: Vec<_> = given
        .map(|(name, segment)| (name.into(), decoded(segment)))
        .collect();
    let changed = changed.get_or_insert_default();
    changed.path = new;
    changed.taken.extend(taken);
    changed.given.extend(given);
    Ok(())
}

/// The segments of a path, each with its name in the pattern; and what follows. As a text, not by segments:
/// conf/guides/bridges.md tells operators that `/account` begins `/accounts`, too.
fn matched<'p>(pattern: &'p str, path: &'p str) -> Option<(Vec<(&'p str, &'p str)>, &'p str)> {
    let (mut segments, mut rest) = (Vec::new(), path);
    let mut parts = pattern.split(['{', '}']);
    while let Some(text) = parts.next() {
        rest = rest.strip_prefix(text)?;
        let Some(name) = parts.next() else { break };
        let (segment, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if segment.is_empty() {
            return None;
        }
        segments.push((name, segment));
        rest = behind;
    }
    Some((segments, rest))
}

/// A value as a segment in the form in which paths are compared. `None` if readers could understand it differently.
fn segment(value: &str) -> Option<String> {
    let unsafe_end = value.ends_with(['.', ' ']) || value.is_empty();
    if unsafe_end || value.contains(['/', '\\', ';']) || value.contains(char::is_control) {
        return None;
    }
    let encoded = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    Some(value.bytes().map(encoded).collect())
}

/// What a segment stands for.
fn decoded(segment: &str) -> String {
    // Unlike in a query, `+` is no space.
    let pair = format!("={}", segment.replace('+', "%2B").replace('&', "%26"));
    let mut pairs = parse(pair.as_bytes());
    pairs
        .next()
        .map_or_else(String::new, |(_, value)| value.into_owned())
}
