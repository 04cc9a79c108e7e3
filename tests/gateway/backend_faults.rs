//! A backend process is killed, exits or freezes: at every moment of an exchange, with and without another address.
//!
//! CONTRACT 5: if no connection can be established, the gateway retries a request on another address; a GET also as
//! long as no byte of a response has come. Everything else gets 502 or 504, or a visibly incomplete answer.

use std::{fmt, net::SocketAddr, sync::Arc};

use end_to_end::{
    faulty_backend::{FaultyBackend, has_unread_bytes},
    port::free_address,
    program::Program,
    raw_connection::{RawConnection, RawResponse, request},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    signed_client::SignedClient,
    stack::Stack,
    waiting::until,
};
use tokio::{
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
};

/// One fault at one moment of one exchange.
#[derive(Clone, Copy)]
struct Case {
    method: &'static str,
    moment: Moment,
    /// Whether the version has another address, which is healthy.
    has_other: bool,
    fault: Fault,
}

/// When the fault occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// Before a connection is established.
    Before,
    /// With an idle connection in the gateway's pool.
    WhileIdle,
    RequestHead,
    Form,
    NoResponse,
    BackendHead,
    ResponseBody,
}

/// What happens to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// `SIGKILL`
    Kill,
    /// The process exits by itself.
    End,
    /// `SIGSTOP`
    Freeze,
    /// `SIGSTOP`, then `SIGCONT`
    Pause,
}

/// What the client must get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// The whole response.
    Responded,
    /// A response that is visibly incomplete.
    Truncated,
    /// A problem with this status and code.
    Problem(u16, &'static str),
}

/// A gateway with a version for each case.
struct Setup {
    stack: Stack,
    /// Answers with the target.
    other: RecordingBackend,
    cases: Vec<(Case, SocketAddr)>,
}

