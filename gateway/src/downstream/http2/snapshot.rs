//! The configuration that a stream began with. It keeps it to its end; the next stream may have another.

use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};

use crate::{gateway::Gateway, phases::origin::Peer, request::client::ConnectionInfo};

/// A gateway, and the client by its configuration.
pub(crate) struct Snapshot {
    /// The gateway.
    pub gateway: Arc<Gateway>,
    /// The client.
    pub peer: Peer,
}

impl Snapshot {
    fn new(gateway: &Arc<Gateway>, connection: &ConnectionInfo) -> Arc<Self> {
        Arc::new(Self {
            gateway: Arc::clone(gateway),
            peer: Peer::new(connection, &gateway.policy.rules.admission.trusted_proxies),
        })
    }
}

/// The snapshots of one connection. Its streams share one, so that they do not count references to the gateway, which
/// all threads share.
pub(crate) struct Snapshots<'c> {
    gateway: Cache<&'c ArcSwap<Gateway>, Arc<Gateway>>,
    connection: ConnectionInfo,
    snapshot: Arc<Snapshot>,
}

impl<'c> Snapshots<'c> {
    /// The snapshots of a connection, by the gateway in `current`.
    pub(crate) fn new(current: &'c ArcSwap<Gateway>, connection: ConnectionInfo) -> Self {
        let mut gateway = Cache::new(current);
        let snapshot = Snapshot::new(gateway.load(), &connection);
        Self {
            gateway,
            connection,
            snapshot,
        }
    }

    /// The snapshot by the current configuration.
    pub(crate) fn get(&mut self) -> &Arc<Snapshot> {
        let gateway = self.gateway.load();
        if gateway.policy.generation != self.snapshot.gateway.policy.generation {
            self.snapshot = Snapshot::new(gateway, &self.connection);
        }
        &self.snapshot
    }
}
