//! Responses of the management API by their requests' keys, so that a repeated request changes nothing again and gets the
//! same response. All functions fail if the store is unavailable.

use std::time::Duration;

use crate::{Store, StoreError, Timestamp, from_row, values};

/// Time for which a response is kept.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of rows that one call of [`delete_old`] deletes.
pub const MAX_DELETED: usize = 10_000;

/// A request that came before with the same key.
#[derive(Clone, PartialEq, Eq)]
pub struct Earlier {
    /// A hash of the request, whose key is the caller's: a request can have secrets.
    pub request: [u8; 32],
    /// The sealed response; `None`: the request runs, or was interrupted.
    pub response: Option<Vec<u8>>,
}

from_row!(Earlier { request, response });

signpost_protocol::hide_in_debug!(Earlier);

/// Begins a request. If there is one with its key, nothing begins, and that is returned.
pub async fn begin(
    store: &Store,
    key: &[u8; 32],
    request: &[u8; 32],
    now: Timestamp,
) -> Result<Option<Earlier>, StoreError> {
    // First, since an expired row still occupies its key.
    let delete = "DELETE FROM idempotency WHERE key = $1 AND at < $2";
    let too_old = now.minus(RETENTION);
    store.execute(delete, values![key, too_old]).await?;
    // No transaction is needed: of several callers, the insert lets only one begin.
    let insert =
        "INSERT INTO idempotency (key, request, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    if store.execute(insert, values![key, request, now]).await? > 0 {
        return Ok(None);
    }
    let find = "SELECT request, response FROM idempotency WHERE key = $1";
    let earlier = store.row(find, values![key]).await?;
    // The earlier one ended just now without a response.
    earlier.map(Some).ok_or(StoreError::Busy)
}

/// Keeps the response of a request that has begun.
pub async fn finish(store: &Store, key: &[u8; 32], response: Vec<u8>) -> Result<(), StoreError> {
    // A response that is there stays: every repetition gets the same.
    let update = "UPDATE idempotency SET response = $2 WHERE key = $1 AND response IS NULL";
    store
        .execute(update, values![key, response])
        .await
        .map(drop)
}

/// Ends a request that has begun, and has changed nothing: it can be repeated.
pub async fn abandon(store: &Store, key: &[u8; 32]) -> Result<(), StoreError> {
    let delete = "DELETE FROM idempotency WHERE key = $1 AND response IS NULL";
    store.execute(delete, values![key]).await.map(drop)
}

/// Deletes the oldest rows that are older than a day, [`MAX_DELETED`] at most. Returns their number.
pub async fn delete_old(store: &Store, now: Timestamp) -> Result<usize, StoreError> {
    let old = ("at < $1 ORDER BY at", values![now.minus(RETENTION)]);
    store
        .delete_some(("idempotency", "key"), old, MAX_DELETED)
        .await
}

#[cfg(test)]
mod both_stores {
    use super::*;
    use crate::testing::TestStore;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    const REQUEST: [u8; 32] = [7; 32];

    #[tokio::test]
    async fn one_of_several_begins_and_the_others_get_its_response_for_a_day() {
        let test = TestStore::chosen();
        let store = test.open().await;
        let begin = |key, now| begin(&store, key, &REQUEST, now);
        let key = &[1; 32];
        let all = tokio::join!(begin(key, NOW), begin(key, NOW), begin(key, NOW));
        let begun = <[_; 3]>::from(all).map(|one| one.unwrap().is_none());
        assert_eq!(begun.into_iter().filter(|begun| *begun).count(), 1);
        let running = begin(key, NOW).await.unwrap().unwrap();
        assert_eq!((running.request, running.response), (REQUEST, None));
        finish(&store, key, b"sealed".to_vec()).await.unwrap();
        // What is finished stays as it is.
        finish(&store, key, b"other".to_vec()).await.unwrap();
        abandon(&store, key).await.unwrap();
        let at_the_end = NOW.plus(RETENTION);
        let kept = begin(key, at_the_end).await.unwrap().unwrap();
        assert_eq!(kept.response.as_deref(), Some(&b"sealed"[..]));
        assert!(begin(&[2; 32], NOW).await.unwrap().is_none());
        abandon(&store, &[2; 32]).await.unwrap();
        assert!(begin(&[2; 32], NOW).await.unwrap().is_none());

        assert_eq!(delete_old(&store, at_the_end).await.unwrap(), 0);
        let later = at_the_end.plus(Duration::from_millis(1));
        assert!(begin(key, later).await.unwrap().is_none());
        assert_eq!(delete_old(&store, later).await.unwrap(), 1);
        assert!(begin(&[2; 32], later).await.unwrap().is_none());
    }
}
