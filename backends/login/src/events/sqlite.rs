//! Events in SQLite.

use async_trait::async_trait;
use rusqlite::params;
use signpost_kit::clock::Timestamp;
use signpost_store::{SqliteDatabase, StoreError};

use super::{EventStore, NewEvent};

/// Events in a SQLite file.
#[derive(Debug)]
pub struct SqliteEvents(SqliteDatabase);

impl SqliteEvents {
    /// Over an open database.
    #[must_use]
    pub fn new(database: SqliteDatabase) -> Self {
        Self(database)
    }
}

#[async_trait]
impl EventStore for SqliteEvents {
    async fn insert(&self, event: NewEvent) -> Result<i64, StoreError> {
        self.0
            .write(move |transaction| {
                transaction
                    .prepare_cached(
                        "INSERT INTO events (account_id, application_id, event, data, received_at) \
                         VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id",
                    )?
                    .query_row(
                        params![
                            event.account.get(),
                            event.application.get(),
                            event.name.as_str(),
                            event.data,
                            event.received_at.as_millis(),
                        ],
                        |row| row.get(0),
                    )
            })
            .await
    }

    async fn sweep(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.0
            .write(move |transaction| {
                // Ids grow with time, so the lowest ids are the oldest events: no index on received_at is needed.
                transaction
                    .prepare_cached(
                        "DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT ?2) \
                             AND received_at < ?1",
                    )?
                    .execute(params![before.as_millis(), limit])
            })
            .await
    }
}
