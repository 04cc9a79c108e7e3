//! Asking Postgres.

use async_trait::async_trait;
use signpost_store::{PostgresDatabase, StoreError};

use super::{PROBE, Readiness};

/// Asks a Postgres.
#[derive(Debug)]
pub struct PostgresReadiness(PostgresDatabase);

impl PostgresReadiness {
    /// Over an open database.
    #[must_use]
    pub fn new(database: PostgresDatabase) -> Self {
        Self(database)
    }
}

#[async_trait]
impl Readiness for PostgresReadiness {
    async fn probe(&self) -> Result<(), StoreError> {
        let session = self.0.session().await?;
        session.query_one(PROBE, &[]).await.map(drop)
    }
}
