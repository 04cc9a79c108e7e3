//! Opening, probing and watching the configured store.

use std::{sync::Arc, time::Duration};

use crate::{
    Change, OpenError, PostgresDatabase, SqliteDatabase, StoreAddress, StoreError, StoreSettings,
    StoreStatistics, changes::Watch, postgres, schema::Schema, sqlite, statistics::Statistics,
};

/// Reads one table of each program: an open handle would not notice a missing file, nor a connection missing tables.
const PROBE: &str = "SELECT (SELECT count(*) FROM (SELECT 1 FROM accounts LIMIT 1) AS login) \
                     + (SELECT count(*) FROM (SELECT 1 FROM applications LIMIT 1) AS gateway)";

/// Timeout of a probe on a server: short, since the probes of an orchestrator have short timeouts. Unit tests share the
/// machine with others, which may delay a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 20 } else { 1 });

/// An open, migrated database. Clones are cheap and share it.
#[derive(Clone, Debug)]
pub enum Store {
    /// SQLite, embedded in each program.
    Sqlite(SqliteDatabase),
    /// Postgres, on a server.
    Postgres(PostgresDatabase),
}

/// Calls whichever database the store is.
macro_rules! either {
    ($store:expr, $database:ident => $call:expr) => {
        match $store {
            Store::Sqlite($database) => $call,
            Store::Postgres($database) => $call,
        }
    };
}
pub(crate) use either;

impl Store {
    /// Opens the database and applies the migrations. Blocks the thread if it is SQLite.
    ///
    /// Several processes may open it at once: one migrates, the others wait.
    ///
    /// # Errors
    ///
    /// The database cannot be opened, or a migration fails.
    pub async fn open(settings: &StoreSettings) -> Result<Self, OpenError> {
        let store = Self::open_later(settings)?;
        if let Self::Postgres(database) = &store {
            database.finish_opening().await?;
        }
        Ok(store)
    }

    /// A store that is opened once it answers, by the thread of [`Self::watch`]. Until then each call fails. For Postgres:
    /// SQLite is opened at once.
    ///
    /// # Errors
    ///
    /// The root certificates cannot be read; of SQLite as [`Self::open`].
    pub fn open_later(settings: &StoreSettings) -> Result<Self, OpenError> {
        match &settings.address {
            StoreAddress::Sqlite(path) => {
                SqliteDatabase::open(path, &settings.program).map(Self::Sqlite)
            }
            StoreAddress::Postgres(address) => {
                let (settings, program) = (&settings.postgres, &settings.program);
                PostgresDatabase::open_later(address, settings, program).map(Self::Postgres)
            }
        }
    }

    /// Applies the missing migrations of a version's tables, all or none. Blocks the thread if it is SQLite. `program`
    /// is recorded with them.
    ///
    /// # Errors
    ///
    /// A migration fails, or touches what is not the version's own; or a later release has migrated the tables, and
    /// programs as old as this one cannot work with them.
    pub async fn migrate(&self, schema: &Schema<'_>, program: &str) -> Result<(), OpenError> {
        match self {
            Self::Sqlite(database) => database.migrate(schema, program),
            Self::Postgres(database) => database.migrate(schema, program).await,
        }
    }

    /// Opens the database without creating, migrating or changing it; `None` if no program has migrated it.
    ///
    /// # Errors
    ///
    /// The database exists, and cannot be opened or read.
    pub async fn open_read_only(
        settings: &StoreSettings,
    ) -> Result<Option<Self>, OpenReadOnlyError> {
        let store = match &settings.address {
            StoreAddress::Sqlite(path) => SqliteDatabase::open_read_only(path)?.map(Self::Sqlite),
            StoreAddress::Postgres(address) => {
                let opened = PostgresDatabase::open_without_migrating(address, &settings.postgres);
                Some(Self::Postgres(opened.await?))
            }
        };
        let Some(store) = store else {
            return Ok(None);
        };
        let tables = store.dialect(
            "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'applications'",
            "SELECT 1 WHERE to_regclass('applications') IS NOT NULL",
        );
        let table = store.row::<()>(tables, Vec::new()).await?;
        Ok(table.map(|()| store))
    }

