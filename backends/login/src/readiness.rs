//! Whether the store can be reached: what `/readyz` answers.

use async_trait::async_trait;
use signpost_store::{Database, StoreError};

/// A store that can be asked whether it is there.
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Asks.
    ///
    /// # Errors
    ///
    /// It is not there, or not usable.
    async fn probe(&self) -> Result<(), StoreError>;
}

/// Asks a SQLite file.
#[derive(Debug)]
pub struct SqliteReadiness(Database);

impl SqliteReadiness {
    /// Over an open database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl Readiness for SqliteReadiness {
    async fn probe(&self) -> Result<(), StoreError> {
        // Reads a page of a table of ours: an open handle alone would not notice that the file is gone.
        self.0
            .call(|connection| {
                connection.query_row(
                    "SELECT count(*) FROM (SELECT 1 FROM accounts LIMIT 1)",
                    [],
                    |_| Ok(()),
                )
            })
            .await
    }
}
