//! Tests on a real server: opening, timeouts, faults, TLS, and the change feed.

mod cancelled;
mod feed;
mod wire;

use std::{env, time::Instant};

use std::time::Duration;

use signpost_protocol::app::AppId;

use super::*;
use crate::{
    Migration, Store, StoreAddress, Timestamp, Topic,
    tables::{
        audit,
        ended_logins::{self, Whose},
        idempotency,
        sealed_keys::{self, ResealedKeys},
        usage,
    },
    testing::{PROGRAM, TestStore},
};

/// Far more than the timeouts of [`settings`], and far less than a test would wait without them.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// For the transaction of a test that pauses: the server would end it after 10 s.
const PATIENT: &str = "SET LOCAL idle_in_transaction_session_timeout = 0";

fn server(store: &TestStore) -> PostgresAddress {
    let StoreAddress::Postgres(address) = store.address() else {
        panic!("a server")
    };
    address.clone()
}

/// With timeouts that a busy machine keeps, and for which a test can wait.
fn settings() -> PostgresSettings {
    PostgresSettings {
        pool_size: 2,
        wait: Duration::from_secs(10),
        statement: Duration::from_secs(10),
        heartbeat: Duration::from_secs(10),
        root_certificate: None,
    }
}

/// With the shipped timeout of the change feed's poll.
fn with_heartbeat() -> PostgresSettings {
    PostgresSettings {
        heartbeat: PostgresSettings::default().heartbeat,
        ..settings()
    }
}

async fn open(store: &TestStore) -> PostgresDatabase {
    PostgresDatabase::open(&server(store), &settings(), PROGRAM)
        .await
        .unwrap()
}

/// Records a change as the programs do.
async fn record(database: &PostgresDatabase, topic: Topic, key: &[u8]) {
    let write = "INSERT INTO applications (ident, name, state, created_at, key_sealed, return_to_origins) \
                 VALUES (encode($1, 'hex'), '', 'active', 0, '', '[]') RETURNING $1::bytea AS key";
    let sql = changes::with_notification(database, topic, write, "");
    let session = database.session().await.unwrap();
    assert_eq!(session.execute(&sql, &[&key]).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_concurrent_starts_one_migrates() {
    let store = TestStore::postgres();
    let settings = store.settings();
    let starts: Vec<_> = (0..10)
        .map(|_| {
            let settings = settings.clone();
            tokio::spawn(async move { Store::open(&settings).await })
        })
        .collect();
    for start in starts {
        start.await.unwrap().unwrap();
    }
    let session = open(&store).await.session().await.unwrap();
    let applied = "SELECT count(*), count(DISTINCT number) FROM migrations";
    let row = session.query_one(applied, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 1));
}

/// A table is a type, too, which the other process may have created already.
#[tokio::test]
async fn a_start_waits_for_the_table_that_another_one_is_creating() {
    let store = TestStore::postgres();
    let session = open(&store).await.session().await.unwrap();
    store.administer("DROP TABLE migrations; CREATE DOMAIN migrations AS BIGINT");
    for (statement, is_created) in [(migrate::HISTORY, true), (migrate::LEASE, false)] {
        let error = session.execute(statement, &[]).await.unwrap_err();
        assert_eq!(migrate::is_created(&error), is_created, "{error:?}");
    }
}

/// Until a statement waits for a lock.
async fn wait_for_blocked_statement(session: &Session) {
    let is_waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    while session
        .query_one(is_waiting, &[])
        .await
        .unwrap()
        .get::<_, i64>(0)
        == 0
    {
        tokio::task::yield_now().await;
    }
}

/// Without advisory locks, which a pooler or an engine may not have.
#[tokio::test]
async fn a_migration_waits_for_one_of_another_owner_until_its_transaction_ends() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    let (mut other, _connection) = database.connect().await.unwrap();
    let lease = other.transaction().await.unwrap();
    lease.batch_execute(PATIENT).await.unwrap();
    lease.batch_execute(migrate::LEASE).await.unwrap();
    let note = Migration {
        name: "V1__notes",
        sqlite: "",
        postgres: "CREATE TABLE v3_notes (id BIGINT PRIMARY KEY)",
    };
    let migrating = tokio::spawn({
        let database = database.clone();
        async move { database.migrate(&Schema::new("v3", &[note]), PROGRAM).await }
    });
    let session = database.session().await.unwrap();
    wait_for_blocked_statement(&session).await;
    // Programs whose tables are complete start meanwhile.
    open(&store).await;
    assert!(!migrating.is_finished());
    drop(lease);
    migrating.await.unwrap().unwrap();
    let leases = "SELECT count(*) FROM v3_notes, migrations WHERE owner = 'lease'";
    assert_eq!(
        session
            .query_one(leases, &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        0
    );
}

#[tokio::test]
async fn a_role_that_may_only_read_is_named_and_no_connection_is_closed() {
    let store = TestStore::postgres();
    open(&store).await;
    let reader = feed::with_role(&store, "reader", "");
    let role = reader.config().get_user().unwrap().to_owned();
    let grant = |rights| format!("GRANT {rights} ON ALL TABLES IN SCHEMA public TO {role}");
    store.administer(&grant("SELECT"));
    let database = PostgresDatabase::open(&reader, &settings(), PROGRAM)
        .await
        .unwrap();
    let handle = Store::Postgres(database.clone());
    let error = handle.probe().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the database role {role} may only read")
    );
    assert_eq!(database.statistics().pool.idle, 1);
    store.administer(&grant("INSERT"));
    handle.probe().await.unwrap();
}

