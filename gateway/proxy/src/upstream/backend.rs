//! The backend's side: takes a pooled or new connection, sends the request, and reads the head and body of the response.
//!
//! | module | subject |
//! | --- | --- |
//! | [`upstream`] | sends one request, with retries on other addresses, and returns the head of the response |
//! | [`retry`] | decides whether a failed request is retried, and where |
//! | [`failure`] | failures by cause |
//! | [`connector`] | new connections |
//! | [`stream`] | a connection, with or without TLS |
//! | [`pool`] | idle connections |
//! | [`exchange`] | writes a request and reads the head of its response |
//! | [`backend_head`] | strict parser for the head of a response |
//! | [`relay`] | relays the body of a response as it arrives |

pub(crate) mod backend_head;
pub(crate) mod connector;
pub(crate) mod exchange;
pub(crate) mod failure;
pub(crate) mod pool;
pub(crate) mod relay;
pub(crate) mod retry;
pub(crate) mod stream;
pub(crate) mod upstream;
