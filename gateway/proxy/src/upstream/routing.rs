//! Chooses an address of a version for each request. CONTRACT 5.
//!
//! | module | subject |
//! | --- | --- |
//! | `discovery` | the addresses of a version: configured ones, and those that names resolve to |
//! | [`address`] | one of them: its requests in flight, and whether it is reachable or ejected |
//! | `selection` | the balancing rules |
//! | [`destination`] | where a request is sent, and where it is retried |
//! | [`drained`] | the addresses that operators have drained |
//! | [`attempts`] | the addresses that a request was sent to |
//! | [`key`] | keys of the hash rules |
//! | [`check`](mod@check) | active health checks, and attempts to reach an address again |
//! | [`monitor`] | resolves names and checks addresses regularly |
//! | [`status`] | what the commands and the metrics report of the addresses, and what is counted of a backend |
//!
//! pingora-load-balancing provides the hash ring. The gateway chooses among addresses itself:
//! pingora's choice costs one or two allocations per request, gives one address all its turns in a row, and has no
//! least connections. The gateway also keeps the state of addresses itself, so that it survives a reload.
//!
//! An address gets no requests while it is unhealthy, ejected or drained:
//!
//! - Unhealthy: after `unhealthy_after` failed health checks in a row, until one passes.
//! - Ejected: after no connection could be established. After 200 ms, a single request tries it. If that fails, the
//!   next ejection is twice as long, up to `out_seconds`. A new connection or a passed check ends it. So a short
//!   failure costs little even at the last available address. If all addresses of a version are ejected, its requests
//!   are rejected at once, except those that try. The only address of a version is never ejected.
//! - Drained: by an operator, for a time. Checks go on meanwhile.
//!
//! For people, an address is unreachable from the first failure to connect until a connection is established or a check
//! passes. Without health checks the gateway tries to connect to it every 5 s, so that it does not stay unreachable for want
//! of requests.
//!
//! A name that cannot be resolved keeps its last addresses. Names are resolved every 10 s; every second while one was
//! never resolved, or if requests find no healthy address.

pub(crate) mod address;
pub(crate) mod attempts;
pub(crate) mod check;
pub(crate) mod destination;
mod discovery;
pub(crate) mod drained;
pub(crate) mod key;
pub(crate) mod monitor;
mod selection;
pub(crate) mod status;

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use tokio::sync::Notify;

use self::{
    address::{Address, AddressState},
    attempts::Attempts,
    check::check,
    discovery::Discovery,
    drained::Drained,
    selection::Addresses,
    status::{BackendCounts, BackendEvent},
};
use crate::{
    config::{Backend, BackendName, Balance, HealthChecks, Upstream},
    tls::backend::Endpoint,
};

/// Chooses among the addresses of one backend.
pub struct Balancer {
    name: BackendName,
    balance: Balance,
    discovery: Discovery,
    addresses: ArcSwap<Addresses>,
    /// An address that is found anew is drained before its first request.
    drained: Mutex<Drained>,
    checks: Option<HealthChecks>,
    /// Notified if a request finds no healthy address: names should be resolved early.
    resolve_requested: Notify,
    /// Whether the last request found no healthy address. Only a change is logged.
    is_unavailable: AtomicBool,
    /// Limit of an ejection, in milliseconds.
    max_ejection_ms: u64,
    started: Instant,
    counts: Arc<BackendCounts>,
}

impl Balancer {
    /// Creates the balancer of a backend; `None` if its address is fixed. Addresses that `before` has keep their state:
    /// requests in flight, health, ejections. Others are known only after [`Self::resolve`].
    #[must_use]
    pub fn new(backend: &Backend, before: Option<&Self>) -> Option<Arc<Self>> {
        let counts = before.map_or_else(Arc::default, |before| Arc::clone(&before.counts));
        Self::counting(backend, before, None, &counts)
    }

