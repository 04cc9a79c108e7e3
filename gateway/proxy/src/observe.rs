//! Observability: one [`Outcome`](outcome::Outcome) per request, and its consumers. `usage` is a further one.
//!
//! | module | subject |
//! | --- | --- |
//! | [`outcome`] | the outcome of a request |
//! | [`access_log`] | one log line per request |
//! | [`failure_log`] | one log line a minute for each kind of failure |
//! | [`gateways`] | the gateways of a store |
//! | [`metrics`] | counts requests for `/metrics` |
//! | [`rejections`] | a rejected request, asked for at all gateways |
//! | [`spans`] | the spans of a sampled request |
//! | [`traffic`] | the requests of the last hour, by minute |
//! | [`watch`] | requests that operators watch, and the last ones that were rejected |

pub(crate) mod access_log;
pub(crate) mod failure_log;
pub(crate) mod metrics;
pub(crate) mod outcome;
pub(crate) mod per_thread;
pub(crate) mod spans;
pub(crate) mod usage;
pub(crate) mod watch;
