//! Metrics of requests at the gateway: they are what the clients counted. #15

use std::{collections::BTreeMap, fmt::Write, net::SocketAddr};

use end_to_end::{
    http2_client::Http2Client,
    metrics::Scrape,
    port::free_address,
    program::{Program, output_text},
    raw_connection::{RawConnection, request},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    signed_client::{Call, SignedClient},
    stack::{Application, Stack, StackBuilder},
    waiting::until,
};
use tokio::task::JoinSet;

const REQUESTS: &str = "signpost_requests_total";
const APPLICATIONS: &str = "signpost_application_requests_total";
const FAILURES: &str = "signpost_verification_failures_total";

/// A listener for both protocols.
const BOTH: &str = "[[listen]]\naddress = \"$LISTEN\"\nprotocols = [\"http/1.1\", \"h2c\"]\n";

/// Requests to the listener that redirects.
const REDIRECTED: usize = 3;

/// Version, source, status class and problem code of a request.
type Labels = [&'static str; 4];

/// What the clients have counted.
#[derive(Default)]
struct Tally(BTreeMap<Labels, f64>);

impl Tally {
    fn add(&mut self, labels: Labels) {
        *self.0.entry(labels).or_default() += 1.0;
    }

    /// Sends a call, and counts its response.
    async fn send(&mut self, call: Call<'_>, status: u16, labels: Labels) {
        let response = call.send().await;
        assert_eq!(response.status, status, "{}", response.text());
        self.add(labels);
    }

    fn total(&self) -> f64 {
        self.0.values().sum()
    }

    /// The number of requests with this value of a label.
    fn of(&self, label: usize, value: &str) -> f64 {
        let of = self.0.iter().filter(|(labels, _)| labels[label] == value);
        of.map(|(_, count)| count).sum()
    }
}

async fn recording(change: impl FnOnce(StackBuilder) -> StackBuilder) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let builder = Stack::builder().in_front_of(&backend);
    (change(builder).start().await, backend)
}

async fn scrape(stack: &Stack) -> Scrape {
    Scrape::of(stack.addresses().management).await
}

/// The metrics, once this many requests were counted, also by application: a client has its answer a moment before.
async fn scrape_with(stack: &Stack, requests: f64) -> Scrape {
    until(&format!("{requests} requests to be counted"), || async {
        let scrape = scrape(stack).await;
        let [counted, of_apps] = [REQUESTS, APPLICATIONS].map(|name| scrape.sum(name, &[]));
        assert!(counted <= requests, "{counted} of {requests} were counted");
        ([counted, of_apps] == [requests; 2]).then_some(scrape)
    })
    .await
}

/// The number of requests of an application, or of another label in its place.
fn of_app(scrape: &Scrape, app: &str) -> f64 {
    scrape.sum(APPLICATIONS, &[("app", app)])
}

/// The applications, and other labels in their place, that have requests.
fn apps(scrape: &Scrape) -> Vec<&str> {
    let samples = scrape.samples(APPLICATIONS, &[]);
    let mut apps: Vec<_> = samples.map(|sample| &*sample.labels["app"]).collect();
    apps.sort_unstable();
    apps.dedup();
    apps
}

/// Number of values of a histogram.
fn count(scrape: &Scrape, name: &str, labels: &[(&str, &str)]) -> f64 {
    scrape.sum(&format!("{name}_count"), labels)
}

/// Number of values up to a bound.
fn up_to(scrape: &Scrape, name: &str, labels: &[(&str, &str)], bound: f64) -> f64 {
    let name = format!("{name}_bucket");
    let mut buckets = scrape.samples(&name, labels);
    let bucket = buckets.find(|one| one.labels["le"].parse() == Ok(bound));
    bucket.expect("a bucket ends there").value
}

fn reload(stack: &Stack, toml: &str) {
    stack.configure(Program::Gateway, toml);
    let reloaded = stack.reload(Program::Gateway);
    assert!(reloaded.status.success(), "{}", output_text(&reloaded));
}

fn signed(client: &SignedClient) -> Call<'_> {
    client.get("/x").param("a", "1")
}

