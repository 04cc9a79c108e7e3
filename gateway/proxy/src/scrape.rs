//! The metrics of the gateway, collected at each scrape of `/metrics`. `signpost metrics` lists them all.
//!
//! | module | subject |
//! | --- | --- |
//! | [`requests`] | requests, their durations and verification |
//! | [`connections`] | clients' connections, and HTTP/2 streams |
//! | [`protection`] | replay memory, rate limits, caches |
//! | [`backends`] | the state of addresses, failures, connections to backends |
//! | [`versions`] | when versions end, and their users |
//! | [`operation`] | TLS files and their certificates |

mod backends;
mod connections;
mod operation;
mod protection;
mod requests;
#[cfg(test)]
mod tests;
mod versions;

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use signpost_kit::{
    log::writer::{DroppedLines, write_dropped},
    metrics::{Families, Metrics, Scrape, process, store},
    trace::write_spans,
};
use signpost_release::RELEASE;

use crate::serve::Gateway;

/// The metrics that only the gateway has.
pub const FAMILIES: [Families; 6] = [
    requests::FAMILIES,
    connections::FAMILIES,
    protection::FAMILIES,
    backends::FAMILIES,
    versions::FAMILIES,
    operation::FAMILIES,
];

/// All sources of the gateway's metrics.
pub fn metrics(current: &Arc<ArcSwap<Gateway>>, dropped_lines: DroppedLines) -> Metrics {
    let spans = Arc::clone(&current.load().state.records.spans);
    let last_reload = Arc::clone(&current.load().state.last_reload);
    let of_gateway = |write: fn(&Gateway, &mut Scrape<'_>) -> fmt::Result| {
        let current = Arc::clone(current);
        move |scrape: &mut Scrape<'_>| write(&current.load_full(), scrape)
    };
    Metrics::default()
        .with(of_gateway(requests::write))
        .with(of_gateway(connections::write))
        .with(of_gateway(protection::write))
        .with(of_gateway(backends::write))
        .with(of_gateway(versions::write))
        .with(of_gateway(operation::write))
        .with(move |scrape| last_reload.write(scrape))
        .with(of_gateway(write_store))
        .with(move |scrape| write_dropped(scrape, &dropped_lines))
        .with(move |scrape| write_spans(scrape, &spans))
        .with(|scrape| process::write(scrape, "signpost", RELEASE))
}

/// The store of applications and accounts. With a single application there is none until a route asks for accounts.
fn write_store(gateway: &Gateway, scrape: &mut Scrape<'_>) -> fmt::Result {
    let accounts = gateway.state.accounts.get();
    let statistics = accounts.map(|accounts| accounts.store.statistics());
    store::write(scrape, statistics.as_ref())
}
