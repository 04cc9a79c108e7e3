//! Strict parser for the head of a backend's response. RFC 9112 sections 4 and 6.3. No I/O.
//!
//! If two parsers could read a head differently, the client gets a 502 and the backend connection is closed.

use std::ops::Range;

use memchr::memchr;

use signpost_protocol::header::X_REQUEST_ID;

use crate::{
    request::BodyLength,
    wire::syntax::{
        bytes::has_control_but_tabs,
        field::{BareLineFeed, FieldFault, Fields, HeadScanner, NameAndValue, Span, read_fields},
        framing::FramingFields,
    },
};

/// Limit of a response's head, in bytes: offsets in it have two bytes.
pub(crate) const MAX_HEAD: usize = 64 * 1024 - 1;
/// Limit of a response's header fields.
pub(crate) const MAX_FIELDS: usize = 256;

/// The beginning of every valid status line.
const BEGINNING: &[u8] = b"HTTP/1.";

/// Why a response is rejected, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedResponse(pub &'static str);

impl From<FieldFault> for MalformedResponse {
    fn from(fault: FieldFault) -> Self {
        match fault {
            FieldFault::Malformed(why) => Self(why),
            FieldFault::TooFar => Self("its head is too large"),
        }
    }
}

/// How a response's body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseBody {
    /// No body, even if the fields announce one: 1xx, 204, 304.
    None,
    /// `Content-Length`, in bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// It ends when the backend closes the connection.
    UntilClose,
}

impl ResponseBody {
    /// Whether it may have any bytes.
    pub(crate) const fn has_bytes(self) -> bool {
        !matches!(self, Self::None | Self::Length(0))
    }
}

impl From<ResponseBody> for BodyLength {
    fn from(body: ResponseBody) -> Self {
        match body {
            ResponseBody::None => Self::None,
            ResponseBody::Length(length) => Self::Known(length),
            ResponseBody::Chunked | ResponseBody::UntilClose => Self::Unknown,
        }
    }
}

/// A response's head: the offsets of its parts in the bytes that it was parsed from.
#[derive(Clone, Debug)]
pub struct BackendHead {
    /// The status, 100 to 599.
    pub status: u16,
    /// How the body is framed.
    pub body: ResponseBody,
    /// Whether the connection can be reused once the body is read.
    pub keeps_alive: bool,
    /// Whether it has `X-Request-Id`.
    pub(crate) has_request_id: bool,
    reason: Span,
    fields: Fields,
}

/// Finds the end of a response's head as it arrives.
#[derive(Debug, Default)]
pub struct ResponseScanner(HeadScanner);

impl ResponseScanner {
    /// Scans the bytes that arrived since the last call. Returns the head's length, with its closing empty line, or
    /// `None` if the head is incomplete.
    ///
    /// # Errors
    ///
    /// Not HTTP/1, a bare line feed, or more than [`MAX_HEAD`] bytes.
    pub fn scan(&mut self, buffer: &[u8]) -> Result<Option<usize>, MalformedResponse> {
        // Judged by the first bytes: a backend that speaks TLS, for example, may never send a line end.
        let known = buffer.len().min(BEGINNING.len());
        if buffer[..known] != BEGINNING[..known] {
            return Err(MalformedResponse("it does not begin with HTTP/1"));
        }
        let end = self
            .0
            .scan(buffer)
            .map_err(|BareLineFeed| MalformedResponse("a line feed without a carriage return"))?;
        match end {
            Some(length) if length <= MAX_HEAD => Ok(Some(length)),
            None if buffer.len() < MAX_HEAD => Ok(None),
            _ => Err(MalformedResponse("its head is too large")),
        }
    }
}

impl BackendHead {
    /// Parses a complete head, as found by [`ResponseScanner`].
    ///
    /// # Errors
    ///
    /// The head is malformed or ambiguous.
    pub fn read(bytes: &[u8]) -> Result<Self, MalformedResponse> {
        // The scanner has checked that a carriage return precedes each line feed.
        let line_end = memchr(b'\n', bytes).and_then(|line_feed| line_feed.checked_sub(1));
        let line_end = line_end.ok_or(MalformedResponse("no status line"))?;
        let StatusLine {
            is_http_1_0,
            status,
            reason,
        } = status_line(&bytes[..line_end])?;
        let (mut framing, mut fields) = (FramingFields::default(), Fields::new());
        let mut has_request_id = false;
        read_fields(bytes, line_end + 2, &mut fields, |_, parts| {
            has_request_id |= is_request_id(parts.0);
            framing.take(parts)
        })?;
        if fields.len() > MAX_FIELDS {
            return Err(MalformedResponse("too many headers"));
        }
        framing.check(is_http_1_0)?;
        let body = body(&framing, status);
        let too_large = MalformedResponse("its head is too large");
        Ok(Self {
            status,
            body,
            // If bytes may follow that the framing does not count, they would be read as the response to the next
            // request.
            keeps_alive: !is_http_1_0
                && !framing.closes
                && body != ResponseBody::UntilClose
                && !announces_forbidden_body(&framing, status),
            has_request_id,
            reason: Span::new(reason.start, reason.end).ok_or(too_large)?,
            fields,
        })
    }

