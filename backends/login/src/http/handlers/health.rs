//! `GET /healthz` and `GET /readyz`: for operators and their monitoring; not part of the contract.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde_json::{Value, json};

use crate::{error::LoginError, service::HandlerContext};

/// Liveness: the process is up.
pub(crate) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "up" }))
}

/// Readiness: 200 if the store is available and no shutdown has begun, else 503.
pub(crate) async fn readyz(State(context): State<HandlerContext>) -> Result<Response, LoginError> {
    let version = context.version.as_str();
    if context.service.state.is_draining() {
        let stopping = Json(json!({ "status": "stopping", "version": version }));
        return Ok((StatusCode::SERVICE_UNAVAILABLE, stopping).into_response());
    }
    context.service.state.database.probe().await?;
    Ok(Json(json!({ "status": "ready", "version": version })).into_response())
}
