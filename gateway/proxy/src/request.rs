//! A request as the phases see it, independent of HTTP version and framework.

pub(crate) mod client;
pub(crate) mod drain;
pub(crate) mod ids;
pub(crate) mod quotas;
pub(crate) mod recorder;
pub(crate) mod rejection;
#[cfg(test)]
pub(crate) mod scripted;

use std::fmt;

use http::HeaderName;

use crate::wire::syntax::{
    field::{Fields, NameAndValue, Span},
    path::UnusualPath,
};

/// Limits of a request's head.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Bytes, with request line and closing empty line.
    pub bytes: usize,
    /// Header fields.
    pub headers: usize,
    /// Bytes of the query, without `?`.
    pub query: usize,
}

impl HeadLimits {
    /// Largest configurable limit: offsets in a head have two bytes.
    pub const MAX_BYTES: usize = 64 * 1024;
}

/// The length of a body, as its head declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// No body.
    None,
    /// This many bytes.
    Known(u64),
    /// A body of unknown length, for example a chunked one.
    Unknown,
}

/// A checked request head: its bytes, and the offsets of its parts.
pub struct Head {
    bytes: Vec<u8>,
    target: Span,
    checked: CheckedTarget,
    host: Span,
    body: BodyLength,
    fields: Fields,
}

/// What is known of a target that was checked.
#[derive(Debug, Default)]
pub struct CheckedTarget {
    /// The length of its path.
    pub path_length: usize,
    /// Its path, if that is unusual.
    pub unusual: Option<Box<UnusualPath>>,
}

impl Head {
    /// Wraps the head in `bytes`: `METHOD SP target SP version`, then the fields. The caller has checked it. CONTRACT
    /// 2.
    #[must_use]
    pub fn new(
        bytes: Vec<u8>,
        (target, checked): (Span, CheckedTarget),
        host: Span,
        body: BodyLength,
        fields: Fields,
    ) -> Self {
        Self {
            bytes,
            target,
            checked,
            host,
            body,
            fields,
        }
    }

    /// The method, a token.
    #[must_use]
    pub fn method(&self) -> &[u8] {
        &self.bytes[..self.target.start() - 1]
    }

    /// Method and target as sent, with the space between them.
    #[must_use]
    pub fn method_and_target(&self) -> &[u8] {
        let end = self.target.start() + self.target.slice(&self.bytes).len();
        &self.bytes[..end]
    }

    /// The value of `Host`.
    #[must_use]
    pub fn host(&self) -> &[u8] {
        self.host.slice(&self.bytes)
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> Target<'_> {
        // The target was checked, so it is ASCII.
        let target = std::str::from_utf8(self.target.slice(&self.bytes)).unwrap_or_default();
        let parts = target.split_at_checked(self.checked.path_length);
        let (path, query) = parts.unwrap_or_default();
        Target {
            path,
            query: query.get(1..).unwrap_or_default(),
            unusual: self.checked.unusual.as_deref(),
            host: std::str::from_utf8(self.host()).unwrap_or_default(),
            sent: target,
            prefix: 0,
        }
    }

    /// The length of the body that follows.
    #[must_use]
    pub const fn body(&self) -> BodyLength {
        self.body
    }

    /// The bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The fields at these indices of [`each`](Headers::each).
    pub fn at<'a>(&'a self, indices: &'a [u16]) -> impl Iterator<Item = NameAndValue<'a>> {
        let fields = indices
            .iter()
            .filter_map(|&index| self.fields.get(usize::from(index)));
        fields.map(|field| field.name_and_value(&self.bytes))
    }
}

impl Headers for Head {
    fn each(&self) -> impl Iterator<Item = NameAndValue<'_>> {
        self.fields
            .iter()
            .map(|field| field.name_and_value(&self.bytes))
    }
}

// Prints no content, which includes credentials.
signpost_protocol::hide_in_debug!(Head);

/// The target as sent: a path, and a query without its `?`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target<'a> {
    /// The path, still encoded. Rules do not compare this, but [`Self::compared`].
    pub path: &'a str,
    /// The query, still encoded; empty if missing.
    pub query: &'a str,
    /// The path, if it is unusual.
    pub unusual: Option<&'a UnusualPath>,
    /// The value of `Host`, for what a client may have signed; empty if it is not known.
    pub host: &'a str,
    /// Path and query as sent.
    pub sent: &'a str,
    /// The length of the beginning of the path that only names the version.
    pub prefix: u16,
}

impl<'a> Target<'a> {
    /// Splits a target whose path is not unusual; `None` if it is not UTF-8.
    #[must_use]
    pub fn parse(target: &'a [u8]) -> Option<Self> {
        let target = std::str::from_utf8(target).ok()?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Some(Self {
            path,
            query,
            sent: target,
            ..Self::default()
        })
    }

