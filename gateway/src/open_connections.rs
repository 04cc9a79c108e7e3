//! Counts clients' open connections and HTTP/2 streams, in all and by address, within the configured limits. CONTRACT 2.

mod counts;

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

pub(crate) use self::counts::RefusalCause;
use self::counts::{ConnectionCounts, Held};
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
    counts: ConnectionCounts,
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

/// The streams of an HTTP/2 connection. Those beyond its first one count as its address' until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenStreams {
    all: Arc<OpenConnections>,
    network: Option<Network>,
    taken: usize,
    open: usize,
    /// Whether the connection counts as active.
    is_active: bool,
}

/// A state of a connection that the metrics show, until this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPhase {
    all: Arc<OpenConnections>,
    held: Held,
}

/// Open connections by what happens on them, for the metrics. The numbers are not of the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionStates {
    /// PROXY header or handshake are not complete.
    pub negotiating: u64,
    /// A request is received or served.
    pub active: u64,
    /// All others.
    pub idle: u64,
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
    /// No connections of this number of listeners; `descriptors` limits the number of connections, too.
    #[must_use]
    pub(crate) fn new(descriptors: Descriptors, listeners: usize) -> Self {
        Self {
            counts: ConnectionCounts::new(listeners),
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
            self.counts.refuse(RefusalCause::Max);
            if let Some(refused) = self.refused.count(Instant::now()) {
                tracing::warn!(
                    refused,
                    max,
                    "closed {{refused}} new connections: {{max}} are open (connections.max, or the limit of file descriptors)"
                );
            }
            return None;
        }
        Some(OpenConnection {
            all: Arc::clone(self),
            network: None,
        })
    }

    /// Counts a connection of a listener, by its number. It may be refused afterwards.
    pub(crate) fn accept(&self, listener: usize) {
        self.counts.accept(listener);
    }

    /// Counts a connection that ended before its first request.
    pub(crate) fn refuse(&self, cause: RefusalCause) {
        self.counts.refuse(cause);
    }

    /// Counts a connection as negotiating.
    pub(crate) fn begin_negotiation(self: &Arc<Self>) -> ConnectionPhase {
        self.begin_phase(Held::Negotiating)
    }

    /// Counts an HTTP/1.1 connection as active, although its head is incomplete.
    pub(crate) fn begin_head(self: &Arc<Self>) -> ConnectionPhase {
        self.begin_phase(Held::ReceivingHead)
    }

    fn begin_phase(self: &Arc<Self>, held: Held) -> ConnectionPhase {
        self.counts.begin(held);
        ConnectionPhase {
            all: Arc::clone(self),
            held,
        }
    }

    /// The connections by what happens on them. `serving` is the number of HTTP/1.1 connections that serve a request.
    #[must_use]
    pub(crate) fn states(&self, serving: u64) -> ConnectionStates {
        let held = |held| self.counts.held(held);
        let negotiating = held(Held::Negotiating);
        let active = serving + held(Held::ReceivingHead) + held(Held::ActiveHttp2);
        // Last: a connection that ends meanwhile makes `idle` too small, not too large.
        let open = self.open.load(Ordering::Relaxed) as u64;
        ConnectionStates {
            negotiating,
            active,
            idle: open.saturating_sub(negotiating + active),
        }
    }

    /// The connections that a listener has accepted, by its number.
    #[must_use]
    pub(crate) fn accepted(&self, listener: usize) -> u64 {
        self.counts.accepted(listener)
    }

    /// The connections that ended before their first request for this reason.
    #[must_use]
    pub(crate) fn refused(&self, cause: RefusalCause) -> u64 {
        self.counts.refused(cause)
    }

    /// The open HTTP/2 streams.
    #[must_use]
    pub(crate) fn open_streams(&self) -> u64 {
        self.counts.held(Held::Stream)
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
            self.all.counts.refuse(RefusalCause::PerAddress);
            if let Some(refused) = self.all.refused_of_address.count(Instant::now()) {
                tracing::warn!(
                    refused,
                    max,
                    "closed {{refused}} new connections: {{max}} of one address are open (connections.per_address)"
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
            open: 0,
            is_active: false,
        }
    }
}

impl Drop for ConnectionPhase {
    fn drop(&mut self) {
        self.all.counts.end(self.held, 1);
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
                max,
                "refused {{refused}} HTTP/2 streams: {{max}} of one address are open (connections.per_address)"
            );
        }
        false
    }

    /// Counts a stream that has room.
    pub(crate) fn begin(&mut self) {
        self.open += 1;
        self.all.counts.begin(Held::Stream);
        if !std::mem::replace(&mut self.is_active, true) {
            self.all.counts.begin(Held::ActiveHttp2);
        }
    }

    /// A stream has ended.
    pub(crate) fn end(&mut self) {
        self.open -= 1;
        self.all.counts.end(Held::Stream, 1);
    }

    /// The connection is idle: it counts no streams.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_active) {
            self.all.counts.end(Held::ActiveHttp2, 1);
        }
        let taken = std::mem::take(&mut self.taken);
        if let Some(network) = self.network.filter(|_| taken > 0) {
            self.all.streams.remove(network, taken);
        }
    }
}

impl Drop for OpenStreams {
    fn drop(&mut self) {
        self.all.counts.end(Held::Stream, self.open);
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
        Arc::new(OpenConnections::new(Descriptors::raise_limit(), 1))
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
        assert_eq!(connections.refused(RefusalCause::Max), 2);
    }

    #[test]
    fn a_connection_is_negotiating_active_or_idle() {
        let connections = connections();
        let states = |negotiating, active, idle| ConnectionStates {
            negotiating,
            active,
            idle,
        };
        let limits = limits(9, 9);
        let open: Vec<_> = (0..4).filter_map(|_| connections.begin(&limits)).collect();
        assert_eq!(connections.states(0), states(0, 0, 4));
        let negotiation = connections.begin_negotiation();
        let head = connections.begin_head();
        let mut streams = open[0].streams();
        for _ in 0..2 {
            assert!(streams.has_room(1, &limits));
            streams.begin();
        }
        assert_eq!(connections.states(1), states(1, 3, 0));
        assert_eq!(connections.open_streams(), 2);
        drop((negotiation, head));
        assert_eq!(connections.states(1), states(0, 2, 2));
        // Its last answer still waits for the client.
        streams.end();
        streams.end();
        assert_eq!(connections.open_streams(), 0);
        assert_eq!(connections.states(0), states(0, 1, 3));
        streams.clear();
        assert_eq!(connections.states(0), states(0, 0, 4));
        // A connection that breaks off with an open stream.
        streams.begin();
        drop(streams);
        assert_eq!(connections.open_streams(), 0);
        drop(open);
        // Also if the numbers are not of the same instant.
        assert_eq!(connections.states(1), states(0, 1, 0));
    }
}
