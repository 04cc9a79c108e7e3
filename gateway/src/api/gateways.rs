//! `/api/v1/gateways`: the gateways of the store.

use axum::{Json, extract::State};

use super::{ApiError, Shared, body::List};
use crate::observe::gateways::{self, ListedGateway};

/// Lists the gateways of the store, as each describes itself every few seconds. Of those that are gone, it has the last day.
#[utoipa::path(get, path = "/api/v1/gateways", tag = "gateways", responses((status = OK, body = List<ListedGateway>)))]
pub(super) async fn list(State(api): State<Shared>) -> Result<Json<List<ListedGateway>>, ApiError> {
    let items = gateways::list(api.apps.database()).await?;
    Ok(Json(List { items, next: None }))
}
