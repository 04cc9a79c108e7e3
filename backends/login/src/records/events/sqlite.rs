//! Events in SQLite.

use async_trait::async_trait;
use rusqlite::params;
use signpost_kit::clock::Timestamp;
use signpost_store::{SqliteDatabase, StoreError};

use super::{Event, EventCursor, EventQuery, EventStore, NewEvent, row::event_from_row};

/// A page of events, the newest first: ids grow with time. Parameters: account, application, the id that all are below,
/// their number.
pub(super) const LIST: &str = "SELECT id, event, data, received_at FROM events \
     WHERE account_id = ?1 AND application_id = ?2 AND id < ?3 ORDER BY id DESC LIMIT ?4";

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

    async fn list(&self, query: EventQuery) -> Result<Vec<Event>, StoreError> {
        let before = query.before.map_or(i64::MAX, EventCursor::id);
        self.0
            .call(move |connection| {
                let mut list = connection.prepare_cached(LIST)?;
                let values = params![
                    query.account.get(),
                    query.application.get(),
                    before,
                    query.limit,
                ];
                list.query_map(values, |row| event_from_row(row))?.collect()
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
