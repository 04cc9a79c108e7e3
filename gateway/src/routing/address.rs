//! One address of a version: its requests in flight, and whether it is ejected.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use gateway_protocol::version::Version;
use pingora::{lb::Backend, protocols::l4::socket};

/// Initial back-off, in milliseconds: short enough that a client's retry succeeds.
const FIRST_MS: u64 = 200;
/// Time until another request may try an ejected address, in milliseconds: most connections are established by then.
const TRIAL_MS: u64 = 2000;

/// One address of a version. It stays the same as long as it is found with the same weight.
#[derive(Debug)]
pub(crate) struct Address {
    /// What pingora knows it by.
    pub(super) backend: Backend,
    socket: SocketAddr,
    state: Arc<AddressState>,
}

/// What is known of an address. It survives a change of its weight, and of how its version is balanced and checked.
#[derive(Debug, Default)]
pub(super) struct AddressState {
    in_flight: AtomicUsize,
    /// Whether it is ejected.
    pub(super) outage: Outage,
    /// What its checks say.
    pub(super) health: Health,
}

/// What the active checks of an address say: healthy until enough of them have failed in a row.
#[derive(Debug, Default)]
pub(super) struct Health {
    is_unhealthy: AtomicBool,
    /// Checks in a row that contradict that.
    contradictions: AtomicUsize,
}

/// A request in flight to an address, as long as this lives.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Address>);

/// Whether, and until when, an address is ejected because no connection could be established.
///
/// When the time is over, one request tries the address, which stays ejected for the others until that one has a
/// connection. If it gets none, the next outage is twice as long.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// Milliseconds since the balancer was made; 0: it is not ejected.
    until_ms: AtomicU64,
    /// Length of the outage after the next failure, if it is ejected.
    length_ms: AtomicU64,
    is_told: AtomicBool,
}

impl Address {
    /// An address of which as much is known as of `before`, the same one with another weight; otherwise healthy, with
    /// nothing in flight. `None` if `backend` has no IP address.
    pub(super) fn new(backend: &Backend, before: Option<&Self>) -> Option<Arc<Self>> {
        let socket::SocketAddr::Inet(socket) = backend.addr else {
            return None;
        };
        Some(Arc::new(Self {
            backend: backend.clone(),
            socket,
            state: before.map_or_else(Arc::default, |before| Arc::clone(&before.state)),
        }))
    }

    /// What is known of it.
    pub(super) fn state(&self) -> &AddressState {
        &self.state
    }

    /// Where it is.
    #[must_use]
    pub(crate) const fn socket(&self) -> SocketAddr {
        self.socket
    }

    /// Requests in flight.
    #[must_use]
    pub(crate) fn under_way(&self) -> usize {
        self.state.in_flight.load(Ordering::Relaxed)
    }

    /// No connection to it could be established: ejects it. Only a change is logged.
    pub(super) fn take_out(&self, version: &Version, now_ms: u64, why: &str) {
        if self.state.outage.begin(now_ms) {
            let place = self.socket;
            tracing::warn!(%version, backend.addr = %place, why, "{version} at {place} is unreachable and out: {why}");
        }
    }

    /// A connection to it is available: ends the ejection. Only a change is logged.
    pub(super) fn mark_healthy(&self, version: &Version) {
        if self.state.outage.end() {
            let place = self.socket;
            tracing::info!(%version, backend.addr = %place, "{version} at {place} is reachable again");
        }
    }

    /// Whether it has less to do than another, for its weight, if it got one request more.
    pub(super) fn is_lighter_than(&self, other: &Self) -> bool {
        let load = |one: &Self, weight: usize| (one.under_way() + 1).saturating_mul(weight);
        load(self, other.backend.weight) < load(other, self.backend.weight)
    }
}

