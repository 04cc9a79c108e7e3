//! Places for what requests hold, of which each network may have its share.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use super::connections::{CountedClient, Max, Networks};

/// A number of places.
#[derive(Debug)]
pub(crate) struct Places {
    max: usize,
    taken: AtomicUsize,
    networks: Networks,
}

impl Places {
    /// So many places, of which none is taken.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            taken: AtomicUsize::new(0),
            networks: Networks::default(),
        })
    }

    /// Takes a place; `None` if all are taken, or the client's network has its share. Does not wait: a queue would hold the
    /// client for as long as others are slow.
    pub(crate) fn take(self: &Arc<Self>, client: IpAddr) -> Option<Place> {
        // `Relaxed`: only the number matters.
        let room = |taken| (taken < self.max).then_some(taken + 1);
        self.taken.fetch_update(Relaxed, Relaxed, room).ok()?;
        match self.networks.add(client, Max::share_of(self.max)) {
            Ok(client) => Some(Place {
                places: Arc::clone(self),
                client,
            }),
            Err(_) => {
                self.taken.fetch_sub(1, Relaxed);
                None
            }
        }
    }

    /// The number of places that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }
}

/// A place, until this is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    client: CountedClient,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.networks.remove(&self.client);
        self.places.taken.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_its_share_and_all_places_come_back() {
        let places = Places::new(8);
        let of = |last| IpAddr::from([192, 0, 2, last]);
        let mut taken: Vec<_> = (0..9).filter_map(|_| places.take(of(1))).collect();
        assert_eq!((taken.len(), places.taken()), (2, 2));
        taken.extend((2..9).filter_map(|last| places.take(of(last))));
        assert_eq!((taken.len(), places.taken()), (8, 8));
        assert!(places.take(of(99)).is_none());
        drop(taken);
        assert_eq!(places.taken(), 0);
        assert!(places.take(of(1)).is_some());
    }
}
