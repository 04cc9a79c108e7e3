//! What a stop does to requests, logins and whoever watches. #9

use std::time::{Duration, Instant};

use end_to_end::{
    answer::Answer,
    browser::{Browser, Decision},
    logins::{begin_polling, confirm_polling},
    program::Program,
    raw_connection::{RawConnection, request},
    recording_backend::{Behaviour, Manner, RecordingBackend},
    signed_client::{SignedClient, fetch, http_client_without_kept_connections},
    stack::Stack,
    waiting::until,
};
use serde_json::Value;
use tokio::net::TcpStream;

/// What a stop may take beside its grace, on a machine with other tests.
const SLACK: Duration = Duration::from_secs(6);

#[tokio::test]
async fn a_gateway_that_stops_is_not_ready_but_serves_for_a_while() {
    drains(Program::Gateway).await;
}

#[tokio::test]
async fn a_backend_that_stops_is_not_ready_but_serves_for_a_while() {
    drains(Program::V1).await;
}

async fn drains(program: Program) {
    let stack = Stack::builder().gateway(DRAINING).backends(DRAINING);
    let mut stack = stack.start().await;
    let address = stack.addresses().of(program);
    let readyz = match program {
        Program::Gateway => format!("http://{}/readyz", stack.addresses().management),
        _ => format!("http://{address}/readyz"),
    };
    let mut idle = RawConnection::open(address).await;
    idle.send(&request("GET", "/user", &[], b"")).await;
    let usual = idle.answer().await.unwrap().status;
    let stopped_at = Instant::now();
    stack.running(program).terminate();
    let client = http_client_without_kept_connections();
    until("readyz to say so", || async {
        let answer = client.get(&readyz).send().await.unwrap();
        (answer.status() == 503).then_some(())
    })
    .await;
    assert!(
        stopped_at.elapsed() < DRAIN_DELAY,
        "{:?}",
        stopped_at.elapsed()
    );
    // New work is served, on a new connection, which is not kept.
    let mut late = RawConnection::open(address).await;
    late.send(&request("GET", "/user", &[], b"")).await;
    let answers = late.answers_until_close().await;
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].status, usual);
    assert_eq!(answers[0].header("connection"), Some("close"));
    // Then nothing is listening any more, and idle connections end.
    until("the listener to close", || async {
        TcpStream::connect(address).await.err()
    })
    .await;
    assert!(
        stopped_at.elapsed() >= DRAIN_DELAY,
        "{:?}",
        stopped_at.elapsed()
    );
    assert!(idle.is_closed().await);
    assert!(stack.end_of(program).await.success());
}

const DRAINING: &str = "[shutdown]\ndrain_delay_seconds = 3";
const DRAIN_DELAY: Duration = Duration::from_secs(3);

#[tokio::test]
async fn idle_connections_serve_while_the_gateway_drains_and_are_closed_afterwards() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().gateway(DRAINING).in_front_of(&backend);
    let mut stack = stack.start().await;
    let (mut idle, mut used) = (stack.raw().await, stack.raw().await);
    for connection in [&mut idle, &mut used] {
        connection.send(&request("GET", "/before", &[], b"")).await;
        let answer = connection.answer().await.unwrap();
        assert_eq!(answer.status, 200);
        assert_ne!(answer.header("connection"), Some("close"));
    }
    let stopped_at = Instant::now();
    stack.running(Program::Gateway).terminate();
    stack.log_with(Program::Gateway, "stopping").await;
    used.send(&request("GET", "/while", &[], b"")).await;
    let answer = used.answer().await.expect("it is served");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(used.is_closed().await);
    assert_eq!(backend.request_number(3).await.target, "/while");
    assert!(idle.is_closed().await);
    assert!(
        stopped_at.elapsed() >= DRAIN_DELAY,
        "it was closed too early"
    );
    assert!(stack.end_of(Program::Gateway).await.success());
}

#[tokio::test]
async fn listeners_close_while_requests_are_finished() {
    let (mut stack, backend) = Stack::recording().await;
    let slowly = Manner::After(Duration::from_secs(3));
    backend.behave(Behaviour::answering(slowly));
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
    // Management is there to the end.
    let health = fetch(&format!("http://{}/healthz", stack.addresses().management)).await;
    assert_eq!(health.status, 200);
    assert_eq!(busy.answer().await.unwrap().status, 200);
    assert!(stack.end_of(Program::Gateway).await.success());
}

#[tokio::test]
async fn a_second_signal_ends_a_program_at_once() {
    let draining = "[shutdown]\ndrain_delay_seconds = 300";
    let stack = Stack::builder().gateway(draining).backends(draining);
    let mut stack = stack.start().await;
    for program in [Program::Gateway, Program::V1] {
        stack.running(program).terminate();
        stack.log_with(program, "stopping").await;
        let start = Instant::now();
        stack.running(program).terminate();
        assert!(stack.end_of(program).await.success());
        assert!(start.elapsed() < SLACK, "{program}: {:?}", start.elapsed());
    }
}