impl UnderWay {
    pub(super) fn begin(address: &Arc<Address>) -> Self {
        address.state.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(address))
    }

    pub(super) const fn address(&self) -> &Arc<Address> {
        &self.0
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.state.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Health {
    /// Whether the address gets requests.
    pub(super) fn is_healthy(&self) -> bool {
        !self.is_unhealthy.load(Ordering::Relaxed)
    }

    /// Notes a check. Returns whether it changes what the checks say: if `threshold` in a row contradict that.
    pub(super) fn note(&self, has_passed: bool, threshold: usize) -> bool {
        if has_passed == self.is_healthy() {
            self.contradictions.store(0, Ordering::Relaxed);
            return false;
        }
        let in_a_row = self.contradictions.fetch_add(1, Ordering::Relaxed) + 1;
        let is_changed = in_a_row >= threshold;
        if is_changed {
            self.is_unhealthy.store(!has_passed, Ordering::Relaxed);
            self.contradictions.store(0, Ordering::Relaxed);
        }
        is_changed
    }

    /// Forgets what was noted: the address is not checked any more.
    pub(super) fn reset(&self) {
        self.is_unhealthy.store(false, Ordering::Relaxed);
        self.contradictions.store(0, Ordering::Relaxed);
    }
}

impl Outage {
    /// Whether the address gets no requests. The time is asked for only where it matters.
    pub(super) fn holds(&self, now_ms: impl FnOnce() -> u64) -> bool {
        match self.until_ms.load(Ordering::Relaxed) {
            0 => false,
            until => now_ms() < until,
        }
    }

    /// Lets a request through: any if the address is not ejected, one when an outage is over. If that one fails, the next
    /// outage is twice as long, up to `longest_ms`.
    pub(super) fn begin_request(&self, now_ms: impl FnOnce() -> u64, longest_ms: u64) -> bool {
        let until = self.until_ms.load(Ordering::Relaxed);
        if until == 0 {
            return true;
        }
        let now_ms = now_ms();
        let trial_ms = now_ms.saturating_add(TRIAL_MS.min(longest_ms));
        let is_first = now_ms >= until
            && self
                .until_ms
                .compare_exchange(until, trial_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_first {
            let length_ms = self.length_ms.load(Ordering::Relaxed).saturating_mul(2);
            self.length_ms
                .store(length_ms.min(longest_ms), Ordering::Relaxed);
        }
        is_first
    }

    /// Ejects the address; returns whether that is to be logged.
    pub(super) fn begin(&self, now_ms: u64) -> bool {
        if self.until_ms.load(Ordering::Relaxed) == 0 {
            self.length_ms.store(FIRST_MS, Ordering::Relaxed);
        }
        let until_ms = now_ms.saturating_add(self.length_ms.load(Ordering::Relaxed));
        self.until_ms.store(until_ms, Ordering::Relaxed);
        !self.is_told.swap(true, Ordering::Relaxed)
    }

    /// Ends a longer ejection by then: the limit is lower now.
    pub(super) fn limit(&self, now_ms: u64, longest_ms: u64) {
        self.length_ms.fetch_min(longest_ms, Ordering::Relaxed);
        // 0 stays 0: it is not ejected.
        let end = now_ms.saturating_add(longest_ms);
        self.until_ms.fetch_min(end, Ordering::Relaxed);
    }

    /// Ends the ejection; returns whether that is to be logged.
    pub(super) fn end(&self) -> bool {
        if self.until_ms.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.until_ms.store(0, Ordering::Relaxed);
        self.is_told.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_lasts_its_time_and_then_one_request_tries() {
        let outage = Outage::default();
        assert!(!outage.holds(|| unreachable!("an address that is in asks for no time")));
        assert!(outage.begin(1000));
        assert!(outage.holds(|| 1199) && !outage.begin_request(|| 1199, 5000));
        assert!(!outage.holds(|| 1200));
        assert!(outage.begin_request(|| 1200, 5000));
        assert!(!outage.begin_request(|| 1201, 5000));
        // Nothing is known of that request, so another tries after a while.
        assert!(outage.holds(|| 3199));
        assert!(outage.begin_request(|| 3200, 5000));
        // The second time is no news, until it was back.
        assert!(!outage.begin(3300));
        assert!(outage.end() && !outage.end());
        assert!(!outage.holds(|| 0));
        assert!(outage.begin(1));
    }

    #[test]
    fn outages_are_short_at_first_and_longer_each_time_that_a_try_fails() {
        let outage = Outage::default();
        for _ in 0..2 {
            let mut now = 7;
            let mut lengths = Vec::new();
            outage.begin(now);
            for _ in 0..5 {
                let length = (0..).find(|length| !outage.holds(|| now + length)).unwrap();
                lengths.push(length);
                now += length;
                assert!(outage.begin_request(|| now, 1500));
                // As does one that was under way for longer.
                outage.begin(now);
                outage.begin(now);
            }
            assert_eq!(lengths, [200, 400, 800, 1500, 1500]);
            outage.end();
        }
    }

    #[test]
    fn enough_checks_in_a_row_change_the_health() {
        let health = Health::default();
        for (has_passed, is_changed, is_healthy) in [
            (false, false, true),
            (false, false, true),
            (true, false, true),
            (false, false, true),
            (false, false, true),
            (false, true, false),
            (false, false, false),
        ] {
            assert_eq!(health.note(has_passed, 3), is_changed);
            assert_eq!(health.is_healthy(), is_healthy);
        }
        assert!(!health.note(true, 2) && !health.is_healthy());
        assert!(!health.note(false, 3) && !health.is_healthy());
        assert!(!health.note(true, 2) && health.note(true, 2) && health.is_healthy());
        assert!(health.note(false, 1));
        health.reset();
        assert!(health.is_healthy());
    }

    #[test]
    fn what_is_known_of_an_address_survives_another_weight() {
        let backend = |weight| Backend::new_with_weight("127.0.0.1:1", weight).unwrap();
        let before = Address::new(&backend(1), None).unwrap();
        let in_flight = UnderWay::begin(&before);
        before.state().health.note(false, 1);
        let after = Address::new(&backend(2), Some(&before)).unwrap();
        assert_eq!(after.under_way(), 1);
        assert!(!after.state().health.is_healthy());
        drop(in_flight);
        assert_eq!(after.under_way(), 0);
    }

    #[test]
    fn what_is_under_way_counts_for_its_weight() {
        let address = |weight| {
            let backend = Backend::new_with_weight("127.0.0.1:1", weight).unwrap();
            Address::new(&backend, None).unwrap()
        };
        let (light, heavy) = (address(1), address(3));
        assert!(heavy.is_lighter_than(&light) && !light.is_lighter_than(&heavy));
        let under_way: Vec<_> = (0..3).map(|_| UnderWay::begin(&heavy)).collect();
        assert!(light.is_lighter_than(&heavy) && !heavy.is_lighter_than(&light));
        drop(under_way);
        assert_eq!(heavy.under_way(), 0);
        assert!(!light.is_lighter_than(&light));
    }
}
