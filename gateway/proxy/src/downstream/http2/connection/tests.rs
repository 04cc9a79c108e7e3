//! Connections over a pipe in memory, with the `h2` crate's client or with single frames.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use h2::client::{self, SendRequest};
use http::{Request, Response};
use signpost_kit::server::shutdown::Phase;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream},
    net::TcpListener,
    task::JoinHandle,
    time::timeout,
};

use super::*;
use crate::{
    config::tests::load,
    downstream::http2::{
        PREFACE,
        bounds::{BUDGET, REQUEST_COST},
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

fn current(config: &str) -> ArcSwap<Gateway> {
    let config = load(config).unwrap();
    ArcSwap::from_pointee(crate::serve::tests::gateway(config))
}

/// A served connection: its other end, the task that serves it, and the state of the stop.
struct Served {
    stream: DuplexStream,
    task: JoinHandle<()>,
    drain: Arc<Drain>,
}

fn serve(config: &str) -> Served {
    serve_over(config, 64 * 1024)
}

/// Serves a connection that holds so many bytes in each direction.
fn serve_over(config: &str, room: usize) -> Served {
    let current = current(config);
    let drain = Arc::clone(&current.load().state.drain);
    let (stream, theirs) = tokio::io::duplex(room);
    let client = Box::new(ConnectionInfo::plain(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    // Of another drain, so that `drain` counts requests alone.
    let beginning = Arc::new(Drain::new()).begin_connection();
    let task = tokio::spawn(async move {
        let (state, limits) = {
            let gateway = current.load();
            (
                Arc::clone(&gateway.state),
                gateway.policy.bounds.connections,
            )
        };
        let open = state.open_connections.begin(&limits);
        let open = open.and_then(|open| open.of(client.address, &limits));
        let streams = open.unwrap().streams();
        serve_connection(&current, theirs, client, streams, beginning).await;
    });
    Served {
        stream,
        task,
        drain,
    }
}

/// A client of a served connection, and the task that drives it.
async fn client(stream: DuplexStream) -> (SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
    let (client, connection) = client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    (client.ready().await.unwrap(), driver)
}

fn request(method: &str, target: &str) -> Request<()> {
    let uri = format!("http://gateway.example{target}");
    let request = Request::builder().method(method).uri(uri);
    request.body(()).unwrap()
}

/// Sends a request without a body, and returns its response and that one's body.
async fn send(client: &mut SendRequest<Bytes>, request: Request<()>) -> (Response<()>, Vec<u8>) {
    let (response, _) = client.send_request(request, true).unwrap();
    let (parts, mut body) = response.await.unwrap().into_parts();
    let mut bytes = Vec::new();
    while let Some(piece) = body.data().await {
        bytes.extend_from_slice(&piece.unwrap());
    }
    (Response::from_parts(parts, ()), bytes)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// All bytes until the end of the stream.
async fn bytes_to_end(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    timeout(Duration::from_secs(300), read)
        .await
        .unwrap()
        .unwrap();
    bytes
}

const ENHANCE_YOUR_CALM: u8 = 11;
const GOAWAY: u8 = 7;
const PING: u8 = 6;
const SETTINGS: u8 = 4;
const RST_STREAM: u8 = 3;
const HEADERS: u8 = 1;

/// Kind and payload of each frame in these bytes.
fn frames(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let [a, b, c, kind, _, _, _, _, _, after @ ..] = rest else {
            return None;
        };
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        let (payload, after) = after.split_at_checked(length)?;
        rest = after;
        Some((*kind, payload))
    })
}

/// The code of the last GOAWAY in these bytes.
fn goaway_code(bytes: &[u8]) -> Option<u8> {
    let last = frames(bytes).filter(|(kind, _)| *kind == GOAWAY).last();
    last.map(|(_, payload)| payload[7])
}

/// A PUT of `/`, which is rejected.
fn put(stream: u32) -> Vec<u8> {
    // :method PUT as a literal; :scheme http; :path /; :authority h as a literal.
    frame(HEADERS, 0x5, stream, b"\x02\x03PUT\x86\x84\x01\x01h")
}

#[tokio::test(start_paused = true)]
async fn requests_are_judged_by_the_usual_phases() {
    let Served {
        stream,
        task,
        drain,
    } = serve(CONFIG);
    let (mut client, driver) = client(stream).await;
    let connect = Request::builder()
        .method("CONNECT")
        .uri("gateway.example:443");
    for (request, status) in [
        (request("PUT", "/"), 405),
        (connect.body(()).unwrap(), 400),
        (request("GET", "/a?b=%zz"), 400),
    ] {
        let method = request.method().clone();
        let (response, body) = send(&mut client, request).await;
        assert_eq!(response.status(), status, "{method}");
        assert!(response.headers().contains_key("x-request-id"));
        let length = response.headers()["content-length"].to_str().unwrap();
        assert_eq!(length, body.len().to_string());
    }
    let (response, body) = send(&mut client, request("HEAD", "/")).await;
    assert_eq!((response.status().as_u16(), body.len()), (405, 0));
    assert_eq!(drain.in_flight(), 0);
    drop(client);
    driver.await.unwrap().unwrap();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn responses_are_whole_on_narrow_connections_and_for_clients_without_a_table() {
    for room in [64, 100, 1000] {
        let Served { stream, .. } = serve_over(CONFIG, room);
        let mut builder = client::Builder::new();
        builder.header_table_size(0);
        let (mut client, connection) = builder.handshake::<_, Bytes>(stream).await.unwrap();
        let _driver = tokio::spawn(connection);
        let sent: Vec<_> = (0..20)
            .map(|_| client.send_request(request("PUT", "/"), true).unwrap().0)
            .collect();
        for response in sent {
            let (parts, mut body) = response.await.unwrap().into_parts();
            let mut bytes = Vec::new();
            while let Some(piece) = body.data().await {
                bytes.extend_from_slice(&piece.unwrap());
            }
            assert_eq!(parts.status, 405);
            let length = parts.headers["content-length"].to_str().unwrap();
            assert_eq!(length, bytes.len().to_string());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_has_few_responses_waiting() {
    let mut served = serve_over(CONFIG, 1024);
    // :method HEAD as a literal: the head ends the stream, so that the `h2` crate forgets it.
    let head = |number: u32| {
        frame(
            HEADERS,
            0x5,
            2 * number + 1,
            b"\x02\x04HEAD\x86\x84\x01\x01h",
        )
    };
    let requests: Vec<u8> = (0..900).flat_map(head).collect();
    let hello = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &requests].concat();
    served.stream.write_all(&hello).await.unwrap();
    // Nothing is read before all is sent.
    served.stream.shutdown().await.unwrap();
    let received = bytes_to_end(&mut served.stream).await;
    let count = |kind| {
        frames(&received)
            .filter(|(found, _)| *found == kind)
            .count()
    };
    let (answered, refused) = (count(HEADERS), count(RST_STREAM));
    // Refused streams use up the budget, so not all 900 are.
    assert!(answered <= 300 && refused > 300, "{answered} {refused}");
    served.task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn heads_beyond_the_limits_get_the_usual_response() {
    let Served { stream, .. } = serve(CONFIG);
    let (mut client, _driver) = client(stream).await;
    let mut large = request("GET", "/");
    let value = "a".repeat(1500).parse().unwrap();
    large.headers_mut().insert("x-a", value);
    let (response, body) = send(&mut client, large).await;
    assert_eq!(response.status(), 431);
    let body = String::from_utf8(body).unwrap();
    assert!(body.contains("headers_too_large"), "{body}");
    let mut huge = request("GET", "/");
    for _ in 0..4 {
        let value = "a".repeat(15_000).parse().unwrap();
        huge.headers_mut().append("x-a", value);
    }
    let (response, _) = send(&mut client, huge).await;
    assert_eq!(response.status(), 431);
    // The connection goes on.
    let (response, _) = send(&mut client, request("PUT", "/")).await;
    assert_eq!(response.status(), 405);
}

#[tokio::test(start_paused = true)]
async fn a_response_before_the_body_resets_the_stream_without_an_error() {
    let Served { stream, .. } = serve(CONFIG);
    let (mut client, _driver) = client(stream).await;
    let (response, mut body) = client.send_request(request("PUT", "/"), false).unwrap();
    let response = response.await.unwrap();
    assert_eq!(response.status(), 405);
    let mut pieces = response.into_body();
    while let Some(piece) = pieces.data().await {
        piece.unwrap();
    }
    let reason = poll_fn(|context| body.poll_reset(context)).await.unwrap();
    assert_eq!(reason, Reason::NO_ERROR);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_gets_goaway_and_pings_do_not_extend_it() {
    let mut served = serve(CONFIG);
    let start = Instant::now();
    let hello = [PREFACE, &frame(SETTINGS, 0, 0, &[])[..], &put(1)[..]].concat();
    served.stream.write_all(&hello).await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(served.stream);
    let pings = tokio::spawn(async move {
        let ping = frame(PING, 0, 0, b"12345678");
        while writer.write_all(&ping).await.is_ok() {
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    });
    bytes_to_end(&mut reader).await;
    let elapsed = start.elapsed().as_secs();
    assert!((60..=64).contains(&elapsed), "{elapsed}");
    served.task.await.unwrap();
    pings.abort();
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_ends_with_the_timeout_of_heads() {
    for sent in [
        &b""[..],
        b"PRI * HTT",
        &[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat(),
    ] {
        let mut served = serve(CONFIG);
        let start = Instant::now();
        served.stream.write_all(sent).await.unwrap();
        bytes_to_end(&mut served.stream).await;
        let elapsed = start.elapsed().as_secs();
        assert!((10..=14).contains(&elapsed), "{elapsed}");
        drop(served.stream);
        served.task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn other_bytes_than_the_preface_end_the_connection() {
    let mut served = serve(CONFIG);
    let start = Instant::now();
    served
        .stream
        .write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        .await
        .unwrap();
    bytes_to_end(&mut served.stream).await;
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn frames_without_progress_end_the_connection() {
    let wide = [0; 16_384];
    for (name, frame) in [
        ("PING", frame(PING, 0, 0, b"12345678")),
        ("acknowledged PING", frame(PING, 1, 0, b"12345678")),
        ("SETTINGS", frame(SETTINGS, 0, 0, &[])),
        ("WINDOW_UPDATE", frame(8, 0, 0, &[0, 0, 0, 1])),
        ("PRIORITY", frame(2, 0, 1, &[0, 0, 0, 0, 1])),
        ("unknown frame", frame(0xfa, 0, 0, b"")),
        ("large unknown frame", frame(0xfa, 0, 0, &wide)),
    ] {
        let served = serve(CONFIG);
        let (mut reader, mut writer) = tokio::io::split(served.stream);
        let hello = [PREFACE, &self::frame(SETTINGS, 0, 0, &[])[..]].concat();
        let flood = tokio::spawn(async move {
            writer.write_all(&hello).await.unwrap();
            let mut sent = 0_usize;
            while writer.write_all(&frame).await.is_ok() {
                sent += frame.len();
                assert!(sent < 8 * 1024 * 1024, "{name}: no end");
            }
        });
        let bytes = bytes_to_end(&mut reader).await;
        assert_eq!(goaway_code(&bytes), Some(ENHANCE_YOUR_CALM), "{name}");
        served.task.await.unwrap();
        drop(reader);
        flood.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_reset_at_once_end_the_connection() {
    let served = serve(CONFIG);
    let mut bytes = [PREFACE, &frame(SETTINGS, 0, 0, &[])[..]].concat();
    for number in 0..2000 {
        let stream = 2 * number + 1;
        bytes.extend(put(stream));
        bytes.extend(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
    }
    let (mut reader, mut writer) = tokio::io::split(served.stream);
    let flood = tokio::spawn(async move {
        let _ = writer.write_all(&bytes).await;
        writer
    });
    let received = bytes_to_end(&mut reader).await;
    assert_eq!(goaway_code(&received), Some(ENHANCE_YOUR_CALM));
    assert_eq!(served.drain.in_flight(), 0);
    served.task.await.unwrap();
    flood.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn many_served_requests_use_up_no_budget() {
    let Served { stream, .. } = serve(CONFIG);
    let (mut client, _driver) = client(stream).await;
    // Ten times as many as the budget allows unanswered.
    for _ in 0..10 * BUDGET / REQUEST_COST {
        let (response, _) = send(&mut client, request("PUT", "/")).await;
        assert_eq!(response.status(), 405);
    }
}

#[tokio::test(start_paused = true)]
async fn the_streams_of_an_address_are_limited() {
    // An address has 20 streams beyond the first.
    let config = format!("{CONFIG}\n[connections]\nper_address = 20");
    let Served { stream, task, .. } = serve(&config);
    let (mut client, driver) = client(stream).await;
    let mut open = Vec::new();
    for _ in 0..30 {
        client = client.ready().await.unwrap();
        // Their forms never arrive.
        let request = Request::post("http://h/x")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(())
            .unwrap();
        open.push(client.send_request(request, false).unwrap());
    }
    let mut refused = 0;
    for (response, _) in &mut open[21..] {
        let error = response.await.unwrap_err();
        refused += usize::from(error.reason() == Some(Reason::REFUSED_STREAM));
    }
    assert_eq!(refused, 9);
    drop((client, open));
    driver.abort();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_connection_ends_after_its_last_request() {
    let config = format!("{CONFIG}\n[connections]\nrequests = 300");
    let Served { stream, task, .. } = serve(&config);
    let (mut client, driver) = client(stream).await;
    let mut answered = 0;
    while let Ok(ready) = client.clone().ready().await {
        client = ready;
        let Ok((response, _)) = client.send_request(request("PUT", "/"), true) else {
            break;
        };
        // A request after the GOAWAY may be refused, and is then safe to repeat.
        let Ok(response) = response.await else { break };
        assert_eq!(response.status(), 405);
        answered += 1;
    }
    assert!((300..400).contains(&answered), "{answered}");
    drop(client);
    driver.await.unwrap().unwrap();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_idle_connections_and_waits_for_their_goaway() {
    let Served {
        stream,
        task,
        drain,
    } = serve(CONFIG);
    let (mut client, driver) = client(stream).await;
    send(&mut client, request("PUT", "/")).await;
    drain.enter(Phase::Draining);
    drain.enter(Phase::Closing);
    timeout(Duration::from_secs(30), task)
        .await
        .unwrap()
        .unwrap();
    driver.await.unwrap().unwrap();
    assert_eq!(drain.in_flight(), 0);
    assert!(client.ready().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn during_a_drain_the_connection_ends_after_a_response() {
    let Served {
        stream,
        task,
        drain,
    } = serve(CONFIG);
    let (mut client, driver) = client(stream).await;
    drain.enter(Phase::Draining);
    let (response, _) = send(&mut client, request("PUT", "/")).await;
    assert_eq!(response.status(), 405);
    timeout(Duration::from_secs(30), driver)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    timeout(Duration::from_secs(30), task)
        .await
        .unwrap()
        .unwrap();
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_ignores_the_goaway_is_closed() {
    let mut served = serve(CONFIG);
    let hello = [PREFACE, &frame(SETTINGS, 0, 0, &[])[..]].concat();
    served.stream.write_all(&hello).await.unwrap();
    // The client is connected once its SETTINGS are acknowledged.
    let mut first = [0; 9];
    served.stream.read_exact(&mut first).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    served.drain.enter(Phase::Closing);
    let start = Instant::now();
    served.task.await.unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(served.drain.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_requests_after_the_goaway_is_closed() {
    let served = serve(CONFIG);
    served.drain.enter(Phase::Draining);
    let (mut reader, mut writer) = tokio::io::split(served.stream);
    let reading = tokio::spawn(async move { bytes_to_end(&mut reader).await });
    let hello = [PREFACE, &frame(SETTINGS, 0, 0, &[])[..]].concat();
    writer.write_all(&hello).await.unwrap();
    let mut number = 0;
    while writer.write_all(&put(2 * number + 1)).await.is_ok() && !reading.is_finished() {
        number += 1;
        assert!(number < 10_000);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let received = reading.await.unwrap();
    assert_eq!(goaway_code(&received), Some(ENHANCE_YOUR_CALM));
    served.task.await.unwrap();
}

/// A backend that accepts one connection, and answers with these bytes.
async fn backend(response: &'static [u8], holds: bool) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer).await.unwrap();
        stream.write_all(response).await.unwrap();
        if holds {
            // Ends with the gateway's side.
            while !matches!(stream.read(&mut buffer).await, Ok(0) | Err(_)) {}
        }
    });
    (address, task)
}

#[tokio::test]
async fn a_response_that_breaks_off_resets_the_stream() {
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
    let (address, _backend) = backend(response, false).await;
    let Served { stream, .. } = serve(&CONFIG.replace("127.0.0.1:1", &address));
    let (mut client, _driver) = client(stream).await;
    let (response, _) = client.send_request(request("GET", "/open"), true).unwrap();
    let ended = async {
        // The reset may overtake what was sent before.
        let mut body = response.await?.into_body();
        while let Some(piece) = body.data().await {
            piece?;
        }
        Ok::<_, h2::Error>(())
    };
    let ended = ended.await.unwrap_err().reason();
    assert_eq!(ended, Some(Reason::INTERNAL_ERROR));
}

#[tokio::test]
async fn a_reset_of_the_client_ends_the_exchange_with_the_backend() {
    let (address, backend) = backend(b"HTTP/1.1 200 OK\r\n", true).await;
    let Served { stream, drain, .. } = serve(&CONFIG.replace("127.0.0.1:1", &address));
    let (mut client, _driver) = client(stream).await;
    let (response, mut body) = client.send_request(request("GET", "/open"), true).unwrap();
    while drain.in_flight() == 0 {
        tokio::task::yield_now().await;
    }
    body.send_reset(Reason::CANCEL);
    drop(response);
    timeout(Duration::from_secs(60), backend)
        .await
        .unwrap()
        .unwrap();
    while drain.in_flight() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_disconnected_client_ends_the_exchange_with_the_backend() {
    let (address, backend) = backend(b"HTTP/1.1 200 OK\r\n", true).await;
    let Served {
        stream,
        task,
        drain,
    } = serve(&CONFIG.replace("127.0.0.1:1", &address));
    let (mut client, driver) = client(stream).await;
    let (_response, _) = client.send_request(request("GET", "/open"), true).unwrap();
    while drain.in_flight() == 0 {
        tokio::task::yield_now().await;
    }
    driver.abort();
    timeout(Duration::from_secs(60), backend)
        .await
        .unwrap()
        .unwrap();
    timeout(Duration::from_secs(60), task)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(drain.in_flight(), 0);
}
