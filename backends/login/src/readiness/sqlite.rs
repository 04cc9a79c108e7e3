//! Asking SQLite.

use async_trait::async_trait;
use signpost_store::{SqliteDatabase, StoreError};

use super::{PROBE, Readiness};

/// Asks a SQLite file.
#[derive(Debug)]
pub struct SqliteReadiness(SqliteDatabase);

impl SqliteReadiness {
    /// Over an open database.
    #[must_use]
    pub fn new(database: SqliteDatabase) -> Self {
        Self(database)
    }
}

#[async_trait]
impl Readiness for SqliteReadiness {
    async fn probe(&self) -> Result<(), StoreError> {
        self.0
            .call(|connection| connection.query_row(PROBE, [], |_| Ok(())))
            .await
    }
}
