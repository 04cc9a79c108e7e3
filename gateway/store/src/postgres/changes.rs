//! The change feed of Postgres: a writer records changes in the statement that makes them, and notifies listeners.
//!
//! Each process listens on a separate connection (`LISTEN`). If that is not available, it polls the recorded changes.
//! This concerns engines with Postgres' protocol but without `LISTEN`, and poolers that do not keep a session. Which
//! one works is tested at each connect. If no connection can be opened for listening, the process polls with pooled
//! connections.
//!
//! Listening and polling processes may share a database, for example if only one of two roles may call `pg_notify`. So
//! a process that cannot notify marks its records, and listening processes also poll the marked records.

mod clock;
mod listen;
mod poll;
mod recorded;
mod sweep;
mod watcher;

use tokio_postgres::{Client, error::SqlState};

use self::recorded::NOT_NOTIFIED_ID;
pub(crate) use self::watcher::watch;
#[cfg(test)]
pub(super) use self::{
    clock::{Clock, compare},
    sweep::sweep,
};
use crate::{StoreError, Topic, postgres::PostgresDatabase};

/// The notification channel.
const CHANNEL: &str = "signpost_changes";

/// Extends a statement so that it records and notifies the rows that it changes.
///
/// `write` is an `INSERT`, `UPDATE` or `DELETE` that returns the key of the changed thing as bytes: `RETURNING … AS
/// key`. The extended statement returns as many rows. It is a single one, so that write and notification are atomic.
///
/// `and` are further statements that read `changed`, each as `, NAME AS (…)`.
#[must_use]
pub fn with_notification(
    database: &PostgresDatabase,
    topic: Topic,
    write: &str,
    and: &str,
) -> String {
    let (record, notify) = recording(database, topic, "encode(key, 'hex')");
    format!(
        "WITH changed AS ({write}), recorded AS ({record}, key FROM changed){and} SELECT {notify} FROM changed"
    )
}

/// As [`with_notification`], for a statement that changes many things of a topic.
///
/// It notifies once, with an empty key: any of them may have changed. `write` need only return its rows; the extended
/// statement returns their number.
#[must_use]
pub fn with_bulk_notification(
    database: &PostgresDatabase,
    topic: Topic,
    write: &str,
    and: &str,
) -> String {
    let (record, notify) = recording(database, topic, "''");
    format!(
        "WITH changed AS ({write}), \
         recorded AS ({record}, ''::bytea WHERE EXISTS (SELECT 1 FROM changed)){and} \
         SELECT count, {notify} FROM (SELECT count(*) AS count FROM changed) AS counted WHERE count > 0"
    )
}

/// As [`with_notification`], for a statement that changes many things of a topic of which an entry can have several keys.
///
/// The extended statement returns a row for each entry: the number of its keys.
#[must_use]
pub fn with_joint_notification(
    database: &PostgresDatabase,
    topic: Topic,
    write: &str,
    and: &str,
) -> String {
    let (record, notify) = recording(database, topic, "encode(key, 'hex')");
    let keys = topic.keys_in_entry();
    format!(
        "WITH changed AS ({write}), \
         numbered AS (SELECT key, row_number() OVER () - 1 AS number FROM changed), \
         entries AS (SELECT string_agg(key, ''::bytea) AS key, count(*) AS count FROM numbered GROUP BY number / {keys}), \
         recorded AS ({record}, key FROM entries){and} \
         SELECT count, {notify} FROM entries"
    )
}

/// The beginning of a statement that records a change, to which the key is added, and the call that notifies of it.
fn recording(database: &PostgresDatabase, topic: Topic, hex_key: &str) -> (String, String) {
    let topic = topic.as_str();
    if database.can_notify() {
        (
            format!("INSERT INTO changes (topic, key) SELECT '{topic}'"),
            format!("pg_notify('{CHANNEL}', '{topic}:' || {hex_key})"),
        )
    } else {
        let record = "INSERT INTO changes (id, topic, key) SELECT";
        (
            format!("{record} {NOT_NOTIFIED_ID}, '{topic}'"),
            "1".to_owned(),
        )
    }
}

/// Whether `pg_notify` exists and the role may call it.
pub(super) async fn can_notify(client: &Client) -> Result<bool, StoreError> {
    let tried = client
        .execute("SELECT pg_notify($1, '')", &[&CHANNEL])
        .await;
    match tried {
        Ok(_) => Ok(true),
        Err(error) if is_unavailable(error.code()) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether the server does not have a function, or does not permit it.
pub(super) fn is_unavailable(state: Option<&SqlState>) -> bool {
    let states = [
        SqlState::UNDEFINED_FUNCTION,
        SqlState::INSUFFICIENT_PRIVILEGE,
        SqlState::FEATURE_NOT_SUPPORTED,
    ];
    state.is_some_and(|state| states.contains(state))
}
