//! `/api/v1/backends`: the backends, and addresses that operators take out.

use std::{net::SocketAddr, time::Duration};

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use signpost_proxy::{AddressStatus, BackendStatus, DrainedAddress, rfc3339};
use utoipa::ToSchema;

use super::{
    ApiError, Shared,
    body::{Input, List, PageParams, Params},
    caller::Caller,
    problem::Code,
};
use crate::administration::drains::DrainError;

/// A backend, as the gateway that was called sees it.
#[derive(Serialize, ToSchema)]
pub(super) struct BackendItem {
    /// Its name: for example `v2`, or `v2 (canary next)`.
    backend: String,
    /// Its addresses; those of names as last resolved.
    addresses: Vec<AddressItem>,
    /// Requests in flight to addresses that a reload has removed.
    leaving: usize,
}

/// An address of a backend.
#[derive(Serialize, ToSchema)]
struct AddressItem {
    #[serde(flatten)]
    status: AddressStatus,
    /// When it gets requests again, if an operator has drained it.
    #[schema(format = DateTime)]
    drained_until: Option<String>,
}

/// Lists the backends with their addresses.
#[utoipa::path(get, path = "/api/v1/backends", tag = "backends", params(PageParams), responses((status = OK, body = List<BackendItem>)))]
pub(super) async fn list(
    State(api): State<Shared>,
    Params(page): Params<PageParams>,
) -> Result<Json<List<BackendItem>>, ApiError> {
    let gateway = api.current.load_full();
    let now = gateway.state.clock.now();
    let drained = api.drains().list(now).await?;
    let backends = gateway.policy.backends.status().into_iter();
    let items = backends.map(|backend| item(backend, &drained));
    Ok(Json(page.of(items.collect(), |item| &item.backend)?))
}

fn item(status: BackendStatus, drained: &[DrainedAddress]) -> BackendItem {
    let BackendStatus {
        backend,
        addresses,
        leaving,
    } = status;
    let addresses = addresses.into_iter().map(|status| {
        let mut drained = drained.iter().filter(|one| one.backend == backend);
        let drained = drained.find(|one| one.address.to_string() == status.address);
        AddressItem {
            status,
            drained_until: drained.map(|one| rfc3339(one.until)),
        }
    });
    BackendItem {
        addresses: addresses.collect(),
        backend,
        leaving,
    }
}

/// An address to take out.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DrainInput {
    /// The backend's name.
    backend: String,
    /// An IP address and a port.
    address: String,
    /// After this time it gets requests again.
    #[schema(minimum = 1, maximum = 604_800)]
    seconds: u64,
    /// Also if the backend has no other address that is available: its requests are rejected then.
    #[serde(default)]
    force: bool,
    /// Why, for the audit: up to 200 characters.
    reason: Option<String>,
}

/// Takes an address of a backend out, at all gateways within a second: it gets no new requests, those in flight finish, and it
/// comes back by itself. An address that is drained already is drained for this time from now on.
#[utoipa::path(post, path = "/api/v1/backends/drain", tag = "backends", request_body = DrainInput, responses((status = OK, body = DrainedAddress)))]
pub(super) async fn drain(
    State(api): State<Shared>,
    caller: Caller,
    Input(input): Input<DrainInput>,
) -> Result<Json<DrainedAddress>, ApiError> {
    let new = DrainedAddress {
        address: address(&input.address)?,
        backend: input.backend,
        until: caller.at.plus(Duration::from_secs(input.seconds)),
        is_forced: input.force,
    };
    let author = caller.author(input.reason.as_deref())?;
    let backends = api.current.load().policy.backends.status();
    api.drains()
        .drain(&new, &backends, &author, caller.at)
        .await?;
    Ok(Json(new))
}

/// An address that gets requests again.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UndrainInput {
    /// The backend's name.
    backend: String,
    /// An IP address and a port.
    address: String,
    /// Why, for the audit: up to 200 characters.
    reason: Option<String>,
}

/// What is no longer drained.
#[derive(Serialize, ToSchema)]
pub(super) struct Undrained {
    /// The backend's name.
    backend: String,
    /// An IP address and a port.
    address: String,
}

/// Ends the draining of an address before its time.
#[utoipa::path(post, path = "/api/v1/backends/undrain", tag = "backends", request_body = UndrainInput, responses((status = OK, body = Undrained)))]
pub(super) async fn undrain(
    State(api): State<Shared>,
    caller: Caller,
    Input(input): Input<UndrainInput>,
) -> Result<Json<Undrained>, ApiError> {
    let (backend, address) = (input.backend, address(&input.address)?);
    let author = caller.author(input.reason.as_deref())?;
    api.drains()
        .undrain(&backend, address, &author, caller.at)
        .await?;
    let address = address.to_string();
    Ok(Json(Undrained { backend, address }))
}

fn address(text: &str) -> Result<SocketAddr, ApiError> {
    text.parse()
        .map_err(|_| ApiError::invalid("address", "an IP address and a port"))
}

impl From<DrainError> for ApiError {
    fn from(error: DrainError) -> Self {
        match error {
            DrainError::UnknownBackend { known } | DrainError::UnknownAddress { known } => {
                Self::from(Code::AddressNotFound).member("known", known)
            }
            DrainError::Duration => Self::invalid("seconds", "1 to 604800"),
            DrainError::NoOtherAddress => Code::LastAddress.into(),
            DrainError::NotDrained => Code::NotDrained.into(),
            DrainError::Store(error) => error.into(),
        }
    }
}
