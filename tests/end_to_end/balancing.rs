//! Several addresses of a version: who gets a request, and what becomes of it when one is away. CONTRACT 5.

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
    answer::Answer,
    port::free_address,
    program::Program,
    raw_connection::{RawConnection, request},
    recording_backend::{Behaviour, Manner, RecordedRequest, RecordingBackend},
    signed_client::Call,
    stack::{Stack, StackBuilder},
    waiting::until,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Nothing of the health of an address is found out but by requests.
const UNCHECKED: &str = "health = { active = false }";
/// What is wrong with an address is found out by checks within two seconds or so.
const HASTY: &str = "health = { interval_seconds = 1, unhealthy_after = 1 }";

/// A gateway whose v1 has these lines. With one thread, what one request leaves behind is there for the next.
fn gateway(version: &str) -> StackBuilder {
    Stack::builder()
        .in_front_of_address(free_address())
        .without(Program::Gateway, "versions")
        .gateway(&format!("threads = 1\n[versions.v1]\n{version}"))
}

/// A gateway in front of all of these, with further lines.
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

/// How many requests each got.
fn counts<const N: usize>(backends: [&RecordingBackend; N]) -> [usize; N] {
    backends.map(|backend| backend.requests().len())
}

/// The backend that gets the call.
async fn served_by(call: Call<'_>, backends: [&RecordingBackend; 2]) -> usize {
    let before = counts(backends);
    call.send().await.ok();
    let after = counts(backends);
    assert_eq!(after[0] + after[1], before[0] + before[1] + 1);
    usize::from(after[1] > before[1])
}

#[tokio::test]
async fn requests_are_shared_out_in_turn() {
    let (one, other) = two().await;
    let stack = in_front_of(&[&one, &other], "").await;
    for _ in 0..20 {
        stack.client().get("/x").param("a", "1").send().await.ok();
    }
    assert_eq!(counts([&one, &other]), [10, 10]);
    for backend in [&one, &other] {
        let place = format!("backend.addr={}", backend.address());
        stack.log_with(Program::Gateway, &place).await;
    }
}

