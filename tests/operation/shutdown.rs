//! Graceful shutdown: requests, logins and health checks while a program stops. #9

use std::{
    net::SocketAddr,
    process::Command,
    time::{Duration, Instant},
};

use end_to_end::{
    browser::{Browser, Decision},
    http2_client::Http2Client,
    logins::{begin_polling, confirm_polling},
    metrics::Scrape,
    namespaces,
    program::{Program, Running, signal},
    raw_connection::{RawConnection, request},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    signed_client::{fetch, http_client, http_client_without_keep_alive},
    stack::{Files, Stack},
    waiting::{WAIT_TIMEOUT, until, until_within},
};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn a_stopping_gateway_is_not_ready_but_serves_during_the_drain_delay() {
    assert_drains(Program::Gateway).await;
}

#[tokio::test]
async fn a_stopping_backend_is_not_ready_but_serves_during_the_drain_delay() {
    assert_drains(Program::V1).await;
}

async fn assert_drains(program: Program) {
    let stack = Stack::builder().gateway(DRAINING).backends(DRAINING);
    let mut stack = stack.start().await;
    let address = stack.addresses().of(program);
    let readyz = match program {
        Program::Gateway => format!("http://{}/readyz", stack.addresses().management),
        _ => format!("http://{address}/readyz"),
    };
    let mut idle = RawConnection::open(address).await;
    idle.send(&request("GET", "/user", &[], b"")).await;
    let usual = idle.response().await.unwrap().status;
    let stopped_at = Instant::now();
    stack.running(program).terminate();
    let client = http_client_without_keep_alive();
    until("/readyz to answer 503", || async {
        let response = client.get(&readyz).send().await.unwrap();
        (response.status() == 503).then_some(())
    })
    .await;
    assert!(
        stopped_at.elapsed() < DRAIN_DELAY,
        "{:?}",
        stopped_at.elapsed()
    );
    // A new connection is served, and closed after its response.
    let mut late = RawConnection::open(address).await;
    late.send(&request("GET", "/user", &[], b"")).await;
    let responses = late.responses_until_close().await;
    assert_eq!(responses.len(), 1);
    assert_eq!(responses[0].status, usual);
    assert_eq!(responses[0].header("connection"), Some("close"));
    // Then the listener and the idle connections close.
    until_within(3 * WAIT_TIMEOUT, "the listener to close", || async {
        TcpStream::connect(address).await.err()
    })
    .await;
    assert!(
        stopped_at.elapsed() >= DRAIN_DELAY,
        "{:?}",
        stopped_at.elapsed()
    );
    assert!(idle.is_closed().await);
    assert!(stack.wait_for_exit(program).await.success());
}

const DRAINING: &str = "[shutdown]\ndrain_delay_seconds = 20";
const DRAIN_DELAY: Duration = Duration::from_secs(20);

#[tokio::test]
async fn idle_connections_serve_while_the_gateway_drains_and_are_closed_afterwards() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().gateway(DRAINING).in_front_of(&backend);
    let mut stack = stack.start().await;
    let (mut idle, mut used) = (stack.raw().await, stack.raw().await);
    for connection in [&mut idle, &mut used] {
        connection.send(&request("GET", "/before", &[], b"")).await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.status, 200);
        assert_ne!(response.header("connection"), Some("close"));
    }
    let stopped_at = Instant::now();
    stack.running(Program::Gateway).terminate();
    stack.log_with(Program::Gateway, "stopping").await;
    used.send(&request("GET", "/while", &[], b"")).await;
    let response = used.response().await.expect("it is served");
    assert_eq!(response.status, 200);
    assert_eq!(response.header("connection"), Some("close"));
    assert!(used.is_closed().await);
    assert_eq!(backend.request_number(3).await.target, "/while");
    assert!(idle.has_activity_within(3 * WAIT_TIMEOUT).await);
    assert!(idle.is_closed().await);
    assert!(
        stopped_at.elapsed() >= DRAIN_DELAY,
        "it was closed too early"
    );
    assert!(stack.wait_for_exit(Program::Gateway).await.success());
}

