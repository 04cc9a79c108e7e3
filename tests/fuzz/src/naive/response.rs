//! The head of a backend's response. Sources: RFC 9112 sections 4 to 6, RFC 9110 section 5.
//!
//! Stricter than the RFC where two parsers could frame the body differently: `Content-Length` at most once, one number;
//! `Transfer-Encoding` at most once, exactly `chunked`, never with `Content-Length` and never in HTTP/1.0.

use super::text::{field, has_bare_line_feed, head_length, is_value_byte};
use super::text::{length, lines, values};

/// Limit on the bytes of a head, closing empty line included.
pub const MAX_BYTES: usize = 65_535;
/// Limit on header fields.
pub const MAX_FIELDS: usize = 256;

/// The framing of the body that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// No body: 1xx, 204 and 304.
    None,
    /// This number of bytes.
    Length(u64),
    /// Chunks.
    Chunked,
    /// All bytes until the connection is closed.
    UntilClose,
}

/// The parts of a response's head, as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// Bytes up to the end of the closing empty line.
    pub length: usize,
    /// Whether the version is HTTP/1.0; else it is HTTP/1.1.
    pub is_http_1_0: bool,
    /// The status, 100 to 599.
    pub status: u16,
    /// The text after the space that follows the status, may be empty; `None` without that space.
    pub reason: Option<&'a [u8]>,
    /// Names and values in order.
    pub fields: Vec<(&'a [u8], &'a [u8])>,
    /// The framing of the body, unless the request method rules a body out.
    pub body: Body,
}

/// The head is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Parses the head that `input` begins with; `None` while it is incomplete.
///
/// # Errors
///
/// When the head is malformed, at the latest once it is complete or too long.
pub fn read(input: &[u8]) -> Result<Option<Response<'_>>, Malformed> {
    let end = head_length(input);
    let received = &input[..end.unwrap_or(input.len())];
    match end {
        _ if has_bare_line_feed(received) => Err(Malformed),
        Some(end) if end <= MAX_BYTES => read_whole(received).ok_or(Malformed).map(Some),
        None if received.len() < MAX_BYTES => Ok(None),
        _ => Err(Malformed),
    }
}

fn read_whole(head: &[u8]) -> Option<Response<'_>> {
    let mut lines = lines(head).into_iter();
    let (is_http_1_0, status, reason) = status_line(lines.next()?)?;
    let fields: Vec<_> = lines.map(field).collect::<Option<_>>()?;
    if fields.len() > MAX_FIELDS {
        return None;
    }
    let lengths = values(&fields, "content-length");
    let encodings = values(&fields, "transfer-encoding");
    let framed = match (&lengths[..], &encodings[..]) {
        ([], []) => Body::UntilClose,
        ([value], []) => Body::Length(length(value)?),
        ([], [encoding]) if encoding.eq_ignore_ascii_case(b"chunked") && !is_http_1_0 => {
            Body::Chunked
        }
        _ => return None,
    };
    let body = match status {
        100..=199 | 204 | 304 => Body::None,
        _ => framed,
    };
    Some(Response {
        length: head.len(),
        is_http_1_0,
        status,
        reason,
        fields,
        body,
    })
}

/// `HTTP-version SP status-code [ SP reason-phrase ]`.
fn status_line(line: &[u8]) -> Option<(bool, u16, Option<&[u8]>)> {
    let (is_http_1_0, rest) = match line {
        [
            b'H',
            b'T',
            b'T',
            b'P',
            b'/',
            b'1',
            b'.',
            b'1',
            b' ',
            rest @ ..,
        ] => (false, rest),
        [
            b'H',
            b'T',
            b'T',
            b'P',
            b'/',
            b'1',
            b'.',
            b'0',
            b' ',
            rest @ ..,
        ] => (true, rest),
        _ => return None,
    };
    let (digits, reason) = match rest {
        [_, _, _] => (rest, None),
        [_, _, _, b' ', reason @ ..] => (&rest[..3], Some(reason)),
        _ => return None,
    };
    let status = (100..=599).find(|status: &u16| status.to_string().as_bytes() == digits)?;
    let is_text = reason.is_none_or(|reason| reason.iter().all(|&byte| is_value_byte(byte)));
    is_text.then_some((is_http_1_0, status, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(head: &str) -> Option<Body> {
        read(head.as_bytes()).unwrap().map(|response| response.body)
    }

    #[test]
    fn a_head_is_parsed() {
        let head = b"HTTP/1.1 404 Not Found\r\nA:b\r\nC: \td e\t\r\nContent-Length: 3\r\n\r\nabc";
        let response = read(head).unwrap().unwrap();
        assert_eq!(response.length, head.len() - 3);
        assert_eq!((response.is_http_1_0, response.status), (false, 404));
        assert_eq!(response.reason, Some(&b"Not Found"[..]));
        let fields: [(&[u8], &[u8]); 3] = [(b"A", b"b"), (b"C", b"d e"), (b"Content-Length", b"3")];
        assert_eq!(response.fields, fields);
        assert_eq!(response.body, Body::Length(3));
    }

    #[test]
    fn the_head_decides_the_framing_of_the_body() {
        for (head, framed) in [
            ("HTTP/1.1 200\r\n\r\n", Body::UntilClose),
            ("HTTP/1.0 200 \r\n\r\n", Body::UntilClose),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                Body::Length(0),
            ),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n",
                Body::Chunked,
            ),
            ("HTTP/1.1 100 Continue\r\n\r\n", Body::None),
            ("HTTP/1.1 204 No Content\r\n\r\n", Body::None),
            (
                "HTTP/1.1 304 \u{e9}\r\nContent-Length: 7\r\n\r\n",
                Body::None,
            ),
        ] {
            assert_eq!(body(head), Some(framed), "{head:?}");
        }
    }

    #[test]
    fn an_incomplete_head_is_none() {
        for head in [
            "",
            "H",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nA: b\r\n\r",
        ] {
            assert_eq!(body(head), None, "{head:?}");
        }
    }

    #[test]
    fn anything_else_is_malformed() {
        for head in [
            "\r\n\r\n",
            "HTTP/1.2 200 OK\r\n\r\n",
            "HTTP/1.1  200 OK\r\n\r\n",
            "HTTP/1.1 99 OK\r\n\r\n",
            "HTTP/1.1 099 OK\r\n\r\n",
            "HTTP/1.1 600 OK\r\n\r\n",
            "HTTP/1.1 2000\r\n\r\n",
            "HTTP/1.1 200OK\r\n\r\n",
            "HTTP/1.1 200 O\u{0}K\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
            "HTTP/1.1 200 OK\nA: b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1234567890123456789\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert_eq!(read(head.as_bytes()), Err(Malformed), "{head:?}");
        }
    }

    #[test]
    fn limits_are_inclusive() {
        let with = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        assert!(read(with(&"A:\r\n".repeat(MAX_FIELDS)).as_bytes()).is_ok());
        assert!(read(with(&"A:\r\n".repeat(MAX_FIELDS + 1)).as_bytes()).is_err());
        let room = MAX_BYTES - with("A:\r\n").len();
        assert!(read(with(&format!("A:{}\r\n", "a".repeat(room))).as_bytes()).is_ok());
        assert!(read(with(&format!("A:{}\r\n", "a".repeat(room + 1))).as_bytes()).is_err());
        assert!(read("a".repeat(MAX_BYTES - 1).as_bytes()) == Ok(None));
        assert!(read("a".repeat(MAX_BYTES).as_bytes()).is_err());
    }
}
