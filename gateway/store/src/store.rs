//! Opening, probing and watching whichever store the configuration names.

use std::{sync::Arc, time::Duration};

use crate::{
    Change, OpenError, PostgresDatabase, SqliteDatabase, StoreAddress, StoreError, StoreSettings,
    changes::Watch, postgres, sqlite,
};

/// Reads a page of each side's table: an open handle alone would not notice that the file is gone, nor a connection that
/// the tables are.
const PROBE: &str = "SELECT (SELECT count(*) FROM (SELECT 1 FROM accounts LIMIT 1) AS login) \
                     + (SELECT count(*) FROM (SELECT 1 FROM applications LIMIT 1) AS gateway)";

/// How long a server may take to answer a probe: an orchestrator that asks wants to know now.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// An open database, migrated. Cheap to clone; every clone is the same database.
#[derive(Clone, Debug)]
pub enum Store {
    /// The embedded one.
    Sqlite(SqliteDatabase),
    /// A server's.
    Postgres(PostgresDatabase),
}

impl Store {
    /// Opens it and applies the migrations. Safe to do from any number of processes at once: one migrates, the
    /// others wait for it. An embedded one blocks the thread meanwhile.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or a migration fails.
    pub async fn open(settings: &StoreSettings) -> Result<Self, OpenError> {
        match &settings.address {
            StoreAddress::Sqlite(path) => SqliteDatabase::open(path).map(Self::Sqlite),
            StoreAddress::Postgres(address) => PostgresDatabase::open(address, &settings.postgres)
                .await
                .map(Self::Postgres),
        }
    }

    /// Whether it can be used right now: for `/readyz`. A server answers within 1 s or not at all; an embedded store,
    /// within [`SqliteDatabase::CALL_TIMEOUT`].
    ///
    /// # Errors
    ///
    /// It does not answer, or file or tables are gone.
    pub async fn probe(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(database) => {
                let probe = database.call(|connection| connection.query_row(PROBE, [], |_| Ok(())));
                probe.await
            }
            Self::Postgres(database) => {
                let probe = async {
                    let session = database.session().await?;
                    session.query_one(PROBE, &[]).await.map(drop)
                };
                let answer = tokio::time::timeout(PROBE_TIMEOUT, probe).await;
                answer.unwrap_or(Err(StoreError::TimedOut))
            }
        }
    }

    /// Calls `on_change` for every change from now on, from a thread of its own, until the watch is dropped. `clock`
    /// tells the time since the Unix epoch: it is compared with a server's clock now and then, and a difference is
    /// logged.
    ///
    /// Blocks until nothing can be missed any more, so not on the one thread of a runtime that drives this store's
    /// connections.
    ///
    /// # Errors
    ///
    /// The database cannot be read now. Later failures are ridden out: [`Change::Lost`] tells of them, and
    /// [`Change::Everything`] of their end.
    pub fn watch(
        &self,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
        on_change: impl FnMut(Change) + Send + 'static,
    ) -> Result<Watch, StoreError> {
        match self {
            Self::Sqlite(database) => sqlite::changes::watch(database, on_change),
            Self::Postgres(database) => {
                postgres::changes::watch(database, Arc::new(clock), on_change)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Store, testing::TestStore};

    #[tokio::test]
    async fn a_store_answers_a_probe_while_it_is_there() {
        let place = TestStore::chosen();
        let store = place.open().await;
        store.probe().await.unwrap();
        place.make_unavailable();
        store.probe().await.unwrap_err();
        place.make_available();
        // A pooled connection that has just ended may be noticed by the first who uses it.
        if store.probe().await.is_err() {
            store.probe().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_probe_notices_that_a_table_is_gone() {
        for table in ["accounts", "applications"] {
            let place = TestStore::chosen();
            let store = place.open().await;
            let rename = format!("ALTER TABLE {table} RENAME TO elsewhere");
            match &store {
                Store::Sqlite(database) => {
                    let renamed = database.write(move |all| all.execute_batch(&rename));
                    renamed.await.unwrap();
                }
                Store::Postgres(_) => place.administer(&rename),
            }
            store.probe().await.unwrap_err();
        }
    }
}
