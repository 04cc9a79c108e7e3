//! Requests that wait for a login to move on.
//!
//! Woken by whatever finishes the login: in this process at once, elsewhere by the change feed.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Notify;

use super::StateHash;

/// Everybody who waits, by login. Cheap to clone; every clone is the same.
#[derive(Clone, Default)]
pub struct Waiters(Arc<Mutex<HashMap<StateHash, Arc<Notify>>>>);

impl Waiters {
    /// Begins to listen for this login; look at the login only after that.
    #[must_use]
    pub fn listen(&self, login: StateHash) -> Waiter {
        let bell = Arc::clone(self.lock().entry(login).or_default());
        Waiter {
            waiters: self.clone(),
            login,
            bell,
        }
    }

    /// Wakes whoever waits for this login.
    pub fn wake(&self, login: &StateHash) {
        if let Some(bell) = self.lock().get(login) {
            bell.notify_waiters();
        }
    }

    /// Wakes everybody: something may have been missed, or the process ends.
    pub fn wake_all(&self) {
        self.lock().values().for_each(|bell| bell.notify_waiters());
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

/// One who waits; the last of a login takes the entry away when dropped.
#[derive(Debug)]
pub struct Waiter {
    waiters: Waiters,
    login: StateHash,
    bell: Arc<Notify>,
}

impl Waiter {
    /// The next call to [`Waiters::wake`]; counts from when the future is made, not from its first poll.
    pub fn woken(&self) -> impl Future<Output = ()> + '_ {
        self.bell.notified()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiters = self.waiters.lock();
        // The map's own and this one: nobody else waits, and nobody can begin to while it is locked.
        if Arc::strong_count(&self.bell) == 2 {
            waiters.remove(&self.login);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: StateHash = StateHash::from_bytes([1; 32]);

    #[tokio::test]
    async fn waking_reaches_those_who_listened_before() {
        let waiters = Waiters::default();
        let (one, two) = (waiters.listen(LOGIN), waiters.listen(LOGIN));
        let (first, second) = (one.woken(), two.woken());
        waiters.wake(&LOGIN);
        first.await;
        second.await;
    }

    #[test]
    fn nothing_is_left_of_those_who_went() {
        let waiters = Waiters::default();
        let (one, two) = (waiters.listen(LOGIN), waiters.listen(LOGIN));
        drop(one);
        assert_eq!(waiters.lock().len(), 1);
        drop(two);
        assert_eq!(waiters.lock().len(), 0);
        waiters.wake(&LOGIN);
    }
}
