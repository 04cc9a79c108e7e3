//! The tables `replay_signatures` and `replay_mark`, in both databases.
//!
//! Postgres writes no log of the signatures: a crash empties their table, and a promoted replica has none of its rows.
//! That must not allow a replay. So one row, with an empty hash, goes with the others: without it nothing is inserted.
//! The gateway that misses it adds it again, and with it a time: earlier signatures may have been used, and are rejected.
//!
//! That time cannot be the moment of the loss, since clients' clocks may be ahead. It is the mark, which the log has: no
//! signature with a later time was accepted. Before the first one, a gateway moves the mark ahead by [`AHEAD`].
//!
//! The row with the empty hash also has the largest window of all gateways, for which rows are kept. A gateway with a
//! larger one raises it. What was too old until then may be deleted, so it counts as lost.

use std::{collections::HashSet, time::Duration};

use signpost_store::{Batch, Store, StoreError, Timestamp, values};
use tokio::task::JoinHandle;

use super::{ShareError, UsedSign};

/// Hash of an application and its signature.
pub(super) type Hash = [u8; 16];

/// The mark moves ahead by this; after a loss, signatures are rejected for as long.
const AHEAD: Duration = Duration::from_secs(2);

/// The mark moves again once signatures are closer to it than this, in milliseconds. They do not wait for the disk then.
const CLOSE: i64 = 1_000;

/// Rows stay for this long after the largest window: gateways' clocks may differ by it.
const CLOCK_MARGIN: Duration = Duration::from_secs(10);

/// Maximum number of rows that one call of [`delete_expired`] deletes.
pub(super) const MAX_DELETED: usize = 2_000;

/// Inserts signatures.
pub(super) struct Rows {
    store: Store,
    /// The mark is not before this time, in UTC milliseconds.
    mark: i64,
    /// The task that moves the mark, and returns the new one.
    moving: Option<JoinHandle<Result<i64, StoreError>>>,
    /// Rows are kept for this window at least, in milliseconds. 0: the row without a hash may be missing.
    window: i64,
}

impl Rows {
    pub(super) const fn new(store: Store) -> Self {
        Self {
            store,
            mark: 0,
            moving: None,
            window: 0,
        }
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
            self.prepare(signs, now).await?;
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
            (self.mark, self.moving, self.window) = (0, None, 0);
        }
        Err(StoreError::Busy)
    }

    /// Adds the row without a hash, raises its window, and moves the mark, as far as these need it. This is committed before
    /// any of them is accepted.
    async fn prepare(&mut self, signs: &[UsedSign], now: Timestamp) -> Result<(), StoreError> {
        let window = signs.iter().map(|sign| sign.window).max();
        if let Some(window) = window.filter(|window| *window > self.window) {
            self.begin(window, now).await?;
            self.window = window;
        }
        let latest = signs.iter().map(|sign| sign.signed_at).max();
        while let Some(latest) = latest.filter(|latest| *latest > self.mark - CLOSE) {
            let move_mark = || tokio::spawn(move_mark(self.store.clone(), latest));
            let moving = self.moving.get_or_insert_with(move_mark);
            let may_wait = latest <= self.mark;
            if may_wait && !moving.is_finished() {
                break;
            }
            let moved = moving.await.unwrap_or(Err(StoreError::Interrupted));
            self.moving = None;
            match moved {
                Ok(mark) => self.mark = mark,
                Err(_) if may_wait => break,
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }

    /// Inserts those that are not stored, and whose time is after the loss. Returns them.
    async fn insert_new(&self, signs: &[UsedSign]) -> Result<Vec<Hash>, StoreError> {
        let (none, window) = (empty_hash(&self.store), self.window);
        let rows = signs.iter();
        let batch = Batch {
            // In the order of the hashes, so that gateways with the same signatures cannot deadlock.
            sql: format!(
                "INSERT INTO replay_signatures (hash, signed_at) SELECT hash, signed_at FROM {{given}} \
                 WHERE signed_at > (SELECT signed_at FROM replay_signatures \
                 WHERE hash = {none} AND window_millis >= {window}) \
                 ORDER BY hash ON CONFLICT DO NOTHING RETURNING hash"
            ),
            columns: "hash bytea, signed_at bigint",
            rows: rows
                .map(|sign| values![&sign.hash, sign.signed_at])
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
            sql: "SELECT stored.hash, stored.signed_at FROM replay_signatures AS stored, {given} \
                  WHERE stored.hash = given.hash"
                .to_owned(),
            columns: "hash bytea",
            rows: hashes.map(|hash| values![hash]).collect(),
        };
        self.store.write_batch(batch).await
    }

    /// Adds the row without a hash if it is missing: signatures with a time up to the mark may have been used. Without
    /// a mark, none was. If the row has a smaller window, signatures that are too old for that may be deleted.
    async fn begin(&self, window: i64, now: Timestamp) -> Result<(), StoreError> {
        let (none, greatest) = (
            empty_hash(&self.store),
            self.store.dialect("max", "greatest"),
        );
        // At least now: a replica that was behind when it was promoted has an old mark.
        // `WHERE true`: otherwise, SQLite reads `ON` as a join's.
        let begin = format!(
            "INSERT INTO replay_signatures AS stored (hash, signed_at, window_millis) \
             SELECT {none}, coalesce(max({greatest}(until, $1)), 0), $2 FROM replay_mark WHERE true \
             ON CONFLICT (hash) DO UPDATE SET window_millis = excluded.window_millis, \
             signed_at = {greatest}(stored.signed_at, $1 - stored.window_millis) \
             WHERE stored.window_millis < excluded.window_millis"
        );
        let begun = self.store.execute(&begin, values![now, window]).await;
        begun.map(drop)
    }
}

/// Moves the mark ahead of a signature's time. Returns it.
async fn move_mark(store: Store, latest: i64) -> Result<i64, StoreError> {
    let mark = Timestamp::from_millis(latest).plus(AHEAD);
    let greatest = store.dialect("max", "greatest");
    let update = format!(
        "INSERT INTO replay_mark (one, until) VALUES (1, $1) ON CONFLICT (one) DO UPDATE \
         SET until = {greatest}(replay_mark.until, excluded.until)"
    );
    store.execute(&update, values![mark]).await?;
    Ok(mark.as_millis())
}

fn empty_hash(store: &Store) -> &'static str {
    store.dialect("x''", "''::bytea")
}

/// Deletes the oldest rows that no window needs, [`MAX_DELETED`] at most. Returns their number.
pub(super) async fn delete_expired(store: &Store, now: Timestamp) -> Result<usize, StoreError> {
    let none = empty_hash(store);
    let old = format!(
        "signed_at < $1 - (SELECT window_millis FROM replay_signatures WHERE hash = {none}) \
         AND length(hash) > 0 ORDER BY signed_at"
    );
    let old = (&*old, values![now.minus(CLOCK_MARGIN)]);
    store
        .delete_some(("replay_signatures", "hash"), old, MAX_DELETED)
        .await
}
