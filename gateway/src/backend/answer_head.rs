//! The head of a backend's answer, by a strict reading. RFC 9112 sections 4 and 6.3. No I/O.
//!
//! If two readers could parse it differently, the client gets a 502 and the connection is closed.

use std::ops::Range;

use memchr::memchr;

use crate::syntax::{
    bytes::has_control_but_tabs,
    field::{FieldFault, Fields, NameAndValue, Span, read_fields},
    framing::FramingFields,
    scan::{BareLineFeed, HeadScanner},
};

/// Limit of an answer's head, in bytes: an offset in it has two bytes.
pub(crate) const MAX_HEAD: usize = 64 * 1024 - 1;
/// Limit of an answer's header fields.
pub(crate) const MAX_FIELDS: usize = 256;

/// How every valid status line begins.
const BEGINNING: &[u8] = b"HTTP/1.";

/// Why an answer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedAnswer(pub &'static str);

impl From<FieldFault> for MalformedAnswer {
    fn from(fault: FieldFault) -> Self {
        match fault {
            FieldFault::Malformed(why) => Self(why),
            FieldFault::TooFar => Self("its head is too large"),
        }
    }
}

/// How an answer's body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerBody {
    /// There is none, whatever the fields say: 1xx, 204, 304.
    None,
    /// This many bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// All until the connection is closed.
    UntilClose,
}

/// An answer's head: where its parts are in the bytes that it was read from.
#[derive(Clone, Debug)]
pub struct AnswerHead {
    /// The status, 100 to 599.
    pub status: u16,
    /// How its body is framed.
    pub body: AnswerBody,
    /// Whether the connection can serve another request once the body is read.
    pub keeps_alive: bool,
    reason: Span,
    fields: Fields,
}

/// Finds the end of an answer's head as it arrives.
#[derive(Debug, Default)]
pub struct AnswerScanner(HeadScanner);

impl AnswerScanner {
    /// Scans what has arrived since the last call; `Some` is the head's length, its closing empty line included.
    ///
    /// # Errors
    ///
    /// No HTTP/1, a bare line feed, or more than [`MAX_HEAD`] bytes.
    pub fn scan(&mut self, buffer: &[u8]) -> Result<Option<usize>, MalformedAnswer> {
        let known = buffer.len().min(BEGINNING.len());
        if buffer[..known] != BEGINNING[..known] {
            return Err(MalformedAnswer("it does not begin with HTTP/1"));
        }
        let found = self
            .0
            .scan(buffer)
            .map_err(|BareLineFeed| MalformedAnswer("a line feed without a carriage return"))?;
        match found {
            Some(length) if length <= MAX_HEAD => Ok(Some(length)),
            None if buffer.len() < MAX_HEAD => Ok(None),
            _ => Err(MalformedAnswer("its head is too large")),
        }
    }
}

impl AnswerHead {
    /// Reads a whole head, as [`AnswerScanner`] found it.
    ///
    /// # Errors
    ///
    /// A strict reading does not accept it.
    pub fn read(bytes: &[u8]) -> Result<Self, MalformedAnswer> {
        // The scanner saw to it that a carriage return stands before each line feed.
        let line_end = memchr(b'\n', bytes).and_then(|line_feed| line_feed.checked_sub(1));
        let line_end = line_end.ok_or(MalformedAnswer("no status line"))?;
        let StatusLine {
            is_http_1_0,
            status,
            reason,
        } = status_line(&bytes[..line_end])?;
        let (mut framing, mut fields) = (FramingFields::default(), Fields::new());
        read_fields(bytes, line_end + 2, &mut fields, |_, parts| {
            framing.take(parts)
        })?;
        if fields.len() > MAX_FIELDS {
            return Err(MalformedAnswer("too many headers"));
        }
        framing.check(is_http_1_0)?;
        let body = body(&framing, status);
        let too_large = MalformedAnswer("its head is too large");
        Ok(Self {
            status,
            body,
            keeps_alive: !is_http_1_0
                && !framing.closes
                && body != AnswerBody::UntilClose
                && !announces_body_in_vain(&framing, status),
            reason: Span::new(reason.start, reason.end).ok_or(too_large)?,
            fields,
        })
    }

    /// Whether it announces another answer to the same request.
    #[must_use]
    pub(crate) const fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// The reason phrase, in the bytes that the head was read from.
    #[must_use]
    pub fn reason<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        self.reason.of(bytes)
    }

    /// The fields, in the bytes that the head was read from.
    pub fn fields<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = NameAndValue<'b>> {
        self.fields.iter().map(move |field| field.of(bytes))
    }

    /// The value of the first field of that name.
    #[must_use]
    pub(crate) fn value<'b>(&self, bytes: &'b [u8], wanted: &str) -> Option<&'b [u8]> {
        self.fields(bytes)
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()))
            .map(|(_, value)| value)
    }
}

struct StatusLine {
    is_http_1_0: bool,
    status: u16,
    reason: Range<usize>,
}

/// `HTTP-version SP status-code [ SP reason-phrase ]`. The space before an absent reason phrase is left out by enough
/// servers.
fn status_line(line: &[u8]) -> Result<StatusLine, MalformedAnswer> {
    const LENGTH: usize = b"HTTP/1.1 200".len();
    let malformed = MalformedAnswer("its status line is malformed");
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

/// Whether the backend may send a body where there can be none.
fn announces_body_in_vain(framing: &FramingFields, status: u16) -> bool {
    match status {
        100..200 | 204 => {
            framing.is_chunked || framing.content_length.is_some_and(|length| length > 0)
        }
        // It tells the length that the answer to another request has (RFC 9110 section 8.6).
        304 => framing.is_chunked,
        _ => false,
    }
}

fn body(framing: &FramingFields, status: u16) -> AnswerBody {
    match (framing.content_length, framing.is_chunked) {
        _ if matches!(status, 100..200 | 204 | 304) => AnswerBody::None,
        (_, true) => AnswerBody::Chunked,
        (Some(length), false) => AnswerBody::Length(length),
        (None, false) => AnswerBody::UntilClose,
    }
}

#[cfg(test)]
mod tests;
