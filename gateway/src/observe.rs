//! What is seen of requests: one [`Outcome`] each, and its readers.
//!
//! | module | subject |
//! | --- | --- |
//! | [`outcome`] | how a request ended |
//! | [`access_log`] | a line for each request |

pub(crate) mod access_log;
pub(crate) mod outcome;

use gateway_protocol::log_text;

use self::{access_log::AccessLog, outcome::Outcome};
use crate::rejection::Rejection;

/// Shows how a request ended to the access log, if there is one. Whether there is or not, it logs the cause of a failure that
/// is the gateway's or a backend's.
pub(crate) fn record(outcome: &Outcome<'_>, log: Option<&AccessLog>) {
    if let Some(log) = log {
        log.write(outcome);
    }
    match outcome.rejection {
        Some(rejection) if rejection.is_ours() => {
            let method = outcome.method_text();
            let (method, path) = (log_text::method(method), log_text::path(outcome.path));
            let cause = std::error::Error::source(rejection).map(|cause| cause.to_string());
            tracing::error!(request.id = %outcome.request_id, cause, "{method} {path} failed: {rejection}");
        }
        Some(Rejection::NotHttp(why)) => {
            tracing::debug!(request.id = %outcome.request_id, "refused: {why}");
        }
        _ => {}
    }
}
