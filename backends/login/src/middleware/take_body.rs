//! A request's body is taken in whole before anything is answered.
//!
//! The gateway sends head and body apart and keeps its connections. An answer that overtakes the body would
//! leave the connection with unread bytes, hyper would close it without a word, and the gateway's next
//! request on it, a POST that must not be sent twice, would fail.

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::error::LoginError;

/// As the gateway's, and the only bound of a request's body here. CONTRACT 2.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024;

/// Takes the body in, and passes the request on with it.
pub(super) async fn take_body(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    match to_bytes(body, MAX_BODY_BYTES).await {
        Ok(body) => next.run(Request::from_parts(head, Body::from(body))).await,
        Err(_) => LoginError::BodyTooLarge.into_response(),
    }
}
