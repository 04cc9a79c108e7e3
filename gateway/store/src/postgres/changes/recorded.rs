//! Recorded changes that were not seen before.

use std::collections::HashSet;

use tokio_postgres::Row;

use crate::{Change, StoreError, Topic};

/// All that is recorded, and so late that it may be news. The window is longer than any process' longest statement, and
/// a second or two: so much earlier than now may a change have been made that is only seen now.
pub(super) const ALL: &str = "SELECT id, topic, key FROM changes \
    WHERE changed_at > now() - interval '70 seconds' ORDER BY id";
/// The part of it that nobody was notified of, by the primary key: of no cost where everybody notifies.
pub(super) const NOT_NOTIFIED: &str = "SELECT id, topic, key FROM changes \
    WHERE id < 0 AND changed_at > now() - interval '70 seconds' ORDER BY id";
/// The number of a record that nobody is notified of: below zero, where no sequence comes, and random, since no sequence
/// counts there. 62 bits: of a million records two would be the same in one of a million installations.
pub(super) const NOT_NOTIFIED_ID: &str = "-1 - CAST(floor(random() * 2147483648) AS BIGINT) * 2147483648 \
    - CAST(floor(random() * 2147483648) AS BIGINT)";

/// Numbers are given when a change is made, and it is seen when it is committed, so a higher number may be seen before
/// a lower one. That is why whatever is younger than a window is looked at each time, and what was seen is remembered.
#[derive(Default)]
pub(super) struct Seen(HashSet<i64>);

impl Seen {
    /// The changes among these rows, all that are in the window, which were not among the last ones.
    pub(super) fn news(&mut self, rows: &[Row]) -> Result<Vec<Change>, StoreError> {
        let mut news = Vec::new();
        let mut still_there = HashSet::with_capacity(rows.len());
        for row in rows {
            let id = row.try_get("id")?;
            if !self.0.contains(&id) {
                news.push(change(row)?);
            }
            still_there.insert(id);
        }
        self.0 = still_there;
        Ok(news)
    }
}

fn change(row: &Row) -> Result<Change, StoreError> {
    let topic: &str = row.try_get("topic")?;
    Ok(match Topic::named(topic) {
        Some(topic) => Change::Item {
            topic,
            key: row.try_get("key")?,
        },
        // A newer release's.
        None => Change::Everything,
    })
}
