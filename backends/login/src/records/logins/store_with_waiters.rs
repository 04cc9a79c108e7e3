//! The store of logins, together with the requests that wait for a change of one.
//!
//! Logins are not cached: after one backend has reported `complete`, no other may report `pending`.

use std::sync::Arc;

use signpost_protocol::app::AppId;
use signpost_store::StoreError;

use super::{FinishTimes, LoginStore, Outcome, StateHash, Waiter, Waiters};

/// The store, and the requests that wait for a login.
pub(crate) struct Logins {
    store: Arc<dyn LoginStore>,
    waiters: Waiters,
}

impl Logins {
    /// Creates a front of `store` without waiting requests.
    pub(crate) fn new(store: Arc<dyn LoginStore>) -> Self {
        Self {
            store,
            waiters: Waiters::default(),
        }
    }

    /// The store.
    pub(crate) fn store(&self) -> &dyn LoginStore {
        self.store.as_ref()
    }

    /// As [`LoginStore::finish`], and wakes the requests of this process that wait for the login.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub(crate) async fn finish(
        &self,
        state: &StateHash,
        outcome: Outcome,
        times: FinishTimes,
    ) -> Result<bool, StoreError> {
        let stored = self.store.finish(state, outcome, times).await;
        // Also after an error: the outcome may be stored, and only the response lost.
        self.wake(state);
        stored
    }

    /// As [`Waiters::subscribe`].
    #[must_use]
    pub(crate) fn subscribe(
        &self,
        state: StateHash,
        application: AppId,
        connections: usize,
    ) -> Option<Waiter> {
        self.waiters.subscribe(state, application, connections)
    }

    /// Wakes the requests that wait for this login, so that they read it again.
    pub(crate) fn wake(&self, state: &StateHash) {
        self.waiters.wake(state);
    }

    /// Wakes all waiting requests, since changes may have been missed.
    pub(crate) fn wake_all(&self) {
        self.waiters.wake_all();
    }
}
