//! The access log: one line per request, without query, body, signature, token, code and credential.
//!
//! The thread of the request formats the line, and adds it to the log's queue. No request waits for the log: if the queue
//! is full, the line is dropped and counted.

use signpost_kit::log::ACCESS_TARGET;
use signpost_protocol::log_text;

use super::outcome::Outcome;
use crate::request::rejection::{Hint, Rejection};

/// Writes the line of a request.
pub(crate) fn write(outcome: &Outcome<'_>) {
    // Whole microseconds: more digits say nothing.
    let duration_ms = (outcome.times.whole().as_secs_f64() * 1e6).round() / 1e3;
    let (learnt, sent) = (&outcome.learnt, &outcome.sent);
    let ident = learnt.app.and_then(|app| app.ident.as_ref());
    let ident = ident.map(|ident| ident.as_str());
    // Of an application that is unknown or disabled.
    let claimed = || outcome.rejection.and_then(Rejection::app_ident);
    let hint = outcome.rejection.and_then(Rejection::hint).map(Hint::name);
    tracing::info!(
        target: ACCESS_TARGET,
        {
        request.id = %outcome.request_id,
        client.addr = %outcome.client,
        app.ident = ident.or_else(claimed).map(display),
        version = learnt.route.map(|route| display(route.version.name())),
        version.source = learnt.route.map(|route| route.source.as_str()),
        backend.addr = sent.backend.map(display),
        http.method = %log_text::method(outcome.method_text()),
        http.path = %log_text::path(outcome.path),
        http.status_code = sent.status,
        problem.code = outcome.problem_code().map(display),
        problem.hint = hint.map(display),
        size_bytes = sent.size,
        duration_ms
        },
        "answered",
    );
}
