//! Kills of the gateway and of Postgres while the management API changes applications: no change without its row of the
//! audit, no row without its change, and a repeated idempotency key never makes a second change.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use end_to_end::{
    postgres::PostgresServer,
    program::Program,
    recording_backend::RecordingBackend,
    stack::{Stack, StackBuilder},
    store::StoreKind,
    waiting::until,
};
use reqwest::{Client, StatusCode, header};
use serde_json::{Value, json};
use tokio::task::{JoinSet, spawn_blocking};

const KILLS: usize = 25;
/// Kills of Postgres, each of which takes a second or two.
const STORE_KILLS: u64 = 12;
const CALLERS: usize = 4;
/// Limit of the responses that are awaited before a kill, and of the time from then to the kill.
const MAX_RESPONSES: u64 = 8;
const LONGEST_MICROS: u64 = 20_000;

/// A change: its path, its key, and what it sends.
#[derive(Clone, Debug)]
struct Call {
    path: String,
    key: String,
    body: Value,
}

/// An operator's script: it repeats each call with its key until it knows the outcome.
struct Caller {
    number: usize,
    http: Client,
    origin: String,
    token: String,
    /// The call that is not answered yet.
    pending: Option<Call>,
    /// The application of the last response, and its revision.
    app: Option<(String, i64)>,
    calls: usize,
    counts: Counts,
    /// The number of responses to all callers.
    responses: Arc<AtomicU64>,
}

/// What came of the calls.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    created: i64,
    updated: i64,
    /// Creations and updates whose outcome only the store knows.
    unfinished: [i64; 2],
    /// Responses that were lost by a kill, and that the repetition got.
    replayed: i64,
}

impl Caller {
    /// The next call: creations and updates in turn.
    fn next(&mut self) -> Call {
        self.calls += 1;
        let name = format!("app {}-{}", self.number, self.calls);
        let (path, body) = match &self.app {
            Some((ident, revision)) if self.calls.is_multiple_of(2) => (
                format!("/api/v1/apps/{ident}/update"),
                json!({ "name": name, "revision": revision }),
            ),
            _ => ("/api/v1/apps/create".to_owned(), json!({ "name": name })),
        };
        Call {
            path,
            key: format!("{}-{}", self.number, self.calls),
            body,
        }
    }

    async fn send(&self, call: &Call) -> reqwest::Result<(StatusCode, bool, Value)> {
        let request = self
            .http
            .post(format!("{}{}", self.origin, call.path))
            .bearer_auth(&self.token)
            .header("idempotency-key", &call.key)
            .json(&call.body);
        let response = request.send().await?;
        let is_replayed = response.headers().contains_key("idempotency-replayed");
        let status = response.status();
        let body = response.bytes().await?;
        Ok((status, is_replayed, serde_json::from_slice(&body).unwrap()))
    }

    /// Calls until the gateway is killed.
    async fn run(mut self) -> Self {
        // No connection of a killed process.
        self.http = Client::new();
        loop {
            let call = match self.pending.take() {
                Some(call) => call,
                None => self.next(),
            };
            let is_creation = call.path.ends_with("create");
            let sent = self.send(&call).await;
            self.responses
                .fetch_add(u64::from(sent.is_ok()), Ordering::Relaxed);
            match sent {
                Ok((StatusCode::CREATED | StatusCode::OK, is_replayed, body)) => {
                    let app = if is_creation { &body["app"] } else { &body };
                    self.app = Some((
                        app["ident"].as_str().unwrap().to_owned(),
                        app["revision"].as_i64().unwrap(),
                    ));
                    assert_eq!(app["name"], call.body["name"]);
                    self.counts.created += i64::from(is_creation);
                    self.counts.updated += i64::from(!is_creation);
                    self.counts.replayed += i64::from(is_replayed);
                    if let Ok((_, is_replayed, again)) = self.send(&call).await {
                        assert!(is_replayed && again == body, "{call:?} {again}");
                    }
                }
                Ok((StatusCode::CONFLICT, _, body)) => {
                    assert_eq!(body["code"], "idempotency_unfinished", "{call:?}");
                    self.counts.unfinished[usize::from(!is_creation)] += 1;
                    self.app = None;
                }
                Ok((status, _, body)) => panic!("{call:?}: {status} {body}"),
                Err(_) => {
                    self.pending = Some(call);
                    return self;
                }
            }
        }
    }
}

/// A number generator that needs no crate: the moments only have to differ.
fn next_random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// An installation with the API, and an operator's token.
async fn start(stack: StackBuilder) -> (Stack, String) {
    let stack = stack.multi().gateway("[management.api]").start().await;
    let token = stack.create_token("operator");
    (stack, token)
}

async fn each_change_has_its_row(stack: &Stack) {
    let count = |query: &str| stack.store().query(query).number();
    let audited = "SELECT count(*) FROM audit WHERE action LIKE 'app.%'";
    let revisions = "SELECT CAST(coalesce(sum(revision), 0) AS BIGINT) FROM applications";
    until("as many rows of the audit as changes", || {
        let is_equal = count(audited) == count(revisions);
        async move { is_equal.then_some(()) }
    })
    .await;
}

