//! The client's side: strict HTTP/1.1. CONTRACT 2.
//!
//! | module | subject |
//! | --- | --- |
//! | [`connection`] | the connection loop: read a head, serve the request, read the next head |
//! | [`head`] | where a head ends, and whether a strict reading accepts it |
//! | [`body`] | a request's body, read whole |
//! | [`exchange`] | one request: its body, its answer, and whether the connection goes on |
//! | [`response`] | the one writer of answers' heads and framing |
//! | [`stream`] | the socket, what was read ahead of it, and its timer |

pub(crate) mod body;
pub(crate) mod connection;
pub(crate) mod exchange;
pub(crate) mod head;
pub(crate) mod response;
pub(crate) mod stream;
