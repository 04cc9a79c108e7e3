//! What outlives a configuration: stores, caches, those who wait, and how far a stop has come.

use std::sync::Arc;

use signpost_kit::{
    clock::{Clock, Timestamp},
    shutdown::{Phase, wait_for_phase},
};
use signpost_store::{Change, PostgresDatabase, SqliteDatabase, Store, StoreError, Topic};
use tokio::{
    sync::{OnceCell, watch},
    task::JoinHandle,
};
use tokio_util::task::TaskTracker;

use crate::{
    accounts::{AccountStore, PostgresAccounts, SqliteAccounts},
    applications::{ApplicationStore, Applications, PostgresApplications, SqliteApplications},
    credentials::{CredentialStore, Credentials, PostgresCredentials, SqliteCredentials},
    events::{EventStore, PostgresEvents, SqliteEvents},
    logins::{LoginSeal, LoginStore, Logins, PostgresLogins, SealKey, SqliteLogins, StateHash},
};

/// One store per noun.
pub struct Stores {
    /// Accounts.
    pub accounts: Arc<dyn AccountStore>,
    /// Applications, read only.
    pub applications: Arc<dyn ApplicationStore>,
    /// Credentials.
    pub credentials: Arc<dyn CredentialStore>,
    /// Events.
    pub events: Arc<dyn EventStore>,
    /// Logins in progress.
    pub logins: Arc<dyn LoginStore>,
    /// The database that holds them.
    pub database: Store,
}

impl Stores {
    /// All of them in one database.
    #[must_use]
    pub fn of(store: &Store) -> Self {
        match store {
            Store::Sqlite(database) => Self::sqlite(database),
            Store::Postgres(database) => Self::postgres(database),
        }
    }

    fn sqlite(database: &SqliteDatabase) -> Self {
        Self {
            accounts: Arc::new(SqliteAccounts::new(database.clone())),
            applications: Arc::new(SqliteApplications::new(database.clone())),
            credentials: Arc::new(SqliteCredentials::new(database.clone())),
            events: Arc::new(SqliteEvents::new(database.clone())),
            logins: Arc::new(SqliteLogins::new(database.clone())),
            database: Store::Sqlite(database.clone()),
        }
    }

    fn postgres(database: &PostgresDatabase) -> Self {
        Self {
            accounts: Arc::new(PostgresAccounts::new(database.clone())),
            applications: Arc::new(PostgresApplications::new(database.clone())),
            credentials: Arc::new(PostgresCredentials::new(database.clone())),
            events: Arc::new(PostgresEvents::new(database.clone())),
            logins: Arc::new(PostgresLogins::new(database.clone())),
            database: Store::Postgres(database.clone()),
        }
    }
}

/// What every snapshot of the service shares.
pub struct State {
    pub(crate) database: Store,
    pub(crate) accounts: Arc<dyn AccountStore>,
    pub(crate) applications: Applications,
    pub(crate) credentials: Credentials,
    pub(crate) events: Arc<dyn EventStore>,
    pub(crate) logins: Logins,
    clock: Arc<dyn Clock>,
    /// Read from the store when the first redirect login needs it.
    seal: OnceCell<LoginSeal>,
    phase: watch::Sender<Phase>,
    tasks: TaskTracker,
}

impl State {
    pub(crate) fn new(stores: Stores, clock: Arc<dyn Clock>) -> Self {
        Self {
            database: stores.database,
            accounts: stores.accounts,
            applications: Applications::new(stores.applications, Arc::clone(&clock)),
            credentials: Credentials::new(stores.credentials, Arc::clone(&clock)),
            events: stores.events,
            logins: Logins::new(stores.logins),
            clock,
            seal: OnceCell::new(),
            phase: watch::Sender::new(Phase::Serving),
            tasks: TaskTracker::new(),
        }
    }

    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The moment now, for limits.
    pub(crate) fn instant(&self) -> std::time::Instant {
        self.clock.instant()
    }

    /// What seals redirect logins, the same in every process.
    pub(crate) async fn seal(&self) -> Result<&LoginSeal, StoreError> {
        let read = async || {
            let key = SealKey::generate();
            let key = self.logins.store().seal_key(key, self.now()).await?;
            Ok(LoginSeal::new(key))
        };
        self.seal.get_or_try_init(read).await
    }

    /// Another process, or this one, changed something: what is cached of it is invalidated, and those who wait for it
    /// look again.
    pub fn on_change(&self, change: &Change) {
        self.applications.on_change(change);
        self.credentials.on_change(change);
        match change {
            Change::Item {
                topic: Topic::Login,
                key,
            } => {
                if let Ok(hash) = key[..].try_into() {
                    self.logins.wake(&StateHash::from_bytes(hash));
                }
            }
            Change::Everything => self.logins.wake_all(),
            Change::Item { .. } | Change::Lost => {}
        }
    }

    /// Tells everybody how far a stop has come.
    pub fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Follows how far a stop has come.
    #[must_use]
    pub fn phases(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Whether a stop has begun: then new requests should go elsewhere.
    pub(crate) fn is_draining(&self) -> bool {
        *self.phase.borrow() >= Phase::Draining
    }

    /// Waits until nothing new is accepted: long polls are answered with what is known.
    pub(crate) async fn stopped(&self) {
        wait_for_phase(&self.phase, Phase::Closing).await;
    }

    /// Waits until shortly before the grace of a stop is over: what still waits for a provider gives up, so that the
    /// store can be told how it ended.
    pub(crate) async fn ending(&self) {
        wait_for_phase(&self.phase, Phase::GivingUp).await;
    }

    /// Runs something to its end, even if its caller is gone. A stop waits for it as long as the grace lasts.
    pub(crate) fn spawn_to_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tasks.spawn(work)
    }

    /// Waits until all that was begun by [`Self::spawn_to_end`] has ended.
    pub(crate) async fn finished(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}
