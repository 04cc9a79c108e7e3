//! Requests that wait for a login to change.
//!
//! They are woken when the login is finished: in the same process at once, in others through the change feed. Each holds
//! a connection of the service, so their number is limited. CONTRACT 8.

use signpost_protocol::app::AppId;
use tokio::sync::Notify;

use super::held::{Held, HeldValues};
use crate::records::logins::StateHash;

/// Requests that wait for one login at a time.
const MAX_WAITS_OF_LOGIN: usize = 4;
/// Requests of one application that wait hold at most one part in this many of the connections. The application of
/// single-application mode has no share: its requests are all.
const APPLICATION_SHARE: usize = 8;
/// All requests that wait hold at most one part in this many of the connections. The others are for requests that do not
/// wait.
const TOTAL_SHARE: usize = 2;

/// The waiting requests: by login, by application, and all of them.
#[derive(Default)]
pub(crate) struct Waiters {
    logins: HeldValues<StateHash, Notify>,
    applications: HeldValues<AppId, ()>,
    all: HeldValues<(), ()>,
}

impl Waiters {
    /// Subscribes to changes of this login; `None` if too many requests wait already for so many `connections`. Read the login afterwards only, so that no change is missed.
    pub(crate) fn subscribe(
        &self,
        login: StateHash,
        application: AppId,
        connections: usize,
    ) -> Option<Waiter> {
        let all = self.all.hold((), connections / TOTAL_SHARE, || ())?;
        let application = if application == AppId::SINGLE {
            None
        } else {
            let limit = (connections / APPLICATION_SHARE).max(1);
            Some(self.applications.hold(application, limit, || ())?)
        };
        Some(Waiter {
            _all: all,
            _application: application,
            // If this fails, the places above are dropped, and so given back.
            login: self.logins.hold(login, MAX_WAITS_OF_LOGIN, Notify::new)?,
        })
    }

    /// Wakes all requests that wait for this login.
    pub(crate) fn wake(&self, login: &StateHash) {
        self.logins.with(login, Notify::notify_waiters);
    }

    /// Wakes all waiting requests, since changes may have been missed.
    pub(crate) fn wake_all(&self) {
        self.logins.for_each(Notify::notify_waiters);
    }
}

/// A waiting request.
pub(crate) struct Waiter {
    login: Held<StateHash, Notify>,
    _application: Option<Held<AppId, ()>>,
    _all: Held<(), ()>,
}

impl Waiter {
    /// Waits for the next [`Waiters::wake`]. Calls count from the creation of the future, not from its first poll.
    pub(crate) fn woken(&self) -> impl Future<Output = ()> + '_ {
        self.login.value().notified()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTIONS: usize = 80;

    fn login(number: usize) -> StateHash {
        StateHash([u8::try_from(number).unwrap(); 32])
    }

    #[tokio::test]
    async fn waking_reaches_all_subscribed_requests() {
        let waiters = Waiters::default();
        let subscribe = || waiters.subscribe(login(1), AppId::SINGLE, CONNECTIONS);
        let (one, two) = (subscribe().unwrap(), subscribe().unwrap());
        let (first, second) = (one.woken(), two.woken());
        waiters.wake(&login(1));
        first.await;
        second.await;
        let (first, second) = (one.woken(), two.woken());
        waiters.wake_all();
        first.await;
        second.await;
    }

    #[test]
    fn a_login_an_application_and_all_have_a_limit() {
        let waiters = Waiters::default();
        let subscribe =
            |login, application| waiters.subscribe(login, AppId::new(application), CONNECTIONS);
        let of_login: Vec<_> = (0..9).filter_map(|_| subscribe(login(1), 1)).collect();
        assert_eq!(of_login.len(), 4);
        let others = (2..99).filter_map(|number| subscribe(login(number), 1));
        let of_application: Vec<_> = of_login.into_iter().chain(others).collect();
        assert_eq!(of_application.len(), 10);
        let others = (2..99).flat_map(|application| {
            let number = usize::try_from(application).unwrap();
            (0..9).filter_map(move |_| subscribe(login(100 + number), application))
        });
        let mut all: Vec<_> = of_application.into_iter().chain(others).collect();
        assert_eq!(all.len(), 40);
        // One that ends makes room for one, and a refused one has held nothing.
        assert!(subscribe(login(250), 1).is_none());
        all.pop();
        all.push(subscribe(login(250), 100).unwrap());
        assert!(subscribe(login(250), 101).is_none());
        drop(all);
        let Waiters {
            logins,
            applications,
            all,
        } = &waiters;
        assert_eq!((logins.len(), applications.len(), all.len()), (0, 0, 0));
    }

    #[test]
    fn the_single_application_has_the_half_of_all() {
        let waiters = Waiters::default();
        let subscribe = |number| waiters.subscribe(login(number), AppId::SINGLE, CONNECTIONS);
        let all: Vec<_> = (0..99).filter_map(subscribe).collect();
        assert_eq!(all.len(), 40);
    }

    #[test]
    fn few_connections_leave_one_for_requests_that_do_not_wait() {
        let waiters = Waiters::default();
        let number = |connections| {
            let subscribe = |number| waiters.subscribe(login(number), AppId::new(1), connections);
            (1..9).filter_map(subscribe).collect::<Vec<_>>().len()
        };
        assert_eq!([0, 1, 2, 7, 16].map(number), [0, 0, 1, 1, 2]);
    }
}