    /// The same, and continues these counts of the backend. Without a balancer before, it may have had an address, which keeps
    /// its state.
    #[must_use]
    pub fn counting(
        backend: &Backend,
        before: Option<&Self>,
        fixed: Option<(&Endpoint, &Arc<AddressState>)>,
        counts: &Arc<BackendCounts>,
    ) -> Option<Arc<Self>> {
        let Backend { name, upstream, .. } = backend;
        let is_balanced = upstream.fixed.is_none();
        let counts = Arc::clone(counts);
        is_balanced.then(|| Arc::new(Self::balanced(name, upstream, before, fixed, counts)))
    }

    fn balanced(
        name: &BackendName,
        upstream: &Upstream,
        before: Option<&Self>,
        fixed: Option<(&Endpoint, &Arc<AddressState>)>,
        counts: Arc<BackendCounts>,
    ) -> Self {
        let discovery = before.map(|before| &before.discovery);
        let discovery = Discovery::new(name, &upstream.addresses, discovery);
        let addresses = match (before, fixed) {
            (Some(before), _) => {
                Addresses::with_balance(upstream.balance, &before.addresses.load())
            }
            (None, Some((endpoint, state))) => {
                Addresses::one(upstream.balance, Address::with_state(endpoint, state))
            }
            (None, None) => Addresses::empty(upstream.balance),
        };
        let had_checks = before.is_some_and(|before| before.checks.is_some());
        let started = before.map_or_else(Instant::now, |before| before.started);
        // The limit may be lower than before: below, it also shortens the ejections that have begun.
        let max_ejection_ms = millis(upstream.out);
        for address in addresses.iter() {
            // Results from before the checks were switched off are outdated.
            if !had_checks {
                address.state.health.reset();
            }
            address
                .state
                .ejection
                .limit(millis(started.elapsed()), max_ejection_ms);
        }
        let drained = before.map_or_else(Drained::default, |before| before.drained().clone());
        let is_unavailable =
            before.is_some_and(|before| before.is_unavailable.load(Ordering::Relaxed));
        Self {
            name: name.clone(),
            balance: upstream.balance,
            discovery,
            addresses: ArcSwap::from_pointee(addresses),
            drained: Mutex::new(drained),
            checks: upstream.checks.clone(),
            resolve_requested: Notify::new(),
            is_unavailable: AtomicBool::new(is_unavailable),
            max_ejection_ms,
            // The ends of ejections are relative to this.
            started,
            counts,
        }
    }

    /// The balancing rule.
    #[must_use]
    pub const fn balance(&self) -> Balance {
        self.balance
    }

    /// The number of addresses, healthy or not.
    #[must_use]
    pub fn address_count(&self) -> usize {
        self.addresses.load().len()
    }

    /// Addresses that requests found unreachable and that no check can restore.
    pub fn unreachable(&self) -> Vec<(Endpoint, Arc<AddressState>)> {
        let addresses = self.addresses.load();
        let unreachable = addresses
            .iter()
            .filter(|address| address.state.is_unreachable());
        unreachable
            .filter(|_| self.checks.is_none())
            .map(|address| (address.endpoint.clone(), Arc::clone(&address.state)))
            .collect()
    }

    /// The states of its addresses.
    pub fn states(&self) -> Vec<(SocketAddr, Arc<AddressState>)> {
        let addresses = self.addresses.load();
        let state = |address: &Arc<Address>| (address.socket(), Arc::clone(&address.state));
        addresses.iter().map(state).collect()
    }

    /// Resolves the names and updates the addresses.
    pub async fn resolve(&self) {
        let backends = self.discovery.discover().await;
        // Locked until the new addresses are stored: a draining in between would miss them.
        let drained = self.drained();
        let before = self.addresses.load();
        // Most lookups change nothing. A new list would begin its turns anew, and build the hash ring again.
        if !before.matches(&backends) {
            let addresses = Addresses::new(self.balance, &backends, &before);
            drained.apply(&self.name, addresses.states());
            self.addresses.store(Arc::new(addresses));
        }
    }

    /// Drains these addresses, and no others.
    pub fn drain(&self, new: Drained) {
        let mut drained = self.drained();
        new.apply(&self.name, self.addresses.load().states());
        *drained = new;
    }

