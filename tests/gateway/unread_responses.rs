//! A response that a client does not read, or reads too slowly, takes a limited amount of memory, the kernel's included,
//! for a limited time. Waits for the backend do not count.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use end_to_end::{
    raw_connection::request,
    raw_http2::{END_STREAM, RawHttp2, frame, get, kind},
    recording_backend::{Behaviour, RecordingBackend},
    stack::Stack,
    waiting::within,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::{Instant, interval, timeout},
};

/// Twice what the gateway, its kernel buffers and those of this test hold; half of what they would hold with the
/// kernel's own buffer sizes.
const LARGE: usize = 2 * 1024 * 1024;

/// Kernel buffer of each of this test's sockets.
const BUFFER: u32 = 64 * 1024;

/// A backend that sends `length` bytes to its first client, and whether all of them were taken from it.
async fn sending_backend(length: usize) -> (std::net::SocketAddr, Arc<AtomicBool>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(BUFFER).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(16).unwrap();
    let address = listener.local_addr().unwrap();
    let is_sent = Arc::new(AtomicBool::new(false));
    let sent = Arc::clone(&is_sent);
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // One read gets the request.
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let _ = stream.write_all(&vec![b'x'; length]).await;
        sent.store(true, Ordering::Relaxed);
        std::future::pending::<()>().await;
    });
    (address, is_sent)
}

/// A connection with a small receive buffer.
async fn connect(stack: &Stack) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(BUFFER).unwrap();
    socket.connect(stack.addresses().gateway).await.unwrap()
}

#[tokio::test]
async fn an_unread_response_stays_at_the_backend() {
    let (address, is_sent) = sending_backend(LARGE).await;
    let stack = Stack::builder().in_front_of_address(address).start().await;
    let mut client = connect(&stack).await;
    client
        .write_all(&request("GET", "/large", &[], b""))
        .await
        .unwrap();
    let mut start = [0; 15];
    client.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200 OK");
    let taken = within(Duration::from_secs(2), || async {
        is_sent.load(Ordering::Relaxed).then_some(())
    });
    assert_eq!(taken.await, None, "{LARGE} bytes were buffered");
    // The whole response arrives once the client reads.
    let mut rest = vec![0; LARGE];
    client.read_exact(&mut rest).await.unwrap();
    assert!(is_sent.load(Ordering::Relaxed));
}

/// Twice what the gateway, its kernel buffers and those of this test hold of a response whose client has taken nothing.
const MEDIUM: usize = 640 * 1024;

const H2C: &str = "[[listen]]\naddress = \"$LISTEN\"\nprotocols = [\"http/1.1\", \"h2c\"]\n";

/// SETTINGS with `INITIAL_WINDOW_SIZE` 0.
fn no_window() -> Vec<u8> {
    frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])
}

fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

#[tokio::test]
async fn a_stream_without_a_window_holds_little_of_a_large_response() {
    let (address, is_sent) = sending_backend(MEDIUM).await;
    let stack = Stack::builder().gateway(H2C).in_front_of_address(address);
    let stack = stack.start().await;
    let mut client = RawHttp2::open(stack.addresses().gateway).await;
    client.send(&[no_window(), get(1, "/large")].concat()).await;
    while client.frame().await.unwrap().kind != kind::HEADERS {}
    let taken = within(Duration::from_secs(2), || async {
        is_sent.load(Ordering::Relaxed).then_some(())
    });
    assert_eq!(taken.await, None, "{MEDIUM} bytes were buffered");
    client
        .send(&[window_update(0, 1 << 24), window_update(1, 1 << 24)].concat())
        .await;
    let mut received = 0;
    while received < MEDIUM {
        let frame = client.frame().await.unwrap();
        received += usize::from(frame.kind == kind::DATA) * frame.payload.len();
    }
    assert!(is_sent.load(Ordering::Relaxed));
}

