//! While the store is unavailable, the programs serve cached data and reject everything else in time. No login is left
//! half done.

use std::{
    collections::BTreeMap,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use end_to_end::{
    crowd::{Crowd, Damage, Outcome, Record, Sent},
    logins::{check, credential, log_in_by_polling},
    namespaces,
    postgres::{PostgresServer, Session},
    program::{Program, Running, output_text},
    raw_connection::request,
    signed_client::{SignedClient, fetch, http_client_without_keep_alive},
    stack::{Stack, StackBuilder},
    store::{Front, StoreKind},
    waiting::{until, until_within},
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use url::Url;

/// Short timeouts, for short tests, in which two processors that many tests share still serve.
const QUICK: &str = "[postgres]\nwait_seconds = 5\nstatement_seconds = 5\npool_size = 5";
/// Limit for a response: a pool connection, a statement, and an allowance for two processors that many tests share.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Limit for a program's recovery, once the store is available again, with the same allowance.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long requests may fail after that.
const DAMAGE: Duration = Duration::from_secs(12);

fn quick() -> StackBuilder {
    Stack::builder().multi().gateway(QUICK).backends(QUICK)
}

#[tokio::test]
async fn cached_data_is_served_while_the_store_is_unavailable() {
    let mut stack = quick().start().await;
    let known = stack.client_of(&stack.create_application("known", &[]));
    let other = stack.client_of(&stack.create_application("other", &[]));
    let login = log_in_by_polling(&known, "ada").await;
    restart_feeds(&mut stack).await;
    let user = || async {
        let call = known.get("/user").authorization(credential(&login));
        call.send().await
    };
    user().await.ok();
    stack.store().make_unavailable();
    user().await.ok();
    // More concurrent calls than pool connections; none of them may keep its connection.
    let mut calls = JoinSet::new();
    for number in 0..40 {
        let client = if number % 2 == 0 { &known } else { &other }.clone();
        calls.spawn(async move {
            let start = Instant::now();
            let response = client.post("/login").signed().send().await;
            response.problem(503, "store_unavailable");
            start.elapsed()
        });
    }
    let longest = calls.join_all().await.into_iter().max().unwrap();
    assert!(longest < ANSWER_TIMEOUT, "{longest:?}");
    // A problem, too, so it says when to ask again.
    let ready = format!("http://{}/readyz", stack.addresses().v1);
    fetch(&ready).await.problem(503, "store_unavailable");
    assert_outage_is_logged_once(&stack).await;
    // Before the store is available again: an outage between two reads of the feed remains unnoticed.
    for program in [Program::Gateway, Program::V1] {
        stack.log_with(program, "change feed is lost").await;
    }
    user().await.ok();
    stack.store().make_available();
    until_within(RECOVERY_TIMEOUT, "a login to begin", || {
        login_begins(&other)
    })
    .await;
    log_in_by_polling(&other, "grace").await;
    user().await.ok();
    for program in [Program::Gateway, Program::V1] {
        stack.log_with(program, "change feed is restored").await;
    }
}

#[tokio::test]
async fn cached_data_is_served_though_the_store_is_lost_again_and_again() {
    let mut stack = quick().start().await;
    let client = stack.client_of(&stack.create_application("known", &[]));
    let login = log_in_by_polling(&client, "ada").await;
    restart_feeds(&mut stack).await;
    let call = client.get("/user").authorization(credential(&login));
    call.clone().send().await.ok();
    // No request comes between the outages, so what is cached is read again only after the last one.
    for _ in 0..2 {
        stack
            .interrupt_store(&[Program::Gateway, Program::V1])
            .await;
    }
    stack.store().make_unavailable();
    for _ in 0..3 {
        call.clone().send().await.ok();
    }
    let begun = client.post("/login").signed().send().await;
    begun.problem(503, "store_unavailable");
    stack.store().make_available();
    until_within(RECOVERY_TIMEOUT, "a login to begin", || {
        login_begins(&client)
    })
    .await;
    call.send().await.ok();
}

/// Beside the access lines of requests that failed because of the store, with the cause, each program has one line about
/// them all.
async fn assert_outage_is_logged_once(stack: &Stack) {
    for _ in 0..3 {
        let unknown = "Acme-X-App: AAAABBBBCCCCDDDDEEEEFFFF";
        let mut connection = stack.raw().await;
        connection
            .send(&request("GET", "/unknown", &[unknown], b""))
            .await;
        assert_eq!(connection.response().await.unwrap().status, 503);
    }
    for (program, failed) in [
        (Program::Gateway, "answered GET /unknown with 503"),
        (Program::V1, "answered POST /login with 503"),
    ] {
        let is_access = |line: &&str| line.contains(failed);
        let log = until("the access lines of failed requests", || async {
            let log = stack.log(program);
            (log.lines().filter(is_access).count() >= 3).then_some(log)
        })
        .await;
        let has_cause = |line: &str| line.contains(" error=the store is unavailable cause=");
        assert!(log.lines().filter(is_access).all(has_cause), "{log}");
        // Of this process: the one before may have had a store that was slow.
        let (_, log) = log.rsplit_once("is listening").unwrap();
        let errors: Vec<_> = log.lines().filter(|line| line.contains("ERROR")).collect();
        assert_eq!(errors.len(), 1, "{program}: {errors:?}");
        assert!(errors[0].contains("requests failed"), "{errors:?}");
    }
}

/// Restarts gateway and backend: change feeds that begin now do not report what was created before. A report on its way
/// could keep the next call's data out of the caches.
async fn restart_feeds(stack: &mut Stack) {
    for program in [Program::V1, Program::Gateway] {
        stack.restart(program).await;
    }
}

pub(crate) async fn login_begins(client: &SignedClient) -> Option<()> {
    let response = client.post("/login").signed().send().await;
    (response.status == 200).then_some(())
}

const WHY: &str = "the test stops a server of its own, whichever store the run uses";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_stopped_under_load_and_started() {
    if StoreKind::Postgres.is_chosen(WHY) {
        assert_outage_is_survived(PostgresServer::stop, PostgresServer::start_again).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_killed_under_load_and_started() {
    if StoreKind::Postgres.is_chosen(WHY) {
        assert_outage_is_survived(PostgresServer::kill, PostgresServer::start_again).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_frozen_under_load_and_resumed() {
    if StoreKind::Postgres.is_chosen(WHY) {
        assert_outage_is_survived(PostgresServer::freeze, PostgresServer::thaw).await;
    }
}

async fn assert_outage_is_survived(harm: fn(&PostgresServer), heal: fn(&PostgresServer)) {
    let server = Arc::new(PostgresServer::start());
    let stack = quick().on_server(&server).start().await;
    let application = stack.create_application("one", &[]);
    let client = stack.client_of(&application);
    let steady = Steady::start(&client).await;
    let crowd = Crowd::start(&stack, 6, Some(&application));
    crowd.wait_for_new_logins().await;
    let mut damage = Vec::new();
    // Twice, because the first outage may use up what the second one would need.
    for _ in 0..2 {
        let from = Instant::now();
        run_blocking(&server, harm).await;
        until("the outage to be noticed", || login_is_rejected(&client)).await;
        run_blocking(&server, heal).await;
        until_within(RECOVERY_TIMEOUT, "a login to begin", || {
            login_begins(&client)
        })
        .await;
        let until = Instant::now() + DAMAGE;
        damage.push(Damage { from, until });
        crowd.wait_for_new_logins().await;
    }
    let record = crowd.finish().await;
    // What is cached is served throughout.
    let lost = steady.stop().await.failed_outside(&[]);
    assert!(lost.is_empty(), "{lost:#?}");
    let lost = record.failed_outside(&damage);
    assert!(lost.is_empty(), "{lost:#?}");
    failures_are_clear(&record);
    record.assert_matches_store(stack.store(), &[Steady::USER]);
    interrupted_logins_are_clear(&stack, &client, &record).await;
    connections_are_bounded(&server).await;
}

/// Runs `work` while the other tasks continue.
async fn run_blocking(server: &Arc<PostgresServer>, work: fn(&PostgresServer)) {
    let server = Arc::clone(server);
    spawn_blocking(move || work(&server)).await.unwrap();
}

async fn login_is_rejected(client: &SignedClient) -> Option<()> {
    let start = Instant::now();
    let response = client.post("/login").signed().send().await;
    assert!(start.elapsed() < ANSWER_TIMEOUT, "{:?}", start.elapsed());
    if response.status == 200 {
        return None;
    }
    response.problem(503, "store_unavailable");
    Some(())
}

/// A client with a cached application and credential, which calls all the time.
pub(crate) struct Steady {
    is_stopping: Arc<AtomicBool>,
    calls: JoinHandle<Record>,
}

impl Steady {
    pub(crate) const USER: &str = "ada";

    pub(crate) async fn start(client: &SignedClient) -> Self {
        let login = log_in_by_polling(client, Self::USER).await;
        let is_stopping = Arc::new(AtomicBool::new(false));
        let (client, seen) = (client.clone(), Arc::clone(&is_stopping));
        let calls = async move {
            let mut record = Record::default();
            while !seen.load(Ordering::Relaxed) {
                let start = Instant::now();
                let call = client.get("/user").authorization(credential(&login));
                let outcome = match call.send().await {
                    response if response.status == 200 => Outcome::Done,
                    response => Outcome::Rejected(response.status.as_u16(), response.text()),
                };
                record.sent.push(Sent {
                    what: "steady",
                    start,
                    end: Instant::now(),
                    outcome,
                });
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            record
        };
        Self {
            is_stopping,
            calls: tokio::spawn(calls),
        }
    }

    pub(crate) async fn stop(self) -> Record {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.calls.await.unwrap()
    }
}

/// Every rejection has a clear reason, and every response comes in time.
fn failures_are_clear(record: &Record) {
    rejections_are_clear(record);
    for sent in &record.sent {
        let waits = if sent.what == "check" { 5 } else { 0 };
        let longest = ANSWER_TIMEOUT + Duration::from_secs(waits);
        assert!(sent.duration() < longest, "{sent}");
    }
}

/// Every rejection has a clear reason.
pub(crate) fn rejections_are_clear(record: &Record) {
    for sent in record.failed() {
        match &sent.outcome {
            Outcome::Rejected(503, text) if text.contains("store_unavailable") => {}
            // `interrupted_logins_are_clear` checks the outcome.
            Outcome::Rejected(200, text) if sent.what == "outcome" && text.contains("failed") => {}
            _ => panic!("{sent}"),
        }
    }
}

/// An interrupted login can still be completed, or has an outcome, or gets one at the callback's deadline.
async fn interrupted_logins_are_clear(stack: &Stack, client: &SignedClient, record: &Record) {
    let store = stack.store();
    // The deadline has passed now.
    store.query("UPDATE logins SET claimed_until = 0 WHERE status = 'exchanging'");
    let rows = store.query("SELECT encode(state_hash, 'hex'), status FROM logins");
    let values: Vec<_> = rows.values().collect();
    let rows: BTreeMap<_, _> = values.chunks(2).map(|row| (row[0], row[1])).collect();
    for token in record
        .interrupted
        .iter()
        .filter_map(|login| login.token.as_ref())
    {
        let hash = hex::encode(Sha256::digest(token));
        let checked: Value = check(client, token).await;
        let expected = match rows[&*hash] {
            "exchanging" => "failed",
            status => status,
        };
        assert_eq!(checked["status"], expected, "{checked}");
    }
}

/// Each of the three programs has its pool and one connection for the change feed. A server that was frozen notices late
/// which ones are closed.
async fn connections_are_bounded(server: &PostgresServer) {
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'signpost_test_%'";
    let session = Session::open(server.address());
    until("connections within the bound", || async {
        (session.query(connections).number() <= 3 * (5 + 1)).then_some(())
    })
    .await;
}

/// The part of a database's address that is its name.
fn database_of(stack: &Stack) -> String {
    let address: Url = stack.store().address().parse().unwrap();
    address.path().trim_start_matches('/').to_owned()
}

#[tokio::test]
async fn a_database_that_became_read_only_is_not_ready_until_it_can_be_written_again() {
    if !StoreKind::Postgres.is_chosen("only a server can become read-only for its clients") {
        return;
    }
    if matches!(Front::chosen(), Some(Front::PgBouncer(_))) {
        println!("a pooler keeps connections that were opened while the database was read-only");
        return;
    }
    let stack = quick().start().await;
    let client = stack.client_of(&stack.create_application("known", &[]));
    log_in_by_polling(&client, "ada").await;
    let name = database_of(&stack);
    let store = stack.store();
    store.query(&format!(
        "ALTER DATABASE {name} SET default_transaction_read_only = on"
    ));
    // Connections that are open can still write; after a failover there are none.
    store.query(&format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid()"
    ));
    let addresses = stack.addresses();
    let ready = |address| async move {
        let response = fetch(&format!("http://{address}/readyz")).await;
        (response.status.as_u16(), response.text())
    };
    let (login, gateway) = (addresses.v1, addresses.management);
    until("the login service not to be ready", || async {
        let (status, text) = ready(login).await;
        (status == 503 && text.contains("\"the database is read-only\"")).then_some(())
    })
    .await;
    until("the gateway to say so", || async {
        let (status, text) = ready(gateway).await;
        let expected = "ready, but the database is read-only";
        (status == 200 && text.starts_with(expected)).then_some(())
    })
    .await;
    let begun = client.post("/login").signed().send().await;
    begun.problem(503, "store_unavailable");
    store.query(&format!(
        "BEGIN READ WRITE; ALTER DATABASE {name} RESET default_transaction_read_only; COMMIT"
    ));
    until("the programs to be ready again", || async {
        let (login, gateway) = (ready(login).await.0, ready(gateway).await.1);
        (login == 200 && gateway == "ready\n").then_some(())
    })
    .await;
    until_within(RECOVERY_TIMEOUT, "a login to begin", || {
        login_begins(&client)
    })
    .await;
    log_in_by_polling(&client, "grace").await;
}

#[tokio::test]
async fn a_database_that_is_not_in_utf8_is_refused_by_check_and_start() {
    if !StoreKind::Postgres.is_chosen("SQLite has no other encoding") {
        return;
    }
    let files = Stack::builder().multi().write_files();
    let mut address: Url = files.store.address().parse().unwrap();
    let name = format!("{}_latin", address.path().trim_start_matches('/'));
    files.store.query(&format!(
        "CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    ));
    address.set_path(&name);
    for program in [Program::Gateway, Program::V1] {
        let config = files.config(program);
        let written = std::fs::read_to_string(&config).unwrap();
        let latin = written.replace(&files.store.address(), address.as_str());
        assert_ne!(written, latin);
        std::fs::write(&config, latin).unwrap();
        let start: &[&str] = match program {
            Program::Gateway => &["run", "--config", &config],
            _ => &["--config", &config],
        };
        for arguments in [&["check", "--config", &config], start] {
            let output = program.run(files.path(), arguments);
            let text = output_text(&output);
            assert_eq!(output.status.code(), Some(1), "{text}");
            assert!(
                text.contains("LATIN1") && text.contains("ENCODING 'UTF8'"),
                "{text}"
            );
        }
    }
    let copy = [
        "store",
        "copy",
        "--from",
        "sqlite:none.db",
        "--to",
        address.as_str(),
    ];
    std::fs::write(files.path().join("none.db"), "").unwrap();
    let output = Program::Gateway.run(files.path(), &copy);
    assert_eq!(output.status.code(), Some(1), "{}", output_text(&output));
    files
        .store
        .query(&format!("DROP DATABASE {name} WITH (FORCE)"));
}

/// The disk is one of memory, which only the program sees.
#[tokio::test]
async fn a_login_service_whose_disk_is_full_is_not_ready_until_there_is_room() {
    if !StoreKind::Sqlite.is_chosen("a server's disk is its own matter")
        || !namespaces::may_be_created(&["--mount"])
    {
        return;
    }
    let store = "store = \"sqlite:disk/signpost.db\"";
    let files = Stack::builder().backends(store).write_files();
    let disk = files.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = "mount -t tmpfs -o size=2m none disk && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]);
    command.arg(Program::V1.path()).current_dir(files.path());
    let arguments = ["--config".to_owned(), files.config(Program::V1)];
    let running = Running::start_as(Program::V1.into(), command, files.path(), &arguments);
    let (client, url) = (
        http_client_without_keep_alive(),
        format!("http://{}/readyz", files.addresses.v1),
    );
    let becomes = |status: u16, text: &'static str| {
        let (client, url) = (client.clone(), url.clone());
        until(text, move || {
            let (client, url) = (client.clone(), url.clone());
            async move {
                let response = client.get(&url).send().await.ok()?;
                let is_status = response.status() == status;
                (is_status && response.text().await.ok()?.contains(text)).then_some(())
            }
        })
    };
    becomes(200, "\"ready\"").await;
    let filler = format!("/proc/{}/root{}/filler", running.id(), disk.display());
    let written = std::fs::write(&filler, vec![0; 4 << 20]);
    written.expect_err("the disk has 2 MiB");
    becomes(503, "\"the disk of the database is full\"").await;
    std::fs::remove_file(&filler).unwrap();
    becomes(200, "\"ready\"").await;
}
