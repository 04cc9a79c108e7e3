//! Traces: the spans of gateway and backend, at a collector that takes them, stalls, refuses or is gone. CONTRACT 1, 9.

use std::fs;

use end_to_end::{
    browser::Browser,
    browser::Decision,
    certificates::Authority,
    folder::Folder,
    forward_proxy::ForwardProxy,
    logins::{begin_polling, check, confirm_polling, credential},
    otlp_collector::{CollectedSpan, OtlpCollector, Reply},
    port::free_address,
    program::{Program, output_text},
    raw_connection::{RawConnection, request},
    recording_backend::{RecordedRequest, RecordingBackend},
    signed_client::fetch,
    stack::{APP_KEY, Stack},
    waiting::{WAIT_TIMEOUT, until, within},
};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;

const ALL: u32 = 1_000_000;
const THEIR_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const THEIR_SPAN: &str = "b7ad6b7169203331";

/// A `traceparent` of a caller of the gateway.
fn theirs(flags: &str) -> String {
    format!("traceparent: 00-{THEIR_TRACE}-{THEIR_SPAN}-{flags}")
}

/// A gateway that exports to a collector, in front of a recording backend.
async fn recording(
    collector: &OtlpCollector,
    per_million: u32,
    further: &str,
) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let tracing = collector.tracing(per_million, further);
    let builder = Stack::builder().in_front_of(&backend);
    let trusting = "trusted_proxies = [\"127.0.0.2\"]";
    let stack = builder.gateway(trusting).gateway(&tracing);
    (stack.start().await, backend)
}

/// Sends a request from an address of loopback, expects 200, and returns it as it arrived.
async fn pass(
    stack: &Stack,
    backend: &RecordingBackend,
    source: &str,
    lines: &[&str],
) -> RecordedRequest {
    let before = backend.requests().len();
    let source = source.parse().unwrap();
    let mut connection = RawConnection::open_from(source, stack.addresses().gateway).await;
    connection.send(&request("GET", "/x", lines, b"")).await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    backend.request_number(before + 1).await
}

const STRANGER: &str = "127.0.0.1";
const PROXY: &str = "127.0.0.2";

/// `traceparent` in its parts: version, trace, span, flags.
fn traceparent(arrived: &RecordedRequest) -> [String; 4] {
    let value = arrived.value("traceparent").unwrap();
    let parts: Vec<_> = value.split('-').map(str::to_owned).collect();
    parts.try_into().unwrap()
}

/// The only span of this name below a parent.
fn below<'s>(spans: &'s [CollectedSpan], parent: &CollectedSpan, name: &str) -> &'s CollectedSpan {
    let is_it = |span: &&CollectedSpan| span.parent == parent.id && span.name == name;
    let found: Vec<_> = spans.iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{name} below {parent:?}: {spans:#?}");
    assert_eq!(found[0].trace, parent.trace);
    found[0]
}

fn requests_of<'s>(spans: &'s [CollectedSpan], service: &str) -> Vec<&'s CollectedSpan> {
    let is_it = |span: &&CollectedSpan| span.service == service && span.name == "request";
    spans.iter().filter(is_it).collect()
}

