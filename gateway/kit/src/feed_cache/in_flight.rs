//! Look-ups in flight: of many callers for one key at once, one asks the store, and all have its answer.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

type Answer<T> = watch::Receiver<Option<T>>;

/// Look-ups in flight; as many at most as there are callers.
pub(super) struct InFlight<K, T> {
    by_key: Mutex<HashMap<K, Answer<T>>>,
}

/// The caller that has come first, and asks for all.
struct Leader<'f, K: Copy + Eq + Hash, T> {
    in_flight: &'f InFlight<K, T>,
    key: K,
    answer: watch::Sender<Option<T>>,
}

impl<K, T> Default for InFlight<K, T> {
    fn default() -> Self {
        Self {
            by_key: Mutex::default(),
        }
    }
}

impl<K: Copy + Eq + Hash, T: Clone> InFlight<K, T> {
    /// Looks up, or waits for the look-up in flight; then `look_up` is dropped without being begun.
    pub(super) async fn find(&self, key: K, look_up: impl Future<Output = T>) -> T {
        loop {
            match self.lead(key) {
                Ok(leader) => return leader.ask(look_up).await,
                Err(mut answer) => {
                    if let Ok(found) = answer.wait_for(Option::is_some).await
                        && let Some(found) = &*found
                    {
                        return found.clone();
                    }
                    // The leader was cancelled: its client went away.
                }
            }
        }
    }

    /// Looks up, unless a look-up is in flight: for callers that need not wait.
    pub(super) async fn find_first(&self, key: K, look_up: impl Future<Output = T>) -> Option<T> {
        let leader = self.lead(key).ok()?;
        Some(leader.ask(look_up).await)
    }

    /// The next caller looks up anew: what is in flight may have been read before a change.
    pub(super) fn forget(&self, key: K) {
        self.by_key().remove(&key);
    }

    /// The same for every key.
    pub(super) fn forget_all(&self) {
        self.by_key().clear();
    }

    /// The lead, or where the leader's answer will be.
    fn lead(&self, key: K) -> Result<Leader<'_, K, T>, Answer<T>> {
        match self.by_key().entry(key) {
            Entry::Occupied(in_flight) => Err(in_flight.get().clone()),
            Entry::Vacant(vacant) => {
                let (answer, answered) = watch::channel(None);
                vacant.insert(answered);
                Ok(Leader {
                    in_flight: self,
                    key,
                    answer,
                })
            }
        }
    }
}

impl<K, T> InFlight<K, T> {
    fn by_key(&self) -> MutexGuard<'_, HashMap<K, Answer<T>>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash, T: Clone> Leader<'_, K, T> {
    async fn ask(self, look_up: impl Future<Output = T>) -> T {
        let found = look_up.await;
        self.answer.send_replace(Some(found.clone()));
        found
    }
}

impl<K: Copy + Eq + Hash, T> Drop for Leader<'_, K, T> {
    fn drop(&mut self) {
        let ours = self.answer.subscribe();
        // After a change, another may lead there.
        if let Entry::Occupied(in_flight) = self.in_flight.by_key().entry(self.key)
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

    /// A look-up that failed.
    #[derive(Clone, Debug)]
    struct Failed;

    type Found = Result<(), Failed>;

    /// A store that answers as often as it is let to, with an error, and counts.
    struct Slow {
        asked: AtomicU32,
        let_go: Semaphore,
    }

    impl Slow {
        fn new() -> Self {
            Self {
                asked: AtomicU32::new(0),
                let_go: Semaphore::new(0),
            }
        }

        async fn find(&self, in_flight: &InFlight<u8, Found>) -> Found {
            let look_up = async {
                self.asked.fetch_add(1, Ordering::Relaxed);
                self.let_go.acquire().await.unwrap().forget();
                Err(Failed)
            };
            in_flight.find(KEY, look_up).await
        }

        fn asked(&self) -> u32 {
            self.asked.load(Ordering::Relaxed)
        }
    }

    async fn is_pending<T>(future: impl Future<Output = T>) -> bool {
        tokio::time::timeout(Duration::ZERO, future).await.is_err()
    }

    #[tokio::test]
    async fn of_many_at_once_one_asks() {
        let (in_flight, slow) = (InFlight::default(), Slow::new());
        let (mut first, mut second) = (pin!(slow.find(&in_flight)), pin!(slow.find(&in_flight)));
        assert!(is_pending(&mut first).await && is_pending(&mut second).await);
        slow.let_go.add_permits(1);
        let (first, second) = tokio::join!(first, second);
        assert!(first.is_err() && second.is_err());
        assert_eq!(slow.asked(), 1);
        // Nothing of it is kept: that is the cache's business.
        slow.let_go.add_permits(1);
        slow.find(&in_flight).await.unwrap_err();
        assert_eq!(slow.asked(), 2);
    }

    #[tokio::test]
    async fn whoever_waited_goes_on_when_the_first_is_cut_off() {
        let (in_flight, slow) = (InFlight::default(), Slow::new());
        let mut second = pin!(slow.find(&in_flight));
        {
            let mut first = pin!(slow.find(&in_flight));
            assert!(is_pending(&mut first).await && is_pending(&mut second).await);
        }
        assert!(is_pending(&mut second).await);
        assert_eq!(slow.asked(), 2);
        slow.let_go.add_permits(1);
        second.await.unwrap_err();
    }

    #[tokio::test]
    async fn whoever_comes_after_a_change_asks_anew() {
        let (in_flight, slow) = (InFlight::default(), Slow::new());
        let (mut first, mut second) = (pin!(slow.find(&in_flight)), pin!(slow.find(&in_flight)));
        assert!(is_pending(&mut first).await);
        in_flight.forget(KEY);
        assert!(is_pending(&mut second).await);
        assert_eq!(slow.asked(), 2);
        // The first's end is not the second's.
        slow.let_go.add_permits(1);
        first.await.unwrap_err();
        let mut third = pin!(slow.find(&in_flight));
        assert!(is_pending(&mut third).await);
        assert_eq!(slow.asked(), 2);
        slow.let_go.add_permits(1);
        let (second, third) = tokio::join!(second, third);
        assert!(second.is_err() && third.is_err());
    }
}
