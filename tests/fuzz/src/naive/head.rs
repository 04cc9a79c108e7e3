//! A request's head. Sources: RFC 9112 sections 2 to 6, RFC 9110 sections 5 and 7.2, RFC 3986 section 3, CONTRACT 2.

use super::text::{field, has_bare_line_feed, head_length, is_token, is_token_byte};
use super::text::{length, lines, split_once, values};

/// Limits on a head: bytes, fields, and bytes of the query.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes, closing empty line included.
    pub bytes: usize,
    /// Header fields.
    pub fields: usize,
    /// Bytes of the query, without `?`.
    pub query: usize,
}

/// Why a head is rejected, as far as clients see the difference. The first fault in this order counts.
/// A long query counts before a malformed path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not HTTP, or a body that two parsers could frame differently.
    NotHttp,
    /// Too many bytes or fields.
    TooLarge,
    /// A query over the limit.
    QueryTooLong,
    /// A path or a `Host` that does not match RFC 3986.
    Target,
    /// A query that does not match RFC 3986, and cannot be a callback's.
    Query,
}

/// The framing of the body that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    None,
    /// This number of bytes.
    Length(u64),
    /// Chunks.
    Chunked,
}

/// The parts of a head, as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// Bytes up to the end of the closing empty line.
    pub length: usize,
    /// The request line, without its line end.
    pub request_line: &'a [u8],
    /// The method.
    pub method: &'a [u8],
    /// The target up to `?`.
    pub path: &'a [u8],
    /// The target after `?`; empty without `?`.
    pub query: &'a [u8],
    /// The value of the only `Host`.
    pub host: &'a [u8],
    /// Whether the version is HTTP/1.0; else it is HTTP/1.1.
    pub is_http_1_0: bool,
    /// The framing of the body.
    pub framing: Framing,
    /// Whether the connection is closed after this request: HTTP/1.0, or `Connection` has the option `close`.
    pub is_last: bool,
    /// Names and values in order.
    pub fields: Vec<(&'a [u8], &'a [u8])>,
}

/// Parses the head that `input` begins with; `None` while it is incomplete.
///
/// # Errors
///
/// When the head is rejected.
pub fn read<'a>(input: &'a [u8], limits: &Limits) -> Result<Option<Head<'a>>, Fault> {
    if let Some(&first) = input.first()
        && !is_token_byte(first)
        && first != b'\r'
    {
        return Err(Fault::NotHttp);
    }
    let end = head_length(input);
    let received = &input[..end.unwrap_or(input.len())];
    if has_bare_line_feed(received) {
        return Err(Fault::NotHttp);
    }
    match end {
        Some(end) if end <= limits.bytes => read_whole(received, limits).map(Some),
        None if received.len() < limits.bytes => Ok(None),
        _ if !received.contains(&b'\n') && received.contains(&b'?') => Err(Fault::QueryTooLong),
        _ => Err(Fault::TooLarge),
    }
}

/// Whether a query has a parameter of one of these names, as the URL standard reads it: a broken escape is text.
fn has_name(query: &[u8], names: &[&str]) -> bool {
    query.split(|&byte| byte == b'&').any(|pair| {
        let mut rest = pair.split(|&byte| byte == b'=').next().unwrap_or(pair);
        let mut name = Vec::new();
        while let [first, behind @ ..] = rest {
            let digits = behind
                .get(..2)
                .and_then(|two| std::str::from_utf8(two).ok());
            let digits = digits.filter(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()));
            let escaped = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
            let escaped = escaped.filter(|_| *first == b'%');
            name.push(escaped.unwrap_or(*first));
            rest = &behind[if escaped.is_some() { 2 } else { 0 }..];
        }
        names.iter().any(|one| name == one.as_bytes())
    })
}

fn read_whole<'a>(head: &'a [u8], limits: &Limits) -> Result<Head<'a>, Fault> {
    let mut lines = lines(head).into_iter();
    let request_line = lines.next().ok_or(Fault::NotHttp)?;
    // The first space ends the method, the last one the target.
    let (method, rest) = split_once(request_line, b' ').ok_or(Fault::NotHttp)?;
    let space = rest.iter().rposition(|&byte| byte == b' ');
    let (target, version) = rest.split_at(space.ok_or(Fault::NotHttp)?);
    let version = &version[1..];
    let is_http_1_0 = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return Err(Fault::NotHttp),
    };
    if !is_token(method) || target.is_empty() || target.iter().any(u8::is_ascii_control) {
        return Err(Fault::NotHttp);
    }
    let fields: Option<Vec<_>> = lines.map(field).collect();
    let fields = fields.ok_or(Fault::NotHttp)?;
    let framing = framing(&fields, is_http_1_0).ok_or(Fault::NotHttp)?;
    if fields.len() > limits.fields {
        return Err(Fault::TooLarge);
    }
    let (path, query) = split_once(target, b'?').unwrap_or((target, b""));
    if query.len() > limits.query {
        return Err(Fault::QueryTooLong);
    }
    if !path.starts_with(b"/") || !is_encoded(path, is_path_byte) {
        return Err(Fault::Target);
    }
    let is_query_byte = |byte| is_path_byte(byte) || b"?[]\\^`{|}".contains(&byte);
    let may_be_callback = query
        .iter()
        .all(|&byte| is_query_byte(byte) || byte == b'%')
        && has_name(query, &["state"])
        && (has_name(query, &["code", "error"]) || !has_name(query, &["time", "sign"]));
    if !is_encoded(query, is_query_byte) && !may_be_callback {
        return Err(Fault::Query);
    }
    let hosts = values(&fields, "host");
    let [host] = hosts[..] else {
        return Err(Fault::Target);
    };
    if !is_host(host) {
        return Err(Fault::Target);
    }
    Ok(Head {
        length: head.len(),
        request_line,
        method,
        path,
        query,
        host,
        is_http_1_0,
        framing,
        is_last: is_http_1_0 || closes(&fields),
        fields,
    })
}

