//! `GET /healthz` and `GET /readyz`: for whoever starts and watches the process; not part of the contract.

use axum::{Json, extract::State};
use serde_json::{Value, json};

use crate::{error::LoginError, service::Serving};

/// The process is up.
pub(crate) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "up" }))
}

/// The store can be reached, so requests can be served.
pub(crate) async fn readyz(State(serving): State<Serving>) -> Result<Json<Value>, LoginError> {
    serving.service.readiness.probe().await?;
    Ok(Json(
        json!({ "status": "ready", "version": serving.version.as_str() }),
    ))
}
