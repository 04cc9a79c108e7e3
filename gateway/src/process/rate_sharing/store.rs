//! The table `rate_limits`, in both databases. Times are the database's, so that gateways' clocks do not matter.

use std::{collections::HashMap, time::Duration};

use signpost_store::{Batch, FromRow, Row, Store, StoreError, values};

/// Length of a key's hash: SHA-256.
pub(super) const HASH_BYTES: usize = 32;

/// Limit of the rows that are deleted at once: more than ten reports of one gateway add.
const MAX_DELETED: usize = 50_000;

/// The current time in microseconds, the same throughout a statement. SQLite's is precise to the millisecond.
const NOW: [&str; 2] = [
    "CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000",
    "(extract(epoch FROM now()) * 1000000)::bigint",
];

/// What a key has used, to add to its row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Added {
    /// The key's hash.
    pub hash: [u8; HASH_BYTES],
    /// The time in which the used tokens are refilled.
    pub refill: Duration,
}

/// By key, the time until all of its tokens are refilled.
pub(super) type RefillTimes = HashMap<[u8; HASH_BYTES], Duration>;

/// Adds what keys have used, in one transaction, and returns their times then.
///
/// # Errors
///
/// The store is unavailable.
pub(super) async fn add_used(
    store: &Store,
    mut added: Vec<Added>,
) -> Result<RefillTimes, StoreError> {
    // Two gateways that lock rows in the same order do not wait for each other in a circle.
    added.sort_unstable_by_key(|used| used.hash);
    let (now, greatest) = (now(store), store.dialect("max", "greatest"));
    let sql = format!(
        "INSERT INTO rate_limits (key, full_at) SELECT key, {now} + refill FROM {{given}} ORDER BY key \
         ON CONFLICT (key) DO UPDATE \
         SET full_at = {greatest}(rate_limits.full_at, {now}) + excluded.full_at - {now} \
         RETURNING key, full_at - {now} AS refill"
    );
    let rows = added
        .iter()
        .map(|used| values![&used.hash, micros(used.refill)]);
    let batch = Batch {
        sql,
        columns: "key bytea, refill bigint",
        rows: rows.collect(),
    };
    let times = store.write_batch(batch).await?;
    Ok(times
        .into_iter()
        .map(|KeyRefill(hash, refill)| (hash, refill))
        .collect())
}

/// Deletes the rows of keys whose tokens are refilled.
///
/// # Errors
///
/// The store is unavailable.
pub(super) async fn delete_refilled(store: &Store) -> Result<(), StoreError> {
    let old = format!("full_at < {} ORDER BY full_at", now(store));
    let deleted = store.delete_some(("rate_limits", "key"), (&old, Vec::new()), MAX_DELETED);
    deleted.await.map(drop)
}

fn now(store: &Store) -> &'static str {
    store.dialect(NOW[0], NOW[1])
}

struct KeyRefill([u8; HASH_BYTES], Duration);

impl FromRow for KeyRefill {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let refill: i64 = row.get("refill")?;
        let refill = Duration::from_micros(refill.try_into().unwrap_or(0));
        Ok(Self(row.get("key")?, refill))
    }
}

/// Whole microseconds, rounded up: a used token is never lost.
fn micros(refill: Duration) -> i64 {
    // A quarter: the statement adds the value to the time now, and to what the row has, which must fit into `bigint`.
    i64::try_from(refill.as_nanos().div_ceil(1000)).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod both_stores {
    use signpost_store::testing::TestStore;

    use super::*;

    fn added(number: u8, milliseconds: u64) -> Added {
        Added {
            hash: [number; HASH_BYTES],
            refill: Duration::from_millis(milliseconds),
        }
    }

    async fn rows(store: &Store) -> usize {
        let rows: Vec<()> = store
            .rows("SELECT 1 FROM rate_limits", Vec::new())
            .await
            .unwrap();
        rows.len()
    }

    #[tokio::test]
    async fn what_is_used_adds_up_and_is_refilled_by_time() {
        let test = TestStore::chosen();
        let store = test.open().await;
        let many = vec![added(2, 60_000), added(1, 90_000)];
        let times = add_used(&store, many).await.unwrap();
        assert_eq!(times.len(), 2);
        assert_eq!(times[&[1; HASH_BYTES]], Duration::from_secs(90));
        let times = add_used(&store, vec![added(1, 5_000)]).await.unwrap();
        let refill = times[&[1; HASH_BYTES]];
        assert!(
            refill <= Duration::from_secs(95) && refill > Duration::from_secs(80),
            "{refill:?}"
        );
        // Time after the refill is not subtracted from the next use.
        add_used(&store, vec![added(3, 0)]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        let times = add_used(&store, vec![added(3, 7_000)]).await.unwrap();
        assert_eq!(times[&[3; HASH_BYTES]], Duration::from_secs(7));
    }

    #[tokio::test]
    async fn only_refilled_rows_are_deleted() {
        let test = TestStore::chosen();
        let store = test.open().await;
        add_used(&store, vec![added(1, 0), added(2, 0), added(3, 60_000)])
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        delete_refilled(&store).await.unwrap();
        assert_eq!(rows(&store).await, 1);
    }

    #[tokio::test]
    async fn an_unavailable_store_is_an_error() {
        let test = TestStore::chosen();
        let store = test.open().await;
        test.make_unavailable();
        assert!(add_used(&store, vec![added(1, 1)]).await.is_err());
        test.make_available();
    }
}
