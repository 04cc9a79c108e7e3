//! Reads an answer as far as a load needs it: its status, where it ends, and what is to be kept of it.

use anyhow::{Context, bail, ensure};
use memchr::memmem;

/// No answer's head is so long.
const LONGEST_HEAD: usize = 64 * 1024;

/// What is kept of an answer besides its status and its length.
pub(super) trait Keep: Default {
    /// A head begins an answer: its status line and fields, to the empty line.
    fn head(&mut self, bytes: &[u8]);
    /// Further bytes of the body, without what frames chunks.
    fn body(&mut self, bytes: &[u8]);
}

/// Nothing.
impl Keep for () {
    fn head(&mut self, _: &[u8]) {}
    fn body(&mut self, _: &[u8]) {}
}

/// Reads one answer after another.
#[derive(Debug, Default)]
pub(super) struct AnswerReader<K> {
    head: Vec<u8>,
    body: Option<Body>,
    status: u16,
    closes: bool,
    length: u64,
    kept: K,
}

/// What is there after some bytes.
#[derive(Debug)]
pub(super) enum Progress {
    /// More has to come.
    Partial,
    /// All of it.
    Whole(Answer),
}

/// A whole answer.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Bytes of its body.
    pub length: u64,
    /// Whether the server said that it closes the connection.
    pub closes: bool,
}

/// How much of a body is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Length(u64),
    Chunked(Chunk),
}

/// Where in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// In a chunk's size, which is so far this.
    Size(u64),
    /// Behind the size, until the line's end.
    SizeLine(u64),
    /// So many bytes before the chunk's end, its line's end among them.
    Data(u64),
    /// In the last chunk's line or a trailer, so many bytes into it.
    Trailer(u64),
}

impl<K: Keep> AnswerReader<K> {
    /// What was kept of the last answer, or of the one that has begun.
    pub(super) const fn kept(&self) -> &K {
        &self.kept
    }

    /// Reads further bytes.
    ///
    /// # Errors
    ///
    /// They are no answer, or more than one.
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
        ensure!(behind.is_empty(), "bytes behind an answer's end");
        let answer = Answer {
            status: self.status,
            length: self.length,
            closes: self.closes,
        };
        self.head.clear();
        self.body = None;
        Ok(Progress::Whole(answer))
    }

    /// Gives what is behind the head, once that is whole.
    fn read_head<'b>(&mut self, bytes: &'b [u8]) -> anyhow::Result<Option<&'b [u8]>> {
        if self.head.is_empty()
            && let Some(end) = memmem::find(bytes, b"\r\n\r\n")
        {
            // Nearly always: a head comes whole.
            let (head, behind) = bytes.split_at(end + 4);
            self.understand(head)?;
            return Ok(Some(behind));
        }
        // The end of the head may lie across two reads.
        let known = self.head.len();
        self.head.extend_from_slice(bytes);
        let Some(end) = memmem::find(&self.head, b"\r\n\r\n") else {
            ensure!(self.head.len() < LONGEST_HEAD, "a head without an end");
            return Ok(None);
        };
        let head = std::mem::take(&mut self.head);
        self.understand(&head[..end + 4])?;
        Ok(Some(&bytes[end + 4 - known..]))
    }

    fn understand(&mut self, head: &[u8]) -> anyhow::Result<()> {
        let no_answer = || format!("no answer: {}", head.escape_ascii());
        let status = head
            .strip_prefix(b"HTTP/1.1 ")
            .and_then(|rest| rest.get(..3));
        self.status = number(status.with_context(no_answer)?, 10).with_context(no_answer)? as u16;
        self.closes = false;
        self.length = 0;
        let mut body = None;
        for line in head.split(|&byte| byte == b'\n').skip(1) {
            // Of each line the first letter decides, nearly always, that it is of no interest.
            match line.first() {
                Some(b'c' | b'C') => {
                    if let Some(value) = value_of(line, b"content-length:") {
                        body = Some(Body::Length(number(value, 10).with_context(no_answer)?));
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
        self.body = Some(body.with_context(|| format!("no length: {}", head.escape_ascii()))?);
        self.kept.head(head);
        Ok(())
    }
}

impl Body {
    /// Whether the body is whole, and what is behind it. `length` counts its bytes.
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
                    // The last two are the line's end.
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

    /// Reads a text in pieces of a size, and says what came out and when, and the body.
    fn read(text: &str, piece: usize) -> anyhow::Result<Option<(Answer, String)>> {
        let mut reader = AnswerReader::<Body>::default();
        let mut pieces = text.as_bytes().chunks(piece).peekable();
        while let Some(piece) = pieces.next() {
            if let Progress::Whole(answer) = reader.read(piece)? {
                assert!(pieces.peek().is_none(), "whole before its end");
                return Ok(Some((answer, reader.kept().0.clone())));
            }
        }
        Ok(None)
    }

    #[test]
    fn an_answer_is_whole_at_its_end_however_it_comes() {
        let answers = [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nTrailer: 1\r\n\r\n",
        ];
        for text in answers {
            for piece in 1..=text.len() {
                let (answer, body) = read(text, piece).unwrap().expect("it is whole");
                assert_eq!(
                    (answer.status, answer.length, answer.closes),
                    (200, 5, false)
                );
                assert_eq!(body, "hello");
            }
        }
    }

    #[test]
    fn what_closes_says_so() {
        let text = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let (answer, _) = read(text, 1000).unwrap().expect("it is whole");
        assert_eq!(
            (answer.status, answer.length, answer.closes),
            (403, 0, true)
        );
    }

    #[test]
    fn what_is_no_answer_fails() {
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
