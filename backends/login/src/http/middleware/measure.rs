//! Counts and measures each request, and records the spans of a sampled one.

use std::{sync::Arc, time::Instant};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use signpost_kit::trace::span::Attributes;
use signpost_protocol::{
    header::{X_GATEWAY_APP, X_GATEWAY_VERSION_SOURCE},
    log_text,
};

use super::render::Unrendered;
use crate::{
    http::{Context, request::RequestInfo},
    metrics::{checks::with_waits, requests::VersionRequests},
    trace::RequestTrace,
};

/// Counts the response. A request whose client left before is not counted.
pub(super) async fn measure(
    State(requests): State<Arc<VersionRequests>>,
    request: Request,
    next: Next,
) -> Response {
    let begun_at = Instant::now();
    let endpoint = requests.endpoint(request.uri().path());
    let (response, waited) = with_waits(next.run(request)).await;
    let duration = begun_at.elapsed().saturating_sub(waited);
    requests.count(endpoint, response.status(), duration);
    response
}

/// Serves a request within its trace, if it is sampled. Off by default; then it costs a branch.
pub(super) async fn trace(
    State(context): State<Context>,
    request: Request,
    next: Next,
) -> Response {
    let Some(tracer) = &context.service.tracer else {
        return next.run(request).await;
    };
    let clock = &*context.service.state.clock;
    let attributes = || attributes(&request, &context);
    match RequestTrace::begin(tracer, request.headers(), clock, attributes) {
        Some(begun) => begun.serve(next.run(request), outcome).await,
        None => next.run(request).await,
    }
}

fn attributes(request: &Request, context: &Context) -> Attributes {
    let mut attributes = Attributes::with_capacity(8);
    let method = log_text::method(request.method().as_str()).into_owned();
    attributes.text("http.request.method", method);
    let path = log_text::path(request.uri().path()).into_owned();
    attributes.text("url.path", path);
    attributes.text("signpost.version", context.version.as_str().to_owned());
    if let Some(info) = request.extensions().get::<RequestInfo>() {
        attributes.text("signpost.request.id", info.id.as_str().to_owned());
    }
    if let Some(ident) = request.headers().get(X_GATEWAY_APP) {
        attributes.text("signpost.app", log_text::ident(ident.as_bytes()));
    }
    let source = request.headers().get(X_GATEWAY_VERSION_SOURCE);
    if let Some(source) = source.and_then(|source| source.to_str().ok()) {
        let source = log_text::method(source).into_owned();
        attributes.text("signpost.version.source", source);
    }
    attributes
}

fn outcome(response: &Response) -> (u16, Option<&'static str>) {
    let problem = response.extensions().get::<Unrendered>();
    let code = problem.map(|Unrendered(error)| error.code());
    (response.status().as_u16(), code)
}
