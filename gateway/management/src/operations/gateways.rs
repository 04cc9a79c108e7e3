//! The gateways of the store, and the requests of the last hour that all of them had.

use super::{
    Context, Face, Operation, Output, Result,
    input::{List, NamedPage, Nothing},
};
use crate::reports::{
    gateways::{self, ListedGateway},
    traffic::Traffic,
};

pub(super) fn all<F: Face>(face: F) -> F {
    face.add(&LIST).add(&TRAFFIC)
}

/// Lists the gateways.
pub const LIST: Operation<(), NamedPage, List<ListedGateway>> = Operation::read(
    "/api/v1/gateways",
    "Lists the gateways of the store, as each describes itself every few seconds. Of those that are gone, it has the last hour.",
    |context, (), page| Box::pin(list(context, page)),
);

async fn list(context: &Context, page: NamedPage) -> Result<List<ListedGateway>> {
    let all = gateways::list(&context.store).await?;
    Ok(page.of(all, |gateway| &gateway.id)?)
}

impl Output for Traffic {}

/// Shows the requests of the last hour.
pub(crate) const TRAFFIC: Operation<(), Nothing, Traffic> = Operation::read(
    "/api/v1/traffic",
    "Shows the requests of the last hour by version, minute by minute, and why requests were rejected or failed: of all \
     gateways of the store, each of which adds its own every few seconds.",
    |context, (), _| Box::pin(traffic(context)),
);

async fn traffic(context: &Context) -> Result<Traffic> {
    Ok(gateways::traffic(&context.store, context.caller.at).await?)
}