/// Imports three applications and changes one of them, again and again, until a call after the first import fails. Counts the
/// imports.
async fn import_and_update(origin: String, token: String, name: String, imports: Arc<AtomicU64>) {
    let http = Client::new();
    let post = |path: String, kind: &str, body: String| {
        let request = http.post(format!("{origin}/api/v1/apps/{path}"));
        let request = request.header(header::CONTENT_TYPE, kind).body(body);
        let request = request.bearer_auth(&token);
        async {
            request
                .send()
                .await
                .is_ok_and(|response| response.status().is_success())
        }
    };
    let mut has_imported = false;
    for round in 0.. {
        let ident = |number: usize| format!("{name}-{round}-{number}");
        let key = "4283fefc63f0cd0e873a0000c6d07ef7";
        let lines = (0..3).map(|number| format!("{},{key},App\n", ident(number)));
        let file = format!("ident,key,name\n{}", lines.collect::<String>());
        let update = json!({ "name": "New", "revision": 1 }).to_string();
        if post("import".to_owned(), "text/csv", file).await {
            has_imported = true;
            imports.fetch_add(1, Ordering::Relaxed);
        } else if has_imported {
            return;
        } else {
            // A connection to the server that was killed before.
            continue;
        }
        if !post(format!("{}/update", ident(1)), "application/json", update).await {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_kill_of_the_store_parts_a_change_from_its_row() {
    if !StoreKind::Postgres.is_chosen("SQLite ends with the gateway") {
        return;
    }
    let (server, backend) = (
        Arc::new(PostgresServer::start()),
        RecordingBackend::start().await,
    );
    let (stack, token) = start(Stack::builder().in_front_of(&backend).on_server(&server)).await;
    let origin = format!("http://{}", stack.addresses().management);
    let (mut state, imports) = (1, Arc::new(AtomicU64::new(0)));
    for kill in 0..STORE_KILLS {
        let (name, before) = (format!("app-{kill}"), imports.load(Ordering::Relaxed));
        let counter = Arc::clone(&imports);
        let caller = import_and_update(origin.clone(), token.clone(), name, counter);
        let caller = tokio::spawn(caller);
        // Every second kill comes after a second import, also on a slow machine.
        until("the first imports", || async {
            (imports.load(Ordering::Relaxed) > before + kill % 2).then_some(())
        })
        .await;
        let moment = Duration::from_micros(next_random(&mut state) % 200_000);
        tokio::time::sleep(moment).await;
        let killed = Arc::clone(&server);
        spawn_blocking(move || killed.kill()).await.unwrap();
        caller.await.unwrap();
        let restarted = Arc::clone(&server);
        spawn_blocking(move || restarted.start_again())
            .await
            .unwrap();
        until("the API to reach the store", || async {
            let whoami = Client::new().get(format!("{origin}/api/v1/whoami"));
            let response = whoami.bearer_auth(&token).send().await.ok()?;
            response.status().is_success().then_some(())
        })
        .await;
        each_change_has_its_row(&stack).await;
    }
    let imports = imports.load(Ordering::Relaxed);
    assert!(imports > STORE_KILLS, "{imports}");
}

#[tokio::test]
async fn no_kill_parts_a_change_from_its_row_or_lets_a_repeated_key_change_twice() {
    let backend = RecordingBackend::start().await;
    let (mut stack, _) = start(Stack::builder().in_front_of(&backend)).await;
    let origin = format!("http://{}", stack.addresses().management);
    let responses = Arc::new(AtomicU64::new(0));
    let mut callers: Vec<_> = (0..CALLERS)
        .map(|number| Caller {
            number,
            http: Client::new(),
            origin: origin.clone(),
            // Calls with one token wait for each other.
            token: stack.create_named_token(&format!("caller {number}"), "operator"),
            pending: None,
            app: None,
            calls: 0,
            counts: Counts::default(),
            responses: Arc::clone(&responses),
        })
        .collect();
    let mut state = 1;
    for _ in 0..KILLS {
        let mut running = JoinSet::new();
        callers.drain(..).for_each(|caller| {
            running.spawn(caller.run());
        });
        let awaited = responses.load(Ordering::Relaxed) + next_random(&mut state) % MAX_RESPONSES;
        until("some responses", || {
            let is_reached = responses.load(Ordering::Relaxed) >= awaited;
            async move { is_reached.then_some(()) }
        })
        .await;
        let moment = Duration::from_micros(next_random(&mut state) % LONGEST_MICROS);
        tokio::time::sleep(moment).await;
        stack.kill(Program::Gateway);
        callers = running.join_all().await;
        stack.restart(Program::Gateway).await;
    }

    let count = |query: &str| stack.store().query(query).number();
    // A request that was sent before the kill may be in the store only now.
    each_change_has_its_row(&stack).await;
    let of =
        |number: fn(&Counts) -> i64| callers.iter().map(|one| number(&one.counts)).sum::<i64>();
    let creations = count("SELECT count(*) FROM applications");
    let updates = count("SELECT count(*) FROM audit WHERE action = 'app.update'");
    // The last call of each caller is pending.
    let last = i64::try_from(CALLERS).unwrap();
    let (created, unknown) = (of(|one| one.created), of(|one| one.unfinished[0]));
    let case = format!(
        "{:?}",
        callers.iter().map(|one| one.counts).collect::<Vec<_>>()
    );
    assert!(
        (created..=created + unknown + last).contains(&creations),
        "{creations} {case}"
    );
    let (updated, unknown) = (of(|one| one.updated), of(|one| one.unfinished[1]));
    assert!(
        (updated..=updated + unknown + last).contains(&updates),
        "{updates} {case}"
    );
    // Each call has a name of its own.
    let twice = "SELECT count(*) FROM (SELECT name FROM applications GROUP BY name HAVING count(*) > 1) AS twice";
    assert_eq!(count(twice), 0, "{case}");
    let interrupted = of(|one| one.unfinished[0] + one.unfinished[1] + one.replayed);
    assert!(interrupted > 0 && created > 0 && updated > 0, "{case}");
}
