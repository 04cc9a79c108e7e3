//! A database on a Postgres server, or on whatever speaks its protocol: connecting, migrating, calling.
//!
//! Every write of ours is one statement: it happens or not, in one round trip, and nothing is left open when a
//! process dies. None uses what only Postgres has, but for `pg_notify`, and that only where it is there.

pub mod changes;
mod connect;
mod migrate;
mod session;

use std::{sync::Arc, time::Duration};

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime,
};
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

pub(crate) use self::connect::Notifications;
pub use self::session::{Parameters, Session};
use crate::{OpenError, PostgresAddress, PostgresSettings, StoreError};

/// An open database on a server, migrated. Cheap to clone; every clone is the same database.
#[derive(Clone)]
pub struct PostgresDatabase {
    shared: Arc<Shared>,
}

struct Shared {
    pool: Pool,
    settings: PostgresSettings,
    config: Config,
    tls: MakeRustlsConnect,
    /// Whether a write can tell others of itself by `pg_notify`.
    notifies: bool,
}

impl PostgresDatabase {
    /// Connects, and applies the migrations under an advisory lock: of several processes that start at once one
    /// migrates, the others wait for it.
    ///
    /// # Errors
    ///
    /// The server is away or refuses us, its certificate does not verify, or a migration fails.
    pub async fn open(
        address: &PostgresAddress,
        settings: &PostgresSettings,
    ) -> Result<Self, OpenError> {
        let tls = connect::tls(address, settings)?;
        let config = connect::config(address, settings);
        let server = address.to_string();
        let refused = |cause| OpenError::Server {
            server: server.clone(),
            cause,
        };
        let connected = connect::connect(&config, &tls, settings).await;
        let (mut client, _) = connected.map_err(refused)?;
        migrate::migrate(&mut client, &server).await?;
        let notifies = tokio::time::timeout(settings.statement, changes::can_notify(&client));
        let notifies = notifies.await.unwrap_or(Err(StoreError::TimedOut));
        let notifies = notifies.map_err(refused)?;
        let pool = pool(&config, &tls, settings);
        let shared = Shared {
            pool,
            settings: settings.clone(),
            config,
            tls,
            notifies,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Connects without applying the migrations, to look at what is there: nothing is made or changed.
    ///
    /// # Errors
    ///
    /// As [`Self::open`], but for migrations.
    pub async fn open_without_migrating(
        address: &PostgresAddress,
        settings: &PostgresSettings,
    ) -> Result<Self, OpenError> {
        let tls = connect::tls(address, settings)?;
        let config = connect::config(address, settings);
        let connected = connect::connect(&config, &tls, settings).await;
        connected.map_err(|cause| OpenError::Server {
            server: address.to_string(),
            cause,
        })?;
        let shared = Shared {
            pool: pool(&config, &tls, settings),
            settings: settings.clone(),
            config,
            tls,
            // Nobody is told of what is not written.
            notifies: false,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// A connection, for as long as the caller keeps it.
    ///
    /// # Errors
    ///
    /// None comes free, and none can be made, within the configured wait.
    pub async fn session(&self) -> Result<Session, StoreError> {
        let Shared { pool, settings, .. } = &*self.shared;
        match tokio::time::timeout(settings.wait, pool.get()).await {
            Ok(Ok(client)) => Ok(Session::new(client, settings.statement)),
            Ok(Err(PoolError::Backend(cause))) => Err(cause.into()),
            Ok(Err(PoolError::Timeout(_))) | Err(_) => Err(StoreError::Busy),
            Ok(Err(PoolError::Closed | PoolError::NoRuntimeSpecified)) => {
                Err(StoreError::Interrupted)
            }
            Ok(Err(PoolError::PostCreateHook(cause))) => Err(hook_failure(cause)),
        }
    }

    /// Whether a write can tell others of itself by `pg_notify`: what [`changes::with_notification`] wants to know.
    #[must_use]
    pub fn notifies(&self) -> bool {
        self.shared.notifies
    }

    /// How long a call may take in all: to find a connection, and to run.
    fn patience(&self) -> Duration {
        self.shared.settings.wait + self.shared.settings.statement
    }

    /// Ends the connections that are free: for whoever opened the database on a runtime that is about to end, and
    /// its connections with it.
    pub fn disconnect(&self) {
        self.shared.pool.retain(|_, _| false);
    }

    /// A connection outside the pool, driven by a task of the runtime that this is called on.
    pub(crate) async fn connect(&self) -> Result<(Client, Notifications), StoreError> {
        let Shared {
            config,
            tls,
            settings,
            ..
        } = &*self.shared;
        connect::connect(config, tls, settings).await
    }
}

/// How many rows a statement was about, counted as SQLite does.
#[must_use]
pub fn row_count(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}

fn pool(config: &Config, tls: &MakeRustlsConnect, settings: &PostgresSettings) -> Pool {
    // A connection that ended is noticed without asking: its task has ended.
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let manager = Manager::from_config(config.clone(), tls.clone(), recycling);
    let limits = connect::limits(settings);
    Pool::builder(manager)
        .max_size(settings.pool_size)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(settings.wait))
        .create_timeout(Some(settings.connect))
        .post_create(Hook::async_fn(move |client, _| {
            let limits = limits.clone();
            Box::pin(async move {
                let limited = client.batch_execute(&limits).await;
                limited.map_err(HookError::Backend)
            })
        }))
        .build()
        .expect("a runtime is named, which is all that timeouts want")
}

fn hook_failure(cause: HookError) -> StoreError {
    match cause {
        HookError::Backend(cause) => cause.into(),
        HookError::Message(_) => StoreError::Interrupted,
    }
}

/// Silent: the configuration holds the password.
impl std::fmt::Debug for PostgresDatabase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("PostgresDatabase(…)")
    }
}

#[cfg(test)]
mod tests;
