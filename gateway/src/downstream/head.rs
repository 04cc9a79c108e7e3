//! The head of an HTTP/1 request, in bytes as sent: where it ends, and whether a strict reading takes it.
//!
//! Sources: RFC 9112 (message syntax), RFC 9110 sections 5 and 7.2 (fields, Host), RFC 3986 (targets),
//! CONTRACT 2. No I/O.

use std::fmt;

use bytes::Bytes;
use memchr::{memchr, memchr_iter, memmem};
use smallvec::SmallVec;

use crate::request::{Header, Headers, Target};

/// How large a head may be.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Bytes, request line and closing empty line included. Default 32 KiB.
    pub bytes: usize,
    /// Header fields. Default 100.
    pub headers: usize,
    /// Bytes of the query, without `?`. Default 8 KiB.
    pub query: usize,
}

impl HeadLimits {
    /// No configuration allows more. A target of 64 KiB is more than pingora's type for it holds (0.9.1): it would
    /// refuse it without a word.
    pub const MOST_BYTES: usize = 64 * 1024;
}

/// What is wrong with a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadFault {
    /// It is not HTTP, or frames its body in a way that two readers could take differently.
    #[error("not HTTP: {0}")]
    NotHttp(&'static str),
    /// The path, or the Host, is not of RFC 3986.
    #[error("the target is malformed")]
    Target,
    /// The query is not of RFC 3986.
    #[error("the query is malformed")]
    Query,
    /// The query is longer than allowed.
    #[error("the query is too long")]
    QueryTooLong,
    /// More bytes or more headers than allowed.
    #[error("the head is too large")]
    TooLarge,
}

/// How the body that follows is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    None,
    /// So many bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

/// Finds the end of a head as it arrives, looking at each byte once.
#[derive(Debug, Default)]
pub struct HeadScanner {
    scanned: usize,
    line_start: usize,
}

impl HeadScanner {
    /// Looks at what has come since; `Some` is the head's length, its closing empty line included.
    ///
    /// # Errors
    ///
    /// No method in front, a line feed without a carriage return before it, or more bytes than allowed.
    pub fn scan(&mut self, buffer: &[u8], limits: &HeadLimits) -> Result<Option<usize>, HeadFault> {
        // Somebody who speaks TLS, say, would otherwise wait for an answer as long as we for a line.
        if buffer
            .first()
            .is_some_and(|&first| !is(first, TOKEN) && first != b'\r')
        {
            return Err(HeadFault::NotHttp("it does not begin with a method"));
        }
        for found in memchr_iter(b'\n', &buffer[self.scanned..]) {
            let line_feed = self.scanned + found;
            let line = &buffer[self.line_start..line_feed];
            match line.split_last() {
                Some((b'\r', [])) if self.line_start > 0 && line_feed < limits.bytes => {
                    return Ok(Some(line_feed + 1));
                }
                Some((b'\r', _)) => self.line_start = line_feed + 1,
                _ => return Err(HeadFault::NotHttp("a line feed without a carriage return")),
            }
        }
        self.scanned = buffer.len();
        if buffer.len() < limits.bytes {
            return Ok(None);
        }
        // The request line alone fills the head: then it is the query that is too long.
        let in_query = self.line_start == 0 && memchr(b'?', buffer).is_some();
        Err(if in_query {
            HeadFault::QueryTooLong
        } else {
            HeadFault::TooLarge
        })
    }
}

/// The parts of a request line, as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLine<'a> {
    /// A token.
    pub method: &'a [u8],
    /// Anything without a space.
    pub target: &'a [u8],
}

/// A head that a strict reading took: its bytes as sent, and where its parts are in them.
pub struct Head {
    bytes: Bytes,
    line: Span,
    target: Span,
    host: Span,
    is_http_1_0: bool,
    framing: Framing,
    says_length: bool,
    fields: SmallVec<[Field; USUAL_FIELDS]>,
}

/// As many header fields as most requests have; more go to the heap.
const USUAL_FIELDS: usize = 16;

