//! The backends of one configuration.

use std::{
    net::SocketAddr,
    ops::Deref,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::join_all;
use signpost_kit::clock::Timestamp;

use crate::{
    config::{Backend, Timeouts, Versions},
    observe::metrics::{RequestCells, RequestMetrics, labels::STATUS_CLASSES},
    upstream::{
        backend::upstream::BackendClient,
        routing::{
            Balancer,
            address::AddressState,
            check::reconnect,
            destination::Callee,
            drained::{Drained, DrainedAddress},
            status::{AddressHealth, AddressStatus, BackendStatus},
        },
    },
};

/// The versions of one configuration, and where their requests are sent.
pub struct Backends {
    /// The versions.
    pub versions: Versions,
    /// Sends requests.
    pub client: BackendClient,
    /// By the backend's number.
    targets: Vec<Target>,
    /// Where requests are counted for `/metrics`.
    pub cells: RequestCells,
}

/// A backend of a configuration.
pub struct Target {
    callee: Callee,
    /// The states of addresses that it had in earlier configurations, as long as a request or a configuration uses them.
    former: Vec<(SocketAddr, Weak<AddressState>)>,
}

impl Deref for Target {
    type Target = Callee;

    fn deref(&self) -> &Callee {
        &self.callee
    }
}

impl Backends {
    /// Backends that continue with the connections, addresses and counts of their predecessors.
    pub(super) fn new(
        versions: Versions,
        timeouts: &Timeouts,
        metrics: &RequestMetrics,
        before: Option<&Self>,
    ) -> Self {
        let targets = versions.backends().map(|backend| {
            let before = before.and_then(|before| {
                let mut targets = before.targets();
                targets.find(|known| known.backend.name == backend.name)
            });
            Target::new(backend, before)
        });
        Self {
            targets: targets.collect(),
            cells: metrics.configure(&versions),
            versions,
            // A reload keeps the count of taken connections. Idle ones stay in the threads' pools, by address and TLS.
            client: match before {
                Some(before) => before.client.with_timeouts(timeouts),
                None => BackendClient::new(timeouts),
            },
        }
    }

    /// The target of a backend of this configuration.
    pub fn target(&self, backend: &Backend) -> &Target {
        &self.targets[backend.number]
    }

    /// All targets, by their numbers.
    pub fn targets(&self) -> std::slice::Iter<'_, Target> {
        self.targets.iter()
    }

    /// The balancers of all backends that have one.
    pub fn balancers(&self) -> impl Iterator<Item = Arc<Balancer>> {
        self.targets()
            .filter_map(|target| target.balancer.as_ref().map(Arc::clone))
    }

    /// Drains the addresses that are drained now, and no others.
    pub fn drain(&self, all: &[DrainedAddress], now: Timestamp) {
        for target in self.targets() {
            let name = target.backend.name.to_string();
            let drained = all.iter();
            let drained = drained.filter(|address| address.backend == name && address.until > now);
            target.drain(
                drained
                    .map(|address| (address.address, address.is_forced))
                    .collect(),
            );
        }
    }

    /// The state of all backends.
    pub fn status(&self) -> Vec<BackendStatus> {
        let status = |target: &Target| BackendStatus {
            backend: target.backend.name.to_string(),
            addresses: target.address_status(),
            leaving: target.leaving(),
            responses: {
                let counts = self.cells.responses(target.backend.number);
                let counts = STATUS_CLASSES.iter().zip(counts);
                let counts = counts.filter(|(_, count)| *count > 0);
                counts
                    .map(|(class, count)| ((*class).to_owned(), count))
                    .collect()
            },
        };
        self.targets().map(status).collect()
    }

    /// Whether another configuration has the same backends, at the same addresses and with the same secrets.
    pub(super) fn are_same(&self, versions: &Versions) -> bool {
        let same = |(old, new): (&Target, &Arc<Backend>)| old.backend.is_same(new);
        let new = versions.backends();
        // The lengths first: `zip` alone would take a removed last backend for no change.
        self.targets.len() == new.len() && self.targets().zip(new).all(same)
    }
}

