//! The HTTP/1.1 syntax that both sides share: bytes, lines and fields, parsed strictly by RFC 9112. No I/O.
//!
//! | module | subject |
//! | --- | --- |
//! | [`bytes`] | byte classes |
//! | [`field`] | finds the end of a head as it arrives; a field line, and the offsets of its parts |
//! | [`path`] | what a path means, however it is written |
//! | [`framing`] | the fields that frame a body |
//! | [`chunked`] | decodes a chunked body |

pub(crate) mod bytes;
pub(crate) mod chunked;
pub(crate) mod field;
pub(crate) mod framing;
pub(crate) mod path;
