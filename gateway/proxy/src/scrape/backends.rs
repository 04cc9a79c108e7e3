//! Backends: the state of their addresses, failures and retries, and the connections to them.

use std::{fmt, time::Instant};

use signpost_kit::{families, metrics::Scrape};

use crate::{
    serve::Gateway,
    upstream::{
        backend::pool,
        routing::{
            status::{AddressHealth, AddressStatus, availability},
            status::{BackendCounts, BackendEvent},
        },
    },
};

/// Limit of addresses of one backend that the metrics show: a name may resolve to any number. The first ones in their
/// order are shown.
pub(super) const MAX_SHOWN_ADDRESSES: usize = 256;

families! {
    HEALTHY = "signpost_backend_healthy", Gauge, ["backend", "address"],
        "1 if the address passes its health checks; 0 if it fails them, or if no connection could be established \
         since the last one. No sample if nothing tells: no health checks, and no failure to connect; nor while it \
         is drained. Without health checks the gateway tries an unreachable address again every 5 s.";
    AVAILABLE = "signpost_backend_available", Gauge, ["backend"],
        "1 if an address of the backend is healthy; 0 if all are unhealthy, unreachable or drained, or none is \
         known. No sample if nothing tells.";
    IN_FLIGHT = "signpost_backend_in_flight", Gauge, ["backend", "address"],
        "Requests in flight. Of each backend at most 256 addresses are shown. An address that the configuration or \
         DNS no longer has disappears.";
    EJECTIONS = "signpost_backend_ejections_total", Counter, ["backend"],
        "Ejections of addresses. Until the address is reachable again, further ones are not counted. As all counters \
         of a backend, it goes on after a reload as long as the backend's name stays.";
    CHECKS = "signpost_backend_health_checks_total", Counter, ["backend", "result"], "Health checks: passed, failed.";
    RETRIES = "signpost_backend_retries_total", Counter, ["backend"],
        "Requests that were sent to another address, or once more.";
    FAILURES = "signpost_backend_failures_total", Counter, ["backend", "cause"],
        "Failed attempts, each once: connect (refused, unreachable or too slow), tls (the handshake), reset (closed \
         or reset, also within the response's body), timeout (no answer in time), malformed.";
    CONNECTIONS = "signpost_backend_connections_total", Counter, ["result"],
        "Connections taken for a request: reused, new, failed (none could be established). A retry takes another \
         one.";
    IDLE = "signpost_backend_idle_connections", Gauge, [], "Idle connections in the pools of all threads.";
    SECRET_REJECTIONS = "signpost_secret_rejections", Gauge, [],
        "Addresses of backends that reject the gateway's secret.";
}

/// A backend of the current configuration.
struct ShownBackend<'g> {
    name: String,
    is_available: Option<bool>,
    addresses: Vec<AddressStatus>,
    counts: &'g BackendCounts,
}

/// Writes the families.
pub(super) fn write(gateway: &Gateway, scrape: &mut Scrape<'_>) -> fmt::Result {
    let backends = gateway.policy.backends.targets().map(|target| {
        let mut addresses = target.address_status();
        let is_available = availability(&addresses);
        // After the availability: the only healthy address may be one that is not shown.
        addresses.truncate(MAX_SHOWN_ADDRESSES);
        ShownBackend {
            name: target.backend.name.to_string(),
            is_available,
            addresses,
            counts: &target.counts,
        }
    });
    let backends: Vec<_> = backends.collect();
    write_addresses(&backends, scrape)?;
    let of = |event| {
        let backends = backends.iter();
        backends.map(move |backend| ([&backend.name], backend.counts.value(event)))
    };
    scrape.numbers(EJECTIONS, of(BackendEvent::Ejection))?;
    scrape.numbers(RETRIES, of(BackendEvent::Retry))?;
    let of_each = |events: &'static [BackendEvent]| {
        backends
            .iter()
            .flat_map(move |ShownBackend { name, counts, .. }| {
                let events = events.iter();
                events.map(move |event| ([&**name, event.as_str()], counts.value(*event)))
            })
    };
    scrape.numbers(CHECKS, of_each(&BackendEvent::CHECKS))?;
    scrape.numbers(FAILURES, of_each(&BackendEvent::FAILURES))?;
    let taken = gateway.policy.backends.client.taken();
    scrape.label_counters(CONNECTIONS, taken)?;
    scrape.number(IDLE, Some(pool::idle_connections() as u64))?;
    let rejections = gateway.state.secret_rejections.current(Instant::now());
    scrape.number(SECRET_REJECTIONS, Some(rejections.len() as u64))
}

/// The state of the addresses. One that the configuration or the name has no more is not shown.
fn write_addresses(backends: &[ShownBackend<'_>], scrape: &mut Scrape<'_>) -> fmt::Result {
    let each = || {
        backends.iter().flat_map(|backend| {
            let addresses = backend.addresses.iter();
            addresses.map(|address| ([&*backend.name, &*address.address], address))
        })
    };
    let healthy = each().filter_map(|(labels, status)| {
        is_healthy(status.health).map(|is_healthy| (labels, u64::from(is_healthy)))
    });
    scrape.numbers(HEALTHY, healthy)?;
    let available = backends
        .iter()
        .filter_map(|backend| Some(([&backend.name], u64::from(backend.is_available?))));
    scrape.numbers(AVAILABLE, available)?;
    let in_flight = each().filter_map(|(labels, status)| Some((labels, status.in_flight? as u64)));
    scrape.numbers(IN_FLIGHT, in_flight)
}

/// Whether an address is healthy; `None` if nothing tells.
const fn is_healthy(health: AddressHealth) -> Option<bool> {
    match health {
        AddressHealth::Healthy => Some(true),
        AddressHealth::Unhealthy | AddressHealth::Unreachable => Some(false),
        // An operator knows of a drained one: it is no failure.
        AddressHealth::Drained | AddressHealth::Unchecked | AddressHealth::Unknown => None,
    }
}
