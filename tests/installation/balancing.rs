//! Several addresses of a version: which one gets a request, and what happens when one is down. CONTRACT 5.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use end_to_end::{
    port::free_address,
    program::Program,
    raw_connection::{RawConnection, request},
    recording_backend::{Behaviour, Delivery, RecordedRequest, RecordingBackend},
    response::Response,
    signed_client::Call,
    stack::{Stack, StackBuilder},
    waiting::{WAIT_TIMEOUT, until, until_within},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// No health checks: only requests detect that an address is down.
const UNCHECKED: &str = "health = { active = false }";
/// Health checks that no pause of the machine fails.
const CHECKED: &str = "health = { timeout_seconds = 30 }";
/// Those of which one failure is enough.
const FAST_CHECKS: &str =
    "health = { interval_seconds = 1, timeout_seconds = 30, unhealthy_after = 1 }";

/// A gateway with these lines for v1. With one thread, each request finds the connections that the previous one left.
fn gateway(version: &str) -> StackBuilder {
    Stack::builder()
        .in_front_of_address(free_address())
        .without(Program::Gateway, "versions")
        .gateway(&format!("threads = 1\n[versions.v1]\n{version}"))
}

/// A gateway in front of all these backends, with further lines for v1.
async fn in_front_of(backends: &[&RecordingBackend], further: &str) -> Stack {
    gateway(&format!("{}\n{further}", list(backends)))
        .start()
        .await
}

fn list(backends: &[&RecordingBackend]) -> String {
    let addresses = backends.iter().map(|backend| backend.address().to_string());
    format!("backends = {:?}", addresses.collect::<Vec<_>>())
}

async fn two() -> (RecordingBackend, RecordingBackend) {
    tokio::join!(RecordingBackend::start(), RecordingBackend::start())
}

/// The number of requests that each backend received.
fn counts<const N: usize>(backends: [&RecordingBackend; N]) -> [usize; N] {
    backends.map(|backend| backend.requests().len())
}

/// Sends the call and returns the index of the backend that received it.
async fn served_by(call: Call<'_>, backends: [&RecordingBackend; 2]) -> usize {
    let before = counts(backends);
    call.send().await.ok();
    let after = counts(backends);
    assert_eq!(after[0] + after[1], before[0] + before[1] + 1);
    usize::from(after[1] > before[1])
}

#[tokio::test]
async fn requests_are_distributed_round_robin() {
    let (one, other) = two().await;
    let stack = in_front_of(&[&one, &other], CHECKED).await;
    for _ in 0..20 {
        stack.client().get("/x").param("a", "1").send().await.ok();
    }
    assert_eq!(counts([&one, &other]), [10, 10]);
    for backend in [&one, &other] {
        let field = format!("backend.addr={}", backend.address());
        stack.log_with(Program::Gateway, &field).await;
    }
}

#[tokio::test]
async fn requests_are_distributed_by_weight() {
    let (one, other) = two().await;
    let (light, heavy) = (one.address(), other.address());
    let version =
        format!("backends = [\"{light}\", {{ address = \"{heavy}\", weight = 3 }}]\n{UNCHECKED}");
    let stack = gateway(&version).start().await;
    for _ in 0..20 {
        stack.client().post("/x").param("a", "1").send().await.ok();
    }
    assert_eq!(counts([&one, &other]), [5, 15]);
    assert_eq!((one.checks(), other.checks()), (0, 0));
}

#[tokio::test]
async fn the_address_with_the_fewest_requests_in_flight_is_next() {
    let (one, other) = two().await;
    one.behave(Behaviour::responding(Delivery::Never));
    let stack = in_front_of(
        &[&one, &other],
        &format!("balance = \"least-connections\"\n{CHECKED}"),
    )
    .await;
    let mut waiting = JoinSet::new();
    while one.requests().is_empty() {
        let client = stack.client();
        let answered = counts([&one, &other]);
        waiting.spawn(async move { client.get("/x").try_send().await.map(drop) });
        until("a request to arrive", || async {
            (counts([&one, &other]) != answered).then_some(())
        })
        .await;
    }
    let before = other.requests().len();
    for _ in 0..20 {
        stack.client().get("/x").send().await.ok();
    }
    assert_eq!(counts([&one, &other]), [1, before + 20]);
}

