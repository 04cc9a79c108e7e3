//! Reads a request's body whole, within a limit and a timeout, before the request is handled.
//!
//! The gateway sends head and body separately, and reuses connections. After a response that is sent before the body
//! was read, hyper would close the connection without notice. The gateway's next request on it would fail, and a POST
//! must not be retried. So if the body was not read to its end, the response has `Connection: close`.

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::header::CONNECTION;

use crate::{error::LoginError, http::request::BufferedBody, service::HandlerContext};

/// Limit of a request's body, as the gateway's. CONTRACT 2.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024;

/// Reads the body, and passes the request on with it.
pub(super) async fn buffer_body(
    State(context): State<HandlerContext>,
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

/// Returns an error response that closes the connection, for a body that was not read to its end.
pub(super) fn closing_response(error: LoginError) -> Response {
    ([(CONNECTION, "close")], error).into_response()
}
