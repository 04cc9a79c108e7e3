//! A mixed load: no request fails without a reason, and no descriptor or memory leaks.
//!
//! `SIGNPOST_MIXED_LOAD_SECONDS` sets the duration, 5 by default.

use std::{
    env, fs,
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
    random::Random,
    raw_connection::{RawConnection, request},
    scripted_backend::{Ending, Pace, Script, ScriptedBackend, Start},
    signed_client::SignedClient,
    stack::Stack,
    waiting::until,
};
use tokio::task::JoinSet;

/// Concurrent clients.
const CLIENTS: u64 = 24;
/// Between two measurements of the gateway's memory.
const INTERVAL: Duration = Duration::from_millis(50);
/// Descriptors beyond those before the load that may stay open once all connections are closed.
const MAX_FURTHER_DESCRIPTORS: usize = 8;
/// Memory that the second half of the load may take beyond 125 % of the first: allocators keep some.
const MAX_GROWTH_KIB: u64 = 16 * 1024;
/// More than the kernel's buffers hold, so that a client can disconnect in the middle.
const LARGE: usize = 8 * 1024 * 1024;
/// Minimum exchanges, and aborted requests of each kind: the load lasts until there were as many.
const MIN_EXCHANGES: usize = 100;
const MIN_ABORTED: usize = 5;
/// How much longer it may last for that.
const MAX_FURTHER: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mixed_load_leaves_nothing_behind() {
    let seconds = env::var("SIGNPOST_MIXED_LOAD_SECONDS");
    let seconds = seconds.map_or(5.0, |seconds| seconds.parse().expect("seconds"));
    let duration = Duration::from_secs_f64(seconds);
    let (mut one, mut other) = tokio::join!(ScriptedBackend::start(), ScriptedBackend::start());
    let addresses = [one.address(), other.address()];
    prepare(&one);
    prepare(&other);
    let mut stack = start(addresses).await;
    let client = stack.client();
    for _ in addresses {
        assert_eq!(client.get("/x").send().await.status, 200);
    }
    let process = stack.running(Program::Gateway).id();
    let before = descriptors(process);

    let load = Load::start(stack.addresses().gateway, &client);
    let start = Instant::now();
    let mut largest = [0; 2];
    let mut down = None;
    while start.elapsed() < duration || down.is_none() || !load.is_enough(1) || largest[1] == 0 {
        let is_late = start.elapsed() > duration + MAX_FURTHER;
        assert!(!is_late, "no load: {:?}", load.counts);
        let half = usize::from(start.elapsed() >= duration / 2 && load.is_enough(2));
        largest[half] = stack
            .running(Program::Gateway)
            .resident_kib()
            .max(largest[half]);
        // Down for the third eighth of the time, and only then.
        if down.is_none() && start.elapsed() > duration / 4 {
            let since = Instant::now();
            one.end().await;
            tokio::time::sleep(duration / 8).await;
            one = ScriptedBackend::start_at(addresses[0]).await;
            prepare(&one);
            down = Some((since, Instant::now()));
        }
        tokio::time::sleep(INTERVAL).await;
    }
    let (counts, failures) = load.stop().await;

    let (down_from, down_until) = down.expect("a backend was down");
    let unexplained: Vec<_> = failures
        .iter()
        .filter(|failure| {
            failure.end < down_from || failure.start > down_until || !failure.is_problem
        })
        .map(|failure| &failure.what)
        .collect();
    let figures = format!(
        "{counts:?}, {} failed; {largest:?} KiB, {before} descriptors",
        failures.len(),
    );
    eprintln!("{figures}");
    assert!(unexplained.is_empty(), "{figures}: {unexplained:#?}");
    let [first, second] = largest;
    assert!(second <= first + first / 4 + MAX_GROWTH_KIB, "{figures}");

    // The gateway still uses both addresses; it may retry the one that was down a moment later.
    until("both addresses to serve", || async {
        let response = client.post("/last").param("a", "1").send().await;
        assert_eq!(response.status, 200);
        let serves = |backend: &ScriptedBackend| {
            let arrivals = backend.arrivals();
            arrivals.iter().any(|arrival| arrival.target == "/last")
        };
        (serves(&one) && serves(&other)).then_some(())
    })
    .await;
    // The gateway's idle connections close with the backends and the client.
    drop(client);
    tokio::join!(one.end(), other.end());
    until("all connections to be closed", || async {
        (descriptors(process) <= before + MAX_FURTHER_DESCRIPTORS).then_some(())
    })
    .await;
    let _again = ScriptedBackend::start_at(addresses[1]).await;
    let client = stack.client();
    until("the gateway to serve again", || async {
        let response = client.get("/again").send().await;
        (response.status == 200).then_some(())
    })
    .await;
}

async fn start(backends: [SocketAddr; 2]) -> Stack {
    let backends = backends.map(|address| address.to_string());
    let config = format!(
        "threads = 2\ntimeouts.connect_seconds = 30\n[versions.v1]\nbackends = {backends:?}\nhealth = {{ active = false, out_seconds = 1 }}"
    );
    Stack::builder()
        .in_front_of_address(free_address())
        .without(Program::Gateway, "versions")
        .gateway(&config)
        .start()
        .await
}

/// `/slow` takes a while, `/large` is large.
fn prepare(backend: &ScriptedBackend) {
    let response = |pace, body: &str| Script {
        bytes: format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes(),
        pace,
        start: Start::AfterRequest,
        ending: Ending::Open,
    };
    backend.script("/slow", response(Pace::SingleBytes, "slow"));
    backend.script("/large", response(Pace::AtOnce, &"x".repeat(LARGE)));
}

