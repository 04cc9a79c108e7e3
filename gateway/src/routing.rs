//! Which of a version's addresses gets a request. CONTRACT 5.
//!
//! | module | subject |
//! | --- | --- |
//! | `discovery` | which addresses there are: configured ones, and those of resolved names |
//! | [`address`] | one of them: its requests in flight, and whether it is ejected |
//! | `selection` | the rule by which one is chosen |
//! | [`destination`] | where a request goes, and where it is retried |
//! | [`attempts`] | the addresses that a request was sent to |
//! | [`key`] | what the hash rules hash |
//! | `check` | active health checks |
//! | [`watching`] | when names are resolved and addresses checked |
//!
//! pingora-load-balancing makes the HTTP checks and the hash ring. The gateway chooses among addresses itself: pingora's choice
//! costs an allocation or two per request, gives one address all its turns in a row, and knows no least connections. It also
//! keeps what is known of addresses itself, so that it survives a reload.
//!
//! Two things keep requests from an address:
//!
//! - Its health checks fail, as many in a row as `unhealthy_after` says. That lasts until checks pass.
//! - No connection to it could be established. It is ejected for 200 ms, then a single request tries it. If that fails, it is
//!   ejected for twice as long, and so on up to `out_seconds`. A connection, or a check that passes, ends it. So a short
//!   failure costs little even at the last address that is left. If all addresses of a version are ejected, its requests are
//!   rejected at once, except those that try. An address that is the only one is never ejected.
//!
//! A name that is no longer found keeps its last addresses. Names are resolved every 10 s; every second as long as one was
//! never found, or if requests find no healthy address.

pub(crate) mod address;
pub(crate) mod attempts;
mod check;
pub(crate) mod destination;
mod discovery;
pub(crate) mod key;
mod selection;
pub(crate) mod watching;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use gateway_protocol::version::Version;
use tokio::sync::Notify;

pub(crate) use self::check::in_short;
use self::{
    address::Address, attempts::Attempts, check::Check, discovery::Discovery, selection::Addresses,
};
use crate::config::{Backend, Balance, Balancing, Upstream};

/// How, and how often, addresses are checked.
struct Checks {
    check: Check,
    interval: Duration,
}

/// Chooses among the addresses of one version.
pub struct Balancer {
    version: Version,
    balance: Balance,
    discovery: Discovery,
    addresses: ArcSwap<Addresses>,
    checks: Option<Checks>,
    /// Notified when names should be resolved: a request found no healthy address.
    wants_look_up: Notify,
    /// No address served a request, and none has since.
    is_lost: AtomicBool,
    /// Limit of an ejection, in milliseconds.
    out_ms: u64,
    started: Instant,
}

impl Balancer {
    /// One for the version, if there is anything to choose. It knows no address before [`Self::look_up`]. Of addresses that
    /// `before` has, as much is known as there: requests in flight, health, ejections.
    #[must_use]
    pub fn new(backend: &Backend, before: Option<&Self>) -> Option<Arc<Self>> {
        match &backend.upstream {
            Upstream::Fixed(_) => None,
            Upstream::Balanced(balancing) => {
                let balancer = Self::balanced(&backend.version, balancing, before);
                Some(Arc::new(balancer))
            }
        }
    }

    fn balanced(version: &Version, balancing: &Balancing, before: Option<&Self>) -> Self {
        let discovery = before.map(|before| &before.discovery);
        let discovery = Discovery::new(version, &balancing.addresses, discovery);
        let addresses = match before {
            Some(before) => Addresses::like(balancing.balance, &before.addresses.load()),
            None => Addresses::none(balancing.balance),
        };
        let checks = balancing.checks.as_ref().map(|checks| Checks {
            check: Check::new(version, checks),
            interval: checks.interval,
        });
        let had_checks = before.is_some_and(|before| before.checks.is_some());
        let started = before.map_or_else(Instant::now, |before| before.started);
        let out_ms = millis(balancing.out);
        for address in addresses.iter() {
            // What checks said before they were switched off is not true any more.
            if !had_checks {
                address.state().health.reset();
            }
            address
                .state()
                .outage
                .limit(millis(started.elapsed()), out_ms);
        }
        let is_lost = before.is_some_and(|before| before.is_lost.load(Ordering::Relaxed));
        Self {
            version: version.clone(),
            balance: balancing.balance,
            discovery,
            addresses: ArcSwap::from_pointee(addresses),
            checks,
            wants_look_up: Notify::new(),
            is_lost: AtomicBool::new(is_lost),
            out_ms,
            // Ejections are counted from there.
            started,
        }
    }

