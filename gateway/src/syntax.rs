//! The syntax of HTTP/1.1 messages that both sides share: bytes, lines and fields, by a strict reading of RFC 9112. No I/O.
//!
//! | module | subject |
//! | --- | --- |
//! | [`bytes`] | byte classes |
//! | [`scan`] | finding the end of a head as it arrives |
//! | [`field`] | a field line, and where its parts are |
//! | [`framing`] | the fields that frame a body |
//! | [`chunked`] | decoding a chunked body |

pub(crate) mod bytes;
pub(crate) mod chunked;
pub(crate) mod field;
pub(crate) mod framing;
pub(crate) mod scan;
