//! Strict decoder for chunked bodies: RFC 9112 section 7.1. No I/O.

use super::bytes::{TOKEN, is_field_value_byte, is_in_class};

/// Limit of chunk extensions and trailer fields together, in bytes. The gateway discards both. A request's body has one
/// such limit; in a response's body, each chunk has its own.
const MAX_DISCARDED: usize = 1024;
/// Limit of trailer fields; most programs send none.
const MAX_TRAILERS: u32 = 16;
/// Limit of a chunk size's hex digits: chunks are smaller than 4 GiB.
const MAX_SIZE_DIGITS: u32 = 8;

/// Decodes a chunked body as it arrives.
#[derive(Debug)]
pub struct ChunkDecoder {
    state: ChunkState,
    discarded: usize,
    trailers: u32,
    /// Whether the body is a backend's response: then the limit of discarded bytes is per chunk.
    is_response: bool,
}

#[derive(Clone, Copy, Debug)]
enum ChunkState {
    /// In the hex digits: how many were read, and the size so far.
    Size {
        digits: u32,
        size: u64,
    },
    /// Behind `;`, up to the carriage return.
    Extension {
        size: u64,
    },
    /// A line feed must follow; after it, the data or the trailers.
    SizeLineFeed {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataReturn,
    DataLineFeed,
    /// At the start of a line after the last chunk: a trailer, or the end.
    TrailerStart,
    /// In a trailer field's name, after its first byte.
    TrailerName,
    TrailerValue,
    TrailerLineFeed,
    EndLineFeed,
    Done,
}

/// The bytes are not a valid chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chunked body is malformed")]
pub struct MalformedChunks;

impl ChunkDecoder {
    /// Creates a decoder for a request's body.
    #[must_use]
    pub const fn for_request() -> Self {
        Self {
            state: ChunkState::Size { digits: 0, size: 0 },
            discarded: 0,
            trailers: 0,
            is_response: false,
        }
    }

    /// Creates a decoder for a response's body.
    ///
    /// It may be endless with extensions on every chunk, so the limit of discarded bytes is per chunk.
    #[must_use]
    pub(crate) const fn for_response() -> Self {
        Self {
            is_response: true,
            ..Self::for_request()
        }
    }

    /// Whether the body is complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, ChunkState::Done)
    }

    /// Decodes `bytes` and appends the data to `data`. Returns how many bytes belong to this body: all, unless it ends
    /// within them.
    ///
    /// # Errors
    ///
    /// The bytes are malformed, or a limit is exceeded.
    pub fn decode(&mut self, bytes: &[u8], data: &mut Vec<u8>) -> Result<usize, MalformedChunks> {
        let mut offset = 0;
        // Bytes behind the end are not touched: a client may have sent its next request ahead.
        while offset < bytes.len() && !self.is_done() {
            if let ChunkState::Data { left } = self.state {
                let here = usize::try_from(left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len() - offset);
                data.extend_from_slice(&bytes[offset..offset + here]);
                offset += here;
                let left = left - here as u64;
                self.state = if left == 0 {
                    ChunkState::DataReturn
                } else {
                    ChunkState::Data { left }
                };
            } else {
                self.state = self.step(bytes[offset])?;
                offset += 1;
            }
        }
        Ok(offset)
    }