/// How a stream ends whose window grows by `bytes` ten times a second, and after which time.
async fn slow_stream(stack: &Stack, bytes: u32) -> (&'static str, Duration) {
    let mut client = RawHttp2::open(stack.addresses().gateway).await;
    client.send(&[no_window(), get(1, "/x")].concat()).await;
    let (start, mut ticks) = (Instant::now(), interval(Duration::from_millis(100)));
    loop {
        let next = tokio::select! {
            _ = ticks.tick() => None,
            frame = client.frame() => Some(frame.unwrap()),
        };
        match next {
            None => {
                client.send(&window_update(1, bytes)).await;
            }
            Some(frame) if frame.stream == 1 && frame.kind == kind::RST_STREAM => {
                return ("reset", start.elapsed());
            }
            Some(frame) if frame.stream == 1 && frame.flags & END_STREAM != 0 => {
                return ("whole", start.elapsed());
            }
            Some(_) => {}
        }
    }
}

#[tokio::test]
async fn a_stream_below_the_smallest_rate_is_reset_and_one_above_it_is_served() {
    let backend = RecordingBackend::start().await;
    let config = format!("{H2C}\n[timeouts]\nsend_seconds = 15");
    let stack = Stack::builder().gateway(&config).in_front_of(&backend);
    let stack = stack.start().await;
    backend.behave(Behaviour {
        body: vec![b'x'; 10_000],
        ..Behaviour::default()
    });
    // The smallest rate is 100 bytes a second; these take 10 and 500.
    let (slow, fast) = tokio::join!(slow_stream(&stack, 1), slow_stream(&stack, 50));
    assert_eq!(slow.0, "reset");
    assert!(slow.1 < Duration::from_secs(60), "{:?}", slow.1);
    assert_eq!(fast.0, "whole");
    // Longer than the timeout: its bytes pay for its waits.
    assert!(fast.1 > Duration::from_secs(16), "{:?}", fast.1);
}

/// How many bytes a client gets that reads up to `piece` of them ten times a second.
async fn read_slowly(stack: &Stack, piece: usize) -> usize {
    let mut client = connect(stack).await;
    client
        .write_all(&request("GET", "/x", &["Connection: close"], b""))
        .await
        .unwrap();
    let (mut buffer, mut received) = (vec![0; piece], 0);
    let mut ticks = interval(Duration::from_millis(100));
    loop {
        ticks.tick().await;
        let mut filled = 0;
        while filled < piece {
            let read = timeout(Duration::from_secs(20), client.read(&mut buffer[filled..]));
            match read.await.expect("the gateway sends or closes") {
                Ok(0) | Err(_) => return received + filled,
                Ok(length) => filled += length,
            }
        }
        received += filled;
    }
}

#[tokio::test]
async fn a_connection_below_the_smallest_rate_is_closed_and_one_above_it_is_served() {
    const BODY: usize = 12_000_000;
    let backend = RecordingBackend::start().await;
    backend.behave(Behaviour {
        body: vec![b'x'; BODY],
        ..Behaviour::default()
    });
    // What the sockets hold is taken in steps of some 200 KB: each wait is far below the timeout, all of them together
    // are above it.
    for (min_rate, timeout, is_served) in [(1_000_000, 3, false), (100_000, 20, true)] {
        let config = format!(
            "[connections]\nmin_bytes_per_second = {min_rate}\n[timeouts]\nsend_seconds = {timeout}"
        );
        let stack = Stack::builder().gateway(&config).in_front_of(&backend);
        let stack = stack.start().await;
        let received = read_slowly(&stack, 40_000).await;
        assert_eq!(received > BODY, is_served, "{min_rate}: {received}");
    }
}

#[tokio::test]
async fn a_client_does_not_pay_for_a_slow_backend() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // An event stream: a few bytes a second, for three times the timeout.
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head).await.unwrap();
        let mut ticks = interval(Duration::from_millis(500));
        for _ in 0..6 {
            ticks.tick().await;
            stream.write_all(b"1\r\nx\r\n").await.unwrap();
        }
        stream.write_all(b"0\r\n\r\n").await.unwrap();
    });
    let stack = Stack::builder()
        .gateway("[timeouts]\nsend_seconds = 1")
        .in_front_of_address(address)
        .start()
        .await;
    let mut client = stack.raw().await;
    client.send(&request("GET", "/x", &[], b"")).await;
    assert_eq!(client.response().await.unwrap().body, b"xxxxxx");
}