impl Target {
    /// A backend continues the counts of the one with its name; and its balancer, if its addresses are the same.
    fn new(backend: &Arc<Backend>, before: Option<&Self>) -> Self {
        let counts = before.map(|before| Arc::clone(&before.counts));
        let counts = counts.unwrap_or_default();
        let known = before.and_then(|before| Some((before, before.balancer.as_ref()?)));
        let balancer = match known {
            // The same object, not a copy: the monitor knows balancers by pointer, so its checks and lookups go on
            // undisturbed.
            Some((before, balancer)) if before.backend.upstream == backend.upstream => {
                Some(Arc::clone(balancer))
            }
            known => {
                let fixed = before.and_then(|before| {
                    let endpoint = before.backend.upstream.fixed.as_ref()?;
                    Some((endpoint, &before.fixed))
                });
                let known = known.map(|(_, balancer)| &**balancer);
                Balancer::counting(backend, known, fixed, &counts)
            }
        };
        // An address keeps its requests in flight and its failures, whatever chooses it now.
        let states = before.map_or_else(Vec::new, Self::states);
        let fixed = backend.upstream.fixed.as_ref().and_then(|endpoint| {
            let mut states = states.iter();
            states.find(|(address, _)| *address == endpoint.address)
        });
        let fixed = fixed.map_or_else(Arc::default, |(_, state)| Arc::clone(state));
        let former = states.iter();
        let former = former.map(|(address, state)| (*address, Arc::downgrade(state)));
        Self {
            former: former.collect(),
            callee: Callee {
                backend: Arc::clone(backend),
                balancer,
                fixed,
                counts,
            },
        }
    }

    /// The states of its addresses; addresses of earlier configurations last.
    fn states(&self) -> Vec<(SocketAddr, Arc<AddressState>)> {
        let mut states = self
            .balancer
            .as_ref()
            .map_or_else(Vec::new, |balancer| balancer.states());
        if let Some(endpoint) = &self.backend.upstream.fixed {
            states.push((endpoint.address, Arc::clone(&self.fixed)));
        }
        let former = self.former.iter();
        for (address, state) in
            former.filter_map(|(address, state)| Some((*address, state.upgrade()?)))
        {
            // An address can be removed and configured again while requests are in flight: its state counts once.
            if !states.iter().any(|(_, known)| Arc::ptr_eq(known, &state)) {
                states.push((address, state));
            }
        }
        states
    }

    /// The number of requests in flight to addresses that a reload has removed.
    pub fn leaving(&self) -> usize {
        let addresses = self.address_status();
        let is_current = |address: SocketAddr| {
            let address = address.to_string();
            addresses.iter().any(|current| current.address == address)
        };
        let states = self.states().into_iter();
        let leaving = states.filter(|(address, _)| !is_current(*address));
        leaving.map(|(_, state)| state.in_flight()).sum()
    }

    /// Tries once to connect to each address that requests found unreachable and that no health check restores.
    pub async fn reconnect(&self, limit: Duration) {
        let unreachable = match (&self.balancer, &self.backend.upstream.fixed) {
            (Some(balancer), _) => balancer.unreachable(),
            (None, Some(endpoint)) if self.fixed.is_unreachable() => {
                vec![(endpoint.clone(), Arc::clone(&self.fixed))]
            }
            (None, _) => Vec::new(),
        };
        let name = &self.backend.name;
        let unreachable = unreachable.iter();
        // Concurrently: an address that drops packets would hold up the others for the whole limit.
        join_all(unreachable.map(|(endpoint, state)| reconnect(name, endpoint, state, limit)))
            .await;
    }

    /// Whether it has an address that is healthy and not drained. A backend without health checks counts as healthy.
    pub(crate) fn is_available(&self) -> bool {
        match &self.balancer {
            Some(balancer) => balancer.is_available(),
            None => !self.fixed.is_drained(),
        }
    }

    /// Drains these addresses, and no others.
    fn drain(&self, drained: Drained) {
        if let Some(endpoint) = &self.backend.upstream.fixed {
            // The backend's only address: `Drained` drains it only if that is forced, since one address must be left.
            let only = [(endpoint.address, &*self.fixed)];
            drained.apply(&self.backend.name, only.into_iter());
        }
        if let Some(balancer) = &self.balancer {
            balancer.drain(drained);
        }
    }

    /// The state of its addresses.
    #[must_use]
    pub fn address_status(&self) -> Vec<AddressStatus> {
        match (&self.balancer, &self.backend.upstream.fixed) {
            (Some(balancer), _) => balancer.status(),
            (None, Some(endpoint)) => vec![AddressStatus {
                address: endpoint.address.to_string(),
                health: if self.fixed.is_drained() {
                    AddressHealth::Drained
                } else if self.fixed.is_unreachable() {
                    AddressHealth::Unreachable
                } else {
                    AddressHealth::Unchecked
                },
                in_flight: Some(self.fixed.in_flight()),
            }],
            (None, None) => Vec::new(),
        }
    }
}
