//! The change feed, with `LISTEN` and without.

use std::sync::mpsc::{self, Receiver};

use super::*;
use crate::{
    Change,
    changes::Watch,
    testing::{CHANGE_DELAY, CHANGE_TIMEOUT},
};

fn watched(database: &PostgresDatabase) -> (Receiver<Change>, Watch) {
    let (sender, receiver) = mpsc::channel();
    let watch = changes::watch(database, Arc::new(Duration::default), move |change| {
        // The test may have ended.
        let _ = sender.send(change);
    });
    (receiver, watch.unwrap())
}

fn item(topic: Topic, key: &[u8]) -> Change {
    Change::Item {
        topic,
        key: key.to_vec(),
    }
}

/// The address with a new role.
pub(super) fn with_role(store: &TestStore, what: &str, further: &str) -> PostgresAddress {
    let mut config = server(store).config().clone();
    let role = format!("{what}_of_{}", config.get_dbname().unwrap());
    store.administer(&format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'secret'; GRANT ALL ON SCHEMA public TO {role}{further}"
    ));
    config.user(&role).password("secret");
    PostgresAddress::from_config(config)
}

/// The address with a role that may not call `pg_notify`, as on an engine without it.
fn without_notify(store: &TestStore) -> PostgresAddress {
    let further = "; REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC";
    with_role(store, "poller", further)
}

#[tokio::test]
async fn a_change_reaches_another_process_within_a_second() {
    let store = TestStore::postgres();
    let (ours, theirs) = (open(&store).await, open(&store).await);
    assert!(ours.can_notify());
    let (changes, _watch) = watched(&ours);
    let mut fastest = CHANGE_TIMEOUT;
    for key in [b"one", b"two", b"six", b"ten", b"end"] {
        record(&theirs, Topic::Credential, key).await;
        let recorded_at = Instant::now();
        let received = changes.recv_timeout(CHANGE_TIMEOUT).unwrap();
        fastest = fastest.min(recorded_at.elapsed());
        assert_eq!(received, item(Topic::Credential, key));
    }
    assert!(fastest < CHANGE_DELAY, "{fastest:?}");
}

/// After a failover, the feed leaves a server that takes no writes. Its next server may differ from the server of later
/// calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_failover_moves_the_feed_also_if_nothing_probes() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    let (changes, _watch) = watched(&database);
    let moved = || {
        for expected in [Change::Lost, Change::Restored] {
            assert_eq!(changes.recv_timeout(2 * CHANGE_TIMEOUT), Ok(expected));
        }
    };
    let write = "DELETE FROM accounts";
    for _ in 0..2 {
        let session = database.session().await.unwrap();
        let read_only = "SET default_transaction_read_only = on";
        session.execute(read_only, &[]).await.unwrap();
        session.execute(write, &[]).await.unwrap_err();
        drop(session);
        moved();
        database.execute(write, Vec::new()).await.unwrap();
        moved();
    }
}

#[tokio::test]
async fn a_change_also_reaches_another_process_without_notify() {
    let store = TestStore::postgres();
    let address = without_notify(&store);
    let ours = PostgresDatabase::open(&address, &settings(), PROGRAM)
        .await
        .unwrap();
    assert!(!ours.can_notify());
    record(&ours, Topic::Login, b"before").await;
    let (changes, _watch) = watched(&ours);
    // The first is recorded at any time between two polls, the others right after one.
    let mut fastest = CHANGE_TIMEOUT;
    for key in [b"one", b"two", b"six", b"ten", b"end"] {
        record(&ours, Topic::Login, key).await;
        let recorded_at = Instant::now();
        let received = changes.recv_timeout(CHANGE_TIMEOUT).unwrap();
        assert_eq!(received, item(Topic::Login, key));
        if key != b"one" {
            fastest = fastest.min(recorded_at.elapsed());
        }
    }
    assert!(fastest < CHANGE_DELAY, "{fastest:?}");
}

