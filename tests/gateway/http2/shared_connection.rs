//! What one request can do to the others of its connection: behind a proxy that speaks HTTP/2, they are other clients'.
//! Issue 22.

use std::{
    fs,
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use end_to_end::{
    folder::Folder,
    port::free_address,
    program::Program,
    raw_connection::{RawConnection, request},
    raw_http2::{
        END_HEADERS, END_STREAM, Frame, RawHttp2, Reaction, block, fields, frame, get, headers,
        kind,
    },
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    stack::Stack,
    waiting::until,
};
use tokio::net::TcpStream;

use super::LISTEN;

/// What each request takes whose answer is awaited.
const DELAY: Duration = Duration::from_millis(500);
/// Makes the proxy in front a trusted one.
const TRUSTED: &str = "trusted_proxies = [\"127.0.0.1\"]\n";
/// The streams of other clients.
const OTHERS: [u32; 10] = [1, 3, 5, 7, 9, 11, 13, 15, 17, 19];

/// A stack whose backend answers late. `keys` and `tables` are the gateway's.
async fn slow_stack(keys: &str, tables: &str) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(&format!("{keys}{LISTEN}{tables}"))
        .start()
        .await;
    backend.behave(Behaviour::responding(Delivery::After(DELAY)));
    (stack, backend)
}

/// Such a stack, and a connection with requests of others in flight.
async fn with_others(keys: &str, tables: &str) -> (Stack, RecordingBackend, RawHttp2) {
    let (stack, backend) = slow_stack(keys, tables).await;
    let connection = send_others(&stack, &backend).await;
    (stack, backend, connection)
}

/// A connection with requests of others that have reached the backend.
async fn send_others(stack: &Stack, backend: &RecordingBackend) -> RawHttp2 {
    let mut connection = RawHttp2::open(stack.addresses().gateway).await;
    let requests: Vec<u8> = OTHERS.iter().flat_map(|id| get(*id, "/other")).collect();
    connection.send(&requests).await;
    until("the requests of others to arrive", || async {
        (backend.recorded().len() == OTHERS.len()).then_some(())
    })
    .await;
    connection
}

/// All of the others have their responses.
async fn assert_others_are_served(connection: &mut RawHttp2) {
    for reaction in connection.reactions(OTHERS).await {
        assert_eq!(reaction, Reaction::Response(200, None));
    }
}

/// Reads until the GOAWAY that ends the connection, and returns its code.
async fn last_goaway(connection: &mut RawHttp2) -> Option<u32> {
    let mut last = None;
    while let Some(Frame { kind, payload, .. }) = connection.frame().await {
        if kind == kind::GOAWAY {
            last = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
    }
    last
}

fn aborted(stream: u32) -> Vec<u8> {
    let reset = frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 8]);
    [get(stream, "/aborted"), reset].concat()
}

