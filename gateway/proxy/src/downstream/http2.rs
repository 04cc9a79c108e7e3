//! The client's side: HTTP/2. CONTRACT 2.
//!
//! The `h2` crate frames and controls the flow. The heads of requests are decoded before it: a malformed one must end its
//! stream alone. Each is written out in the strict form of HTTP/1.1, and judged by the parser for HTTP/1.1. So both
//! protocols have the same rules. The heads of responses are encoded behind it, which takes a fraction of its time.
//!
//! | module | subject |
//! | --- | --- |
//! | [`bounds`] | the limits of a connection |
//! | [`connection`] | the connection loop: accepts streams, serves them, ends the connection |
//! | [`exchange`] | one stream: its body and its response |
//! | [`frames`] | reads the client's frames, and takes the heads of requests out of them; puts those of responses in |
//! | [`hpack`] | decodes and encodes header blocks |
//! | [`head`] | writes a head out in the strict form, and has it parsed |
//! | [`meter`] | counts frames that bring no request forward; what the stream of a connection shares with its loop |
//! | [`response`] | the heads of responses |
//! | [`stream`] | the client's stream below the `h2` crate, with its meter |

pub(crate) mod bounds;
pub(crate) mod connection;
pub(crate) mod exchange;
pub(crate) mod frames;
pub(crate) mod head;
mod hpack;
pub(crate) mod meter;
pub(crate) mod response;
mod stream;

/// The client's first bytes. RFC 9113 section 3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether a connection's first bytes begin HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preface {
    /// Another protocol.
    No,
    /// Too few bytes to decide.
    Maybe,
    /// HTTP/2.
    Yes,
}

/// Whether a connection that begins with `prefix` is HTTP/2 by prior knowledge. RFC 9113 section 3.3.
#[must_use]
pub(crate) fn is_preface(prefix: &[u8]) -> Preface {
    let length = prefix.len().min(PREFACE.len());
    if prefix[..length] != PREFACE[..length] {
        Preface::No
    } else if length < PREFACE.len() {
        Preface::Maybe
    } else {
        Preface::Yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preface_is_found_in_the_first_bytes() {
        assert_eq!(is_preface(b""), Preface::Maybe);
        assert_eq!(is_preface(b"P"), Preface::Maybe);
        assert_eq!(is_preface(b"POST / HTTP/1.1"), Preface::No);
        assert_eq!(is_preface(b"PRI * HTTP/1.1\r\n\r\nSM"), Preface::No);
        assert_eq!(is_preface(&PREFACE[..23]), Preface::Maybe);
        assert_eq!(is_preface(PREFACE), Preface::Yes);
        let with_settings = [PREFACE, b"\0\0\0\x04\0\0\0\0\0"].concat();
        assert_eq!(is_preface(&with_settings), Preface::Yes);
    }
}
