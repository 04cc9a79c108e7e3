//! One address of a version: its requests in flight, and whether it is reachable or ejected.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use pingora::protocols::l4::socket;
use pingora_load_balancing::{Backend, Extensions};
use signpost_kit::log::once_a_minute::OnceAMinute;

use crate::{
    config::BackendName,
    tls::backend::{Endpoint, TlsPeer},
};

/// Duration of the first ejection, in milliseconds: short enough that a client's retry succeeds.
const INITIAL_EJECTION_MS: u64 = 200;
/// Of the end of an ejection: an operator has drained the address. No time is as late.
const DRAINED: u64 = 1 << 63;
/// Time until a second request may try an ejected address, in milliseconds: most connections are established by then.
const TRIAL_TIMEOUT_MS: u64 = 2000;

/// One address of a version. The same object is used as long as discovery finds it with the same weight and TLS.
#[derive(Debug)]
pub struct Address {
    /// The address and weight, for pingora.
    pub(super) backend: Backend,
    /// The address, and its TLS.
    pub(super) endpoint: Endpoint,
    pub(super) state: Arc<AddressState>,
}

/// The state of an address. It survives changes of the weight, the balancing rule and the health checks.
#[derive(Debug, Default)]
pub struct AddressState {
    in_flight: AtomicUsize,
    /// Whether no connection could be established, since the last one or a check that passed.
    is_unreachable: AtomicBool,
    /// Whether the log has that.
    is_logged: AtomicBool,
    /// Under overload it may change with each request: the attempts that failed, for a line a minute.
    failures: OnceAMinute,
    /// Whether it gets no requests for that.
    pub(super) ejection: Ejection,
    /// The result of its health checks.
    pub(super) health: Health,
}

/// The result of an address's active health checks: healthy until enough of them have failed in a row.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Whether a check has passed.
    has_passed: AtomicBool,
    is_unhealthy: AtomicBool,
    failed_in_a_row: AtomicUsize,
}

/// Counts a request as in flight to an address until this is dropped.
#[derive(Debug)]
pub(super) struct InFlightRequest(Arc<Address>);

/// The same for the only address of a backend, which no balancer chose.
#[derive(Debug)]
pub(super) struct FixedInFlight<'g>(&'g AddressState);

/// The ejection of an address to which no connection could be established.
///
/// When it expires, one request tries the address; for all others, the address stays ejected until that request has a
/// connection. If it gets none, the next ejection is twice as long.
///
/// A drained address is ejected without an end, and its own ejection changes nothing of that: a request checks both at once.
#[derive(Debug, Default)]
pub(super) struct Ejection {
    /// End, in milliseconds since the start of the version's first balancer; 0 if the address is not ejected. With
    /// [`DRAINED`] if it is drained.
    until_ms: AtomicU64,
    /// Duration of the ejection after the next failure, in milliseconds.
    duration_ms: AtomicU64,
}

impl Address {
    /// An address of weight 1 with this state.
    pub(super) fn with_state(endpoint: &Endpoint, state: &Arc<AddressState>) -> Arc<Self> {
        let mut ext = Extensions::new();
        if let Some(tls) = &endpoint.tls {
            ext.insert(Arc::clone(tls));
        }
        Arc::new(Self {
            backend: Backend {
                addr: socket::SocketAddr::Inet(endpoint.address),
                weight: 1,
                ext,
            },
            endpoint: endpoint.clone(),
            state: Arc::clone(state),
        })
    }

    /// Creates an address; `None` if `backend` has no IP address.
    ///
    /// It shares the state of `before`, the same address with another weight or TLS. Otherwise it is healthy, without requests
    /// in flight.
    pub(super) fn new(backend: &Backend, before: Option<&Self>) -> Option<Arc<Self>> {
        let socket::SocketAddr::Inet(socket) = backend.addr else {
            return None;
        };
        Some(Arc::new(Self {
            backend: backend.clone(),
            endpoint: Endpoint {
                address: socket,
                tls: tls(backend).cloned(),
            },
            state: before.map_or_else(Arc::default, |before| Arc::clone(&before.state)),
        }))
    }

    #[must_use]
    pub const fn socket(&self) -> SocketAddr {
        self.endpoint.address
    }

