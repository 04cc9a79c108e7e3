//! A request's body is taken in whole, and in time, before anything is answered.
//!
//! The gateway sends head and body apart and keeps its connections. An answer that overtakes the body would
//! leave the connection with unread bytes, hyper would close it without a word, and the gateway's next
//! request on it, a POST that must not be sent twice, would fail. So the answer to a body that was not read to its end
//! closes the connection and says so.

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::header::CONNECTION;

use crate::{error::LoginError, service::Serving};

/// As the gateway's, and the only bound of a request's body here. CONTRACT 2.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024;

/// Takes the body in, and passes the request on with it.
pub(super) async fn take_body(
    State(serving): State<Serving>,
    request: Request,
    next: Next,
) -> Response {
    let limit = serving.service.config.timeouts().body;
    let (head, body) = request.into_parts();
    match tokio::time::timeout(limit, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(body)) => next.run(Request::from_parts(head, Body::from(body))).await,
        Ok(Err(_)) => closing(LoginError::BodyTooLarge),
        Err(_) => closing(LoginError::RequestTimeout { limit }),
    }
}

/// An answer before the body was read to its end.
pub(super) fn closing(error: LoginError) -> Response {
    ([(CONNECTION, "close")], error).into_response()
}
