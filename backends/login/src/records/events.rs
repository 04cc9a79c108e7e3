//! Events that applications report about logged-in users.

use std::{fmt, str::FromStr};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppId, is_word};
use signpost_store::{FromRow, Row, Store, StoreError, values};

use crate::records::accounts::AccountId;

/// An event's name: 1 to 64 of `[a-z0-9_.]`. CONTRACT 8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventName(String);

/// Idempotency key of an event: 1 to 64 of `[A-Za-z0-9._-]`. CONTRACT 8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdempotencyKey(String);

impl IdempotencyKey {
    /// What it can be.
    pub(crate) const PATTERN: &str = "[A-Za-z0-9._-]{1,64}";
}

impl FromStr for IdempotencyKey {
    type Err = ParseIdempotencyKeyError;

    fn from_str(key: &str) -> Result<Self, Self::Err> {
        is_word(key.as_bytes(), 64)
            .then(|| Self(key.to_owned()))
            .ok_or(ParseIdempotencyKeyError)
    }
}

/// The text is not a valid idempotency key.
#[derive(Debug, thiserror::Error)]
#[error("1 to 64 of A-Z, a-z, 0-9, ., _ and -")]
pub(crate) struct ParseIdempotencyKeyError;

impl EventName {
    /// What it can be.
    pub(crate) const PATTERN: &str = "[a-z0-9_.]{1,64}";

    /// The name as clients send it.
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
pub(crate) struct NewEvent {
    /// The user's account.
    pub(crate) account: AccountId,
    /// The application that reported it.
    pub(crate) application: AppId,
    /// What happened.
    pub(crate) name: EventName,
    /// Data in a format of the application's choice.
    pub(crate) data: Option<String>,
    /// The account's and application's events have each key once.
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    /// When the event was received.
    pub(crate) received_at: Timestamp,
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

impl FromRow for Event {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            name: row.parsed("event")?,
            data: row.get("data")?,
            received_at: row.get("received_at")?,
        })
    }
}

/// A page of events, the newest first: ids grow with time. Parameters: account, application, the id that all are below,
/// their number.
const LIST: &str = "SELECT id, event, data, received_at FROM events \
     WHERE account_id = $1 AND application_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4";

/// The order names all columns of the index `events_by_owner`. By `id` alone, the server would walk the primary key
/// instead if the account has many of all events, and pass all newer events of others.
const LIST_IN_POSTGRES: &str = "SELECT id, event, data, received_at FROM events \
     WHERE (account_id, application_id, id) < ($1, $2, $3) AND (account_id, application_id, id) > ($1, $2, 0) \
     ORDER BY account_id DESC, application_id DESC, id DESC LIMIT $4";

/// The stored events. All functions fail if the store is unavailable.
#[derive(Clone, Debug)]
pub(crate) struct Events(pub(crate) Store);

impl Events {
    /// Inserts an event, and returns it; if there is one with its key, inserts nothing, and returns that.
    pub(crate) async fn insert(&self, event: &NewEvent) -> Result<Event, StoreError> {
        // A concurrent insert of the same key is waited for.
        let insert = "INSERT INTO events (account_id, application_id, idempotency_key, event, data, received_at) \
                      VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING \
                      RETURNING id, event, data, received_at";
        let find = "SELECT id, event, data, received_at FROM events \
                    WHERE account_id = $1 AND application_id = $2 AND idempotency_key = $3";
        let key = event.idempotency_key.as_ref().map(|key| key.0.as_str());
        let owner = || values![event.account.get(), event.application.get(), key];
        let mut values = owner();
        values.extend(values![
            event.name.as_str(),
            event.data.as_deref(),
            event.received_at
        ]);
        if let Some(inserted) = self.0.write(insert, values.clone()).await?.pop() {
            return Ok(inserted);
        }
        if let Some(event) = self.0.row(find, owner()).await? {
            return Ok(event);
        }
        // The one that was there has just been swept.
        let inserted = self.0.write(insert, values).await?.pop();
        inserted.ok_or(StoreError::Malformed("idempotency_key"))
    }

