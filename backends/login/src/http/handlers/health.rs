//! `GET /healthz` and `GET /readyz`: for operators and their monitoring; not part of the contract.

use axum::{
    Json,
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde_json::{Value, json};
use signpost_protocol::header::X_GATEWAY_VERSION;
use signpost_store::StoreError;

use crate::{error::LoginError, http::Context};

/// Liveness: the process is up.
pub(crate) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "up" }))
}

/// Readiness: 200 if the store can be written and no shutdown has begun, else 503.
pub(crate) async fn readyz(State(context): State<Context>) -> Result<Response, LoginError> {
    let state = &context.service.state;
    let (code, status) = match state.probe().await {
        None => (StatusCode::SERVICE_UNAVAILABLE, "stopping".into()),
        Some(Err(StoreError::NotWritable(reason))) => (StatusCode::SERVICE_UNAVAILABLE, reason),
        Some(probed) => probed.map(|()| (StatusCode::OK, "ready".into()))?,
    };
    let body = json!({ "status": status, "version": context.version.as_str() });
    Ok((code, Json(body)).into_response())
}

/// Rejects requests that came through the gateway, `not_found`: operators and their monitoring call the backend
/// directly.
pub(crate) async fn hide_health(request: Request, next: Next) -> Response {
    if request.headers().contains_key(X_GATEWAY_VERSION) {
        LoginError::NotFound { slip: None }.into_response()
    } else {
        next.run(request).await
    }
}