#[tokio::test]
async fn a_server_without_writes_is_refused_if_the_address_asks_for_them() {
    let store = TestStore::postgres();
    open(&store).await;
    let mut config = server(&store).config().clone();
    let name = config.get_dbname().unwrap().to_owned();
    store.administer(&format!(
        "ALTER DATABASE {name} SET default_transaction_read_only = on"
    ));
    config.target_session_attrs(tokio_postgres::config::TargetSessionAttrs::ReadWrite);
    let address = PostgresAddress::from_config(config);
    let opened = PostgresDatabase::open(&address, &settings(), PROGRAM).await;
    let error = opened.unwrap_err();
    assert!(error.is_unavailable(), "{error:?}");
    let OpenError::Server { cause, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(cause.to_string(), "no host of the database takes writes");
}

#[tokio::test]
async fn a_migration_waits_for_a_table_in_use_without_blocking_others_for_long() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    let (reader, _connection) = database.connect().await.unwrap();
    let reads = format!("BEGIN; {PATIENT}; SELECT count(*) FROM applications");
    reader.batch_execute(&reads).await.unwrap();
    let migrating = tokio::spawn({
        let database = database.clone();
        async move {
            let all = [
                SIGNPOST.migrations[0],
                Migration {
                    name: "V2__motto",
                    sqlite: "",
                    postgres: "ALTER TABLE applications ADD COLUMN motto TEXT",
                },
            ];
            let later = Schema {
                migrations: &all,
                ..SIGNPOST
            };
            database.migrate(&later, PROGRAM).await
        }
    });
    let session = database.session().await.unwrap();
    wait_for_blocked_statement(&session).await;
    // It queues behind the migration, which gives up, and tries again.
    let (other, _connection) = database.connect().await.unwrap();
    let read = other.query_one("SELECT count(*) FROM applications", &[]);
    tokio::time::timeout(MAX_WAIT, read).await.unwrap().unwrap();
    assert!(!migrating.is_finished());
    reader.batch_execute("COMMIT").await.unwrap();
    migrating.await.unwrap().unwrap();
    let read = "SELECT count(motto) FROM applications";
    session.query_one(read, &[]).await.unwrap();
}

