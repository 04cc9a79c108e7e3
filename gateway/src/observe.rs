//! Observability: one [`Outcome`] per request, and its consumers. `usage` is a further one.
//!
//! | module | subject |
//! | --- | --- |
//! | [`outcome`] | the outcome of a request |
//! | [`access_log`] | one log line per request |
//! | [`metrics`] | counts requests for `/metrics` |
//! | [`spans`] | the spans of a sampled request |

pub(crate) mod access_log;
pub(crate) mod metrics;
pub(crate) mod outcome;
pub(crate) mod per_thread;
pub(crate) mod spans;
pub(crate) mod usage;

use signpost_protocol::log_text;

use self::outcome::Outcome;
use crate::request::rejection::Rejection;

/// Logs the cause of a failure of the gateway or a backend.
pub(crate) fn log_failure(outcome: &Outcome<'_>) {
    match outcome.rejection {
        Some(rejection) if rejection.is_logged_as_error() => {
            let method = outcome.method_text();
            let (method, path) = (log_text::method(method), log_text::path(outcome.path));
            let error = tracing::field::display(rejection);
            let cause = std::error::Error::source(rejection).map(|cause| cause.to_string());
            let backend = outcome.sent.backend.map(tracing::field::display);
            tracing::error!(
                request.id = %outcome.request_id, backend.addr = backend, http.method = %method, http.path = %path, error, cause,
                "the request failed"
            );
        }
        Some(Rejection::NotHttp(why)) => {
            tracing::debug!(request.id = %outcome.request_id, why = %why, "rejected what is not HTTP");
        }
        _ => {}
    }
}
