//! Strict parser for the head of an HTTP/1 request.
//!
//! Sources: RFC 9112 (message syntax), RFC 9110 sections 5 and 7.2 (fields, Host), RFC 3986 (targets),
//! CONTRACT 2. No I/O.

use http::header::HOST as HOST_NAME;
use memchr::{memchr, memmem, memrchr};
use signpost_protocol::{
    malformed::{Fault, Malformed, Part},
    parse_digits,
};

use crate::{
    phases::callback::is_callback,
    request::{BodyLength, CheckedTarget, Head, HeadLimits, Headers as _, RawHeaders, is_named},
    wire::syntax::{
        bytes::{HOST, PATH, QUERY, TOKEN, first_outside, has_control, is_in_class, is_made_of},
        field::{
            BareLineFeed, Field, FieldFault, Fields, HeadScanner, NameAndValue, Span, read_fields,
        },
        framing::FramingFields,
        path::{MalformedPath, read_path},
    },
};

/// What is wrong with a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadFault {
    /// It is not HTTP, or two parsers could read its framing differently.
    #[error("not HTTP: {0}")]
    NotHttp(&'static str),
    /// The path or `Host` violates RFC 3986.
    #[error("the target is malformed")]
    Target,
    /// The query has a character or an escape that is not allowed there.
    #[error("the query is malformed")]
    Query,
    /// The query is longer than allowed.
    #[error("the query is too long")]
    QueryTooLong,
    /// More bytes or more headers than allowed.
    #[error("the head is too large")]
    TooLarge,
}

impl From<FieldFault> for HeadFault {
    fn from(fault: FieldFault) -> Self {
        match fault {
            FieldFault::Malformed(why) => Self::NotHttp(why),
            FieldFault::TooFar => Self::TooLarge,
        }
    }
}

/// Finds the end of a request's head as it arrives, within its limit.
#[derive(Debug, Default)]
pub struct RequestScanner(HeadScanner);

impl RequestScanner {
    /// Scans the bytes that arrived since the last call. Returns the head's length, with its closing empty line, or
    /// `None` if the head is incomplete.
    ///
    /// # Errors
    ///
    /// It does not begin with a method, a line feed without a carriage return before it, or more bytes than allowed.
    pub fn scan(&mut self, buffer: &[u8], limits: &HeadLimits) -> Result<Option<usize>, HeadFault> {
        // Otherwise a client that speaks TLS, for example, would wait for the gateway, and the gateway for a line end.
        if buffer
            .first()
            .is_some_and(|&first| !is_in_class(first, TOKEN) && first != b'\r')
        {
            return Err(HeadFault::NotHttp("it does not begin with a method"));
        }
        let end = self
            .0
            .scan(buffer)
            .map_err(|BareLineFeed| HeadFault::NotHttp("a line feed without a carriage return"))?;
        match end {
            Some(length) if length <= limits.bytes => Ok(Some(length)),
            None if buffer.len() < limits.bytes => Ok(None),
            // The request line alone exceeds the limit, so the query is too long.
            None if self.0.is_in_first_line() && memchr(b'?', buffer).is_some() => {
                Err(HeadFault::QueryTooLong)
            }
            _ => Err(HeadFault::TooLarge),
        }
    }
}

/// A parsed head, and its properties of the connection.
#[derive(Debug)]
pub struct ReadHead {
    /// The head as the phases see it.
    pub head: Head,
    /// Whether the client speaks HTTP/1.0.
    pub is_http_1_0: bool,
    /// Whether this is the connection's last request: `Connection: close`, or HTTP/1.0.
    pub is_last: bool,
}

/// Parses a complete head, as found by [`RequestScanner`].
///
/// # Errors
///
/// The first fault in this order: not HTTP, limits, target, query; with the head's bytes.
pub fn read_head(bytes: Vec<u8>, limits: &HeadLimits) -> Result<ReadHead, (HeadFault, Vec<u8>)> {
    match check_head(&bytes, limits) {
        Ok(Checked {
            target,
            host,
            body,
            is_http_1_0,
            is_last,
            fields,
        }) => Ok(ReadHead {
            head: Head::new(bytes, target, host, body, fields),
            is_http_1_0,
            is_last,
        }),
        Err(fault) => Err((fault, bytes)),
    }
}