#[tokio::test]
async fn listeners_close_while_requests_in_flight_finish() {
    let (mut stack, backend) = Stack::recording().await;
    let slowly = Delivery::After(Duration::from_secs(12));
    backend.behave(Behaviour::responding(slowly));
    let mut idle = stack.raw().await;
    let mut busy = stack.raw().await;
    busy.send(&request("GET", "/x", &[], b"")).await;
    backend.request_number(1).await;
    stack.running(Program::Gateway).terminate();
    let gateway = stack.addresses().gateway;
    until("the listener to close", || async {
        TcpStream::connect(gateway).await.err()
    })
    .await;
    assert!(idle.is_closed().await);
    // The management listener serves until the program ends.
    let health = fetch(&format!("http://{}/healthz", stack.addresses().management)).await;
    assert_eq!(health.status, 200);
    assert_eq!(busy.response().await.unwrap().status, 200);
    assert!(stack.wait_for_exit(Program::Gateway).await.success());
}

#[tokio::test]
async fn a_second_signal_ends_a_program_at_once() {
    let draining = "[shutdown]\ndrain_delay_seconds = 300";
    let stack = Stack::builder().gateway(draining).backends(draining);
    let mut stack = stack.start().await;
    for program in [Program::Gateway, Program::V1] {
        stack.running(program).terminate();
        stack.log_with(program, "stopping").await;
        stack.running(program).terminate();
        assert!(stack.wait_for_exit(program).await.success());
    }
}

/// A gateway that cuts requests off a second after the signal, and slow clients much later, in front of a backend that
/// never responds.
async fn cutting_off() -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .gateway(
            "[[listen]]\naddress = '$LISTEN'\nprotocols = ['http/1.1', 'h2c']\n\
             [shutdown]\ngrace_seconds = 3\n\
             [timeouts]\nhead_seconds = 60\nbody_seconds = 60\n\
             [connections]\nmin_bytes_per_second = 1\n",
        )
        .in_front_of(&backend)
        .start()
        .await;
    backend.behave(Behaviour::responding(Delivery::Never));
    (stack, backend)
}

/// Scrapes a program until it ends, and returns the last metrics.
async fn last_scrape(management: SocketAddr) -> Scrape {
    let (client, url) = (http_client(), format!("http://{management}/metrics"));
    let mut last = Scrape::default();
    while let Ok(response) = client.get(&url).send().await {
        if let Ok(text) = response.text().await {
            last = Scrape::parse(&text);
        }
    }
    last
}

#[tokio::test]
async fn requests_that_a_stop_cuts_off_have_a_cause_of_their_own() {
    let (mut stack, backend) = cutting_off().await;
    let (gateway, management) = (stack.addresses().gateway, stack.addresses().management);
    let headers = [
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 100",
    ];
    let bytes = [
        request("GET", "/get", &[], b""),
        request("POST", "/post", &[], b""),
        request("POST", "/arriving", &headers, &[b'a'; 60]),
    ];
    let mut connections = Vec::new();
    for bytes in &bytes {
        let mut connection = stack.raw().await;
        connection.send(bytes).await;
        connections.push(connection);
    }
    let (signer, client) = (stack.client(), Http2Client::open(gateway).await);
    let stream = tokio::spawn(async move { client.send(&signer.get("/stream")).await });
    backend.request_number(3).await;
    // Its head never arrives, so the process still serves its metrics for two seconds after the requests were cut off.
    let mut unfinished = stack.raw().await;
    unfinished.send(b"GET /unfinished HTTP/1.1\r\n").await;
    let metrics = tokio::spawn(last_scrape(management));
    stack.running(Program::Gateway).terminate();
    for connection in &mut connections {
        let response = connection.response().await.unwrap();
        assert_eq!(response.status, 504);
        assert_eq!(response.code().as_deref(), Some("gateway_stopping"));
    }
    let response = stream.await.unwrap().unwrap();
    assert_eq!(response.code().as_deref(), Some("gateway_stopping"));
    assert!(stack.wait_for_exit(Program::Gateway).await.success());
    let metrics = metrics.await.unwrap();
    assert_eq!(metrics.sum("signpost_backend_failures_total", &[]), 0.0);
    // A request is counted once its response is sent: perhaps not all four were by then.
    let counted = |label: (&str, &str)| metrics.sum("signpost_requests_total", &[label]);
    let stopping = counted(("problem_code", "gateway_stopping"));
    assert_eq!(counted(("status_class", "5xx")), stopping);
    let log = stack.log(Program::Gateway);
    assert!(
        log.contains("cutting off requests still in flight"),
        "{log}"
    );
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains("problem.code=gateway_stopping"))
        .collect();
    assert_eq!(lines.len(), 4, "{log}");
    let backend = format!("backend.addr={}", backend.address());
    let forwarded = lines.iter().filter(|line| line.contains(&backend));
    assert_eq!(forwarded.count(), 3, "{log}");
    assert!(!log.contains("ERROR"), "{log}");
}

