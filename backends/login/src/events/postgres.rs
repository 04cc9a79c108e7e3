//! Events in Postgres.

use async_trait::async_trait;
use signpost_store::{PostgresDatabase, StoreError};

use super::{EventStore, NewEvent};
use crate::store_values::StoredRow;

/// Events in a Postgres.
#[derive(Debug)]
pub struct PostgresEvents(PostgresDatabase);

impl PostgresEvents {
    /// Over an open database.
    #[must_use]
    pub fn new(database: PostgresDatabase) -> Self {
        Self(database)
    }
}

#[async_trait]
impl EventStore for PostgresEvents {
    async fn keep(&self, event: NewEvent) -> Result<i64, StoreError> {
        let session = self.0.session().await?;
        let row = session
            .query_one(
                "INSERT INTO events (account_id, application_id, event, data, received_at) \
                 VALUES ($1, $2, $3, $4, $5) RETURNING id",
                &[
                    &event.account.get(),
                    &event.application.get(),
                    &event.name.as_str(),
                    &event.data,
                    &event.received_at.as_millis(),
                ],
            )
            .await?;
        row.number("id")
    }
}