/// The number of a program's spans with this result.
async fn counted(stack: &Stack, result: &str) -> u64 {
    let url = format!("http://{}/metrics", stack.addresses().management);
    let text = fetch(&url).await.text();
    let name = format!("signpost_spans_total{{result=\"{result}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name));
    line.unwrap_or_else(|| panic!("{name}: {text}"))
        .parse()
        .unwrap()
}

/// Checks each request of the gateway, and that of the backend below it; returns the names of the gateway's steps.
fn assert_linked(spans: &[CollectedSpan]) {
    let requests = requests_of(spans, "signpost");
    for request in &requests {
        assert_eq!(request.kind, SpanKind::Server);
        assert_eq!(request.parent, "", "nobody is trusted here");
        assert_eq!(
            request.attribute("signpost.request.id"),
            Some(&*request.trace)
        );
        let backend = below(spans, request, "backend");
        assert_eq!(
            (backend.service.as_str(), backend.kind),
            ("signpost", SpanKind::Client)
        );
        assert_eq!(
            backend.attribute("http.response.status_code"),
            request.attribute("http.response.status_code")
        );
        let (begun, ended) = request.times;
        assert!(
            begun <= backend.times.0 && backend.times.1 <= ended,
            "{request:?}"
        );
        let login = below(spans, backend, "request");
        assert_eq!(
            (login.service.as_str(), login.kind),
            ("signpost-login", SpanKind::Server)
        );
        for key in [
            "http.request.method",
            "url.path",
            "signpost.request.id",
            "signpost.version",
        ] {
            assert!(login.attribute(key).is_some(), "{key}: {login:?}");
            assert_eq!(login.attribute(key), request.attribute(key), "{key}");
        }
        // Both read one clock, of one machine.
        assert!(
            login.times.0 <= login.times.1 && login.times.0 <= ended,
            "{login:?}"
        );
    }
    assert_eq!(requests.len(), requests_of(spans, "signpost-login").len());
}

#[tokio::test]
async fn a_login_is_traced_across_gateway_and_backend() {
    let collector = OtlpCollector::start().await;
    let tracing = collector.tracing(ALL, "");
    // The backend follows the gateway, which samples everything.
    let backends = collector.tracing(0, "");
    let stack = Stack::builder().gateway(&tracing).backends(&backends);
    let stack = stack.start().await;
    let client = stack.client();

    let mut browser = Browser::for_data();
    let redirected = browser.step(&stack.url("/login")).await;
    let state = redirected.redirect_param("state").unwrap();
    let page = browser.follow(redirected).await;
    let granted = browser.decide(&page, "ada", Decision::Allow).await;
    let code = granted.redirect_param("code").unwrap();
    let login = browser.follow(granted).await.response.ok();
    let begun = begin_polling(&client).await;
    let mut other = stack.browser();
    let provider = confirm_polling(&mut other, &begun).await;
    other
        .decide_and_follow(&provider, "grace", Decision::Allow)
        .await;
    let polled = check(&client, &begun.token).await;
    let account = client.get("/user").authorization(credential(&login));
    account.send().await.ok();

    // Begun and finished by redirect; begun, page, confirmation, callback and check of the polling login; the account.
    let spans = collector
        .spans_when("the spans of all requests", |spans| {
            requests_of(spans, "signpost").len() == 8
                && requests_of(spans, "signpost-login").len() == 8
        })
        .await;
    assert_linked(&spans);
    let traces: std::collections::BTreeSet<_> = spans.iter().map(|span| &span.trace).collect();
    assert_eq!(traces.len(), 8, "a trace for each request");

    let tokens: Vec<_> = spans.iter().filter(|span| span.name == "token").collect();
    assert_eq!(tokens.len(), 2, "two callbacks");
    for token in tokens {
        let callback = spans.iter().find(|span| span.id == token.parent).unwrap();
        assert_eq!(callback.attribute("url.path"), Some("/login"));
        let user = below(&spans, callback, "user");
        for call in [token, user] {
            assert_eq!(call.kind, SpanKind::Client);
            assert_eq!(call.attribute("signpost.provider"), Some("bitbucket"));
            assert!(!call.is_error);
        }
        assert!(token.times.1 <= user.times.0);
    }
    // Signed requests are verified; the provider's callback is not.
    for request in requests_of(&spans, "signpost") {
        let is_step = |name: &str| {
            let mut spans = spans.iter();
            spans.any(|span| span.parent == request.id && span.name == name)
        };
        assert_eq!(is_step("verify"), is_step("look up application"));
        assert!(is_step("verify") || request.attribute("url.path") == Some("/login"));
    }
    assert!(requests_of(&spans, "signpost").iter().any(|request| {
        spans
            .iter()
            .any(|span| span.parent == request.id && span.name == "verify")
    }));

    let bytes = collector.bytes();
    let credentials = [credential(&login), credential(&polled["login"])];
    for secret in [
        &*state,
        &*code,
        credentials[0],
        credentials[1],
        &begun.token,
        &begun.state(),
        &begun.user_code,
        APP_KEY,
        "sandbox-only-secret",
        "sign=",
        "time=",
        "state=",
        "code=",
        "access_token",
    ] {
        let is_found = bytes
            .windows(secret.len())
            .any(|part| part == secret.as_bytes());
        assert!(!is_found, "{secret} is in a span");
    }
}

#[tokio::test]
async fn a_trusted_proxys_span_is_the_parent() {
    let collector = OtlpCollector::start().await;
    let (stack, backend) = recording(&collector, 0, "").await;
    let lines = [&*theirs("01"), "tracestate: a=b"];
    let arrived = pass(&stack, &backend, PROXY, &lines).await;
    let [_, trace, span, flags] = traceparent(&arrived);
    assert_eq!((&*trace, &*flags), (THEIR_TRACE, "01"));
    assert_eq!(arrived.value("tracestate"), Some("a=b"));
    let is_there = |spans: &[CollectedSpan]| !requests_of(spans, "signpost").is_empty();
    let spans = collector.spans_when("the request's spans", is_there).await;
    let [request] = requests_of(&spans, "signpost")[..] else {
        panic!("{spans:#?}");
    };
    assert_eq!(
        (&*request.trace, &*request.parent),
        (THEIR_TRACE, THEIR_SPAN)
    );
    assert_eq!(below(&spans, request, "backend").id, span);
    assert_eq!(request.attribute("http.response.status_code"), Some("200"));
    assert_eq!(request.attribute("signpost.version"), Some("v1"));
    assert_eq!(request.attribute("client.address"), Some(PROXY));
}

#[tokio::test]
async fn a_strangers_traceparent_is_ignored() {
    let collector = OtlpCollector::start().await;
    let (stack, backend) = recording(&collector, 0, "").await;
    let lines = [&*theirs("01"), "tracestate: a=b"];
    let arrived = pass(&stack, &backend, STRANGER, &lines).await;
    let [_, trace, span, flags] = traceparent(&arrived);
    assert_eq!(flags, "00");
    assert!(trace != THEIR_TRACE && span != THEIR_SPAN);
    assert_eq!(Some(&*trace), arrived.value("x-request-id"));
    assert_eq!(arrived.value("tracestate"), None);
    // The spans of a later request would come after its own.
    pass(&stack, &backend, PROXY, &[&theirs("01")]).await;
    let spans = collector
        .spans_when("a span", |spans| !spans.is_empty())
        .await;
    assert!(
        spans.iter().all(|span| span.trace == THEIR_TRACE),
        "{spans:#?}"
    );
    assert_eq!(requests_of(&spans, "signpost").len(), 1);
}

#[tokio::test]
async fn a_trusted_proxys_decision_holds() {
    let collector = OtlpCollector::start().await;
    let (stack, backend) = recording(&collector, ALL, "").await;
    let unsampled = theirs("00");
    let arrived = pass(&stack, &backend, PROXY, &[&unsampled]).await;
    let value = format!("traceparent: {}", arrived.value("traceparent").unwrap());
    assert_eq!(value, unsampled, "unchanged");

    stack.configure(Program::Gateway, "[tracing]\nsampled_per_million = 0");
    assert!(stack.reload(Program::Gateway).status.success());
    let sampled = theirs("01");
    let arrived = pass(&stack, &backend, PROXY, &[&sampled]).await;
    let [_, trace, span, flags] = traceparent(&arrived);
    assert_eq!((&*trace, &*flags), (THEIR_TRACE, "01"));

    let is_there = |spans: &[CollectedSpan]| spans.iter().any(|one| one.id == span);
    collector.spans_when("the sampled request", is_there).await;
    stop(stack).await;
    let spans = collector.spans();
    assert_eq!(requests_of(&spans, "signpost").len(), 1, "{spans:#?}");
    assert!(spans.iter().all(|one| one.trace == THEIR_TRACE));
}

#[tokio::test]
async fn a_stop_exports_what_is_queued() {
    // A stop waits for the collector for a second, which can be too short on a busy machine.
    for _ in 0..2 {
        let collector = OtlpCollector::start().await;
        let (stack, backend) = recording(&collector, ALL, "").await;
        pass(&stack, &backend, STRANGER, &[]).await;
        stop(stack).await;
        let exported = within(WAIT_TIMEOUT, || async {
            let spans = collector.spans();
            (requests_of(&spans, "signpost").len() == 1).then_some(())
        });
        if exported.await.is_some() {
            return;
        }
    }
    panic!("two stops have exported nothing");
}

/// Stops the gateway, which exports what it has left.
async fn stop(mut stack: Stack) {
    stack.running(Program::Gateway).terminate();
    stack.wait_for_exit(Program::Gateway).await;
}

#[tokio::test]
async fn the_share_of_sampled_requests_is_the_one_of_the_setting() {
    for (per_million, expected) in [(0, 0..=0), (500_000, 120..=280), (ALL, 400..=400)] {
        let collector = OtlpCollector::start().await;
        let (stack, backend) = recording(&collector, per_million, "").await;
        let mut connection = stack.raw().await;
        for _ in 0..400 {
            connection.send(&request("GET", "/x", &[], b"")).await;
            assert_eq!(connection.response().await.unwrap().status, 200);
        }
        let arrived = backend.requests();
        assert_eq!(arrived.len(), 400);
        let is_sampled = |request: &&RecordedRequest| traceparent(request)[3] == "01";
        let sampled = arrived.iter().filter(is_sampled).count();
        assert!(expected.contains(&sampled), "{sampled} at {per_million}");
        let has_all = |spans: &[CollectedSpan]| requests_of(spans, "signpost").len() >= sampled;
        collector.spans_when("all sampled requests", has_all).await;
        stop(stack).await;
        let spans = collector.spans();
        let requests = requests_of(&spans, "signpost");
        assert_eq!(requests.len(), sampled);
        for one in arrived.iter().filter(is_sampled) {
            let [_, trace, span, _] = traceparent(one);
            let request = requests.iter().find(|request| request.trace == trace);
            assert_eq!(below(&spans, request.unwrap(), "backend").id, span);
        }
    }
}

#[tokio::test]
async fn without_an_endpoint_nothing_is_exported_and_headers_are_as_without_tracing() {
    let collector = OtlpCollector::start().await;
    let backend = RecordingBackend::start().await;
    let mut stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("[tracing]\nsampled_per_million = 1000000")
        .start()
        .await;
    // Variables that OpenTelemetry's libraries read do not switch it on.
    let mut command = Program::Gateway.command(stack.folder());
    let url = format!("http://{}", collector.address());
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    command.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &url);
    stack.restart_as(Program::Gateway, command).await;
    let shape = |arrived: &RecordedRequest| -> Vec<(String, String)> {
        let is_own = |name: &str| matches!(name, "traceparent" | "x-request-id");
        let shown = |(name, value): &(String, String)| {
            let value = if is_own(name) {
                String::new()
            } else {
                value.clone()
            };
            (name.clone(), value)
        };
        arrived.headers.iter().map(shown).collect()
    };
    let off = pass(&stack, &backend, STRANGER, &[]).await;
    let [version, trace, _, flags] = traceparent(&off);
    assert_eq!((&*version, &*flags), ("00", "00"));
    assert_eq!(Some(&*trace), off.value("x-request-id"));
    assert!(!threads(&mut stack).contains(&"traces".to_owned()));

    // The same headers in the same order for a sampled request; only the flag differs.
    stack.configure(Program::Gateway, &collector.tracing(ALL, ""));
    assert_eq!(collector.connections(), 0);
    assert!(stack.reload(Program::Gateway).status.success());
    let on = pass(&stack, &backend, STRANGER, &[]).await;
    assert_eq!(shape(&on), shape(&off));
    assert_eq!(traceparent(&on)[3], "01");
    collector
        .spans_when("a span", |spans| !spans.is_empty())
        .await;
    // A thread names itself once it runs: by now it has exported.
    assert!(threads(&mut stack).contains(&"traces".to_owned()));
}