/// Otherwise two of them would wait for each other's rows for ever.
#[tokio::test]
async fn batches_lock_the_rows_that_they_change_in_one_order() {
    let test = TestStore::postgres();
    let store = test.open().await;
    // In the order of the table, the row that must be locked first is the last one.
    test.administer(
        "INSERT INTO applications (id, ident, name, state, created_at, key_sealed, return_to_origins) \
         SELECT id, id, '', 'active', 0, 'the old key', '[]' FROM generate_series(100, 1, -1) AS id; \
         INSERT INTO accounts (id, provider, username, created_at) VALUES (1, 'one', 'ada', 0); \
         CREATE TABLE hashes AS SELECT decode(lpad(to_hex(id), 64, '0'), 'hex') AS hash, id <= 100 AS is_ended \
         FROM generate_series(500, 1, -1) AS id; \
         INSERT INTO logins (state_hash, version, application_id, mode, provider, status, account_id, finished_at, \
         claimable_until, created_at, expires_at) SELECT hash, 'v1', CASE WHEN is_ended THEN 7 ELSE 0 END, \
         'redirect', 'one', 'complete', 1, 0, 9, 0, 9 FROM hashes; \
         INSERT INTO credentials (hash, login_hash, account_id, application_id, created_at, expires_at) \
         SELECT hash, hash, 1, CASE WHEN is_ended THEN 8 ELSE 0 END, 0, 9 FROM hashes; \
         ANALYZE",
    );
    let page = sealed_keys::page_by_another(&store, [0; 8], i64::MAX, 100).await;
    let resealed = page.unwrap().into_iter().map(|before| ResealedKeys {
        before,
        key: b"the new key".to_vec(),
        previous_key: None,
    });
    let (resealed, resealing) = (resealed.collect(), store.clone());
    let reseal = async move { sealed_keys::replace(&resealing, resealed, None).await };
    assert_eq!(
        locking_first(&test, "applications", "id", reseal).await,
        100
    );
    for (application, rows, key, credentials) in [
        (7, "logins WHERE application_id = 7", "state_hash", 0),
        (8, "credentials WHERE application_id = 8", "login_hash", 100),
    ] {
        let (store, whose) = (store.clone(), Whose::Application(AppId::new(application)));
        let end = async move { ended_logins::end(&store, whose, Timestamp::from_millis(1)).await };
        assert_eq!(locking_first(&test, rows, key, end).await, credentials);
    }
}

/// Result of `write`, which waits for the row with the first `key` before it locks the row with the last one.
async fn locking_first(
    test: &TestStore,
    rows: &str,
    key: &str,
    write: impl Future<Output = Result<usize, StoreError>> + Send + 'static,
) -> usize {
    let (other, _connection) = open(test).await.connect().await.unwrap();
    let first = format!("BEGIN; SELECT 1 FROM {rows} ORDER BY {key} LIMIT 1 FOR UPDATE");
    other.batch_execute(&first).await.unwrap();
    let write = tokio::spawn(write);
    let waiting = "SELECT 1 FROM pg_locks WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))";
    while other.query(waiting, &[]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let last =
        format!("SELECT 1 FROM {rows} ORDER BY {key} DESC LIMIT 1 FOR UPDATE NOWAIT; COMMIT");
    other.batch_execute(&last).await.expect("it is not locked");
    write.await.unwrap().unwrap()
}

/// Connections of the same database that are opened on a thread that then does nothing for them.
#[tokio::test]
async fn a_pool_of_its_own_lets_no_other_wait() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    let own = database.with_own_pool(2);
    let slow = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (slow, sessions) = std::thread::spawn(move || {
        let sessions = slow.block_on(async {
            let sessions = [own.session().await.unwrap(), own.session().await.unwrap()];
            assert!(matches!(own.session().await, Err(StoreError::Busy)));
            sessions
        });
        (slow, sessions)
    })
    .join()
    .unwrap();
    drop(sessions);
    for _ in 0..3 {
        let session = database.session().await.unwrap();
        session.query_one("SELECT 1", &[]).await.unwrap();
    }
    slow.shutdown_background();
}

#[tokio::test]
async fn a_wrong_password_is_reported_without_repeating_it() {
    let store = TestStore::postgres();
    let StoreAddress::Postgres(address) = store.address().clone().with_password("hush-hush") else {
        panic!("a server")
    };
    let error = PostgresDatabase::open(&address, &settings(), PROGRAM)
        .await
        .unwrap_err();
    let message = format!("{error:?} {error}");
    assert!(message.contains("28P01"), "{message}");
    assert!(!message.contains("hush-hush"), "{message}");
}

#[tokio::test]
async fn waiting_for_a_connection_times_out() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    let _held = (
        database.session().await.unwrap(),
        database.session().await.unwrap(),
    );
    let began = Instant::now();
    let error = database.session().await.unwrap_err();
    assert!(matches!(error, StoreError::Busy), "{error}");
    assert!(began.elapsed() < MAX_WAIT);
}

#[tokio::test]
async fn a_slow_statement_is_cancelled_by_the_server_and_the_connection_stays_usable() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    // The caller gives up soon after the server. On a busy machine, it can be first.
    for _ in 0..10 {
        let session = database.session().await.unwrap();
        match session.query("SELECT pg_sleep(20)", &[]).await.unwrap_err() {
            StoreError::TimedOut => {}
            StoreError::Postgres(error) => {
                assert_eq!(error.sql_state().unwrap().code(), "57014", "{error}");
                session.query("SELECT 1", &[]).await.unwrap();
                return;
            }
            error => panic!("{error:?}"),
        }
    }
    panic!("the server cancels nothing");
}