#[tokio::test]
async fn a_response_that_a_stop_cuts_off_is_incomplete_and_has_the_same_cause() {
    let (mut stack, backend) = cutting_off().await;
    // More than all buffers on the way hold. The client reads little before the gateway has ended.
    backend.behave(Behaviour {
        body: vec![b'x'; 32 * 1024 * 1024],
        ..Behaviour::default()
    });
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/begun", &[], b"")).await;
    // The gateway has its head.
    assert!(connection.has_activity_within(WAIT_TIMEOUT).await);
    stack.running(Program::Gateway).terminate();
    assert!(stack.wait_for_exit(Program::Gateway).await.success());
    assert!(connection.response().await.is_none());
    let log = stack.log(Program::Gateway);
    assert!(log.contains("problem.code=gateway_stopping"), "{log}");
}

#[tokio::test]
async fn a_waiting_check_gets_a_response_when_its_backend_stops() {
    // The check arrives while new requests are still served.
    let draining = "[shutdown]\ndrain_delay_seconds = 12";
    let mut stack = Stack::builder().backends(draining).start().await;
    let (client, begun) = (stack.client(), begin_polling(&stack.client()).await);
    stack.running(Program::V1).terminate();
    let start = Instant::now();
    let call = client.post("/check").param("token", &begun.token);
    let response = call.param("wait", "30").send().await.ok();
    assert_eq!(response["status"], "pending", "{response}");
    // Without the stop it would have waited for all of the 30 s.
    let waited = start.elapsed();
    assert!(waited < Duration::from_secs(30), "{waited:?}");
}

#[tokio::test]
async fn a_waiting_check_ends_by_itself_when_its_gateway_stops() {
    // A stop may take longer than `/check` waits at most, and the backend decides.
    let mut stack = Stack::start().await;
    let (client, begun) = (stack.client(), begin_polling(&stack.client()).await);
    let waiting = tokio::spawn(async move {
        let call = client.post("/check").param("token", &begun.token);
        call.param("wait", "11").send().await
    });
    let management = stack.addresses().management;
    until("the check to wait", || async {
        let metrics = Scrape::of(management).await;
        (metrics.sum("signpost_backend_in_flight", &[]) > 0.0).then_some(())
    })
    .await;
    stack.running(Program::Gateway).terminate();
    assert_eq!(waiting.await.unwrap().ok()["status"], "pending");
    assert!(stack.wait_for_exit(Program::Gateway).await.success());
}

#[tokio::test]
async fn a_login_in_progress_completes_during_shutdown() {
    for disconnects in [false, true] {
        let mut stack = stack_with_slow_provider(3, "").await;
        let checked = stop_in_callback(&mut stack, (!disconnects).then_some(200)).await;
        assert_eq!(
            checked["status"], "complete",
            "disconnects: {disconnects}: {checked}"
        );
    }
}

#[tokio::test]
async fn a_login_whose_provider_exceeds_the_grace_period_fails() {
    for disconnects in [false, true] {
        // Again, if the machine was so slow that the provider's own timeout came first.
        for round in 1.. {
            let mut stack = stack_with_slow_provider(30, "[shutdown]\ngrace_seconds = 4").await;
            let checked = stop_in_callback(&mut stack, (!disconnects).then_some(504)).await;
            assert_eq!(
                checked["status"], "failed",
                "disconnects: {disconnects}: {checked}"
            );
            assert_eq!(checked["reason"], "provider_timeout", "{checked}");
            let log = stack.log(Program::V1);
            if log.contains("it did not answer before the shutdown") {
                break;
            }
            assert!(round < 3, "{log}");
        }
    }
}

/// Stops v1 while it completes a login, and returns the login's status from v2.
///
/// The browser gets `expected_status`; without one it disconnects.
async fn stop_in_callback(stack: &mut Stack, expected_status: Option<u16>) -> Value {
    let (token, browser) = begin_slow_callback(stack).await;
    stack.running(Program::V1).terminate();
    match expected_status {
        None => browser.abort(),
        Some(status) => assert_eq!(browser.await.unwrap(), status),
    }
    assert!(stack.wait_for_exit(Program::V1).await.success());
    check_at_v2(stack, &token).await
}