/// The names of the gateway's threads.
fn threads(stack: &mut Stack) -> Vec<String> {
    let tasks = format!("/proc/{}/task", stack.running(Program::Gateway).id());
    let tasks = fs::read_dir(tasks).unwrap();
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
    let names = tasks.filter_map(|task| name(task.ok()?));
    names.map(|name| name.trim().to_owned()).collect()
}

/// Requests sent at once.
const BATCH: usize = 200;

#[tokio::test]
async fn a_stalled_collector_holds_up_no_request_and_the_rest_is_dropped() {
    let collector = OtlpCollector::start().await;
    collector.reply(Reply::Never);
    let (mut stack, _backend) = recording(&collector, ALL, "").await;
    // An export that times out makes room for further spans, so the slower the requests are, the more it takes.
    let (mut sent, mut dropped) = (0, 0);
    while dropped == 0 {
        assert!(sent < 20_000, "nothing is dropped");
        let mut connection = stack.raw().await;
        let batch = request("GET", "/x", &[], b"").repeat(BATCH);
        connection.send(&batch).await;
        for _ in 0..BATCH {
            assert_eq!(connection.response().await.unwrap().status, 200);
        }
        sent += BATCH;
        dropped = counted(&stack, "dropped").await;
    }
    // Each request has four.
    assert_eq!(dropped % 4, 0);
    assert_eq!(counted(&stack, "exported").await, 0);
    until("a connection to the collector", || async {
        (collector.connections() > 0).then_some(())
    })
    .await;
    assert!(collector.spans().is_empty());
    // A stop waits for the collector for a second at most, then the process ends.
    stack.running(Program::Gateway).terminate();
    assert!(stack.wait_for_exit(Program::Gateway).await.success());
}