#[tokio::test]
async fn a_server_is_used_again_after_an_outage() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    database.session().await.unwrap();
    store.make_unavailable();
    let began = Instant::now();
    for _ in 0..2 {
        match database.session().await {
            // The closed connection may not be detected yet.
            Ok(session) => session.query("SELECT 1", &[]).await.map(drop),
            Err(error) => Err(error),
        }
        .unwrap_err();
    }
    assert!(began.elapsed() < MAX_WAIT);
    store.make_available();
    let session = database.session().await.unwrap();
    session.query("SELECT 1", &[]).await.unwrap();
}

#[tokio::test]
async fn details_of_the_servers_errors_are_not_printed() {
    let store = TestStore::postgres();
    let session = open(&store).await.session().await.unwrap();
    let twice = "INSERT INTO accounts (provider, username, created_at) \
                 VALUES ('p', 'somebody', 0), ('p', 'somebody', 0)";
    let error = session.execute(twice, &[]).await.unwrap_err();
    let message = format!("{error:?} {error}");
    assert!(message.contains("23505"), "{message}");
    assert!(!message.contains("somebody"), "{message}");
}

#[tokio::test]
async fn tls_is_used_and_the_server_verified_as_sslmode_says() {
    let _server = TestStore::postgres();
    let authority = env::var_os("SIGNPOST_TEST_AUTHORITY")
        .expect("set by scripts/postgres run: the path of the authority's certificate");
    let with = |mode: &str, host: &str, root: bool| {
        let address = env::var("SIGNPOST_TEST_POSTGRES").unwrap();
        let address = address.replace("127.0.0.1", host) + "?sslmode=" + mode;
        let settings = PostgresSettings {
            root_certificate: root.then(|| authority.clone().into()),
            ..settings()
        };
        async move {
            let StoreAddress::Postgres(address) = address.parse().unwrap() else {
                panic!("a server")
            };
            let servers = Servers::new(&address, &settings)?;
            let refused = |cause| OpenError::Server {
                server: address.to_string(),
                cause,
            };
            let (client, _notifications) = connect::connect(&servers, &settings)
                .await
                .map_err(refused)?;
            let used = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
            Ok::<bool, OpenError>(client.query_one(used, &[]).await.unwrap().get(0))
        }
    };
    for (mode, is_used) in [("disable", false), ("prefer", true), ("require", true)] {
        assert_eq!(
            with(mode, "127.0.0.1", false).await.unwrap(),
            is_used,
            "{mode}"
        );
    }
    assert!(with("verify-full", "localhost", true).await.unwrap());
    // The system's authorities did not sign its certificate.
    with("verify-full", "localhost", false).await.unwrap_err();
    // The certificate is not valid for another name.
    let error = with("verify-full&hostaddr=127.0.0.1", "db.example", true)
        .await
        .unwrap_err();
    assert!(
        format!("{error:?}").contains("ot valid for name"),
        "{error:?}"
    );
}

#[test]
fn a_file_without_certificates_is_reported_by_path() {
    let address: StoreAddress = "postgres://u@db.example/d?sslmode=verify-full"
        .parse()
        .unwrap();
    let StoreAddress::Postgres(address) = address else {
        panic!("a server")
    };
    let settings = PostgresSettings {
        root_certificate: Some("/dev/null".into()),
        ..settings()
    };
    let Err(error) = connect::tls(&address, &settings) else {
        panic!("the file has no certificate")
    };
    assert!(error.to_string().contains("/dev/null"), "{error}");
}