    fn step(&mut self, byte: u8) -> Result<ChunkState, MalformedChunks> {
        Ok(match (self.state, byte) {
            (ChunkState::Size { digits, size }, _) if byte.is_ascii_hexdigit() => {
                // Leading zeros count, too: a size of endless zeros would hold the connection without a byte of data.
                if digits == MAX_SIZE_DIGITS {
                    return Err(MalformedChunks);
                }
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                ChunkState::Size {
                    digits: digits + 1,
                    size: size * 16 + digit,
                }
            }
            // A size has a digit: parsers that take an empty one for 0 would end the body here.
            (ChunkState::Size { digits: 1.., size }, b'\r') => ChunkState::SizeLineFeed { size },
            (ChunkState::Size { digits: 1.., size }, b';') => ChunkState::Extension { size },
            // Only CR LF ends an extension, also within quotes, which may contain neither byte. A server that ends the
            // line at a bare line feed would see other chunks than the gateway (request smuggling).
            (ChunkState::Extension { size }, b'\r') => ChunkState::SizeLineFeed { size },
            (ChunkState::Extension { .. }, b'\t' | b' '..=b'~') => self.discard(self.state)?,
            (ChunkState::SizeLineFeed { size: 0 }, b'\n') => ChunkState::TrailerStart,
            (ChunkState::SizeLineFeed { size }, b'\n') => ChunkState::Data { left: size },
            (ChunkState::DataReturn, b'\r') => {
                if self.is_response {
                    self.discarded = 0;
                }
                ChunkState::DataLineFeed
            }
            (ChunkState::DataLineFeed, b'\n') => ChunkState::Size { digits: 0, size: 0 },
            (ChunkState::TrailerStart, b'\r') => ChunkState::EndLineFeed,
            // The grammar of a header field: a token, a colon directly after it, then a value without control
            // characters. A line that begins with white space would be an obsolete fold.
            (ChunkState::TrailerStart, _) if is_in_class(byte, TOKEN) => self.trailer()?,
            (ChunkState::TrailerName, b':') => self.discard(ChunkState::TrailerValue)?,
            (ChunkState::TrailerName, _) if is_in_class(byte, TOKEN) => {
                self.discard(ChunkState::TrailerName)?
            }
            (ChunkState::TrailerValue, b'\r') => ChunkState::TrailerLineFeed,
            (ChunkState::TrailerValue, _) if is_field_value_byte(byte) => {
                self.discard(ChunkState::TrailerValue)?
            }
            (ChunkState::TrailerLineFeed, b'\n') => ChunkState::TrailerStart,
            (ChunkState::EndLineFeed, b'\n') => ChunkState::Done,
            _ => return Err(MalformedChunks),
        })
    }

    /// Begins a trailer field.
    fn trailer(&mut self) -> Result<ChunkState, MalformedChunks> {
        // Trailers are dropped, never merged into the headers: they would get past every check that the phases have
        // made by then (RFC 9110 section 6.5.1).
        self.trailers += 1;
        if self.trailers > MAX_TRAILERS {
            return Err(MalformedChunks);
        }
        self.discard(ChunkState::TrailerName)
    }

