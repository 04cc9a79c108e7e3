//! Stops of gateways behind the fronts, with the default settings: no request is lost. Issue 26, row 4.

use std::{
    env,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use end_to_end::{
    metrics::Scrape,
    program::{Instance, Program},
    signed_client::SignedClient,
    waiting::until_within,
};
use tokio::task::JoinSet;

use super::*;

/// Clients, each with a connection: more than are busy at a time, so that the fronts hold idle connections, too.
const CLIENTS: usize = 40;
/// Stops in all, unless this variable has another number.
const STOPS: (&str, usize) = ("SIGNPOST_TEST_STOPS", 3);
/// Requests of all clients between two stops, at least.
const BETWEEN: usize = 1000;
/// How long these may take on a busy machine.
const MAX_BETWEEN: Duration = Duration::from_secs(120);

#[derive(Default)]
struct Counts {
    is_stopping: AtomicBool,
    served: AtomicUsize,
    lost: Mutex<Vec<String>>,
}

/// A client of the front.
#[derive(Clone)]
struct Client {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    signer: SignedClient,
    counts: Arc<Counts>,
}

impl Client {
    /// Sends GET and POST by turns.
    async fn run(self) {
        let mut number = 0;
        while !self.counts.is_stopping.load(SeqCst) {
            let tls = Arc::clone(&self.tls);
            let mut connection = RawConnection::open_tls(CLIENT, self.address, NAME, tls).await;
            let mut is_open = true;
            while is_open && !self.counts.is_stopping.load(SeqCst) {
                number += 1;
                let call = if number % 2 == 0 {
                    self.signer.get("/x")
                } else {
                    self.signer.post("/x")
                };
                let call = call.param("number", &number.to_string());
                connection.send(&call.bytes(&[])).await;
                let response = connection.response().await;
                let status = response.as_ref().map(|one| one.status);
                if status == Some(200) {
                    self.counts.served.fetch_add(1, SeqCst);
                } else {
                    let lost = format!("{number}: {status:?}");
                    self.counts.lost.lock().unwrap().push(lost);
                }
                is_open = response.is_some_and(|one| one.header("connection") != Some("close"));
            }
        }
    }
}

async fn stops_lose_no_request(kind: Kind, limits: &[(&str, &str)]) {
    let mut front = Front::start_with(kind, limits, |stack| {
        let stack = stack.several(Program::Gateway, 2);
        stack.without(Program::Gateway, "shutdown")
    })
    .await;
    let counts = Arc::new(Counts::default());
    let client = Client {
        address: front.address,
        tls: Arc::clone(&front.tls),
        signer: front.stack.client(),
        counts: Arc::clone(&counts),
    };
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(client.clone().run());
    }
    let (variable, stops) = STOPS;
    let stops = env::var(variable).map_or(stops, |stops| stops.parse().unwrap());
    for number in 0..stops {
        let instance = Program::Gateway.number(number % 2);
        until_used(&front.stack, instance).await;
        front.stack.running(instance).terminate();
        assert!(front.stack.wait_for_exit(instance).await.success());
        front.stack.restart(instance).await;
    }
    until_used(&front.stack, Program::Gateway.number(0)).await;
    let upgraded = front.stack.upgrade().await;
    assert!(upgraded.status.success(), "{upgraded:?}");
    let before = counts.served.load(SeqCst);
    until_within(MAX_BETWEEN, "requests after the upgrade", || async {
        (counts.served.load(SeqCst) >= before + BETWEEN).then_some(())
    })
    .await;
    counts.is_stopping.store(true, SeqCst);
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    let (served, lost) = (counts.served.load(SeqCst), counts.lost.lock().unwrap());
    assert!(lost.is_empty(), "{served} served, lost: {lost:?}");
}

/// Waits until the front sends requests to this gateway.
async fn until_used(stack: &Stack, instance: Instance) {
    let management = stack.addresses().management_of(instance);
    let what = format!("the front to use {instance}");
    until_within(MAX_BETWEEN, &what, || async {
        let metrics = Scrape::of(management).await;
        (metrics.sum("signpost_requests_total", &[]) >= BETWEEN as f64 / 4.0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stops_under_load_behind_nginx_lose_no_request() {
    let limits = [("rate=500r/s", "rate=500000r/s")];
    stops_lose_no_request(Kind::Nginx, &limits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stops_under_load_behind_haproxy_lose_no_request() {
    let limits = [
        ("http_req_rate gt 5000 ", "http_req_rate gt 5000000 "),
        ("http_req_rate gt 20000 ", "http_req_rate gt 20000000 "),
    ];
    stops_lose_no_request(Kind::Haproxy, &limits).await;
}
