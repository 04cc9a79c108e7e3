//! What is open of each client network, and of the IPv6 /48 around it: connections and HTTP/2 streams.
//!
//! A stream costs no lock: each connection shares the number of its network's streams.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

use signpost_kit::{limits::Network, log::once_a_minute::OnceAMinute};

/// Number of maps, each with its own lock.
const SHARDS: usize = 16;

/// At most this part of all is of one network, whatever is configured.
const SHARE: usize = 4;
/// At most this part of all is of one IPv6 /48.
const SITE_SHARE: usize = 2;

/// The networks with open connections, or with other things that each may have a share of. Others are not stored.
#[derive(Debug, Default)]
pub(crate) struct Networks {
    shards: [Mutex<HashMap<Network, Open>>; SHARDS],
    hasher: RandomState,
}

/// What is open of a network.
#[derive(Debug, Default)]
struct Open {
    connections: usize,
    streams: Arc<AtomicUsize>,
}

/// What may be open, of connections and of streams alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Max {
    /// Of an IPv4 address or IPv6 /64.
    pub network: usize,
    /// Of an IPv6 /48.
    pub site: usize,
}

/// A client has as much open as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    /// The client's network, or the /48 around it.
    pub network: Network,
    /// What may be open.
    pub max: usize,
    is_site: bool,
}

/// Counts what each limit refuses. Each has log lines of its own.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    of_address: OnceAMinute,
    of_site: OnceAMinute,
}

impl Full {
    /// Of what, and the key that says so.
    pub(super) const fn limit(self) -> &'static str {
        if self.is_site {
            "four times connections.per_address, for one IPv6 /48"
        } else {
            "connections.per_address"
        }
    }
}

impl Refusals {
    /// Counts a refusal. If a line is due, returns the number of refusals since the last one.
    pub(super) fn count(&self, full: Full) -> Option<u64> {
        let lines = if full.is_site {
            &self.of_site
        } else {
            &self.of_address
        };
        lines.count(Instant::now())
    }
}

/// The client of a counted connection.
#[derive(Clone, Debug)]
pub(crate) struct CountedClient {
    network: Member,
    /// `None`: an IPv4 address.
    site: Option<Member>,
}

/// A network that counts a connection.
#[derive(Clone, Debug)]
struct Member {
    network: Network,
    streams: Arc<AtomicUsize>,
}

impl Networks {
    /// Counts a connection. A refused one counts nowhere.
    pub(crate) fn add(&self, address: IpAddr, max: Max) -> Result<CountedClient, Full> {
        // One lock after the other, never both, so that no thread can wait for another in a circle.
        let (network, site) = Network::and_site(address);
        let mut client = CountedClient {
            network: self
                .join(network, max.network)
                .ok_or(max.network_full(network))?,
            site: None,
        };
        if let Some(site) = site {
            let Some(joined) = self.join(site, max.site) else {
                // Undoes the network only: the client has no site yet.
                self.remove(&client);
                return Err(max.site_full(site));
            };
            client.site = Some(joined);
        }
        Ok(client)
    }

    /// A connection of the client has ended.
    pub(crate) fn remove(&self, client: &CountedClient) {
        for member in client.members() {
            let mut networks = self.shard(&member.network);
            if let Some(open) = networks.get_mut(&member.network) {
                open.connections -= 1;
                if open.connections == 0 {
                    // No stream counts here any more: an HTTP/2 connection drops its streams before itself.
                    networks.remove(&member.network);
                }
            }
        }
    }

    fn join(&self, network: Network, max: usize) -> Option<Member> {
        let mut networks = self.shard(&network);
        if networks.get(&network).map_or(0, |open| open.connections) >= max {
            return None;
        }
        let open = networks.entry(network).or_default();
        open.connections += 1;
        let streams = Arc::clone(&open.streams);
        Some(Member { network, streams })
    }

    fn shard(&self, network: &Network) -> MutexGuard<'_, HashMap<Network, Open>> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lower bits of a hash are as good as any"
        )]
        let index = self.hasher.hash_one(network) as usize % SHARDS;
        // A panic elsewhere must not close the listeners to all networks of the shard. At worst one count is wrong.
        self.shards[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of stored networks.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|shard| shard.lock().unwrap().len()).sum()
    }
}

impl Max {
    /// The share of one network, and of one site, in `all`.
    #[must_use]
    pub(crate) fn share_of(all: usize) -> Self {
        Self {
            // At least one: a small `connections.max` would otherwise admit no network at all.
            network: (all / SHARE).max(1),
            site: (all / SITE_SHARE).max(1),
        }
    }

    const fn network_full(self, network: Network) -> Full {
        Full {
            network,
            max: self.network,
            is_site: false,
        }
    }

    const fn site_full(self, site: Network) -> Full {
        Full {
            network: site,
            max: self.site,
            is_site: true,
        }
    }
}

impl CountedClient {
    /// Counts a stream. A refused one counts nowhere.
    pub(super) fn add_stream(&self, max: Max) -> Result<(), Full> {
        if !self.network.add_stream(max.network) {
            return Err(max.network_full(self.network.network));
        }
        if let Some(site) = &self.site
            && !site.add_stream(max.site)
        {
            // Given back: streams that the site refuses must not use up the share of the network.
            self.network.streams.fetch_sub(1, Relaxed);
            return Err(max.site_full(site.network));
        }
        Ok(())
    }

    /// Streams have ended.
    pub(super) fn remove_streams(&self, number: usize) {
        for member in self.members() {
            member.streams.fetch_sub(number, Relaxed);
        }
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        std::iter::once(&self.network).chain(&self.site)
    }
}

impl Member {
    fn add_stream(&self, max: usize) -> bool {
        // Added before it is compared: two connections that only compare could both take the last place. `Relaxed`,
        // since the number protects no other memory.
        let has_room = self.streams.fetch_add(1, Relaxed) < max;
        if !has_room {
            self.streams.fetch_sub(1, Relaxed);
        }
        has_room
    }
}
