//! The metrics of the gateway, collected at each scrape of `/metrics`. conf/observe/README.md lists them all.
//!
//! | module | subject |
//! | --- | --- |
//! | [`requests`] | requests, their durations and verification |
//! | [`connections`] | clients' connections, and HTTP/2 streams |
//! | [`protection`] | replay memory, rate limits, caches |
//! | [`backends`] | the state of addresses, failures, connections to backends |
//! | [`operation`] | certificates |

mod backends;
mod connections;
mod operation;
mod protection;
mod requests;
#[cfg(test)]
mod tests;

use std::{
    fmt::{self, Debug, Formatter},
    sync::Arc,
};

use arc_swap::ArcSwap;
use signpost_kit::{
    metrics::{Metrics, Scrape, Source, process::ProcessMetrics, store::StoreMetrics},
    reload::ReloadMetrics,
};

use self::requests::RequestSource;
use crate::{gateway::Gateway, observe::access_log::AccessLog};

/// All sources of the gateway's metrics.
pub(crate) fn metrics(current: &Arc<ArcSwap<Gateway>>) -> Metrics {
    let process = ProcessMetrics {
        program: "signpost",
        version: env!("CARGO_PKG_VERSION"),
    };
    let spans = Arc::clone(&current.load().state.records.spans);
    let reloads = Arc::clone(&current.load().state.reloads);
    let access_log = current
        .load()
        .state
        .records
        .access_log
        .as_ref()
        .map(AccessLog::dropped_lines);
    // Tests have no log.
    let dropped_lines = access_log.unwrap_or_default();
    let of_gateway = |write| GatewaySource {
        current: Arc::clone(current),
        write,
    };
    Metrics::default()
        .with(RequestSource::new(current))
        .with(of_gateway(connections::write))
        .with(of_gateway(protection::write))
        .with(of_gateway(backends::write))
        .with(of_gateway(operation::write))
        .with(ReloadMetrics(reloads))
        .with(store(current))
        .with(dropped_lines)
        .with(spans)
        .with(process)
}

/// The store of applications and accounts. With a single application there is none until a route asks for accounts.
fn store(current: &Arc<ArcSwap<Gateway>>) -> impl Source {
    let current = Arc::clone(current);
    StoreMetrics::new(move || {
        let state = &current.load().state;
        state.accounts.get().map(|accounts| accounts.store.clone())
    })
}

/// Writes metrics of the gateway with the current configuration.
struct GatewaySource {
    current: Arc<ArcSwap<Gateway>>,
    write: fn(&Gateway, &mut Scrape<'_>) -> fmt::Result,
}

impl Source for GatewaySource {
    fn write(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        (self.write)(&self.current.load_full(), scrape)
    }
}

impl Debug for GatewaySource {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("GatewaySource")
    }
}