    /// Closes the idle connections that the present runtime drives. Needed if it ends before the store is used.
    pub fn disconnect(&self) {
        if let Self::Postgres(database) = self {
            database.disconnect();
        }
    }

    /// A handle with its own pool, for callers that must not delay other callers. On a server, the pool has at most
    /// `connections`.
    #[must_use]
    pub fn with_own_pool(&self, connections: usize) -> Self {
        match self {
            // Each call has a blocking thread.
            Self::Sqlite(database) => Self::Sqlite(database.clone()),
            Self::Postgres(database) => Self::Postgres(database.with_own_pool(connections)),
        }
    }

    /// Limit on concurrent calls.
    #[must_use]
    pub fn max_calls(&self) -> usize {
        match self {
            Self::Sqlite(_) => SqliteDatabase::MAX_CALLS,
            Self::Postgres(database) => database.max_calls(),
        }
    }

    /// Checks whether the database can be used, for `/readyz`.
    ///
    /// Times out after 1 s on a server, after [`SqliteDatabase::CALL_TIMEOUT`] on SQLite.
    ///
    /// # Errors
    ///
    /// The database does not answer, or the file or a table is missing; or [`StoreError::NotWritable`].
    pub async fn probe(&self) -> Result<(), StoreError> {
        let response = match self {
            Self::Sqlite(database) => Ok(database.probe(PROBE).await),
            Self::Postgres(database) => {
                tokio::time::timeout(PROBE_TIMEOUT, database.probe(PROBE)).await
            }
        };
        response.unwrap_or(Err(StoreError::TimedOut))
    }

    /// Subscribes to the change feed: calls `on_change` on a separate thread until the watch is dropped.
    ///
    /// If the store is [not open yet](Self::open_later), this does not wait, and [`Change::Restored`] says that it answers.
    ///
    /// `clock` returns the time since the Unix epoch. It is compared with the server's clock once a minute, and a
    /// difference is logged.
    ///
    /// Blocks until no change can be missed any more. So it must not be called on the only thread of a runtime that
    /// drives this store's connections.
    ///
    /// # Errors
    ///
    /// The database cannot be read now. After later failures the feed recovers: it reports [`Change::Lost`], and
    /// [`Change::Restored`] when the store answers again.
    pub fn watch(
        &self,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
        mut on_change: impl FnMut(Change) + Send + 'static,
    ) -> Result<Watch, StoreError> {
        let counting = self.clone();
        let on_change = move |change: Change| {
            // That the feed is lost is no change.
            if change != Change::Lost {
                counting.counters().count_change();
            }
            on_change(change);
        };
        match self {
            Self::Sqlite(database) => sqlite::changes::watch(database, on_change),
            Self::Postgres(database) => {
                postgres::changes::watch(database, Arc::new(clock), on_change)
            }
        }
    }

    fn counters(&self) -> &Statistics {
        either!(self, database => database.counters())
    }

    /// Counts of calls, connections and changes of this handle and its clones, since it was opened.
    #[must_use]
    pub fn statistics(&self) -> StoreStatistics {
        either!(self, database => database.statistics())
    }
}

/// Why a database could not be opened to read it.
#[derive(Debug, thiserror::Error)]
pub enum OpenReadOnlyError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] StoreError),
}

#[cfg(test)]
mod both_stores {
    use crate::{Store, testing::TestStore};

    #[tokio::test]
    async fn a_probe_succeeds_while_the_store_is_available() {
        let test = TestStore::chosen();
        let store = test.open().await;
        store.probe().await.unwrap();
        test.make_unavailable();
        store.probe().await.unwrap_err();
        test.make_available();
        // The first call may still get a pooled connection that was closed.
        if store.probe().await.is_err() {
            store.probe().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_probe_fails_if_a_table_is_missing() {
        for table in ["accounts", "applications"] {
            let test = TestStore::chosen();
            let store = test.open().await;
            let rename = format!("ALTER TABLE {table} RENAME TO elsewhere");
            match &store {
                Store::Sqlite(database) => {
                    let renamed = database.write(move |all| all.execute_batch(&rename));
                    renamed.await.unwrap();
                }
                Store::Postgres(_) => test.administer(&rename),
            }
            store.probe().await.unwrap_err();
        }
    }
}
