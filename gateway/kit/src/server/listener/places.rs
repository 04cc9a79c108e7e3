//! The places of a listener's open connections. If none is free, the longest idle connection makes room for a new one.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::limits::Network;

/// The places of a listener.
#[derive(Debug, Default)]
pub(super) struct Places {
    state: Mutex<State>,
    /// A place is free, or its connection is idle.
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    next_idle: u64,
    /// The idle connections, the longest idle first.
    idle: BTreeMap<u64, Arc<Notify>>,
}

impl Places {
    /// Takes one of `max` places, or that of the longest idle connection; `None` if no connection is idle.
    pub(super) fn take(self: &Arc<Self>, max: usize) -> Option<Place> {
        let mut state = self.state.lock();
        if state.taken >= max {
            let (_, close) = state.idle.pop_first()?;
            close.notify_one();
        }
        state.taken += 1;
        Some(Place {
            places: Some(Arc::clone(self)),
            close: Arc::default(),
        })
    }

    /// Waits for a place. Callers take turns.
    pub(super) async fn wait(self: &Arc<Self>, max: usize) -> Place {
        loop {
            let freed = self.freed.notified();
            if let Some(place) = self.take(max) {
                return place;
            }
            freed.await;
        }
    }
}

/// The connections above the limit, by network.
#[derive(Debug, Default)]
pub(super) struct Spares(Mutex<HashMap<Network, usize>>);

/// A connection above the limit, until it has a place, or this is dropped.
#[derive(Debug)]
pub(super) struct Spare {
    spares: Arc<Spares>,
    network: Network,
}

impl Spares {
    /// Takes one; `None` if the network has `max` of them.
    pub(super) fn take(self: &Arc<Self>, network: Network, max: usize) -> Option<Spare> {
        let mut taken = self.0.lock();
        let of_network = taken.entry(network).or_default();
        (*of_network < max).then(|| {
            *of_network += 1;
            Spare {
                spares: Arc::clone(self),
                network,
            }
        })
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        let mut taken = self.spares.0.lock();
        if let Some(of_network) = taken.get_mut(&self.network) {
            *of_network -= 1;
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
    places: Option<Arc<Places>>,
    close: Arc<Notify>,
}

impl Place {
    /// A place beyond the limit, for one request.
    pub(super) fn beyond_limit() -> Self {
        let close = Arc::new(Notify::new());
        close.notify_one();
        Self {
            places: None,
            close,
        }
    }

    /// Whether it is for one request only.
    pub(super) const fn is_beyond_limit(&self) -> bool {
        self.places.is_none()
    }

    /// Offers the place to new connections until the entry is dropped.
    pub(super) fn offer(&self) -> Option<IdleEntry> {
        let places = self.places.as_ref()?;
        let mut state = places.state.lock();
        let number = state.next_idle;
        state.next_idle += 1;
        state.idle.insert(number, Arc::clone(&self.close));
        drop(state);
        places.freed.notify_one();
        Some(IdleEntry {
            places: Arc::clone(places),
            number,
        })
    }

    /// Waits until the connection must close as soon as it is idle after a request.
    pub(super) async fn is_needed(&self) {
        self.close.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(places) = &self.places {
            places.state.lock().taken -= 1;
            places.freed.notify_one();
        }
    }
}

/// The place of an idle connection, which a new one can take.
#[derive(Debug)]
pub(super) struct IdleEntry {
    places: Arc<Places>,
    number: u64,
}

impl Drop for IdleEntry {
    fn drop(&mut self) {
        self.places.state.lock().idle.remove(&self.number);
    }
}
