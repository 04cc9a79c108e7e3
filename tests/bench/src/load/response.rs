//! Reads a response as far as a load needs it: its status, its end, and what `Keep` stores.

use anyhow::{Context, bail, ensure};
use memchr::memmem;

/// Limit on the bytes of a head.
const MAX_HEAD: usize = 64 * 1024;

/// Stores parts of a response besides its status and length.
pub(super) trait Keep: Default {
    /// Receives the head of a new answer: status line and fields, to the empty line.
    fn head(&mut self, bytes: &[u8]);
    /// Receives further bytes of the body, without chunk framing.
    fn body(&mut self, bytes: &[u8]);
}

/// Stores nothing.
impl Keep for () {
    fn head(&mut self, _: &[u8]) {}
    fn body(&mut self, _: &[u8]) {}
}

/// Reads one response after another.
#[derive(Debug, Default)]
pub(super) struct ResponseReader<K> {
    head: Vec<u8>,
    body: Option<Body>,
    status: u16,
    closes: bool,
    length: u64,
    kept: K,
}

/// The state after some bytes.
#[derive(Debug)]
pub(super) enum Progress {
    /// The response is incomplete.
    Partial,
    /// The response is complete.
    Whole(Response),
}

/// A complete response.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Length of its body in bytes.
    pub length: u64,
    /// Whether it has `Connection: close`.
    pub closes: bool,
}

/// The missing part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Length(u64),
    Chunked(Chunk),
}

/// The position in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// In a chunk's size; its value so far.
    Size(u64),
    /// After a chunk's size, in the rest of its line; the size.
    SizeLine(u64),
    /// In a chunk's data; the missing bytes, with the line end.
    Data(u64),
    /// In the last chunk's line or a trailer; the bytes of that line so far.
    Trailer(u64),
}

impl<K: Keep> ResponseReader<K> {
    /// What was stored of the last or current answer.
    pub(super) const fn kept(&self) -> &K {
        &self.kept
    }

    /// Reads further bytes.
    ///
    /// # Errors
    ///
    /// When they are not a response, or more than one.
    pub(super) fn read(&mut self, bytes: &[u8]) -> anyhow::Result<Progress> {
        let mut rest = bytes;
        if self.body.is_none() {
            let Some(behind) = self.read_head(bytes)? else {
                return Ok(Progress::Partial);
            };
            rest = behind;
        }
        let Some(body) = &mut self.body else {
            return Ok(Progress::Partial);
        };
        let (is_whole, behind) = body.read(rest, &mut self.length, &mut self.kept)?;
        if !is_whole {
            return Ok(Progress::Partial);
        }
        ensure!(behind.is_empty(), "bytes after the end of a response");
        let response = Response {
            status: self.status,
            length: self.length,
            closes: self.closes,
        };
        self.head.clear();
        self.body = None;
        Ok(Progress::Whole(response))
    }

    /// Returns the bytes after the head, once the head is complete.
    fn read_head<'b>(&mut self, bytes: &'b [u8]) -> anyhow::Result<Option<&'b [u8]>> {
        if self.head.is_empty()
            && let Some(end) = memmem::find(bytes, b"\r\n\r\n")
        {
            // The usual case: the head arrives at once.
            let (head, behind) = bytes.split_at(end + 4);
            self.parse_head(head)?;
            return Ok(Some(behind));
        }
        // The end of the head may be split between two reads.
        let known = self.head.len();
        self.head.extend_from_slice(bytes);
        let Some(end) = memmem::find(&self.head, b"\r\n\r\n") else {
            ensure!(self.head.len() < MAX_HEAD, "a head of more than 64 KiB");
            return Ok(None);
        };
        let head = std::mem::take(&mut self.head);
        self.parse_head(&head[..end + 4])?;
        Ok(Some(&bytes[end + 4 - known..]))
    }

    fn parse_head(&mut self, head: &[u8]) -> anyhow::Result<()> {
        let not_a_response = || format!("not a response: {}", head.escape_ascii());
        let status = head
            .strip_prefix(b"HTTP/1.1 ")
            .and_then(|rest| rest.get(..3));
        self.status =
            number(status.with_context(not_a_response)?, 10).with_context(not_a_response)? as u16;
        self.closes = false;
        self.length = 0;
        let mut body = None;
        for line in head.split(|&byte| byte == b'\n').skip(1) {
            // For most lines the first letter is enough to skip them.
            match line.first() {
                Some(b'c' | b'C') => {
                    if let Some(value) = value_of(line, b"content-length:") {
                        body = Some(Body::Length(
                            number(value, 10).with_context(not_a_response)?,
                        ));
                    } else if let Some(value) = value_of(line, b"connection:") {
                        self.closes = value.eq_ignore_ascii_case(b"close");
                    }
                }
                Some(b't' | b'T') => {
                    if let Some(value) = value_of(line, b"transfer-encoding:")
                        && value.eq_ignore_ascii_case(b"chunked")
                    {
                        body = Some(Body::Chunked(Chunk::Size(0)));
                    }
                }
                _ => {}
            }
        }
        self.body = Some(
            body.with_context(|| format!("a response without length: {}", head.escape_ascii()))?,
        );
        self.kept.head(head);
        Ok(())
    }
}

