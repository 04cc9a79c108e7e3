//! Counts clients' open connections, in all and by address, within the configured limits. CONTRACT 2.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use signpost_kit::{descriptors::Descriptors, once_a_minute::OnceAMinute, rate_limit::Network};

use crate::config::ConnectionLimits;

/// Number of maps, each with its own lock.
const SHARDS: usize = 16;

/// At most this part of all connections is of one address, whatever is configured.
const SHARE: usize = 4;

/// Counts open connections. Memory is bounded by their number: only addresses with a connection are stored.
#[derive(Debug)]
pub(crate) struct OpenConnections {
    open: AtomicUsize,
    by_network: [Mutex<HashMap<Network, usize>>; SHARDS],
    hasher: RandomState,
    descriptors: Descriptors,
    refused: OnceAMinute,
    refused_of_address: OnceAMinute,
}

/// An open connection, until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    connections: Arc<OpenConnections>,
    network: Option<Network>,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    /// As many connections as allowed are open in all.
    All(usize),
    /// As many connections as allowed are open from this address.
    Address(usize),
}

impl OpenConnections {
    /// No connections; `descriptors` limits their number, too.
    #[must_use]
    pub(crate) fn new(descriptors: Descriptors) -> Self {
        Self {
            open: AtomicUsize::new(0),
            by_network: Default::default(),
            hasher: RandomState::new(),
            descriptors,
            refused: OnceAMinute::new(),
            refused_of_address: OnceAMinute::new(),
        }
    }

    /// Counts a connection of a peer whose own address does not matter: a trusted proxy, or a balancer that sends the
    /// client's. `None` if there are too many connections.
    pub(crate) fn begin(self: &Arc<Self>, limits: &ConnectionLimits) -> Option<OpenConnection> {
        let max = self.max(limits);
        if self.open.fetch_add(1, Ordering::Relaxed) >= max {
            self.open.fetch_sub(1, Ordering::Relaxed);
            self.log_refused(Full::All(max));
            return None;
        }
        Some(OpenConnection {
            connections: Arc::clone(self),
            network: None,
        })
    }

    /// Connections in all that are allowed: the configured number, or what the descriptors allow.
    fn max(&self, limits: &ConnectionLimits) -> usize {
        self.descriptors.connection_limit(limits.max)
    }

    fn shard(&self, network: &Network) -> MutexGuard<'_, HashMap<Network, usize>> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lower bits of a hash are as good as any"
        )]
        let index = self.hasher.hash_one(network) as usize % SHARDS;
        self.by_network[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn log_refused(&self, full: Full) {
        let counter = match full {
            Full::All(_) => &self.refused,
            Full::Address(_) => &self.refused_of_address,
        };
        let Some(refused) = counter.count(Instant::now()) else {
            return;
        };
        match full {
            Full::All(max) => tracing::warn!(
                refused,
                "closed {refused} new connections: {max} are open (connections.max, or the limit of file descriptors)"
            ),
            Full::Address(max) => tracing::warn!(
                refused,
                "closed {refused} new connections: {max} of one address are open (connections.per_address)"
            ),
        }
    }
}

impl OpenConnection {
    /// Counts the connection for the address of its client; `None` if there are too many of it.
    pub(crate) fn of(mut self, client: IpAddr, limits: &ConnectionLimits) -> Option<Self> {
        let connections = Arc::clone(&self.connections);
        let max = limits
            .per_address
            .min((connections.max(limits) / SHARE).max(1));
        let network = Network::from_client(client);
        let mut counts = connections.shard(&network);
        let count = counts.entry(network).or_default();
        if *count >= max {
            drop(counts);
            connections.log_refused(Full::Address(max));
            return None;
        }
        *count += 1;
        drop(counts);
        self.network = Some(network);
        Some(self)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.open.fetch_sub(1, Ordering::Relaxed);
        let Some(network) = self.network else { return };
        let mut counts = self.connections.shard(&network);
        if let Some(count) = counts.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max: usize, per_address: usize) -> ConnectionLimits {
        ConnectionLimits {
            max,
            per_address,
            requests: 1,
            min_rate: 1.try_into().unwrap(),
        }
    }

    fn connections() -> Arc<OpenConnections> {
        Arc::new(OpenConnections::new(Descriptors::raise_limit()))
    }

    #[test]
    fn one_address_cannot_use_up_all() {
        let connections = connections();
        let limits = limits(12, 100);
        let open = |client: &str| {
            connections
                .begin(&limits)?
                .of(client.parse().unwrap(), &limits)
        };
        let first: Vec<_> = (0..9).filter_map(|_| open("192.0.2.1")).collect();
        assert_eq!(first.len(), 3);
        // Addresses of one /64 count as one.
        let second: Vec<_> = [
            "2001:db8::1",
            "2001:db8::2",
            "2001:db8::ffff:3",
            "2001:db8::4",
        ]
        .iter()
        .filter_map(|client| open(client))
        .collect();
        assert_eq!(second.len(), 3);
        assert!(open("2001:db8:0:1::1").is_some());
        drop(first);
        assert!(open("192.0.2.1").is_some());
        drop(second);
        assert_eq!(connections.open.load(Ordering::Relaxed), 0);
        assert!(
            connections
                .by_network
                .iter()
                .all(|shard| shard.lock().unwrap().is_empty())
        );
    }

    #[test]
    fn the_connections_in_all_are_limited() {
        let connections = connections();
        let limits = limits(3, 1);
        let open: Vec<_> = (0..5).filter_map(|_| connections.begin(&limits)).collect();
        assert_eq!(open.len(), 3);
        drop(open);
        assert!(connections.begin(&limits).is_some());
    }
}