#[tokio::test]
async fn a_request_that_outlasts_the_grace_is_answered() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .gateway("[shutdown]\ngrace_seconds = 2")
        .in_front_of(&backend);
    let mut stack = stack.start().await;
    backend.behave(Behaviour::answering(Manner::Silently));
    let mut connections = Vec::new();
    for (number, method) in ["GET", "POST"].into_iter().enumerate() {
        let mut connection = stack.raw().await;
        connection.send(&request(method, "/x", &[], b"")).await;
        backend.request_number(number + 1).await;
        connections.push(connection);
    }
    let start = Instant::now();
    stack.running(Program::Gateway).terminate();
    for connection in &mut connections {
        let answer = connection.answer().await.unwrap();
        assert_eq!(answer.status, 504);
        assert_eq!(answer.code().as_deref(), Some("backend_timeout"));
    }
    assert!(stack.end_of(Program::Gateway).await.success());
    let longest = Duration::from_secs(2) + SLACK;
    assert!(start.elapsed() < longest, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_waiting_check_is_answered_when_its_backend_stops() {
    // The check comes while new work is still served.
    let mut stack = Stack::builder().backends(DRAINING).start().await;
    let (client, begun) = (stack.client(), begin_polling(&stack.client()).await);
    stack.running(Program::V1).terminate();
    let start = Instant::now();
    let answer = check_with_wait(&client, &begun.token).await.ok();
    assert_eq!(answer["status"], "pending", "{answer}");
    assert!(
        start.elapsed() < DRAIN_DELAY + SLACK,
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn a_waiting_check_is_answered_when_its_gateway_stops() {
    let stopping = format!("{DRAINING}\ngrace_seconds = 2");
    let mut stack = Stack::builder().gateway(&stopping).start().await;
    let (client, begun) = (stack.client(), begin_polling(&stack.client()).await);
    stack.running(Program::Gateway).terminate();
    let answer = check_with_wait(&client, &begun.token).await;
    answer.problem(504, "backend_timeout");
}

async fn check_with_wait(client: &SignedClient, token: &str) -> Answer {
    let call = client.post("/check").param("token", token);
    call.param("wait", "30").send().await
}

#[tokio::test]
async fn a_login_that_is_being_finished_completes() {
    for leaves in [false, true] {
        let stack = stack_with_slow_provider(7, "").await;
        let grace = Duration::from_secs(10);
        let checked = stop_in_callback(stack, grace, (!leaves).then_some(200)).await;
        assert_eq!(checked["status"], "complete", "left: {leaves}: {checked}");
    }
}

#[tokio::test]
async fn a_login_whose_provider_outlasts_the_grace_fails_at_once() {
    for leaves in [false, true] {
        let stack = stack_with_slow_provider(30, "[shutdown]\ngrace_seconds = 4").await;
        let grace = Duration::from_secs(4);
        let checked = stop_in_callback(stack, grace, (!leaves).then_some(504)).await;
        assert_eq!(checked["status"], "failed", "left: {leaves}: {checked}");
        assert_eq!(checked["reason"], "provider_timeout", "{checked}");
    }
}

/// Stops v1 while it finishes a login, and asks v2 what became of it. The browser leaves, or gets this status.
async fn stop_in_callback(mut stack: Stack, grace: Duration, told: Option<u16>) -> Value {
    let (token, browser) = callback_under_way(&stack).await;
    let stopped_at = Instant::now();
    stack.running(Program::V1).terminate();
    match told {
        None => browser.abort(),
        Some(status) => assert_eq!(browser.await.unwrap(), status),
    }
    assert!(stack.end_of(Program::V1).await.success());
    let longest = grace + SLACK;
    assert!(stopped_at.elapsed() < longest, "{:?}", stopped_at.elapsed());
    check_at_v2(&stack, &token).await
}

async fn stack_with_slow_provider(seconds: u64, backends: &str) -> Stack {
    let slow = format!("--slow-seconds={seconds}");
    let stack = Stack::builder().provider(&[&slow]).backends(backends);
    stack.start().await
}

/// A login's token, and its browser, which waits for the callback while the backend waits for the provider.
async fn callback_under_way(stack: &Stack) -> (String, tokio::task::JoinHandle<u16>) {
    let begun = begin_polling(&stack.client()).await;
    let mut browser = Browser::default();
    let provider = confirm_polling(&mut browser, &begun).await;
    let following = tokio::spawn(async move {
        let page = browser
            .decide_and_follow(&provider, "token-slow", Decision::Allow)
            .await;
        page.answer.status.as_u16()
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
