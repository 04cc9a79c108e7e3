//! What every request and every answer has: an id, a span, one access line, and headers of caution.

use std::{error::Error, time::Instant};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use gateway_protocol::{
    header::{X_GATEWAY_APP, X_GATEWAY_PROBLEM, X_REQUEST_ID},
    log_text,
};
use http::{
    HeaderName, HeaderValue,
    header::{CACHE_CONTROL, CONTENT_LANGUAGE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};
use tracing::{Instrument, Span, field};

use super::render::Unrendered;
use crate::{error::LoginError, request::RequestInfo, service::Serving};

/// Reads what the answer will need of the request, and records what became of it.
pub(super) async fn observe(
    State(serving): State<Serving>,
    request: Request,
    next: Next,
) -> Response {
    let begun_at = Instant::now();
    let (mut parts, body) = request.into_parts();
    let info = RequestInfo::of(&parts, serving.service.config.headers());
    parts.extensions.insert(info.clone());
    let span = tracing::info_span!(
        "request",
        request.id = %info.id,
        version = %serving.version,
        app.ident = field::Empty,
        account.id = field::Empty,
        http.method = %log_text::method(parts.method.as_str()),
        http.path = %log_text::path(parts.uri.path()),
    );
    if let Some(ident) = parts.headers.get(X_GATEWAY_APP) {
        // Not yet known to come from the gateway.
        span.record("app.ident", log_text::ident(ident.as_bytes()));
    }
    let is_health = matches!(parts.uri.path(), "/healthz" | "/readyz");
    let request = Request::from_parts(parts, body);
    let mut response = next.run(request).instrument(span.clone()).await;
    add_headers(&mut response, &info);
    // With log.access off, only our own failures are logged.
    if serving.service.config.log().access || response.status().is_server_error() {
        record(&span, is_health, &response, begun_at);
    }
    response
}

fn add_headers(response: &mut Response, info: &RequestInfo) {
    let headers = response.headers_mut();
    headers
        .entry(CONTENT_LANGUAGE)
        .or_insert(HeaderValue::from_static(info.language.tag()));
    // Every answer is about one person or one login: nothing of it may be kept, or told to the next site.
    let cautions: [(HeaderName, &'static str); 3] = [
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in cautions {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(id) = HeaderValue::from_str(info.id.as_str()) {
        headers.insert(X_REQUEST_ID, id);
    }
    if let Some(Unrendered(error)) = response.extensions().get() {
        // For the gateway's access log; the gateway removes it.
        let code = HeaderValue::from_static(error.code().as_str());
        response.headers_mut().insert(X_GATEWAY_PROBLEM, code);
    }
}

/// The access line: the span has method and path. Not the query: it holds states, codes and signs.
fn record(span: &Span, is_health: bool, response: &Response, begun_at: Instant) {
    let _entered = span.enter();
    let status = response.status().as_u16();
    let duration_ms = u64::try_from(begun_at.elapsed().as_millis()).unwrap_or(u64::MAX);
    match response.extensions().get::<Unrendered>() {
        Some(Unrendered(error)) => record_problem(error, status, duration_ms),
        // Asked every few seconds by whoever watches the process.
        None if is_health => {
            tracing::debug!(http.status_code = status, duration_ms, "answered {status}");
        }
        None => tracing::info!(http.status_code = status, duration_ms, "answered {status}"),
    }
}

fn record_problem(error: &LoginError, status: u16, duration_ms: u64) {
    let code = error.code().as_str();
    let cause = error.source().map(chain).map(field::display);
    // The provider's faults were logged where they were met; what is left of 5xx is ours.
    if matches!(error, LoginError::Store(_) | LoginError::Internal { .. }) {
        tracing::error!(
            http.status_code = status,
            problem.code = code,
            duration_ms,
            cause,
            "answered {status}: {error}"
        );
    } else {
        tracing::info!(
            http.status_code = status,
            problem.code = code,
            duration_ms,
            "answered {status}: {error}"
        );
    }
}

fn chain(error: &(dyn Error + 'static)) -> String {
    let mut causes = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        causes = format!("{causes}: {cause}");
        next = cause.source();
    }
    causes
}
