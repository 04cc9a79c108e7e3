//! The client's side of a connection, before pingora sees it: strict HTTP/1.1 framing. CONTRACT 2.
//!
//! pingora's parser is lenient where the contract is strict: it escapes odd bytes of a target, takes
//! bare line feeds, equal `Content-Length` lines and missing `Host`s, and sets a time limit for each
//! read rather than for a whole head. So a head is read and checked here, in bytes as sent, and pingora
//! gets it when nothing is left to interpret; a body's end is counted here too, so that pingora
//! never reads into the next request.
//!
//! | module | subject |
//! | --- | --- |
//! | [`head`] | where a head ends, and whether it is one |
//! | [`chunked`] | where a chunked body ends |
//! | [`request_stream`] | the stream that pingora reads one request from |
//! | [`connection`] | a connection's life: head, request, next head |

pub mod chunked;
pub mod connection;
pub mod head;
pub mod request_stream;