/// Cases in parallel: each is a process or two.
const MAX_PARALLEL: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_to_a_killed_backend_are_retried_or_get_502() {
    judge_all(Fault::Kill, "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_to_an_exited_backend_are_retried_or_get_502() {
    judge_all(Fault::End, "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_to_a_frozen_backend_are_retried_or_get_504() {
    judge_all(Fault::Freeze, "[timeouts]\nresponse_seconds = 8").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_briefly_frozen_backend_still_responds() {
    judge_all(Fault::Pause, "").await;
}

fn cases(fault: Fault) -> Vec<Case> {
    let moments = [
        Moment::Before,
        Moment::WhileIdle,
        Moment::RequestHead,
        Moment::Form,
        Moment::NoResponse,
        Moment::BackendHead,
        Moment::ResponseBody,
    ];
    let mut cases = Vec::new();
    for moment in moments {
        for method in ["GET", "POST"] {
            for has_other in [false, true] {
                if !(method == "GET" && moment == Moment::Form) {
                    cases.push(Case {
                        method,
                        moment,
                        has_other,
                        fault,
                    });
                }
            }
        }
    }
    cases
}

/// Judges every case, several in parallel, and reports all failures together.
async fn judge_all(fault: Fault, gateway: &str) {
    let cases = cases(fault);
    assert_eq!(cases.len(), 26);
    let setup = Arc::new(Setup::start(cases, gateway).await);
    let permits = Arc::new(Semaphore::new(MAX_PARALLEL));
    let mut judging = JoinSet::new();
    for number in 0..setup.cases.len() {
        let (setup, permits) = (Arc::clone(&setup), Arc::clone(&permits));
        judging.spawn(async move {
            let _permit = permits.acquire().await;
            let case = setup.cases[number].0.to_string();
            // A panic in one case must not end the others.
            let judged = tokio::spawn(async move { setup.judge(number).await }).await;
            match judged.map_err(|panic| panic.to_string()).flatten() {
                Ok(()) => None,
                Err(failure) => Some(format!("{case}: {failure}")),
            }
        });
    }
    let judged = judging.join_all().await;
    let count = judged.len();
    let wrong: Vec<_> = judged.into_iter().flatten().collect();
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

impl Case {
    fn expected(&self) -> Expected {
        let problem = match self.fault {
            Fault::Pause => return Expected::Responded,
            Fault::Kill | Fault::End => Expected::Problem(502, "backend_unreachable"),
            Fault::Freeze => Expected::Problem(504, "backend_timeout"),
        };
        // The kernel still accepts connections for a frozen process.
        let is_connected = match self.moment {
            Moment::Before | Moment::WhileIdle => self.fault == Fault::Freeze,
            _ => true,
        };
        let is_get = self.method == "GET";
        match self.moment {
            Moment::ResponseBody => Expected::Truncated,
            Moment::BackendHead => problem,
            _ if self.has_other && (is_get || !is_connected) => Expected::Responded,
            _ => problem,
        }
    }

    /// The moment, as the faulty backend names it.
    const fn stop(&self) -> &'static str {
        match self.moment {
            Moment::Before | Moment::WhileIdle => "never",
            Moment::RequestHead => "request-head",
            Moment::Form => "form",
            Moment::NoResponse => "no-answer",
            Moment::BackendHead => "answer-head",
            Moment::ResponseBody => "answer-body",
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            method,
            moment,
            has_other,
            fault,
        } = self;
        let addresses = if *has_other {
            "two addresses"
        } else {
            "one address"
        };
        write!(f, "{method}, {addresses}, {fault:?} at {moment:?}")
    }
}

impl Setup {
    async fn start(cases: Vec<Case>, gateway: &str) -> Self {
        let other = RecordingBackend::start().await;
        other.behave(Behaviour::responding(Delivery::Echoing));
        let cases: Vec<_> = cases
            .into_iter()
            .map(|case| (case, free_address()))
            .collect();
        let mut config = format!("threads = 1\ndefault_version = \"c0\"\n{gateway}\n");
        for (number, (case, address)) in cases.iter().enumerate() {
            let mut backends = vec![address.to_string()];
            backends.extend(case.has_other.then(|| other.address().to_string()));
            config.push_str(&format!(
                "[versions.c{number}]\nbackends = {backends:?}\nhealth = {{ active = false }}\n"
            ));
        }
        let stack = Stack::builder()
            .in_front_of_address(free_address())
            .without(Program::Gateway, "versions")
            .gateway(&config)
            .start()
            .await;
        Self {
            stack,
            other,
            cases,
        }
    }

    async fn judge(&self, number: usize) -> Result<(), String> {
        let (case, address) = self.cases[number];
        let mut backend = FaultyBackend::start(address, case.stop()).await;
        let client = Client::new(self, number);
        match case.moment {
            Moment::Before => {
                self.fault_before(&case, address, &mut backend, &client)
                    .await?
            }
            Moment::WhileIdle => {
                // One request for each address.
                for _ in 0..2 {
                    client.has_response("GET", "/first").await?;
                }
                self.fault_before(&case, address, &mut backend, &client)
                    .await?;
            }
            _ => fault_within(&case, &mut backend, &client).await?,
        }
        // The remaining address serves immediately. A frozen backend still gets forms: the kernel accepts connections.
        if case.has_other && case.fault != Fault::Freeze {
            client.has_response("POST", "/left").await?;
        }
        if case.has_other {
            client.has_response("GET", "/left").await?;
        }
        backend.kill().await;
        let _restarted = FaultyBackend::start(address, "never").await;
        for method in ["GET", "POST", "GET", "POST"] {
            client.has_response(method, "/again").await?;
        }
        Ok(())
    }

    /// Causes the fault, then sends a request for each address.
    async fn fault_before(
        &self,
        case: &Case,
        address: SocketAddr,
        backend: &mut FaultyBackend,
        client: &Client,
    ) -> Result<(), String> {
        match case.fault {
            Fault::Kill => backend.kill().await,
            Fault::End => backend.end().await,
            Fault::Freeze | Fault::Pause => backend.freeze().await,
        }
        let mut met = 0;
        for turn in 0..=usize::from(case.has_other) {
            let target = format!("/struck-{turn}");
            let mut exchange = client.begin(case.method, &target);
            if case.fault == Fault::Pause {
                until("the request to arrive", || async {
                    (has_unread_bytes(address) || exchange.is_finished()).then_some(())
                })
                .await;
                // It may have gone to the other address.
                if has_unread_bytes(address) {
                    backend.thaw();
                }
            }
            let outcome = (&mut exchange).await.expect("the client does not panic");
            let is_at_other = case.has_other && !self.arrived(client.number, &target).is_empty();
            match judge(&outcome, case.expected(), (client.number, &target)) {
                Ok(()) => met += 1,
                // The request went to the other address.
                Err(_) if is_at_other && outcome.is_whole(client.number, &target) => {}
                Err(failure) => return Err(failure),
            }
        }
        if met == 0 {
            Err("no request met the fault".to_owned())
        } else {
            Ok(())
        }
    }

    /// The requests for a target that arrived at the other address.
    fn arrived(&self, number: usize, target: &str) -> Vec<String> {
        let target = target_of(number, target);
        let arrived = self
            .other
            .requests()
            .into_iter()
            .map(|request| request.target);
        arrived.filter(|arrived| *arrived == target).collect()
    }
}

/// Causes the fault once the exchange has reached its moment.
async fn fault_within(
    case: &Case,
    backend: &mut FaultyBackend,
    client: &Client,
) -> Result<(), String> {
    for turn in 0..3 {
        let target = format!("/struck-{turn}");
        let mut exchange = client.begin(case.method, &target);
        tokio::select! {
            () = backend.wait_for_moment() => {}
            outcome = &mut exchange => {
                // The request went to the other address.
                let outcome = outcome.expect("the client does not panic");
                if case.has_other && outcome.is_whole(client.number, &target) {
                    continue;
                }
                return Err(format!("{outcome:?} before the fault"));
            }
        }
        match case.fault {
            Fault::Kill => backend.kill().await,
            Fault::End => backend.end().await,
            Fault::Freeze => backend.freeze().await,
            Fault::Pause => {
                backend.freeze().await;
                backend.thaw();
                backend.resume().await;
            }
        }
        let outcome = exchange.await.expect("the client does not panic");
        return judge(&outcome, case.expected(), (client.number, &target));
    }
    Err("no request arrived at the faulty backend".to_owned())
}

/// What the client received.
#[derive(Debug)]
struct Outcome {
    response: Option<RawResponse>,
    /// The bytes of a truncated answer.
    rest: Vec<u8>,
}

impl Outcome {
    fn is_whole(&self, number: usize, target: &str) -> bool {
        let target = target_of(number, target);
        let is_whole =
            |response: &RawResponse| response.status == 200 && response.body == target.as_bytes();
        self.response.as_ref().is_some_and(is_whole)
    }
}

fn judge(outcome: &Outcome, expected: Expected, sent: (usize, &str)) -> Result<(), String> {
    let is_right = match (expected, &outcome.response) {
        (Expected::Responded, Some(_)) => outcome.is_whole(sent.0, sent.1),
        (Expected::Truncated, None) => outcome.rest.starts_with(b"HTTP/1.1 200 "),
        (Expected::Problem(status, code), Some(response)) => {
            response.status == status && response.code().as_deref() == Some(code)
        }
        _ => false,
    };
    let rest = outcome.rest.escape_ascii();
    match is_right {
        true => Ok(()),
        false => Err(format!(
            "{:?}, then \"{rest}\"; expected: {expected:?}",
            outcome.response
        )),
    }
}

/// A client of one version.
struct Client {
    gateway: SocketAddr,
    signed: SignedClient,
    number: usize,
    form: String,
}

impl Client {
    fn new(setup: &Setup, number: usize) -> Self {
        let is_large = setup.cases[number].0.moment == Moment::Form;
        Self {
            gateway: setup.stack.addresses().gateway,
            signed: setup.stack.client(),
            number,
            form: "y".repeat(if is_large { 60 * 1024 } else { 1 }),
        }
    }

    /// Sends a request on a connection of its own.
    fn begin(&self, method: &str, target: &str) -> JoinHandle<Outcome> {
        let target = target_of(self.number, target);
        let version = format!("c{}", self.number);
        let bytes = match method {
            "GET" => request(
                "GET",
                &target,
                &[&format!("Acme-X-Version: {version}")],
                b"",
            ),
            _ => {
                let call = self.signed.post(&target).version(&version);
                call.param("a", &self.form).bytes(&[])
            }
        };
        let gateway = self.gateway;
        tokio::spawn(async move {
            let mut connection = RawConnection::open(gateway).await;
            connection.send(&bytes).await;
            let response = connection.response().await;
            let rest = connection.unread().to_vec();
            Outcome { response, rest }
        })
    }

    async fn has_response(&self, method: &str, target: &str) -> Result<(), String> {
        let outcome = self
            .begin(method, target)
            .await
            .expect("the client does not panic");
        match outcome.is_whole(self.number, target) {
            true => Ok(()),
            false => Err(format!("{method} {target}: {outcome:?}")),
        }
    }
}

fn target_of(number: usize, target: &str) -> String {
    format!("/{number}{target}")
}