fn framing(fields: &[(&[u8], &[u8])], is_http_1_0: bool) -> Option<Framing> {
    let lengths = values(fields, "content-length");
    let encodings = values(fields, "transfer-encoding");
    match (&lengths[..], &encodings[..]) {
        ([], []) => Some(Framing::None),
        ([value], []) => match length(value)? {
            0 => Some(Framing::None),
            length => Some(Framing::Length(length)),
        },
        ([], [encoding]) if encoding.eq_ignore_ascii_case(b"chunked") && !is_http_1_0 => {
            Some(Framing::Chunked)
        }
        _ => None,
    }
}

/// Whether every byte is allowed or part of an escape: `%` and two hex digits.
fn is_encoded(mut text: &[u8], is_allowed: impl Fn(u8) -> bool) -> bool {
    loop {
        text = match text {
            [] => return true,
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest
            }
            [byte, rest @ ..] if *byte != b'%' && is_allowed(*byte) => rest,
            _ => return false,
        }
    }
}

/// `unreserved` and `sub-delims` of RFC 3986 section 2.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || b"!$&'()*+,;=".contains(&byte)
}

/// `pchar` of RFC 3986 section 3.3, and `/`.
fn is_path_byte(byte: u8) -> bool {
    is_name_byte(byte) || b":@/".contains(&byte)
}

/// `uri-host [ ":" port ]` of RFC 9110 section 7.2, not empty. Stricter than the RFC: IP literals are only IPv6
/// addresses, and a name has no comma, since two joined `Host` fields have one.
fn is_host(host: &[u8]) -> bool {
    if let [b'[', rest @ ..] = host {
        return match split_once(rest, b']') {
            Some((address, b"")) => is_ipv6(address),
            Some((address, [b':', port @ ..])) => is_ipv6(address) && is_port(port),
            _ => false,
        };
    }
    let (name, port) = split_once(host, b':').unwrap_or((host, b""));
    let is_name = is_encoded(name, |byte| is_name_byte(byte) && byte != b',');
    !name.is_empty() && is_name && is_port(port)
}

/// `*DIGIT`, at most 65535.
fn is_port(port: &[u8]) -> bool {
    let significant: Vec<u8> = port
        .iter()
        .copied()
        .skip_while(|&digit| digit == b'0')
        .collect();
    let value = || {
        significant
            .iter()
            .fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'))
    };
    port.iter().all(u8::is_ascii_digit) && significant.len() <= 5 && value() <= 65_535
}

/// `IPv6address` of RFC 3986 section 3.2.2: eight groups, of which `::` stands for one or more.
pub(super) fn is_ipv6(address: &[u8]) -> bool {
    let Ok(address) = std::str::from_utf8(address) else {
        return false;
    };
    match address.split_once("::") {
        None => groups(address, true) == Some(8),
        Some((left, right)) => match (groups(left, false), groups(right, true)) {
            (Some(left), Some(right)) => left + right <= 7,
            _ => false,
        },
    }
}

/// Counts the groups of 16 bits; the last two may be an IPv4 address.
fn groups(text: &str, may_end_in_ipv4: bool) -> Option<usize> {
    if text.is_empty() {
        return Some(0);
    }
    let is_group = |part: &str| {
        (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let parts: Vec<&str> = text.split(':').collect();
    match parts.split_last() {
        Some((last, others)) if others.iter().all(|part| is_group(part)) => {
            if is_group(last) {
                Some(parts.len())
            } else {
                (may_end_in_ipv4 && is_ipv4(last)).then_some(parts.len() + 1)
            }
        }
        _ => None,
    }
}

/// `IPv4address`: four numbers up to 255, without leading zeros.
pub(super) fn is_ipv4(text: &str) -> bool {
    let is_octet = |part: &str| (0..=255).any(|octet: u16| octet.to_string() == part);
    text.split('.').count() == 4 && text.split('.').all(is_octet)
}

fn closes(fields: &[(&[u8], &[u8])]) -> bool {
    values(fields, "connection").iter().any(|value| {
        let value = String::from_utf8_lossy(value).to_ascii_lowercase();
        value
            .split(',')
            .any(|option| option.trim_matches([' ', '\t']) == "close")
    })
}