    fn drained(&self) -> MutexGuard<'_, Drained> {
        self.drained.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks all addresses once, concurrently.
    async fn check(&self) {
        let Some(checks) = &self.checks else {
            return;
        };
        // `load_full`, since the checks are awaited: a guard would occupy one of the thread's few slots meanwhile.
        let addresses = self.addresses.load_full();
        let checked = addresses
            .iter()
            .map(|address| check(&self.name, checks, address));
        for has_passed in join_all(checked).await {
            let [passed, failed] = BackendEvent::CHECKS;
            self.counts.count(if has_passed { passed } else { failed });
        }
    }

    /// Chooses the next address for a request, never one that it was already sent to. `key` is for the hash rules.
    ///
    /// Costs no allocation and no lock.
    pub fn choose(&self, key: &[u8], attempts: &mut Attempts) -> Option<Endpoint> {
        // The failed attempt is not in flight any more, even if no other address is left.
        attempts.mark_failed();
        let addresses = self.addresses.load();
        // The loop ends: an address that another request tries is ejected for this one, and is not chosen again.
        loop {
            let serves = |address: &Address| self.serves(address, attempts);
            let chosen = match attempts.last() {
                None => addresses.choose(key, serves),
                Some(_) => addresses.choose_another(key, serves),
            };
            let Some(chosen) = chosen else {
                self.note_unavailable(attempts);
                return None;
            };
            // Another request may have been first to try an ejected address.
            if chosen
                .state
                .ejection
                .admit_request(|| self.now_ms(), self.max_ejection_ms)
            {
                return Some(attempts.begin(chosen));
            }
        }
    }

    /// Whether an address is healthy, and neither ejected nor drained.
    #[must_use]
    pub(crate) fn is_available(&self) -> bool {
        self.has_another(&Attempts::default())
    }

    /// Whether a failed request could be retried on another address.
    #[must_use]
    pub(crate) fn has_another(&self, attempts: &Attempts) -> bool {
        let addresses = self.addresses.load();
        addresses
            .iter()
            .any(|address| self.serves(address, attempts))
    }

    /// Marks the request's current address as unreachable, after no connection could be established, and ejects it unless it is
    /// the only one.
    pub fn fail(&self, attempts: &Attempts, why: &str) {
        let Some(address) = attempts.current() else {
            return;
        };
        // The only address is always tried: to wait would help nobody.
        let is_ejected = self.addresses.load().len() > 1;
        if is_ejected {
            address.state.ejection.begin(self.now_ms());
        }
        if address.state.fail(&self.name, address.socket(), why) && is_ejected {
            self.counts.count(BackendEvent::Ejection);
        }
        // The name may lead to other addresses by now, for example to a recreated container.
        if !self.has_another(attempts) {
            self.resolve_requested.notify_one();
        }
    }

    /// Marks the request's current address as reachable, after a connection was established, and ends its ejection.
    pub fn restore(&self, attempts: &Attempts) {
        if let Some(address) = attempts.current() {
            address.state.restore(&self.name, address.socket());
        }
        // Read before it is written: a write with each response would take the cache line from all other threads.
        if self.is_unavailable.load(Ordering::Relaxed)
            && self.is_unavailable.swap(false, Ordering::Relaxed)
        {
            let name = &self.name;
            tracing::info!(backend = %name, version = name.version(), "the backend has a healthy address again");
        }
    }

    /// Logs that the version has no healthy address: once, since the access log has each request.
    fn note_unavailable(&self, attempts: &Attempts) {
        self.resolve_requested.notify_one();
        // A retry that finds no further address is no outage: the request had one at first.
        if attempts.last().is_none() && !self.is_unavailable.swap(true, Ordering::Relaxed) {
            let name = &self.name;
            tracing::error!(
                backend = %name, version = name.version(),
                "no address of the backend is healthy: its requests are rejected"
            );
        }
    }

    fn serves(&self, address: &Address, attempts: &Attempts) -> bool {
        attempts.may_try(address)
            && !address.state.ejection.is_active(|| self.now_ms())
            // Without checks, nothing would ever make an unhealthy address healthy again.
            && (self.checks.is_none() || address.state.health.is_healthy())
    }

    fn now_ms(&self) -> u64 {
        millis(self.started.elapsed())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
