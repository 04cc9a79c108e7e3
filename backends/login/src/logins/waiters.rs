//! Requests that wait for a login to change.
//!
//! They are woken when the login is finished: in the same process at once, in others through the change feed.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Notify;

use super::StateHash;

/// The waiting requests of each login. Cheap to clone; clones share their contents.
#[derive(Clone, Default)]
pub struct Waiters(Arc<Mutex<HashMap<StateHash, Arc<Notify>>>>);

impl Waiters {
    /// Subscribes to changes of this login. Read the login afterwards only, so that no change is missed.
    #[must_use]
    pub fn subscribe(&self, login: StateHash) -> Waiter {
        let notify = Arc::clone(self.lock().entry(login).or_default());
        Waiter {
            waiters: self.clone(),
            login,
            notify,
        }
    }

    /// Wakes all requests that wait for this login.
    pub fn wake(&self, login: &StateHash) {
        if let Some(notify) = self.lock().get(login) {
            notify.notify_waiters();
        }
    }

    /// Wakes all waiting requests, since changes may have been missed.
    pub fn wake_all(&self) {
        self.lock()
            .values()
            .for_each(|notify| notify.notify_waiters());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<StateHash, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Waiters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Waiters({})", self.lock().len())
    }
}

/// A waiting request. When the last one of a login is dropped, it removes the login's entry.
#[derive(Debug)]
pub struct Waiter {
    waiters: Waiters,
    login: StateHash,
    notify: Arc<Notify>,
}

impl Waiter {
    /// Waits for the next [`Waiters::wake`]. Calls count from the creation of the future, not from its first poll.
    pub fn woken(&self) -> impl Future<Output = ()> + '_ {
        self.notify.notified()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiters = self.waiters.lock();
        // Only the map and this waiter hold it: no other request waits, and none can subscribe while the map is locked.
        if Arc::strong_count(&self.notify) == 2 {
            waiters.remove(&self.login);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: StateHash = StateHash::from_bytes([1; 32]);

    #[tokio::test]
    async fn waking_reaches_all_subscribed_requests() {
        let waiters = Waiters::default();
        let (one, two) = (waiters.subscribe(LOGIN), waiters.subscribe(LOGIN));
        let (first, second) = (one.woken(), two.woken());
        waiters.wake(&LOGIN);
        first.await;
        second.await;
    }

    #[test]
    fn the_last_waiter_removes_the_entry() {
        let waiters = Waiters::default();
        let (one, two) = (waiters.subscribe(LOGIN), waiters.subscribe(LOGIN));
        drop(one);
        assert_eq!(waiters.lock().len(), 1);
        drop(two);
        assert_eq!(waiters.lock().len(), 0);
        waiters.wake(&LOGIN);
    }
}
