//! The one access line of a request. Never a query, a body, a sign, a token, a code or a credential.

use std::time::Duration;

use gateway_protocol::problem::ProblemCode;

use crate::{rejection::Rejection, request_context::RequestContext};

/// The `target` of access lines, for filters.
pub const TARGET: &str = "signpost::access";

/// What the line says beside the context.
#[derive(Clone, Copy, Debug)]
pub struct Served<'a> {
    /// The method as sent.
    pub method: &'a str,
    /// The path as sent, without the query.
    pub path: &'a str,
    /// The answer's status; 0 where there was none.
    pub status: u16,
    /// Bytes of the answer's body.
    pub size: usize,
    /// From the head's arrival to the answer's end.
    pub duration: Duration,
}

/// Writes the line, and the cause of a failure that is ours.
pub fn record(served: Served<'_>, context: &RequestContext, rejection: Option<&Rejection>) {
    let Served {
        method,
        path,
        status,
        size,
        duration,
    } = served;
    let duration_ms = duration.as_secs_f64() * 1000.0;
    let route = context.route.as_ref();
    tracing::info!(
        target: TARGET,
        {
        request.id = %context.request_id,
        client.addr = %context.client(),
        app.ident = context.app.as_ref().and_then(|app| app.ident.as_ref()).map(tracing::field::display),
        version = route.map(|route| tracing::field::display(&route.backend.version)),
        version.source = route.map(|route| route.source.as_str()),
        backend.addr = route.map(|route| tracing::field::display(route.backend.address)),
        http.method = method,
        http.path = path,
        http.status_code = status,
        problem.code = rejection.and_then(Rejection::code).map(ProblemCode::as_str),
        size_bytes = size,
        duration_ms
        },
        "{method} {path} {status} in {duration_ms:.1} ms",
    );
    match rejection {
        Some(rejection) if rejection.is_ours() => {
            let cause = std::error::Error::source(rejection).map(|cause| cause.to_string());
            tracing::error!(request.id = %context.request_id, cause, "{method} {path} failed: {rejection}");
        }
        Some(Rejection::NotHttp(why)) => {
            tracing::debug!(request.id = %context.request_id, "refused: {why}");
        }
        _ => {}
    }
}
