//! The front of docker-compose.yml, `haproxy` with conf/compose/haproxy.cfg, in front of a recording backend.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::Child,
};

use end_to_end::{
    folder::Folder,
    port::free_address,
    raw_connection::{RawConnection, request},
    recording_backend::{RecordedRequest, RecordingBackend},
    waiting::until,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{installation::start_front, read};

/// What one source may do here, in place of what conf/compose says.
const MAX_CONNECTIONS: usize = 20;
const MAX_REQUESTS: usize = 50;

/// Another source.
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// A running front. It ends when dropped.
struct Front {
    process: Child,
    address: SocketAddr,
    backend: RecordingBackend,
    _folder: Folder,
}

impl Front {
    async fn start() -> Self {
        let (folder, backend) = (Folder::create(), RecordingBackend::start().await);
        let (address, health) = (free_address(), free_address());
        let gateway = backend.address().to_string();
        let mut text = read("conf/compose/haproxy.cfg");
        for (from, to) in [
            ("bind :8080", format!("bind {address}")),
            ("bind 127.0.0.1:8090", format!("bind {health}")),
            ("gateway-a:8080", gateway.clone()),
            ("gateway-b:8080", gateway),
            (
                "conn_cur gt 500 ",
                format!("conn_cur gt {MAX_CONNECTIONS} "),
            ),
            ("req_rate gt 5000 ", format!("req_rate gt {MAX_REQUESTS} ")),
        ] {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, &to);
        }
        fs::write(folder.path().join("haproxy.cfg"), text).unwrap();
        let front = Self {
            process: start_front(folder.path()),
            address,
            backend,
            _folder: folder,
        };
        until("the front to listen", || async {
            TcpStream::connect(address).await.ok()
        })
        .await;
        front
    }

    async fn open(&self) -> RawConnection {
        RawConnection::open(self.address).await
    }

    /// What arrives behind it of a request that is served.
    async fn pass(&self, lines: &[&str]) -> RecordedRequest {
        let before = self.backend.requests().len();
        let mut connection = self.open().await;
        connection.send(&request("GET", "/x", lines, b"")).await;
        assert_eq!(connection.answer().await.unwrap().status, 200);
        self.backend.request_number(before + 1).await
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // Fails only when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn what_clients_say_of_addresses_traces_and_targets_ends_at_the_front() {
    let front = Front::start().await;
    let made_up = [
        "Forwarded: for=203.0.113.9",
        "X-Forwarded: 203.0.113.9",
        "X-Forwarded-For: 203.0.113.9",
        "x-forwarded-for: 203.0.113.10",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: elsewhere.example",
        "X-FORWARDED-PORT: 9",
        "X-Forwarded-Anything: 9",
        "X-Real-IP: 203.0.113.9",
        "X-Client-IP: 203.0.113.9",
        "Client-IP: 203.0.113.9",
        "True-Client-IP: 203.0.113.9",
        "X-Cluster-Client-IP: 203.0.113.9",
        "CF-Connecting-IP: 203.0.113.9",
        "Fastly-Client-IP: 203.0.113.9",
        "X-Original-URL: /admin",
        "X-Original-Forwarded-For: 203.0.113.9",
        "X-Rewrite-URL: /admin",
        "X-Envoy-External-Address: 203.0.113.9",
        "X-Request-Id: made-up",
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate: a=b",
        "Acme-X-Language: ja",
    ];
    let arrived = front.pass(&made_up).await;
    let mut names: Vec<_> = arrived.headers.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    let expected = [
        "acme-x-language",
        "host",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
    ];
    assert_eq!(names, expected);
    assert_eq!(arrived.value("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(arrived.value("x-forwarded-proto"), Some("http"));
    assert_eq!(arrived.value("x-forwarded-host"), Some("gateway.example"));
}

#[tokio::test]
async fn one_source_has_so_many_requests_and_another_is_served_meanwhile() {
    let front = Front::start().await;
    let bytes = request("GET", "/x", &[], b"");
    let mut flooding = front.open().await;
    let mut refused = None;
    for _ in 0..2 * MAX_REQUESTS {
        flooding.send(&bytes).await;
        let answer = flooding.answer().await.unwrap();
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("a flood ends");
    assert_eq!(refused.code().as_deref(), Some("rate_limited"));
    assert_eq!(refused.header("retry-after"), Some("10"));
    assert_eq!(
        refused.header("content-type"),
        Some("application/problem+json")
    );
    let mut elsewhere = RawConnection::open_from(ELSEWHERE, front.address).await;
    elsewhere.send(&bytes).await;
    assert_eq!(elsewhere.answer().await.unwrap().status, 200);
}

/// A connection on which a request was answered; it may be reset at any time before.
async fn served(address: SocketAddr, bytes: &[u8]) -> io::Result<TcpStream> {
    let mut connection = TcpStream::connect(address).await?;
    connection.write_all(bytes).await?;
    let mut start = [0; 12];
    connection.read_exact(&mut start).await?;
    assert_eq!(&start, b"HTTP/1.1 200");
    Ok(connection)
}

#[tokio::test]
async fn one_source_has_so_many_connections_and_another_is_served_meanwhile() {
    let front = Front::start().await;
    let bytes = request("GET", "/x", &[], b"");
    let mut open = Vec::new();
    let mut refused = 0;
    for _ in 0..2 * MAX_CONNECTIONS {
        match served(front.address, &bytes).await {
            Ok(connection) => open.push(connection),
            Err(_) => refused += 1,
        }
    }
    assert!(open.len() <= MAX_CONNECTIONS, "{} are open", open.len());
    assert!(refused >= MAX_CONNECTIONS, "{refused} were refused");
    let mut elsewhere = RawConnection::open_from(ELSEWHERE, front.address).await;
    elsewhere.send(&bytes).await;
    assert_eq!(elsewhere.answer().await.unwrap().status, 200);
}
