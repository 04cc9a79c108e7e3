//! Log lines about failures of the gateway, a backend or the store. An outage fails any number of requests, so each kind
//! has a line a minute, with their number and the last one. The access log has each request with its cause.

use std::{error::Error as _, time::Instant};

use signpost_kit::log::once_a_minute::OnceAMinute;
use signpost_protocol::log_text;

use super::outcome::Outcome;
use crate::request::rejection::FailureKind;

/// Counts failed requests by kind, and logs them.
#[derive(Debug, Default)]
pub struct FailureLog([OnceAMinute; FailureKind::COUNT]);

impl FailureLog {
    /// Counts a request that failed, and logs a line if one is due.
    pub fn log(&self, outcome: &Outcome<'_>) {
        let Some(rejection) = outcome.rejection else {
            return;
        };
        let lines = rejection.failure().map(|failure| &self.0[failure as usize]);
        let Some(requests) = lines.and_then(|lines| lines.count(Instant::now())) else {
            return;
        };
        tracing::error!(
            requests,
            problem.code = outcome.problem_code(),
            request.id = %outcome.request_id,
            backend.addr = outcome.sent.backend.map(display),
            http.method = %log_text::method(outcome.method_text()),
            http.path = %log_text::path(outcome.path),
            error = %rejection,
            cause = rejection.source().map(display),
            "requests failed, the last one as follows"
        );
    }
}
