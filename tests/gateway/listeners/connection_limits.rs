//! Limits of connections: in all, of an address, of requests; slow clients; and a lack of file descriptors.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use end_to_end::{
    program::Program,
    raw_connection::{RawConnection, request},
    recording_backend::RecordingBackend,
    stack::Stack,
};
use tokio::task::JoinSet;

async fn start(further: &str) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().gateway(further).in_front_of(&backend);
    (stack.start().await, backend)
}

async fn open_from(source: &str, stack: &Stack) -> RawConnection {
    let source: IpAddr = source.parse().unwrap();
    RawConnection::open_from(source, stack.addresses().gateway).await
}

/// Whether a new connection from this address is accepted, and serves a GET; with the connection.
async fn opened_from(source: &str, stack: &Stack) -> Option<RawConnection> {
    let source: IpAddr = source.parse().unwrap();
    let opened = RawConnection::try_open_from(source, stack.addresses().gateway).await;
    let mut connection = opened.ok()?;
    is_served(&mut connection).await.then_some(connection)
}

/// Whether a GET is answered with 200.
async fn is_served(connection: &mut RawConnection) -> bool {
    connection.send(&request("GET", "/x", &[], b"")).await;
    connection
        .response()
        .await
        .is_some_and(|response| response.status == 200)
}

#[tokio::test]
async fn one_address_at_its_limit_leaves_room_for_others() {
    let (stack, _backend) = start("[connections]\nmax = 100\nper_address = 5").await;
    let mut open = Vec::new();
    for number in 0..8 {
        let opened = opened_from("127.0.0.2", &stack).await;
        assert_eq!(opened.is_some(), number < 5, "{number}");
        open.extend(opened);
    }
    assert!(is_served(&mut open_from("127.0.0.3", &stack).await).await);
    let refused = "client.network=127.0.0.2/32 max=5 limit=\"connections.per_address\"";
    stack.log_with(Program::Gateway, refused).await;
    // A closed connection makes room.
    open.remove(0);
    end_to_end::waiting::until("room for another connection", || async {
        opened_from("127.0.0.2", &stack).await
    })
    .await;
}

#[tokio::test]
async fn connections_in_all_are_limited_and_a_quarter_is_the_most_of_an_address() {
    let (stack, _backend) = start("[connections]\nmax = 8\nper_address = 1000").await;
    let mut open = Vec::new();
    for source in 2..=5 {
        for number in 0..3 {
            let opened = opened_from(&format!("127.0.0.{source}"), &stack).await;
            assert_eq!(opened.is_some(), number < 2, "{source} {number}");
            open.extend(opened);
        }
    }
    assert!(opened_from("127.0.0.6", &stack).await.is_none());
    let log = stack.log_with(Program::Gateway, "(connections.max").await;
    assert!(log.contains("max=8"), "{log}");
}

#[tokio::test]
async fn trusted_proxies_are_not_limited_by_address() {
    let limits = "trusted_proxies = ['127.0.0.2']\n[connections]\nper_address = 2";
    let (stack, _backend) = start(limits).await;
    let mut open = Vec::new();
    for _ in 0..9 {
        let mut connection = open_from("127.0.0.2", &stack).await;
        assert!(is_served(&mut connection).await);
        open.push(connection);
    }
}

#[tokio::test]
async fn a_connection_has_a_number_of_requests() {
    let (stack, _backend) = start("[connections]\nrequests = 3").await;
    let mut connection = stack.raw().await;
    for number in 1..=3 {
        connection.send(&request("GET", "/x", &[], b"")).await;
        let response = connection.response().await.unwrap();
        let expected = (number == 3).then_some("close");
        assert_eq!(response.header("connection"), expected, "{number}");
    }
    assert!(connection.is_closed().await);
}

#[tokio::test]
async fn heads_and_forms_must_arrive_at_the_smallest_rate() {
    let (stack, _backend) = start("[timeouts]\nhead_seconds = 60\nbody_seconds = 60").await;
    let form = [
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 500",
    ];
    let whole_head = request("POST", "/x", &form, b"a=");
    for beginning in [&b"GET /x HTTP/1.1\r\nHost: h"[..], &whole_head] {
        let started = Instant::now();
        let mut connection = stack.raw().await;
        connection.send(beginning).await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.status, 408);
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{:?}",
            started.elapsed()
        );
    }
}

/// 2,000 idle connections and 2,000 slow ones, from eight addresses, beside good ones.
#[tokio::test]
async fn idle_and_slow_connections_do_not_harm_others() {
    let (mut stack, _backend) = start("[connections]\nmax = 20000\nper_address = 1000").await;
    let mut opening = JoinSet::new();
    let gateway = stack.addresses().gateway;
    for number in 0..4000 {
        let source: IpAddr = format!("127.0.0.{}", 2 + number % 8).parse().unwrap();
        opening.spawn(async move {
            let mut connection = RawConnection::open_from(source, gateway).await;
            if number % 16 >= 8 {
                connection.send(b"GET /x HTTP/1.1\r\nHost: h\r\nX: ").await;
            }
            connection
        });
    }
    let open = opening.join_all().await;
    assert_eq!(open.len(), 4000);
    let mut slowest = Duration::ZERO;
    for _ in 0..50 {
        let started = Instant::now();
        assert!(is_served(&mut stack.raw().await).await);
        slowest = slowest.max(started.elapsed());
    }
    assert!(slowest < Duration::from_secs(20), "{slowest:?}");
    let resident = stack.running(Program::Gateway).resident_kib();
    assert!(resident < 300 * 1024, "{resident} KiB");
}

#[tokio::test]
async fn without_descriptors_accepting_pauses_and_resumes() {
    let (mut stack, _backend) = start("[timeouts]\nhead_seconds = 2\nidle_seconds = 2").await;
    stack.restart_with_descriptors(Program::Gateway, 100).await;
    // Other addresses each: no limit of an address applies. They send nothing, and time out.
    let mut open = Vec::new();
    for number in 0..90 {
        open.push(open_from(&format!("127.0.1.{number}"), &stack).await);
    }
    // It waits in the backlog until there is room.
    assert!(is_served(&mut stack.raw().await).await);
    assert!(is_served(&mut open_from("127.0.2.1", &stack).await).await);
}
