//! The backend's side: takes a pooled or new connection, sends the request, and reads the head and body of the answer.
//!
//! | module | subject |
//! | --- | --- |
//! | [`upstream`] | sends one request, with retries on other addresses, and returns the head of the answer |
//! | [`retry`] | decides whether a failed request is retried, and where |
//! | [`failure`] | failures by cause |
//! | [`connector`] | new connections |
//! | [`stream`] | a connection, with or without TLS |
//! | [`pool`] | idle connections |
//! | [`taken`] | counts where the connections of requests come from |
//! | [`exchange`] | writes a request and reads the head of its answer |
//! | [`answer_head`] | strict parser for the head of an answer |
//! | [`relay`] | relays the body of an answer as it arrives |

pub(crate) mod answer_head;
pub(crate) mod connector;
pub(crate) mod exchange;
pub(crate) mod failure;
pub(crate) mod pool;
pub(crate) mod relay;
pub(crate) mod retry;
pub(crate) mod stream;
pub(crate) mod taken;
pub(crate) mod upstream;
