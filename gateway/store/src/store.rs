//! Opening whichever store the configuration names.

use crate::{OpenError, PostgresDatabase, SqliteDatabase, StoreAddress, StoreSettings};

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
}