#[tokio::test]
async fn failures_are_counted_and_logged_once() {
    // Nobody else takes this port while the collector is gone.
    let address = free_address();
    let collector = OtlpCollector::start_at(address).await;
    collector.reply(Reply::Refused);
    let secret = "authorization = \"Bearer hush-4283fefc63f0\"";
    let (stack, backend) = recording(&collector, ALL, secret).await;
    for exports in 1..=3 {
        pass(&stack, &backend, STRANGER, &[]).await;
        until("an export", || async {
            (collector.exports() == exports).then_some(())
        })
        .await;
    }
    assert!(String::from_utf8_lossy(&collector.bytes()).contains("Bearer hush-4283fefc63f0"));
    // Now it is gone.
    drop(collector);
    pass(&stack, &backend, STRANGER, &[]).await;
    until("four failed exports", || async {
        (counted(&stack, "failed").await == 4 * 4).then_some(())
    })
    .await;
    let collector = OtlpCollector::start_at(address).await;
    pass(&stack, &backend, STRANGER, &[]).await;
    collector
        .spans_when("a span", |spans| !spans.is_empty())
        .await;
    let log = stack.log_with(Program::Gateway, "again").await;
    assert_eq!(log.matches("cannot export spans").count(), 1, "{log}");
    assert!(!log.contains("hush"), "{log}");
    // The collector has them before the gateway knows that it has.
    until("one export", || async {
        (counted(&stack, "exported").await == 4).then_some(())
    })
    .await;
    assert_eq!(counted(&stack, "dropped").await, 0);
}

