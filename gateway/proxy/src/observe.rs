//! Observability: one [`Outcome`](outcome::Outcome) per request, and its consumers.
//!
//! | module | subject |
//! | --- | --- |
//! | [`outcome`] | the outcome of a request |
//! | [`access_log`] | one log line per request, and one a minute for each kind of failure |
//! | [`metrics`] | counts requests for `/metrics` |
//! | [`spans`] | the spans of a sampled request |
//! | [`watch`] | requests that operators watch, and the last ones that were rejected |
//! | [`usage`] | counts requests by application and version |
//! | [`per_thread`] | what each thread counts on its own |

pub(crate) mod access_log;
pub(crate) mod metrics;
pub(crate) mod outcome;
pub(crate) mod per_thread;
pub(crate) mod spans;
pub(crate) mod usage;
pub(crate) mod watch;