    /// Whether discovery found exactly this: address, weight and TLS.
    pub(super) fn is(&self, backend: &Backend) -> bool {
        // pingora compares address and weight only.
        self.backend == *backend && self.endpoint.tls.as_ref() == tls(backend)
    }

    /// The number of requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.state.in_flight()
    }

    /// Whether its load, relative to its weight and with one more request, is lower than another's.
    pub(super) fn is_lighter_than(&self, other: &Self) -> bool {
        // Multiplied crosswise: integer division would take different loads for equal.
        let load = |address: &Self, weight: usize| (address.in_flight() + 1).saturating_mul(weight);
        load(self, other.backend.weight) < load(other, self.backend.weight)
    }
}

/// The TLS of an address, which discovery attaches to it.
fn tls(backend: &Backend) -> Option<&Arc<TlsPeer>> {
    backend.ext.get()
}

impl InFlightRequest {
    pub(super) fn begin(address: &Arc<Address>) -> Self {
        address.state.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(address))
    }

    pub(super) const fn address(&self) -> &Arc<Address> {
        &self.0
    }
}

impl AddressState {
    /// The number of requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Whether no connection could be established since the last one.
    #[must_use]
    pub(crate) fn is_unreachable(&self) -> bool {
        self.is_unreachable.load(Ordering::Relaxed)
    }

    /// Whether it gets no new requests because an operator wants so.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.ejection.until_ms.load(Ordering::Relaxed) & DRAINED != 0
    }

    /// An operator has drained it, or not. Only a change is logged.
    pub(super) fn drain(&self, is_drained: bool, name: &BackendName, address: SocketAddr) {
        let until_ms = &self.ejection.until_ms;
        let before = match is_drained {
            true => until_ms.fetch_or(DRAINED, Ordering::Relaxed),
            false => until_ms.fetch_and(!DRAINED, Ordering::Relaxed),
        };
        if (before & DRAINED != 0) != is_drained {
            let text = match is_drained {
                true => "the address is drained: it gets no new requests",
                false => "the address is no longer drained",
            };
            tracing::info!(backend = %name, version = name.version(), backend.addr = %address, "{text}");
        }
    }

    /// No connection could be established. Only a change is logged, once a minute. Returns whether it is one: it was reachable
    /// before.
    pub(super) fn fail(&self, name: &BackendName, address: SocketAddr, why: &str) -> bool {
        let is_changed = !self.is_unreachable.swap(true, Ordering::Relaxed);
        if let Some(attempts) = self.due_line(Instant::now()) {
            tracing::warn!(
                backend = %name, version = name.version(), backend.addr = %address, why, attempts,
                "the backend is unreachable"
            );
        }
        is_changed
    }

    /// Counts a failed attempt. If the log lacks it and a line is due, returns the attempts since the last line.
    fn due_line(&self, now: Instant) -> Option<u64> {
        // Several threads may pass here at once; the counter of the minute gives the line to one.
        if self.is_logged.load(Ordering::Relaxed) {
            return None;
        }
        let attempts = self.failures.count(now)?;
        self.is_logged.store(true, Ordering::Relaxed);
        Some(attempts)
    }

    /// It is reachable. Returns whether the log says that it is not.
    fn end_failures(&self) -> bool {
        self.is_unreachable() && {
            self.is_unreachable.store(false, Ordering::Relaxed);
            self.is_logged.swap(false, Ordering::Relaxed)
        }
    }

    /// A connection was established, or a check passed: ends its ejection. Only a change that the log has is logged.
    ///
    /// Costs a reachable address two loads, on the line of the requests in flight.
    pub(super) fn restore(&self, name: &BackendName, address: SocketAddr) {
        self.ejection.end();
        if self.end_failures() {
            tracing::info!(
                backend = %name, version = name.version(), backend.addr = %address,
                "the backend is reachable again"
            );
        }
    }
}

impl<'g> FixedInFlight<'g> {
    pub(super) fn begin(state: &'g AddressState) -> Self {
        state.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(state)
    }

    pub(super) const fn state(&self) -> &'g AddressState {
        self.0
    }
}

impl Drop for FixedInFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.state.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Health {
    /// Whether the address gets requests.
    pub(super) fn is_healthy(&self) -> bool {
        !self.is_unhealthy.load(Ordering::Relaxed)
    }

    /// Whether a check has passed since checks are on.
    pub(super) fn has_passed(&self) -> bool {
        self.has_passed.load(Ordering::Relaxed)
    }

