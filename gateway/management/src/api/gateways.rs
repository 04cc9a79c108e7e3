//! `/api/v1/gateways`: the gateways of the store.

use axum::{Json, extract::State};

use super::{
    ApiError, Shared,
    body::{List, PageParams, Params},
};
use crate::reports::gateways::{self, ListedGateway};

/// Lists the gateways of the store, as each describes itself every few seconds. Of those that are gone, it has the last
/// hour.
#[utoipa::path(get, path = "/api/v1/gateways", tag = "gateways", params(PageParams), responses((status = OK, body = List<ListedGateway>)))]
pub(super) async fn list(
    State(api): State<Shared>,
    Params(page): Params<PageParams>,
) -> Result<Json<List<ListedGateway>>, ApiError> {
    let all = gateways::list(api.store()).await?;
    Ok(Json(page.of(all, |gateway| &gateway.id)?))
}