#[tokio::test]
async fn a_weight_is_a_share() {
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
async fn the_one_with_the_fewest_requests_under_way_is_next() {
    let (one, other) = two().await;
    one.behave(Behaviour::answering(Manner::Silently));
    let stack = in_front_of(&[&one, &other], "balance = \"least-connections\"").await;
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
async fn an_application_stays_with_its_address() {
    let (one, other) = two().await;
    let version = format!("{}\nbalance = \"hash-app\"", list(&[&one, &other]));
    let stack = gateway(&version).multi().start().await;
    let mut seen = BTreeSet::new();
    for number in 0..40 {
        let application = stack.create_application(&format!("app {number}"), &[]);
        let client = stack.client_of(&application);
        let place = served_by(client.get("/x"), [&one, &other]).await;
        for _ in 0..3 {
            let call = client.post("/x").param("a", "1");
            assert_eq!(served_by(call, [&one, &other]).await, place);
        }
        seen.insert(place);
        if seen.len() == 2 {
            return;
        }
    }
    panic!("40 applications went to the same address");
}

#[tokio::test]
async fn a_client_stays_with_its_address_as_long_as_that_is_there() {
    let (mut one, other) = two().await;
    let version = format!("{}\nbalance = \"hash-client\"", list(&[&one, &other]));
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
    let mut places = Vec::new();
    for number in 0..32 {
        places.push(served_by(call(number), [&one, &other]).await);
    }
    for (number, place) in places.iter().enumerate() {
        assert_eq!(served_by(call(number), [&one, &other]).await, *place);
    }
    assert!(places.contains(&0) && places.contains(&1), "{places:?}");
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
    let stack = in_front_of(&[&one, &other, &third], "").await;
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
        let came_whole = [&one, &other, &third].iter().any(|backend| {
            let requests = backend.requests();
            requests
                .iter()
                .any(|request| request.body == form.as_bytes())
        });
        assert!(came_whole, "form {number} did not arrive as sent");
    }
    assert_eq!(counts([&one, &other, &third]).iter().sum::<usize>(), 120);
    let log = stack.log(Program::Gateway);
    assert_eq!(log.matches("is unreachable and out").count(), 1, "{log}");
}

/// It may have been acted upon.
#[tokio::test]
async fn a_form_that_was_sent_is_not_sent_again() {
    let (one, other) = two().await;
    for backend in [&one, &other] {
        backend.behave(Behaviour::answering(Manner::HangUp));
    }
    let stack = in_front_of(&[&one, &other], "").await;
    let post = stack.client().post("/x").param("a", "1").send().await;
    post.problem(502, "backend_unreachable");
    assert_eq!(counts([&one, &other]).iter().sum::<usize>(), 1);
}

#[tokio::test]
async fn a_get_without_an_answer_goes_to_another_address() {
    let (one, other) = two().await;
    one.behave(Behaviour::answering(Manner::HangUp));
    let stack = in_front_of(&[&one, &other], "").await;
    for number in 0..10 {
        let answer = stack.client().get(&format!("/{number}")).send().await;
        answer.ok();
        assert_eq!(answer.header("acme-x-version"), Some("v1"));
    }
    assert_eq!(counts([&one, &other]), [5, 10]);
    // The second time it is the same request, with all that the gateway says of it, of which only the span is new.
    let first = &one.requests()[0];
    let again = other.requests();
    let again = again
        .iter()
        .find(|again| again.target == first.target)
        .unwrap();
    let headers = |request: &RecordedRequest| {
        let mut headers = request.headers.clone();
        headers.retain(|(name, _)| name != "traceparent");
        headers
    };
    assert_eq!(headers(again), headers(first));
    assert_eq!(again.values("traceparent").len(), 1);
    assert_eq!(again.value("x-gateway-version"), Some("v1"));
}

#[tokio::test]
async fn a_get_that_nobody_answers_is_tried_at_each_address_once() {
    let backends = [two().await, two().await];
    let [(one, other), (third, fourth)] = &backends;
    let all = [one, other, third, fourth];
    for backend in all {
        backend.behave(Behaviour::answering(Manner::HangUp));
    }
    let stack = in_front_of(&all, "").await;
    let get = stack.client().get("/x").send().await;
    get.problem(502, "backend_unreachable");
    let mut tried = counts(all);
    tried.sort_unstable();
    assert_eq!(tried, [0, 1, 1, 1]);
}

#[tokio::test]
async fn a_get_that_waits_too_long_goes_to_another_address() {
    let (one, other) = two().await;
    one.behave(Behaviour::answering(Manner::Silently));
    let version = format!("{}\n[timeouts]\nanswer_seconds = 1", list(&[&one, &other]));
    let stack = gateway(&version).start().await;
    for _ in 0..2 {
        stack.client().get("/x").send().await.ok();
    }
    assert_eq!(counts([&one, &other]), [1, 2]);
    // Whether a silent backend acted on a form is not known.
    let client = stack.client();
    let post = || client.post("/x").param("a", "1");
    let (first, second) = (post().send().await, post().send().await);
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 504]);
}

#[tokio::test]
async fn nothing_is_sent_again_of_which_an_answer_began() {
    for beginning in [
        "H",
        "HTTP/1.1 200 OK\r\nContent-Len",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        let (one, other) = two().await;
        for backend in [&one, &other] {
            backend.behave(Behaviour::verbatim(beginning));
        }
        let stack = in_front_of(&[&one, &other], "").await;
        let get = stack.client().get("/x").send().await;
        get.problem(502, "backend_unreachable");
        assert_eq!(
            counts([&one, &other]).iter().sum::<usize>(),
            1,
            "{beginning:?}"
        );
    }
    // Nor when more than its beginning has gone to the client.
    let (one, other) = two().await;
    for backend in [&one, &other] {
        backend.behave(Behaviour::answering(Manner::BreakOff));
    }
    let stack = in_front_of(&[&one, &other], "").await;
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/x", &[], b"")).await;
    assert!(connection.answer().await.is_none());
    assert_eq!(counts([&one, &other]).iter().sum::<usize>(), 1);
}

