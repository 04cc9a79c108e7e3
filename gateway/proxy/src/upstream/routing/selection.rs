//! The balancing rules: choose an address for a request.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use pingora_load_balancing::{
    Backend,
    selection::{BackendIter, BackendSelection, Consistent},
};

use super::address::{Address, AddressState};
use crate::config::Balance;

/// Limit of points on the hash ring for each address and unit of weight (ketama).
const RING_POINTS: usize = 160;

/// The addresses of a version at one time, and the state of the balancing rule.
pub(super) struct Addresses {
    all: Box<[Arc<Address>]>,
    rule: Rule,
    next_turn: AtomicUsize,
    next_start: AtomicUsize,
}

enum Rule {
    /// Indices of addresses, each as often as its weight.
    RoundRobin(Box<[u16]>),
    LeastConnections,
    Hash(Arc<Consistent>),
}

impl Addresses {
    pub(super) fn empty(balance: Balance) -> Self {
        Self::from_all(balance, Box::new([]), &BTreeSet::new())
    }

    pub(super) fn one(balance: Balance, address: Arc<Address>) -> Self {
        let backends = BTreeSet::from([address.backend.clone()]);
        Self::from_all(balance, Box::new([address]), &backends)
    }

    /// The addresses of `before` with another rule.
    pub(super) fn with_balance(balance: Balance, before: &Self) -> Self {
        let backends = before.iter().map(|address| address.backend.clone());
        Self::from_all(balance, before.all.clone(), &backends.collect())
    }

    /// The addresses of `backends`; an address that `before` has, too, keeps its state.
    pub(super) fn new(balance: Balance, backends: &BTreeSet<Backend>, before: &Self) -> Self {
        let all = backends.iter().filter_map(|backend| {
            let known = before
                .iter()
                .find(|address| address.backend.addr == backend.addr);
            match known {
                Some(known) if known.is(backend) => Some(Arc::clone(known)),
                known => Address::new(backend, known.map(|known| &**known)),
            }
        });
        Self::from_all(balance, all.collect(), backends)
    }

    /// Whether these are the addresses of `backends`.
    pub(super) fn matches(&self, backends: &BTreeSet<Backend>) -> bool {
        self.all.len() == backends.len()
            && self
                .all
                .iter()
                .zip(backends)
                .all(|(known, backend)| known.is(backend))
    }

    fn from_all(balance: Balance, all: Box<[Arc<Address>]>, backends: &BTreeSet<Backend>) -> Self {
        let rule = match balance {
            Balance::RoundRobin => Rule::RoundRobin(turns(&all)),
            Balance::LeastConnections => Rule::LeastConnections,
            Balance::HashApp | Balance::HashClient => {
                Rule::Hash(Arc::new(Consistent::build(backends)))
            }
        };
        Self {
            all,
            rule,
            next_turn: AtomicUsize::new(0),
            next_start: AtomicUsize::new(0),
        }
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Arc<Address>> {
        self.all.iter()
    }

    /// The states of all.
    pub(super) fn states(&self) -> impl Iterator<Item = (SocketAddr, &AddressState)> + Clone {
        self.iter()
            .map(|address| (address.socket(), &*address.state))
    }

    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    /// Chooses an accepted address by the rule.
    pub(super) fn choose(
        &self,
        key: &[u8],
        accepts: impl Fn(&Address) -> bool,
    ) -> Option<&Arc<Address>> {
        match &self.rule {
            Rule::RoundRobin(turns) => self.in_turn(turns, accepts),
            Rule::LeastConnections => self.lightest(accepts),
            Rule::Hash(ring) => self.on_ring(ring, key, accepts),
        }
    }

    /// Chooses an accepted address for a retry. It takes no turn: otherwise each request would use two turns, and with
    /// two addresses, one of them failing, every request would try the failing one first.
    pub(super) fn choose_another(
        &self,
        key: &[u8],
        accepts: impl Fn(&Address) -> bool,
    ) -> Option<&Arc<Address>> {
        match &self.rule {
            Rule::RoundRobin(_) => self.starting_anywhere().find(|address| accepts(address)),
            Rule::LeastConnections | Rule::Hash(_) => self.choose(key, accepts),
        }
    }

    fn in_turn(&self, turns: &[u16], accepts: impl Fn(&Address) -> bool) -> Option<&Arc<Address>> {
        // If an address is not accepted, the next turn is used, not the next address: that would get all its requests.
        // Bounded: by their weights, a few addresses can have thousands of turns.
        for _ in 0..turns.len().min(2 * self.len()) {
            let turn = self.next_turn.fetch_add(1, Ordering::Relaxed) % turns.len();
            let address = &self.all[usize::from(turns[turn])];
            if accepts(address) {
                return Some(address);
            }
        }
        // Concurrent requests took the turns of accepted addresses.
        self.starting_anywhere().find(|address| accepts(address))
    }

    fn lightest(&self, accepts: impl Fn(&Address) -> bool) -> Option<&Arc<Address>> {
        let mut lightest = None;
        for address in self.starting_anywhere() {
            let is_lighter =
                lightest.is_none_or(|best: &Arc<Address>| address.is_lighter_than(best));
            // `accepts` is called for few: only for those lighter than all before.
            if is_lighter && accepts(address) {
                lightest = Some(address);
            }
        }
        lightest
    }

    fn on_ring(
        &self,
        ring: &Arc<Consistent>,
        key: &[u8],
        accepts: impl Fn(&Address) -> bool,
    ) -> Option<&Arc<Address>> {
        let mut points = ring.iter(key);
        let mut next = || points.next().and_then(|backend| self.find(backend));
        let first = next()?;
        if accepts(first) {
            return Some(first);
        }
        // Go round the ring only if an address is accepted.
        let any = self.iter().find(|address| accepts(address))?;
        let round: usize = self
            .iter()
            .map(|address| RING_POINTS * address.backend.weight)
            .sum();
        (0..round)
            .find_map(|_| next().filter(|address| accepts(address)))
            .or(Some(any))
    }

    /// All addresses, beginning with another one each time.
    fn starting_anywhere(&self) -> impl Iterator<Item = &Arc<Address>> {
        let first = self.next_start.fetch_add(1, Ordering::Relaxed) % self.len().max(1);
        self.all[first..].iter().chain(&self.all[..first])
    }

    /// The address that pingora knows as `backend`.
    fn find(&self, backend: &Backend) -> Option<&Arc<Address>> {
        // `all` is sorted: it was built from a `BTreeSet`.
        let index = self
            .all
            .binary_search_by(|address| address.backend.cmp(backend));
        index.ok().map(|index| &self.all[index])
    }
}

/// Turns in proportion to weights; the turns of an address are as far apart as possible.
fn turns(all: &[Arc<Address>]) -> Box<[u16]> {
    let weight = |address: &Arc<Address>| i64::try_from(address.backend.weight).unwrap_or(1);
    let total: i64 = all.iter().map(weight).sum();
    // Smooth weighted round robin, as in nginx: each turn adds every weight, and the chosen address pays the total.
    let mut credits = vec![0; all.len()];
    (0..total)
        .filter_map(|_| {
            for (credit, address) in credits.iter_mut().zip(all) {
                *credit += weight(address);
            }
            // The first of those with the highest credit.
            let richest = (0..all.len()).rev().max_by_key(|index| credits[*index])?;
            credits[richest] -= total;
            u16::try_from(richest).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests;
