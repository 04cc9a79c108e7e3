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
    HEALTHY = "signpost_backend_healthy",
        "1 if the address passes its health checks, 0 if it fails them or is unreachable";
    AVAILABLE = "signpost_backend_available",
        "1 if an address of the backend passes its checks, 0 if none is reachable or known";
    IN_FLIGHT = "signpost_backend_in_flight", "Requests in flight";
    EJECTIONS = "signpost_backend_ejections", "Ejections of addresses";
    CHECKS = "signpost_backend_health_checks", "Health checks";
    RETRIES = "signpost_backend_retries",
        "Requests that were sent to another address, or once more";
    FAILURES = "signpost_backend_failures", "Failed attempts, each once";
    CONNECTIONS = "signpost_backend_connections",
        "Connections taken for a request: reused, new, failed";
    IDLE = "signpost_backend_idle_connections", "Idle connections in the pools of all threads";
    SECRET_REJECTIONS = "signpost_secret_rejections", "Backends that reject the gateway's secret";
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
    write_counts(&backends, scrape)?;
    let taken = gateway.policy.backends.client.taken();
    scrape.label_counters(CONNECTIONS, "result", taken)?;
    scrape.gauge(IDLE, |add| add(&[], pool::idle_connections() as u64))?;
    scrape.gauge(SECRET_REJECTIONS, |add| {
        let rejections = gateway.state.secret_rejections.current(Instant::now());
        add(&[], rejections.len() as u64)
    })
}

/// The state of the addresses. One that the configuration or the name has no more is not shown.
fn write_addresses(backends: &[ShownBackend<'_>], scrape: &mut Scrape<'_>) -> fmt::Result {
    let each = || {
        backends.iter().flat_map(|backend| {
            let addresses = backend.addresses.iter();
            addresses.map(|address| (backend.name.as_str(), address))
        })
    };
    scrape.gauge(HEALTHY, |add| {
        each().try_for_each(|(backend, status)| {
            let labels = [("backend", backend), ("address", &*status.address)];
            is_healthy(status.health)
                .map_or(Ok(()), |is_healthy| add(&labels, u64::from(is_healthy)))
        })
    })?;
    scrape.gauge(AVAILABLE, |add| {
        let mut known = backends
            .iter()
            .filter_map(|backend| Some((backend, backend.is_available?)));
        known.try_for_each(|(backend, is_available)| {
            add(&[("backend", &backend.name)], u64::from(is_available))
        })
    })?;
    scrape.gauge(IN_FLIGHT, |add| {
        each().try_for_each(|(backend, status)| {
            let labels = [("backend", backend), ("address", &*status.address)];
            let in_flight = status.in_flight;
            in_flight.map_or(Ok(()), |in_flight| add(&labels, in_flight as u64))
        })
    })
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

/// What was counted of each backend.
fn write_counts(backends: &[ShownBackend<'_>], scrape: &mut Scrape<'_>) -> fmt::Result {
    scrape.counter(EJECTIONS, |add| {
        let mut backends = backends.iter();
        backends.try_for_each(|backend| {
            add(
                &[("backend", &backend.name)],
                backend.counts.value(BackendEvent::Ejection),
            )
        })
    })?;
    scrape.counter(CHECKS, |add| {
        backends.iter().try_for_each(|backend| {
            let mut results = BackendEvent::CHECKS.into_iter();
            results.try_for_each(|result| {
                let labels = [("backend", &*backend.name), ("result", result.as_str())];
                add(&labels, backend.counts.value(result))
            })
        })
    })?;
    scrape.counter(RETRIES, |add| {
        let mut backends = backends.iter();
        backends.try_for_each(|backend| {
            add(
                &[("backend", &backend.name)],
                backend.counts.value(BackendEvent::Retry),
            )
        })
    })?;
    scrape.counter(FAILURES, |add| {
        backends.iter().try_for_each(|backend| {
            let mut causes = BackendEvent::FAILURES.into_iter();
            causes.try_for_each(|cause| {
                let labels = [("backend", &*backend.name), ("cause", cause.as_str())];
                add(&labels, backend.counts.value(cause))
            })
        })
    })
}