/// Successes of all sources of a version.
async fn send_successes(stack: &Stack, tally: &mut Tally) {
    let client = stack.client();
    let v1 = ["v1", "header", "2xx", ""];
    for _ in 0..5 {
        tally.send(signed(&client).version("v1"), 200, v1).await;
    }
    let in_capitals = signed(&client).version("V2");
    let v2 = ["v2", "header", "2xx", ""];
    tally.send(in_capitals, 200, v2).await;
    let unknown = signed(&client).version("v9");
    let labels = ["v1", "unknown", "2xx", ""];
    tally.send(unknown, 200, labels).await;
    let unsigned = client.get("/x");
    let labels = ["v1", "default", "2xx", ""];
    tally.send(unsigned, 200, labels).await;
    let callback = client.get("/login?state=v2.x&code=y").unsigned();
    let labels = ["v2", "state", "2xx", ""];
    tally.send(callback, 200, labels).await;
    let http2 = Http2Client::open(stack.addresses().gateway).await;
    for _ in 0..3 {
        let response = http2.send(&signed(&client).version("v2")).await.unwrap();
        assert_eq!(response.status, 200);
        tally.add(v2);
    }
    let missing = client.get("/x").param("a", "1").without_sign();
    assert_eq!(http2.send(&missing).await.unwrap().status, 403);
    tally.add(["", "", "4xx", "sign_missing"]);
}

/// Requests that the gateway rejects.
async fn send_rejected(stack: &Stack, tally: &mut Tally) {
    let client = stack.client();
    let rejected = |code| ["", "", "4xx", code];
    let labels = rejected("sign_mismatch");
    for sign in ["0".repeat(32), "0".repeat(32)] {
        tally
            .send(signed(&client).sign_given(&sign), 403, labels)
            .await;
    }
    let labels = rejected("time_missing");
    tally
        .send(signed(&client).without_time(), 403, labels)
        .await;
    let seconds = signed(&client).time("1732104000");
    tally.send(seconds, 400, rejected("time_invalid")).await;
    let late = signed(&client).later_by_ms(-120_000);
    tally.send(late, 403, rejected("time_out_of_window")).await;
    let method = client.call(http::Method::DELETE, "/x");
    tally
        .send(method, 405, rejected("method_not_allowed"))
        .await;
    // Not HTTP.
    let mut connection = stack.raw().await;
    connection.send(b"GARBAGE\r\n\r\n").await;
    assert_eq!(connection.response().await.unwrap().status, 400);
    tally.add(rejected(""));
}

/// A preflight, and requests to the listener that redirects: the gateway answers them before they have a version.
async fn send_all(stack: &Stack, redirecting: SocketAddr, tally: &mut Tally) {
    let mut connection = stack.raw().await;
    let preflight = [
        "Origin: https://app.example.com",
        "Access-Control-Request-Method: GET",
    ];
    let preflight = request("OPTIONS", "/x", &preflight, b"");
    connection.send(&preflight).await;
    assert_eq!(connection.response().await.unwrap().status, 204);
    tally.add(["", "", "2xx", ""]);
    let mut connection = RawConnection::open(redirecting).await;
    for _ in 0..REDIRECTED {
        connection.send(&request("GET", "/x", &[], b"")).await;
        assert_eq!(connection.response().await.unwrap().status, 308);
        tally.add(["", "", "3xx", ""]);
    }
}

/// Failures of a backend, and its own problems.
async fn send_failing(stack: &Stack, backend: &RecordingBackend, tally: &mut Tally) {
    let client = stack.client();
    let labels = |class, code| ["v2", "header", class, code];
    let post = || client.post("/x").param("a", "1").version("v2");
    for (sent, counted) in [("login_pending", "login_pending"), ("sold_out", "other")] {
        backend.behave(Behaviour {
            head: format!("HTTP/1.1 409 Conflict\r\nX-Gateway-Problem: {sent}\r\n"),
            ..Behaviour::default()
        });
        tally.send(post(), 409, labels("4xx", counted)).await;
    }
    backend.behave(Behaviour::responding(Delivery::HangUp));
    let failed = labels("5xx", "backend_unreachable");
    tally.send(post(), 502, failed).await;
    // The client leaves before a response.
    backend.behave(Behaviour::responding(Delivery::Never));
    let before = backend.requests().len();
    let mut connection = stack.raw().await;
    let version = ["Acme-X-Version: v2"];
    connection.send(&request("GET", "/x", &version, b"")).await;
    until("the backend to have the request", || async {
        (backend.requests().len() > before).then_some(())
    })
    .await;
    drop(connection);
    tally.add(labels("none", ""));
    backend.behave(Behaviour::default());
}

