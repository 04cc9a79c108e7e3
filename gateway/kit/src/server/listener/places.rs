//! The places of a listener's open connections. If none is free, the connection that has been without a request for longest
//! makes room for a new one: one that says nothing, stops within a handshake or a head, or is idle after a request.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::HttpSettings;
use crate::limits::Network;

/// The places of a listener.
#[derive(Debug, Default)]
pub(super) struct Places {
    state: Mutex<PlacesState>,
    of_networks: Arc<Shares>,
    /// A place is free, or its connection is without a request.
    freed: Notify,
}

#[derive(Debug, Default)]
struct PlacesState {
    taken: usize,
    next_number: u64,
    /// The connections without a request, by when that began.
    offered: BTreeMap<u64, (Network, Arc<Notify>)>,
}

impl Places {
    /// Takes a place, if need be another connection's; `None` if each has a request. A network with as many places as
    /// it may have makes room itself.
    pub(super) fn take(self: &Arc<Self>, network: Network, limits: &HttpSettings) -> Option<Place> {
        let mut state = self.state.lock();
        let share = self.of_networks.take(network, limits.max_of_network);
        if share.is_none() || state.taken >= limits.max_connections {
            // Numbers rise with time, so the first match has been without a request for longest.
            let mut offered = state.offered.iter();
            let longest = offered.find(|(_, (of, _))| share.is_some() || *of == network);
            let number = *longest?.0;
            let (_, close) = state.offered.remove(&number)?;
            // Keeps a permit: that connection may be running, and not wait for this.
            close.notify_one();
        }
        // Beyond its share for a moment: the connection that makes room still has its own.
        let share = share.or_else(|| self.of_networks.take(network, usize::MAX))?;
        state.taken += 1;
        drop(state);
        let place = Place {
            of: Some((Arc::clone(self), share)),
            close: Arc::default(),
            number: Mutex::default(),
        };
        place.offer();
        Some(place)
    }

    /// Waits for a place.
    pub(super) async fn wait(self: &Arc<Self>, network: Network, limits: &HttpSettings) -> Place {
        loop {
            let freed = self.freed.notified();
            if let Some(place) = self.take(network, limits) {
                return place;
            }
            // Wakes all callers, in turns: the network of the longest waiting caller may be at its share.
            freed.await;
        }
    }
}

/// What each network has.
#[derive(Debug, Default)]
pub(super) struct Shares(Mutex<HashMap<Network, usize>>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    shares: Arc<Shares>,
    network: Network,
}

impl Shares {
    /// Takes one; `None` if the network has `max` of them.
    pub(super) fn take(self: &Arc<Self>, network: Network, max: usize) -> Option<Share> {
        let mut taken = self.0.lock();
        let of_network = taken.entry(network).or_default();
        (*of_network < max).then(|| {
            *of_network += 1;
            Share {
                shares: Arc::clone(self),
                network,
            }
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.0.lock();
        if let Some(of_network) = taken.get_mut(&self.network) {
            *of_network -= 1;
            // The map must not grow with each network that has ever connected.
            if *of_network == 0 {
                taken.remove(&self.network);
            }
        }
    }
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    /// `None` beyond the limit.
    of: Option<(Arc<Places>, Share)>,
    close: Arc<Notify>,
    /// Its number among the offered ones.
    number: Mutex<Option<u64>>,
}

impl Place {
    /// A place beyond the limit, for one request.
    pub(super) fn beyond_limit() -> Self {
        let close = Arc::new(Notify::new());
        // From the beginning, so that the connection ends with its first request.
        close.notify_one();
        Self {
            of: None,
            close,
            number: Mutex::default(),
        }
    }

    /// Whether it is for one request only.
    pub(super) const fn is_beyond_limit(&self) -> bool {
        self.of.is_none()
    }

    /// Offers the place to new connections: the connection is without a request from now on.
    pub(super) fn offer(&self) {
        let Some((places, share)) = &self.of else {
            return;
        };
        let mut state = places.state.lock();
        let number = state.next_number;
        state.next_number += 1;
        let offered = (share.network, Arc::clone(&self.close));
        state.offered.insert(number, offered);
        // Under the lock of the places: a new connection may take this place as soon as that is released.
        *self.number.lock() = Some(number);
        drop(state);
        places.freed.notify_waiters();
    }

    /// The connection has a request.
    pub(super) fn withdraw(&self) {
        // Locks in the other order than `offer`: only the connection's own task locks the number, so no deadlock.
        if let (Some((places, _)), Some(number)) = (&self.of, self.number.lock().take()) {
            places.state.lock().offered.remove(&number);
        }
    }

    /// Waits until the connection must close as soon as it is without a request.
    pub(super) async fn is_needed(&self) {
        self.close.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.withdraw();
        if let Some((places, share)) = self.of.take() {
            places.state.lock().taken -= 1;
            // Released before the waiting callers are woken: they need the network's share, too.
            drop(share);
            places.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, time::Duration};

    use futures_util::FutureExt;

    use super::*;
    use crate::server::listener::HttpTimeouts;

    #[tokio::test]
    async fn a_network_at_its_share_keeps_no_free_place_from_others() {
        let timeouts = HttpTimeouts {
            head: Duration::ZERO,
            idle: Duration::ZERO,
            send: Duration::ZERO,
        };
        let limits = HttpSettings {
            name: "test",
            max_connections: 2,
            max_of_network: 1,
            timeouts,
            settle: timeouts.head,
        };
        let network = |last| Network::from_site([127, 0, 0, last].into());
        let places = Arc::new(Places::default());
        let take = |network| {
            let place = places.take(network, &limits).unwrap();
            place.withdraw();
            place
        };
        let (_first, second) = (take(network(1)), take(network(2)));
        let mut at_share = pin!(places.wait(network(1), &limits));
        let mut other = pin!(places.wait(network(3), &limits));
        assert!(at_share.as_mut().now_or_never().is_none());
        assert!(other.as_mut().now_or_never().is_none());
        drop(second);
        assert!(at_share.now_or_never().is_none());
        assert!(other.now_or_never().is_some());
    }
}
