//! The access log: one line per request, without query, body, signature, token, code and credential.
//!
//! The thread of the request formats the line, and adds it to the log's queue. No request waits for the log: if the queue
//! is full, the line is dropped and counted.
//!
//! An outage fails any number of requests. So each kind of failure of the gateway, a backend or the store also has a line a
//! minute in the log, with the number of requests and the last one.

use std::{
    error::Error as _,
    time::{Duration, Instant},
};

use signpost_kit::log::{ACCESS_TARGET, once_a_minute::OnceAMinute};
use signpost_protocol::log_text;

use super::outcome::Outcome;
use crate::request::rejection::{FailureKind, Hint, Rejection};

/// What only the access log needs of a request. Header values are as sent.
#[derive(Debug)]
pub(crate) struct RequestFacts<'r> {
    /// The protocol's name and version.
    pub protocol: &'static str,
    /// The version of TLS; `None` without TLS.
    pub tls_version: Option<&'static str>,
    /// `Host`.
    pub host: Option<&'r [u8]>,
    /// `User-Agent`.
    pub user_agent: Option<&'r [u8]>,
    /// The version header.
    pub version: Option<&'r [u8]>,
}

/// Writes the line of a request.
pub(crate) fn write(outcome: &Outcome<'_>, facts: &RequestFacts<'_>) {
    let (learnt, sent, rejection) = (&outcome.learnt, &outcome.sent, outcome.rejection);
    let hint = rejection.and_then(Rejection::hint).map(Hint::name);
    let limit = rejection.and_then(Rejection::limit);
    let error = outcome.error();
    let (host, user_agent) = (
        facts.host.map(log_text::host),
        facts.user_agent.map(log_text::user_agent),
    );
    let (method, path) = (outcome.method_text(), log_text::path(outcome.path));
    let (method, status) = (log_text::method(method), sent.status);
    tracing::info!(
        target: ACCESS_TARGET,
        {
        request.id = %outcome.request_id,
        client.addr = %outcome.client,
        app.ident = outcome.app_ident().map(display),
        version = learnt.route.map(|route| display(route.version.name())),
        version.source = learnt.route.map(|route| route.source.as_str()),
        version.requested = facts.version.map(log_text::ident),
        backend.addr = sent.backend.map(display),
        backend.duration_ms = outcome.times.of_backend().map(milliseconds),
        http.method = %method,
        http.path = %path,
        http.protocol = facts.protocol,
        http.host = host.as_deref(),
        http.user_agent = user_agent.as_deref(),
        tls.version = facts.tls_version,
        http.status_code = status,
        problem.code = outcome.problem_code().map(display),
        problem.hint = hint.map(display),
        problem.limit = limit.map(|limit| display(limit.as_str())),
        error = error.map(display),
        cause = error.and_then(|error| error.source()).map(display),
        size_bytes = sent.size,
        duration_ms = milliseconds(outcome.times.whole()),
        },
        "answered {method} {path} with {status}",
    );
}

/// Milliseconds, in whole microseconds: more digits say nothing.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

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
