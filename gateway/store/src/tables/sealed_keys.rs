//! The sealed keys of applications, to seal them under another master key. A sealed key begins with the id of its master
//! key. All functions fail if the store is unavailable.

use crate::{Batch, Changed, Store, StoreError, Timestamp, audit::Audit, from_row, values};

/// Length of a master key's id.
pub const SEAL_ID_BYTES: usize = 8;

/// The sealed keys of an application.
#[derive(Clone)]
pub struct SealedKeys {
    /// Primary key of the application.
    pub id: i64,
    /// Ident of the application. The seal is bound to it.
    pub ident: String,
    /// The sealed signing key.
    pub key: Vec<u8>,
    /// The key before the last rotation.
    pub previous_key: Option<Vec<u8>>,
    /// The end of the previous key's validity.
    pub previous_until: Option<Timestamp>,
}

from_row!(SealedKeys {
    id,
    ident,
    key,
    previous_key,
    previous_until
});

const SELECT: &str = "SELECT id, ident, key_sealed AS key, previous_sealed AS previous_key, previous_until \
                      FROM applications";

/// Whether another master key than `$1` has sealed a key of the row.
fn by_another() -> String {
    let is_by_another = |key| format!("substr({key}, 1, {SEAL_ID_BYTES}) <> $1");
    let (key, previous) = ("key_sealed", "previous_sealed");
    format!("({} OR {})", is_by_another(key), is_by_another(previous))
}

/// The keys of the oldest and of the newest application, with which the master keys are checked: a rotation of the master
/// key ends with the oldest one.
pub async fn samples(store: &Store) -> Result<Vec<Vec<u8>>, StoreError> {
    let ends = "(SELECT min(id) FROM applications), (SELECT max(id) FROM applications)";
    let query = format!("SELECT key_sealed FROM applications WHERE id IN ({ends})");
    let samples: Vec<(Vec<u8>,)> = store.rows(&query, Vec::new()).await?;
    Ok(samples.into_iter().map(|(key,)| key).collect())
}

/// The number of applications with a key that another master key than this one has sealed.
pub async fn count_by_another(
    store: &Store,
    master_key: [u8; SEAL_ID_BYTES],
) -> Result<u64, StoreError> {
    let query = format!("SELECT count(*) FROM applications WHERE {}", by_another());
    let count = store.row(&query, values![&master_key]).await?;
    Ok(count.map_or(0, |(count,)| count))
}

/// Up to `limit` applications with a key that another master key than this one has sealed, and whose internal ids are
/// less than `before`, newest first.
pub async fn page_by_another(
    store: &Store,
    master_key: [u8; SEAL_ID_BYTES],
    before: i64,
    limit: usize,
) -> Result<Vec<SealedKeys>, StoreError> {
    let condition = by_another();
    let query = format!("{SELECT} WHERE {condition} AND id < $2 ORDER BY id DESC LIMIT {limit}");
    store.rows(&query, values![&master_key, before]).await
}

/// The same keys of an application, sealed anew.
#[derive(Clone)]
pub struct ResealedKeys {
    /// The keys as they were read: the update applies only if they are unchanged.
    pub before: SealedKeys,
    /// The signing key, sealed with the new master key.
    pub key: Vec<u8>,
    /// The key before the last rotation.
    pub previous_key: Option<Vec<u8>>,
}

/// Replaces the keys of those applications that still have what was read, in one statement, and returns their number. The
/// change feed has nothing of it: the opened keys, which are cached, stay the same. `audit` is what the audit says of it,
/// unless that has it already.
pub async fn replace(
    store: &Store,
    resealed: Vec<ResealedKeys>,
    audit: Option<Audit>,
) -> Result<usize, StoreError> {
    let given = store.given_for_update("applications", "id", "app_id");
    // `=` is never true for NULL, and most applications have no previous key.
    let sql = format!(
        "UPDATE applications SET key_sealed = new_key, previous_sealed = new_previous FROM {given} \
         WHERE applications.id = app_id AND key_sealed = old_key AND previous_sealed IS NOT DISTINCT FROM \
         old_previous AND previous_until IS NOT DISTINCT FROM old_until"
    );
    let row = |new: ResealedKeys| {
        let old = new.before;
        values![
            old.id,
            old.key,
            old.previous_key,
            old.previous_until,
            new.key,
            new.previous_key
        ]
    };
    let mut batch = Batch {
        sql,
        columns: "app_id bigint, old_key bytea, old_previous bytea, old_until bigint, new_key bytea, new_previous bytea",
        rows: resealed.into_iter().map(row).collect(),
    };
    match audit {
        Some(audit) => {
            store
                .change_batch(Changed::Uncached(audit), batch, None)
                .await
        }
        None => {
            batch.sql.push_str(" RETURNING 1");
            Ok(store.write_batch::<()>(batch).await?.len())
        }
    }
}
