//! The tables `shadow_tallies` and `shadow_starts`, in both databases. Each gateway has rows of its own, which it replaces; a reader adds them up.

use std::collections::BTreeMap;

use signpost_bridge::Tally;
use signpost_kit::clock::Timestamp;
use signpost_store::{FromRow, Row, Store, StoreError, values};

use super::copied::Entry;

/// Length of a writer's id: random, so that no two processes have the same.
pub(super) const ID_BYTES: usize = 16;

/// Days for which tallies are kept.
pub const KEEP_DAYS: u16 = 30;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Limit of the rows that are deleted at once.
pub const MAX_DELETED: usize = 1_000;

/// Rows that a report reads at once.
const PAGE: usize = 200;

const WRITE: &str = "INSERT INTO shadow_tallies (writer, hour, version, target, route, changes, tally) \
    VALUES ($1, $2, $3, $4, $5, $6, $7) \
    ON CONFLICT (writer, hour, version, target, route, changes) DO UPDATE SET tally = excluded.tally";

/// Writes the tally of an hour and an entry.
///
/// # Errors
///
/// The store is unavailable; the same holds for the other functions.
pub(super) async fn write(
    store: &Store,
    writer: &[u8; ID_BYTES],
    (hour, entry): (i64, &Entry),
    tally: &str,
) -> Result<(), StoreError> {
    let row = values![
        writer,
        hour,
        entry.version.as_str(),
        entry.to.as_str(),
        entry.route.as_str(),
        entry.changes.as_str(),
        tally
    ];
    store.execute(WRITE, row).await.map(drop)
}

/// A row: its key among the rows of a route, and its tally.
struct StoredTally {
    hour: i64,
    writer: [u8; ID_BYTES],
    tally: Tally,
}

impl FromRow for StoredTally {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let tally = serde_json::from_str(&row.get::<String>("tally")?);
        Ok(Self {
            hour: row.get("hour")?,
            writer: row.get("writer")?,
            tally: tally.map_err(|_| StoreError::Malformed("tally"))?,
        })
    }
}

/// Adds up the tallies of two versions whose hour begins at `since` or later, of pairs with the changes of this digest; by
/// route. Reads them in pages, so that memory holds few at a time.
pub async fn read(
    store: &Store,
    (version, to, changes): (&str, &str, &str),
    since: i64,
) -> Result<BTreeMap<String, Tally>, StoreError> {
    let of = "version = $1 AND target = $2 AND changes = $3 AND hour >= $4";
    let names = format!("SELECT DISTINCT route FROM shadow_tallies WHERE {of}");
    let names = store.rows::<(String,)>(&names, values![version, to, changes, since]);
    let page = format!(
        "SELECT hour, writer, tally FROM shadow_tallies WHERE {of} AND route = $5 AND (hour, writer) > ($6, $7) \
         ORDER BY hour, writer LIMIT {PAGE}"
    );
    let mut routes: BTreeMap<String, Tally> = BTreeMap::new();
    for (route,) in names.await? {
        // Pages by key, not by OFFSET: a row that is written meanwhile shifts none.
        let mut after = (since - 1, [0; ID_BYTES]);
        loop {
            let (hour, writer) = after;
            let values = values![version, to, changes, since, route.as_str(), hour, &writer];
            let rows: Vec<StoredTally> = store.rows(&page, values).await?;
            let is_last = rows.len() < PAGE;
            for row in rows {
                after = (row.hour, row.writer);
                routes.entry(route.clone()).or_default().merge(row.tally);
            }
            if is_last {
                break;
            }
        }
    }
    Ok(routes)
}

/// Since when the pairs of versions count, if they began anew.
pub(super) async fn read_starts(store: &Store) -> Result<BTreeMap<String, i64>, StoreError> {
    let starts = "SELECT version, began_at FROM shadow_starts";
    let starts = store.rows::<(String, i64)>(starts, Vec::new()).await?;
    Ok(starts.into_iter().collect())
}

/// Since when the pairs of a version count, in ms; 0 if they never began anew.
///
/// # Errors
///
/// The store is unavailable.
pub async fn read_start(store: &Store, version: &str) -> Result<i64, StoreError> {
    let start = read_starts(store).await?.remove(version);
    Ok(start.unwrap_or_default())
}

/// Has the pairs of a version count from now on only. Each gateway learns it with its next write.
///
/// # Errors
///
/// The store is unavailable.
pub async fn restart(store: &Store, version: &str, now: Timestamp) -> Result<(), StoreError> {
    let sql = "INSERT INTO shadow_starts (version, began_at) VALUES ($1, $2) \
               ON CONFLICT (version) DO UPDATE SET began_at = excluded.began_at";
    store.execute(sql, values![version, now]).await.map(drop)
}

/// Deletes what is older than [`KEEP_DAYS`]. Returns the number of rows.
pub async fn delete_old(store: &Store, now: Timestamp) -> Result<usize, StoreError> {
    let first = now.as_millis() - i64::from(KEEP_DAYS) * DAY_MS;
    let key = "writer, hour, version, target, route, changes";
    let old = ("hour < $1", values![first]);
    store
        .delete_some(("shadow_tallies", key), old, MAX_DELETED)
        .await
}