    /// Whether it is an interim response (1xx), which another response to the same request follows.
    ///
    /// # Errors
    ///
    /// A 101, or an interim response with a body.
    pub(crate) const fn is_interim(&self) -> Result<bool, MalformedResponse> {
        match self.status {
            // The gateway never forwards `Upgrade`.
            101 => Err(MalformedResponse("a 101 without an upgrade request")),
            // `keeps_alive` is false if its fields announce a body, whose bytes would be read as the next head.
            100..200 if !self.keeps_alive => {
                Err(MalformedResponse("an interim response with a body"))
            }
            status => Ok(status < 200),
        }
    }

    /// The reason phrase; `bytes` are those that the head was parsed from.
    #[must_use]
    pub fn reason<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        self.reason.slice(bytes)
    }

    /// The fields; `bytes` are those that the head was parsed from.
    pub fn fields<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = NameAndValue<'b>> {
        self.fields
            .iter()
            .map(move |field| field.name_and_value(bytes))
    }

    /// Whether one of its `X-Request-Id` is this id.
    #[must_use]
    pub(crate) fn echoes(&self, bytes: &[u8], id: &[u8]) -> bool {
        self.fields(bytes)
            .any(|(name, value)| is_request_id(name) && value == id)
    }

    /// The value of the first field with this name.
    #[must_use]
    pub fn value<'b>(&self, bytes: &'b [u8], wanted: &str) -> Option<&'b [u8]> {
        self.fields(bytes)
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()))
            .map(|(_, value)| value)
    }
}

fn is_request_id(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(X_REQUEST_ID.as_str().as_bytes())
}

struct StatusLine {
    is_http_1_0: bool,
    status: u16,
    reason: Range<usize>,
}

/// Parses `HTTP-version SP status-code [ SP reason-phrase ]`. Many servers omit the space if the reason phrase is
/// empty.
fn status_line(line: &[u8]) -> Result<StatusLine, MalformedResponse> {
    const LENGTH: usize = b"HTTP/1.1 200".len();
    let malformed = MalformedResponse("its status line is malformed");
    let (version_and_status, rest) = line.split_at_checked(LENGTH).ok_or(malformed)?;
    let is_http_1_0 = match &version_and_status[..9] {
        b"HTTP/1.1 " => false,
        b"HTTP/1.0 " => true,
        _ => return Err(malformed),
    };
    let digits = &version_and_status[9..];
    if !digits.iter().all(u8::is_ascii_digit) || !matches!(rest, [] | [b' ', ..]) {
        return Err(malformed);
    }
    let add = |sum: u16, digit: &u8| sum * 10 + u16::from(digit - b'0');
    let status = digits.iter().fold(0, add);
    if !(100..=599).contains(&status) || has_control_but_tabs(rest) {
        return Err(malformed);
    }
    Ok(StatusLine {
        is_http_1_0,
        status,
        reason: (LENGTH + 1).min(line.len())..line.len(),
    })
}

/// Whether the fields announce a body that the status does not allow. The backend may send it nevertheless.
fn announces_forbidden_body(framing: &FramingFields, status: u16) -> bool {
    match status {
        100..200 | 204 => {
            framing.is_chunked || framing.content_length.is_some_and(|length| length > 0)
        }
        // Its `Content-Length` belongs to the 200 it stands for (RFC 9110 section 8.6).
        304 => framing.is_chunked,
        _ => false,
    }
}

fn body(framing: &FramingFields, status: u16) -> ResponseBody {
    match (framing.content_length, framing.is_chunked) {
        _ if matches!(status, 100..200 | 204 | 304) => ResponseBody::None,
        (_, true) => ResponseBody::Chunked,
        (Some(length), false) => ResponseBody::Length(length),
        (None, false) => ResponseBody::UntilClose,
    }
}

#[cfg(test)]
mod tests;
