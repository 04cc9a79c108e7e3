//! Hides the health endpoints from clients of the gateway: operators and their monitoring call the backend directly.

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use signpost_protocol::header::X_GATEWAY_VERSION;

use crate::error::LoginError;

/// Rejects requests that came through the gateway: `not_found`.
pub(super) async fn hide_health(request: Request, next: Next) -> Response {
    if request.headers().contains_key(X_GATEWAY_VERSION) {
        LoginError::NotFound.into_response()
    } else {
        next.run(request).await
    }
}