impl Body {
    /// Returns whether the body is complete, and the bytes after it. Adds its bytes to `length`.
    fn read<'b>(
        &mut self,
        bytes: &'b [u8],
        length: &mut u64,
        kept: &mut impl Keep,
    ) -> anyhow::Result<(bool, &'b [u8])> {
        match self {
            Self::Length(missing) => {
                let taken = bytes.len().min(usize::try_from(*missing)?);
                *missing -= taken as u64;
                *length += taken as u64;
                kept.body(&bytes[..taken]);
                Ok((*missing == 0, &bytes[taken..]))
            }
            Self::Chunked(chunk) => chunk.read(bytes, length, kept),
        }
    }
}

impl Chunk {
    fn read<'b>(
        &mut self,
        mut bytes: &'b [u8],
        length: &mut u64,
        kept: &mut impl Keep,
    ) -> anyhow::Result<(bool, &'b [u8])> {
        while let Some((&byte, behind)) = bytes.split_first() {
            match *self {
                Self::Data(missing) => {
                    let taken = bytes.len().min(usize::try_from(missing)?);
                    // The last two are the line end.
                    let data = usize::try_from(missing.saturating_sub(2))?;
                    kept.body(&bytes[..taken.min(data)]);
                    let missing = missing - taken as u64;
                    bytes = &bytes[taken..];
                    *self = if missing == 0 {
                        Self::Size(0)
                    } else {
                        Self::Data(missing)
                    };
                    continue;
                }
                Self::Size(size) => match char::from(byte).to_digit(16) {
                    Some(digit) => *self = Self::Size(size * 16 + u64::from(digit)),
                    None if matches!(byte, b'\r' | b';') => *self = Self::SizeLine(size),
                    None => bail!("a chunk without a size"),
                },
                Self::SizeLine(size) if byte == b'\n' => {
                    *length += size;
                    *self = if size == 0 {
                        Self::Trailer(0)
                    } else {
                        Self::Data(size + 2)
                    };
                }
                Self::SizeLine(_) => {}
                Self::Trailer(column) => match byte {
                    b'\n' if column == 0 => {
                        return Ok((true, behind));
                    }
                    b'\n' => *self = Self::Trailer(0),
                    b'\r' => {}
                    _ => *self = Self::Trailer(column + 1),
                },
            }
            bytes = behind;
        }
        Ok((false, bytes))
    }
}

fn value_of<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Body(String);

    impl Keep for Body {
        fn head(&mut self, _: &[u8]) {
            self.0.clear();
        }
        fn body(&mut self, bytes: &[u8]) {
            self.0 += str::from_utf8(bytes).unwrap();
        }
    }

    /// Reads a text in pieces of this size, and returns the response and its body.
    fn read(text: &str, piece: usize) -> anyhow::Result<Option<(Response, String)>> {
        let mut reader = ResponseReader::<Body>::default();
        let mut pieces = text.as_bytes().chunks(piece).peekable();
        while let Some(piece) = pieces.next() {
            if let Progress::Whole(response) = reader.read(piece)? {
                assert!(pieces.peek().is_none(), "complete before its end");
                return Ok(Some((response, reader.kept().0.clone())));
            }
        }
        Ok(None)
    }

    #[test]
    fn a_response_is_complete_at_its_end_in_pieces_of_any_size() {
        let responses = [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nTrailer: 1\r\n\r\n",
        ];
        for text in responses {
            for piece in 1..=text.len() {
                let (response, body) = read(text, piece).unwrap().expect("it is complete");
                assert_eq!(
                    (response.status, response.length, response.closes),
                    (200, 5, false)
                );
                assert_eq!(body, "hello");
            }
        }
    }

    #[test]
    fn connection_close_is_recognized() {
        let text = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let (response, _) = read(text, 1000).unwrap().expect("it is complete");
        assert_eq!(
            (response.status, response.length, response.closes),
            (403, 0, true)
        );
    }

    #[test]
    fn anything_else_fails() {
        for text in [
            "HTTP/1.1 200 OK\r\n\r\n",
            "SSH-2.0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx",
        ] {
            assert!(read(text, 1000).is_err(), "{text}");
        }
    }
}