async fn stack_with_slow_provider(seconds: u64, backends: &str) -> Stack {
    let slow = format!("--slow-seconds={seconds}");
    let stack = Stack::builder().provider(&[&slow]).backends(backends);
    stack.start().await
}

/// Returns a login's token, and its browser, which waits for the callback while the backend waits for the provider.
async fn begin_slow_callback(stack: &Stack) -> (String, tokio::task::JoinHandle<u16>) {
    let begun = begin_polling(&stack.client()).await;
    let mut browser = Browser::default();
    let provider = confirm_polling(&mut browser, &begun).await;
    let following = tokio::spawn(async move {
        let page = browser
            .decide_and_follow(&provider, "token-slow", Decision::Allow)
            .await;
        page.response.status.as_u16()
    });
    until("the exchange to begin", || async {
        (stack.provider_counts().await["token"] == 1).then_some(())
    })
    .await;
    (begun.token, following)
}

async fn check_at_v2(stack: &Stack, token: &str) -> Value {
    let client = stack.client();
    let call = client.post("/check").param("token", token).version("v2");
    call.send().await.ok()
}

/// What never answers, the program's files, and the program.
type Started = (TcpListener, Files, Running);

/// Starts a program whose store is a listener that never answers. `None` if it cannot be process 1.
async fn start_that_waits(program: Program, command: &[&str], as_first: bool) -> Option<Started> {
    let hanging = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = hanging.local_addr().unwrap();
    let key = "[applications]\nmaster_key = \"file:m.key\"";
    let store = format!(
        "store = \"postgres://u@{address}/d?sslmode=disable\"\n[postgres]\nwait_seconds = 60"
    );
    let builder = Stack::builder().multi().gateway(key);
    let files = builder.program(program, &store).write_files();
    let mut process = program.command(files.path());
    if as_first {
        let kinds = ["--pid", "--fork", "--kill-child", "--mount-proc"];
        if !namespaces::may_be_created(&kinds) {
            return None;
        }
        process = Command::new("unshare");
        process.args(kinds).arg(program.path());
        process.current_dir(files.path());
    }
    let mut arguments: Vec<_> = command.iter().map(|&word| word.to_owned()).collect();
    arguments.extend(["--config".to_owned(), files.config(program)]);
    let running = Running::start_as(program.into(), process, files.path(), &arguments);
    Some((hanging, files, running))
}

/// The process of the program, which is process 1 for itself.
fn first_process(unshare: u32) -> u32 {
    let children = format!("/proc/{unshare}/task/{unshare}/children");
    let children = std::fs::read_to_string(children).unwrap();
    children.trim().parse().unwrap()
}

/// Sends signals to a program that waits for its store, and returns its exit code and log.
async fn end_by(started: Started, signals: &[&str], as_first: bool) -> (Option<i32>, String) {
    let (hanging, _files, mut running) = started;
    let _connection = hanging.accept().await.unwrap();
    let id = match as_first {
        true => first_process(running.id()),
        false => running.id(),
    };
    for kind in signals {
        signal(id, kind);
    }
    let ended = until("the process to end", || {
        let status = running.exit_status();
        async move { status }
    });
    let code = ended.await.code();
    (code, running.log())
}

#[tokio::test]
async fn a_signal_ends_a_start_that_waits_for_its_store() {
    for (program, command) in [(Program::Gateway, &["run"][..]), (Program::V1, &[])] {
        for as_first in [false, true] {
            let Some(started) = start_that_waits(program, command, as_first).await else {
                continue;
            };
            // SIGHUP reloads a running program, and must not end one that starts.
            let kind = if as_first { "TERM" } else { "INT" };
            let (code, log) = end_by(started, &["HUP", kind], as_first).await;
            assert_eq!(code, Some(0), "{program} {as_first}: {log}");
            assert!(log.contains("ended by a signal"), "{log}");
        }
    }
}

#[tokio::test]
async fn a_signal_ends_a_command_that_is_process_1() {
    for program in [Program::Gateway, Program::V1] {
        if let Some(started) = start_that_waits(program, &["check"], true).await {
            let (code, log) = end_by(started, &["TERM"], true).await;
            assert_eq!(code, Some(1), "{program}: {log}");
        }
    }
}
