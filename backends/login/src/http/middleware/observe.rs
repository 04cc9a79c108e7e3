//! Adds an id, a span, a line in the access log, and security headers to each request and its response.

use std::{error::Error, time::Instant};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{
    HeaderName, HeaderValue,
    header::{
        CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_TYPE, LINK, REFERRER_POLICY,
        X_CONTENT_TYPE_OPTIONS,
    },
    request::Parts,
};
use signpost_kit::log::{ACCESS_TARGET, has_access_line, with_causes};
use signpost_protocol::{
    header::{X_GATEWAY_APP, X_GATEWAY_BRIDGE, X_GATEWAY_PROBLEM, X_REQUEST_ID},
    log_text,
};
use tracing::{Instrument, Span, field};

use super::render::Unrendered;
use crate::{
    error::LoginError,
    http::{Context, request::RequestInfo},
    service::State as ServiceState,
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
    let span = span(&parts, &info, &context);
    let is_bridged = parts.headers.contains_key(X_GATEWAY_BRIDGE);
    let is_health = matches!(parts.uri.path(), "/healthz" | "/readyz");
    // For the access line: the request is gone once it is served.
    let (method, uri) = (parts.method.clone(), parts.uri.clone());
    let request = Request::from_parts(parts, body);
    let mut response = next.run(request).instrument(span.clone()).await;
    add_headers(&mut response, &info);
    if !is_health && !is_bridged {
        link_to_document(&mut response);
    }
    let error = response.extensions().get();
    let is_failure = response.status().is_client_error() || response.status().is_server_error();
    // The lines of `/healthz` and `/readyz` have a level of their own.
    let sample = context.service.config.log.access_sample;
    let has_line = has_access_line(sample, is_failure || is_health);
    if has_line || error.is_some() {
        // Without the query, which contains states, codes and signatures.
        let (method, path) = (
            log_text::method(method.as_str()),
            log_text::path(uri.path()),
        );
        let status = response.status().as_u16();
        let line = Line {
            text: format!("answered {method} {path} with {status}"),
            status,
            duration_ms: u64::try_from(begun_at.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        let _entered = span.enter();
        match error {
            Some(Unrendered(error)) => {
                line.log_problem(error, has_line, &context.service.state);
            }
            None => line.log_success(is_health),
        }
    }
    response
}

/// The span of a request. Whatever it logs has these fields.
fn span(parts: &Parts, info: &RequestInfo, context: &Context) -> Span {
    let span = tracing::info_span!(
        "request",
        request.id = %info.id,
        version = %context.version,
        app.ident = field::Empty,
        account.id = field::Empty,
        http.method = %log_text::method(parts.method.as_str()),
        http.path = %log_text::path(parts.uri.path()),
        provider.error = field::Empty,
        provider.cause = field::Empty,
    );
    if let Some(ident) = parts.headers.get(X_GATEWAY_APP) {
        // Not yet verified to come from the gateway, so it is cleaned for the log.
        span.record("app.ident", log_text::ident(ident.as_bytes()));
    }
    span
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

/// Names the version's document in a response of JSON (RFC 8631).
fn link_to_document(response: &mut Response) {
    let headers = response.headers_mut();
    let media_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if media_type.is_some_and(|media_type| media_type.ends_with(b"json")) {
        let link = HeaderValue::from_static("</openapi.json>; rel=\"service-desc\"");
        headers.append(LINK, link);
    }
}

/// The access line of a request. Method and path are fields of its span.
struct Line {
    text: String,
    status: u16,
    duration_ms: u64,
}

impl Line {
    fn log_success(&self, is_health: bool) {
        let (text, status, duration_ms) = (&self.text, self.status, self.duration_ms);
        if is_health {
            // Monitoring calls these every few seconds.
            tracing::debug!(target: ACCESS_TARGET, { http.status_code = status, duration_ms }, "{text}");
        } else {
            tracing::info!(target: ACCESS_TARGET, { http.status_code = status, duration_ms }, "{text}");
        }
    }

    fn log_problem(&self, error: &LoginError, has_line: bool, state: &ServiceState) {
        let (text, status, duration_ms) = (&self.text, self.status, self.duration_ms);
        let (code, cause) = (error.code(), error.source().map(with_causes));
        let (cause, limit) = (cause.as_deref(), error.limit());
        if has_line {
            tracing::info!(
                target: ACCESS_TARGET,
                { http.status_code = status, problem.code = code, problem.hint = error.hint(), problem.limit = limit, duration_ms, %error, cause },
                "{text}"
            );
        }
        // A provider's faults were logged where they occurred. The other 5xx are errors of this service.
        let line = match error {
            LoginError::Store(_) => &state.store_failures,
            LoginError::Internal { .. } => &state.internal_errors,
            _ => return,
        };
        if let Some(requests) = line.count(Instant::now()) {
            tracing::error!(requests, problem.code = code, %error, cause, "requests failed, the last one as follows");
        }
    }
}
