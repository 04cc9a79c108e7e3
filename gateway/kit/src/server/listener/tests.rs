use std::convert::Infallible;

use futures_util::{StreamExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
};

use super::{
    admission::{PLACE_TIMEOUT, SPARE_CONNECTIONS},
    *,
};
use crate::server::shutdown::SETTLE_TIME;

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(3600);
const TIMEOUTS: HttpTimeouts = HttpTimeouts {
    head: SHORT,
    idle: LONG,
    send: LONG,
};

/// A server whose handler reads the body; at `/slow` it waits first, at `/events` between two parts of the response.
struct Server {
    address: SocketAddr,
    phase: watch::Sender<Phase>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn start(max_connections: usize, timeouts: HttpTimeouts) -> Self {
        Self::start_with(max_connections, timeouts, plain).await
    }

    async fn start_with<G>(
        max_connections: usize,
        timeouts: HttpTimeouts,
        establish: impl Fn(TcpStream, SocketAddr) -> G + Clone + Send + Sync + 'static,
    ) -> Self
    where
        G: Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send + 'static,
    {
        let settings = HttpSettings {
            name: "test",
            max_connections,
            max_of_network: max_connections,
            timeouts,
            settle: SETTLE_TIME,
        };
        Self::start_as(settings, establish).await
    }

    async fn start_as<G>(
        settings: HttpSettings,
        establish: impl Fn(TcpStream, SocketAddr) -> G + Clone + Send + Sync + 'static,
    ) -> Self
    where
        G: Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (phase, phases) = watch::channel(Phase::Serving);
        let settings = move || settings.clone();
        let task = tokio::spawn(serve(listener, settings, phases, establish, handle));
        Self {
            address,
            phase,
            task,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Connects from another address of this machine: another network.
    async fn connect_from(&self, address: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(address.parse().unwrap()).unwrap();
        socket.connect(self.address).await.unwrap()
    }
}

type TestBody = UnsyncBoxBody<Bytes, Infallible>;

async fn handle(request: Request<Incoming>, _: SocketAddr) -> Response<TestBody> {
    if request.uri().path() == "/events" {
        let first = stream::iter([Ok(Frame::data(Bytes::from("first")))]);
        let last = stream::once(async {
            sleep(4 * SHORT).await;
            Ok(Frame::data(Bytes::from("last")))
        });
        return Response::new(StreamBody::new(first.chain(last)).boxed_unsync());
    }
    at_once(request).await.map(BodyExt::boxed_unsync)
}

async fn at_once(request: Request<Incoming>) -> Response<Full<Bytes>> {
    match request.uri().path() {
        "/refuse" => {
            let mut response = Response::new(Full::from("refused"));
            let close = http::HeaderValue::from_static("close");
            response.headers_mut().insert("connection", close);
            response
        }
        "/large" => Response::new(Full::from(vec![b'x'; 32 * 1024 * 1024])),
        path => {
            if path == "/slow" {
                sleep(2 * SHORT).await;
            }
            let body = request.into_body().collect().await;
            Response::new(Full::from(body.unwrap().to_bytes()))
        }
    }
}

async fn send(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).await.unwrap();
}

/// Reads until the connection ends.
async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    // A reset is an end, too.
    let _ = timeout(Duration::from_secs(20), stream.read_to_end(&mut read))
        .await
        .expect("the connection ends in time");
    String::from_utf8_lossy(&read).into_owned()
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    while !read.windows(4).any(|window| window == b"\r\n\r\n") {
        assert!(stream.read_buf(&mut read).await.unwrap() > 0, "{read:?}");
    }
    String::from_utf8_lossy(&read).into_owned()
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";