fn descriptors(process: u32) -> usize {
    let folder = fs::read_dir(format!("/proc/{process}/fd"));
    folder.expect("a running process has descriptors").count()
}

/// Clients that exchange and abort requests until they are stopped.
struct Load {
    is_stopping: Arc<AtomicBool>,
    counts: Arc<Counts>,
    clients: JoinSet<Vec<Failure>>,
}

/// What all clients have done.
#[derive(Debug, Default)]
struct Counts {
    exchanges: AtomicUsize,
    /// In the head, in the form, while waiting for the response, in its body.
    aborted: [AtomicUsize; 4],
}

struct Failure {
    start: Instant,
    end: Instant,
    /// Whether it is a response for a backend that is down: 502, 503 or 504, with a code.
    is_problem: bool,
    what: String,
}

impl Load {
    fn start(gateway: SocketAddr, signed: &SignedClient) -> Self {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let counts = Arc::<Counts>::default();
        let mut clients = JoinSet::new();
        for number in 1..=CLIENTS {
            let is_stopping = Arc::clone(&is_stopping);
            let mut client = Client {
                gateway,
                signed: signed.clone(),
                number,
                random: Random(number),
                counts: Arc::clone(&counts),
                failures: Vec::new(),
            };
            clients.spawn(async move {
                client.run(&is_stopping).await;
                client.failures
            });
        }
        Self {
            is_stopping,
            counts,
            clients,
        }
    }

    /// Whether there were as many exchanges and aborted requests as there must be, divided by `parts`.
    fn is_enough(&self, parts: usize) -> bool {
        let has = |count: &AtomicUsize, min| count.load(Ordering::Relaxed) >= min / parts;
        let mut aborted = self.counts.aborted.iter();
        has(&self.counts.exchanges, MIN_EXCHANGES) && aborted.all(|count| has(count, MIN_ABORTED))
    }

    async fn stop(self) -> (Arc<Counts>, Vec<Failure>) {
        self.is_stopping.store(true, Ordering::Relaxed);
        let failures = self.clients.join_all().await.into_iter().flatten();
        (self.counts, failures.collect())
    }
}

struct Client {
    gateway: SocketAddr,
    signed: SignedClient,
    number: u64,
    random: Random,
    counts: Arc<Counts>,
    failures: Vec<Failure>,
}

impl Client {
    async fn run(&mut self, is_stopping: &AtomicBool) {
        let mut connection = RawConnection::open(self.gateway).await;
        let mut turn = 0;
        while !is_stopping.load(Ordering::Relaxed) {
            turn += 1;
            match self.random.below(12) {
                0..=5 => self.exchange(&mut connection, turn).await,
                6..=7 => {
                    let mut connection = RawConnection::open(self.gateway).await;
                    self.exchange(&mut connection, turn).await;
                }
                kind => self.abort(kind - 8).await,
            }
        }
    }

    /// One whole exchange; afterwards the connection can be used again.
    async fn exchange(&mut self, connection: &mut RawConnection, turn: usize) {
        let target = format!("/{}-{turn}", self.number);
        let value = "y".repeat(self.random.below(2000));
        let call = match self.random.below(2) {
            0 => self.signed.get(&target).param("turn", &turn.to_string()),
            _ => self.signed.post(&target).param("value", &value),
        };
        let (target, _) = call.parts();
        let start = Instant::now();
        connection.send(&call.bytes(&[])).await;
        let response = connection.response().await;
        self.counts.exchanges.fetch_add(1, Ordering::Relaxed);
        let is_right = |status: u16, body: &[u8]| status == 200 && body == target.as_bytes();
        match response {
            Some(response) if is_right(response.status, &response.body) => {}
            other => self.failures.push(Failure {
                start,
                end: Instant::now(),
                is_problem: other.as_ref().is_some_and(|response| {
                    matches!(response.status, 502..=504) && response.code().is_some()
                }),
                what: format!("{target}: {other:?}"),
            }),
        }
        // After an error the gateway may have closed the connection.
        if self
            .failures
            .last()
            .is_some_and(|failure| failure.start == start)
        {
            *connection = RawConnection::open(self.gateway).await;
        }
    }

    /// Disconnects in the middle of a request or of its response.
    async fn abort(&mut self, kind: usize) {
        let mut connection = RawConnection::open(self.gateway).await;
        match kind {
            // In the head, in the form.
            0 | 1 => {
                let value = "y".repeat(1000);
                let bytes = self.signed.post("/aborted").param("a", &value).bytes(&[]);
                let head = bytes.len() - value.len() - 1;
                let range = if kind == 0 {
                    1..head / 2
                } else {
                    head + 1..bytes.len()
                };
                let length = range.start + self.random.below(range.len());
                connection.send(&bytes[..length]).await;
            }
            // While waiting, or in the body.
            _ => {
                let target = if kind == 2 { "/slow" } else { "/large" };
                connection.send(&request("GET", target, &[], b"")).await;
                let max_pause_ms = if kind == 2 { 50 } else { 10_000 };
                let pause = Duration::from_millis(
                    self.random
                        .below(max_pause_ms)
                        .try_into()
                        .expect("it is small"),
                );
                connection.has_activity_within(pause).await;
            }
        }
        self.counts.aborted[kind].fetch_add(1, Ordering::Relaxed);
    }
}
