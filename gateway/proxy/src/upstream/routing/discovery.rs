//! Which addresses a version has: configured ones, and those that names resolve to.
//!
//! A name that cannot be resolved keeps its last addresses, so that a DNS failure does not stop the service.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pingora::protocols::l4::socket;
use pingora_load_balancing::{Backend, Extensions};
use tokio::{net::lookup_host, task::JoinSet, time::timeout};

use crate::{
    config::{BackendAddress, BackendName, HostPort},
    tls::backend::TlsPeer,
};

/// Timeout of a DNS lookup. Only the start and a reload wait for one.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Finds a version's addresses.
pub(super) struct Discovery {
    name: BackendName,
    fixed: Vec<(SocketAddr, AddressSettings)>,
    names: Box<[Name]>,
}

/// A name among a version's addresses.
pub(super) struct Name {
    host: String,
    port: u16,
    settings: AddressSettings,
    state: Arc<Mutex<NameState>>,
}

/// What discovery says of an address.
#[derive(Clone)]
struct AddressSettings {
    weight: usize,
    tls: Option<Arc<TlsPeer>>,
}

/// The result of a name's last lookups.
#[derive(Default)]
struct NameState {
    addresses: Vec<SocketAddr>,
    is_failing: bool,
}

impl Discovery {
    /// Creates the discovery of a version. Names that `before` has share its state.
    pub(super) fn new(
        name: &BackendName,
        addresses: &[BackendAddress],
        before: Option<&Self>,
    ) -> Self {
        let state = |host: &str, port: u16| {
            let mut names = before.into_iter().flat_map(|before| &*before.names);
            let name = names.find(|name| name.host == host && name.port == port);
            name.map_or_else(Arc::default, |name| Arc::clone(&name.state))
        };
        let divisor = addresses
            .iter()
            .fold(0, |divisor, address| gcd(divisor, address.weight));
        let (mut fixed, mut names) = (Vec::new(), Vec::new());
        for BackendAddress {
            host_port,
            weight,
            tls,
        } in addresses
        {
            // Weights are reduced, since the round-robin table has as many entries as their sum.
            let settings = AddressSettings {
                weight: usize::from(weight / divisor.max(1)),
                tls: tls.clone(),
            };
            match host_port {
                HostPort::Address(address) => fixed.push((*address, settings)),
                HostPort::Name(host, port) => names.push(Name {
                    host: host.clone(),
                    port: *port,
                    settings,
                    state: state(host, *port),
                }),
            }
        }
        Self {
            name: name.clone(),
            fixed,
            names: names.into(),
        }
    }

    /// The names, whose addresses may change.
    pub(super) fn names(&self) -> &[Name] {
        &self.names
    }

    /// Resolves all names concurrently. The results are in the order of the names.
    async fn resolve_names(&self) -> Vec<(&Name, io::Result<Vec<SocketAddr>>)> {
        let mut tasks = JoinSet::new();
        for (index, Name { host, port, .. }) in self.names.iter().enumerate() {
            let (host, port) = (host.clone(), *port);
            tasks.spawn(async move { (index, resolve(&host, port).await) });
        }
        let mut all = Vec::with_capacity(self.names.len());
        while let Some(lookup) = tasks.join_next().await {
            all.extend(lookup.ok());
        }
        // In configured order, whichever was resolved first: a duplicate address gets the first weight.
        all.sort_by_key(|(index, _)| *index);
        all.into_iter()
            .map(|(index, lookup)| (&self.names[index], lookup))
            .collect()
    }
}

impl Discovery {
    /// Finds the current addresses.
    pub(super) async fn discover(&self) -> BTreeSet<Backend> {
        let mut all: BTreeMap<SocketAddr, AddressSettings> = self.fixed.iter().cloned().collect();
        for (name, lookup) in self.resolve_names().await {
            for address in name.note(lookup, &self.name) {
                // A duplicate address counts once.
                all.entry(address).or_insert_with(|| name.settings.clone());
            }
        }
        let backend = |(address, AddressSettings { weight, tls })| {
            let mut ext = Extensions::new();
            if let Some(tls) = tls {
                ext.insert(tls);
            }
            Backend {
                addr: socket::SocketAddr::Inet(address),
                weight,
                ext,
            }
        };
        // Ordered by address: `Addresses` compares two lists by position, and searches in one by halves.
        all.into_iter().map(backend).collect()
    }
}

impl Name {
    /// Whether it was never resolved.
    pub(super) fn is_unresolved(&self) -> bool {
        self.state().addresses.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, NameState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a lookup and returns the addresses from now on: the new ones, or the last known. A change is logged once.
    pub(super) fn note(
        &self,
        lookup: io::Result<Vec<SocketAddr>>,
        name: &BackendName,
    ) -> Vec<SocketAddr> {
        let mut state = self.state();
        let Self { host, port, .. } = self;
        match lookup {
            Ok(addresses) => {
                if state.is_failing {
                    tracing::info!(
                        backend = %name, version = name.version(), host, port,
                        "the backend's host can be resolved again"
                    );
                }
                *state = NameState {
                    addresses,
                    is_failing: false,
                };
            }
            Err(why) if !state.is_failing => {
                state.is_failing = true;
                let count = state.addresses.len();
                tracing::warn!(
                    backend = %name, version = name.version(), host, port, count, %why,
                    "the backend's host cannot be resolved, its known addresses stay in use"
                );
            }
            Err(_) => {}
        }
        state.addresses.clone()
    }
}

async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let lookup = timeout(RESOLVE_TIMEOUT, lookup_host((host, port))).await;
    let addresses: Vec<_> = lookup.map_err(|_| io::ErrorKind::TimedOut)??.collect();
    if addresses.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(addresses)
}

/// The greatest common divisor.
const fn gcd(weight: u16, other: u16) -> u16 {
    if other == 0 {
        weight
    } else {
        gcd(other, weight % other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discovery(addresses: &[(&str, u16)]) -> Discovery {
        let addresses: Vec<_> = addresses
            .iter()
            .map(|(host_port, weight)| BackendAddress {
                host_port: host_port.parse().unwrap(),
                weight: *weight,
                tls: None,
            })
            .collect();
        Discovery::new(&BackendName::own("v1".parse().unwrap()), &addresses, None)
    }

    async fn found(discovery: &Discovery) -> Vec<(String, usize)> {
        let backends = discovery.discover().await;
        let shown = |backend: &Backend| (backend.addr.to_string(), backend.weight);
        backends.iter().map(shown).collect()
    }

    #[tokio::test]
    async fn weights_are_reduced_by_their_common_divisor() {
        let discovery = discovery(&[("127.0.0.1:1", 100), ("127.0.0.2:1", 50)]);
        let expected = [("127.0.0.1:1".to_owned(), 2), ("127.0.0.2:1".to_owned(), 1)];
        assert_eq!(found(&discovery).await, expected);
        assert!(discovery.names().is_empty());
    }

    #[tokio::test]
    async fn a_name_resolves_to_its_addresses() {
        let discovery = discovery(&[("localhost:7001", 3), ("127.0.0.1:7001", 6)]);
        assert_eq!(discovery.names().len(), 1);
        // An address that is configured itself has its own weight.
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
        assert!(name.is_unresolved());
        assert_eq!(name.note(Ok(vec![address]), &discovery.name), [address]);
        assert!(!name.is_unresolved());
        assert_eq!(found(&discovery).await, [("127.0.0.1:7001".to_owned(), 1)]);
    }
}
