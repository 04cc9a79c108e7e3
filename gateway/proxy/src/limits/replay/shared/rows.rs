//! The tables `replay_signatures` and `replay_mark`, in both databases.
//!
//! Postgres writes no log of the signatures: a crash empties their table, and a promoted replica has none of its rows.
//! That must not allow a replay. So one row, with an empty hash, goes with the others: without it nothing is inserted.
//! The gateway that misses it adds it again, and with it a time: earlier signatures may have been used, and are rejected.
//!
//! That time cannot be the moment of the loss, since clients' clocks may be ahead. It is the mark, which the log has: no
//! signature with a later time was accepted. Before the first one, a gateway moves the mark ahead by [`AHEAD`].

use std::{collections::HashSet, time::Duration};

use signpost_store::{Batch, Store, StoreError, Timestamp, values};

use super::{ShareError, UsedSign};

/// Hash of an application and its signature.
pub(super) type Hash = [u8; 16];

/// The mark moves ahead by this. It is written once in that time; after a loss, signatures are rejected for as long.
const AHEAD: Duration = Duration::from_secs(2);

/// Rows stay for this long after they have expired: gateways' clocks may differ by it.
const CLOCK_MARGIN: Duration = Duration::from_secs(10);

/// Maximum number of rows that one call of [`delete_expired`] deletes.
pub(super) const MAX_DELETED: usize = 2_000;

/// Inserts signatures.
pub(super) struct Rows {
    store: Store,
    /// The mark is not before this time, in UTC milliseconds. 0: unknown, and the row without a hash may be missing.
    mark: i64,
}

impl Rows {
    pub(super) const fn new(store: Store) -> Self {
        Self { store, mark: 0 }
    }

    /// Inserts signatures, atomically: of gateways with the same one, only one succeeds. Returns what became of each.
    ///
    /// # Errors
    ///
    /// The store is unavailable. The signatures may have been inserted.
    pub(super) async fn insert(
        &mut self,
        signs: &[UsedSign],
        now: Timestamp,
    ) -> Result<Vec<Result<(), ShareError>>, StoreError> {
        // The second time, the row without a hash is there.
        for _ in 0..2 {
            self.move_mark(signs, now).await?;
            let new = self.insert_new(signs).await?;
            if new.len() == signs.len() {
                return Ok(vec![Ok(()); signs.len()]);
            }
            let stored = self.find(signs).await?;
            // Signatures up to the time of the row without a hash are rejected.
            let lost_until = stored.iter().find(|(hash, _)| hash.is_empty());
            let lost_until = lost_until.map(|(_, until)| *until);
            let is_stored = |sign: &UsedSign| stored.iter().any(|(hash, _)| *hash == sign.hash);
            let is_clear =
                |sign| is_stored(sign) || lost_until.is_some_and(|until| sign.signed_at <= until);
            // Of a statement that has inserted one, the others were stored, or are too old.
            if !new.is_empty() || signs.iter().all(is_clear) {
                let mut new: HashSet<_> = new.into_iter().collect();
                let verdict = |sign: &UsedSign| match new.remove(&sign.hash) {
                    true => Ok(()),
                    false if is_stored(sign) => Err(ShareError::Replayed),
                    false => Err(ShareError::Lost),
                };
                return Ok(signs.iter().map(verdict).collect());
            }
            self.mark = 0;
        }
        Err(StoreError::Busy)
    }

    /// Moves the mark, if one of these is after it. This is committed before any of them is accepted.
    async fn move_mark(&mut self, signs: &[UsedSign], now: Timestamp) -> Result<(), StoreError> {
        let latest = signs.iter().map(|sign| sign.signed_at).max();
        let Some(latest) = latest.filter(|latest| *latest > self.mark) else {
            return Ok(());
        };
        if self.mark == 0 {
            self.begin(now).await?;
        }
        let mark = Timestamp::from_millis(latest).plus(AHEAD);
        let greatest = self.store.dialect("max", "greatest");
        let update = format!(
            "INSERT INTO replay_mark (one, until) VALUES (1, $1) ON CONFLICT (one) DO UPDATE \
             SET until = {greatest}(replay_mark.until, excluded.until)"
        );
        self.store.execute(&update, values![mark]).await?;
        self.mark = mark.as_millis();
        Ok(())
    }

    /// Inserts those that are not stored, and whose time is after the loss. Returns them.
    async fn insert_new(&self, signs: &[UsedSign]) -> Result<Vec<Hash>, StoreError> {
        let none = self.empty_hash();
        let rows = signs.iter();
        let batch = Batch {
            // In the order of the hashes, so that gateways with the same signatures cannot deadlock.
            sql: format!(
                "INSERT INTO replay_signatures (hash, expires_at) SELECT hash, expires_at FROM {{given}} \
                 WHERE signed_at > (SELECT expires_at FROM replay_signatures WHERE hash = {none}) \
                 ORDER BY hash ON CONFLICT DO NOTHING RETURNING hash"
            ),
            columns: "hash bytea, signed_at bigint, expires_at bigint",
            rows: rows
                .map(|sign| values![&sign.hash, sign.signed_at, sign.expires_at])
                .collect(),
        };
        let inserted: Vec<(Hash,)> = self.store.write_batch(batch).await?;
        Ok(inserted.into_iter().map(|(hash,)| hash).collect())
    }

    /// Hash and time of the rows of these signatures, and of the row without a hash.
    async fn find(&self, signs: &[UsedSign]) -> Result<Vec<(Vec<u8>, i64)>, StoreError> {
        let hashes = signs.iter().map(|sign| sign.hash.to_vec());
        let hashes = hashes.chain([Vec::new()]);
        let batch = Batch {
            sql: "SELECT stored.hash, stored.expires_at FROM replay_signatures AS stored, {given} \
                  WHERE stored.hash = given.hash"
                .to_owned(),
            columns: "hash bytea",
            rows: hashes.map(|hash| values![hash]).collect(),
        };
        self.store.write_batch(batch).await
    }

    /// Adds the row without a hash if it is missing: signatures with a time up to the mark may have been used. Without
    /// a mark, none was.
    async fn begin(&self, now: Timestamp) -> Result<(), StoreError> {
        let (none, greatest) = (self.empty_hash(), self.store.dialect("max", "greatest"));
        // At least now: a replica that was behind when it was promoted has an old mark.
        // `WHERE true`: otherwise, SQLite reads `ON` as a join's.
        let begin = format!(
            "INSERT INTO replay_signatures (hash, expires_at) \
             SELECT {none}, coalesce(max({greatest}(until, $1)), 0) FROM replay_mark WHERE true ON CONFLICT DO NOTHING"
        );
        self.store.execute(&begin, values![now]).await.map(drop)
    }

    fn empty_hash(&self) -> &'static str {
        self.store.dialect("x''", "''::bytea")
    }
}

/// Deletes the oldest expired rows, [`MAX_DELETED`] at most. Returns their number.
pub(super) async fn delete_expired(store: &Store, now: Timestamp) -> Result<usize, StoreError> {
    let old = "expires_at < $1 AND length(hash) > 0 ORDER BY expires_at";
    let old = (old, values![now.minus(CLOCK_MARGIN)]);
    store
        .delete_some(("replay_signatures", "hash"), old, MAX_DELETED)
        .await
}
