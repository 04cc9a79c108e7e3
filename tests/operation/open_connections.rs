//! Backends and the management listener limit open connections, and close idle ones. A gateway out of file descriptors
//! still answers health checks. #9

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use end_to_end::{
    logins::log_in_by_redirect,
    program::Program,
    raw_connection::{RawConnection, request},
    recording_backend::RecordingBackend,
    signed_client::http_client_without_keep_alive,
    stack::Stack,
    waiting::until,
};

/// Longer than by default for heads and bodies. For idle connections the default is more than a test waits.
const TIMEOUTS: &str = "[timeouts]\nhead_seconds = 12\nbody_seconds = 12\nidle_seconds = 16";
const ARRIVAL: Duration = Duration::from_secs(12);
const SECRET: &str = "gateway_secret = \"8b1a9953c4611296a827abf8c47804d7\"";

#[tokio::test]
async fn a_backend_closes_connections_without_a_complete_head() {
    let stack = Stack::builder().backends(TIMEOUTS).start().await;
    assert_head_timeout(stack.addresses().v1, "/healthz").await;
}

#[tokio::test]
async fn the_management_listener_closes_connections_without_a_complete_head() {
    let stack = Stack::builder().gateway(TIMEOUTS).start().await;
    assert_head_timeout(stack.addresses().management, "/healthz").await;
}

/// The management listener answers under few names.
fn health_check(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
}

async fn assert_head_timeout(address: SocketAddr, path: &str) {
    let start = Instant::now();
    // No byte at all.
    let mut silent = RawConnection::open(address).await;
    // An unfinished head, as the first and after a request.
    let mut unfinished = RawConnection::open(address).await;
    unfinished.send(b"GET / HTTP/1.1\r\nHost:").await;
    let mut second = RawConnection::open(address).await;
    second.send(&health_check(path)).await;
    assert_eq!(second.response().await.unwrap().status, 200);
    second.send(b"GET / HTTP/1.1\r\nHost:").await;
    // Idle after a request.
    let mut idle = RawConnection::open(address).await;
    idle.send(&health_check(path)).await;
    assert_eq!(idle.response().await.unwrap().status, 200);
    assert!(silent.is_closed().await);
    assert!(start.elapsed() >= ARRIVAL, "{:?}", start.elapsed());
    for connection in [&mut unfinished, &mut second] {
        let responses = connection.responses_until_close().await;
        let statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
        assert_eq!(statuses, [408]);
    }
    assert!(idle.is_closed().await);
}

#[tokio::test]
async fn a_backend_rejects_a_body_that_does_not_arrive_in_time() {
    let stack = Stack::builder().backends(TIMEOUTS).start().await;
    let mut connection = RawConnection::open(stack.addresses().v1).await;
    let headers = [
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 100",
    ];
    let start = Instant::now();
    connection
        .send(&request("POST", "/login", &headers, b"a=1"))
        .await;
    let responses = connection.responses_until_close().await;
    assert_eq!(responses.len(), 1, "{responses:?}");
    assert_eq!(responses[0].status, 408);
    assert_eq!(responses[0].code().as_deref(), Some("request_timeout"));
    assert_eq!(responses[0].header("connection"), Some("close"));
    assert!(start.elapsed() >= ARRIVAL, "{:?}", start.elapsed());
}

#[tokio::test]
async fn the_secret_is_checked_before_the_body() {
    let stack = Stack::builder().gateway(SECRET).backends(SECRET).start();
    let stack = stack.await;
    let mut connection = RawConnection::open(stack.addresses().v1).await;
    let headers = [
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 100",
        "X-Gateway-Secret: another",
    ];
    // The body never arrives.
    connection
        .send(&request("POST", "/login", &headers, b""))
        .await;
    let response = connection.response().await.unwrap();
    assert_eq!(response.code().as_deref(), Some("gateway_required"));
    assert_eq!(response.header("connection"), Some("close"));
}

#[tokio::test]
async fn connections_to_a_backend_are_limited() {
    let stack = Stack::builder()
        .program(Program::V1, "[limits]\nconnections = 4")
        .start()
        .await;
    assert_connection_limit(stack.addresses().v1, 4).await;
    // However many say nothing: logins go on.
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(RawConnection::open(stack.addresses().v1).await);
    }
    log_in_by_redirect(&stack.client(), "ada").await;
}