    /// Returns the events that `query` describes, the newest first.
    pub(crate) async fn list(&self, query: EventQuery) -> Result<Vec<Event>, StoreError> {
        let values = values![
            query.account.get(),
            query.application.get(),
            query.before.map_or(i64::MAX, EventCursor::id),
            i64::try_from(query.limit).unwrap_or(i64::MAX),
        ];
        let list = self.0.dialect(LIST, LIST_IN_POSTGRES);
        self.0.rows(list, values).await
    }

    /// Deletes up to `limit` events that were received before `before`, the oldest first, and returns how many.
    pub(crate) async fn sweep(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        // Ids grow with time, so the lowest ids are the oldest events: no index on received_at is needed.
        let sweep = format!(
            "DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT {limit}) AND received_at < $1"
        );
        self.0.execute(&sweep, values![before]).await
    }
}

/// Which events a page has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventQuery {
    /// The account that the events concern.
    pub(crate) account: AccountId,
    /// The application that has reported them: no other one shows them.
    pub(crate) application: AppId,
    /// Where the page begins; `None` is the newest event.
    pub(crate) before: Option<EventCursor>,
    /// The largest number of events.
    pub(crate) limit: u64,
}

/// Events, the newest first.
#[derive(Clone, Debug)]
pub struct EventPage {
    /// The events.
    pub events: Vec<Event>,
    /// Where the next page begins; `None` if there are no older events.
    pub next: Option<EventCursor>,
}

impl EventPage {
    /// The largest number of events of a page. With 4 KiB of data each, a page takes about 400 KiB of memory.
    pub const MAX_EVENTS: u64 = 100;

    /// Reads a page. It has one event at least, if there is one, and [`Self::MAX_EVENTS`] at most.
    pub(crate) async fn read(store: &Events, query: EventQuery) -> Result<Self, StoreError> {
        let limit = query.limit.clamp(1, Self::MAX_EVENTS);
        // One more than asked for shows whether there is a next page.
        let query = EventQuery {
            limit: limit + 1,
            ..query
        };
        let mut events = store.list(query).await?;
        let size = usize::try_from(limit).expect("at most 100");
        let has_more = events.len() > size;
        events.truncate(size);
        let last = events.last().filter(|_| has_more);
        Ok(Self {
            next: last.map(|event| EventCursor::behind(event.id)),
            events,
        })
    }
}

/// The position behind an event: the next page begins with the next older one.
///
/// It names an event and not a number of events, so new events do not shift it. Its text is 11 characters of base64url,
/// opaque to clients. Not a secret: an account's list has the account's own events only, wherever it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventCursor(i64);

impl EventCursor {
    /// The position behind the event with this id: of a page's last event, it is where the next page begins.
    #[must_use]
    pub fn behind(id: i64) -> Self {
        Self(id)
    }

    /// The id that all events of the page are below.
    fn id(self) -> i64 {
        self.0
    }
}

impl fmt::Display for EventCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&URL_SAFE_NO_PAD.encode(self.0.to_be_bytes()))
    }
}

impl FromStr for EventCursor {
    type Err = ParseEventCursorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 8];
        match URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) {
            Ok(8) => Ok(Self(i64::from_be_bytes(bytes))),
            _ => Err(ParseEventCursorError),
        }
    }
}

/// The text is not one that [`EventCursor`] writes.
#[derive(Debug, thiserror::Error)]
#[error("11 characters of base64url")]
pub struct ParseEventCursorError;

#[cfg(test)]
mod both_stores;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back() {
        for id in [0, 1, 255, 1 << 40, i64::MAX] {
            let text = EventCursor::behind(id).to_string();
            assert_eq!(text.len(), 11);
            assert_eq!(text.parse::<EventCursor>().unwrap().id(), id);
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        for bad in [
            "",
            "1",
            "AAAAAAAAAA",
            "AAAAAAAAAAAA",
            "AAAAAAAAAA=",
            "AAAAAAAAAAB",
            "AAAAAAAAAA+",
            "AAAAAAAAAAé",
            &"A".repeat(9999),
        ] {
            assert!(bad.parse::<EventCursor>().is_err(), "{bad}");
        }
    }
}
