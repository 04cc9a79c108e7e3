//! Counts clients' open connections and HTTP/2 streams, in all and by address, within the configured limits. CONTRACT 2.

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

/// Streams that a connection takes at once, so that it seldom needs the lock.
const STREAM_STEP: usize = 10;

/// Counts open connections. Memory is bounded by their number: only addresses with a connection are stored.
#[derive(Debug)]
pub(crate) struct OpenConnections {
    open: AtomicUsize,
    connections: Counts,
    /// Streams beyond the first of each connection.
    streams: Counts,
    descriptors: Descriptors,
    refused: OnceAMinute,
    refused_of_address: OnceAMinute,
    refused_streams: OnceAMinute,
}

/// An open connection, until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    all: Arc<OpenConnections>,
    network: Option<Network>,
}

/// The streams of an HTTP/2 connection beyond its first one. They count as its address' until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenStreams {
    all: Arc<OpenConnections>,
    network: Option<Network>,
    taken: usize,
}

/// Numbers by network. A network without any is not stored.
#[derive(Debug)]
struct Counts {
    shards: [Mutex<HashMap<Network, usize>>; SHARDS],
    hasher: RandomState,
}

impl Counts {
    fn new() -> Self {
        Self {
            shards: Default::default(),
            hasher: RandomState::new(),
        }
    }

    /// Adds `number`, unless more than `max` would result.
    fn add(&self, network: Network, number: usize, max: usize) -> bool {
        let mut counts = self.shard(&network);
        let count = counts.get(&network).copied().unwrap_or_default() + number;
        let fits = count <= max;
        if fits {
            counts.insert(network, count);
        }
        fits
    }

    fn remove(&self, network: Network, number: usize) {
        let mut counts = self.shard(&network);
        if let Some(count) = counts.get_mut(&network) {
            *count = count.saturating_sub(number);
            if *count == 0 {
                counts.remove(&network);
            }
        }
    }

    fn shard(&self, network: &Network) -> MutexGuard<'_, HashMap<Network, usize>> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lower bits of a hash are as good as any"
        )]
        let index = self.hasher.hash_one(network) as usize % SHARDS;
        self.shards[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    /// No connections; `descriptors` limits their number, too.
    #[must_use]
    pub(crate) fn new(descriptors: Descriptors) -> Self {
        Self {
            open: AtomicUsize::new(0),
            connections: Counts::new(),
            streams: Counts::new(),
            descriptors,
            refused: OnceAMinute::new(),
            refused_of_address: OnceAMinute::new(),
            refused_streams: OnceAMinute::new(),
        }
    }

    /// Counts a connection of a peer whose own address does not matter: a trusted proxy, or a balancer that sends the
    /// client's. `None` if there are too many connections.
    pub(crate) fn begin(self: &Arc<Self>, limits: &ConnectionLimits) -> Option<OpenConnection> {
        let max = self.descriptors.connection_limit(limits.max);
        if self.open.fetch_add(1, Ordering::Relaxed) >= max {
            self.open.fetch_sub(1, Ordering::Relaxed);
            if let Some(refused) = self.refused.count(Instant::now()) {
                tracing::warn!(
                    refused,
                    "closed {refused} new connections: {max} are open (connections.max, or the limit of file descriptors)"
                );
            }
            return None;
        }
        Some(OpenConnection {
            all: Arc::clone(self),
            network: None,
        })
    }

    /// Connections of one address that are allowed.
    fn max_of_address(&self, limits: &ConnectionLimits) -> usize {
        let share = self.descriptors.connection_limit(limits.max) / SHARE;
        limits.per_address.min(share.max(1))
    }
}

impl OpenConnection {
    /// Counts the connection for the address of its client; `None` if there are too many of it.
    pub(crate) fn of(mut self, client: IpAddr, limits: &ConnectionLimits) -> Option<Self> {
        let max = self.all.max_of_address(limits);
        let network = Network::from_client(client);
        if !self.all.connections.add(network, 1, max) {
            if let Some(refused) = self.all.refused_of_address.count(Instant::now()) {
                tracing::warn!(
                    refused,
                    "closed {refused} new connections: {max} of one address are open (connections.per_address)"
                );
            }
            return None;
        }
        self.network = Some(network);
        Some(self)
    }

    /// Counts the connection's streams.
    pub(crate) fn streams(&self) -> OpenStreams {
        OpenStreams {
            all: Arc::clone(&self.all),
            network: self.network,
            taken: 0,
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.all.open.fetch_sub(1, Ordering::Relaxed);
        if let Some(network) = self.network {
            self.all.connections.remove(network, 1);
        }
    }
}

impl OpenStreams {
    /// Whether a stream may be open beside `open` others. An address may have as many streams, beyond the first of each
    /// connection, as connections. The streams of proxies and balancers are not limited by address.
    pub(crate) fn has_room(&mut self, open: usize, limits: &ConnectionLimits) -> bool {
        let Some(network) = self.network.filter(|_| open > self.taken) else {
            return true;
        };
        let max = self.all.max_of_address(limits);
        if self
            .all
            .streams
            .add(network, STREAM_STEP, max.max(STREAM_STEP))
        {
            self.taken += STREAM_STEP;
            return true;
        }
        if let Some(refused) = self.all.refused_streams.count(Instant::now()) {
            tracing::warn!(
                refused,
                "refused {refused} HTTP/2 streams: {max} of one address are open (connections.per_address)"
            );
        }
        false
    }

    /// The connection is idle: it counts no streams.
    pub(crate) fn clear(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        if let Some(network) = self.network.filter(|_| taken > 0) {
            self.all.streams.remove(network, taken);
        }
    }
}

impl Drop for OpenStreams {
    fn drop(&mut self) {
        self.clear();
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
        let shards = connections.connections.shards.iter();
        assert!(
            shards
                .map(|shard| shard.lock().unwrap().len())
                .sum::<usize>()
                <= 1
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
