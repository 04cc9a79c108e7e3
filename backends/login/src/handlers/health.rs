//! `GET /healthz` and `GET /readyz`: for whoever starts and watches the process; not part of the contract.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde_json::{Value, json};

use crate::{error::LoginError, service::Serving};

/// The process is up.
pub(crate) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "up" }))
}

/// The store can be reached and no stop has begun, so requests can be served.
pub(crate) async fn readyz(State(serving): State<Serving>) -> Result<Response, LoginError> {
    let version = serving.version.as_str();
    if serving.service.state.is_draining() {
        let stopping = Json(json!({ "status": "stopping", "version": version }));
        return Ok((StatusCode::SERVICE_UNAVAILABLE, stopping).into_response());
    }
    serving.service.state.database.probe().await?;
    Ok(Json(json!({ "status": "ready", "version": version })).into_response())
}
