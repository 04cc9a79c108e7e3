//! Health is for whoever runs the service, who asks the backend itself; not for the gateway's clients.

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use gateway_protocol::header::X_GATEWAY_VERSION;

use crate::error::LoginError;

/// To what came through the gateway there is nothing here.
pub(super) async fn hide_health(request: Request, next: Next) -> Response {
    if request.headers().contains_key(X_GATEWAY_VERSION) {
        LoginError::NotFound.into_response()
    } else {
        next.run(request).await
    }
}
