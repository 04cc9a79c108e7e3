//! One deadline for all waits of a call (#9).

use std::time::Instant;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(2);

/// A connection that holds the write lock, as another process would.
fn locked(folder: &Folder) -> Connection {
    let other = Connection::open(folder.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wait_for_the_turn_counts_towards_the_wait_for_the_lock() {
    let folder = Folder::new("deadline");
    let database = SqliteDatabase::open_with(&folder.file(), TIMEOUT, PROGRAM).unwrap();
    let _lock = locked(&folder);
    // A busy machine may make one round longer.
    for _ in 0..10 {
        let first = tokio::spawn({
            let database = database.clone();
            async move { database.write(|_| Ok::<_, StoreError>(())).await }
        });
        while database.pool.is_at_rest() && !first.is_finished() {
            tokio::task::yield_now().await;
        }
        let began = Instant::now();
        let second = database.write(|_| Ok::<_, StoreError>(())).await;
        let waited = began.elapsed();
        assert!(second.is_err() && first.await.unwrap().is_err());
        // With two timeouts in a row it would be 4 s.
        if waited < TIMEOUT * 8 / 5 {
            return;
        }
    }
    panic!("each write waits for longer than its timeout");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_begins_when_the_lock_is_granted() {
    let folder = Folder::new("granted");
    let patient = Duration::from_secs(60);
    let database = SqliteDatabase::open_with(&folder.file(), patient, PROGRAM).unwrap();
    let lock = locked(&folder);
    let write = tokio::spawn({
        let database = database.clone();
        async move {
            database
                .write(|_| Ok::<_, StoreError>(Instant::now()))
                .await
        }
    });
    while database.pool.is_at_rest() {
        tokio::task::yield_now().await;
    }
    let released = Instant::now();
    lock.execute_batch("COMMIT").unwrap();
    let began = write.await.unwrap().unwrap();
    assert!(began >= released, "{:?} too soon", released - began);
}