/// A stretch of a head. Heads are [`HeadLimits::MOST_BYTES`] at the most, so two bytes tell any place.
#[derive(Clone, Copy, Default)]
struct Span {
    start: u16,
    end: u16,
}

#[derive(Clone, Copy)]
struct Field {
    name: Span,
    value: Span,
}

impl Head {
    /// Checks a whole head, as [`HeadScanner`] found it.
    ///
    /// # Errors
    ///
    /// The first fault of this order: what makes it no HTTP, the limits, the target, the query.
    pub fn parse(bytes: Bytes, limits: &HeadLimits) -> Result<Self, HeadFault> {
        // The scanner saw to it that there is a carriage return before each line feed.
        let line_end = memchr(b'\n', &bytes).and_then(|line_feed| line_feed.checked_sub(1));
        let line_end = line_end.ok_or(HeadFault::NotHttp("no request line"))?;
        let (line, is_http_1_0) = request_line(&bytes[..line_end])?;
        let mut framing = FramingFields::default();
        let mut fields = SmallVec::new();
        let mut start = line_end + 2;
        while let Some(found) = memchr(b'\n', &bytes[start..]) {
            let end = start + found.saturating_sub(1);
            if end == start {
                break;
            }
            fields.push(field(&bytes, start, end, &mut framing)?);
            start = end + 2;
        }
        let framing_found = framing.framing(is_http_1_0)?;
        if fields.len() > limits.headers {
            return Err(HeadFault::TooLarge);
        }
        check_target(line.target, limits)?;
        if !framing.host_is_valid {
            return Err(HeadFault::Target);
        }
        let target_start = line.method.len() + 1;
        Ok(Self {
            line: Span::new(0, line_end)?,
            host: framing.host,
            target: Span::new(target_start, target_start + line.target.len())?,
            is_http_1_0,
            framing: framing_found,
            says_length: framing.content_length.is_some(),
            fields,
            bytes,
        })
    }

    /// The method, a token.
    #[must_use]
    pub fn method(&self) -> &[u8] {
        &self.bytes[..usize::from(self.target.start) - 1]
    }

    /// The request line, without its end.
    #[must_use]
    pub fn request_line(&self) -> &[u8] {
        self.slice(self.line)
    }

    /// The value of `Host`.
    #[must_use]
    pub fn host(&self) -> &[u8] {
        self.slice(self.host)
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> Target<'_> {
        // What was checked to be of RFC 3986 is ASCII.
        Target::parse(self.slice(self.target)).unwrap_or_default()
    }

    /// Whether the client speaks HTTP/1.0.
    #[must_use]
    pub fn is_http_1_0(&self) -> bool {
        self.is_http_1_0
    }

    /// How the body that follows is framed.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// The headers at these places of [`each`](Headers::each).
    pub fn at<'a>(&'a self, places: &'a [u16]) -> impl Iterator<Item = Header<'a>> {
        let fields = places
            .iter()
            .filter_map(|&place| self.fields.get(usize::from(place)));
        fields.map(|field| (self.slice(field.name), self.slice(field.value)))
    }

    /// Whether it says how long the body is, be it 0.
    #[must_use]
    pub fn says_length(&self) -> bool {
        self.says_length
    }

    fn slice(&self, span: Span) -> &[u8] {
        &self.bytes[usize::from(span.start)..usize::from(span.end)]
    }
}

impl Headers for Head {
    fn each(&self) -> impl Iterator<Item = Header<'_>> {
        self.fields
            .iter()
            .map(|field| (self.slice(field.name), self.slice(field.value)))
    }
}

/// Silent: a head holds credentials.
impl fmt::Debug for Head {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Head(…)")
    }
}

impl Span {
    fn new(start: usize, end: usize) -> Result<Self, HeadFault> {
        Ok(Self {
            start: place(start)?,
            end: place(end)?,
        })
    }
}

fn place(offset: usize) -> Result<u16, HeadFault> {
    u16::try_from(offset).map_err(|_| HeadFault::TooLarge)
}