/// Answers one request a connection, and closes it when a second has come, until it is told to answer all.
struct AnswersOnce {
    address: SocketAddr,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    answers_all: AtomicBool,
    requests: AtomicUsize,
    connections: AtomicUsize,
    open: AtomicUsize,
    /// Nobody is answered before so many requests have come.
    first_answer_after: AtomicUsize,
}

impl AnswersOnce {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counters = Arc::new(Counters::default());
        tokio::spawn(accept(listener, Arc::clone(&counters)));
        Self { address, counters }
    }

    /// Has so many connections that are kept, each of which ends with the next request. Several requests at once may
    /// each find one that ended.
    async fn with_kept_connections(&self, stack: &Stack, count: usize, others: usize) {
        let counters = &self.counters;
        counters.first_answer_after.store(count, Ordering::Relaxed);
        let mut calls = JoinSet::new();
        for _ in 0..count * others {
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
            // How it ended is seen at the other end.
            let _ = answer_once(stream, &counters).await;
            counters.open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

async fn answer_once(mut stream: TcpStream, counters: &Counters) -> std::io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    let mut is_first = true;
    // A whole request each time: they are small.
    while stream.read(&mut buffer).await? > 0 {
        counters.requests.fetch_add(1, Ordering::Relaxed);
        if !is_first && !counters.answers_all.load(Ordering::Relaxed) {
            return Ok(());
        }
        is_first = false;
        until("the first requests", || async {
            let first = counters.first_answer_after.load(Ordering::Relaxed);
            (counters.requests.load(Ordering::Relaxed) >= first).then_some(())
        })
        .await;
        let answer =
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
        stream.write_all(answer).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_get_over_a_kept_connection_that_ended_is_sent_again() {
    let (one, other) = tokio::join!(AnswersOnce::start(), AnswersOnce::start());
    let (one, other) = (one.address, other.address);
    // To another address; where there is no other, to the same.
    for version in [
        format!("backends = [\"{one}\", \"{other}\"]\n{UNCHECKED}"),
        format!("backend = \"localhost:{}\"\n{UNCHECKED}", one.port()),
        format!("backend = \"{one}\""),
    ] {
        let stack = gateway(&version).start().await;
        let mut connection = stack.raw().await;
        for number in 0..6 {
            connection.send(&request("GET", "/x", &[], b"")).await;
            let answer = connection.answer().await.unwrap();
            assert_eq!(answer.status, 200, "{number} with {version}");
        }
    }
}

/// However many there are: the second time it is a new one.
#[tokio::test]
async fn of_kept_connections_that_ended_a_get_meets_one_at_most() {
    const KEPT: usize = 40;
    for is_name in [false, true] {
        let backend = AnswersOnce::start().await;
        let version = if is_name {
            let port = backend.address.port();
            format!("backend = \"localhost:{port}\"\n{UNCHECKED}")
        } else {
            format!("backend = \"{}\"", backend.address)
        };
        let stack = gateway(&version).start().await;
        backend.with_kept_connections(&stack, KEPT, 1).await;
        for number in 1..=5 {
            let before = backend.requests();
            stack.client().get("/x").send().await.ok();
            assert_eq!(backend.requests(), before + 2, "{version}");
            assert_eq!(backend.connections(), KEPT + number);
        }
        // A new one takes the place of each that was closed, and all of them are still used.
        let open = &backend.counters.open;
        until("the closed connections to end", || async {
            (open.load(Ordering::Relaxed) == KEPT).then_some(())
        })
        .await;
        backend.counters.answers_all.store(true, Ordering::Relaxed);
        for _ in 0..5 {
            stack.client().get("/x").send().await.ok();
        }
        assert_eq!(backend.connections(), KEPT + 5, "{version}");
        assert_eq!(open.load(Ordering::Relaxed), KEPT);
    }
}

#[tokio::test]
async fn a_get_meets_one_kept_connection_that_ended_at_each_address() {
    const KEPT: usize = 40;
    let (one, other) = tokio::join!(AnswersOnce::start(), AnswersOnce::start());
    let addresses = [one.address.to_string(), other.address.to_string()];
    let stack = gateway(&format!("backends = {addresses:?}\n{UNCHECKED}"))
        .start()
        .await;
    other
        .counters
        .first_answer_after
        .store(KEPT, Ordering::Relaxed);
    one.with_kept_connections(&stack, KEPT, 2).await;
    for _ in 0..5 {
        let before = [one.requests(), other.requests()];
        stack.client().get("/x").send().await.ok();
        let mut sent = [one.requests() - before[0], other.requests() - before[1]];
        sent.sort_unstable();
        assert_eq!(sent, [1, 2]);
    }
}

/// What kept connections do is no matter to it: it may have been acted upon.
#[tokio::test]
async fn a_form_over_a_kept_connection_that_ended_is_not_sent_again() {
    let backend = AnswersOnce::start().await;
    let stack = gateway(&format!("backend = \"{}\"", backend.address))
        .start()
        .await;
    backend.with_kept_connections(&stack, 3, 1).await;
    let post = stack.client().post("/x").param("a", "1").send().await;
    post.problem(502, "backend_unreachable");
    assert_eq!(backend.requests(), 4);
}

#[tokio::test]
async fn a_backend_that_hangs_is_taken_out_by_its_checks() {
    let (one, other) = two().await;
    let stack = in_front_of(&[&one, &other], HASTY).await;
    one.behave(Behaviour::answering(Manner::Silently));
    one.behave_when_checked(Behaviour::answering(Manner::Silently));
    let log = stack
        .log_with(Program::Gateway, "fails its checks and is out")
        .await;
    assert!(
        log.contains(&format!("v1 at {} fails its checks", one.address())),
        "{log}"
    );
    for _ in 0..10 {
        stack.client().post("/x").param("a", "1").send().await.ok();
    }
    assert_eq!(counts([&one, &other]), [0, 10]);
}

#[tokio::test]
async fn a_backend_is_back_once_it_passes_its_checks() {
    let (one, other) = two().await;
    let ill = Behaviour {
        head: "HTTP/1.1 503 Service Unavailable\r\n".to_owned(),
        ..Behaviour::default()
    };
    let stack = in_front_of(&[&one, &other], HASTY).await;
    for backend in [&one, &other] {
        backend.behave_when_checked(ill.clone());
    }
    let client = stack.client();
    until("both to be out", || async {
        let answer = client.get("/x").send().await;
        (answer.status == 503).then(|| answer.problem(503, "no_healthy_backend"))
    })
    .await;
    let before = counts([&one, &other]);
    other.behave_when_checked(Behaviour::default());
    until("the other to be back", || async {
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
    assert!(
        log.contains("(answered 503)") || log.contains("is out: answered 503"),
        "{log}"
    );
}

/// What a version answers whose addresses are all away, and after how long; but for the request now and then that tries.
async fn refusal<'c>(call: impl Fn() -> Call<'c>) -> (Answer, Duration) {
    let call = &call;
    until("a refusal", || async move {
        let (answer, took) = timed(call()).await;
        (answer.status == 503).then_some((answer, took))
    })
    .await
}

async fn timed(call: Call<'_>) -> (Answer, Duration) {
    let start = Instant::now();
    let answer = call.send().await;
    (answer, start.elapsed())
}

#[tokio::test]
async fn with_all_out_the_answer_comes_at_once() {
    let addresses = [free_address().to_string(), free_address().to_string()];
    let version =
        format!("backends = {addresses:?}\nhealth = {{ active = false, out_seconds = 3600 }}");
    let stack = gateway(&version).start().await;
    let client = stack.client();
    let get = || client.get("/x");
    get().send().await.problem(502, "backend_unreachable");
    // What the gateway answers by itself shows how fast this machine is at the moment.
    let mut slowest_by_itself = Duration::ZERO;
    for _ in 0..20 {
        let (answer, took) = timed(get().param("a", "1").unsigned()).await;
        answer.problem(403, "time_missing");
        slowest_by_itself = slowest_by_itself.max(took);
    }
    let mut fastest = Duration::MAX;
    for is_get in [true, false].repeat(5) {
        let post = || client.post("/x").param("a", "1");
        let (answer, took) = match is_get {
            true => refusal(get).await,
            false => refusal(post).await,
        };
        fastest = fastest.min(took);
        answer.problem(503, "no_healthy_backend");
        assert_eq!(answer.header("acme-x-version"), Some("v1"));
    }
    assert!(
        fastest <= 2 * slowest_by_itself,
        "{fastest:?}, {slowest_by_itself:?}"
    );
    // The unsigned way in is no other way.
    let callback = || {
        client
            .get("/login")
            .query("state", "v1.x")
            .query("code", "y")
            .unsigned()
    };
    let (answer, _) = refusal(callback).await;
    answer.refused(503, "no_healthy_backend");
    // Few of many are sent to try.
    let mut refused = 0;
    for _ in 0..40 {
        refused += usize::from(get().send().await.status == 503);
    }
    assert!(refused > 20, "{refused} of 40 were refused at once");
    // Each is in the access log; that it is so was told once.
    let log = until("the access lines", || async {
        let log = stack.log(Program::Gateway);
        (log.matches("no_healthy_backend").count() > 20).then_some(log)
    })
    .await;
    assert_eq!(
        log.matches("no address of v1 is healthy").count(),
        1,
        "{log}"
    );
}

#[tokio::test]
async fn the_last_address_is_used_soon_after_it_was_away_for_a_moment() {
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
    // Of the last that is left, it is found out by a request.
    until("a failure", || async {
        (client.get("/x").send().await.status == 502).then_some(())
    })
    .await;
    let _again = RecordingBackend::start_at(address).await;
    until("it to be used again", || async {
        (client.get("/x").send().await.status == 200).then_some(())
    })
    .await;
    stack.log_with(Program::Gateway, "is reachable again").await;
}

#[tokio::test]
async fn an_address_is_used_again_once_it_can_be_reached() {
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
    let log = stack.log(Program::Gateway);
    assert_eq!(log.matches("is reachable again").count(), 2, "{log}");
}

#[tokio::test]
async fn the_only_address_is_tried_whatever_happened() {
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
    let _again = RecordingBackend::start_at(address).await;
    client.get("/x").send().await.ok();
}

#[tokio::test]
async fn a_name_stands_for_its_addresses() {
    let backend = RecordingBackend::start().await;
    let port = backend.address().port();
    // It may be ::1, too, where nobody listens.
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
async fn a_name_that_nobody_knows_does_not_keep_the_gateway_from_starting() {
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
    let log = stack.log(Program::Gateway);
    assert_eq!(
        log.matches("no-such-host.invalid:7001 of v1 cannot be looked up")
            .count(),
        1,
        "{log}"
    );
}

#[tokio::test]
async fn many_at_once_get_their_own_answers_while_one_comes_and_goes() {
    let (mut one, other) = two().await;
    for backend in [&one, &other] {
        backend.behave(Behaviour::answering(Manner::Echoing));
    }
    let stack = in_front_of(&[&one, &other], "health = { out_seconds = 1 }").await;
    let mut clients = JoinSet::new();
    for number in 0..8 {
        let (client, gateway) = (stack.client(), stack.addresses().gateway);
        clients.spawn(async move {
            let mut raw = RawConnection::open(gateway).await;
            for turn in 0..100 {
                let call = client.get("/x").param("of", &format!("{number}-{turn}"));
                raw.send(&call.bytes(&[])).await;
                let answer = raw.answer().await.unwrap();
                let told = String::from_utf8_lossy(&answer.body).into_owned();
                assert_eq!((answer.status, told), (200, call.parts().0));
            }
        });
    }
    until("half of it to be done", || async {
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
async fn an_answer_that_is_an_error_is_an_answer() {
    let (one, other) = two().await;
    for backend in [&one, &other] {
        backend.behave(Behaviour {
            head: "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
                .to_owned(),
            ..Behaviour::default()
        });
    }
    let stack = in_front_of(&[&one, &other], "").await;
    let answer: Answer = stack.client().get("/x").send().await;
    assert_eq!(
        (answer.status.as_u16(), answer.text()),
        (503, "{\"recorded\":true}".to_owned())
    );
    assert_eq!(counts([&one, &other]).iter().sum::<usize>(), 1);
}