#[tokio::test]
async fn an_application_always_gets_the_same_address() {
    let (one, other) = two().await;
    let version = format!(
        "{}\nbalance = \"hash-app\"\n{CHECKED}",
        list(&[&one, &other])
    );
    let stack = gateway(&version).multi().start().await;
    let mut seen = BTreeSet::new();
    for number in 0..40 {
        let application = stack.create_application(&format!("app {number}"), &[]);
        let client = stack.client_of(&application);
        let index = served_by(client.get("/x"), [&one, &other]).await;
        for _ in 0..3 {
            let call = client.post("/x").param("a", "1");
            assert_eq!(served_by(call, [&one, &other]).await, index);
        }
        seen.insert(index);
        if seen.len() == 2 {
            return;
        }
    }
    panic!("40 applications went to the same address");
}

#[tokio::test]
async fn a_client_keeps_its_address_as_long_as_that_is_up() {
    let (mut one, other) = two().await;
    let version = format!(
        "{}\nbalance = \"hash-client\"\n{CHECKED}",
        list(&[&one, &other])
    );
    let stack = gateway(&version)
        .gateway("trusted_proxies = [\"127.0.0.0/8\"]")
        .start()
        .await;
    let client = stack.client();
    let call = |number: usize| {
        client
            .get("/x")
            .header("X-Forwarded-For", &format!("192.0.2.{number}"))
    };
    let mut indices = Vec::new();
    for number in 0..32 {
        indices.push(served_by(call(number), [&one, &other]).await);
    }
    for (number, index) in indices.iter().enumerate() {
        assert_eq!(served_by(call(number), [&one, &other]).await, *index);
    }
    assert!(indices.contains(&0) && indices.contains(&1), "{indices:?}");
    one.end().await;
    let before = counts([&one, &other]);
    for number in 0..32 {
        call(number).send().await.ok();
    }
    assert_eq!(counts([&one, &other]), [before[0], before[1] + 32]);
}

#[tokio::test]
async fn no_request_fails_when_a_backend_dies() {
    let (mut one, other) = two().await;
    let third = RecordingBackend::start().await;
    let stack = in_front_of(&[&one, &other, &third], CHECKED).await;
    let client = stack.client();
    for number in 0..60 {
        if number == 30 {
            one.end().await;
        }
        let value = format!("{number} {}", "x".repeat(number * 300));
        let get = client.get("/x").param("number", &number.to_string());
        get.send().await.ok();
        let post = client.post("/x").param("value", &value);
        let (_, form) = post.parts();
        post.send().await.ok();
        let has_arrived = [&one, &other, &third].iter().any(|backend| {
            let requests = backend.requests();
            requests
                .iter()
                .any(|request| request.body == form.as_bytes())
        });
        assert!(has_arrived, "form {number} did not arrive as sent");
    }
    assert_eq!(counts([&one, &other, &third]).iter().sum::<usize>(), 120);
    let line = "the backend is unreachable";
    let log = stack.log_with(Program::Gateway, line).await;
    assert_eq!(log.matches(line).count(), 1, "{log}");
}

/// The backend may have acted on it.
#[tokio::test]
async fn a_form_that_was_sent_is_not_retried() {
    let (one, other) = two().await;
    for backend in [&one, &other] {
        backend.behave(Behaviour::responding(Delivery::HangUp));
    }
    let stack = in_front_of(&[&one, &other], CHECKED).await;
    let post = stack.client().post("/x").param("a", "1").send().await;
    post.problem(502, "backend_unreachable");
    assert_eq!(counts([&one, &other]).iter().sum::<usize>(), 1);
}