    /// The offset from which on readers may understand the path differently.
    #[must_use]
    pub(crate) fn ambiguity(&self) -> Option<usize> {
        self.unusual?.ambiguity
    }

    /// The path in the form in which the configuration's paths are compared with it, without the version's prefix.
    #[must_use]
    pub fn compared(&self) -> &'a str {
        let compared = self.unusual.map_or(self.path, |unusual| &unusual.compared);
        &compared[usize::from(self.prefix)..]
    }

    /// The target that its backend gets, with this query.
    pub(crate) fn at_backend(&self, query: &str) -> String {
        let path = self.path_at_backend();
        match query {
            // An empty query is the client's, too; one that `strip_sign` left is none.
            "" if !self.sent.ends_with('?') => path.to_owned(),
            query => format!("{path}?{query}"),
        }
    }

    /// The path that its backend gets: as sent, without the version's prefix.
    #[must_use]
    pub(crate) fn path_at_backend(&self) -> &'a str {
        &self.path[usize::from(self.prefix)..]
    }
}

/// Whether a header's name, in any letter case, is `known`.
#[must_use]
pub(crate) fn is_named(name: &[u8], known: &HeaderName) -> bool {
    name.eq_ignore_ascii_case(known.as_str().as_bytes())
}

/// A request's headers; names in any letter case.
pub trait Headers {
    /// All headers in order.
    fn each(&self) -> impl Iterator<Item = NameAndValue<'_>>;
}

/// The headers of a head that may be malformed or incomplete. Skips lines without a colon and an incomplete last line.
#[derive(Clone, Copy, Debug)]
pub struct RawHeaders<'a>(pub &'a [u8]);

impl Headers for RawHeaders<'_> {
    fn each(&self) -> impl Iterator<Item = NameAndValue<'_>> {
        // An incomplete line could show half of a value, for example of an address in `X-Forwarded-For`.
        let end = memchr::memrchr(b'\n', self.0).map_or(0, |end| end + 1);
        self.0[..end]
            .split(|&byte| byte == b'\n')
            // The request line, whose target may have a colon.
            .skip(1)
            .filter_map(|line| {
                let colon = memchr::memchr(b':', line)?;
                Some((&line[..colon], line[colon + 1..].trim_ascii()))
            })
    }
}

/// Headers in tests.
#[cfg(test)]
impl Headers for [(&str, &str)] {
    fn each(&self) -> impl Iterator<Item = NameAndValue<'_>> {
        self.iter()
            .map(|(name, value)| (name.as_bytes(), value.trim_ascii().as_bytes()))
    }
}

/// The methods that a version can accept. CONTRACT 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl Method {
    /// All, in the order in which `Allow` lists them.
    pub const ALL: [Self; 6] = [
        Self::Get,
        Self::Head,
        Self::Post,
        Self::Put,
        Self::Patch,
        Self::Delete,
    ];

    /// The method of these bytes, if it is one of them.
    #[must_use]
    pub const fn from_bytes(method: &[u8]) -> Option<Self> {
        match method {
            b"GET" => Some(Self::Get),
            b"POST" => Some(Self::Post),
            b"HEAD" => Some(Self::Head),
            b"PUT" => Some(Self::Put),
            b"PATCH" => Some(Self::Patch),
            b"DELETE" => Some(Self::Delete),
            _ => None,
        }
    }

    /// The method as in the request line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether it only reads, and has no body here: RFC 9110 section 9.2.1.
    #[must_use]
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }

    /// Whether it may be sent twice: RFC 9110 section 9.2.2.
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        !matches!(self, Self::Post | Self::Patch)
    }

    /// Whether its request has a body by its nature: RFC 9110 section 8.6.
    #[must_use]
    pub const fn anticipates_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// A set of methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Methods(u8);

impl Methods {
    /// GET and POST: what each version accepts without a key.
    pub const USUAL: Self = Self::of(&[Method::Get, Method::Post]);

    /// The set of these.
    #[must_use]
    pub const fn of(methods: &[Method]) -> Self {
        let (mut set, mut index) = (0, 0);
        while index < methods.len() {
            set |= 1 << methods[index] as u8;
            index += 1;
        }
        Self(set)
    }

    /// Whether it has a method.
    #[must_use]
    pub const fn has(self, method: Method) -> bool {
        self.0 & (1 << method as u8) != 0
    }

    /// Those of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// As `Allow` lists them.
impl fmt::Display for Methods {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = Method::ALL.into_iter().filter(|method| self.has(*method));
        let names: Vec<_> = listed.map(Method::as_str).collect();
        formatter.write_str(&names.join(", "))
    }
}
