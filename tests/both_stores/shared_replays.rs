//! The replay memory of all gateways on one store: a signature is accepted once by any number of them. CONTRACT 3.

use std::{
    collections::HashMap,
    env,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

use end_to_end::{
    metrics::Scrape,
    postgres::PostgresServer,
    program::Program,
    recording_backend::RecordingBackend,
    signed_client::{SignedClient, fetch, http_client},
    stack::{Stack, StackBuilder},
    store::StoreKind,
    waiting::until,
};
use reqwest::{Client, StatusCode};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{JoinSet, spawn_blocking},
};

/// 409 the second time, at any gateway.
const SHARED: &str = "[sign]\nreplay = 'reject'\nreplay_scope = 'all'\nreplay_entries = 1_000_000";
const GATEWAYS: usize = 4;
const CLIENTS: usize = 16;
/// Kills of a gateway; after every second one, the store is killed.
const KILLS: usize = 4;

fn gateways(count: usize, toml: &str, backend: SocketAddr) -> StackBuilder {
    let builder = Stack::builder().in_front_of_address(backend);
    builder.several(Program::Gateway, count).gateway(toml)
}

/// How often a backend got each value of `number`.
type Forwarded = Arc<Mutex<HashMap<String, usize>>>;

/// A backend that only counts: of a million requests, a recording one would keep every byte.
async fn count_requests() -> (SocketAddr, Forwarded) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let forwarded = Forwarded::default();
    let counts = Arc::clone(&forwarded);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(count_on(connection, Arc::clone(&counts)));
        }
    });
    (address, forwarded)
}

async fn count_on(mut connection: TcpStream, counts: Forwarded) {
    let mut bytes = Vec::new();
    while let Ok(1..) = connection.read_buf(&mut bytes).await {
        // A GET each time, and the next one follows the response.
        if !bytes.ends_with(b"\r\n\r\n") {
            continue;
        }
        let head = String::from_utf8(std::mem::take(&mut bytes)).unwrap();
        let target = head.split(' ').nth(1).unwrap();
        if let Some((_, params)) = target.split_once("?number=") {
            let number = params.split('&').next().unwrap().to_owned();
            *counts.lock().unwrap().entry(number).or_default() += 1;
        }
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        if connection.write_all(response).await.is_err() {
            return;
        }
    }
}

/// Clients that send each signed request to all gateways at once.
struct Clients {
    signer: SignedClient,
    http: Client,
    origins: Vec<String>,
    /// At least so many, and more while something is killed.
    requests: usize,
    kills_are_over: AtomicBool,
    next: AtomicUsize,
    done: AtomicUsize,
    unavailable: AtomicUsize,
}

impl Clients {
    /// Sends one until it is accepted, each time with a new signature. Returns the number of the last attempt.
    async fn send_one(&self, request: usize) -> String {
        let attempt = AtomicUsize::new(0);
        let number = until("a gateway to accept the request", || async {
            let number = format!("{request}.{}", attempt.fetch_add(1, Relaxed));
            let call = self.signer.get("/x").param("number", &number);
            let (target, _) = call.parts();
            let accepted = self.accepted(&target).await;
            assert!(accepted <= 1, "{accepted} gateways have accepted {number}");
            if accepted == 0 {
                return None;
            }
            let again = self.accepted(&target).await;
            assert_eq!(again, 0, "{number} was accepted again");
            Some(number)
        });
        let number = number.await;
        self.done.fetch_add(1, Relaxed);
        number
    }

    /// By how many gateways.
    async fn accepted(&self, target: &str) -> usize {
        let sent = self.origins.iter().map(|origin| {
            let sent = self.http.get(format!("{origin}{target}")).send();
            // A killed gateway sends no response.
            async { sent.await.ok().map(|response| response.status().as_u16()) }
        });
        let statuses = sent.collect::<JoinSet<_>>().join_all().await;
        let has = |status| statuses.iter().filter(|one| **one == Some(status)).count();
        self.unavailable.fetch_add(has(503), Relaxed);
        let is_known = |status: &Option<u16>| matches!(status, None | Some(200 | 409 | 503));
        assert!(statuses.iter().all(is_known), "{statuses:?}");
        has(200)
    }

