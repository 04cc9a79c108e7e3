//! Events in Postgres.

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_store::{PostgresDatabase, StoreError, StoredRow, postgres::row_count};

use super::{Event, EventCursor, EventQuery, EventStore, NewEvent, row::event_from_row};

/// As in SQLite, but the order names all columns of the index `events_by_owner`. By `id` alone, the server would walk the
/// primary key instead if the account has many of all events, and pass all newer events of others.
pub(super) const LIST: &str = "SELECT id, event, data, received_at FROM events \
     WHERE (account_id, application_id, id) < ($1, $2, $3) AND (account_id, application_id, id) > ($1, $2, 0) \
     ORDER BY account_id DESC, application_id DESC, id DESC LIMIT $4";

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

    async fn list(&self, query: EventQuery) -> Result<Vec<Event>, StoreError> {
        let before = query.before.map_or(i64::MAX, EventCursor::id);
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
        let session = self.0.session().await?;
        let rows = session
            .query(
                LIST,
                &[
                    &query.account.get(),
                    &query.application.get(),
                    &before,
                    &limit,
                ],
            )
            .await?;
        rows.iter().map(event_from_row).collect()
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
