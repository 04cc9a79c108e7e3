//! What a request must pass before it is handled: it comes from the gateway, and its body is read.

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, header::CONNECTION};
use signpost_protocol::header::{
    REFUSED_SECRET, REFUSED_SHADOW, X_GATEWAY_REFUSED, X_GATEWAY_SECRET, X_GATEWAY_SHADOW,
};

use crate::{
    error::LoginError,
    http::{Context, request::BufferedBody},
};

/// Limit of a request's body, as the gateway's. CONTRACT 2.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024;

/// Passes on requests with the gateway's secret, but no copies of requests that change something. CONTRACT 9.
///
/// Rejections are marked with a header. It shows the gateway that its secret is wrong, or that the request is a copy, and not
/// the client's request.
pub(super) async fn require_gateway(
    State(context): State<Context>,
    request: Request,
    next: Next,
) -> Response {
    let secret = request.headers().get(X_GATEWAY_SECRET);
    if !context.service.config.gateway.trusts(secret) {
        return refused(REFUSED_SECRET);
    }
    let is_copy = request.headers().contains_key(X_GATEWAY_SHADOW);
    if is_copy && NOT_COPIED.contains(&request.uri().path()) {
        return refused(REFUSED_SHADOW);
    }
    next.run(request).await
}

/// The shared endpoints that begin, end or store something: a copy of a request must not do that once more. And the document,
/// which is another one for each version: there is nothing to compare.
const NOT_COPIED: [&str; 6] = [
    "/login",
    "/user/login",
    "/user/renew",
    "/user/logout",
    "/event/send",
    "/openapi.json",
];

fn refused(why: &'static str) -> Response {
    let mut rejection = closing_response(LoginError::GatewayRequired);
    let reason = HeaderValue::from_static(why);
    rejection.headers_mut().insert(X_GATEWAY_REFUSED, reason);
    rejection
}

/// Reads the body whole, within a limit and a timeout, and passes the request on with it.
///
/// The gateway sends head and body separately, and reuses connections. After a response that is sent before the body
/// was read, hyper would close the connection without notice. The gateway's next request on it would fail, and a POST
/// must not be retried. So if the body was not read to its end, the response has `Connection: close`.
pub(super) async fn buffer_body(
    State(context): State<Context>,
    request: Request,
    next: Next,
) -> Response {
    let limit = context.service.config.timeouts.body;
    let (mut head, body) = request.into_parts();
    match tokio::time::timeout(limit, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(body)) => {
            // For extractors: they may be several, and in any order.
            head.extensions.insert(BufferedBody(body.clone()));
            next.run(Request::from_parts(head, Body::from(body))).await
        }
        Ok(Err(_)) => closing_response(LoginError::BodyTooLarge),
        Err(_) => closing_response(LoginError::RequestTimeout { limit }),
    }
}

/// Returns an error response that closes the connection, since the body was not read to its end.
fn closing_response(error: LoginError) -> Response {
    ([(CONNECTION, "close")], error).into_response()
}
