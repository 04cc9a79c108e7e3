//! The current gateway, as one connection sees it.

use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};

use crate::{phases::origin::Peer, request::client::ConnectionInfo, serve::Gateway};

/// A gateway, and the client by its configuration. A request keeps it to its end; the next one may have another.
pub(crate) struct Snapshot {
    /// The gateway.
    pub gateway: Arc<Gateway>,
    /// The client.
    pub peer: Peer,
    /// Limit of the connection's requests; 0 once a reload has closed its listener, so that the next response is the last.
    pub max_requests: u64,
}

/// The gateway that serves the next request of one connection. The requests share a snapshot, so that they do not count
/// references to the gateway, which all threads share.
pub(crate) struct Current<'c> {
    gateway: Cache<&'c ArcSwap<Gateway>, Arc<Gateway>>,
    /// Boxed: a connection's task holds it twice.
    connection: Box<ConnectionInfo>,
    snapshot: Arc<Snapshot>,
}

impl Snapshot {
    fn new(gateway: &Arc<Gateway>, connection: &ConnectionInfo) -> Arc<Self> {
        let policy = &gateway.policy;
        let is_open = |id| policy.listeners.iter().any(|listener| listener.id == id);
        Arc::new(Self {
            gateway: Arc::clone(gateway),
            peer: Peer::new(connection, &policy.rules.admission.trusted_proxies),
            max_requests: if connection.listener.is_none_or(is_open) {
                policy.bounds.connections.requests
            } else {
                0
            },
        })
    }
}

impl<'c> Current<'c> {
    /// The connection's gateway is the one in `current`.
    pub(crate) fn new(current: &'c ArcSwap<Gateway>, connection: Box<ConnectionInfo>) -> Self {
        let mut gateway = Cache::new(current);
        let snapshot = Snapshot::new(gateway.load(), &connection);
        Self {
            gateway,
            connection,
            snapshot,
        }
    }

    /// The snapshot by the current configuration. Costs one load from memory unless it changed.
    pub(crate) fn get(&mut self) -> &Arc<Snapshot> {
        let gateway = self.gateway.load();
        if gateway.policy.generation != self.snapshot.gateway.policy.generation {
            self.snapshot = Snapshot::new(gateway, &self.connection);
        }
        &self.snapshot
    }
}
