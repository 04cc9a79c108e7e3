//! The only writer of responses: heads, and the framing of bodies. RFC 9112 sections 4, 6 and 7.

use pingora::protocols::http::date::get_cached_date;

use crate::{
    request::{BodyLength, client::ResponseHead},
    wire::syntax::field::{NameAndValue, write_line},
};

/// How a response's body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body follows: the status has none, or the method is `HEAD`.
    None,
    /// `Content-Length`.
    Length,
    /// Each piece is a chunk.
    Chunked,
    /// HTTP/1.0 has no chunks: the body is buffered until its length is known. Until then, the head lacks
    /// `Content-Length` and its closing empty line.
    Held,
    /// The body is too large to be buffered, and ends when the connection closes. Only here can a client not notice
    /// that the response is truncated.
    UntilClose,
}

/// The properties of the client that a response's framing depends on.
#[derive(Clone, Copy, Debug)]
pub struct Recipient {
    /// Whether the client speaks HTTP/1.0.
    pub is_http_1_0: bool,
    /// Whether the method was HEAD.
    pub is_head: bool,
}

impl Recipient {
    /// Chooses the framing of a body of this length.
    #[must_use]
    pub const fn framing(self, body: BodyLength) -> Framing {
        match body {
            _ if self.is_head => Framing::None,
            BodyLength::None => Framing::None,
            BodyLength::Known(_) => Framing::Length,
            BodyLength::Unknown if self.is_http_1_0 => Framing::Held,
            BodyLength::Unknown => Framing::Chunked,
        }
    }
}

/// Writes a response's head: status line, fields, `Date` if it is missing (RFC 9110 section 6.6.1), framing, and
/// `Connection: close` unless the connection is kept alive.
pub(crate) fn write_head<'f>(
    out: &mut Vec<u8>,
    head: ResponseHead<'_>,
    fields: impl Iterator<Item = NameAndValue<'f>>,
    framing: Framing,
    keeps_alive: bool,
) {
    out.reserve(512);
    // Also for an HTTP/1.0 client: a server sends its own version. RFC 9110 section 2.5.
    out.extend_from_slice(b"HTTP/1.1 ");
    write_number(out, u64::from(head.status));
    out.push(b' ');
    out.extend_from_slice(head.reason);
    out.extend_from_slice(b"\r\n");
    put_fields(fields, |name, value| write_line(out, name, value));
    // Also for HEAD: the length that a GET would have. RFC 9110 section 8.6.
    if let BodyLength::Known(length) = head.body {
        write_length(out, length);
    }
    if framing == Framing::Chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    if !keeps_alive {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    if framing != Framing::Held {
        out.extend_from_slice(b"\r\n");
    }
}

/// Passes a response's fields to `put`, and `Date` if it is missing. RFC 9110 section 6.6.1.
pub(crate) fn put_fields<'f>(
    fields: impl Iterator<Item = NameAndValue<'f>>,
    mut put: impl FnMut(&[u8], &[u8]),
) {
    let mut has_date = false;
    // Not a loop: it would ask each part of the chain anew for every field.
    fields.for_each(|(name, value)| {
        has_date |= name.eq_ignore_ascii_case(b"date");
        put(name, value);
    });
    if !has_date {
        put(b"Date", get_cached_date().as_bytes());
    }
}

/// Writes `Content-Length`.
pub(crate) fn write_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"Content-Length: ");
    write_number(out, length);
    out.extend_from_slice(b"\r\n");
}

/// Writes the size line of a chunk. The data and a line end follow.
pub(crate) fn write_chunk_size(out: &mut Vec<u8>, size: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let length = (usize::BITS - size.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..length).rev() {
        out.push(DIGITS[(size >> (4 * digit)) & 0xf]);
    }
    out.extend_from_slice(b"\r\n");
}

fn write_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(digits(&mut [0; 20], number));
}

/// The decimal digits of a number, written to the end of `space`.
pub(crate) fn digits(space: &mut [u8; 20], mut number: u64) -> &[u8] {
    let mut start = space.len();
    loop {
        start -= 1;
        space[start] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            break;
        }
    }
    &space[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(head: ResponseHead<'_>, framing: Framing, keeps_alive: bool) -> String {
        let mut out = Vec::new();
        let fields = [(&b"Date"[..], &b"today"[..]), (b"X-A", b"1")];
        write_head(&mut out, head, fields.into_iter(), framing, keeps_alive);
        String::from_utf8(out).unwrap()
    }

    const OK: ResponseHead<'static> = ResponseHead {
        status: 200,
        reason: b"OK",
        body: BodyLength::Unknown,
    };
    const PLAIN: Recipient = Recipient {
        is_http_1_0: false,
        is_head: false,
    };

    #[test]
    fn a_head_has_the_framing_fields_of_its_body() {
        let start = "HTTP/1.1 200 OK\r\nDate: today\r\nX-A: 1\r\n";
        for (body, lines) in [
            (BodyLength::Unknown, "Transfer-Encoding: chunked\r\n"),
            (BodyLength::Known(0), "Content-Length: 0\r\n"),
            (BodyLength::Known(1_234_567), "Content-Length: 1234567\r\n"),
            (BodyLength::None, ""),
        ] {
            let head = ResponseHead { body, ..OK };
            let head = written(head, PLAIN.framing(body), true);
            assert_eq!(head, format!("{start}{lines}\r\n"));
        }
        let last = written(OK, Framing::UntilClose, false);
        assert_eq!(last, format!("{start}Connection: close\r\n\r\n"));
        let held = written(OK, Framing::Held, false);
        assert_eq!(held, format!("{start}Connection: close\r\n"));
    }

    #[test]
    fn a_missing_date_is_added() {
        let mut out = Vec::new();
        write_head(&mut out, OK, std::iter::empty(), Framing::Chunked, true);
        let head = String::from_utf8(out).unwrap();
        assert!(
            head.contains("\r\nDate: ") && head.contains(" GMT\r\n"),
            "{head}"
        );
    }

    #[test]
    fn http_1_0_gets_no_chunks_and_head_gets_no_body() {
        let old = Recipient {
            is_http_1_0: true,
            ..PLAIN
        };
        assert_eq!(old.framing(BodyLength::Unknown), Framing::Held);
        assert_eq!(old.framing(BodyLength::Known(1)), Framing::Length);
        let head = Recipient {
            is_head: true,
            ..PLAIN
        };
        assert_eq!(head.framing(BodyLength::Known(1)), Framing::None);
    }

    #[test]
    fn chunk_sizes_are_hexadecimal() {
        for size in [1, 9, 15, 16, 255, 256, 4095, 65_536, 1_048_577, usize::MAX] {
            let mut out = Vec::new();
            write_chunk_size(&mut out, size);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{size:x}\r\n"));
        }
    }
}