#[tokio::test]
async fn a_get_without_a_response_is_retried_on_another_address() {
    let (one, other) = two().await;
    one.behave(Behaviour::responding(Delivery::HangUp));
    let stack = in_front_of(&[&one, &other], CHECKED).await;
    for number in 0..10 {
        let response = stack.client().get(&format!("/{number}")).send().await;
        response.ok();
        assert_eq!(response.header("acme-x-version"), Some("v1"));
    }
    assert_eq!(counts([&one, &other]), [5, 10]);
    // The retry is the same request with the same gateway headers; only the span is new.
    let first = &one.requests()[0];
    let retry = other.requests();
    let retry = retry
        .iter()
        .find(|retry| retry.target == first.target)
        .unwrap();
    let headers = |request: &RecordedRequest| {
        let mut headers = request.headers.clone();
        headers.retain(|(name, _)| name != "traceparent");
        headers
    };
    assert_eq!(headers(retry), headers(first));
    assert_eq!(retry.values("traceparent").len(), 1);
    assert_eq!(retry.value("x-gateway-version"), Some("v1"));
}

#[tokio::test]
async fn a_get_without_any_response_is_tried_on_three_addresses_at_most() {
    let backends = [two().await, two().await];
    let [(one, other), (third, fourth)] = &backends;
    let all = [one, other, third, fourth];
    for backend in all {
        backend.behave(Behaviour::responding(Delivery::HangUp));
    }
    let stack = in_front_of(&all, CHECKED).await;
    let get = stack.client().get("/x").send().await;
    get.problem(502, "backend_unreachable");
    let mut tried = counts(all);
    tried.sort_unstable();
    assert_eq!(tried, [0, 1, 1, 1]);
}

#[tokio::test]
async fn a_get_that_times_out_is_retried_on_another_address() {
    let (one, other) = two().await;
    one.behave(Behaviour::responding(Delivery::Never));
    let version = format!(
        "{}\n{CHECKED}\n[timeouts]\nresponse_seconds = 10",
        list(&[&one, &other])
    );
    let stack = gateway(&version).start().await;
    for _ in 0..2 {
        stack.client().get("/x").send().await.ok();
    }
    assert_eq!(counts([&one, &other]), [1, 2]);
    // A form is not retried: the silent backend may have acted on it.
    let client = stack.client();
    let post = || client.post("/x").param("a", "1");
    let (first, second) = (post().send().await, post().send().await);
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 504]);
}

#[tokio::test]
async fn a_request_whose_response_began_is_not_retried() {
    for beginning in [
        "H",
        "HTTP/1.1 200 OK\r\nContent-Len",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        let (one, other) = two().await;
        for backend in [&one, &other] {
            backend.behave(Behaviour::verbatim(beginning));
        }
        let stack = in_front_of(&[&one, &other], CHECKED).await;
        let get = stack.client().get("/x").send().await;
        get.problem(502, "backend_unreachable");
        assert_eq!(
            counts([&one, &other]).iter().sum::<usize>(),
            1,
            "{beginning:?}"
        );
    }
    // Nor if the client has received a part of the response.
    let (one, other) = two().await;
    for backend in [&one, &other] {
        backend.behave(Behaviour::responding(Delivery::BreakOff));
    }
    let stack = in_front_of(&[&one, &other], CHECKED).await;
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/x", &[], b"")).await;
    assert!(connection.response().await.is_none());
    assert_eq!(counts([&one, &other]).iter().sum::<usize>(), 1);
}

/// Answers one request per connection, and closes the connection at the second; answers all once `responds_to_all` is set.
struct RespondsOnce {
    address: SocketAddr,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    responds_to_all: AtomicBool,
    requests: AtomicUsize,
    connections: AtomicUsize,
    open: AtomicUsize,
    /// The first response is sent once this many requests have arrived.
    first_response_after: AtomicUsize,
}

