//! What is remembered serves on while the store is away, everything else is told so in time; nothing is half done.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use end_to_end::{
    crowd::{Crowd, Damage, Outcome, Record, Sent},
    logins::{check, credential, log_in_by_polling},
    postgres::{PostgresServer, Session},
    signed_client::SignedClient,
    stack::{Stack, StackBuilder},
    store::StoreKind,
    waiting::{until, within},
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};

/// As short as can be configured, so that the tests are.
const QUICK: &str =
    "[postgres]\nconnect_seconds = 1\nwait_seconds = 1\nstatement_seconds = 1\npool_size = 5";
/// Waiting for a connection, a statement, and two processors that many tests share.
const IN_TIME: Duration = Duration::from_secs(4);
/// The longest that a program may take to be back when the store is.
const BACK: Duration = Duration::from_secs(2);

fn quick() -> StackBuilder {
    Stack::builder().multi().gateway(QUICK).backends(QUICK)
}

#[tokio::test]
async fn what_is_remembered_serves_while_the_store_is_away() {
    let stack = quick().start().await;
    let known = stack.client_of(&stack.create_application("known", &[]));
    let other = stack.client_of(&stack.create_application("other", &[]));
    let login = log_in_by_polling(&known, "ada").await;
    let user = || async {
        let call = known.get("/user").authorization(credential(&login));
        call.send().await
    };
    user().await.ok();
    stack.store().make_unavailable();
    user().await.ok();
    // More at once than there are connections, and none of them keeps one.
    let mut calls = JoinSet::new();
    for number in 0..40 {
        let client = if number % 2 == 0 { &known } else { &other }.clone();
        calls.spawn(async move {
            let start = Instant::now();
            let answer = client.post("/login").signed().send().await;
            answer.problem(503, "store_unavailable");
            start.elapsed()
        });
    }
    let longest = calls.join_all().await.into_iter().max().unwrap();
    assert!(longest < IN_TIME, "{longest:?}");
    user().await.ok();
    stack.store().make_available();
    let back = within(BACK, || begins(&other)).await;
    assert!(back.is_some(), "not back after {BACK:?}");
    log_in_by_polling(&other, "grace").await;
    user().await.ok();
}

async fn begins(client: &SignedClient) -> Option<()> {
    let answer = client.post("/login").signed().send().await;
    (answer.status == 200).then_some(())
}

const WHY: &str = "a server of the test's own is stopped, whatever the run is on";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_stopped_under_load_and_started() {
    if StoreKind::Postgres.is_chosen(WHY) {
        rides_out(PostgresServer::stop, PostgresServer::start_again).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_killed_under_load_and_started() {
    if StoreKind::Postgres.is_chosen(WHY) {
        rides_out(PostgresServer::kill, PostgresServer::start_again).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_frozen_under_load_and_goes_on() {
    if StoreKind::Postgres.is_chosen(WHY) {
        rides_out(PostgresServer::freeze, PostgresServer::thaw).await;
    }
}

async fn rides_out(harm: fn(&PostgresServer), heal: fn(&PostgresServer)) {
    let server = Arc::new(PostgresServer::start());
    let stack = quick().on_server(&server).start().await;
    let application = stack.create_application("one", &[]);
    let client = stack.client_of(&application);
    let steady = Steady::start(&client).await;
    let crowd = Crowd::gather(&stack, 6, Some(&application));
    crowd.goes_on().await;
    let (mut damage, mut returns) = (Vec::new(), Vec::new());
    // Twice: what the first time uses up is not there the second time.
    for _ in 0..2 {
        let from = Instant::now();
        on_the_side(&server, harm).await;
        until("the store to be missed", || is_refused(&client)).await;
        let returning = Instant::now();
        on_the_side(&server, heal).await;
        let back = within(BACK, || begins(&client)).await;
        assert!(back.is_some(), "not back after {BACK:?}");
        let until = Instant::now() + BACK;
        damage.push(Damage { from, until });
        // What was remembered is read anew then, and many want to read at once.
        let from = returning;
        returns.push(Damage { from, until });
        crowd.goes_on().await;
    }
    let record = crowd.disperse().await;
    let lost = steady.stop().await.failed_beyond(&returns);
    assert!(lost.is_empty(), "{lost:#?}");
    let lost = record.failed_beyond(&damage);
    assert!(lost.is_empty(), "{lost:#?}");
    failures_are_clear(&record);
    record.agrees_with(stack.store(), &[Steady::USER]);
    interrupted_logins_are_clear(&stack, &client, &record).await;
    connections_are_bounded(&server);
}

/// Takes a while, in which the others go on.
async fn on_the_side(server: &Arc<PostgresServer>, work: fn(&PostgresServer)) {
    let server = Arc::clone(server);
    spawn_blocking(move || work(&server)).await.unwrap();
}

async fn is_refused(client: &SignedClient) -> Option<()> {
    let start = Instant::now();
    let answer = client.post("/login").signed().send().await;
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    if answer.status == 200 {
        return None;
    }
    answer.problem(503, "store_unavailable");
    Some(())
}

/// Somebody whose application and credential are remembered, and who calls all the time.
struct Steady {
    is_over: Arc<AtomicBool>,
    calls: JoinHandle<Record>,
}

impl Steady {
    const USER: &str = "ada";

    async fn start(client: &SignedClient) -> Self {
        let login = log_in_by_polling(client, Self::USER).await;
        let is_over = Arc::new(AtomicBool::new(false));
        let (client, seen) = (client.clone(), Arc::clone(&is_over));
        let calls = async move {
            let mut record = Record::default();
            while !seen.load(Ordering::Relaxed) {
                let start = Instant::now();
                let call = client.get("/user").authorization(credential(&login));
                let outcome = match call.send().await {
                    answer if answer.status == 200 => Outcome::Done,
                    answer => Outcome::Refused(answer.status.as_u16(), answer.text()),
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
            is_over,
            calls: tokio::spawn(calls),
        }
    }

    async fn stop(self) -> Record {
        self.is_over.store(true, Ordering::Relaxed);
        self.calls.await.unwrap()
    }
}

/// Whoever is refused is told why, and in time.
fn failures_are_clear(record: &Record) {
    for sent in record.failed() {
        match &sent.outcome {
            Outcome::Refused(503, text) if text.contains("store_unavailable") => {}
            // What became of it: looked at below.
            Outcome::Refused(200, text) if sent.what == "outcome" && text.contains("failed") => {}
            _ => panic!("{sent}"),
        }
    }
    for sent in &record.sent {
        let waits = if sent.what == "check" { 5 } else { 0 };
        let longest = IN_TIME + Duration::from_secs(waits);
        assert!(sent.duration() < longest, "{sent}");
    }
}

/// A login that something went wrong with can still be completed, or has an outcome, or gets one when the time that a
/// callback may take is over.
async fn interrupted_logins_are_clear(stack: &Stack, client: &SignedClient, record: &Record) {
    let store = stack.store();
    // That time is over now.
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
        let told: Value = check(client, token).await;
        let expected = match rows[&*hash] {
            "exchanging" => "failed",
            status => status,
        };
        assert_eq!(told["status"], expected, "{told}");
    }
}

/// Of three programs, each with its pool and the connection that listens.
fn connections_are_bounded(server: &PostgresServer) {
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'signpost_test_%'";
    let connections = Session::open(server.address()).query(connections).number();
    assert!(connections <= 3 * (5 + 1), "{connections}");
}
