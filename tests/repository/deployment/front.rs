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

use super::{installation::start_front, read_replaced};

/// Limits of one client address, in place of those in conf/compose.
const MAX_CONNECTIONS: usize = 20;
const MAX_REQUESTS: usize = 50;

/// The same of an IPv6 /48.
const MAX_SITE_CONNECTIONS: usize = 4 * MAX_CONNECTIONS;
const MAX_SITE_REQUESTS: usize = 4 * MAX_REQUESTS;

/// Another client address.
const OTHER_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// A running front. It ends when dropped.
struct Front {
    process: Child,
    address: SocketAddr,
    backend: RecordingBackend,
    _folder: Folder,
}

impl Front {
    async fn start() -> Self {
        Self::start_with(|text| text).await
    }

    /// Clients name an address of their own in a PROXY header: this machine has one address of IPv6.
    async fn start_with_proxy_headers() -> Self {
        Self::start_with(|text| {
            // Only then is the header read before the rules apply.
            let text = text.replace("tcp-request connection", "tcp-request session");
            let bind = text.lines().find(|line| line.contains(" bind ")).unwrap();
            text.replacen(bind, &format!("{bind} accept-proxy"), 1)
        })
        .await
    }

    async fn start_with(change: impl FnOnce(String) -> String) -> Self {
        let (folder, backend) = (Folder::create(), RecordingBackend::start().await);
        let (address, health) = (free_address(), free_address());
        let gateway = backend.address().to_string();
        let replacements = [
            ("bind :8080", format!("bind {address}")),
            ("bind 127.0.0.1:8090", format!("bind {health}")),
            ("gateway-a:8080", gateway.clone()),
            ("gateway-b:8080", gateway),
            (
                "conn_cur gt 500 ",
                format!("conn_cur gt {MAX_CONNECTIONS} "),
            ),
            // However slowly a test sends them, all its requests count.
            ("http_req_rate(10s)", "http_req_rate(10m)".to_owned()),
            ("req_rate gt 5000 ", format!("req_rate gt {MAX_REQUESTS} ")),
            (
                "conn_cur gt 2000 ",
                format!("conn_cur gt {MAX_SITE_CONNECTIONS} "),
            ),
            (
                "req_rate gt 20000 ",
                format!("req_rate gt {MAX_SITE_REQUESTS} "),
            ),
        ];
        let text = read_replaced("conf/compose/haproxy.cfg", &replacements);
        fs::write(folder.path().join("haproxy.cfg"), change(text)).unwrap();
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

    /// Sends a request, which must be served, and returns it as the backend received it.
    async fn pass(&self, lines: &[&str]) -> RecordedRequest {
        let before = self.backend.requests().len();
        let mut connection = self.open().await;
        connection.send(&request("GET", "/x", lines, b"")).await;
        assert_eq!(connection.response().await.unwrap().status, 200);
        self.backend.request_number(before + 1).await
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // Fails only if it has already exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn address_trace_and_target_headers_of_clients_are_removed() {
    let front = Front::start().await;
    let forged = [
        "Forwarded: for=203.0.113.9",
        "X-Forwarded: 203.0.113.9",
        "X-Forwarded-For: 203.0.113.9",
        "x-forwarded-for: 203.0.113.10",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: other.example",
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
        "b3: 0",
        "X-B3-TraceId: 0af7651916cd43dd8448eb211c80319c",
        "Baggage: a=b",
        "sw8-correlation: a",
        "X-Cloud-Trace-Context: a",
        "Acme-X-Language: ja",
    ];
    let arrived = front.pass(&forged).await;
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
async fn the_request_rate_is_limited_for_each_client_address() {
    let front = Front::start().await;
    let bytes = request("GET", "/x", &[], b"");
    let mut flooding = front.open().await;
    let mut rejected = None;
    for _ in 0..2 * MAX_REQUESTS {
        flooding.send(&bytes).await;
        let response = flooding.response().await.unwrap();
        if response.status == 429 {
            rejected = Some(response);
            break;
        }
    }
    let rejected = rejected.expect("the flood is rejected");
    assert_eq!(rejected.code().as_deref(), Some("rate_limited"));
    assert_eq!(rejected.header("retry-after"), Some("10"));
    assert_eq!(
        rejected.header("content-type"),
        Some("application/problem+json")
    );
    let mut other = RawConnection::open_from(OTHER_CLIENT, front.address).await;
    other.send(&bytes).await;
    assert_eq!(other.response().await.unwrap().status, 200);
}

/// Opens a connection on which a request was answered; the front may reset it at any time before.
async fn served(address: SocketAddr, bytes: &[u8]) -> io::Result<TcpStream> {
    let mut connection = TcpStream::connect(address).await?;
    connection.write_all(bytes).await?;
    let mut start = [0; 12];
    connection.read_exact(&mut start).await?;
    assert_eq!(&start, b"HTTP/1.1 200");
    Ok(connection)
}

#[tokio::test]
async fn connections_are_limited_for_each_client_address() {
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
    let mut other = RawConnection::open_from(OTHER_CLIENT, front.address).await;
    other.send(&bytes).await;
    assert_eq!(other.response().await.unwrap().status, 200);
}

/// A PROXY header of a client in one of the networks of an IPv6 /48.
fn header(site: u16, network: usize) -> String {
    format!("PROXY TCP6 2001:db8:{site:x}:{network:x}::1 2001:db8::1 1 443\r\n")
}

/// Issue 22, row 1: a home line has 256 /64s.
#[tokio::test]
async fn connections_are_limited_for_each_ipv6_site() {
    let front = Front::start_with_proxy_headers().await;
    let get = request("GET", "/x", &[], b"");
    let from = |site, network| [header(site, network).as_bytes(), &get].concat();
    let mut open = Vec::new();
    for network in 0..17 {
        for _ in 0..MAX_CONNECTIONS / 2 {
            open.extend(served(front.address, &from(1, network)).await.ok());
        }
    }
    assert_eq!(open.len(), MAX_SITE_CONNECTIONS);
    served(front.address, &from(2, 0)).await.unwrap();
    // What was refused holds nothing.
    drop(open);
    until("the site to be served again", || async {
        served(front.address, &from(1, 40)).await.ok()
    })
    .await;
}

#[tokio::test]
async fn the_request_rate_is_limited_for_each_ipv6_site() {
    let front = Front::start_with_proxy_headers().await;
    let get = request("GET", "/x", &[], b"");
    let mut accepted = 0;
    for network in 0..17 {
        let mut connection = front.open().await;
        connection.send(header(1, network).as_bytes()).await;
        for _ in 0..MAX_REQUESTS / 2 {
            connection.send(&get).await;
            accepted += usize::from(connection.response().await.unwrap().status == 200);
        }
    }
    assert_eq!(accepted, MAX_SITE_REQUESTS);
    served(front.address, &[header(2, 0).as_bytes(), &get].concat())
        .await
        .unwrap();
}
