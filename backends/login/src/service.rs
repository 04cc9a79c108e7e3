//! Everything that requests share: configuration, clock, stores, providers.

use std::sync::Arc;

use gateway_protocol::version::Version;
use signpost_store::{Change, PostgresDatabase, SqliteDatabase, Store, StoreError, Topic};
use tokio::sync::{OnceCell, watch};

use crate::{
    accounts::{AccountStore, PostgresAccounts, SqliteAccounts},
    applications::{ApplicationStore, Applications, PostgresApplications, SqliteApplications},
    clock::{Clock, Timestamp},
    config::Config,
    credentials::{
        CredentialHash, CredentialStore, Credentials, PostgresCredentials, SqliteCredentials,
    },
    events::{EventStore, PostgresEvents, SqliteEvents},
    limits::Limits,
    logins::{LoginSeal, LoginStore, Logins, PostgresLogins, SealKey, SqliteLogins, StateHash},
    oauth::ProviderClients,
    readiness::{PostgresReadiness, Readiness, SqliteReadiness},
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
    /// Logins under way.
    pub logins: Arc<dyn LoginStore>,
    /// Whether they can be reached.
    pub readiness: Arc<dyn Readiness>,
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
            readiness: Arc::new(SqliteReadiness::new(database.clone())),
        }
    }

    fn postgres(database: &PostgresDatabase) -> Self {
        Self {
            accounts: Arc::new(PostgresAccounts::new(database.clone())),
            applications: Arc::new(PostgresApplications::new(database.clone())),
            credentials: Arc::new(PostgresCredentials::new(database.clone())),
            events: Arc::new(PostgresEvents::new(database.clone())),
            logins: Arc::new(PostgresLogins::new(database.clone())),
            readiness: Arc::new(PostgresReadiness::new(database.clone())),
        }
    }
}

/// The login service, whatever versions of it are served.
pub struct Service {
    pub(crate) config: Config,
    pub(crate) accounts: Arc<dyn AccountStore>,
    pub(crate) applications: Applications,
    pub(crate) credentials: Credentials,
    pub(crate) events: Arc<dyn EventStore>,
    pub(crate) limits: Limits,
    pub(crate) logins: Logins,
    pub(crate) providers: ProviderClients,
    pub(crate) readiness: Arc<dyn Readiness>,
    clock: Arc<dyn Clock>,
    /// Read from the store when the first redirect login needs it.
    seal: OnceCell<LoginSeal>,
    stopping: watch::Sender<bool>,
}

/// What handlers share: the service, and the version that their router serves.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) service: Arc<Service>,
    pub(crate) version: Version,
}

impl Service {
    /// Puts it together. Only after the process has its TLS provider.
    ///
    /// # Errors
    ///
    /// The HTTP client for the providers cannot be made.
    pub fn new(
        config: Config,
        stores: Stores,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, reqwest::Error> {
        let providers = ProviderClients::new(config.providers(), config.public_url())?;
        Ok(Arc::new(Self {
            accounts: stores.accounts,
            applications: Applications::new(
                config.application(),
                stores.applications,
                Arc::clone(&clock),
            ),
            credentials: Credentials::new(stores.credentials, Arc::clone(&clock)),
            events: stores.events,
            limits: Limits::new(config.limits(), config.lifetimes().login),
            logins: Logins::new(stores.logins),
            providers,
            readiness: stores.readiness,
            config,
            clock,
            seal: OnceCell::new(),
            stopping: watch::Sender::new(false),
        }))
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
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

    /// Another process, or this one, changed something: what is remembered of it is dropped.
    pub fn on_change(&self, change: &Change) {
        let hash = |key: &[u8]| key.try_into().ok();
        match change {
            Change::Item {
                topic: Topic::Application,
                ..
            } => self.applications.forget_all(),
            Change::Item {
                topic: Topic::Credential,
                key,
            } => {
                if let Some(hash) = hash(key) {
                    self.credentials.forget(&CredentialHash::from_bytes(hash));
                }
            }
            Change::Item {
                topic: Topic::Login,
                key,
            } => {
                if let Some(hash) = hash(key) {
                    self.logins.wake(&StateHash::from_bytes(hash));
                }
            }
            Change::Lost => {
                self.applications.lose_feed();
                self.credentials.lose_feed();
            }
            Change::Everything => {
                self.applications.forget_all();
                self.credentials.forget_all();
                self.logins.wake_all();
            }
        }
    }

    /// Tells requests that wait that the process ends; they answer with what they know.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Waits until [`Self::stop`] is called.
    pub(crate) async fn stopped(&self) {
        // An error would mean that the sender is gone, which this very borrow rules out.
        let _ = self
            .stopping
            .subscribe()
            .wait_for(|stopping| *stopping)
            .await;
    }
}