#[tokio::test]
async fn counts_are_what_the_clients_counted() {
    let redirecting = free_address();
    let config = format!(
        "{BOTH}[[listen]]\naddress = '{redirecting}'\nredirect_to_https = true\n
         [cors]\norigins = ['https://app.example.com']"
    );
    let (stack, backend) = recording(|builder| {
        let builder = builder.gateway(&config);
        builder.gateway("public_url = 'https://api.example.com'")
    })
    .await;
    let mut tally = Tally::default();
    send_all(&stack, redirecting, &mut tally).await;
    send_successes(&stack, &mut tally).await;
    send_rejected(&stack, &mut tally).await;
    send_failing(&stack, &backend, &mut tally).await;
    let scrape = scrape_with(&stack, tally.total()).await;
    let counted = scrape.samples(REQUESTS, &[]).map(|sample| {
        let names = ["version", "version_source", "status_class", "problem_code"];
        // In this format, an empty value is the same as none.
        let label = |name: &str| sample.labels.get(name).cloned().unwrap_or_default();
        (names.map(label), sample.value)
    });
    let counted: BTreeMap<_, _> = counted.collect();
    let expected = tally.0.iter();
    let expected: BTreeMap<_, _> = expected
        .map(|(labels, count)| (labels.map(str::to_owned), *count))
        .collect();
    assert_eq!(counted, expected);

    // All but the malformed head, the callback, the preflight and redirects are of the single application; the method
    // precedes the application.
    assert_eq!(apps(&scrape), ["default", "none"]);
    let without = 4.0 + REDIRECTED as f64;
    assert_eq!(of_app(&scrape, "none"), without);
    assert_eq!(of_app(&scrape, "default"), tally.total() - without);
    let left = [("app", "default"), ("status_class", "none")];
    assert_eq!(scrape.value(APPLICATIONS, &left), Some(1.0));

    let duration = "signpost_request_duration_seconds";
    for version in ["", "v1", "v2"] {
        let counted = count(&scrape, duration, &[("version", version)]);
        assert_eq!(counted, tally.of(0, version), "{version}");
        let all = up_to(&scrape, duration, &[("version", version)], f64::INFINITY);
        assert_eq!(all, counted, "{version}");
    }
    let own = count(&scrape, "signpost_gateway_duration_seconds", &[]);
    assert_eq!(own, tally.total());
    // Without the request that failed, and the one whose client left.
    for (backend, answered) in [("v1", tally.of(0, "v1")), ("v2", tally.of(0, "v2") - 2.0)] {
        let name = "signpost_backend_duration_seconds";
        let counted = count(&scrape, name, &[("backend", backend)]);
        assert_eq!(counted, answered, "{backend}");
    }
    // With both of them.
    let responses = "signpost_backend_responses_total";
    let all = scrape.sum(responses, &[("backend", "v2")]);
    assert_eq!(all, tally.of(0, "v2"));
    for (class, expected) in [("none", 1.0), ("4xx", 2.0), ("5xx", 1.0), ("3xx", 0.0)] {
        let labels = [("backend", "v2"), ("status_class", class)];
        assert_eq!(scrape.value(responses, &labels), Some(expected), "{class}");
    }
    for (cause, expected) in [
        ("hint_key_or_value", 2.0),
        ("sign_missing", 1.0),
        ("time_missing", 1.0),
        ("hint_seconds", 1.0),
        ("time_out_of_window", 1.0),
    ] {
        let counted = scrape.value(FAILURES, &[("cause", cause)]);
        assert_eq!(counted, Some(expected), "{cause}");
    }
    assert_eq!(scrape.sum(FAILURES, &[]), 6.0);
}

