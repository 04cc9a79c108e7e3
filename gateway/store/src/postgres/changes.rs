//! Changes in Postgres: a writer records them in the statement that makes them, and tells whoever listens.
//!
//! Each process listens on a connection of its own (`LISTEN`). Where that is not to be had, on engines that speak
//! Postgres' protocol without it or behind a pooler that does not keep a session, it reads the recorded changes
//! again and again instead; which of both is found out by trying, at each connect. Also where there is no connection to
//! spare for listening: then they are read by those of the pool.
//!
//! Processes of both kinds may share a database, for example if only one of two roles may call `pg_notify`. A process
//! that cannot notify therefore marks what it records, and those that listen read such records besides.

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

/// What is listened on.
const CHANNEL: &str = "signpost_changes";

/// Makes a statement tell of the rows that it changes: `write` is an `INSERT`, `UPDATE` or `DELETE` that gives back
/// the changed thing's key `RETURNING … AS key`, as bytes. The whole gives back as many rows.
///
/// One statement, so that a change is never made without being told, nor told without being made.
#[must_use]
pub fn with_notification(database: &PostgresDatabase, topic: Topic, write: &str) -> String {
    let topic = topic.as_str();
    if database.notifies() {
        return format!(
            "WITH changed AS ({write}), \
             recorded AS (INSERT INTO changes (topic, key) SELECT '{topic}', key FROM changed) \
             SELECT pg_notify('{CHANNEL}', '{topic}:' || encode(key, 'hex')) FROM changed"
        );
    }
    format!(
        "WITH changed AS ({write}), \
         recorded AS (INSERT INTO changes (id, topic, key) \
         SELECT {NOT_NOTIFIED_ID}, '{topic}', key FROM changed) \
         SELECT 1 FROM changed"
    )
}

/// As [`with_notification`], for a statement that changes many things of a topic: it tells once, with an empty key, that any of
/// them may have changed. Its rows need only be given back; the whole gives back how many there were.
#[must_use]
pub fn with_bulk_notification(database: &PostgresDatabase, topic: Topic, write: &str) -> String {
    let topic = topic.as_str();
    let (columns, id, tell) = if database.notifies() {
        let tell = format!("pg_notify('{CHANNEL}', '{topic}:')");
        ("topic, key", String::new(), tell)
    } else {
        let id = format!("{NOT_NOTIFIED_ID}, ");
        ("id, topic, key", id, "1".to_owned())
    };
    format!(
        "WITH changed AS ({write}), \
         recorded AS (INSERT INTO changes ({columns}) \
             SELECT {id}'{topic}', ''::bytea WHERE EXISTS (SELECT 1 FROM changed)) \
         SELECT count, {tell} FROM (SELECT count(*) AS count FROM changed) AS counted WHERE count > 0"
    )
}

/// Whether there is a `pg_notify` that we may call.
pub(super) async fn can_notify(client: &Client) -> Result<bool, StoreError> {
    let tried = client
        .execute("SELECT pg_notify($1, '')", &[&CHANNEL])
        .await;
    match tried {
        Ok(_) => Ok(true),
        Err(error) if is_unavailable(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether the server says that it does not have what was asked for, or not for us.
pub(super) fn is_unavailable(error: &tokio_postgres::Error) -> bool {
    let says = [
        SqlState::UNDEFINED_FUNCTION,
        SqlState::INSUFFICIENT_PRIVILEGE,
        SqlState::FEATURE_NOT_SUPPORTED,
    ];
    error.code().is_some_and(|code| says.contains(code))
}