    /// By what requests are shared out.
    #[must_use]
    pub(crate) const fn balance(&self) -> Balance {
        self.balance
    }

    /// How many addresses there are, healthy or not.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.addresses.load().len()
    }

    /// Finds out which addresses there are.
    pub async fn look_up(&self) {
        let found = self.discovery.discover().await;
        let before = self.addresses.load();
        if !before.are(&found) {
            let addresses = Addresses::new(self.balance, &found, &before);
            self.addresses.store(Arc::new(addresses));
        }
    }

    /// Checks all addresses once, all at the same time.
    async fn check(&self) {
        let Some(Checks { check, .. }) = &self.checks else {
            return;
        };
        let addresses = self.addresses.load_full();
        join_all(addresses.iter().map(|address| check.run(address))).await;
    }

    /// The next address for a request: none that it was sent to already. `key` is what it is shared out by, where
    /// that matters.
    ///
    /// Costs no allocation and no lock.
    pub fn choose(&self, key: &[u8], attempts: &mut Attempts) -> Option<SocketAddr> {
        attempts.give_up();
        let addresses = self.addresses.load();
        loop {
            let serves = |address: &Address| self.serves(address, attempts);
            let chosen = match attempts.last() {
                None => addresses.choose(key, serves),
                Some(_) => addresses.choose_another(key, serves),
            };
            let Some(chosen) = chosen else {
                self.note_lost(attempts);
                return None;
            };
            // Another request may have been faster to try an address that was ejected.
            if chosen
                .state()
                .outage
                .begin_request(|| self.now_ms(), self.out_ms)
            {
                return Some(attempts.begin(chosen));
            }
        }
    }

    /// Whether a request that failed at one address could go to another.
    #[must_use]
    pub(crate) fn has_another(&self, attempts: &Attempts) -> bool {
        let addresses = self.addresses.load();
        addresses
            .iter()
            .any(|address| self.serves(address, attempts))
    }

    /// No connection to the request's current address could be established: it is ejected, unless it is the only one.
    pub(crate) fn take_out(&self, attempts: &Attempts, why: &str) {
        let Some(address) = attempts.current() else {
            return;
        };
        if self.addresses.load().len() > 1 {
            address.take_out(&self.version, self.now_ms(), why);
        }
        if !self.has_another(attempts) {
            self.wants_look_up.notify_one();
        }
    }

    /// A connection to the request's current address is available: it is no longer ejected.
    pub(crate) fn mark_healthy(&self, attempts: &Attempts) {
        if let Some(address) = attempts.current() {
            address.mark_healthy(&self.version);
        }
        if self.is_lost.load(Ordering::Relaxed) && self.is_lost.swap(false, Ordering::Relaxed) {
            let version = &self.version;
            tracing::info!(%version, "{version} is served again");
        }
    }

    /// No address serves a request. Logged once: the access log has each request.
    fn note_lost(&self, attempts: &Attempts) {
        self.wants_look_up.notify_one();
        if attempts.last().is_none() && !self.is_lost.swap(true, Ordering::Relaxed) {
            let version = &self.version;
            tracing::error!(%version, "no address of {version} is healthy: its requests are refused");
        }
    }

    fn serves(&self, address: &Address, attempts: &Attempts) -> bool {
        attempts.may_try(address)
            && !address.state().outage.holds(|| self.now_ms())
            && (self.checks.is_none() || address.state().health.is_healthy())
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
