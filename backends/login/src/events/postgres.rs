//! Events in Postgres.

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_store::{PostgresDatabase, StoreError, StoredRow, postgres::row_count};

use super::{EventStore, NewEvent};

/// Events in a Postgres database.
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
    async fn insert(&self, event: NewEvent) -> Result<i64, StoreError> {
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

    async fn sweep(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        // Ids grow with time, so the lowest ids are the oldest events: no index on received_at is needed.
        let sql = format!(
            "DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT {limit}) AND received_at < $1"
        );
        let session = self.0.session().await?;
        let swept = session.execute(&sql, &[&before.as_millis()]).await?;
        Ok(row_count(swept))
    }
}
