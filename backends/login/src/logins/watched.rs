//! Logins as requests ask for them: every question goes to the store, and those who wait are woken.
//!
//! Nothing is answered from memory. After one backend has said `complete`, no other may say `pending`, and only the
//! store knows.

use std::sync::Arc;

use signpost_store::StoreError;

use super::{FinishTimes, LoginStore, Outcome, StateHash, Waiter, Waiters};

/// The store, and the requests that wait for a login.
pub struct Logins {
    store: Arc<dyn LoginStore>,
    waiters: Waiters,
}

impl Logins {
    /// In front of `store`.
    pub fn new(store: Arc<dyn LoginStore>) -> Self {
        Self {
            store,
            waiters: Waiters::default(),
        }
    }

    /// The store itself.
    pub fn store(&self) -> &dyn LoginStore {
        self.store.as_ref()
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
        self.wake(state);
        stored
    }

    /// Begins to listen for a login that is about to be looked up.
    #[must_use]
    pub fn listen(&self, state: StateHash) -> Waiter {
        self.waiters.listen(state)
    }

    /// A login changed: those who wait for it look it up again.
    pub fn wake(&self, state: &StateHash) {
        self.waiters.wake(state);
    }

    /// Changes may have been missed: all who wait look again.
    pub fn wake_all(&self) {
        self.waiters.wake_all();
    }
}