#[tokio::test]
async fn many_refused_connections_are_one_line_of_the_log() {
    let limits = "[limits]\nconnections = 4\n[timeouts]\nbody_seconds = 60";
    let stack = Stack::builder().program(Program::V1, limits).start().await;
    // Requests whose bodies do not come hold all places.
    let headers = [
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 9",
    ];
    let mut slow = Vec::new();
    for _ in 0..40 {
        let mut connection = RawConnection::open(stack.addresses().v1).await;
        connection
            .send(&request("POST", "/login", &headers, b""))
            .await;
        slow.push(connection);
    }
    let log = stack.log_with(Program::V1, "connections are in use").await;
    let lines = log
        .lines()
        .filter(|line| line.contains("connections are in use"));
    assert_eq!(lines.count(), 1, "{log}");
    drop(slow);
}

#[tokio::test]
async fn connections_to_management_are_limited() {
    let stack = Stack::start().await;
    // A quarter of all are of one address.
    assert_connection_limit(stack.addresses().management, 64).await;
}

/// Opens more connections than are allowed, none of which sends a whole request. The first ones make room for the last ones,
/// and for requests.
async fn assert_connection_limit(address: SocketAddr, limit: usize) {
    let mut open = Vec::new();
    for _ in 0..limit + 20 {
        let mut connection = RawConnection::open(address).await;
        connection.send(b"GET /x HTTP/1.1\r\n").await;
        open.push(connection);
    }
    for mut closed in open.drain(..20) {
        assert!(closed.is_closed().await);
    }
    for connection in &mut open {
        let moment = Duration::from_millis(1);
        assert!(!connection.has_activity_within(moment).await);
    }
    for path in ["/healthz", "/readyz", "/x"] {
        let mut connection = RawConnection::open(address).await;
        connection.send(&health_check(path)).await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.status == 200, path != "/x", "{path}");
    }
}

/// Connections in the pools of a gateway's threads could otherwise use up the limit, while other threads have none. #22
#[tokio::test]
async fn the_longest_idle_connection_makes_room_for_a_new_one() {
    let stack = Stack::builder()
        .program(Program::V1, "[limits]\nconnections = 4")
        .start()
        .await;
    let mut idle = Vec::new();
    for _ in 0..40 {
        let mut connection = RawConnection::open(stack.addresses().v1).await;
        connection.send(&request("GET", "/healthz", &[], b"")).await;
        assert_eq!(connection.response().await.unwrap().status, 200);
        idle.push(connection);
    }
    for mut closed in idle.drain(..36) {
        assert!(closed.is_closed().await);
    }
    log_in_by_redirect(&stack.client(), "ada").await;
    assert!(!stack.log(Program::V1).contains("connections are in use"));
}

/// `ulimit -n`.
const DESCRIPTORS: u32 = 256;

#[tokio::test]
async fn a_gateway_out_of_descriptors_responds_to_health_checks() {
    let backend = RecordingBackend::start().await;
    let patient = "[timeouts]\nhead_seconds = 300";
    let builder = Stack::builder().gateway(patient).in_front_of(&backend);
    let mut stack = builder.start().await;
    stack
        .restart_with_descriptors(Program::Gateway, DESCRIPTORS)
        .await;
    let gateway = stack.addresses().gateway;
    let healthz = format!("http://{}/healthz", stack.addresses().management);
    let watch = tokio::spawn(async move {
        // It gives up after a minute. The connections below stay open for longer.
        let client = http_client_without_keep_alive();
        for _ in 0..100 {
            let response = client.get(&healthz).send().await.unwrap();
            assert_eq!(response.status(), 200);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut silent = Vec::new();
    for number in 0..400u32 {
        // One address could not use up all.
        let [_, _, high, low] = number.to_be_bytes();
        let source = [127, 1, high, low].into();
        silent.extend(RawConnection::try_open_from(source, gateway).await);
    }
    let log = stack.log_with(Program::Gateway, "file descriptors").await;
    assert!(!log.contains("Too many open files"), "{log}");
    watch.await.unwrap();
    drop(silent);
    until("a request to be served", || async {
        let mut connection = stack.raw().await;
        connection.send(&request("GET", "/x", &[], b"")).await;
        let response = connection.response().await?;
        (response.status == 200).then_some(())
    })
    .await;
}
