//! A database on a Postgres server, or on an engine with its protocol: connecting, migrating, calling.
//!
//! Every write is one statement: atomic, in one round trip, and no transaction stays open when a process dies.
//! Statements use no feature specific to Postgres except `pg_notify`, and that only if it is available.

pub mod changes;
mod connect;
mod migrate;
mod session;
mod statements;

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

pub(crate) use self::connect::Notifications;
pub use self::session::{Parameters, Session};
use crate::{
    OpenError, PostgresAddress, PostgresSettings, StoreError,
    schema::{SIGNPOST, Schema},
    statistics::{PoolStatistics, Statistics, StoreStatistics},
};

/// An open, migrated database on a server. Clones are cheap and share it.
#[derive(Clone)]
pub struct PostgresDatabase {
    shared: Arc<Shared>,
}

#[derive(Clone)]
struct Shared {
    pool: Pool,
    /// The address, without user and password.
    server: String,
    /// Recorded with the migrations that it applies.
    program: String,
    settings: PostgresSettings,
    config: Config,
    tls: MakeRustlsConnect,
    /// Whether writes can notify other processes with `pg_notify`. Set when the database was opened: before that, no call
    /// is made, since its tables may not be those that this program needs.
    can_notify: Arc<OnceLock<bool>>,
    /// Shared with the sessions, which count their calls.
    statistics: Arc<Statistics>,
}

impl Shared {
    /// A pool without connections.
    fn new(
        address: &PostgresAddress,
        settings: &PostgresSettings,
        program: &str,
    ) -> Result<Self, OpenError> {
        let tls = connect::tls(address, settings)?;
        let config = connect::config(address, settings);
        Ok(Self {
            pool: pool(&config, &tls, settings),
            server: address.to_string(),
            program: program.to_owned(),
            settings: settings.clone(),
            config,
            tls,
            can_notify: Arc::default(),
            statistics: Arc::default(),
        })
    }

    fn unusable(&self, cause: StoreError) -> OpenError {
        let server = self.server.clone();
        OpenError::Server { server, cause }
    }
}

impl PostgresDatabase {
    /// Connects, and applies the migrations under an advisory lock: if several processes start at once, one migrates
    /// and the others wait.
    ///
    /// # Errors
    ///
    /// The server is down or refuses the connection, its certificate is not valid, or a migration fails.
    pub async fn open(
        address: &PostgresAddress,
        settings: &PostgresSettings,
        program: &str,
    ) -> Result<Self, OpenError> {
        let database = Self::open_later(address, settings, program)?;
        database.finish_opening().await?;
        Ok(database)
    }

    /// A database whose calls fail until [`Self::finish_opening`] has succeeded.
    ///
    /// # Errors
    ///
    /// The root certificates cannot be read.
    pub(crate) fn open_later(
        address: &PostgresAddress,
        settings: &PostgresSettings,
        program: &str,
    ) -> Result<Self, OpenError> {
        let shared = Shared::new(address, settings, program)?;
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Does what [`Self::open`] does, unless it was done.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub(crate) async fn finish_opening(&self) -> Result<(), OpenError> {
        if self.is_open() {
            return Ok(());
        }
        let shared = &self.shared;
        // Outside the pool: a migration changes the timeouts of its session.
        let connected = self.connect().await;
        let (mut client, _) = connected.map_err(|cause| shared.unusable(cause))?;
        let (server, limit) = (&shared.server, self.call_timeout());
        migrate::migrate(&mut client, server, &SIGNPOST, &shared.program, limit).await?;
        let can_notify = changes::can_notify(&client);
        let can_notify = tokio::time::timeout(shared.settings.statement, can_notify).await;
        let can_notify = can_notify.unwrap_or(Err(StoreError::TimedOut));
        let can_notify = can_notify.map_err(|cause| shared.unusable(cause))?;
        shared.can_notify.get_or_init(|| can_notify);
        Ok(())
    }

    /// Whether calls can be made.
    pub(crate) fn is_open(&self) -> bool {
        self.shared.can_notify.get().is_some()
    }

    /// Applies the missing migrations of a version's tables.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub(crate) async fn migrate(
        &self,
        schema: &Schema<'_>,
        program: &str,
    ) -> Result<(), OpenError> {
        let shared = &self.shared;
        let connected = self.connect().await;
        let (mut client, _) = connected.map_err(|cause| shared.unusable(cause))?;
        let limit = self.call_timeout();
        migrate::migrate(&mut client, &shared.server, schema, program, limit).await
    }

    /// Connects without applying the migrations, to inspect the database without changing it.
    ///
    /// # Errors
    ///
    /// As [`Self::open`], but for migrations.
    pub(crate) async fn open_without_migrating(
        address: &PostgresAddress,
        settings: &PostgresSettings,
    ) -> Result<Self, OpenError> {
        let database = Self::open_later(address, settings, "")?;
        let connected = database.connect().await;
        connected.map_err(|cause| database.shared.unusable(cause))?;
        // Allows calls. This handle writes nothing, so it needs no notifications.
        database.shared.can_notify.get_or_init(|| false);
        Ok(database)
    }

