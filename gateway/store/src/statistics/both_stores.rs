//! What is counted, on the store under test.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::*;
use crate::{
    Change, Store, StoreError, Topic, postgres::changes::with_notification,
    sqlite::changes::record, testing::TestStore,
};

/// Generous: many tests share the processors.
const DEADLINE: Duration = Duration::from_secs(20);

/// Waits until the statistics fulfil a condition.
fn until(store: &Store, condition: impl Fn(&StoreStatistics) -> bool) -> StoreStatistics {
    let end = Instant::now() + DEADLINE;
    loop {
        let now = store.statistics();
        if condition(&now) {
            return now;
        }
        assert!(Instant::now() < end, "{now:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Records a change of a login, as a program does.
async fn change(store: &Store) -> Result<(), StoreError> {
    match store {
        Store::Sqlite(database) => {
            let write = database.write(|transaction| record(transaction, Topic::Login, b"key"));
            write.await
        }
        Store::Postgres(database) => {
            let write = "SELECT 'key'::bytea AS key";
            let sql = with_notification(database, Topic::Login, write, "");
            let session = database.session().await?;
            session.query(&sql, &[]).await.map(drop)
        }
    }
}

#[test]
fn a_call_is_in_the_bucket_whose_bound_it_does_not_exceed() {
    let statistics = Statistics::default();
    for micros in [0, 100, 101, 60_000_000, 60_000_001] {
        statistics.count_call(Duration::from_micros(micros), true);
    }
    statistics.count_call(Duration::from_secs(1), false);
    let pool = PoolStatistics {
        idle: 0,
        in_use: 0,
        waiting: 0,
    };
    let read = statistics.read(pool);
    assert_eq!(read.succeeded.counts[..3], [2, 1, 0]);
    assert_eq!(read.succeeded.counts[BUCKETS - 2..], [1, 1]);
    assert_eq!(read.succeeded.count(), 5);
    assert_eq!(read.succeeded.micros, 120_000_202);
    assert_eq!((read.failed.count(), read.failed.micros), (1, 1_000_000));
    assert_eq!(read.feed_lag, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_by_their_result() {
    let test = TestStore::chosen();
    let store = test.open().await;
    let before = store.statistics();
    for _ in 0..3 {
        change(&store).await.unwrap();
    }
    let good = store.statistics();
    assert_eq!(good.succeeded.count() - before.succeeded.count(), 3);
    assert_eq!(good.failed.count(), before.failed.count());
    assert!(good.succeeded.micros > before.succeeded.micros);
    assert_eq!((good.pool.in_use, good.pool.waiting), (0, 0));
    assert!(good.pool.idle >= 1, "{good:?}");
    test.make_unavailable();
    for _ in 0..2 {
        change(&store).await.unwrap_err();
    }
    let failed = until(&store, |now| now.failed.count() >= good.failed.count() + 2);
    assert_eq!(failed.failed.count() - good.failed.count(), 2);
    assert_eq!(failed.succeeded.count(), good.succeeded.count());
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_for_a_connection_are_shown_while_they_wait() {
    let test = TestStore::chosen();
    let mut settings = test.settings();
    settings.postgres.pool_size = 1;
    let store = Store::open(&settings).await.unwrap();
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    // Held by the only writer, or by the only session.
    let holder = match store.clone() {
        Store::Sqlite(database) => tokio::spawn(async move {
            let work = move |_: &rusqlite::Connection| {
                // An error means that the test has ended.
                let _ = held.recv();
                Ok::<_, StoreError>(())
            };
            database.write(work).await.unwrap();
        }),
        Store::Postgres(database) => {
            let session = database.session().await.unwrap();
            tokio::task::spawn_blocking(move || {
                let _ = held.recv();
                drop(session);
            })
        }
    };
    until(&store, |now| now.pool.in_use == 1);
    let begin_waiting = || {
        let store = store.clone();
        tokio::spawn(async move { change(&store).await })
    };
    let (waiting, leaving) = (begin_waiting(), begin_waiting());
    until(&store, |now| now.pool.waiting == 2);
    // A caller that leaves no longer waits.
    leaving.abort();
    let seen = until(&store, |now| now.pool.waiting == 1);
    assert_eq!(seen.pool.in_use, 1, "{seen:?}");
    let_go.send(()).unwrap();
    holder.await.unwrap();
    waiting.await.unwrap().unwrap();
    let rest = until(&store, |now| now.pool.in_use == 0);
    assert_eq!(rest.pool.waiting, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feeds_lag_grows_during_an_outage_and_shrinks_after_it() {
    let test = TestStore::chosen();
    let store = test.open().await;
    assert_eq!(store.statistics().feed_lag, None, "nothing is watched yet");
    let (sender, feed) = std::sync::mpsc::channel();
    let on_change = move |change| drop(sender.send(change));
    let watched = store.clone();
    let watch = tokio::task::spawn_blocking(move || watched.watch(Duration::default, on_change));
    let _watch = watch.await.unwrap().unwrap();
    let begun = store.statistics();
    assert!(begun.feed_lag.is_some());
    assert_eq!(begun.changes, 0);
    change(&store).await.unwrap();
    until(&store, |now| now.changes == 1);
    test.make_unavailable();
    let is_late = |now: &StoreStatistics| now.feed_lag > Some(Duration::from_secs(2));
    let lost = until(&store, is_late);
    // That the feed is lost is no change.
    assert_eq!(lost.changes, 1);
    while feed.recv_timeout(DEADLINE).unwrap() != Change::Lost {}
    test.make_available();
    // Anything may have changed in between.
    until(&store, |now| {
        now.changes >= 2 && now.feed_lag < lost.feed_lag
    });
}
