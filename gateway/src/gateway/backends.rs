//! The backends of one configuration.

use std::sync::Arc;

use crate::{
    config::{Backend, Timeouts, Versions},
    observe::metrics::{RequestCells, RequestMetrics},
    request::drain::Drain,
    upstream::{
        backend::upstream::BackendClient,
        routing::{
            Balancer,
            counts::BackendCounts,
            status::{AddressHealth, AddressStatus},
        },
    },
};

/// The versions of one configuration, and where their requests are sent.
pub(crate) struct Backends {
    /// The versions.
    pub versions: Versions,
    /// Sends requests.
    pub client: BackendClient,
    /// By the backend's number.
    targets: Vec<Target>,
    /// Where requests are counted for `/metrics`.
    pub cells: RequestCells,
}

/// A backend, and what the gateway has of it.
pub(crate) struct Target {
    /// What the configuration says of it.
    pub backend: Arc<Backend>,
    /// Chooses among its addresses; `None` if it has one fixed address.
    pub balancer: Option<Arc<Balancer>>,
    /// What happened to it.
    pub counts: Arc<BackendCounts>,
}

impl Backends {
    /// Backends that continue with the connections, addresses and counts of their predecessors.
    pub(super) fn new(
        versions: Versions,
        timeouts: &Timeouts,
        metrics: &RequestMetrics,
        drain: &Arc<Drain>,
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
            client: match before {
                Some(before) => before.client.with_timeouts(timeouts),
                None => BackendClient::new(timeouts, Arc::clone(drain)),
            },
        }
    }

    /// The target of a backend of this configuration.
    pub(crate) fn target(&self, backend: &Backend) -> &Target {
        &self.targets[backend.number]
    }

    /// All targets, by their numbers.
    pub(crate) fn targets(&self) -> std::slice::Iter<'_, Target> {
        self.targets.iter()
    }

    /// The balancers of all backends that have one.
    pub(crate) fn balancers(&self) -> impl Iterator<Item = Arc<Balancer>> {
        self.targets()
            .filter_map(|target| target.balancer.as_ref().map(Arc::clone))
    }

    /// Whether another configuration has the same backends, at the same addresses and with the same secrets.
    pub(super) fn are_same(&self, versions: &Versions) -> bool {
        let same = |(old, new): (&Target, &Arc<Backend>)| old.backend.is_same(new);
        let new = versions.backends();
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
            Some((before, balancer)) if before.backend.upstream == backend.upstream => {
                Some(Arc::clone(balancer))
            }
            known => Balancer::counting(backend, known.map(|(_, balancer)| &**balancer), &counts),
        };
        Self {
            backend: Arc::clone(backend),
            balancer,
            counts,
        }
    }

    /// Whether it has a healthy address. A backend without health checks counts as healthy.
    pub(crate) fn is_available(&self) -> bool {
        let balancer = self.balancer.as_ref();
        balancer.is_none_or(|balancer| balancer.is_available())
    }

    /// The state of its addresses.
    #[must_use]
    pub(crate) fn address_status(&self) -> Vec<AddressStatus> {
        match (&self.balancer, &self.backend.upstream.fixed) {
            (Some(balancer), _) => balancer.status(),
            (None, Some(endpoint)) => vec![AddressStatus {
                address: endpoint.address.to_string(),
                health: AddressHealth::Unchecked,
                in_flight: None,
            }],
            (None, None) => Vec::new(),
        }
    }
}