impl RespondsOnce {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counters = Arc::new(Counters::default());
        tokio::spawn(accept(listener, Arc::clone(&counters)));
        Self { address, counters }
    }

    /// Fills the gateway's pool with `count` connections to this address, each of which ends with its next request. No
    /// request is answered before `count` have arrived, so that none reuses the connection of another. With several
    /// `addresses`, each gets `count` requests.
    async fn fill_pool(&self, stack: &Stack, count: usize, addresses: usize) {
        let counters = &self.counters;
        counters
            .first_response_after
            .store(count, Ordering::Relaxed);
        let mut calls = JoinSet::new();
        for _ in 0..count * addresses {
            let client = stack.client();
            calls.spawn(async move { client.get("/x").send().await.ok() });
        }
        calls.join_all().await;
        assert_eq!(counters.connections.load(Ordering::Relaxed), count);
    }

    fn requests(&self) -> usize {
        self.counters.requests.load(Ordering::Relaxed)
    }

    fn connections(&self) -> usize {
        self.counters.connections.load(Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, counters: Arc<Counters>) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        counters.connections.fetch_add(1, Ordering::Relaxed);
        let counters = Arc::clone(&counters);
        tokio::spawn(async move {
            counters.open.fetch_add(1, Ordering::Relaxed);
            // The gateway's side of the connection shows how it ended.
            let _ = respond_once(stream, &counters).await;
            counters.open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

async fn respond_once(mut stream: TcpStream, counters: &Counters) -> std::io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    let mut is_first = true;
    // A whole request each time: they are small.
    while stream.read(&mut buffer).await? > 0 {
        counters.requests.fetch_add(1, Ordering::Relaxed);
        if !is_first && !counters.responds_to_all.load(Ordering::Relaxed) {
            return Ok(());
        }
        is_first = false;
        until("the first requests", || async {
            let first = counters.first_response_after.load(Ordering::Relaxed);
            (counters.requests.load(Ordering::Relaxed) >= first).then_some(())
        })
        .await;
        let response =
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
        stream.write_all(response).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_get_on_a_stale_idle_connection_is_retried() {
    let (one, other) = tokio::join!(RespondsOnce::start(), RespondsOnce::start());
    let (one, other) = (one.address, other.address);
    // On another address; if there is none, on the same one.
    for version in [
        format!("backends = [\"{one}\", \"{other}\"]\n{UNCHECKED}"),
        format!("backend = \"localhost:{}\"\n{UNCHECKED}", one.port()),
        format!("backend = \"{one}\""),
    ] {
        let stack = gateway(&version).start().await;
        let mut connection = stack.raw().await;
        for number in 0..6 {
            connection.send(&request("GET", "/x", &[], b"")).await;
            let response = connection.response().await.unwrap();
            assert_eq!(response.status, 200, "{number} with {version}");
        }
    }
}

/// However many are stale, the retry uses a new connection.
#[tokio::test]
async fn a_get_uses_one_stale_idle_connection_at_most() {
    const IDLE: usize = 40;
    for is_name in [false, true] {
        let backend = RespondsOnce::start().await;
        let version = if is_name {
            let port = backend.address.port();
            format!("backend = \"localhost:{port}\"\n{UNCHECKED}")
        } else {
            format!("backend = \"{}\"", backend.address)
        };
        let stack = gateway(&version).start().await;
        backend.fill_pool(&stack, IDLE, 1).await;
        for number in 1..=5 {
            let before = backend.requests();
            stack.client().get("/x").send().await.ok();
            assert_eq!(backend.requests(), before + 2, "{version}");
            assert_eq!(backend.connections(), IDLE + number);
        }
        // A new connection has replaced each closed one, and the pool is still used.
        let open = &backend.counters.open;
        until("the closed connections to end", || async {
            (open.load(Ordering::Relaxed) == IDLE).then_some(())
        })
        .await;
        backend
            .counters
            .responds_to_all
            .store(true, Ordering::Relaxed);
        for _ in 0..5 {
            stack.client().get("/x").send().await.ok();
        }
        assert_eq!(backend.connections(), IDLE + 5, "{version}");
        assert_eq!(open.load(Ordering::Relaxed), IDLE);
    }
}

#[tokio::test]
async fn a_get_uses_one_stale_idle_connection_of_each_address() {
    const IDLE: usize = 40;
    let (one, other) = tokio::join!(RespondsOnce::start(), RespondsOnce::start());
    let addresses = [one.address.to_string(), other.address.to_string()];
    let stack = gateway(&format!("backends = {addresses:?}\n{UNCHECKED}"))
        .start()
        .await;
    other
        .counters
        .first_response_after
        .store(IDLE, Ordering::Relaxed);
    one.fill_pool(&stack, IDLE, 2).await;
    for _ in 0..5 {
        let before = [one.requests(), other.requests()];
        stack.client().get("/x").send().await.ok();
        let mut sent = [one.requests() - before[0], other.requests() - before[1]];
        sent.sort_unstable();
        assert_eq!(sent, [1, 2]);
    }
}

/// The backend may have acted on it.
#[tokio::test]
async fn a_form_on_a_stale_idle_connection_is_not_retried() {
    let backend = RespondsOnce::start().await;
    let stack = gateway(&format!("backend = \"{}\"", backend.address))
        .start()
        .await;
    backend.fill_pool(&stack, 3, 1).await;
    let post = stack.client().post("/x").param("a", "1").send().await;
    post.problem(502, "backend_unreachable");
    assert_eq!(backend.requests(), 4);
}

#[tokio::test]
async fn a_backend_that_hangs_becomes_unhealthy_by_its_checks() {
    let (one, other) = two().await;
    // Twice: a pause of the machine fails one check of the other, too.
    let checks = "health = { interval_seconds = 1, timeout_seconds = 5, unhealthy_after = 2 }";
    let stack = in_front_of(&[&one, &other], checks).await;
    one.behave(Behaviour::responding(Delivery::Never));
    one.behave_when_checked(Behaviour::responding(Delivery::Never));
    let log = until_within(3 * WAIT_TIMEOUT, "it to be unhealthy", || async {
        let log = stack.log(Program::Gateway);
        log.contains("fails its checks and is unhealthy")
            .then_some(log)
    })
    .await;
    assert!(
        log.contains(&format!(
            "is unhealthy backend=v1 version=v1 backend.addr={}",
            one.address()
        )),
        "{log}"
    );
    for _ in 0..10 {
        stack.client().post("/x").param("a", "1").send().await.ok();
    }
    assert_eq!(counts([&one, &other]), [0, 10]);
}

#[tokio::test]
async fn a_backend_is_used_again_once_it_passes_its_checks() {
    let (one, other) = two().await;
    let failing = Behaviour {
        head: "HTTP/1.1 503 Service Unavailable\r\n".to_owned(),
        ..Behaviour::default()
    };
    let stack = in_front_of(&[&one, &other], FAST_CHECKS).await;
    for backend in [&one, &other] {
        backend.behave_when_checked(failing.clone());
    }
    let client = stack.client();
    until("both to be unhealthy", || async {
        let response = client.get("/x").send().await;
        (response.status == 503).then(|| response.problem(503, "no_healthy_backend"))
    })
    .await;
    let before = counts([&one, &other]);
    other.behave_when_checked(Behaviour::default());
    until("the other to be healthy", || async {
        (client.get("/x").send().await.status == 200).then_some(())
    })
    .await;
    for _ in 0..5 {
        client.get("/x").send().await.ok();
    }
    assert_eq!(counts([&one, &other]), [before[0], before[1] + 6]);
    let log = stack
        .log_with(Program::Gateway, "passes its checks again")
        .await;
    assert!(log.contains("answered 503"), "{log}");
}

/// The response of a version without a healthy address, and its duration. Now and then a request tests an address; its
/// answer is skipped.
async fn rejection<'c>(call: impl Fn() -> Call<'c>) -> (Response, Duration) {
    let call = &call;
    until("a rejection", || async move {
        let (response, took) = timed(call()).await;
        (response.status == 503).then_some((response, took))
    })
    .await
}

async fn timed(call: Call<'_>) -> (Response, Duration) {
    let start = Instant::now();
    let response = call.send().await;
    (response, start.elapsed())
}

#[tokio::test]
async fn without_a_healthy_address_the_response_is_immediate() {
    let addresses = [free_address().to_string(), free_address().to_string()];
    let version =
        format!("backends = {addresses:?}\nhealth = {{ active = false, out_seconds = 3600 }}");
    let stack = gateway(&version).start().await;
    let client = stack.client();
    let get = || client.get("/x");
    get().send().await.problem(502, "backend_unreachable");
    // Responses of the gateway itself, by turns, show how fast this machine is at the moment.
    let (mut fastest, mut slowest_by_itself) = (Duration::MAX, Duration::ZERO);
    for is_get in [true, false].repeat(5) {
        let (response, took) = timed(get().param("a", "1").unsigned()).await;
        response.problem(403, "time_missing");
        slowest_by_itself = slowest_by_itself.max(took);
        let post = || client.post("/x").param("a", "1");
        let (response, took) = match is_get {
            true => rejection(get).await,
            false => rejection(post).await,
        };
        fastest = fastest.min(took);
        response.problem(503, "no_healthy_backend");
        assert_eq!(response.header("acme-x-version"), Some("v1"));
    }
    assert!(
        fastest <= 2 * slowest_by_itself,
        "{fastest:?}, {slowest_by_itself:?}"
    );
    // The same holds for the unsigned callback.
    let callback = || {
        client
            .get("/login")
            .query("state", "v1.x")
            .query("code", "y")
            .unsigned()
    };
    let (response, _) = rejection(callback).await;
    response.rejected(503, "no_healthy_backend");
    // Only a few requests test an address.
    let mut rejected = 0;
    for _ in 0..40 {
        rejected += usize::from(get().send().await.status == 503);
    }
    assert!(rejected > 20, "{rejected} of 40 were rejected immediately");
    // The access log has a line for each; the warning is logged once.
    let log = until("the access lines", || async {
        let log = stack.log(Program::Gateway);
        (log.matches("no_healthy_backend").count() > 20).then_some(log)
    })
    .await;
    assert_eq!(
        log.matches("no address of the backend is healthy: its requests are rejected backend=v1 ")
            .count(),
        1,
        "{log}"
    );
}

#[tokio::test]
async fn the_last_address_is_used_again_soon_after_a_short_outage() {
    let mut last = RecordingBackend::start().await;
    let address = last.address();
    let addresses = [free_address().to_string(), address.to_string()];
    let version =
        format!("backends = {addresses:?}\nhealth = {{ active = false, out_seconds = 3600 }}");
    let stack = gateway(&version).start().await;
    let client = stack.client();
    for _ in 0..2 {
        client.get("/x").send().await.ok();
    }
    last.end().await;
    // Without checks, only a request detects that the last address is down.
    until("a failure", || async {
        (client.get("/x").send().await.status == 502).then_some(())
    })
    .await;
    let _restarted = RecordingBackend::start_at(address).await;
    until("the last address to be used again", || async {
        (client.get("/x").send().await.status == 200).then_some(())
    })
    .await;
    stack.log_with(Program::Gateway, "is reachable again").await;
}

#[tokio::test]
async fn an_address_is_used_again_once_it_is_reachable() {
    let (mut one, mut other) = two().await;
    let further = "health = { active = false, out_seconds = 1 }";
    let stack = in_front_of(&[&one, &other], further).await;
    let addresses = [one.address(), other.address()];
    one.end().await;
    other.end().await;
    let client = stack.client();
    client
        .get("/x")
        .send()
        .await
        .problem(502, "backend_unreachable");
    let other = RecordingBackend::start_at(addresses[1]).await;
    until("the other to be used", || async {
        (client.get("/x").send().await.status == 200).then_some(())
    })
    .await;
    let one = RecordingBackend::start_at(addresses[0]).await;
    until("both to be used", || async {
        client.post("/x").param("a", "1").send().await.ok();
        (!one.requests().is_empty()).then_some(())
    })
    .await;
    assert!(!other.requests().is_empty());
    let restored = || {
        stack
            .log(Program::Gateway)
            .matches("is reachable again")
            .count()
    };
    until("both lines", || async { (restored() >= 2).then_some(()) }).await;
    assert_eq!(restored(), 2);
}

#[tokio::test]
async fn the_only_address_is_tried_even_after_failures() {
    let mut backend = RecordingBackend::start().await;
    let stack = in_front_of(&[&backend], "").await;
    let client = stack.client();
    client.get("/x").send().await.ok();
    let address = backend.address();
    backend.end().await;
    for _ in 0..3 {
        client
            .get("/x")
            .send()
            .await
            .problem(502, "backend_unreachable");
    }
    let _restarted = RecordingBackend::start_at(address).await;
    client.get("/x").send().await.ok();
}

#[tokio::test]
async fn a_host_name_is_resolved_to_its_addresses() {
    let backend = RecordingBackend::start().await;
    let port = backend.address().port();
    // `localhost` may also resolve to ::1, where no process listens.
    let stack = gateway(&format!("backend = \"localhost:{port}\""))
        .start()
        .await;
    for number in 0..10 {
        let value = format!("{number}");
        stack.client().get("/x").send().await.ok();
        stack
            .client()
            .post("/x")
            .param("a", &value)
            .send()
            .await
            .ok();
    }
    assert_eq!(backend.requests().len(), 20);
}

#[tokio::test]
async fn an_unknown_host_name_does_not_prevent_the_start() {
    let backend = RecordingBackend::start().await;
    let known = backend.address();
    let version = format!(
        "backend = \"no-such-host.invalid:7001\"\n[versions.v2]\n\
         backends = [\"no-such-host.invalid:7001\", \"{known}\"]"
    );
    let stack = gateway(&version).start().await;
    let client = stack.client();
    client
        .get("/x")
        .send()
        .await
        .problem(503, "no_healthy_backend");
    client.get("/x").version("v2").send().await.ok();
    let line = "backend=v1 version=v1 host=\"no-such-host.invalid\" port=7001";
    let log = stack.log_with(Program::Gateway, line).await;
    assert_eq!(log.matches(line).count(), 1, "{log}");
}

#[tokio::test]
async fn concurrent_clients_get_their_own_responses_while_a_backend_ends() {
    let (mut one, other) = two().await;
    for backend in [&one, &other] {
        backend.behave(Behaviour::responding(Delivery::Echoing));
    }
    let stack = in_front_of(
        &[&one, &other],
        "health = { out_seconds = 1, timeout_seconds = 30 }",
    )
    .await;
    let mut clients = JoinSet::new();
    for number in 0..8 {
        let (client, gateway) = (stack.client(), stack.addresses().gateway);
        clients.spawn(async move {
            let mut raw = RawConnection::open(gateway).await;
            for turn in 0..100 {
                let call = client.get("/x").param("of", &format!("{number}-{turn}"));
                raw.send(&call.bytes(&[])).await;
                let response = raw.response().await.unwrap();
                let echoed = String::from_utf8_lossy(&response.body).into_owned();
                assert_eq!((response.status, echoed), (200, call.parts().0));
            }
        });
    }
    until("half of the requests to arrive", || async {
        (counts([&one, &other]).iter().sum::<usize>() >= 400).then_some(())
    })
    .await;
    one.end().await;
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    assert!(counts([&one, &other]).iter().sum::<usize>() >= 800);
}

#[tokio::test]
async fn an_error_response_is_passed_on_and_not_retried() {
    let (one, other) = two().await;
    for backend in [&one, &other] {
        backend.behave(Behaviour {
            head: "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
                .to_owned(),
            ..Behaviour::default()
        });
    }
    let stack = in_front_of(&[&one, &other], CHECKED).await;
    let response: Response = stack.client().get("/x").send().await;
    assert_eq!(
        (response.status.as_u16(), response.text()),
        (503, "{\"recorded\":true}".to_owned())
    );
    assert_eq!(counts([&one, &other]).iter().sum::<usize>(), 1);
}