#[tokio::test]
async fn the_gateways_own_time_is_without_the_wait_for_the_form() {
    let (stack, _backend) =
        recording(|builder| builder.gateway("[timeouts]\nbody_seconds = 1")).await;
    let mut connection = stack.raw().await;
    let headers = [
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 100",
    ];
    connection
        .send(&request("POST", "/x", &headers, b"a=1"))
        .await;
    assert_eq!(connection.response().await.unwrap().status, 408);
    let scrape = scrape_with(&stack, 1.0).await;
    let whole = scrape.sum("signpost_request_duration_seconds_sum", &[]);
    let own = scrape.sum("signpost_gateway_duration_seconds_sum", &[]);
    assert!(whole >= 1.0, "{whole}");
    assert!(whole - own >= 0.9, "{own} of {whole}");
}

#[tokio::test]
async fn a_wrong_clock_of_a_client_shows() {
    let (stack, _backend) = recording(|builder| builder).await;
    let client = stack.client();
    let skew = "signpost_clock_skew_seconds";
    let before = scrape(&stack).await;
    assert_eq!(before.families()[skew], "histogram");
    assert_eq!(count(&before, skew, &[]), 0.0);
    // Half a minute ahead: within the window.
    for _ in 0..3 {
        signed(&client).later_by_ms(25_000).send().await.ok();
    }
    // Two minutes behind, a wrong signature, and a time of the year 5000.
    let absurd = signed(&client).time("95617584000000");
    let forged = signed(&client).sign_given(&"0".repeat(32));
    for call in [signed(&client).later_by_ms(-120_000), forged, absurd] {
        assert_eq!(call.send().await.status, 403);
    }
    let scrape = scrape_with(&stack, 6.0).await;
    let verified = [("verified", "true"), ("direction", "ahead")];
    assert_eq!(count(&scrape, skew, &[("verified", "true")]), 3.0);
    assert_eq!(count(&scrape, skew, &verified), 3.0);
    assert_eq!(up_to(&scrape, skew, &verified, 10.0), 0.0);
    assert_eq!(up_to(&scrape, skew, &verified, 30.0), 3.0);
    let sum = scrape.sum(&format!("{skew}_sum"), &verified);
    assert!((30.0..=75.0).contains(&sum), "{sum}");
    let unverified = [("verified", "false")];
    assert_eq!(count(&scrape, skew, &unverified), 3.0);
    let behind = [("verified", "false"), ("direction", "behind")];
    assert_eq!(
        up_to(&scrape, skew, &behind, 60.0),
        up_to(&scrape, skew, &behind, 300.0) - 1.0
    );
    // An hour at most.
    let sum = scrape.sum(&format!("{skew}_sum"), &unverified);
    assert!((3700.0..=3800.0).contains(&sum), "{sum}");
}

#[tokio::test]
async fn counts_survive_a_reload_and_a_removed_version() {
    let (stack, _backend) = recording(|builder| builder).await;
    let client = stack.client();
    let send = async |version: &str| {
        signed(&client).version(version).send().await.ok();
    };
    send("v1").await;
    send("v2").await;
    scrape_with(&stack, 2.0).await;
    let further = format!("[versions.v3]\nbackend = \"{}\"", stack.addresses().v1);
    reload(&stack, &further);
    send("v1").await;
    send("v3").await;
    let scrape = scrape_with(&stack, 4.0).await;
    for (version, expected) in [("v1", 2.0), ("v2", 1.0), ("v3", 1.0)] {
        assert_eq!(scrape.sum(REQUESTS, &[("version", version)]), expected);
        let duration = "signpost_request_duration_seconds";
        let counted = count(&scrape, duration, &[("version", version)]);
        assert_eq!(counted, expected);
    }
}

async fn send(stack: &Stack, app: &Application, requests: usize) {
    let client = stack.client_of(app);
    for _ in 0..requests {
        signed(&client).send().await.ok();
    }
}

