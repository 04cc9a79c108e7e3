//! Connections whose clients send and accept single bytes, stop half-way, or disconnect.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use signpost_kit::server::shutdown::Phase;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;
use crate::{
    config::tests::load,
    request::{
        drain::Drain,
        scripted::{Script, Step},
    },
};

const CONFIG: &str = r#"
prefix = "Acme"
[versions.v1]
backend = "127.0.0.1:1"
[application]
key = "4283fefc63f0cd0e873a0000c6d07ef74283fefc63f0cd0e873a0000c6d07ef7"
[limits]
head_bytes = 1024
body_bytes = 64
[log]
access_sample = 0
"#;

/// A gateway whose version has its backend at `backend`.
fn current(backend: &str) -> ArcSwap<Gateway> {
    let config = load(&CONFIG.replace("127.0.0.1:1", backend)).unwrap();
    let gateway = serve::tests::gateway(config);
    ArcSwap::from_pointee(gateway)
}

/// What the client receives.
async fn served(steps: impl IntoIterator<Item = Step>) -> (String, Script) {
    served_by(&current("127.0.0.1:1"), steps).await
}

async fn served_by(
    current: &ArcSwap<Gateway>,
    steps: impl IntoIterator<Item = Step>,
) -> (String, Script) {
    let stream = Script::new(steps);
    let client = Box::new(ConnectionInfo::plain(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let beginning = Arc::new(Drain::new()).begin_connection();
    serve_connection(current, stream.clone(), client, beginning).await;
    (String::from_utf8(stream.written()).unwrap(), stream)
}

fn statuses(responses: &str) -> Vec<u16> {
    let heads = responses.split("HTTP/1.1 ").skip(1);
    heads.map(|head| head[..3].parse().unwrap()).collect()
}

fn give(text: &str) -> Step {
    Step::Give(text.into())
}

const REJECTED: &str = "BREW /pot HTTP/1.1\r\nHost: h\r\n\r\n";
const LAST: &str = "BREW /pot HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
const FORM: &str =
    "POST /x HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-www-form-urlencoded\r\n";

#[tokio::test]
async fn an_idle_connection_has_no_room_for_a_request() {
    let current = current("127.0.0.1:1");
    let client = Box::new(ConnectionInfo::plain(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let beginning = Arc::new(Drain::new()).begin_connection();
    let idle = serve_connection(&current, Script::new([]), client, beginning);
    assert!(size_of_val(&idle) < 1536, "{} bytes", size_of_val(&idle));
}

#[tokio::test(start_paused = true)]
async fn a_connection_serves_several_requests_in_pieces_of_any_size() {
    let all = [REJECTED, "\r\n", REJECTED, LAST].concat();
    for size in [1, 2, 5, all.len()] {
        for taken in [1, 7, 9999] {
            let mut steps = Script::giving(all.as_bytes(), size);
            steps.push(Step::TakeAlways(taken));
            let (responses, stream) = served(steps).await;
            assert_eq!(statuses(&responses), [405, 405, 405], "{size} {taken}");
            assert_eq!(responses.matches("Connection: close").count(), 1);
            assert!(stream.is_shut_down());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_disconnects_within_a_head_gets_nothing() {
    for length in 0..REJECTED.len() {
        for end in [Step::End, Step::FailRead] {
            let steps = [give(&REJECTED[..length]), Step::Wait, end];
            let steps = steps.into_iter().filter(|step| *step != give(""));
            assert_eq!(served(steps).await.0, "", "{length}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_bad_head_gets_a_response_and_closes_the_connection() {
    for (head, status) in [
        ("\x16\x03\x01", 400),
        ("GET / HTTP/1.1\n", 400),
        ("GET / HTTP/3.0\r\nHost: h\r\n\r\n", 400),
        ("GET /% HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
    ] {
        let (responses, stream) = served([give(head), give(REJECTED)]).await;
        assert_eq!(statuses(&responses), [status], "{head:?}");
        assert!(responses.contains("Connection: close\r\n") && stream.is_shut_down());
    }
    let large = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "x".repeat(1024));
    assert_eq!(statuses(&served([give(&large)]).await.0), [431]);
    let long = format!("GET /?{}", "x".repeat(1024));
    assert_eq!(statuses(&served([give(&long)]).await.0), [414]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_and_a_partial_head_gets_408() {
    let start = Instant::now();
    assert_eq!(served([]).await.0, "");
    assert_eq!(start.elapsed().as_secs(), 10);
    let start = Instant::now();
    let (responses, _) = served([give(&REJECTED[..9])]).await;
    assert_eq!(statuses(&responses), [408]);
    // By the smallest rate, which applies after 5 s.
    // And a lingering close of 2 s.
    assert_eq!(start.elapsed().as_millis(), 7090);
    // The timeout between two requests is longer.
    let start = Instant::now();
    let (responses, _) = served([give(REJECTED)]).await;
    assert_eq!(statuses(&responses), [405]);
    assert_eq!(start.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_disconnected_after_the_timeout() {
    let start = Instant::now();
    let (responses, stream) = served([give(REJECTED), Step::Take(9), Step::HoldAlways]).await;
    assert_eq!(responses.len(), 9);
    assert!(!stream.is_shut_down());
    assert_eq!(start.elapsed().as_secs(), 60);
    let (responses, _) = served([give(REJECTED), Step::FailWrite]).await;
    assert_eq!(responses, "");
}

#[tokio::test(start_paused = true)]
async fn a_form_is_read_in_pieces_of_any_size_and_the_next_request_follows() {
    let length = format!("{FORM}Content-Length: 3\r\n\r\na=1{LAST}");
    let chunked =
        format!("{FORM}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x\r\n=1\r\n0\r\n\r\n{LAST}");
    for all in [length, chunked] {
        for size in [1, 3, all.len()] {
            let (responses, _) = served(Script::giving(all.as_bytes(), size)).await;
            // The form has no `time`.
            assert_eq!(statuses(&responses), [403, 405], "{size} {all:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unread_form_closes_the_connection() {
    for (all, status) in [
        (format!("{FORM}Content-Length: 65\r\n\r\n{REJECTED}"), 413),
        (
            format!(
                "{FORM}Transfer-Encoding: chunked\r\n\r\n41\r\n{}",
                "x".repeat(65)
            ),
            413,
        ),
        (
            format!("{FORM}Transfer-Encoding: chunked\r\n\r\nx\r\n{REJECTED}"),
            400,
        ),
        (format!("{FORM}Content-Length: 9\r\n\r\na=1"), 408),
        (
            format!("BREW / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n{REJECTED}"),
            405,
        ),
    ] {
        let (responses, _) = served([give(&all), Step::Wait]).await;
        assert_eq!(statuses(&responses), [status], "{all:?}");
        assert!(responses.contains("Connection: close\r\n"));
    }
    let steps = [
        give(&format!("{FORM}Content-Length: 9\r\n\r\na=1")),
        Step::Wait,
        Step::End,
    ];
    assert_eq!(served(steps).await.0, "");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_expects_100_gets_it_except_in_http_1_0() {
    let head = format!("{FORM}Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    let (responses, _) = served([give(&head), Step::Until(25), give("a=1"), Step::End]).await;
    assert_eq!(statuses(&responses), [100, 403]);
    let old = head.replace("HTTP/1.1", "HTTP/1.0");
    let (responses, _) = served([give(&old), give("a=1")]).await;
    assert_eq!(statuses(&responses), [403]);
    assert!(responses.contains("Connection: close\r\n"));
}

#[tokio::test(start_paused = true)]
async fn the_response_to_head_has_no_body() {
    let (responses, _) = served([give("HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n"), Step::End]).await;
    assert_eq!(statuses(&responses), [405]);
    assert!(responses.ends_with("\r\n\r\n") && responses.contains("Content-Length: "));
}

#[tokio::test(start_paused = true)]
async fn a_stop_closes_idle_connections_and_serves_one_last_request() {
    let current = current("127.0.0.1:1");
    current.load().state.drain.enter(Phase::Draining);
    let (responses, _) = served_by(&current, [give(REJECTED), give(REJECTED)]).await;
    assert_eq!(statuses(&responses), [405]);
    let idle_delay = Duration::from_secs(3);
    current.load().state.drain.close(idle_delay);
    // A connection accepted shortly before is still served.
    let (responses, _) = served_by(&current, [Step::Wait, give(REJECTED)]).await;
    assert_eq!(statuses(&responses), [405]);
    let start = Instant::now();
    assert_eq!(served_by(&current, []).await.0, "");
    assert_eq!(start.elapsed(), idle_delay);
    assert!(responses.contains("Connection: close\r\n"));
}

/// Answers each connection's first request with `response` and closes it.
async fn backend(response: &'static str) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    address
}

const GET: &str = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";

#[tokio::test]
async fn a_response_is_relayed_and_the_connection_stays_open() {
    let response = "HTTP/1.1 200 Fine\r\nX-A: 1\r\nX-Gateway-App-Id: 7\r\nTransfer-Encoding: chunked\r\n\r\n\
                  2;e\r\nok\r\n0\r\nT: u\r\n\r\n";
    let current = current(&backend(response).await.to_string());
    for taken in [1, 9999] {
        let steps = [
            give(GET),
            Step::TakeAlways(taken),
            Step::Until(150),
            give(LAST),
        ];
        let (responses, _) = served_by(&current, steps).await;
        assert_eq!(statuses(&responses), [200, 405], "{responses}");
        let first = responses.split("HTTP/1.1 405").next().unwrap();
        assert!(
            first.starts_with("HTTP/1.1 200 Fine\r\nx-request-id: "),
            "{first}"
        );
        assert!(first.contains("\r\nX-A: 1\r\n") && !first.contains("App-Id"));
        assert!(first.ends_with("\r\n\r\n2\r\nok\r\n0\r\n\r\n"), "{first}");
    }
}

#[tokio::test]
async fn a_broken_response_is_a_502_before_its_first_piece_and_aborted_after_it() {
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
    let current_to = |address: std::net::SocketAddr| current(&address.to_string());
    let current = current_to(backend(short).await);
    let (responses, stream) = served_by(&current, [give(GET), give(GET)]).await;
    assert_eq!(statuses(&responses), [200]);
    assert!(responses.ends_with("abc") && !stream.is_shut_down());
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n";
    let current = current_to(backend(chunks).await);
    let (responses, _) = served_by(&current, [give(GET), Step::Until(150), Step::End]).await;
    assert_eq!(statuses(&responses), [502]);
}

#[tokio::test]
async fn http_1_0_gets_no_chunks() {
    let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let current = current(&backend(response).await.to_string());
    let old = GET.replace("HTTP/1.1", "HTTP/1.0");
    let (responses, stream) = served_by(&current, [give(&old)]).await;
    let end = "\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    assert!(responses.ends_with(end), "{responses}");
    assert!(!responses.contains("chunked") && stream.is_shut_down());
}

#[tokio::test]
async fn http_1_0_gets_a_502_for_a_truncated_response() {
    let broken = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n";
    let current = current(&backend(broken).await.to_string());
    let old = GET.replace("HTTP/1.1", "HTTP/1.0");
    let (responses, _) = served_by(&current, [give(&old), Step::Wait]).await;
    assert_eq!(statuses(&responses), [502], "{responses}");
}

#[tokio::test]
async fn http_1_0_gets_a_large_response_until_the_close() {
    let large = "x".repeat(300_000);
    let response = format!("HTTP/1.1 200 OK\r\n\r\n{large}").leak();
    let current = current(&backend(response).await.to_string());
    let old = GET.replace("HTTP/1.1", "HTTP/1.0");
    let (responses, stream) = served_by(&current, [give(&old)]).await;
    let (head, body) = responses.split_once("\r\n\r\n").unwrap();
    assert!(head.ends_with("Connection: close") && !head.contains("Content-Length"));
    assert!(body == large && stream.is_shut_down());
}

#[tokio::test(start_paused = true)]
async fn bytes_after_the_last_request_are_read_but_not_served() {
    for behind in ["\r\n", REJECTED] {
        let (responses, stream) = served([give(LAST), give(behind), Step::End]).await;
        assert_eq!(statuses(&responses), [405]);
        // A close with unread bytes would reset the connection.
        assert_eq!(stream.remaining_reads(), [Step::End]);
    }
}

#[test]
fn an_idle_connection_needs_little_memory() {
    let current = current("127.0.0.1:1");
    let client = Box::new(ConnectionInfo::plain(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let beginning = Arc::new(Drain::new()).begin_connection();
    let size = size_of_val(&serve_connection(
        &current,
        Script::new([]),
        client,
        beginning,
    ));
    // Includes the space for a request, which is not boxed: that would cost an allocation for each.
    assert!(size <= 5 * 1024, "{size} bytes");
}
