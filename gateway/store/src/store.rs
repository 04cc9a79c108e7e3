//! Opening and watching whichever store the configuration names.

use std::{sync::Arc, time::Duration};

use crate::{
    Change, OpenError, PostgresDatabase, SqliteDatabase, StoreAddress, StoreError, StoreSettings,
    changes::Watch, postgres, sqlite,
};

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