    async fn until_done(&self, part: usize) {
        let goal = self.requests * part / (KILLS + 1);
        // As long as it goes on, this may take any time.
        let mut before = None;
        while before != Some(goal) {
            before = Some(
                until("requests to be accepted", || async {
                    let done = self.done.load(Relaxed).min(goal);
                    (Some(done) != before).then_some(done)
                })
                .await,
            );
        }
    }

    async fn until_unavailable(&self) {
        let before = self.unavailable.load(Relaxed);
        until("a request to be rejected", || async {
            (self.unavailable.load(Relaxed) > before).then_some(())
        })
        .await;
    }
}

async fn harm(stack: &Stack, server: Option<&Arc<PostgresServer>>, clients: &Clients) {
    let Some(server) = server else {
        stack.store().make_unavailable();
        clients.until_unavailable().await;
        return stack.store().make_available();
    };
    let harmed = Arc::clone(server);
    spawn_blocking(move || harmed.kill()).await.unwrap();
    clients.until_unavailable().await;
    let healed = Arc::clone(server);
    spawn_blocking(move || healed.start_again()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_is_accepted_once_through_kills_of_gateways_and_store() {
    let requests = env::var("SIGNPOST_REPLAY_REQUESTS").map_or(1_000, |all| all.parse().unwrap());
    let has_server = StoreKind::chosen() == StoreKind::Postgres;
    let server = has_server.then(|| Arc::new(PostgresServer::start()));
    let (backend, forwarded) = count_requests().await;
    let mut builder = gateways(GATEWAYS, SHARED, backend);
    if let Some(server) = &server {
        builder = builder.on_server(server);
    }
    let mut stack = builder.start().await;
    let clients = Arc::new(Clients {
        signer: stack.client(),
        http: http_client(),
        origins: (0..GATEWAYS)
            .map(|number| stack.origin_of(number))
            .collect(),
        requests,
        kills_are_over: AtomicBool::new(false),
        next: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
        unavailable: AtomicUsize::new(0),
    });
    let mut all = JoinSet::new();
    for _ in 0..CLIENTS {
        let clients = Arc::clone(&clients);
        all.spawn(async move {
            let mut accepted = Vec::new();
            loop {
                let request = clients.next.fetch_add(1, Relaxed);
                if request >= clients.requests && clients.kills_are_over.load(Relaxed) {
                    return accepted;
                }
                accepted.push(clients.send_one(request).await);
            }
        });
    }
    for kill in 0..KILLS {
        clients.until_done(kill + 1).await;
        stack.restart(Program::Gateway.number(kill)).await;
        if kill % 2 == 1 {
            harm(&stack, server.as_ref(), &clients).await;
        }
    }
    clients.kills_are_over.store(true, Relaxed);
    let accepted = all.join_all().await.concat();
    assert!(accepted.len() >= requests);
    let forwarded = forwarded.lock().unwrap();
    // A killed gateway may have forwarded others.
    assert!(forwarded.values().all(|count| *count == 1));
    let missing = accepted.iter().filter(|one| !forwarded.contains_key(*one));
    assert_eq!(missing.count(), 0);
    let at_first = accepted.iter().filter(|one| one.ends_with(".0")).count();
    assert!(
        at_first > accepted.len() / 2,
        "{at_first} of {}",
        accepted.len()
    );
}

#[tokio::test]
async fn a_key_decides_what_an_outage_of_the_store_means() {
    let backend = RecordingBackend::start().await;
    let fallback = "[sign]\nreplay_fallback = 'gateway'";
    let stack = gateways(2, SHARED, backend.address())
        .only(Program::Gateway.number(1), fallback)
        .start()
        .await;
    let (rejecting, falling_back) = (stack.client_at(0), stack.client_at(1));
    let mut used = Vec::new();
    for number in 0..3 {
        let call = rejecting.get("/x").param("used", &number.to_string());
        // Again, if the store does not answer in time.
        until("it to be accepted once", || async {
            let status = call.send().await.status;
            matches!(status.as_u16(), 200 | 409).then_some(())
        })
        .await;
        used.push(call);
    }
    stack.store().make_unavailable();
    for number in ["1", "2"] {
        let rejected = rejecting.get("/x").param("number", number).send().await;
        assert!(rejected.header("retry-after").is_some());
        rejected.problem(503, "store_unavailable");
    }
    let accepted = falling_back.get("/x").param("number", "3");
    accepted.send().await.ok();
    accepted.send().await.problem(409, "request_replayed");
    for (number, detail) in [
        (0, "requests whose signatures are valid once are rejected"),
        (1, "this gateway remembers signatures by itself"),
    ] {
        let gateway = Program::Gateway.number(number);
        let management = stack.addresses().management_of(gateway);
        let ready = fetch(&format!("http://{management}/readyz")).await;
        assert_eq!(ready.status, 200);
        assert!(ready.text().contains(detail), "{}", ready.text());
        let scrape = Scrape::of(management).await;
        let outcome = [("outcome", "unavailable")];
        let unavailable = scrape.sum("signpost_replay_shared_total", &outcome);
        assert!(unavailable >= 1.0, "{unavailable}");
        let line = "replay memory of all gateways does not answer";
        let log = stack.log_with(gateway, line).await;
        assert_eq!(log.matches(line).count(), 1, "{log}");
    }
    stack.store().make_available();
    let mut number = 3;
    let management = stack.addresses().management_of(Program::Gateway.number(1));
    until("the store to be asked again", || {
        number += 1;
        let call = falling_back.get("/x").param("number", &number.to_string());
        async move {
            call.send().await;
            let scrape = Scrape::of(management).await;
            let accepted = scrape.sum("signpost_replay_shared_total", &[("outcome", "accepted")]);
            (accepted >= 1.0).then_some(())
        }
    })
    .await;
    // This gateway has not seen them. It accepts one if the store does not answer in time.
    let mut rejected = 0;
    for call in &used {
        let (target, _) = call.parts();
        let replayed = fetch(&format!("{}{target}", stack.origin_of(1))).await;
        if replayed.status != 200 {
            replayed.problem(409, "request_replayed");
            rejected += 1;
        }
    }
    assert!(rejected > 0, "it has accepted all three");
}

#[tokio::test]
async fn a_reload_makes_gateways_remember_together() {
    let backend = RecordingBackend::start().await;
    let alone = "[sign]\nreplay = 'reject'";
    let stack = gateways(2, alone, backend.address()).start().await;
    let send = async |number: &str| {
        let client = stack.client();
        let (target, _) = client.get("/x").param("number", number).parts();
        let at = async |gateway| fetch(&format!("{}{target}", stack.origin_of(gateway))).await;
        [at(0).await.status, at(1).await.status]
    };
    assert_eq!(send("alone").await, [200, 200]);
    for number in 0..2 {
        let gateway = Program::Gateway.number(number);
        stack.configure(gateway, "[sign]\nreplay_scope = 'all'");
        assert!(stack.reload(gateway).status.success());
    }
    // The store may not answer in time at first.
    let mut number = 0;
    let together = until("an answer of the store in time", || {
        number += 1;
        let name = format!("together-{number}");
        let send = &send;
        async move {
            let statuses = send(&name).await;
            (!statuses.contains(&StatusCode::SERVICE_UNAVAILABLE)).then_some(statuses)
        }
    });
    assert_eq!(together.await, [200, 409]);
}
