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
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use tokio_postgres::{Client, Config};

pub(crate) use self::connect::Notifications;
use self::connect::{Servers, repeated};
pub use self::session::{Parameters, Session};
use crate::{
    OpenError, PostgresAddress, PostgresSettings, StoreError,
    schema::{SIGNPOST, Schema},
    statistics::{PoolStatistics, Statistics, StoreStatistics},
};

const POOLED: &str = "a pooler gives each transaction of the store another connection to the server, as PgBouncer does with \
    pool_mode = transaction: statements are not prepared, and changes are polled. With pool_mode = session, neither is \
    needed";

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
    servers: Servers,
    /// Set when the database was opened: before that, no call is made, since its tables may not be those that this program
    /// needs.
    abilities: Arc<OnceLock<Abilities>>,
    types: session::Types,
    /// How often all connections were closed. Those in use at that time are closed after it.
    closings: Arc<AtomicUsize>,
    /// Shared with the sessions, which count their calls.
    statistics: Arc<Statistics>,
}

/// What a server, or the pooler before it, permits.
struct Abilities {
    /// Whether writes can notify other processes with `pg_notify`.
    can_notify: bool,
    /// Whether each transaction may have another connection to the server.
    is_pooled: AtomicBool,
}

impl Abilities {
    fn is_pooled(&self) -> bool {
        self.is_pooled.load(Ordering::Relaxed)
    }

    /// Notes a pooler.
    fn note_pooler(&self) {
        if !self.is_pooled.swap(true, Ordering::Relaxed) {
            tracing::info!("{POOLED}");
        }
    }
}

impl Shared {
    /// A pool without connections.
    fn new(
        address: &PostgresAddress,
        settings: &PostgresSettings,
        program: &str,
    ) -> Result<Self, OpenError> {
        let servers = Servers::new(address, settings)?;
        Ok(Self {
            pool: pool(&servers, settings),
            server: address.to_string(),
            program: program.to_owned(),
            settings: settings.clone(),
            servers,
            abilities: Arc::default(),
            types: Arc::default(),
            closings: Arc::default(),
            statistics: Arc::default(),
        })
    }

    fn unusable(&self, cause: StoreError) -> OpenError {
        let server = self.server.clone();
        OpenError::Server { server, cause }
    }
}

impl PostgresDatabase {
    /// Connects, and applies the migrations: if several processes start at once, one migrates and the others wait.
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
        let can_notify = repeated(self.call_timeout(), || changes::can_notify(&client)).await;
        let can_notify = can_notify.map_err(|cause| shared.unusable(cause))?;
        self.allow_calls(&client, can_notify).await
    }

    /// Allows calls, once it is known how to make them.
    async fn allow_calls(&self, client: &Client, can_notify: bool) -> Result<(), OpenError> {
        let shared = &self.shared;
        let is_pooled = match self.connect().await {
            Ok((other, _)) => {
                repeated(self.call_timeout(), || connect::is_pooled(client, &other)).await
            }
            // No pooler, but a server at its connection limit.
            Err(_) => Ok(false),
        };
        let is_pooled = is_pooled.map_err(|cause| shared.unusable(cause))?;
        let abilities = shared.abilities.get_or_init(|| Abilities {
            can_notify,
            is_pooled: AtomicBool::new(false),
        });
        if is_pooled {
            abilities.note_pooler();
        }
        Ok(())
    }

    /// Whether calls can be made.
    pub(crate) fn is_open(&self) -> bool {
        self.shared.abilities.get().is_some()
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
        let (client, _) = connected.map_err(|cause| database.shared.unusable(cause))?;
        // This handle writes nothing, so it needs no notifications.
        database.allow_calls(&client, false).await?;
        Ok(database)
    }

    /// Takes a connection from the pool.
    ///
    /// # Errors
    ///
    /// No connection is free, and none can be opened, within the configured timeout.
    pub async fn session(&self) -> Result<Session, StoreError> {
        let (shared, begun_at) = (&self.shared, Instant::now());
        // Before the connection: it may be one that is to be closed.
        let closings = shared.closings.load(Ordering::Relaxed);
        let client = self.wait_for_connection().await;
        let count_failure = |_: &_| shared.statistics.count_call(begun_at.elapsed(), false);
        let client = client.inspect_err(count_failure)?;
        Ok(Session::new(client, shared, begun_at.elapsed(), closings))
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
        let abilities = self.shared.abilities.get();
        abilities.is_some_and(|found| found.can_notify)
    }

    /// Whether the change feed can listen: for that, a connection to the server must last.
    pub(crate) fn can_listen(&self) -> bool {
        let abilities = self.shared.abilities.get();
        abilities.is_some_and(|found| found.can_notify && !found.is_pooled())
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
            pool: pool(&self.shared.servers, &settings),
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
        connect::connect(&shared.servers, &shared.settings).await
    }
}

/// Converts the row count of a statement to the type that SQLite uses.
#[must_use]
pub fn row_count(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}

fn pool(servers: &Servers, settings: &PostgresSettings) -> Pool {
    // No query is needed to detect a closed connection: its task has ended.
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let manager = Manager::from_connect(Config::new(), servers.clone(), recycling);
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
