//! Look-ups under way: of many requests for one application at once, one asks the store, and all have its answer.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gateway_protocol::app::AppIdent;
use tokio::sync::watch;

use super::{App, store::AppStoreError};

/// What a look-up came to.
pub(super) type Found = Result<Option<Arc<App>>, Arc<AppStoreError>>;

type Answer = watch::Receiver<Option<Found>>;

/// Look-ups under way; as many at most as there are requests.
#[derive(Default)]
pub(super) struct InFlight {
    by_ident: Mutex<HashMap<AppIdent, Answer>>,
}

/// Who has come first, and asks for all.
struct Leader<'f> {
    in_flight: &'f InFlight,
    ident: AppIdent,
    answer: watch::Sender<Option<Found>>,
}

impl InFlight {
    /// Looks up, or waits for whoever does already; then `look_up` is dropped without being begun.
    pub(super) async fn find(
        &self,
        ident: AppIdent,
        look_up: impl Future<Output = Found>,
    ) -> Found {
        loop {
            match self.lead(ident) {
                Ok(leader) => return leader.ask(look_up).await,
                Err(mut answer) => {
                    if let Ok(found) = answer.wait_for(Option::is_some).await
                        && let Some(found) = &*found
                    {
                        return found.clone();
                    }
                    // The leader's client went away, and the leader with it.
                }
            }
        }
    }

    /// Looks up, unless somebody does already: for those who need not wait.
    pub(super) async fn find_first(
        &self,
        ident: AppIdent,
        look_up: impl Future<Output = Found>,
    ) -> Option<Found> {
        let leader = self.lead(ident).ok()?;
        Some(leader.ask(look_up).await)
    }

    /// Whoever comes from now on looks up anew: what is under way may have been read before a change.
    pub(super) fn forget(&self, ident: AppIdent) {
        self.by_ident().remove(&ident);
    }

    /// The same for every ident.
    pub(super) fn forget_all(&self) {
        self.by_ident().clear();
    }

    /// The lead, or where the leader's answer will be.
    fn lead(&self, ident: AppIdent) -> Result<Leader<'_>, Answer> {
        match self.by_ident().entry(ident) {
            Entry::Occupied(under_way) => Err(under_way.get().clone()),
            Entry::Vacant(place) => {
                let (answer, answered) = watch::channel(None);
                place.insert(answered);
                Ok(Leader {
                    in_flight: self,
                    ident,
                    answer,
                })
            }
        }
    }

    fn by_ident(&self) -> MutexGuard<'_, HashMap<AppIdent, Answer>> {
        self.by_ident.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leader<'_> {
    async fn ask(self, look_up: impl Future<Output = Found>) -> Found {
        let found = look_up.await;
        self.answer.send_replace(Some(found.clone()));
        found
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let ours = self.answer.subscribe();
        // After a change, another may lead there.
        if let Entry::Occupied(under_way) = self.in_flight.by_ident().entry(self.ident)
            && under_way.get().same_channel(&ours)
        {
            under_way.remove();
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

    fn ident() -> AppIdent {
        "a".repeat(24).parse().unwrap()
    }

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

        async fn find(&self, in_flight: &InFlight) -> Found {
            let look_up = async {
                self.asked.fetch_add(1, Ordering::Relaxed);
                self.let_go.acquire().await.unwrap().forget();
                Err(Arc::new(AppStoreError::Malformed("test")))
            };
            in_flight.find(ident(), look_up).await
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
        // Nothing of it is kept: that is the memory's business.
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
        in_flight.forget(ident());
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