#[tokio::test]
async fn the_busiest_applications_have_counts_of_their_own() {
    let two = "[metrics]\napplications = 2";
    let (stack, _backend) = recording(|builder| builder.multi().gateway(two)).await;
    let [one, other, busy] =
        ["one", "other", "busy"].map(|name| stack.create_application(name, &[]));
    send(&stack, &one, 4).await;
    scrape_with(&stack, 4.0).await;
    // Rejected, but its application is known.
    let client = stack.client_of(&other);
    let forged = signed(&client).sign_given(&"0".repeat(32)).send().await;
    assert_eq!(forged.status, 403);
    let unknown = stack.client().with_app("nobody");
    assert_eq!(signed(&unknown).send().await.status, 404);
    let seen = scrape_with(&stack, 6.0).await;
    let rejected = [("app", &*other.ident), ("status_class", "4xx")];
    assert_eq!(seen.value(APPLICATIONS, &rejected), Some(1.0));
    assert_eq!(of_app(&seen, &one.ident), 4.0);
    assert_eq!(of_app(&seen, "none"), 1.0);
    // There is no place left, until a turn finds that it is busier.
    send(&stack, &busy, 20).await;
    until("its requests to be counted", || async {
        let seen = scrape(&stack).await;
        (of_app(&seen, "other") + of_app(&seen, &busy.ident) == 20.0).then_some(())
    })
    .await;
    let before = until("it to be listed", || async {
        send(&stack, &busy, 1).await;
        let scrape = scrape(&stack).await;
        (of_app(&scrape, &busy.ident) > 0.0).then_some(scrape)
    })
    .await;
    assert!(
        !apps(&before).contains(&&*other.ident),
        "{:?}",
        apps(&before)
    );
    assert_eq!(of_app(&before, &one.ident), 4.0);
    // Another limit takes effect at a reload; what was counted as other stays there.
    reload(&stack, "[metrics]\napplications = 0");
    send(&stack, &one, 2).await;
    let after = until("both to be counted as other", || async {
        let scrape = scrape(&stack).await;
        (of_app(&scrape, "other") == of_app(&before, "other") + 2.0).then_some(scrape)
    })
    .await;
    assert_eq!(apps(&after), ["none", "other"]);
}

/// Applications that call, and copies of each in the store: 100,000 in all.
const CALLERS: usize = 625;
const COPIES: usize = 159;
const CONNECTIONS: usize = 8;

/// An application that was imported, by its number.
fn imported(number: usize) -> Application {
    Application {
        ident: format!("app-{number}"),
        key: format!("4283fefc63f0cd0e873a0000c6d07ef7{number:032x}"),
    }
}

/// Imports the callers, and copies them: an import of all takes too long in a debug build.
fn fill_store(stack: &Stack) {
    let mut file = "ident,key,name\n".to_owned();
    for number in 0..CALLERS {
        let Application { ident, key } = imported(number);
        writeln!(file, "{ident},{key},Application {number}").unwrap();
    }
    let path = stack.folder().join("apps.csv");
    std::fs::write(&path, file).unwrap();
    let output = stack.command(&["app", "import", &path.display().to_string()]);
    assert!(output.status.success(), "{}", output_text(&output));
    let numbers: Vec<_> = (0..COPIES).map(|number| format!("({number})")).collect();
    let copied = "name, state, created_at, key_sealed, return_to_origins";
    let copy = format!(
        "WITH numbers (number) AS (VALUES {}) INSERT INTO applications (ident, {copied}) \
         SELECT ident || '-' || number, {copied} FROM applications, numbers",
        numbers.join(", ")
    );
    stack.store().query(&copy);
    let stored = stack.store().query("SELECT count(*) FROM applications");
    assert_eq!(stored.number(), 100_000);
}

#[tokio::test]
async fn a_hundred_thousand_applications_do_not_grow_the_label_set() {
    // A connection serves all of its requests, so that the test needs few ports.
    let config = "[connections]\nrequests = 1000000\n[log]\naccess_sample = 0";
    let (stack, _backend) = recording(|builder| builder.multi().gateway(config)).await;
    fill_store(&stack);
    let mut calling = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let client = stack.client();
        calling.spawn(async move {
            for caller in (connection..CALLERS).step_by(CONNECTIONS) {
                let Application { ident, key } = imported(caller);
                let client = client.with_app(&ident).with_key(&key);
                signed(&client).send().await.ok();
            }
        });
    }
    calling.join_all().await;
    let scrape = scrape_with(&stack, CALLERS as f64).await;
    let apps = apps(&scrape);
    assert_eq!(apps.len(), 20 + 1, "{apps:?}");
    assert!(apps.contains(&"other"), "{apps:?}");
    assert_eq!(scrape.samples(APPLICATIONS, &[]).count(), 20 + 1);
    assert_eq!(scrape.sum(APPLICATIONS, &[]), CALLERS as f64);
    assert_eq!(of_app(&scrape, "other"), CALLERS as f64 - 20.0);
}
