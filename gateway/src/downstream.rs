//! The client's side of a connection: strict HTTP/1.1 framing, and nothing left to interpret. CONTRACT 2.
//!
//! pingora's parser is lenient where the contract is strict: it escapes odd bytes of a target, takes
//! bare line feeds, equal `Content-Length` lines and missing `Host`s, and sets a time limit for each
//! read rather than for a whole head. So head and form are read and checked here, in bytes as sent; the
//! gateway decides on them, and pingora gets a request that is whole and verified.
//!
//! | module | subject |
//! | --- | --- |
//! | [`head`] | where a head ends, and whether it is one |
//! | [`chunked`] | chunked bodies decoded |
//! | [`form`] | a form body, read whole |
//! | [`client`] | the connection: what was read ahead, and the socket |
//! | [`connection`] | a connection's life: head, phases, pingora or a rejection, next head |

pub mod chunked;
pub mod client;
pub mod connection;
pub mod form;
pub mod head;
