//! Adds an id, a span, a line in the access log, and security headers to each request and its response.

use std::{error::Error, time::Instant};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_LANGUAGE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};
use signpost_kit::{
    config::shared_keys::Log,
    log::{ACCESS_TARGET, is_sampled, with_causes},
};
use signpost_protocol::{
    header::{X_GATEWAY_APP, X_GATEWAY_PROBLEM, X_REQUEST_ID},
    log_text,
};
use tracing::{Instrument, Span, field};

use super::render::Unrendered;
use crate::{
    error::LoginError,
    http::{Context, request::RequestInfo},
};

/// Reads the [`RequestInfo`], serves the request in its span, adds the headers, and logs the result.
pub(super) async fn observe(
    State(context): State<Context>,
    request: Request,
    next: Next,
) -> Response {
    let begun_at = Instant::now();
    let (mut parts, body) = request.into_parts();
    let info = RequestInfo::from_parts(&parts, &context.service.config.headers);
    parts.extensions.insert(info.clone());
    let span = tracing::info_span!(
        "request",
        request.id = %info.id,
        version = %context.version,
        app.ident = field::Empty,
        account.id = field::Empty,
        http.method = %log_text::method(parts.method.as_str()),
        http.path = %log_text::path(parts.uri.path()),
    );
    if let Some(ident) = parts.headers.get(X_GATEWAY_APP) {
        // Not yet verified to come from the gateway, so it is cleaned for the log.
        span.record("app.ident", log_text::ident(ident.as_bytes()));
    }
    let is_health = matches!(parts.uri.path(), "/healthz" | "/readyz");
    let request = Request::from_parts(parts, body);
    let mut response = next.run(request).instrument(span.clone()).await;
    add_headers(&mut response, &info);
    if is_logged(&context.service.config.log, is_health, response.status()) {
        log_access(&span, is_health, &response, begun_at);
    }
    response
}

/// Whether a request gets a line. With `log.access_sample = 0`, only server errors do. Failures are never sampled away. The
/// lines of `/healthz` and `/readyz` have a level of their own.
fn is_logged(log: &Log, is_health: bool, status: StatusCode) -> bool {
    let is_failure = status.is_client_error() || status.is_server_error();
    if log.access_sample > 0 {
        is_failure || is_health || is_sampled(log.access_sample)
    } else {
        status.is_server_error()
    }
}

fn add_headers(response: &mut Response, info: &RequestInfo) {
    let headers = response.headers_mut();
    headers
        .entry(CONTENT_LANGUAGE)
        .or_insert(HeaderValue::from_static(info.language.tag()));
    // Each response concerns one user or login: it must not be cached, nor its URL sent to other sites as the referrer.
    let security_headers: [(HeaderName, &'static str); 3] = [
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in security_headers {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(id) = HeaderValue::from_str(info.id.as_str()) {
        headers.insert(X_REQUEST_ID, id);
    }
    if let Some(Unrendered(error)) = response.extensions().get() {
        // For the gateway's access log; the gateway removes it.
        let code = HeaderValue::from_static(error.code());
        response.headers_mut().insert(X_GATEWAY_PROBLEM, code);
    }
}

/// Logs the access line. Method and path are in the span; the query is not, since it contains states, codes and
/// signatures.
fn log_access(span: &Span, is_health: bool, response: &Response, begun_at: Instant) {
    let _entered = span.enter();
    let status = response.status().as_u16();
    let duration_ms = u64::try_from(begun_at.elapsed().as_millis()).unwrap_or(u64::MAX);
    match response.extensions().get::<Unrendered>() {
        Some(Unrendered(error)) => log_problem(error, status, duration_ms),
        // Monitoring calls these every few seconds.
        None if is_health => {
            tracing::debug!(target: ACCESS_TARGET, { http.status_code = status, duration_ms }, "answered");
        }
        None => {
            tracing::info!(target: ACCESS_TARGET, { http.status_code = status, duration_ms }, "answered");
        }
    }
}

fn log_problem(error: &LoginError, status: u16, duration_ms: u64) {
    let code = error.code();
    tracing::info!(
        target: ACCESS_TARGET,
        { http.status_code = status, problem.code = code, duration_ms, %error },
        "answered"
    );
    // A provider's faults were logged where they occurred. The other 5xx are errors of this service.
    if matches!(error, LoginError::Store(_) | LoginError::Internal { .. }) {
        let cause = error.source().map(with_causes).map(field::display);
        tracing::error!(problem.code = code, %error, cause, "the request failed");
    }
}
