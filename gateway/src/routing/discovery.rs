//! Which addresses a version has: those written down, and those that names stand for at the time.
//!
//! A name that is no longer found keeps the addresses that it had last: a name service that is away is no reason to
//! stop serving.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gateway_protocol::version::Version;
use pingora::{
    lb::{Backend, Extensions},
    protocols::l4::socket,
};
use tokio::{net::lookup_host, task::JoinSet, time::timeout};

use crate::config::{BackendAddress, Place};

/// A name service that takes longer has failed: nobody waits for it but the start.
const PATIENCE: Duration = Duration::from_secs(2);

/// Finds a version's addresses.
pub(super) struct Discovery {
    version: Version,
    fixed: Vec<(SocketAddr, usize)>,
    names: Box<[Name]>,
}

/// A name among a version's addresses, and what is known of it.
pub(super) struct Name {
    host: String,
    port: u16,
    weight: usize,
    known: Arc<Mutex<Known>>,
}

/// What the last look-ups of a name came to.
#[derive(Default)]
struct Known {
    addresses: Vec<SocketAddr>,
    is_failing: bool,
}

impl Discovery {
    /// Of a name that `before` has, as much is known as there.
    pub(super) fn new(
        version: &Version,
        addresses: &[BackendAddress],
        before: Option<&Self>,
    ) -> Self {
        let known = |host: &str, port: u16| {
            let mut names = before.into_iter().flat_map(|before| &*before.names);
            let name = names.find(|name| name.host == host && name.port == port);
            name.map_or_else(Arc::default, |name| Arc::clone(&name.known))
        };
        let divisor = addresses
            .iter()
            .fold(0, |divisor, address| common(divisor, address.weight));
        let (mut fixed, mut names) = (Vec::new(), Vec::new());
        for BackendAddress { place, weight } in addresses {
            // A table of turns is as long as all weights together.
            let weight = usize::from(weight / divisor.max(1));
            match place {
                Place::Address(address) => fixed.push((*address, weight)),
                Place::Name(host, port) => names.push(Name {
                    host: host.clone(),
                    port: *port,
                    weight,
                    known: known(host, *port),
                }),
            }
        }
        Self {
            version: version.clone(),
            fixed,
            names: names.into(),
        }
    }

    /// The names, which may stand for other addresses later.
    pub(super) fn names(&self) -> &[Name] {
        &self.names
    }

    /// What the names stand for at present, each after its own, all looked up at once.
    async fn look_up(&self) -> Vec<(&Name, io::Result<Vec<SocketAddr>>)> {
        let mut tasks = JoinSet::new();
        for (place, Name { host, port, .. }) in self.names.iter().enumerate() {
            let (host, port) = (host.clone(), *port);
            tasks.spawn(async move { (place, lookup(&host, port).await) });
        }
        let mut all = Vec::with_capacity(self.names.len());
        while let Some(found) = tasks.join_next().await {
            all.extend(found.ok());
        }
        // As written down, whichever came first.
        all.sort_by_key(|(place, _)| *place);
        all.into_iter()
            .map(|(place, found)| (&self.names[place], found))
            .collect()
    }
}

impl Discovery {
    /// The addresses that there are now.
    pub(super) async fn discover(&self) -> BTreeSet<Backend> {
        let mut weights: BTreeMap<SocketAddr, usize> = self.fixed.iter().copied().collect();
        for (name, found) in self.look_up().await {
            for address in name.note(found, &self.version) {
                // One that is found twice counts once.
                weights.entry(address).or_insert(name.weight);
            }
        }
        let backend = |(address, weight)| Backend {
            addr: socket::SocketAddr::Inet(address),
            weight,
            ext: Extensions::new(),
        };
        weights.into_iter().map(backend).collect()
    }
}

impl Name {
    /// Whether it was never found.
    pub(super) fn is_unknown(&self) -> bool {
        self.known().addresses.is_empty()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addresses from now on: those that were found, or the last known. A change is told once.
    pub(super) fn note(
        &self,
        found: io::Result<Vec<SocketAddr>>,
        version: &Version,
    ) -> Vec<SocketAddr> {
        let mut known = self.known();
        let Self { host, port, .. } = self;
        match found {
            Ok(addresses) => {
                if known.is_failing {
                    tracing::info!(%version, "{host}:{port} of {version} can be looked up again");
                }
                *known = Known {
                    addresses,
                    is_failing: false,
                };
            }
            Err(why) if !known.is_failing => {
                known.is_failing = true;
                let left = known.addresses.len();
                tracing::warn!(%version, "{host}:{port} of {version} cannot be looked up, {left} addresses are known: {why}");
            }
            Err(_) => {}
        }
        known.addresses.clone()
    }
}

async fn lookup(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let found = timeout(PATIENCE, lookup_host((host, port))).await;
    let found: Vec<_> = found.map_err(|_| io::ErrorKind::TimedOut)??.collect();
    if found.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(found)
}

/// The greatest common divisor.
const fn common(one: u16, other: u16) -> u16 {
    if other == 0 {
        one
    } else {
        common(other, one % other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discovery(addresses: &[(&str, u16)]) -> Discovery {
        let addresses: Vec<_> = addresses
            .iter()
            .map(|(place, weight)| BackendAddress {
                place: place.parse().unwrap(),
                weight: *weight,
            })
            .collect();
        Discovery::new(&"v1".parse().unwrap(), &addresses, None)
    }

    async fn found(discovery: &Discovery) -> Vec<(String, usize)> {
        let backends = discovery.discover().await;
        let shown = |backend: &Backend| (backend.addr.to_string(), backend.weight);
        backends.iter().map(shown).collect()
    }

    #[tokio::test]
    async fn weights_are_as_small_as_can_be() {
        let discovery = discovery(&[("127.0.0.1:1", 100), ("127.0.0.2:1", 50)]);
        let expected = [("127.0.0.1:1".to_owned(), 2), ("127.0.0.2:1".to_owned(), 1)];
        assert_eq!(found(&discovery).await, expected);
        assert!(discovery.names().is_empty());
    }

    #[tokio::test]
    async fn a_name_stands_for_its_addresses() {
        let discovery = discovery(&[("localhost:7001", 3), ("127.0.0.1:7001", 6)]);
        assert_eq!(discovery.names().len(), 1);
        // Written down, it has the weight that is written down.
        let found = found(&discovery).await;
        assert!(
            found.contains(&("127.0.0.1:7001".to_owned(), 2)),
            "{found:?}"
        );
    }

    #[tokio::test]
    async fn the_last_known_addresses_are_kept() {
        let discovery = discovery(&[("no-such-host.invalid:7001", 1)]);
        assert!(found(&discovery).await.is_empty());
        let name = &discovery.names[0];
        let address = "127.0.0.1:7001".parse().unwrap();
        assert!(name.is_unknown());
        assert_eq!(name.note(Ok(vec![address]), &discovery.version), [address]);
        assert!(!name.is_unknown());
        assert_eq!(found(&discovery).await, [("127.0.0.1:7001".to_owned(), 1)]);
    }
}