/// Checks the header line from `start` to `end`, and tells where its name and its value are.
fn field(
    head: &[u8],
    start: usize,
    end: usize,
    framing: &mut FramingFields,
) -> Result<Field, HeadFault> {
    let line = &head[start..end];
    // A line that begins with white space (an obsolete fold) has no token before its colon either.
    let name_length = line.iter().position(|&byte| !is(byte, TOKEN));
    let colon = match name_length {
        Some(length) if length > 0 && line[length] == b':' => length,
        _ if line.contains(&b':') => {
            return Err(HeadFault::NotHttp("a header's name is no token"));
        }
        _ => return Err(HeadFault::NotHttp("a header without a colon")),
    };
    let (name, padded) = (&line[..colon], &line[colon + 1..]);
    if has_control_but_tabs(padded) {
        return Err(HeadFault::NotHttp("a control character in a header"));
    }
    let value = padded.trim_ascii();
    let value_start = end - padded.trim_ascii_start().len();
    let value_span = Span::new(value_start, value_start + value.len())?;
    framing.take(name, value, value_span)?;
    Ok(Field {
        name: Span::new(start, start + colon)?,
        value: value_span,
    })
}

/// Takes a request line apart, for the log of one that was refused too.
///
/// # Errors
///
/// Not `token SP target SP HTTP/1.x`.
fn request_line(line: &[u8]) -> Result<(RequestLine<'_>, bool), HeadFault> {
    let parts = memchr(b' ', line).and_then(|end| {
        let (method, rest) = (&line[..end], &line[end + 1..]);
        let end = memchr(b' ', rest)?;
        let (target, version) = (&rest[..end], &rest[end + 1..]);
        (!version.contains(&b' ')).then_some((method, target, version))
    });
    let (method, target, version) =
        parts.ok_or(HeadFault::NotHttp("the request line has not three parts"))?;
    if method.is_empty() || !method.iter().all(|&byte| is(byte, TOKEN)) {
        return Err(HeadFault::NotHttp("the method is no token"));
    }
    if target.is_empty() || has_control(target) {
        return Err(HeadFault::NotHttp(
            "no target, or a control character in it",
        ));
    }
    match version {
        b"HTTP/1.1" => Ok((RequestLine { method, target }, false)),
        b"HTTP/1.0" => Ok((RequestLine { method, target }, true)),
        _ => Err(HeadFault::NotHttp("neither HTTP/1.1 nor HTTP/1.0")),
    }
}

/// Whether there is a control character but tabs. Without a way out in between, so that the compiler can look
/// at many bytes at once.
fn has_control_but_tabs(text: &[u8]) -> bool {
    text.iter().fold(false, |found, &byte| {
        found | ((byte < b' ') & (byte != b'\t')) | (byte == 0x7f)
    })
}

fn has_control(text: &[u8]) -> bool {
    text.iter()
        .fold(false, |found, &byte| found | (byte < b' ') | (byte == 0x7f))
}

/// The request line of whatever has come, if it has come and is one.
#[must_use]
pub fn peek_request_line(buffer: &[u8]) -> Option<RequestLine<'_>> {
    let line_end = memmem::find(buffer, b"\r\n")?;
    request_line(&buffer[..line_end]).ok().map(|(line, _)| line)
}

fn check_target(target: &[u8], limits: &HeadLimits) -> Result<(), HeadFault> {
    let (path, query) = match memchr(b'?', target) {
        Some(mark) => (&target[..mark], &target[mark + 1..]),
        None => (target, &b""[..]),
    };
    if query.len() > limits.query {
        return Err(HeadFault::QueryTooLong);
    }
    if path.first() != Some(&b'/') || !is_made_of(path, PATH) {
        return Err(HeadFault::Target);
    }
    if is_made_of(query, QUERY) {
        Ok(())
    } else {
        Err(HeadFault::Query)
    }
}

/// Whether every byte is of `class`, and every `%` has two hex digits behind it.
fn is_made_of(text: &[u8], class: u8) -> bool {
    let mut place = 0;
    while let Some(&byte) = text.get(place) {
        if byte == b'%' {
            let digits = text.get(place + 1..place + 3);
            if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                return false;
            }
            place += 3;
        } else if is(byte, class) {
            place += 1;
        } else {
            return false;
        }
    }
    true
}