/// The offsets and properties of a valid head.
struct Checked {
    target: (Span, CheckedTarget),
    host: Span,
    body: BodyLength,
    is_http_1_0: bool,
    is_last: bool,
    fields: Fields,
}

fn check_head(bytes: &[u8], limits: &HeadLimits) -> Result<Checked, HeadFault> {
    // The scanner has checked that a carriage return precedes each line feed.
    let line_end = memchr(b'\n', bytes).and_then(|line_feed| line_feed.checked_sub(1));
    let line_end = line_end.ok_or(HeadFault::NotHttp("no request line"))?;
    let (line, is_http_1_0) = request_line(&bytes[..line_end])?;
    let (mut collected, mut fields) = (CollectedFields::default(), Fields::new());
    read_fields(bytes, line_end + 2, &mut fields, |field, parts| {
        collected.take(field, parts)
    })?;
    // Before all other faults: if two parsers could frame the request differently, only a bare 400 is safe.
    let body = collected.body(is_http_1_0)?;
    if fields.len() > limits.headers {
        return Err(HeadFault::TooLarge);
    }
    let checked = check_target(line.target, limits)?;
    if !collected.host_is_valid {
        return Err(HeadFault::Target);
    }
    let start = line.method.len() + 1;
    let target = Span::new(start, start + line.target.len()).ok_or(HeadFault::TooLarge)?;
    Ok(Checked {
        target: (target, checked),
        host: collected.host,
        body,
        is_http_1_0,
        is_last: is_http_1_0 || collected.framing.closes,
        fields,
    })
}

/// The parts of a request line, as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLine<'a> {
    /// A token.
    pub method: &'a [u8],
    /// Anything without a control character.
    pub target: &'a [u8],
}

/// Splits a request line.
///
/// # Errors
///
/// Not `token SP target SP HTTP/1.x`.
fn request_line(line: &[u8]) -> Result<(RequestLine<'_>, bool), HeadFault> {
    let parts = memchr(b' ', line).and_then(|end| {
        let (method, rest) = (&line[..end], &line[end + 1..]);
        // A space in the target is one of the target's faults: it frames no body. Each version is as long as this one.
        let usual = rest.len().checked_sub(" HTTP/1.1".len());
        let end = usual.filter(|&end| rest[end] == b' ');
        let end = end.or_else(|| memrchr(b' ', rest))?;
        Some((method, &rest[..end], &rest[end + 1..]))
    });
    let (method, target, version) = parts.ok_or(HeadFault::NotHttp(
        "the request line does not have three parts",
    ))?;
    if method.is_empty() || !method.iter().all(|&byte| is_in_class(byte, TOKEN)) {
        return Err(HeadFault::NotHttp("the method is not a token"));
    }
    if target.is_empty() || has_control(target) {
        return Err(HeadFault::NotHttp(
            "the target is empty or has a control character",
        ));
    }
    match version {
        b"HTTP/1.1" => Ok((RequestLine { method, target }, false)),
        b"HTTP/1.0" => Ok((RequestLine { method, target }, true)),
        _ => Err(HeadFault::NotHttp("neither HTTP/1.1 nor HTTP/1.0")),
    }
}

/// The request line of a possibly malformed head, for the log; `None` if the line is incomplete or malformed.
#[must_use]
pub fn peek_request_line(buffer: &[u8]) -> Option<RequestLine<'_>> {
    let line_end = memmem::find(buffer, b"\r\n")?;
    request_line(&buffer[..line_end]).ok().map(|(line, _)| line)
}

/// Checks path and query of a target.
///
/// # Errors
///
/// The query is too long, or there is a character that is not allowed there.
pub(crate) fn check_target(target: &[u8], limits: &HeadLimits) -> Result<CheckedTarget, HeadFault> {
    let (path, query) = match memchr(b'?', target) {
        Some(mark) => (&target[..mark], &target[mark + 1..]),
        None => (target, &b""[..]),
    };
    if query.len() > limits.query {
        return Err(HeadFault::QueryTooLong);
    }
    let unusual = read_path(path).map_err(|MalformedPath| HeadFault::Target)?;
    // Browsers leave a `%` that begins no escape as it is, and a callback may have any. Whether this is one depends on the
    // configuration: parameters of all else are read strictly, once the application is known.
    let may_be_callback = || {
        let may_have = |&byte: &u8| byte == b'%' || is_in_class(byte, QUERY);
        query.iter().all(may_have) && std::str::from_utf8(query).is_ok_and(is_callback)
    };
    if is_made_of(query, QUERY) || may_be_callback() {
        Ok(CheckedTarget {
            path_length: path.len(),
            unusual,
        })
    } else {
        Err(HeadFault::Query)
    }
}

