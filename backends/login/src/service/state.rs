//! The state that outlives a configuration: stores, caches, waiting requests, metrics, and the phase of a shutdown.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use signpost_kit::{
    cache::write_caches,
    clock::Clock,
    log::once_a_minute::OnceAMinute,
    metrics::Scrape,
    server::{
        descriptors::Descriptors,
        shutdown::{Phase, wait_for_phase},
    },
    trace::SpanCounters,
};
use signpost_store::{Change, Store, StoreError, Topic};
use tokio::sync::{OnceCell, watch};
use tokio_util::task::TaskTracker;

use crate::{
    limits::Waiters,
    metrics::LoginMetrics,
    records::{
        accounts::Accounts,
        applications::Applications,
        credentials::Credentials,
        events::Events,
        logins::{Logins, SealKey, StateHash},
        own::{OwnStore, Sweep},
    },
};

/// The state that all snapshots of the service share.
pub(crate) struct State {
    pub(crate) database: Store,
    pub(crate) accounts: Accounts,
    pub(crate) applications: Applications,
    pub(crate) credentials: Credentials,
    pub(crate) events: Events,
    pub(crate) logins: Logins,
    /// The requests that wait for a login. Outcomes are not cached: after one backend has reported `complete`, no other
    /// may report `pending`.
    pub(crate) waiters: Waiters,
    /// Counts spans.
    pub(crate) spans: Arc<SpanCounters>,
    pub(crate) metrics: Arc<LoginMetrics>,
    /// The log lines about requests that failed because of the store.
    pub(crate) store_failures: OnceAMinute,
    /// The log lines about requests that failed because of this service.
    pub(crate) internal_errors: OnceAMinute,
    /// The limit on the process' open files.
    pub(crate) descriptors: Descriptors,
    pub(crate) clock: Arc<dyn Clock>,
    /// The database, as versions see it.
    pub(crate) own_tables: OwnStore,
    /// The versions' own tables whose rows expire.
    sweeps: Mutex<Vec<Sweep>>,
    /// Read from the store at first use, which is at the start of a program.
    seal: OnceCell<SealKey>,
    /// The phase of the shutdown.
    pub(crate) phase: watch::Sender<Phase>,
    /// Tasks that go on if their callers are cancelled. A shutdown waits for them during the grace period.
    pub(crate) tasks: TaskTracker,
}

impl State {
    pub(crate) fn new(database: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            applications: Applications::new(database.clone(), Arc::clone(&clock)),
            accounts: Accounts(database.clone()),
            credentials: Credentials::new(database.clone(), Arc::clone(&clock)),
            events: Events(database.clone()),
            logins: Logins::new(database.clone()),
            waiters: Waiters::default(),
            spans: Arc::default(),
            metrics: Arc::default(),
            store_failures: OnceAMinute::new(),
            internal_errors: OnceAMinute::new(),
            descriptors: Descriptors::raise_limit(),
            clock,
            own_tables: OwnStore::new(database.clone()),
            sweeps: Mutex::default(),
            seal: OnceCell::new(),
            database,
            phase: watch::Sender::new(Phase::Serving),
            tasks: TaskTracker::new(),
        }
    }

    /// Has tables swept from now on.
    pub(crate) fn sweep(&self, tables: &[Sweep]) {
        self.swept().extend(tables);
    }

    /// The versions' own tables whose rows expire.
    pub(crate) fn sweeps(&self) -> Vec<Sweep> {
        self.swept().clone()
    }

    fn swept(&self) -> MutexGuard<'_, Vec<Sweep>> {
        self.sweeps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The seal of redirect logins, whose key all processes share.
    pub(crate) async fn seal(&self) -> Result<&SealKey, StoreError> {
        let find = || self.logins.seal_key(SealKey::generate(), self.clock.now());
        self.seal.get_or_try_init(find).await
    }

    /// Cached data is used for this long after the store's change feed was lost.
    pub(crate) fn set_stale(&self, stale: Duration) {
        self.applications.cache.set_stale(stale);
        self.credentials.cache.set_stale(stale);
    }

    /// Handles a change from the change feed: invalidates cache entries, and wakes requests that wait for a login.
    pub(crate) fn on_change(&self, change: &Change) {
        self.applications.on_change(change);
        self.credentials.on_change(change);
        match change {
            Change::Item {
                topic: Topic::Login,
                key,
            } => {
                if let Ok(hash) = key[..].try_into() {
                    self.waiters.wake(&StateHash(hash));
                }
            }
            // The feed may have missed outcomes: the waiting requests read their logins again.
            Change::Restored | Change::Everything => self.waiters.wake_all(),
            // While the feed is lost there is nothing to read: `Restored` follows.
            Change::Item { .. } | Change::Lost => {}
        }
    }

    /// Whether the store can be written; `None` once a shutdown has begun, so that new requests go to other backends.
    pub(crate) async fn probe(&self) -> Option<Result<(), StoreError>> {
        let is_serving = || *self.phase.borrow() == Phase::Serving;
        if !is_serving() {
            return None;
        }
        let probed = self.database.probe().await;
        // Looked at once more: a stop can begin while the store answers.
        is_serving().then_some(probed)
    }

    /// Waits until no new connections are accepted. Long polls are answered then.
    pub(crate) async fn wait_until_closing(&self) {
        wait_for_phase(&self.phase, Phase::Closing).await;
    }

    /// Writes the state of the store's caches as metrics. `login-v1 metrics` describes each family.
    pub(crate) fn write_caches(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        let applications = self.applications.cache.status();
        let credentials = self.credentials.cache.status();
        let caches = [("applications", applications), ("credentials", credentials)];
        write_caches(scrape, &caches)
    }
}
