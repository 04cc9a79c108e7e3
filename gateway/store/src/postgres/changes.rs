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
mod feed;
mod recorded;
mod watcher;

use tokio_postgres::Client;

use self::recorded::NOT_NOTIFIED_ID;
pub(crate) use self::watcher::watch;
#[cfg(test)]
pub(super) use self::{
    clock::{Clock, compare},
    recorded::sweep,
};
use crate::{
    StoreError, Topic,
    postgres::{PostgresDatabase, connect::is_unavailable},
};

/// The channel of `LISTEN` and `NOTIFY`.
const CHANNEL: &str = "signpost_changes";

/// Extends a statement so that it records and notifies the rows that it changes.
///
/// `write` is an `INSERT`, `UPDATE` or `DELETE` that returns the key of the changed thing as bytes: `RETURNING … AS
/// key`. The extended statement is a single one, so that write and notification are atomic. It returns a row for each entry
/// of the feed, with the number of its keys.
///
/// `and` are further statements that read `changed`, each as `, NAME AS (…)`.
pub(crate) fn with_notification(
    database: &PostgresDatabase,
    topic: Topic,
    write: &str,
    and: &str,
) -> String {
    match topic.keys_in_entry() {
        1 => with_entries(
            database,
            topic,
            write,
            "SELECT key, 1::bigint AS count FROM changed",
            and,
        ),
        keys => {
            let entries = format!(
                "SELECT string_agg(key, ''::bytea) AS key, count(*) AS count \
                 FROM (SELECT key, row_number() OVER () - 1 AS number FROM changed) AS numbered GROUP BY number / {keys}"
            );
            with_entries(database, topic, write, &entries, and)
        }
    }
}

/// As [`with_notification`], for a statement that changes many things of a topic: one entry with an empty key, any of them
/// may have changed. `write` need only return its rows.
pub(crate) fn with_bulk_notification(
    database: &PostgresDatabase,
    topic: Topic,
    write: &str,
    and: &str,
) -> String {
    let entries = "SELECT ''::bytea AS key, count(*) AS count FROM changed HAVING count(*) > 0";
    with_entries(database, topic, write, entries, and)
}

/// `entries` selects the keys of the entries, and how many rows of `changed` each stands for.
fn with_entries(
    database: &PostgresDatabase,
    topic: Topic,
    write: &str,
    entries: &str,
    and: &str,
) -> String {
    let topic = topic.as_str();
    let (record, notify) = if database.can_notify() {
        (
            format!("INSERT INTO changes (topic, key) SELECT '{topic}'"),
            format!("pg_notify('{CHANNEL}', '{topic}:' || encode(key, 'hex'))"),
        )
    } else {
        // Listening processes poll the marked records.
        (
            format!("INSERT INTO changes (id, topic, key) SELECT {NOT_NOTIFIED_ID}, '{topic}'"),
            "1".to_owned(),
        )
    };
    // Postgres executes a `WITH` that writes even if nothing reads it: `recorded` needs no reference. It sends
    // notifications with the commit, so that no process reads an old value after it was notified.
    format!(
        "WITH changed AS ({write}), entries AS ({entries}), recorded AS ({record}, key FROM entries){and} \
         SELECT count, {notify} FROM entries"
    )
}

/// Whether `pg_notify` exists and the role may call it.
pub(super) async fn can_notify(client: &Client) -> Result<bool, StoreError> {
    let tried = client
        // Listeners ignore an empty payload. Not prepared: a pooler may not keep what is.
        .query_typed(&format!("SELECT pg_notify('{CHANNEL}', '')"), &[])
        .await;
    match tried {
        Ok(_) => Ok(true),
        Err(error) if is_unavailable(error.code()) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
