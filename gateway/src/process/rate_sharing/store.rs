//! The table `rate_limits`, in both databases. Times are the database's, so that gateways' clocks do not matter.

use std::{collections::HashMap, time::Duration};

use rusqlite::{Connection, params};
use signpost_store::{Store, StoreError, StoredRow};

/// Length of a key's hash: SHA-256.
pub(super) const HASH_BYTES: usize = 32;

/// Limit of the rows that are deleted at once: more than ten reports of one gateway add.
const MAX_DELETED: i64 = 50_000;

/// The current time in microseconds, in Postgres: the same throughout a statement.
const NOW: &str = "(extract(epoch FROM now()) * 1000000)::bigint";

/// A debt to add to a key's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Added {
    /// The key's hash.
    pub hash: [u8; HASH_BYTES],
    /// What it has used.
    pub cost: Duration,
}

/// Debts by key.
pub(super) type StoredDebts = HashMap<[u8; HASH_BYTES], Duration>;

/// Adds all debts, in one transaction, and returns what these keys owe then.
///
/// # Errors
///
/// The store is unavailable.
pub(super) async fn add_debts(
    store: &Store,
    mut added: Vec<Added>,
) -> Result<StoredDebts, StoreError> {
    // Two gateways that lock rows in the same order do not wait for each other in a circle.
    added.sort_unstable_by_key(|one| one.hash);
    match store {
        Store::Sqlite(database) => {
            database
                .write(move |transaction| add_in_sqlite(transaction, &added))
                .await
        }
        Store::Postgres(database) => {
            let hashes: Vec<_> = added.iter().map(|one| &one.hash[..]).collect();
            let costs: Vec<_> = added.iter().map(|one| micros(one.cost)).collect();
            let sql = format!(
                "INSERT INTO rate_limits (key, full_at) \
                 SELECT key, {NOW} + cost FROM unnest($1::bytea[], $2::bigint[]) AS used (key, cost) ORDER BY key \
                 ON CONFLICT (key) DO UPDATE \
                 SET full_at = greatest(rate_limits.full_at, {NOW}) + excluded.full_at - {NOW} \
                 RETURNING key, full_at - {NOW} AS debt"
            );
            let session = database.session().await?;
            let rows = session.query(&sql, &[&hashes, &costs]).await?;
            rows.iter().map(debt_from_row).collect()
        }
    }
}

/// Deletes debts that are paid.
///
/// # Errors
///
/// The store is unavailable.
pub(super) async fn delete_paid(store: &Store) -> Result<(), StoreError> {
    match store {
        Store::Sqlite(database) => {
            let deleted = database.write(|transaction| {
                let now = sqlite_now(transaction)?;
                transaction
                    .prepare_cached(
                        "DELETE FROM rate_limits WHERE key IN \
                         (SELECT key FROM rate_limits WHERE full_at < ?1 ORDER BY full_at LIMIT ?2)",
                    )?
                    .execute(params![now, MAX_DELETED])
            });
            deleted.await.map(drop)
        }
        Store::Postgres(database) => {
            // The limit is a literal, so that the plan can use the index. A row that another gateway writes now is
            // skipped: waiting for it could become a deadlock.
            let sql = format!(
                "DELETE FROM rate_limits WHERE key IN (SELECT key FROM rate_limits WHERE full_at < {NOW} \
                 ORDER BY full_at LIMIT {MAX_DELETED} FOR UPDATE SKIP LOCKED)"
            );
            let session = database.session().await?;
            session.execute(&sql, &[]).await.map(drop)
        }
    }
}

fn add_in_sqlite(connection: &Connection, added: &[Added]) -> rusqlite::Result<StoredDebts> {
    let now = sqlite_now(connection)?;
    let mut add = connection.prepare_cached(
        "INSERT INTO rate_limits (key, full_at) VALUES (?1, ?2 + ?3) \
         ON CONFLICT (key) DO UPDATE SET full_at = max(full_at, ?2) + ?3 RETURNING key, full_at - ?2 AS debt",
    )?;
    let mut debts = StoredDebts::new();
    for Added { hash, cost } in added {
        let values = params![&hash[..], now, micros(*cost)];
        let (hash, debt) = add.query_row(values, |row| debt_from_row(row))?;
        debts.insert(hash, debt);
    }
    Ok(debts)
}

/// The current time in microseconds, to the millisecond. Read inside a transaction, after its waits.
fn sqlite_now(connection: &Connection) -> rusqlite::Result<i64> {
    let query = "SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000";
    connection.query_row(query, [], |row| row.get(0))
}

fn debt_from_row<R: StoredRow>(row: &R) -> Result<([u8; HASH_BYTES], Duration), R::Error> {
    let debt = u64::try_from(row.number("debt")?).unwrap_or(0);
    Ok((row.array("key")?, Duration::from_micros(debt)))
}

/// Whole microseconds, rounded up: a cost is never lost.
fn micros(cost: Duration) -> i64 {
    i64::try_from(cost.as_nanos().div_ceil(1000)).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use signpost_store::testing::TestStore;

    use super::*;

    fn added(number: u8, milliseconds: u64) -> Added {
        Added {
            hash: [number; HASH_BYTES],
            cost: Duration::from_millis(milliseconds),
        }
    }

    async fn rows(store: &Store) -> i64 {
        let query = "SELECT count(*) AS count FROM rate_limits";
        match store {
            Store::Sqlite(database) => {
                let count = database.call(move |all| all.query_row(query, [], |row| row.get(0)));
                count.await.unwrap()
            }
            Store::Postgres(database) => {
                let session = database.session().await.unwrap();
                let row = session.query_one(query, &[]).await.unwrap();
                row.number("count").unwrap()
            }
        }
    }

    #[tokio::test]
    async fn debts_add_up_and_are_paid_by_time() {
        let test = TestStore::chosen();
        let store = test.open().await;
        let many = vec![added(2, 60_000), added(1, 90_000)];
        let debts = add_debts(&store, many).await.unwrap();
        assert_eq!(debts.len(), 2);
        assert_eq!(debts[&[1; HASH_BYTES]], Duration::from_secs(90));
        let debts = add_debts(&store, vec![added(1, 5_000)]).await.unwrap();
        let debt = debts[&[1; HASH_BYTES]];
        assert!(
            debt <= Duration::from_secs(95) && debt > Duration::from_secs(80),
            "{debt:?}"
        );
        // A debt that is paid is not subtracted from the next one.
        add_debts(&store, vec![added(3, 0)]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        let debts = add_debts(&store, vec![added(3, 7_000)]).await.unwrap();
        assert_eq!(debts[&[3; HASH_BYTES]], Duration::from_secs(7));
    }

    #[tokio::test]
    async fn only_paid_debts_are_deleted() {
        let test = TestStore::chosen();
        let store = test.open().await;
        add_debts(&store, vec![added(1, 0), added(2, 0), added(3, 60_000)])
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        delete_paid(&store).await.unwrap();
        assert_eq!(rows(&store).await, 1);
    }

    #[tokio::test]
    async fn an_unavailable_store_is_an_error() {
        let test = TestStore::chosen();
        let store = test.open().await;
        test.make_unavailable();
        assert!(add_debts(&store, vec![added(1, 1)]).await.is_err());
        test.make_available();
    }
}
