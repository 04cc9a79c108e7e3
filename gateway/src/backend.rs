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

pub mod answer_head;
pub mod connector;
pub mod exchange;
pub mod failure;
pub mod pool;
pub mod relay;
pub mod retry;
pub mod upstream;