    fn discard(&mut self, next: ChunkState) -> Result<ChunkState, MalformedChunks> {
        self.discarded += 1;
        if self.discarded > MAX_DISCARDED {
            Err(MalformedChunks)
        } else {
            Ok(next)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data, and how many bytes belong to the body, whether it arrives whole or byte by byte; `None` if it is
    /// incomplete.
    fn decoded(body: &str) -> Result<Option<(String, usize)>, MalformedChunks> {
        let decode = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let mut decoder = ChunkDecoder::for_request();
            let (mut data, mut length) = (Vec::new(), 0);
            for piece in pieces {
                length += decoder.decode(piece, &mut data)?;
            }
            let data = String::from_utf8(data).unwrap();
            Ok(decoder.is_done().then_some((data, length)))
        };
        let at_once = decode(&mut std::iter::once(body.as_bytes()))?;
        assert_eq!(
            decode(&mut body.as_bytes().chunks(1))?,
            at_once,
            "{body:?} in pieces"
        );
        Ok(at_once)
    }

    fn length(body: &str) -> Result<Option<usize>, MalformedChunks> {
        Ok(decoded(body)?.map(|(_, length)| length))
    }

    #[test]
    fn chunks_are_decoded() {
        let body = "3\r\nabc\r\n0A;x\r\n0123456789\r\n0\r\nT: u\r\n\r\nGET";
        assert_eq!(decoded(body).unwrap().unwrap().0, "abc0123456789");
        assert_eq!(decoded("0\r\n\r\n").unwrap().unwrap().0, "");
    }

    #[test]
    fn a_body_ends_with_its_last_chunk() {
        assert_eq!(length("3\r\nabc\r\n0\r\n\r\nGET"), Ok(Some(13)));
        assert_eq!(length("0\r\n\r\n"), Ok(Some(5)));
        assert_eq!(
            length("0A\r\n0123456789\r\n1\r\nx\r\n000\r\n\r\n"),
            Ok(Some(29))
        );
        assert_eq!(length("3\r\nabc\r\n"), Ok(None));
        assert_eq!(length("0\r\n"), Ok(None));
    }

    #[test]
    fn extensions_and_trailers_are_skipped() {
        assert_eq!(
            length("3;a=b\r\nabc\r\n0;x\r\nT: u\r\nV: w\r\n\r\n!"),
            Ok(Some(31))
        );
    }

    #[test]
    fn anything_else_is_malformed() {
        for bad in [
            "\r\n",
            "g\r\n",
            "3\nabc",
            "3\r\nabcd",
            "3\r\nabc\n",
            "3\r\nabc\r0",
            "-1\r\n",
            "+1\r\n",
            "0x3\r\n",
            " 3\r\n",
            "3 \r\n",
            "3\r\r\n",
            "123456789\r\n",
            "3;a\nabc",
            "3;\u{0}\r\n",
            "0\r\n\n",
            "0\r\n fold\r\n\r\n",
            "0\r\nT: \u{1}\r\n\r\n",
            "0\r\nT: u\n",
        ] {
            assert_eq!(length(bad), Err(MalformedChunks), "{bad:?}");
        }
    }

    #[test]
    fn an_invalid_trailer_line_is_malformed() {
        for bad in [
            &b"GET /x\r\n"[..],
            b"GET /x HTTP/1.1\r\nHost: a\r\n",
            b"X-T : 1\r\n",
            b": x\r\n",
            b"X\xff: 1\r\n",
            b"X(: 1\r\n",
            b"X\r\n",
            b"X: 1\r\nY\r\n",
            b"X: \x7f\r\n",
            b"X: \x00\r\n",
        ] {
            let body = [b"0\r\n", bad, b"\r\n"].concat();
            for size in [1, body.len()] {
                let (mut decoder, mut data) = (ChunkDecoder::for_request(), Vec::new());
                let decoded = body
                    .chunks(size)
                    .try_for_each(|piece| decoder.decode(piece, &mut data).map(drop));
                assert_eq!(decoded, Err(MalformedChunks), "{}", bad.escape_ascii());
            }
        }
        for good in ["X:\r\n", "X:1\r\n", "X-T:\t \u{fc}\r\nx!#$: a:b\r\n"] {
            let whole = format!("0\r\n{good}\r\n");
            assert_eq!(length(&whole), Ok(Some(whole.len())), "{good:?}");
        }
    }

    #[test]
    fn the_number_of_trailers_is_limited() {
        let with = |count: u32| {
            let trailers = "T:\r\n".repeat(count as usize);
            length(&format!("0\r\n{trailers}\r\n"))
        };
        assert!(with(MAX_TRAILERS).is_ok());
        assert_eq!(with(MAX_TRAILERS + 1), Err(MalformedChunks));
    }

    #[test]
    fn extensions_and_trailers_are_limited() {
        assert!(length(&format!("1;{}", "x".repeat(MAX_DISCARDED))).is_ok());
        assert!(length(&format!("1;{}", "x".repeat(MAX_DISCARDED + 1))).is_err());
        assert!(length(&format!("0\r\nT: {}\r\n", "u".repeat(MAX_DISCARDED))).is_err());
    }

    #[test]
    fn a_responses_extensions_are_limited_for_each_chunk() {
        let chunk = |length: usize| format!("1;{}\r\nx\r\n", "e".repeat(length));
        let decode = |body: &str| {
            let mut data = Vec::new();
            ChunkDecoder::for_response().decode(body.as_bytes(), &mut data)
        };
        assert!(decode(&chunk(MAX_DISCARDED).repeat(3)).is_ok());
        assert_eq!(decode(&chunk(MAX_DISCARDED + 1)), Err(MalformedChunks));
        assert_eq!(
            length(&chunk(MAX_DISCARDED / 2 + 1).repeat(2)),
            Err(MalformedChunks)
        );
    }
}
