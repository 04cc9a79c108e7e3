//! Events that applications report about logged-in users.

mod cursor;
mod page;
mod postgres;
mod row;
mod sqlite;

use std::str::FromStr;

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_protocol::app::AppId;
use signpost_store::StoreError;

pub use self::{
    cursor::{EventCursor, ParseEventCursorError},
    page::{EventPage, EventQuery},
    postgres::PostgresEvents,
    sqlite::SqliteEvents,
};
use crate::records::accounts::AccountId;

/// An event's name: 1 to 64 of `[a-z0-9_.]`. CONTRACT 8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventName(String);

impl EventName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EventName {
    type Err = ParseEventNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let is_allowed = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.')
        };
        if (1..=64).contains(&name.len()) && name.bytes().all(is_allowed) {
            Ok(Self(name.to_owned()))
        } else {
            Err(ParseEventNameError)
        }
    }
}

/// The text is not a valid event name.
#[derive(Debug, thiserror::Error)]
#[error("1 to 64 of a-z, 0-9, _ and .")]
pub struct ParseEventNameError;

/// An event to be stored.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The user's account.
    pub account: AccountId,
    /// The application that reported it.
    pub application: AppId,
    /// What happened.
    pub name: EventName,
    /// Data in a format of the application's choice.
    pub data: Option<String>,
    /// When the event was received.
    pub received_at: Timestamp,
}

/// A stored event.
#[derive(Clone, Debug)]
pub struct Event {
    /// The id, which grows with time.
    pub id: i64,
    /// What happened.
    pub name: EventName,
    /// Data in a format of the application's choice.
    pub data: Option<String>,
    /// When the event was received.
    pub received_at: Timestamp,
}

/// The stored events.
#[async_trait]
pub trait EventStore: Send + Sync {
    /// Inserts an event, and returns its id.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn insert(&self, event: NewEvent) -> Result<i64, StoreError>;

    /// Returns the events that `query` describes, the newest first.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn list(&self, query: EventQuery) -> Result<Vec<Event>, StoreError>;

    /// Deletes up to `limit` events that were received before `before`, the oldest first, and returns how many.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn sweep(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

#[cfg(test)]
mod tests;
