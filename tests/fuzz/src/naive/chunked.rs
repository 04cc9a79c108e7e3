//! A chunked body. Sources: RFC 9112 section 7.1, CONTRACT 2.
//!
//! Stricter than the RFC: a size has at most 8 digits; extensions (after the first `;` of their line) and trailer
//! lines (without line ends) have at most 1,024 bytes together; at most 16 trailers.

use super::text::{is_token_byte, is_value_byte};

const MAX_SIZE_DIGITS: usize = 8;
const MAX_EXTRA: usize = 1024;
const MAX_TRAILERS: usize = 16;

/// The result of parsing a body, as far as it could be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// How the parsing ended.
    pub end: End,
    /// The chunks' data up to there.
    pub data: Vec<u8>,
}

/// How the parsing of a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The body is complete: this number of bytes of the input.
    Whole(usize),
    /// The input ends within the body.
    Incomplete,
    /// It is not a chunked body.
    Malformed,
}

/// Parses the body that `input` begins with.
#[must_use]
pub fn read(input: &[u8]) -> Reading {
    let mut body = Body {
        rest: input,
        data: Vec::new(),
        extra: 0,
    };
    let end = match body.read() {
        Ok(()) => End::Whole(input.len() - body.rest.len()),
        Err(end) => end,
    };
    Reading {
        end,
        data: body.data,
    }
}

struct Body<'a> {
    rest: &'a [u8],
    data: Vec<u8>,
    extra: usize,
}

impl Body<'_> {
    fn read(&mut self) -> Result<(), End> {
        loop {
            let size = self.size_line()?;
            if size == 0 {
                break;
            }
            self.chunk(size)?;
        }
        let mut trailers = 0;
        while self.peek()? != b'\r' {
            trailers += 1;
            if trailers > MAX_TRAILERS {
                return Err(End::Malformed);
            }
            self.trailer()?;
        }
        self.line_end()
    }

    /// `chunk-size [ chunk-ext ] CRLF`, where an extension is any text.
    fn size_line(&mut self) -> Result<usize, End> {
        let mut digits = String::new();
        while self.peek()?.is_ascii_hexdigit() {
            digits.push(char::from(self.next()?));
            if digits.len() > MAX_SIZE_DIGITS {
                return Err(End::Malformed);
            }
        }
        let size = usize::from_str_radix(&digits, 16).map_err(|_| End::Malformed)?;
        if self.peek()? == b';' {
            self.next()?;
            while self.peek()? != b'\r' {
                self.extra(|byte| is_value_byte(byte) && byte.is_ascii())?;
            }
        }
        self.line_end()?;
        Ok(size)
    }

    /// `chunk-data CRLF`.
    fn chunk(&mut self, size: usize) -> Result<(), End> {
        for _ in 0..size {
            let byte = self.next()?;
            self.data.push(byte);
        }
        self.line_end()
    }

    /// `field-name ":" field-value CRLF`.
    fn trailer(&mut self) -> Result<(), End> {
        self.extra(is_token_byte)?;
        while self.peek()? != b':' {
            self.extra(is_token_byte)?;
        }
        self.extra(|byte| byte == b':')?;
        while self.peek()? != b'\r' {
            self.extra(is_value_byte)?;
        }
        self.line_end()
    }

    /// A byte of an extension or a trailer, counted against their common limit.
    fn extra(&mut self, is_allowed: fn(u8) -> bool) -> Result<(), End> {
        self.extra += 1;
        if is_allowed(self.next()?) && self.extra <= MAX_EXTRA {
            Ok(())
        } else {
            Err(End::Malformed)
        }
    }

    fn line_end(&mut self) -> Result<(), End> {
        for expected in *b"\r\n" {
            if self.next()? != expected {
                return Err(End::Malformed);
            }
        }
        Ok(())
    }

    fn peek(&self) -> Result<u8, End> {
        self.rest.first().copied().ok_or(End::Incomplete)
    }

    fn next(&mut self) -> Result<u8, End> {
        let byte = self.peek()?;
        self.rest = &self.rest[1..];
        Ok(byte)
    }
}
