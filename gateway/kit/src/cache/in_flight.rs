//! Lookups in flight: of several concurrent callers for one key, one queries the store, and all share the result.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
};

use parking_lot::Mutex;
use tokio::sync::watch;

type SharedResult<T> = watch::Receiver<Option<T>>;

/// Lookups in flight; at most one per caller.
pub(super) struct InFlight<K, T> {
    by_key: Mutex<HashMap<K, SharedResult<T>>>,
}

/// The first caller, which queries the store for all.
struct Leader<'f, K: Copy + Eq + Hash, T> {
    in_flight: &'f InFlight<K, T>,
    key: K,
    result: watch::Sender<Option<T>>,
}

impl<K, T> Default for InFlight<K, T> {
    fn default() -> Self {
        Self {
            by_key: Mutex::default(),
        }
    }
}

impl<K: Copy + Eq + Hash, T: Clone> InFlight<K, T> {
    /// Runs `lookup`, or waits for the one in flight. In the latter case `lookup` is never polled.
    pub(super) async fn find(&self, key: K, lookup: impl Future<Output = T>) -> T {
        loop {
            match self.lead(key) {
                Ok(leader) => return leader.run(lookup).await,
                Err(mut result) => {
                    if let Ok(outcome) = result.wait_for(Option::is_some).await
                        && let Some(outcome) = &*outcome
                    {
                        return outcome.clone();
                    }
                    // The leader was cancelled because its client disconnected: try to lead.
                }
            }
        }
    }

    /// Runs `lookup` unless one is in flight: for callers that need not wait.
    pub(super) async fn find_first(&self, key: K, lookup: impl Future<Output = T>) -> Option<T> {
        let leader = self.lead(key).ok()?;
        Some(leader.run(lookup).await)
    }

    /// Detaches the lookup in flight: it may have read before a change, so the next caller runs its own.
    pub(super) fn detach(&self, key: K) {
        self.by_key.lock().remove(&key);
    }

    /// Detaches all lookups in flight.
    pub(super) fn detach_all(&self) {
        self.by_key.lock().clear();
    }

    /// Becomes the leader, or returns the leader's pending result.
    fn lead(&self, key: K) -> Result<Leader<'_, K, T>, SharedResult<T>> {
        match self.by_key.lock().entry(key) {
            Entry::Occupied(in_flight) => Err(in_flight.get().clone()),
            Entry::Vacant(vacant) => {
                // A watch keeps its value: a caller that joins while the leader ends still gets the result.
                let (result, pending) = watch::channel(None);
                vacant.insert(pending);
                Ok(Leader {
                    in_flight: self,
                    key,
                    result,
                })
            }
        }
    }
}

impl<K: Copy + Eq + Hash, T: Clone> Leader<'_, K, T> {
    async fn run(self, lookup: impl Future<Output = T>) -> T {
        let outcome = lookup.await;
        self.result.send_replace(Some(outcome.clone()));
        outcome
    }
}

impl<K: Copy + Eq + Hash, T> Drop for Leader<'_, K, T> {
    fn drop(&mut self) {
        // Runs before the sender is dropped: the callers that its drop wakes find no entry, and one of them leads.
        let ours = self.result.subscribe();
        // If this lookup was detached, the entry may be another leader's.
        if let Entry::Occupied(in_flight) = self.in_flight.by_key.lock().entry(self.key)
            && in_flight.get().same_channel(&ours)
        {
            in_flight.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::atomic::{AtomicU32, Ordering},
        time::Duration,
    };

    use tokio::sync::Semaphore;

    use super::*;

    const KEY: u8 = 1;

    /// A lookup that failed.
    #[derive(Clone, Debug)]
    struct Failed;

    type Found = Result<(), Failed>;

    /// A store that counts its queries and answers each with an error, once it has a permit.
    struct SlowStore {
        queries: AtomicU32,
        permits: Semaphore,
    }

    impl SlowStore {
        fn new() -> Self {
            Self {
                queries: AtomicU32::new(0),
                permits: Semaphore::new(0),
            }
        }

        async fn find(&self, in_flight: &InFlight<u8, Found>) -> Found {
            let lookup = async {
                self.queries.fetch_add(1, Ordering::Relaxed);
                self.permits.acquire().await.unwrap().forget();
                Err(Failed)
            };
            in_flight.find(KEY, lookup).await
        }

        fn queries(&self) -> u32 {
            self.queries.load(Ordering::Relaxed)
        }
    }

    async fn is_pending<T>(future: impl Future<Output = T>) -> bool {
        tokio::time::timeout(Duration::ZERO, future).await.is_err()
    }

    #[tokio::test]
    async fn of_concurrent_callers_one_queries_the_store() {
        let (in_flight, slow) = (InFlight::default(), SlowStore::new());
        let (mut first, mut second) = (pin!(slow.find(&in_flight)), pin!(slow.find(&in_flight)));
        assert!(is_pending(&mut first).await && is_pending(&mut second).await);
        slow.permits.add_permits(1);
        let (first, second) = tokio::join!(first, second);
        assert!(first.is_err() && second.is_err());
        assert_eq!(slow.queries(), 1);
        // Results are not kept here: that is up to the cache.
        slow.permits.add_permits(1);
        slow.find(&in_flight).await.unwrap_err();
        assert_eq!(slow.queries(), 2);
    }

    #[tokio::test]
    async fn a_waiting_caller_continues_when_the_first_is_cancelled() {
        let (in_flight, slow) = (InFlight::default(), SlowStore::new());
        let mut second = pin!(slow.find(&in_flight));
        {
            let mut first = pin!(slow.find(&in_flight));
            assert!(is_pending(&mut first).await && is_pending(&mut second).await);
        }
        assert!(is_pending(&mut second).await);
        assert_eq!(slow.queries(), 2);
        slow.permits.add_permits(1);
        second.await.unwrap_err();
    }

    #[tokio::test]
    async fn a_caller_after_a_change_queries_the_store_again() {
        let (in_flight, slow) = (InFlight::default(), SlowStore::new());
        let (mut first, mut second) = (pin!(slow.find(&in_flight)), pin!(slow.find(&in_flight)));
        assert!(is_pending(&mut first).await);
        in_flight.detach(KEY);
        assert!(is_pending(&mut second).await);
        assert_eq!(slow.queries(), 2);
        // The end of the first lookup does not end the second.
        slow.permits.add_permits(1);
        first.await.unwrap_err();
        let mut third = pin!(slow.find(&in_flight));
        assert!(is_pending(&mut third).await);
        assert_eq!(slow.queries(), 2);
        slow.permits.add_permits(1);
        let (second, third) = tokio::join!(second, third);
        assert!(second.is_err() && third.is_err());
    }
}