/// Begins a request, which is in flight until its body, `body`, is sent. `before` precedes HTTP.
async fn begin_request(stream: &mut TcpStream, before: &[u8]) {
    const HEAD: &[u8] =
        b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
    send(stream, &[before, HEAD].concat()).await;
    assert!(read_head(stream).await.starts_with("HTTP/1.1 100 "));
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed() {
    let server = Server::start(10, TIMEOUTS).await;
    let mut stream = server.connect().await;
    assert_eq!(read_to_end(&mut stream).await, "");
}

#[tokio::test]
async fn an_unfinished_head_times_out_even_if_bytes_keep_arriving() {
    let server = Server::start(10, TIMEOUTS).await;
    let (mut read, mut write) = server.connect().await.into_split();
    let dribble = async {
        loop {
            if write.write_all(b"G").await.is_err() {
                return;
            }
            sleep(SHORT / 10).await;
        }
    };
    let mut response = String::new();
    tokio::select! {
        () = dribble => {}
        _ = read.read_to_string(&mut response) => {}
    }
    assert!(
        response.is_empty() || response.starts_with("HTTP/1.1 4"),
        "{response}"
    );
    let mut stream = server.connect().await;
    send(&mut stream, &GET[..20]).await;
    let response = read_to_end(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
}

#[tokio::test]
async fn the_idle_timeout_may_exceed_the_head_timeout() {
    let server = Server::start(10, TIMEOUTS).await;
    let mut stream = server.connect().await;
    send(&mut stream, GET).await;
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 "));
    sleep(2 * SHORT).await;
    send(&mut stream, GET).await;
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 "));
    // An unfinished head on it still times out.
    send(&mut stream, &GET[..20]).await;
    let response = read_to_end(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
}

#[tokio::test]
async fn an_idle_connection_times_out() {
    let idle = HttpTimeouts {
        head: LONG,
        idle: SHORT,
        send: LONG,
    };
    let server = Server::start(10, idle).await;
    let mut stream = server.connect().await;
    send(&mut stream, GET).await;
    let response = read_to_end(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
}

#[tokio::test]
async fn no_timeout_applies_to_a_handler() {
    let server = Server::start(10, TIMEOUTS).await;
    let mut stream = server.connect().await;
    send(&mut stream, b"GET /slow HTTP/1.1\r\nHost: test\r\n\r\n").await;
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_response_that_the_client_does_not_read_times_out() {
    let server = Server::start(
        1,
        HttpTimeouts {
            head: LONG,
            idle: LONG,
            send: SHORT,
        },
    )
    .await;
    let mut stream = server.connect().await;
    send(&mut stream, b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n").await;
    // Once it has ended, its slot is free again.
    wait_until_served(&server).await;
    drop(stream);
}

const PATIENT: HttpTimeouts = HttpTimeouts {
    head: LONG,
    idle: LONG,
    send: LONG,
};

#[tokio::test]
async fn a_connection_above_the_limit_is_closed_unless_it_is_a_health_check() {
    let server = Server::start(2, PATIENT).await;
    let mut open = [server.connect().await, server.connect().await];
    for stream in &mut open {
        begin_request(stream, b"").await;
    }
    // All at once: some wait for a place, and are closed as well, since none becomes free in time.
    let mut closed = Vec::new();
    for _ in 0..SPARE_CONNECTIONS {
        let mut stream = server.connect().await;
        send(&mut stream, GET).await;
        closed.push(stream);
    }
    for check in [
        "GET /healthz",
        "GET /readyz",
        "HEAD /healthz",
        "HEAD /readyz",
    ] {
        // One network leaves spare connections to others.
        let mut stream = server.connect_from("127.0.0.2:0").await;
        // The connection ends with it, although the request does not ask for that.
        let check = format!("{check} HTTP/1.1\r\nHost: test\r\n\r\n");
        send(&mut stream, check.as_bytes()).await;
        let response = read_to_end(&mut stream).await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    }
    // Above the spare connections, they are closed at once; silent ones like others.
    for _ in 0..2 * SPARE_CONNECTIONS {
        closed.push(server.connect().await);
    }
    for mut stream in closed {
        assert_eq!(read_to_end(&mut stream).await, "");
    }
    drop(open);
    wait_until_served(&server).await;
}

#[tokio::test]
async fn a_connection_above_the_limit_gets_the_next_place() {
    for _ in 0..20 {
        let server = Server::start(2, PATIENT).await;
        let mut streams = [server.connect().await, server.connect().await];
        for stream in &mut streams {
            send(stream, b"GET /slow HTTP/1.1\r\nHost: test\r\n\r\n").await;
        }
        let (began, mut waiting) = (Instant::now(), Vec::new());
        for _ in 0..SPARE_CONNECTIONS / 2 {
            let mut stream = server.connect().await;
            send(&mut stream, GET).await;
            waiting.push(stream);
        }
        let mut are_served = true;
        for stream in streams.iter_mut().chain(&mut waiting) {
            let mut start = [0; b"HTTP/1.1 200 ".len()];
            let is_read = stream.read_exact(&mut start).await.is_ok();
            are_served &= is_read && start == *b"HTTP/1.1 200 ";
        }
        if are_served {
            return;
        }
        // On a busy machine, some may wait for too long.
        assert!(began.elapsed() >= PLACE_TIMEOUT);
    }
    panic!("some get no place");
}

#[tokio::test]
async fn the_longest_idle_connection_makes_room() {
    let server = Server::start(2, PATIENT).await;
    let mut first = server.connect().await;
    let mut second = server.connect().await;
    for stream in [&mut first, &mut second] {
        send(stream, GET).await;
        assert!(read_head(stream).await.starts_with("HTTP/1.1 200 "));
    }
    begin_request(&mut first, b"").await;
    let mut third = server.connect().await;
    send(&mut third, GET).await;
    assert!(read_head(&mut third).await.starts_with("HTTP/1.1 200 "));
    assert_eq!(read_to_end(&mut second).await, "");
    // Any number of them, one after the other.
    let mut open = vec![third];
    for _ in 0..2 * SPARE_CONNECTIONS {
        let mut next = server.connect().await;
        send(&mut next, GET).await;
        assert!(read_head(&mut next).await.starts_with("HTTP/1.1 200 "));
        open.push(next);
    }
    for mut closed in open.drain(..2 * SPARE_CONNECTIONS) {
        assert_eq!(read_to_end(&mut closed).await, "");
    }
    // A connection with a request is never closed for another one.
    send(&mut first, b"body").await;
    assert!(read_head(&mut first).await.starts_with("HTTP/1.1 200 "));
}

/// 400 that say nothing, or stop within what precedes HTTP or within a head: each makes room for a later one.
#[tokio::test]
async fn connections_without_a_request_make_room() {
    let server = Server::start_with(8, PATIENT, greeted).await;
    for said in [
        Vec::new(),
        greeting_and(b""),
        greeting_and(b"G"),
        greeting_and(&GET[..20]),
    ] {
        let mut silent = Vec::new();
        for _ in 0..400 {
            let mut stream = server.connect().await;
            // It may have had to make room already.
            let _ = stream.write_all(&said).await;
            silent.push(stream);
        }
        let mut stream = server.connect().await;
        send(&mut stream, &greeting_and(GET)).await;
        assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 "));
        // The first ones are closed, the last ones are open.
        assert_eq!(read_to_end(&mut silent[0]).await, "");
        let last = silent.last_mut().unwrap();
        let rest = &greeting_and(GET)[said.len()..];
        send(last, rest).await;
        assert!(read_head(last).await.starts_with("HTTP/1.1 200 "));
    }
}

#[tokio::test]
async fn a_network_has_its_share_and_makes_room_itself() {
    let settings = HttpSettings {
        name: "test",
        max_connections: 4,
        max_of_network: 2,
        timeouts: PATIENT,
        settle: SETTLE_TIME,
    };
    let server = Server::start_as(settings, plain).await;
    let mut other = server.connect_from("127.0.0.2:0").await;
    send(&mut other, GET).await;
    read_head(&mut other).await;
    let mut first = server.connect().await;
    begin_request(&mut first, b"").await;
    let mut second = server.connect().await;
    // The longest without a request is another network's.
    let mut third = server.connect().await;
    assert_eq!(read_to_end(&mut second).await, "");
    begin_request(&mut third, b"").await;
    // Now each of the network has a request: a further one waits in vain, although places are free.
    let mut fourth = server.connect().await;
    send(&mut fourth, GET).await;
    assert_eq!(read_to_end(&mut fourth).await, "");
    for stream in [&mut first, &mut third] {
        send(stream, b"body").await;
        assert!(read_head(stream).await.starts_with("HTTP/1.1 200 "));
    }
    send(&mut other, GET).await;
    assert!(read_head(&mut other).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn many_new_connections_at_once_take_the_places_of_idle_ones() {
    // The backlog has room for 128.
    const MANY: usize = SPARE_CONNECTIONS * 3 / 2;
    let server = Server::start(MANY, PATIENT).await;
    let (mut idle, mut new) = (Vec::new(), Vec::new());
    for _ in 0..MANY {
        let mut stream = server.connect().await;
        send(&mut stream, GET).await;
        read_head(&mut stream).await;
        idle.push(stream);
    }
    // All are in the backlog when the first is accepted.
    let address = server.address;
    let connected = std::thread::spawn(move || {
        let connect = |_| std::net::TcpStream::connect(address).unwrap();
        (0..MANY).map(connect).collect::<Vec<_>>()
    });
    for stream in connected.join().unwrap() {
        stream.set_nonblocking(true).unwrap();
        new.push(TcpStream::from_std(stream).unwrap());
    }
    for stream in &mut new {
        send(stream, GET).await;
    }
    for stream in &mut new {
        assert!(read_head(stream).await.starts_with("HTTP/1.1 200 "));
    }
}

/// Connects until a connection is served.
async fn wait_until_served(server: &Server) {
    let until_served = async {
        loop {
            let mut stream = server.connect().await;
            let once = b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
            if stream.write_all(once).await.is_ok()
                && read_to_end(&mut stream).await.starts_with("HTTP/1.1 200 ")
            {
                return;
            }
            sleep(SHORT / 10).await;
        }
    };
    let served = timeout(Duration::from_secs(20), until_served);
    served.await.expect("a slot becomes free");
}

#[tokio::test]
async fn a_response_sent_before_the_body_is_read_arrives() {
    let server = Server::start(10, TIMEOUTS).await;
    let mut stream = server.connect().await;
    send(
        &mut stream,
        b"POST /refuse HTTP/1.1\r\nHost: test\r\nContent-Length: 200000\r\n\r\n",
    )
    .await;
    // More than the server has read when it answers.
    let _ = stream.write_all(&vec![b'x'; 200_000]).await;
    let response = read_to_end(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert!(response.ends_with("refused"), "{response}");
}

#[tokio::test]
async fn a_stop_finishes_requests_and_closes_other_connections() {
    let server = Server::start(10, PATIENT).await;
    let mut idle = server.connect().await;
    send(&mut idle, GET).await;
    read_head(&mut idle).await;
    let mut fresh = server.connect().await;
    let mut newcomer = server.connect().await;
    let mut busy = server.connect().await;
    send(&mut busy, b"GET /slow HTTP/1.1\r\nHost: test\r\n\r\n").await;
    // While it drains, new requests are served with `Connection: close`.
    server.phase.send_replace(Phase::Draining);
    let mut late = server.connect().await;
    send(&mut late, GET).await;
    let response = read_to_end(&mut late).await;
    assert!(response.contains("connection: close"), "{response}");
    server.phase.send_replace(Phase::Closing);
    // A connection that has not been used yet still has a moment for its first request.
    send(&mut newcomer, GET).await;
    let response = read_to_end(&mut newcomer).await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert_eq!(read_to_end(&mut idle).await, "");
    assert_eq!(read_to_end(&mut fresh).await, "");
    assert!(read_to_end(&mut busy).await.starts_with("HTTP/1.1 200 "));
    let ended = timeout(Duration::from_secs(20), server.task).await;
    ended.expect("the server ends").unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn a_connection_that_was_just_accepted_has_the_settle_time_for_its_first_request() {
    let mut connections = Vec::new();
    for settle in [SETTLE_TIME, LONG] {
        let settings = HttpSettings {
            name: "test",
            max_connections: 4,
            max_of_network: 4,
            timeouts: PATIENT,
            settle,
        };
        let server = Server::start_as(settings, plain).await;
        connections.push(server.connect().await);
        // It was accepted before this one.
        let mut other = server.connect().await;
        send(&mut other, GET).await;
        read_head(&mut other).await;
        server.phase.send_replace(Phase::Closing);
    }
    let [mut first, mut second] = <[TcpStream; 2]>::try_from(connections).unwrap();
    assert_eq!(read_to_end(&mut first).await, "");
    // The second server closed its listener a little later.
    sleep(2 * SETTLE_TIME).await;
    send(&mut second, GET).await;
    let response = read_to_end(&mut second).await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
}

/// In place of a handshake: a byte that is not HTTP. Another one is an error.
async fn greeted(mut stream: TcpStream, peer: SocketAddr) -> io::Result<(TcpStream, SocketAddr)> {
    let greeting = stream.read_u8().await?;
    let is_right = greeting == b'!';
    let result = is_right.then_some((stream, peer));
    result.ok_or_else(|| io::Error::other("another greeting"))
}

fn greeting_and(request: &[u8]) -> Vec<u8> {
    [b"!", request].concat()
}

#[tokio::test]
async fn what_precedes_http_may_take_as_long_as_a_head() {
    let server = Server::start_with(1, TIMEOUTS, greeted).await;
    let mut silent = server.connect().await;
    assert_eq!(read_to_end(&mut silent).await, "");
    let mut wrong = server.connect().await;
    send(&mut wrong, b"?").await;
    assert_eq!(read_to_end(&mut wrong).await, "");
    // Neither has the only place any more.
    let mut stream = server.connect().await;
    send(&mut stream, &greeting_and(GET)).await;
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_health_check_is_served_above_the_limit_after_what_precedes_http() {
    let server = Server::start_with(1, PATIENT, greeted).await;
    let mut slow = server.connect().await;
    begin_request(&mut slow, b"!").await;
    let mut check = server.connect().await;
    let ready = greeting_and(b"GET /readyz HTTP/1.1\r\nHost: test\r\n\r\n");
    send(&mut check, &ready).await;
    let response = read_to_end(&mut check).await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    // Others wait for a place, also those that say nothing at first.
    let mut silent = server.connect().await;
    let mut other = server.connect().await;
    send(&mut other, &greeting_and(GET)).await;
    for stream in [&mut silent, &mut other] {
        assert_eq!(read_to_end(stream).await, "");
    }
}

#[tokio::test]
async fn a_stop_waits_for_nothing_that_precedes_http() {
    let server = Server::start_with(10, PATIENT, greeted).await;
    let mut silent = server.connect().await;
    let mut served = server.connect().await;
    send(&mut served, &greeting_and(GET)).await;
    read_head(&mut served).await;
    server.phase.send_replace(Phase::Closing);
    for stream in [&mut silent, &mut served] {
        assert_eq!(read_to_end(stream).await, "");
    }
    let ended = timeout(Duration::from_secs(20), server.task).await;
    ended.expect("the server ends").unwrap();
}

#[tokio::test]
async fn a_response_may_have_nothing_to_send_for_longer_than_the_send_timeout() {
    let impatient = HttpTimeouts {
        head: SHORT,
        idle: SHORT,
        send: SHORT,
    };
    let server = Server::start(1, impatient).await;
    let mut stream = server.connect().await;
    send(&mut stream, b"GET /events HTTP/1.1\r\nHost: test\r\n\r\n").await;
    let response = read_to_end(&mut stream).await;
    assert!(response.ends_with("last\r\n0\r\n\r\n"), "{response}");
}