/// The fields that framing and routing hang on, gathered in one pass.
#[derive(Default)]
struct FramingFields {
    content_length: Option<u64>,
    is_chunked: bool,
    hosts: u32,
    host: Span,
    host_is_valid: bool,
}

impl FramingFields {
    fn take(&mut self, name: &[u8], value: &[u8], span: Span) -> Result<(), HeadFault> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => {
                self.host = span;
                self.take_host(value);
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => self.take_length(value)?,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.take_encoding(value)?,
            _ => {}
        }
        Ok(())
    }

    fn take_host(&mut self, host: &[u8]) {
        self.hosts += 1;
        self.host_is_valid = self.hosts == 1 && is_host(host);
    }

    fn take_length(&mut self, value: &[u8]) -> Result<(), HeadFault> {
        let is_number = (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
        if self.content_length.is_some() || !is_number {
            return Err(HeadFault::NotHttp("Content-Length is not one number"));
        }
        let add = |sum: u64, digit: &u8| sum * 10 + u64::from(digit - b'0');
        self.content_length = Some(value.iter().fold(0, add));
        Ok(())
    }

    fn take_encoding(&mut self, value: &[u8]) -> Result<(), HeadFault> {
        if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(HeadFault::NotHttp(
                "Transfer-Encoding is not exactly chunked",
            ));
        }
        self.is_chunked = true;
        Ok(())
    }

    fn framing(&self, is_http_1_0: bool) -> Result<Framing, HeadFault> {
        match (self.content_length, self.is_chunked) {
            (Some(_), true) => Err(HeadFault::NotHttp(
                "both Content-Length and Transfer-Encoding",
            )),
            (None, true) if is_http_1_0 => Err(HeadFault::NotHttp("Transfer-Encoding in HTTP/1.0")),
            (None, true) => Ok(Framing::Chunked),
            (Some(0) | None, false) => Ok(Framing::None),
            (Some(length), false) => Ok(Framing::Length(length)),
        }
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
        [b':'] => true,
        [b':', digits @ ..] => {
            let digits = std::str::from_utf8(digits)
                .ok()
                .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
            digits.is_some_and(|digits| digits.parse::<u16>().is_ok())
        }
        _ => false,
    };
    !name.is_empty() && port_is_valid
}

/// `tchar` of RFC 9110 section 5.6.2.
const TOKEN: u8 = 1;
/// `pchar` and `/` of RFC 3986, without `%`.
const PATH: u8 = 2;
/// [`PATH`] and `?`, `[`, `]`.
const QUERY: u8 = 4;
/// `reg-name` of RFC 3986, without `%` and `,`.
const HOST: u8 = 16;

static CLASSES: [u8; 256] = classes();

/// Whether a byte may stand in a field's name: `tchar` of RFC 9110 section 5.6.2.
pub(super) fn is_field_name_byte(byte: u8) -> bool {
    is(byte, TOKEN)
}

/// Whether a byte may stand in a field's value: anything but control characters, of which tabs are allowed.
pub(super) const fn is_field_value_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}

fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "the loop ends at 255")]
        let letter = byte as u8;
        let is_alphanumeric = letter.is_ascii_alphanumeric();
        let is_unreserved = is_alphanumeric || matches!(letter, b'-' | b'.' | b'_' | b'~');
        let is_sub_delim = matches!(
            letter,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
        );
        let is_path = is_unreserved || is_sub_delim || matches!(letter, b':' | b'@' | b'/');
        let is_token = is_alphanumeric
            || matches!(
                letter,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        let mut class = 0;
        if is_token {
            class |= TOKEN;
        }
        if is_path {
            class |= PATH | QUERY;
        }
        if matches!(letter, b'?' | b'[' | b']') {
            class |= QUERY;
        }
        // A comma is how two `Host`s look once somebody joined them.
        if (is_unreserved || is_sub_delim) && letter != b',' {
            class |= HOST;
        }
        classes[byte] = class;
        byte += 1;
    }
    classes
}

#[cfg(test)]
mod tests;