/// Where a head with [`HeadFault::Target`] or [`HeadFault::Query`] is malformed.
pub(crate) fn locate(fault: HeadFault, received: &[u8]) -> Malformed {
    let target = peek_request_line(received).map_or(&b""[..], |line| line.target);
    let end = memchr(b'?', target).unwrap_or(target.len());
    let (path, query) = (&target[..end], target.get(end + 1..).unwrap_or_default());
    let (part, source, class) = match fault {
        HeadFault::Query => (Part::Query, query, QUERY),
        _ => (Part::Path, path, PATH),
    };
    let headers = RawHeaders(received);
    let mut hosts = headers
        .each()
        .filter(|(name, _)| is_named(name, &HOST_NAME));
    match (first_outside(source, class), hosts.next(), hosts.next()) {
        _ if part == Part::Path && path.first() != Some(&b'/') => {
            Malformed::at(part, path, 0, Fault::Slash)
        }
        (Some(at), ..) if source[at] == b'%' => Malformed::at(part, source, at, Fault::Escape),
        (Some(at), ..) => Malformed::at(part, source, at, Fault::Character),
        (None, Some((_, host)), None) => {
            let outside = first_outside(host, HOST).filter(|&at| !b":[]".contains(&host[at]));
            let fault = outside.map_or(Fault::Other, |_| Fault::Character);
            Malformed::at(Part::Host, host, outside.unwrap_or_default(), fault)
        }
        (None, ..) => Malformed::at(Part::Host, b"", 0, Fault::Hosts),
    }
}

/// The fields that framing, target and connection depend on, collected in one pass.
#[derive(Default)]
struct CollectedFields {
    framing: FramingFields,
    hosts: u32,
    host: Span,
    host_is_valid: bool,
}

impl CollectedFields {
    fn take(&mut self, field: Field, (name, value): NameAndValue<'_>) -> Result<(), HeadFault> {
        if name.eq_ignore_ascii_case(b"host") {
            self.hosts += 1;
            self.host = field.value();
            // A second `Host` makes the first invalid, too: readers would choose differently. RFC 9112 section 3.2.
            self.host_is_valid = self.hosts == 1 && is_host(value);
        }
        Ok(self.framing.take((name, value))?)
    }

    fn body(&self, is_http_1_0: bool) -> Result<BodyLength, HeadFault> {
        self.framing.check(is_http_1_0)?;
        Ok(
            match (self.framing.content_length, self.framing.is_chunked) {
                (_, true) => BodyLength::Unknown,
                (Some(0) | None, false) => BodyLength::None,
                (Some(length), false) => BodyLength::Known(length),
            },
        )
    }
}

/// `uri-host [":" port]` of RFC 9110 section 7.2: a name, an IPv4 address, or an IP literal in brackets.
fn is_host(host: &[u8]) -> bool {
    let (name, port) = if host.first() == Some(&b'[') {
        let Some(close) = memchr(b']', host) else {
            return false;
        };
        let literal = std::str::from_utf8(&host[1..close]).ok();
        if literal.is_none_or(|literal| literal.parse::<std::net::Ipv6Addr>().is_err()) {
            return false;
        }
        (&host[..=close], &host[close + 1..])
    } else {
        let end = memchr(b':', host).unwrap_or(host.len());
        if !is_made_of(&host[..end], HOST) {
            return false;
        }
        host.split_at(end)
    };
    let port_is_valid = match port {
        [] => true,
        // RFC 3986 section 3.2.3 allows an empty port.
        [b':'] => true,
        [b':', digits @ ..] => {
            let digits = std::str::from_utf8(digits).ok();
            digits.and_then(parse_digits::<u16>).is_some()
        }
        _ => false,
    };
    !name.is_empty() && port_is_valid
}

#[cfg(test)]
mod tests;