#[tokio::test]
async fn a_malformed_request_ends_its_stream_alone_and_is_logged() {
    let (stack, _backend, mut connection) = with_others("", "").await;
    let malformed: [(u32, &[u8], &[u8]); 8] = [
        (21, b"x-a", b"a\x01b"),
        (23, b"X-A", b"1"),
        (25, b":x", b"1"),
        (27, b"x-a", b"a\r\nx-b: 2"),
        (29, b"connection", b"close"),
        (31, b"", b"1"),
        (33, b"te", b"gzip"),
        (35, b"x a", b"1"),
    ];
    for (stream, name, value) in malformed {
        let fields = fields("GET", "/malformed", &[(name, value)]);
        connection.send(&headers(stream, END_STREAM, &fields)).await;
    }
    // Not UTF-8, then a good one, which refers to the table that all share.
    let path: &[(&[u8], &[u8])] = &[
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":path", b"/\xff"),
        (b":authority", b"a"),
    ];
    connection.send(&headers(37, END_STREAM, path)).await;
    let entry = b"\x40\x03X-A\x011";
    let indexed = [&block(&fields("GET", "/malformed", &[]))[..], entry].concat();
    let flags = END_STREAM | END_HEADERS;
    connection
        .send(&frame(kind::HEADERS, flags, 39, &indexed))
        .await;
    connection.send(&get(41, "/good")).await;
    let streams = [21, 23, 25, 27, 29, 31, 33, 35, 39];
    let (bare, target) = (Reaction::Response(400, None), "target_invalid".to_owned());
    let mut all = [0; 21];
    all[..10].copy_from_slice(&OTHERS);
    all[10..19].copy_from_slice(&streams);
    all[19..].copy_from_slice(&[37, 41]);
    let reactions = connection.reactions(all).await;
    let served = |one: &Reaction| *one == Reaction::Response(200, None);
    assert!(reactions[..10].iter().all(served), "{reactions:?}");
    assert!(
        reactions[10..19].iter().all(|one| *one == bare),
        "{reactions:?}"
    );
    assert_eq!(reactions[19], Reaction::Response(400, Some(target)));
    assert!(served(&reactions[20]));
    until("the access lines", || async {
        let log = stack.log(Program::Gateway);
        (log.matches("http.path=/malformed").count() == streams.len()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn aborted_requests_in_one_write_end_no_others() {
    let (_stack, _backend, mut connection) = with_others("", "").await;
    let aborted: Vec<u8> = (0..100)
        .flat_map(|number| aborted(101 + 2 * number))
        .collect();
    connection.send(&aborted).await;
    assert_others_are_served(&mut connection).await;
    connection.send(&get(1001, "/good")).await;
    assert_eq!(
        connection.reaction(1001).await,
        Reaction::Response(200, None)
    );
}

#[tokio::test]
async fn tiny_bodies_of_rejected_requests_end_no_others() {
    let (_stack, _backend, mut connection) = with_others(TRUSTED, "").await;
    // Rejected before their bodies, which arrive in pieces of a byte, and of none.
    for number in 0..30 {
        let stream = 101 + 2 * number;
        let put = headers(stream, 0, &fields("PUT", "/rejected", &[]));
        let piece = frame(kind::DATA, 0, stream, b"a").repeat(90);
        let empty = frame(kind::DATA, 0, stream, b"").repeat(10);
        connection.send(&[put, piece, empty].concat()).await;
    }
    assert_others_are_served(&mut connection).await;
    connection.send(&get(1001, "/good")).await;
    assert_eq!(
        connection.reaction(1001).await,
        Reaction::Response(200, None)
    );
}

#[tokio::test]
async fn a_used_up_budget_takes_no_new_streams_and_serves_the_others() {
    // Twice the budget of a stranger, or more.
    let floods = [
        (
            "aborted requests",
            (0..8000)
                .flat_map(|number| aborted(101 + 2 * number))
                .collect(),
        ),
        ("PING", frame(kind::PING, 0, 0, &[0; 8]).repeat(8000)),
        (
            "unknown frames",
            frame(kind::UNKNOWN, 0, 0, &[0; 200]).repeat(2000),
        ),
    ];
    for (name, bytes) in floods {
        let bytes: Vec<u8> = bytes;
        let (_stack, _backend, mut connection) = with_others("", "").await;
        connection.send(&bytes[..bytes.len().min(400_000)]).await;
        assert_others_are_served(&mut connection).await;
        // ENHANCE_YOUR_CALM, unless the client has answered the first GOAWAY.
        let code = last_goaway(&mut connection).await;
        assert!(matches!(code, Some(0 | 11)), "{name}: {code:?}");
    }
}

#[tokio::test]
async fn a_trusted_proxy_has_a_budget_for_its_clients() {
    for (keys, is_trusted) in [("", false), (TRUSTED, true)] {
        let (stack, backend) = slow_stack(keys, "").await;
        // So long that the rest arrives before an answer, which adds to the budget.
        let delay = Duration::from_secs(8);
        backend.behave(Behaviour::responding(Delivery::After(delay)));
        let mut connection = send_others(&stack, &backend).await;
        // With their resets, 520 use up more than the budget of a stranger. Ten streams in flight add 10 KiB.
        let aborted: Vec<u8> = (0..520)
            .flat_map(|number| aborted(101 + 2 * number))
            .collect();
        connection.send(&aborted).await;
        assert_others_are_served(&mut connection).await;
        connection.send(&get(5001, "/good")).await;
        let is_served = connection.reaction(5001).await == Reaction::Response(200, None);
        assert_eq!(is_served, is_trusted);
    }
}

#[tokio::test]
async fn a_head_without_end_is_late_after_head_seconds() {
    let part = block(&fields("GET", "/late", &[]));
    for begun in [
        frame(kind::HEADERS, END_STREAM, 21, &part),
        frame(kind::HEADERS, END_STREAM | END_HEADERS, 21, &part)[..12].to_vec(),
    ] {
        let (stack, _backend, mut connection) =
            with_others("", "[timeouts]\nhead_seconds = 4\n").await;
        let start = Instant::now();
        connection.send(&begun).await;
        let mut all = [21; 11];
        all[..10].copy_from_slice(&OTHERS);
        let reactions = connection.reactions(all).await;
        let (late, others) = reactions.split_last().unwrap();
        let others_are_served = others
            .iter()
            .all(|one| *one == Reaction::Response(200, None));
        assert!(others_are_served, "{others:?}");
        assert_eq!(
            *late,
            Reaction::Response(408, Some("request_timeout".to_owned()))
        );
        let elapsed = start.elapsed();
        assert!((4..20).contains(&elapsed.as_secs()), "{elapsed:?}");
        last_goaway(&mut connection)
            .await
            .expect("the connection ends");
        until("the access line", || async {
            let log = stack.log(Program::Gateway);
            log.contains("problem.code=request_timeout").then_some(())
        })
        .await;
    }
}

/// A running `HAProxy`. It ends when dropped.
struct Front(Child);

impl Drop for Front {
    fn drop(&mut self) {
        let id = self.0.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let _ = self.0.wait();
    }
}

/// `HAProxy` with one connection of HTTP/2 for the requests of all clients.
async fn start_front(folder: &Folder, gateway: SocketAddr) -> (Front, SocketAddr) {
    let address = free_address();
    let config = format!(
        "global
  nbthread 1
defaults
  mode http
  timeout client 20s
  timeout server 20s
  timeout connect 5s
  http-reuse always
frontend clients
  bind {address}
  default_backend gateway
backend gateway
  server one {gateway} proto h2
"
    );
    let file = folder.path().join("haproxy.cfg");
    fs::write(&file, config).unwrap();
    let child = Command::new("haproxy")
        .args(["-db", "-f"])
        .arg(&file)
        .stderr(Stdio::null())
        .spawn()
        .expect("haproxy is installed: scripts/prerequisites test");
    let front = Front(child);
    until("the proxy to listen", || async {
        TcpStream::connect(address).await.ok()
    })
    .await;
    (front, address)
}

#[tokio::test]
async fn behind_haproxy_a_malformed_request_ends_no_others() {
    let (stack, backend) = slow_stack(TRUSTED, "").await;
    let folder = Folder::create();
    let (_front, address) = start_front(&folder, stack.addresses().gateway).await;
    // One connection to the gateway, which is reused from now on.
    let mut first = RawConnection::open(address).await;
    first.send(&request("GET", "/first", &[], b"")).await;
    assert_eq!(first.response().await.unwrap().status, 200);
    for round in 1..=3 {
        let mut others = Vec::new();
        for _ in 0..8 {
            let mut other = RawConnection::open(address).await;
            other.send(&request("GET", "/other", &[], b"")).await;
            others.push(other);
        }
        until("the requests of others to arrive", || async {
            (backend.requests().len() > 8 * round).then_some(())
        })
        .await;
        let mut hostile = RawConnection::open(address).await;
        hostile
            .send(b"GET /hostile HTTP/1.1\r\nHost: a\r\nX-A: a\x01b\r\n\r\n")
            .await;
        assert_eq!(hostile.response().await.unwrap().status, 400);
        for mut other in others {
            assert_eq!(other.response().await.unwrap().status, 200);
        }
    }
}
