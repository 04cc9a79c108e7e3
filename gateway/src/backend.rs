//! The backend's side: a connection from the pool or a new one, the request, the answer's head, its body.
//!
//! | module | subject |
//! | --- | --- |
//! | [`upstream`] | one request: to an address, to the next one if that fails, and the answer's head |
//! | [`retry`] | which failed requests are retried, and where |
//! | [`failure`] | what failed, by cause |
//! | [`connector`] | new connections |
//! | [`pool`] | idle connections |
//! | [`exchange`] | writing a request and reading the head of its answer |
//! | [`answer_head`] | an answer's head, by a strict reading |
//! | [`relay`] | the answer's body, passed on as it arrives |

pub(crate) mod answer_head;
pub(crate) mod connector;
pub(crate) mod exchange;
pub(crate) mod failure;
pub(crate) mod pool;
pub(crate) mod relay;
pub(crate) mod retry;
pub(crate) mod upstream;