    /// Takes a connection from the pool.
    ///
    /// # Errors
    ///
    /// No connection is free, and none can be opened, within the configured timeout.
    pub async fn session(&self) -> Result<Session, StoreError> {
        let (shared, begun_at) = (&self.shared, Instant::now());
        let client = self.wait_for_connection().await;
        let count_failure = |_: &_| shared.statistics.count_call(begun_at.elapsed(), false);
        let client = client.inspect_err(count_failure)?;
        Ok(Session::new(client, shared, begun_at.elapsed()))
    }

    /// Whether the tables are there, and can be written.
    pub(crate) async fn probe(&self, tables: &str) -> Result<(), StoreError> {
        self.session().await?.probe(tables).await
    }

    async fn wait_for_connection(&self) -> Result<Object, StoreError> {
        let Shared { pool, settings, .. } = &*self.shared;
        if !self.is_open() {
            return Err(StoreError::Disconnected);
        }
        // One limit for all steps: the pool's own timeouts apply to each of them alone.
        match tokio::time::timeout(settings.wait, pool.get()).await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(PoolError::Backend(cause))) => Err(cause.into()),
            Ok(Err(PoolError::Timeout(_))) | Err(_) => Err(StoreError::Busy),
            Ok(Err(PoolError::Closed | PoolError::NoRuntimeSpecified)) => {
                Err(StoreError::Interrupted)
            }
            Ok(Err(PoolError::PostCreateHook(cause))) => Err(hook_failure(cause)),
        }
    }

    /// Whether writes can notify other processes with `pg_notify`, for `changes::with_notification`.
    #[must_use]
    pub fn can_notify(&self) -> bool {
        self.shared.can_notify.get() == Some(&true)
    }

    /// Limit on concurrent calls: the size of the pool.
    pub(crate) fn max_calls(&self) -> usize {
        self.shared.settings.pool_size
    }

    /// The same database with a pool of its own, of at most `connections`. Connections are driven by the thread that opened
    /// them: what another thread must not wait for uses others.
    pub(crate) fn with_own_pool(&self, connections: usize) -> Self {
        let settings = PostgresSettings {
            pool_size: connections,
            ..self.shared.settings.clone()
        };
        let shared = Shared {
            pool: pool(&self.shared.config, &self.shared.tls, &settings),
            settings,
            ..Shared::clone(&self.shared)
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Counts of calls, connections and changes.
    pub(crate) fn statistics(&self) -> StoreStatistics {
        let status = self.shared.pool.status();
        self.shared.statistics.read(PoolStatistics {
            idle: status.available,
            in_use: status.size.saturating_sub(status.available),
            waiting: status.waiting,
        })
    }

    /// Where the change feed counts.
    pub(crate) fn counters(&self) -> &Statistics {
        &self.shared.statistics
    }

    /// Timeout of a whole call: waiting for a connection, and running the statement.
    fn call_timeout(&self) -> Duration {
        self.shared.settings.wait + self.shared.settings.statement
    }

    /// Closes the idle connections. Needed if the runtime that opened the database ends: it also drives the
    /// connections.
    pub fn disconnect(&self) {
        self.shared.pool.retain(|_, _| false);
    }

    /// Opens a connection outside the pool, driven by a task of the current runtime.
    pub(crate) async fn connect(&self) -> Result<(Client, Notifications), StoreError> {
        let shared = &self.shared;
        connect::connect(&shared.config, &shared.tls, &shared.settings).await
    }
}

/// Converts the row count of a statement to the type that SQLite uses.
#[must_use]
pub fn row_count(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}

fn pool(config: &Config, tls: &MakeRustlsConnect, settings: &PostgresSettings) -> Pool {
    // No query is needed to detect a closed connection: its task has ended.
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let manager = Manager::from_config(config.clone(), tls.clone(), recycling);
    let limits = connect::limits(settings);
    Pool::builder(manager)
        .max_size(settings.pool_size)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(settings.wait))
        .create_timeout(Some(settings.wait))
        // Once for each connection, so that no call has this round trip.
        .post_create(Hook::async_fn(move |client, _| {
            let limits = limits.clone();
            Box::pin(async move {
                let limited = client.batch_execute(&limits).await;
                limited.map_err(HookError::Backend)
            })
        }))
        .build()
        .expect("timeouts need only a runtime, which is set")
}

fn hook_failure(cause: HookError) -> StoreError {
    match cause {
        HookError::Backend(cause) => cause.into(),
        HookError::Message(_) => StoreError::Interrupted,
    }
}

// Prints nothing: the configuration holds the password.
signpost_protocol::hide_in_debug!(PostgresDatabase);

#[cfg(test)]
mod tests;
