//! The current gateway, as one connection sees it.

use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};

use crate::{gateway::Gateway, phases::origin::Peer, request::client::ConnectionInfo};

/// The gateway that serves the next request of one connection.
pub(crate) struct Current<'c> {
    gateway: Cache<&'c ArcSwap<Gateway>, Arc<Gateway>>,
    connection: ConnectionInfo,
    /// The client, by the trusted proxies of configuration `generation`.
    peer: Peer,
    generation: u64,
}

impl<'c> Current<'c> {
    /// The connection's gateway is the one in `current`.
    pub(crate) fn new(current: &'c ArcSwap<Gateway>, connection: ConnectionInfo) -> Self {
        let gateway = Cache::new(current);
        let (generation, peer) = {
            let gateway = gateway.arc_swap().load();
            let peer = Peer::new(&connection, &gateway.policy.rules.admission.trusted_proxies);
            (gateway.policy.generation, peer)
        };
        Self {
            gateway,
            connection,
            peer,
            generation,
        }
    }

    /// Returns the gateway and the client by the current configuration. Costs one load from memory unless it changed.
    pub(crate) fn get(&mut self) -> (&Gateway, &Peer) {
        let gateway = self.gateway.load();
        if gateway.policy.generation != self.generation {
            self.generation = gateway.policy.generation;
            self.peer = Peer::new(
                &self.connection,
                &gateway.policy.rules.admission.trusted_proxies,
            );
        }
        (gateway, &self.peer)
    }
}