/// Two processes share a database; only the role of one may notify.
#[tokio::test]
async fn a_listener_gets_changes_of_a_process_that_cannot_notify() {
    let store = TestStore::postgres();
    let address = without_notify(&store);
    let theirs = PostgresDatabase::open(&address, &settings(), PROGRAM)
        .await
        .unwrap();
    // The owner of the function may still call it.
    let ours = open(&store).await;
    assert!(ours.can_notify() && !theirs.can_notify());
    record(&theirs, Topic::Login, b"before").await;
    let (changes, _watch) = watched(&ours);
    let (polled, _poller) = watched(&theirs);
    for key in [b"one", b"two"] {
        record(&theirs, Topic::Login, key).await;
        let expected = item(Topic::Login, key);
        assert_eq!(changes.recv_timeout(CHANGE_TIMEOUT).unwrap(), expected);
        assert_eq!(polled.recv_timeout(CHANGE_TIMEOUT).unwrap(), expected);
    }
    // A bulk change is one notification with an empty key.
    let write = "UPDATE applications SET name = 'x' RETURNING ident";
    let sql = changes::with_bulk_notification(&theirs, Topic::Application, write, "");
    let session = theirs.session().await.unwrap();
    session.query(&sql, &[]).await.unwrap();
    let expected = item(Topic::Application, b"");
    assert_eq!(changes.recv_timeout(CHANGE_TIMEOUT).unwrap(), expected);
    assert_eq!(polled.recv_timeout(CHANGE_TIMEOUT).unwrap(), expected);
    record(&ours, Topic::Login, b"three").await;
    let expected = item(Topic::Login, b"three");
    assert_eq!(changes.recv_timeout(CHANGE_TIMEOUT).unwrap(), expected);
    assert_eq!(polled.recv_timeout(CHANGE_TIMEOUT).unwrap(), expected);
}

#[tokio::test]
async fn a_locked_table_does_not_lose_the_feed() {
    let store = TestStore::postgres();
    let database = PostgresDatabase::open(&server(&store), &with_heartbeat(), PROGRAM)
        .await
        .unwrap();
    let (changes, _watch) = watched(&database);
    let (mut other, _) = database.connect().await.unwrap();
    // What the feed reports but records of earlier rounds.
    let next = |round: u8, limit| loop {
        match changes.recv_timeout(limit) {
            Ok(Change::Item { key, .. }) if key < vec![round] => {}
            received => return received,
        }
    };
    // A pause of the machine can lose the feed, too, but not each time.
    for round in 0..10 {
        let lock = other.transaction().await.unwrap();
        lock.batch_execute(PATIENT).await.unwrap();
        let exclusive = "LOCK TABLE changes IN ACCESS EXCLUSIVE MODE";
        lock.batch_execute(exclusive).await.unwrap();
        // Several polls.
        let mut received = next(round, Duration::from_secs(3));
        lock.commit().await.unwrap();
        if received == Err(mpsc::RecvTimeoutError::Timeout) {
            record(&database, Topic::Login, &[round]).await;
            received = next(round, CHANGE_TIMEOUT);
            if received == Ok(item(Topic::Login, &[round])) {
                return;
            }
        }
        assert_eq!(received, Ok(Change::Lost));
        let restored = next(round, CHANGE_TIMEOUT);
        assert_eq!(restored, Ok(Change::Restored));
    }
    panic!("each lock loses the feed");
}

#[tokio::test]
async fn a_wrong_clock_is_detected() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    #[expect(clippy::disallowed_methods, reason = "a test compares real clocks")]
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let right: changes::Clock = Arc::new(move || now().unwrap());
    let ahead: changes::Clock = Arc::new(move || now().unwrap() + Duration::from_secs(3600));
    assert_eq!(changes::compare(&database, &right).await.unwrap(), None);
    let by = changes::compare(&database, &ahead).await.unwrap().unwrap();
    assert!((3_590_000..3_610_000).contains(&by), "{by}");
}

