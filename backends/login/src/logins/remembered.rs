//! Logins as requests ask for them: those that are polled are remembered, and those who wait are woken.

use std::{sync::Arc, time::Duration};

use signpost_store::StoreError;

use super::{FinishTimes, Login, LoginStore, Outcome, StateHash, Waiter, Waiters};
use crate::{
    clock::Clock,
    read_through::{Away, ReadThrough},
};

/// As many as may be polled at once in one process; some 500 bytes each.
const REMEMBERED: u64 = 10_000;
/// How long a lost change could keep a client waiting. Changes are told long before.
const TRUSTED: Duration = Duration::from_secs(5);

/// The store, and what this process knows beside it.
pub struct Logins {
    store: Arc<dyn LoginStore>,
    remembered: ReadThrough<StateHash, Arc<Login>>,
    waiters: Waiters,
}

impl Logins {
    /// In front of `store`.
    pub fn new(store: Arc<dyn LoginStore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            // A poller is told of a store that is away: what matters here is what happens next.
            remembered: ReadThrough::new(REMEMBERED, TRUSTED, Away::Fail, clock),
            waiters: Waiters::default(),
        }
    }

    /// The store itself, for every step that moves a login on: those must see what is, not what was.
    pub fn store(&self) -> &dyn LoginStore {
        self.store.as_ref()
    }

    /// How a login stands, for those who only ask. Its status is at most a moment old; its cookie may be
    /// older, which is why no step goes by this.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    pub async fn look(&self, state: &StateHash) -> Result<Option<Arc<Login>>, StoreError> {
        let read = async { Ok(self.store.find(state).await?.map(Arc::new)) };
        self.remembered.find(*state, read).await
    }

    /// Stores what a claimed login came to, and wakes those who wait for it here; `false` if it is too late.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    pub async fn finish(
        &self,
        state: &StateHash,
        outcome: Outcome,
        times: FinishTimes,
    ) -> Result<bool, StoreError> {
        let stored = self.store.finish(state, outcome, times).await;
        // An error may be of the answer only.
        self.forget(state);
        stored
    }

    /// Begins to listen for a login that is about to be looked at.
    #[must_use]
    pub fn listen(&self, state: StateHash) -> Waiter {
        self.waiters.listen(state)
    }

    /// A login changed: what is remembered of it is dropped, and those who wait for it look again.
    pub fn forget(&self, state: &StateHash) {
        self.remembered.forget(state);
        self.waiters.wake(state);
    }

    /// Changes may have been missed; from now on they are heard of.
    pub fn forget_all(&self) {
        self.remembered.forget_all();
        self.waiters.wake_all();
    }

    /// From now on changes are missed. Those who wait go on waiting: they look again when the store is back.
    pub fn lose_feed(&self) {
        self.remembered.lose_feed();
    }
}
