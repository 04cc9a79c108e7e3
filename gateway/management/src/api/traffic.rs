//! `/api/v1/traffic`: the requests of the last hour.

use axum::{Json, extract::State};

use super::{ApiError, Shared};
use crate::reports::{gateways, traffic::Traffic};

/// Shows the requests of the last hour by version, minute by minute, and why requests were rejected or failed: of all gateways
/// of the store, each of which adds its own every few seconds.
#[utoipa::path(get, path = "/api/v1/traffic", tag = "requests", responses((status = OK, description = "The requests.", body = Traffic)))]
pub(super) async fn show(State(api): State<Shared>) -> Result<Json<Traffic>, ApiError> {
    let now = api.current.load().state.clock.now();
    Ok(Json(gateways::traffic(api.store(), now).await?))
}