#[tokio::test]
async fn without_notify_a_change_that_is_committed_late_is_reported() {
    let store = TestStore::postgres();
    let address = without_notify(&store);
    let ours = PostgresDatabase::open(&address, &settings(), PROGRAM)
        .await
        .unwrap();
    let (changes, _watch) = watched(&ours);
    let (mut slow, _) = ours.connect().await.unwrap();
    let transaction = slow.transaction().await.unwrap();
    transaction.batch_execute(PATIENT).await.unwrap();
    transaction
        .execute(
            "INSERT INTO changes (topic, key) VALUES ('login', 'late')",
            &[],
        )
        .await
        .unwrap();
    record(&ours, Topic::Login, b"soon").await;
    assert_eq!(
        changes.recv_timeout(CHANGE_TIMEOUT).unwrap(),
        item(Topic::Login, b"soon")
    );
    transaction.commit().await.unwrap();
    assert_eq!(
        changes.recv_timeout(CHANGE_TIMEOUT).unwrap(),
        item(Topic::Login, b"late")
    );
}

#[tokio::test]
async fn after_an_outage_the_feed_is_restored() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    let (changes, _watch) = watched(&database);
    store.make_unavailable();
    store.make_available();
    for expected in [Change::Lost, Change::Restored] {
        assert_eq!(changes.recv_timeout(CHANGE_TIMEOUT), Ok(expected));
    }
    let database = open(&store).await;
    for key in ["x", "y"] {
        record(&database, Topic::Application, key.as_bytes()).await;
        let received = changes.recv_timeout(CHANGE_TIMEOUT).unwrap();
        if received == Change::Lost {
            // Its clock was being compared, and that connection was lost, too.
            assert_eq!(changes.recv_timeout(CHANGE_TIMEOUT), Ok(Change::Restored));
            continue;
        }
        assert_eq!(received, item(Topic::Application, key.as_bytes()));
        return;
    }
    panic!("it was lost again");
}

/// The server leaves the process one connection: the pooled one, which the process has or must open again. Other
/// threads drive the test's own connections while it waits: the pool may have one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_separate_connection_changes_are_polled_with_pooled_ones() {
    for keeps_pooled in [true, false] {
        let store = TestStore::postgres();
        let address = with_role(&store, "listener", "");
        let database = PostgresDatabase::open(&address, &settings(), PROGRAM)
            .await
            .unwrap();
        let (changes, _watch) = watched(&database);
        // Each of several steps may wait for the only connection, on a machine that runs many tests.
        let limit = Duration::from_secs(20);
        let session = database.session().await.unwrap();
        let pooled = session.query_one("SELECT pg_backend_pid()", &[]).await;
        let kept: i32 = match keeps_pooled {
            true => pooled.unwrap().get(0),
            false => 0,
        };
        drop(session);
        let name = address.config().get_user().unwrap();
        store.administer(&format!(
            "ALTER ROLE {name} CONNECTION LIMIT 1; \
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}' AND pid <> {kept}"
        ));
        assert_eq!(changes.recv_timeout(limit).unwrap(), Change::Lost);
        assert_eq!(changes.recv_timeout(limit).unwrap(), Change::Restored);
        let other = open(&store).await;
        // While the comparison of the clocks has the only connection, the feed can be lost once more. It then misses a
        // record, or reports it after its return.
        let mut recorded = Vec::new();
        loop {
            let key = [u8::try_from(recorded.len()).unwrap()];
            record(&other, Topic::Credential, &key).await;
            recorded.push(item(Topic::Credential, &key));
            let received = changes.recv_timeout(limit).unwrap();
            if received != Change::Lost {
                assert!(recorded.contains(&received), "{received:?}");
                break;
            }
            assert_eq!(changes.recv_timeout(limit).unwrap(), Change::Restored);
        }
    }
}

#[tokio::test]
async fn dropping_a_watch_ends_its_thread() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    let (changes, watch) = watched(&database);
    drop(watch);
    // The callback, and with it the sender, is dropped with the thread.
    assert_eq!(
        changes.recv_timeout(CHANGE_TIMEOUT),
        Err(mpsc::RecvTimeoutError::Disconnected)
    );
}

#[tokio::test]
async fn old_records_are_swept() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    store.administer(
        "INSERT INTO changes (topic, key, changed_at) VALUES ('login', 'old', now() - interval '1 day'), \
         ('login', 'new', now())",
    );
    changes::sweep(&database).await.unwrap();
    let session = database.session().await.unwrap();
    let left = session.query("SELECT key FROM changes", &[]).await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].get::<_, &[u8]>(0), b"new");
}
