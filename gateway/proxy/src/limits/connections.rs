//! Counts clients' open connections and HTTP/2 streams, in all and by address, within the configured limits. CONTRACT 2.

mod counts;
mod networks;

use std::{
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use signpost_kit::{
    limits::{Network, RateTable, SITE_FACTOR},
    log::once_a_minute::OnceAMinute,
    server::descriptors::Descriptors,
};

use self::{counts::ConnectionCounts, networks::Refusals};
pub(crate) use self::{
    counts::Held,
    networks::{CountedClient, Max},
};
pub(crate) use self::{counts::RefusalCause, networks::Networks};
use crate::config::ConnectionLimits;

/// The number of the only rule of handshakes.
const HANDSHAKE_RULE: u64 = 0;

/// Counts open connections. Memory is bounded by their number: only networks with a connection are stored.
#[derive(Debug)]
pub struct OpenConnections {
    open: AtomicUsize,
    networks: Networks,
    pub counts: ConnectionCounts,
    descriptors: Descriptors,
    refused: OnceAMinute,
    refused_of_client: Refusals,
    refused_streams: Refusals,
    /// What networks have used of the rate of handshakes. Created with the first one.
    handshakes: OnceLock<RateTable>,
    refused_handshakes: OnceAMinute,
}

/// An open connection, until this is dropped.
#[derive(Debug)]
pub struct OpenConnection {
    all: Arc<OpenConnections>,
    client: Option<CountedClient>,
}

/// The streams of an HTTP/2 connection. All but the first count as its address' until they have ended, or this is
/// dropped.
#[derive(Debug)]
pub struct OpenStreams {
    all: Arc<OpenConnections>,
    client: Option<CountedClient>,
    /// The streams that count as the address'.
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
pub struct ConnectionStates {
    /// PROXY header or handshake are not complete.
    pub negotiating: u64,
    /// A request is received or served.
    pub active: u64,
    /// All others.
    pub idle: u64,
}

impl OpenConnections {
    /// No connections; `descriptors` limits their number, too.
    #[must_use]
    pub fn new(descriptors: Descriptors) -> Self {
        Self {
            counts: ConnectionCounts::default(),
            open: AtomicUsize::new(0),
            networks: Networks::default(),
            descriptors,
            refused: OnceAMinute::new(),
            refused_of_client: Refusals::default(),
            refused_streams: Refusals::default(),
            handshakes: OnceLock::new(),
            refused_handshakes: OnceAMinute::new(),
        }
    }

    /// Counts a connection of a peer whose own address does not matter: a trusted proxy, or a balancer that sends the
    /// client's. `None` if there are too many connections.
    pub fn begin(self: &Arc<Self>, limits: &ConnectionLimits) -> Option<OpenConnection> {
        let max = self.descriptors.connection_limit(limits.max);
        // Counted before it is compared: threads that accept at the same time must not exceed the limit together.
        if self.open.fetch_add(1, Ordering::Relaxed) >= max {
            self.open.fetch_sub(1, Ordering::Relaxed);
            self.counts.refused.count(RefusalCause::Max);
            if let Some(refused) = self.refused.count(Instant::now()) {
                tracing::warn!(
                    refused,
                    max,
                    "closed new connections: too many are open (connections.max, or the limit of file descriptors)"
                );
            }
            return None;
        }
        Some(OpenConnection {
            all: Arc::clone(self),
            client: None,
        })
    }

    /// Whether any connection is open.
    pub fn are_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
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
    pub fn states(&self, serving: u64) -> ConnectionStates {
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

    /// Connections of one address and of one IPv6 /48 that are allowed.
    fn max_of(&self, limits: &ConnectionLimits) -> Max {
        let max = self.descriptors.connection_limit(limits.max);
        // Whatever is configured: no network may have so many that the others get none.
        let share = Max::share_of(max);
        let network = limits.per_address.min(share.network);
        let site = (network * SITE_FACTOR.get() as usize).min(share.site);
        Max { network, site }
    }
}

impl OpenConnection {
    /// Counts the connection for the address of its client; `None` if there are too many of it.
    pub fn of(mut self, client: IpAddr, limits: &ConnectionLimits) -> Option<Self> {
        match self.all.networks.add(client, self.all.max_of(limits)) {
            Ok(client) => {
                self.client = Some(client);
                Some(self)
            }
            Err(full) => {
                self.all.counts.refused.count(RefusalCause::PerAddress);
                if let Some(refused) = self.all.refused_of_client.count(full) {
                    tracing::warn!(
                        refused,
                        client.network = %full.network,
                        max = full.max,
                        limit = full.limit(),
                        "closed new connections: too many of one network are open"
                    );
                }
                None
            }
        }
    }

    /// Counts a TLS handshake of the client; `None` if its network, or the IPv6 /48 around it, begins too many.
    pub fn handshake(self, client: IpAddr, limits: &ConnectionLimits) -> Option<Self> {
        let (now, rate) = (Instant::now(), limits.handshakes);
        // A table takes more than 1 MB, which a gateway without TLS does not need.
        let table = self.all.handshakes.get_or_init(|| RateTable::new(now));
        if table
            .count_client(HANDSHAKE_RULE, client, rate, now)
            .is_ok()
        {
            return Some(self);
        }
        // With `None`, `self` is dropped, which takes the connection off all counts.
        self.all.counts.refused.count(RefusalCause::HandshakeRate);
        if let Some(refused) = self.all.refused_handshakes.count(now) {
            tracing::warn!(
                refused,
                client.network = %Network::from_client(client),
                per_second = rate.per_second,
                "closed new connections: one network begins too many TLS handshakes (connections.handshakes_per_second)"
            );
        }
        None
    }

    /// Counts the connection's streams.
    pub fn streams(&self) -> OpenStreams {
        OpenStreams {
            all: Arc::clone(&self.all),
            client: self.client.clone(),
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
        if let Some(client) = &self.client {
            self.all.networks.remove(client);
        }
    }
}

impl OpenStreams {
    /// Whether a stream may be open beside `open` others. An address may have as many streams, beyond the first of each
    /// connection, as connections. The streams of proxies and balancers are not limited by address.
    pub(crate) fn has_room(&mut self, open: usize, limits: &ConnectionLimits) -> bool {
        // The first stream needs no place: its connection has one.
        let Some(client) = self.client.as_ref().filter(|_| open > self.taken) else {
            return true;
        };
        let Err(full) = client.add_stream(self.all.max_of(limits)) else {
            self.taken += 1;
            return true;
        };
        if let Some(refused) = self.all.refused_streams.count(full) {
            tracing::warn!(
                refused,
                client.network = %full.network,
                max = full.max,
                limit = full.limit(),
                "refused HTTP/2 streams: too many of one network are open"
            );
        }
        false
    }

    /// Counts a stream that has room.
    pub fn begin(&mut self) {
        self.open += 1;
        self.all.counts.begin(Held::Stream);
        if !std::mem::replace(&mut self.is_active, true) {
            self.all.counts.begin(Held::ActiveHttp2);
        }
    }

    /// A stream has ended.
    pub fn end(&mut self) {
        self.open -= 1;
        self.all.counts.end(Held::Stream, 1);
    }

    /// All but `open` streams have ended, and their responses do not wait for the client any more.
    pub fn release(&mut self, open: usize) {
        if open == 0 && std::mem::take(&mut self.is_active) {
            self.all.counts.end(Held::ActiveHttp2, 1);
        }
        // One of the open streams needs no place, whichever of them was the first.
        let ended = self.taken.saturating_sub(open.saturating_sub(1));
        if let Some(client) = self.client.as_ref().filter(|_| ended > 0) {
            client.remove_streams(ended);
            self.taken -= ended;
        }
    }
}

impl Drop for OpenStreams {
    fn drop(&mut self) {
        // A connection that breaks off has not ended its streams one by one.
        self.all.counts.end(Held::Stream, self.open);
        self.release(0);
    }
}

#[cfg(test)]
mod tests {
    use signpost_kit::limits::Rate;

    use super::*;

    fn limits(max: usize, per_address: usize) -> ConnectionLimits {
        ConnectionLimits {
            max,
            per_address,
            requests: 1,
            min_rate: 1.try_into().unwrap(),
            handshakes: Rate::new(2, 5).unwrap(),
        }
    }

    fn connections() -> Arc<OpenConnections> {
        Arc::new(OpenConnections::new(Descriptors::raise_limit()))
    }

    #[test]
    fn one_address_cannot_use_up_all() {
        let connections = connections();
        let limits = limits(12, 100);
        let open = |client: &str| open_of(&connections, client, &limits);
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
        assert_eq!(connections.networks.len(), 0);
    }

    fn open_of(
        connections: &Arc<OpenConnections>,
        client: &str,
        limits: &ConnectionLimits,
    ) -> Option<OpenConnection> {
        let open = connections.begin(limits)?;
        open.of(client.parse().unwrap(), limits)
    }

    #[test]
    fn an_ipv6_48_has_four_times_as_many_and_half_of_all() {
        for (max, per_address, of_network, of_site) in
            [(1000, 5, 5, 20), (32, 100, 8, 16), (32, 3, 3, 12)]
        {
            let connections = connections();
            let limits = limits(max, per_address);
            let mut open = Vec::new();
            for network in 0..17 {
                let client = format!("2001:db8:0:{network:x}::1");
                open.extend((0..10).filter_map(|_| open_of(&connections, &client, &limits)));
                assert!(open.len() <= of_network * (network + 1), "{client}");
            }
            assert_eq!(open.len(), of_site);
            // Refused connections count nowhere: each network but those that are full has its own share left.
            let other = "2001:db8:1::1";
            assert!(open_of(&connections, other, &limits).is_some());
            assert_eq!(connections.open.load(Ordering::Relaxed), of_site);
            open.clear();
            assert_eq!(connections.networks.len(), 0);
            let again = (0..20).filter_map(|_| open_of(&connections, "2001:db8:0:10::1", &limits));
            assert_eq!(again.collect::<Vec<_>>().len(), of_network);
        }
    }

    #[test]
    fn streams_beyond_the_first_of_a_connection_count_exactly() {
        let connections = connections();
        let limits = limits(1000, 10);
        // The most that an address and a /48 may have: ten connections each, with two streams each.
        let mut all = Vec::new();
        for network in 0..4 {
            for _ in 0..10 {
                let client = format!("2001:db8:0:{network}::1");
                let open = open_of(&connections, &client, &limits).unwrap();
                let mut streams = open.streams();
                for others in 0..2 {
                    assert!(streams.has_room(others, &limits));
                    streams.begin();
                }
                all.push((open, streams));
            }
        }
        let (_, streams) = &mut all[0];
        assert!(!streams.has_room(2, &limits));
        // A stream that ends makes room for another one, of any connection of the network, and no more.
        streams.end();
        streams.release(1);
        let (_, other) = &mut all[9];
        assert!(other.has_room(2, &limits));
        assert!(!other.has_room(3, &limits));
        other.release(2);
        // A connection that breaks off gives back what it had.
        all.remove(9);
        let (_, streams) = &mut all[0];
        assert!(streams.has_room(1, &limits) && streams.has_room(2, &limits));
        assert!(!streams.has_room(3, &limits));
        // The first stream of each connection counts nowhere.
        let open = open_of(&connections, "2001:db8:0:0::1", &limits).unwrap();
        assert!(open.streams().has_room(0, &limits));
        assert!(!open.streams().has_room(1, &limits));
    }

    #[test]
    fn a_stream_refused_for_a_48_does_not_count_for_its_network() {
        let connections = connections();
        // A network may have 2, the /48 around it 4.
        let limits = limits(8, 2);
        let of = |network: u32| {
            let client = format!("2001:db8:0:{network}::1");
            open_of(&connections, &client, &limits).unwrap()
        };
        let open: Vec<_> = (0..3).map(of).collect();
        let mut streams: Vec<_> = open.iter().map(OpenConnection::streams).collect();
        for (connection, others, has_room) in [
            (0, 1, true),
            (0, 2, true),
            (0, 3, false),
            (1, 1, true),
            (1, 2, true),
            (2, 1, false),
        ] {
            let found = streams[connection].has_room(others, &limits);
            assert_eq!(found, has_room, "{connection} {others}");
        }
        streams[0].release(0);
        assert!(streams[2].has_room(1, &limits) && streams[2].has_room(2, &limits));
        assert!(!streams[0].has_room(1, &limits));
    }

    #[test]
    fn a_network_and_a_48_have_a_rate_of_handshakes() {
        let connections = connections();
        let limits = limits(1000, 1000);
        let begun = |client: &str, number: usize| {
            let begin = |_| {
                let open = open_of(&connections, client, &limits)?;
                open.handshake(client.parse().unwrap(), &limits)
            };
            (0..number).filter_map(begin).count()
        };
        assert_eq!(begun("192.0.2.1", 9), 5);
        assert_eq!(begun("192.0.2.2", 9), 5);
        let networks = (0..9).map(|network| begun(&format!("2001:db8:0:{network}::1"), 9));
        assert_eq!(networks.sum::<usize>(), 20);
        assert_eq!(
            connections
                .counts
                .refused
                .value(RefusalCause::HandshakeRate),
            8 + 61
        );
        // A refused connection is open no more.
        assert_eq!(connections.networks.len(), 0);
        // A higher rate of another configuration holds at once.
        let limits = ConnectionLimits {
            handshakes: Rate::new(2, 8).unwrap(),
            ..limits
        };
        let client = "192.0.2.1";
        let open =
            || open_of(&connections, client, &limits)?.handshake(client.parse().unwrap(), &limits);
        assert_eq!((0..9).filter_map(|_| open()).count(), 3);
    }

    #[test]
    fn what_threads_open_and_drop_at_once_leaves_nothing() {
        let connections = connections();
        let limits = limits(1000, 3);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (connections, limits) = (&connections, &limits);
                scope.spawn(move || {
                    for round in 0..500 {
                        let client = format!("2001:db8:0:{}::1", (thread + round) % 5);
                        let Some(open) = open_of(connections, &client, limits) else {
                            continue;
                        };
                        let mut streams = open.streams();
                        for others in 0..4 {
                            if streams.has_room(others, limits) {
                                streams.begin();
                            }
                        }
                        // In either order.
                        if round % 2 == 0 {
                            drop(open);
                        }
                    }
                });
            }
        });
        assert_eq!(connections.networks.len(), 0);
        assert_eq!(connections.open.load(Ordering::Relaxed), 0);
        assert_eq!(connections.counts.held(Held::Stream), 0);
    }

    #[test]
    fn the_connections_in_all_are_limited() {
        let connections = connections();
        let limits = limits(3, 1);
        let open: Vec<_> = (0..5).filter_map(|_| connections.begin(&limits)).collect();
        assert_eq!(open.len(), 3);
        drop(open);
        assert!(connections.begin(&limits).is_some());
        assert_eq!(connections.counts.refused.value(RefusalCause::Max), 2);
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
        assert_eq!(connections.counts.held(Held::Stream), 2);
        drop((negotiation, head));
        assert_eq!(connections.states(1), states(0, 2, 2));
        // Its last response still waits for the client.
        streams.end();
        streams.end();
        assert_eq!(connections.counts.held(Held::Stream), 0);
        assert_eq!(connections.states(0), states(0, 1, 3));
        streams.release(0);
        assert_eq!(connections.states(0), states(0, 0, 4));
        // A connection that breaks off with an open stream.
        streams.begin();
        drop(streams);
        assert_eq!(connections.counts.held(Held::Stream), 0);
        drop(open);
        // Also if the numbers are not of the same instant.
        assert_eq!(connections.states(1), states(0, 1, 0));
    }
}
