//! The recorded changes: finding those that were not seen before, and removing old ones, which every process has seen.

use std::collections::HashSet;

use tokio_postgres::Row;

use crate::{Change, StoreError, Topic, postgres::PostgresDatabase};

/// All recent records. A change may be committed, and so become visible, later than its `changed_at`. So the window is
/// longer than the longest configurable statement, by a second or two.
pub(super) const ALL: &str = "SELECT id, topic, key FROM changes \
    WHERE changed_at > now() - interval '70 seconds' ORDER BY id";
/// The recent records without notification, by the primary key: costs nothing if all processes can notify.
pub(super) const NOT_NOTIFIED: &str = "SELECT id, topic, key FROM changes \
    WHERE id < 0 AND changed_at > now() - interval '70 seconds' ORDER BY id";
/// Id of a record without notification: negative, since the sequence has only positive ids, and random, since no
/// sequence counts there. 62 bits: a million records collide in one of a million installations.
pub(super) const NOT_NOTIFIED_ID: &str = "-1 - CAST(floor(random() * 2147483648) AS BIGINT) * 2147483648 \
    - CAST(floor(random() * 2147483648) AS BIGINT)";
/// Removes a batch, small enough for a short statement. Always the oldest records, by the index: concurrent sweeps lock
/// rows in the same order, so they cannot deadlock.
const SWEEP: &str = "DELETE FROM changes WHERE id IN (SELECT id FROM changes \
    WHERE changed_at < now() - interval '10 minutes' ORDER BY changed_at LIMIT 500)";
const BATCH: u64 = 500;
/// Limit on batches per sweep: enough for more than a thousand changes a second.
const MAX_BATCHES: usize = 200;

/// Ids of the records that were seen in the window.
///
/// An id is assigned when a change is made, but visible when it is committed, so a higher id may appear before a lower
/// one. That is why each poll reads the whole window and filters out the ids of the last one.
#[derive(Default)]
pub(super) struct Seen(HashSet<i64>);

impl Seen {
    /// Returns the changes that the last call did not have. `rows` are all records in the window.
    pub(super) fn new_changes(&mut self, rows: &[Row]) -> Result<Vec<Change>, StoreError> {
        let mut changes = Vec::new();
        let mut seen = HashSet::with_capacity(rows.len());
        for row in rows {
            let id = row.try_get("id")?;
            if !self.0.contains(&id) {
                changes.push(change(row)?);
            }
            seen.insert(id);
        }
        // Replaced: ids that have left the window are dropped, so that the set stays small.
        self.0 = seen;
        Ok(changes)
    }
}

fn change(row: &Row) -> Result<Change, StoreError> {
    let topic: &str = row.try_get("topic")?;
    Ok(match Topic::from_word(topic) {
        Some(topic) => Change::Item {
            topic,
            key: row.try_get("key")?,
        },
        // From a newer release.
        None => Change::Everything,
    })
}

pub(super) async fn sweep_and_log(database: PostgresDatabase) {
    if let Err(error) = sweep(&database).await {
        // Only debug: the next sweep, or another process, removes them.
        tracing::debug!(cause = %error.in_short(), "cannot remove old records of changes");
    }
}

/// Removes all old records, up to the limit.
pub(in crate::postgres) async fn sweep(database: &PostgresDatabase) -> Result<(), StoreError> {
    for _ in 0..MAX_BATCHES {
        let session = database.session().await?;
        if session.execute(SWEEP, &[]).await? < BATCH {
            break;
        }
    }
    Ok(())
}