#[tokio::test]
async fn a_database_that_is_not_in_utf8_is_refused() {
    let store = TestStore::postgres();
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let mut config = server(&store).config().clone();
        let name = format!("{}_{encoding}", config.get_dbname().unwrap()).to_lowercase();
        store.administer(&format!(
            "CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        ));
        config.dbname(&name);
        let address = PostgresAddress::from_config(config);
        for opened in [
            PostgresDatabase::open(&address, &settings(), PROGRAM).await,
            PostgresDatabase::open_without_migrating(&address, &settings()).await,
        ] {
            let error = opened.unwrap_err();
            let OpenError::Server { cause, .. } = &error else {
                panic!("{error:?}")
            };
            assert!(crate::error::is_encoding(cause) && !error.is_unavailable());
            let text = cause.to_string();
            assert!(
                text.contains(encoding) && text.contains("ENCODING 'UTF8'"),
                "{text}"
            );
        }
        store.administer(&format!("DROP DATABASE {name} WITH (FORCE)"));
    }
    // The encoding that clients have by default does not matter: the driver sets its own.
    let name = server(&store).config().get_dbname().unwrap().to_owned();
    store.administer(&format!(
        "ALTER DATABASE {name} SET client_encoding = 'LATIN1'"
    ));
    let session = open(&store).await.session().await.unwrap();
    let read = session.query_one("SELECT 'Łukasz'::text || $1::text", &[&"Łukasz"]);
    assert_eq!(read.await.unwrap().get::<_, String>(0), "ŁukaszŁukasz");
}

#[tokio::test]
async fn connections_to_a_server_that_takes_no_writes_are_closed() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    let handle = Store::Postgres(database.clone());
    let write = "INSERT INTO accounts (provider, username, created_at) VALUES ('p', 'u', 0)";
    for is_probed in [true, false] {
        let idle = (
            database.session().await.unwrap(),
            database.session().await.unwrap(),
        );
        for session in [&idle.0, &idle.1] {
            let set = "SET default_transaction_read_only = on";
            session.execute(set, &[]).await.unwrap();
        }
        let (idle, in_use) = idle;
        drop(idle);
        let error = match is_probed {
            true => handle.probe().await.unwrap_err(),
            false => handle.execute(write, Vec::new()).await.unwrap_err(),
        };
        assert!(error.in_short().contains("read-only"), "{error:?}");
        assert_eq!(error.to_string() == "the database is read-only", is_probed);
        // It is read-only, too.
        drop(in_use);
        assert_eq!(database.statistics().pool.idle, 0);
        assert_eq!(database.counters().server() % 2, 1);
        handle
            .execute(write, Vec::new())
            .await
            .map_or_else(|error| assert!(error.is_duplicate()), drop);
        handle.probe().await.unwrap();
        assert_eq!(database.counters().server() % 2, 0);
    }
    let counted = handle.row::<(i64,)>("SELECT count(*) FROM accounts", Vec::new());
    assert_eq!(counted.await.unwrap(), Some((1,)));
}

/// Otherwise each turn would read a table of any size.
#[tokio::test]
async fn a_deletion_of_some_rows_reads_no_others() {
    let test = TestStore::postgres();
    let store = test.open().await;
    test.administer(
        "INSERT INTO rate_limits (key, full_at) SELECT sha256(n::text::bytea), n FROM generate_series(1, 20000) AS n; \
         ANALYZE rate_limits",
    );
    let (of, old) = (("rate_limits", "key"), "full_at < 30000 ORDER BY full_at");
    let explain = format!("EXPLAIN {}", store.deletion(of, old, 2_000));
    let plan: Vec<(String,)> = store.rows(&explain, Vec::new()).await.unwrap();
    assert!(
        plan.iter().all(|(line,)| !line.contains("Seq Scan")),
        "{plan:?}"
    );
    assert_eq!(
        store
            .delete_some(of, (old, Vec::new()), 2_000)
            .await
            .unwrap(),
        2_000
    );
    let left = "SELECT count(*), min(full_at) FROM rate_limits";
    let left = store.row::<(i64, i64)>(left, Vec::new()).await.unwrap();
    assert_eq!(left, Some((18_000, 2_001)));
}

/// Each text stays prepared while its connection lives.
#[tokio::test]
async fn turns_and_reports_at_any_time_prepare_one_statement() {
    let store = TestStore::postgres();
    let alone = PostgresSettings {
        pool_size: 1,
        ..settings()
    };
    let address = server(&store);
    let database = PostgresDatabase::open(&address, &alone, PROGRAM);
    let database = database.await.unwrap();
    let store = Store::Postgres(database.clone());
    for millis in 1..=3 {
        let at = Timestamp::from_millis(millis);
        audit::delete_before(&store, at).await.unwrap();
        idempotency::delete_old(&store, at).await.unwrap();
        let of = usage::OfPaths {
            since: millis,
            version: Some("v1"),
            application: Some(millis),
            ..usage::OfPaths::default()
        };
        usage::read_path_users(&store, &of, 10).await.unwrap();
    }
    let session = database.session().await.unwrap();
    let prepared = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE $1";
    for (text, number) in [("DELETE FROM %", 2), ("%FROM usage_paths%", 1)] {
        let row = session.query_one(prepared, &[&text]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), number, "{text}");
    }
}