    /// Forgets the results of checks: they are outdated.
    pub(super) fn reset(&self) {
        self.pass();
        self.has_passed.store(false, Ordering::Relaxed);
    }

    /// A check passed: it is healthy. Returns whether it was not before.
    pub(super) fn pass(&self) -> bool {
        self.has_passed.store(true, Ordering::Relaxed);
        self.failed_in_a_row.store(0, Ordering::Relaxed);
        self.is_unhealthy.swap(false, Ordering::Relaxed)
    }

    /// A check failed. Returns whether the address is unhealthy now, and was not before: at `threshold` in a row.
    pub(super) fn fail(&self, threshold: usize) -> bool {
        let in_a_row = self.failed_in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
        in_a_row >= threshold && !self.is_unhealthy.swap(true, Ordering::Relaxed)
    }
}

impl Ejection {
    /// Whether the address is ejected. The clock is read only if needed.
    pub(super) fn is_active(&self, now_ms: impl FnOnce() -> u64) -> bool {
        // Relaxed, as everywhere here: each value stands alone, and a request that sees it late tries an address once
        // more.
        match self.until_ms.load(Ordering::Relaxed) {
            0 => false,
            until => now_ms() < until,
        }
    }

    /// Whether a request may use the address: any if it is not ejected, one when an ejection has expired. If that one
    /// fails, the next ejection is twice as long, up to `max_ms`.
    pub(super) fn admit_request(&self, now_ms: impl FnOnce() -> u64, max_ms: u64) -> bool {
        let until = self.until_ms.load(Ordering::Relaxed);
        if until == 0 {
            return true;
        }
        let now_ms = now_ms();
        // An end, not a flag: a trial whose request is dropped must not keep the address out for good.
        let trial_ms = now_ms.saturating_add(TRIAL_TIMEOUT_MS.min(max_ms));
        let is_first = now_ms >= until
            && self
                .until_ms
                .compare_exchange(until, trial_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_first {
            let duration_ms = self.duration_ms.load(Ordering::Relaxed).saturating_mul(2);
            self.duration_ms
                .store(duration_ms.min(max_ms), Ordering::Relaxed);
        }
        is_first
    }

    /// Ejects the address.
    pub(super) fn begin(&self, now_ms: u64) {
        // The first failure since a connection. Further ones keep the duration that a failed trial has doubled.
        if self.until_ms.load(Ordering::Relaxed) & !DRAINED == 0 {
            self.duration_ms
                .store(INITIAL_EJECTION_MS, Ordering::Relaxed);
        }
        let until_ms = now_ms.saturating_add(self.duration_ms.load(Ordering::Relaxed));
        self.update(|_| until_ms);
    }

    /// Shortens the ejection to a lower limit.
    pub(super) fn limit(&self, now_ms: u64, max_ms: u64) {
        self.duration_ms.fetch_min(max_ms, Ordering::Relaxed);
        // 0 stays 0: it is not ejected.
        let end = now_ms.saturating_add(max_ms);
        self.update(|until_ms| until_ms.min(end));
    }

    /// Ends the ejection.
    pub(super) fn end(&self) {
        // Read first: most addresses are not ejected, and a write would take the line from other processors.
        if self.until_ms.load(Ordering::Relaxed) & !DRAINED != 0 {
            self.update(|_| 0);
        }
    }

    /// Replaces the end; a drained address stays drained.
    fn update(&self, end: impl Fn(u64) -> u64) {
        let new = |old: u64| Some(old & DRAINED | end(old & !DRAINED));
        // It always has a new value.
        let _ = self
            .until_ms
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, new);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn after_an_ejection_one_request_tries_the_address() {
        let ejection = Ejection::default();
        assert!(!ejection.is_active(|| unreachable!("without an ejection, the clock is not read")));
        ejection.begin(1000);
        assert!(ejection.is_active(|| 1199) && !ejection.admit_request(|| 1199, 5000));
        assert!(!ejection.is_active(|| 1200));
        assert!(ejection.admit_request(|| 1200, 5000));
        assert!(!ejection.admit_request(|| 1201, 5000));
        // That request has no result yet, so another may try after the timeout.
        assert!(ejection.is_active(|| 3199));
        assert!(ejection.admit_request(|| 3200, 5000));
        ejection.end();
        assert!(!ejection.is_active(|| 0));
    }

    #[test]
    fn ejections_grow_with_each_failed_try() {
        let ejection = Ejection::default();
        for _ in 0..2 {
            let mut now = 7;
            let mut lengths = Vec::new();
            ejection.begin(now);
            for _ in 0..5 {
                let length = (0..)
                    .find(|length| !ejection.is_active(|| now + length))
                    .unwrap();
                lengths.push(length);
                now += length;
                assert!(ejection.admit_request(|| now, 1500));
                // Two failures: the try, and a request that was in flight before.
                ejection.begin(now);
                ejection.begin(now);
            }
            assert_eq!(lengths, [200, 400, 800, 1500, 1500]);
            ejection.end();
        }
    }

    #[test]
    fn a_drained_address_gets_no_request_when_its_ejection_ends() {
        let state = AddressState::default();
        let (ejection, name) = (&state.ejection, BackendName::own("v1".parse().unwrap()));
        let address = "127.0.0.1:1".parse().unwrap();
        let is_in =
            || !ejection.is_active(|| 9_000_000) && ejection.admit_request(|| 9_000_000, 5000);
        let changes: [&dyn Fn(); 4] = [
            &|| (),
            &|| ejection.begin(1000),
            &|| ejection.limit(1000, 100),
            &|| ejection.end(),
        ];
        for change in changes {
            state.drain(true, &name, address);
            change();
            assert!(state.is_drained() && !is_in());
            state.drain(false, &name, address);
            assert!(!state.is_drained() && is_in());
        }
        // The ejection itself goes on.
        ejection.begin(1000);
        state.drain(true, &name, address);
        state.drain(false, &name, address);
        assert!(ejection.is_active(|| 1199) && !ejection.is_active(|| 1200));
    }

    #[test]
    fn enough_failed_checks_in_a_row_make_it_unhealthy_and_one_that_passes_healthy() {
        let health = Health::default();
        let fails = || health.fail(3);
        assert!(!fails() && !fails() && !health.pass());
        // They count from the last one that passed.
        assert!(!fails() && !fails() && health.is_healthy());
        assert!(fails() && !health.is_healthy() && !fails());
        assert!(health.pass() && health.is_healthy() && !health.pass());
        assert!(health.fail(1) && !health.is_healthy());
    }

    #[test]
    fn an_address_that_changes_with_each_request_has_two_lines_a_minute() {
        let state = AddressState::default();
        let now = Instant::now();
        let fail = |seconds| {
            state.is_unreachable.store(true, Ordering::Relaxed);
            state.due_line(now + Duration::from_secs(seconds))
        };
        assert_eq!(fail(0), Some(1));
        assert!(state.end_failures() && !state.end_failures());
        for seconds in 1..59 {
            assert_eq!(fail(seconds), None);
            assert!(state.is_unreachable() && !state.end_failures());
        }
        // It is down for good: the log gets to know.
        assert_eq!((fail(59), fail(60), fail(180)), (None, Some(60), None));
        assert!(state.end_failures());
    }

    #[test]
    fn the_state_of_an_address_survives_a_change_of_weight() {
        let backend = |weight| Backend::new_with_weight("127.0.0.1:1", weight).unwrap();
        let before = Address::new(&backend(1), None).unwrap();
        let in_flight = InFlightRequest::begin(&before);
        before.state.health.fail(1);
        let after = Address::new(&backend(2), Some(&before)).unwrap();
        assert_eq!(after.in_flight(), 1);
        assert!(!after.state.health.is_healthy());
        drop(in_flight);
        assert_eq!(after.in_flight(), 0);
    }

    #[test]
    fn load_is_relative_to_weight() {
        let address = |weight| {
            let backend = Backend::new_with_weight("127.0.0.1:1", weight).unwrap();
            Address::new(&backend, None).unwrap()
        };
        let (light, heavy) = (address(1), address(3));
        assert!(heavy.is_lighter_than(&light) && !light.is_lighter_than(&heavy));
        let in_flight: Vec<_> = (0..3).map(|_| InFlightRequest::begin(&heavy)).collect();
        assert!(light.is_lighter_than(&heavy) && !heavy.is_lighter_than(&light));
        drop(in_flight);
        assert_eq!(heavy.in_flight(), 0);
        assert!(!light.is_lighter_than(&light));
    }
}
