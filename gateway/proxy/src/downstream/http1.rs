//! The client's side: strict HTTP/1.1. CONTRACT 2.
//!
//! | module | subject |
//! | --- | --- |
//! | [`connection`] | the connection loop: read a head, serve the request, read the next head |
//! | [`head`] | strict parser for the head of a request |
//! | [`body`] | reads the whole body of a request |
//! | [`exchange`] | one request: its body, its response, and whether the connection is kept alive |
//! | [`response`] | the only writer of response heads and framing |
//! | [`stream`] | the socket, the bytes read ahead, and a timer |

pub(crate) mod body;
pub(crate) mod connection;
pub(crate) mod exchange;
pub(crate) mod head;
pub(crate) mod response;
pub(crate) mod stream;