#[tokio::test]
async fn spans_go_over_https_if_the_collector_has_a_trusted_certificate() {
    let (authority, other) = (Authority::new("Ours"), Authority::new("Other"));
    let certificate = authority.issue(&["127.0.0.1"]);
    let collector = OtlpCollector::start_with_tls(certificate.server_config(None)).await;
    let files = Folder::create();
    files.write("ours.pem", authority.pem());
    files.write("other.pem", other.pem());
    let trusting = |ca: &str| format!("ca = \"{}/{ca}.pem\"", files.path().display());
    let (mut stack, backend) = recording(&collector, ALL, &trusting("other")).await;
    // The one line of a process has another cause if the collector was too slow.
    for number in 1.. {
        pass(&stack, &backend, STRANGER, &[]).await;
        let log = until("spans to be lost", || async {
            let log = stack.log(Program::Gateway);
            let lines = log.matches("cannot export spans").count();
            (lines == number).then_some(log)
        })
        .await;
        if log.contains("invalid peer certificate") {
            break;
        }
        assert!(number < 5, "{log}");
        stack.restart(Program::Gateway).await;
    }
    assert_eq!(collector.exports(), 0);

    stack.configure(
        Program::Gateway,
        &format!("[tracing]\n{}", trusting("ours")),
    );
    let reloaded = stack.reload(Program::Gateway);
    assert!(reloaded.status.success(), "{}", output_text(&reloaded));
    pass(&stack, &backend, STRANGER, &[]).await;
    let is_there = |spans: &[CollectedSpan]| requests_of(spans, "signpost").len() == 1;
    collector.spans_when("the second request", is_there).await;
}

#[tokio::test]
async fn a_reload_changes_the_collector_and_switches_traces_off() {
    let (first, second) = (OtlpCollector::start().await, OtlpCollector::start().await);
    let (stack, backend) = recording(&first, ALL, "").await;
    pass(&stack, &backend, STRANGER, &[]).await;
    stack.configure(Program::Gateway, &second.tracing(ALL, ""));
    assert!(stack.reload(Program::Gateway).status.success());
    pass(&stack, &backend, STRANGER, &[]).await;
    // The first one gets what was recorded for it, although it is not configured any more.
    for collector in [&first, &second] {
        let is_one = |spans: &[CollectedSpan]| requests_of(spans, "signpost").len() == 1;
        collector.spans_when("one request", is_one).await;
    }
    stack.configure(Program::Gateway, "[tracing]\nsampled_per_million = 0");
    assert!(stack.reload(Program::Gateway).status.success());
    let arrived = pass(&stack, &backend, STRANGER, &[]).await;
    assert_eq!(traceparent(&arrived)[3], "00");
}

