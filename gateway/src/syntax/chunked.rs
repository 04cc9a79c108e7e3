//! Chunked bodies decoded, by a strict reading of RFC 9112 section 7.1. No I/O.

use super::bytes::{TOKEN, is, is_field_value_byte};

/// Limit of chunk extensions and trailer fields together, in bytes; both end at the gateway. It counts for the whole of a
/// request's body, and for each chunk of an answer's.
const MAX_ASIDE: usize = 1024;
/// Limit of trailer fields. Hardly any program sends one.
const MAX_TRAILERS: u32 = 16;
/// Limit of a chunk size's hex digits: a chunk has less than 4 GiB.
const MAX_SIZE_DIGITS: u32 = 8;

/// Follows a chunked body through its bytes.
#[derive(Debug)]
pub struct ChunkDecoder {
    state: State,
    aside: usize,
    trailers: u32,
    /// Whether each chunk may have as many asides again.
    is_answer: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// In the hex digits; how many there were, and the size so far.
    Size {
        digits: u32,
        size: u64,
    },
    /// Behind `;`, up to the carriage return.
    Extension {
        size: u64,
    },
    /// A line feed must follow; then the data, or the trailers.
    SizeLineFeed {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataReturn,
    DataLineFeed,
    /// At the start of a line behind the last chunk: a trailer, or the end.
    TrailerStart,
    /// In a trailer field's name, of which there is at least a byte.
    TrailerName,
    TrailerValue,
    TrailerLineFeed,
    EndLineFeed,
    Done,
}

/// The bytes are no chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chunked body is malformed")]
pub struct MalformedChunks;

impl ChunkDecoder {
    /// At the first byte of a request's body.
    #[must_use]
    pub const fn for_request() -> Self {
        Self {
            state: State::Size { digits: 0, size: 0 },
            aside: 0,
            trailers: 0,
            is_answer: false,
        }
    }

    /// At the first byte of an answer's body: it may be endless, and each of its chunks may have extensions.
    #[must_use]
    pub(crate) const fn for_answer() -> Self {
        Self {
            is_answer: true,
            ..Self::for_request()
        }
    }

    /// Whether the body's last byte was seen.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Follows `bytes`, adding what they say to `data`; tells how many of them belong to this body, which is
    /// all unless it ends in them.
    ///
    /// # Errors
    ///
    /// A strict reading does not take them.
    pub fn decode(&mut self, bytes: &[u8], data: &mut Vec<u8>) -> Result<usize, MalformedChunks> {
        let mut place = 0;
        while place < bytes.len() && !self.is_done() {
            if let State::Data { left } = self.state {
                let here = usize::try_from(left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len() - place);
                data.extend_from_slice(&bytes[place..place + here]);
                place += here;
                let left = left - here as u64;
                self.state = if left == 0 {
                    State::DataReturn
                } else {
                    State::Data { left }
                };
            } else {
                self.state = self.step(bytes[place])?;
                place += 1;
            }
        }
        Ok(place)
    }

    fn step(&mut self, byte: u8) -> Result<State, MalformedChunks> {
        Ok(match (self.state, byte) {
            (State::Size { digits, size }, _) if byte.is_ascii_hexdigit() => {
                if digits == MAX_SIZE_DIGITS {
                    return Err(MalformedChunks);
                }
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                State::Size {
                    digits: digits + 1,
                    size: size * 16 + digit,
                }
            }
            (State::Size { digits: 1.., size }, b'\r') => State::SizeLineFeed { size },
            (State::Size { digits: 1.., size }, b';') => State::Extension { size },
            (State::Extension { size }, b'\r') => State::SizeLineFeed { size },
            (State::Extension { .. }, b'\t' | b' '..=b'~') => self.aside(self.state)?,
            (State::SizeLineFeed { size: 0 }, b'\n') => State::TrailerStart,
            (State::SizeLineFeed { size }, b'\n') => State::Data { left: size },
            (State::DataReturn, b'\r') => {
                if self.is_answer {
                    self.aside = 0;
                }
                State::DataLineFeed
            }
            (State::DataLineFeed, b'\n') => State::Size { digits: 0, size: 0 },
            (State::TrailerStart, b'\r') => State::EndLineFeed,
            // The grammar of a header field: a token, a colon at once behind it, then anything without control
            // characters. A line that begins with white space would continue the one before.
            (State::TrailerStart, _) if is(byte, TOKEN) => self.trailer()?,
            (State::TrailerName, b':') => self.aside(State::TrailerValue)?,
            (State::TrailerName, _) if is(byte, TOKEN) => self.aside(State::TrailerName)?,
            (State::TrailerValue, b'\r') => State::TrailerLineFeed,
            (State::TrailerValue, _) if is_field_value_byte(byte) => {
                self.aside(State::TrailerValue)?
            }
            (State::TrailerLineFeed, b'\n') => State::TrailerStart,
            (State::EndLineFeed, b'\n') => State::Done,
            _ => return Err(MalformedChunks),
        })
    }

    /// At the first byte of a trailer field.
    fn trailer(&mut self) -> Result<State, MalformedChunks> {
        self.trailers += 1;
        if self.trailers > MAX_TRAILERS {
            return Err(MalformedChunks);
        }
        self.aside(State::TrailerName)
    }

    fn aside(&mut self, next: State) -> Result<State, MalformedChunks> {
        self.aside += 1;
        if self.aside > MAX_ASIDE {
            Err(MalformedChunks)
        } else {
            Ok(next)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data, and how many bytes belong to the body, in however many pieces it comes; `None` while it goes on.
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
    fn the_data_is_what_the_chunks_hold() {
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
    fn extensions_and_trailers_are_read_past() {
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
    fn a_trailer_line_that_is_no_field_is_malformed() {
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
    fn trailer_fields_are_bounded_in_number() {
        let with = |count: u32| {
            let trailers = "T:\r\n".repeat(count as usize);
            length(&format!("0\r\n{trailers}\r\n"))
        };
        assert!(with(MAX_TRAILERS).is_ok());
        assert_eq!(with(MAX_TRAILERS + 1), Err(MalformedChunks));
    }

    #[test]
    fn asides_are_bounded() {
        assert!(length(&format!("1;{}", "x".repeat(MAX_ASIDE))).is_ok());
        assert!(length(&format!("1;{}", "x".repeat(MAX_ASIDE + 1))).is_err());
        assert!(length(&format!("0\r\nT: {}\r\n", "u".repeat(MAX_ASIDE))).is_err());
    }

    #[test]
    fn asides_of_an_answer_are_bounded_for_each_chunk() {
        let chunk = |aside: usize| format!("1;{}\r\nx\r\n", "e".repeat(aside));
        let decode = |body: &str| {
            let mut data = Vec::new();
            ChunkDecoder::for_answer().decode(body.as_bytes(), &mut data)
        };
        assert!(decode(&chunk(MAX_ASIDE).repeat(3)).is_ok());
        assert_eq!(decode(&chunk(MAX_ASIDE + 1)), Err(MalformedChunks));
        assert_eq!(
            length(&chunk(MAX_ASIDE / 2 + 1).repeat(2)),
            Err(MalformedChunks)
        );
    }
}