#[tokio::test]
async fn a_rejected_request_and_a_failed_backend_are_seen_in_their_spans() {
    let collector = OtlpCollector::start().await;
    let (stack, mut backend) = recording(&collector, ALL, "").await;
    let client = stack.client();
    let rejected = client.get("/x").query("a", "1").sign_given("hush");
    assert_eq!(rejected.send().await.status, 403);
    backend.end().await;
    assert_eq!(client.get("/x").send().await.status, 502);
    let spans = collector
        .spans_when("two requests", |spans| {
            requests_of(spans, "signpost").len() == 2
        })
        .await;
    let of_status = |status: &str| {
        let requests = requests_of(&spans, "signpost");
        let found = requests
            .iter()
            .find(|span| span.attribute("http.response.status_code") == Some(status));
        *found.unwrap_or_else(|| panic!("{status}: {spans:#?}"))
    };
    let rejected = of_status("403");
    assert!(!rejected.is_error && rejected.attribute("signpost.problem.code").is_some());
    below(&spans, rejected, "verify");
    assert!(
        !spans
            .iter()
            .any(|span| span.parent == rejected.id && span.name == "backend")
    );
    let failed = of_status("502");
    let backend = below(&spans, failed, "backend");
    assert!(failed.is_error && backend.is_error);
    assert_eq!(
        backend.attribute("error.type"),
        failed.attribute("signpost.problem.code")
    );
    assert!(!String::from_utf8_lossy(&collector.bytes()).contains("hush"));
}

#[tokio::test]
async fn a_backend_ignores_the_traceparent_of_a_caller_without_the_gateways_secret() {
    let collector = OtlpCollector::start().await;
    let secret = "gateway_secret = \"hush-hush-4283fefc63f0\"";
    let stack = Stack::builder()
        .gateway(secret)
        .gateway(&collector.tracing(0, ""))
        .backends(secret)
        .backends(&collector.tracing(0, ""))
        .start()
        .await;
    let mut direct = RawConnection::open(stack.addresses().v1).await;
    let lines = [&*theirs("01"), "Connection: close"];
    direct.send(&request("GET", "/user", &lines, b"")).await;
    assert_eq!(direct.response().await.unwrap().status, 403);
    // A request of the gateway comes after it, and is sampled.
    stack.configure(Program::Gateway, "[tracing]\nsampled_per_million = 1000000");
    assert!(stack.reload(Program::Gateway).status.success());
    stack
        .client()
        .get("/user")
        .send()
        .await
        .rejected(401, "authorization_missing");
    let spans = collector
        .spans_when("a span", |spans| !spans.is_empty())
        .await;
    assert!(
        spans.iter().all(|span| span.trace != THEIR_TRACE),
        "{spans:#?}"
    );
}

#[tokio::test]
async fn spans_go_through_the_tunnel_of_a_proxy() {
    let authority = Authority::new("Ours");
    let certificate = authority.issue(&["collector.test"]);
    let collector = OtlpCollector::start_with_tls(certificate.server_config(None)).await;
    let proxy = ForwardProxy::start(&[("collector.test", collector.address())], None).await;
    let backend = RecordingBackend::start().await;
    let tracing = format!(
        "[tracing]\nendpoint = \"https://collector.test/v1/traces\"\nsampled_per_million = {ALL}\n\
         ca = \"$FOLDER/ours.pem\"\n[outgoing]\nproxy = \"http://{}\"\n",
        free_address()
    );
    let builder = Stack::builder().in_front_of(&backend);
    let builder = builder.file("ours.pem", authority.pem()).gateway(&tracing);
    let stack = builder.start().await;
    pass(&stack, &backend, STRANGER, &[]).await;
    let log = stack
        .log_with(Program::Gateway, "cannot export spans")
        .await;
    assert!(
        log.contains("by the proxy http://127.0.0.1:") && log.contains("refused"),
        "{log}"
    );

    let outgoing = format!("[outgoing]\nproxy = \"http://{}\"", proxy.address());
    stack.configure(Program::Gateway, &outgoing);
    let reloaded = stack.reload(Program::Gateway);
    assert!(reloaded.status.success(), "{}", output_text(&reloaded));
    pass(&stack, &backend, STRANGER, &[]).await;
    let is_there = |spans: &[CollectedSpan]| requests_of(spans, "signpost").len() == 1;
    collector.spans_when("the second request", is_there).await;
    assert_eq!(proxy.requests()[0], "CONNECT collector.test:443 HTTP/1.1");
}
