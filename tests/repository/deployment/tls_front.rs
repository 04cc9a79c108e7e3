//! The files in conf/front, for nginx and `HAProxy`: TLS, in front of a gateway and a recording backend.

mod stops;

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    process::{Child, Command},
    sync::Arc,
};

use end_to_end::{
    folder::Folder,
    port::free_address,
    program::Program,
    raw_connection::{RawConnection, request},
    recording_backend::RecordingBackend,
    stack::{Stack, StackBuilder},
    waiting::until,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::{output, read_replaced, start_proxy};

const NAME: &str = "api.example.com";
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const OTHER_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Nginx,
    Haproxy,
}

/// A running proxy. It ends when dropped.
struct Front {
    process: Child,
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    stack: Stack,
    backend: RecordingBackend,
    _folder: Folder,
}

impl Front {
    /// `limits` replaces limits of the file.
    async fn start(kind: Kind, limits: &[(&str, &str)]) -> Self {
        Self::start_with(kind, limits, |stack| stack).await
    }

    async fn start_with(
        kind: Kind,
        limits: &[(&str, &str)],
        change: impl FnOnce(StackBuilder) -> StackBuilder,
    ) -> Self {
        let backend = RecordingBackend::start().await;
        let stack = Stack::builder()
            .gateway("trusted_proxies = [\"127.0.0.1\"]\npublic_url = \"https://api.example.com\"")
            .in_front_of(&backend);
        let stack = change(stack).start().await;
        let (folder, address) = (Folder::create(), free_address());
        create_certificates(folder.path());
        let path = folder.path().display();
        let gateway = |number| stack.addresses().of(Program::Gateway.number(number));
        let mut replacements: Vec<(&str, String)> = vec![
            ("10.0.0.11:8080", gateway(0).to_string()),
            ("10.0.0.12:8080", gateway(stack.gateways() - 1).to_string()),
        ];
        replacements.extend(limits.iter().map(|(from, to)| (*from, (*to).to_owned())));
        replacements.extend(match kind {
            Kind::Nginx => vec![
                ("listen 443", format!("listen {address}")),
                ("/etc/nginx/tls", format!("{path}")),
                ("/run/nginx.pid", format!("{path}/nginx.pid")),
                ("/var/log/nginx", format!("{path}")),
            ],
            Kind::Haproxy => vec![
                ("bind :443", format!("bind {address}")),
                ("/etc/haproxy/tls", format!("{path}")),
            ],
        });
        let file = match kind {
            Kind::Nginx => "conf/front/nginx.conf",
            Kind::Haproxy => "conf/front/haproxy.cfg",
        };
        let text = read_replaced(file, &replacements);
        fs::write(folder.path().join("front.conf"), text).unwrap();
        let front = Self {
            process: start(kind, folder.path()),
            address,
            tls: trust(&folder.path().join("authority.crt")),
            stack,
            backend,
            _folder: folder,
        };
        until("the proxy to listen", || async {
            TcpStream::connect(address).await.ok()
        })
        .await;
        front
    }

    /// Opens a connection that names an IPv6 address of its own in a PROXY header.
    async fn try_open_as(&self, address: &str) -> std::io::Result<RawConnection> {
        let mut stream = TcpStream::connect(self.address).await?;
        let header = format!("PROXY TCP6 {address} 2001:db8::1 1 443\r\n");
        stream.write_all(header.as_bytes()).await?;
        RawConnection::begin_tls(stream, NAME, Arc::clone(&self.tls)).await
    }

    async fn open(&self, source: IpAddr) -> RawConnection {
        RawConnection::open_tls(source, self.address, NAME, Arc::clone(&self.tls)).await
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // TERM: nginx ends its worker processes then. Fails only if it has ended already.
        let id = self.process.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let _ = self.process.wait();
    }
}

fn start(kind: Kind, folder: &Path) -> Child {
    let file = folder.join("front.conf").display().to_string();
    let prefix = format!("{}/", folder.display());
    let (program, arguments) = match kind {
        Kind::Nginx => (
            "nginx",
            vec![
                "-e",
                "stderr",
                "-p",
                &prefix,
                "-c",
                &file,
                "-g",
                "daemon off;",
            ],
        ),
        Kind::Haproxy => ("haproxy", vec!["-db", "-f", &file]),
    };
    start_proxy(program, &arguments, folder)
}

/// A throw-away authority, and what it vouches for in the form of both proxies.
fn create_certificates(folder: &Path) {
    let script = format!(
        "key=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
         openssl req -x509 \"${{key[@]}}\" -keyout authority.key -out authority.crt -days 2 -subj /CN=authority \
             -addext keyUsage=critical,keyCertSign
         openssl req -new \"${{key[@]}}\" -keyout {NAME}.key -out {NAME}.csr -subj /CN={NAME}
         openssl x509 -req -in {NAME}.csr -out {NAME}.crt -days 2 -CA authority.crt -CAkey authority.key \
             -CAcreateserial -extfile <(printf 'subjectAltName=DNS:{NAME}\\nbasicConstraints=critical,CA:FALSE\\n')
         cat {NAME}.crt {NAME}.key >{NAME}.pem"
    );
    let mut bash = Command::new("bash");
    output(bash.args(["-euc", &script]).current_dir(folder));
}

/// Trusts this authority, and offers HTTP/1.1 only.
fn trust(authority: &Path) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(authority).unwrap();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let mut config = config
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// Sends a request of one client until the response has this status, up to this many times.
async fn status_within(
    connection: &mut RawConnection,
    status: u16,
    count: usize,
) -> Option<String> {
    let bytes = request("GET", "/x", &[], b"");
    for _ in 0..count {
        connection.send(&bytes).await;
        let response = connection.response().await?;
        if response.status == status {
            return Some(response.head + &String::from_utf8_lossy(&response.body));
        }
    }
    None
}

async fn passes_signed_requests_and_no_claimed_address(kind: Kind) {
    let as_sent = "[versions.v1]\npaths = 'as_sent'";
    let front = Front::start_with(kind, &[], |stack| stack.gateway(as_sent)).await;
    let client = front.stack.client();
    let call = client
        .post("/a%2Fb//c;d/../e")
        .query("x y", "é&+")
        .param("z", "1");
    let claimed = [
        "Forwarded: for=203.0.113.9",
        "X-Forwarded: 203.0.113.9",
        "X-Forwarded-For: 203.0.113.9",
        "X-Forwarded-Proto: http",
        "X-Forwarded-Host: elsewhere.example",
        "X-Forwarded-Port: 9",
        "X-Real-IP: 203.0.113.9",
        "X-Client-IP: 203.0.113.9",
        "CF-Connecting-IP: 203.0.113.9",
        "X-Original-URL: /admin",
        "X-Request-Id: claimed",
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "b3: claimed",
        "X-B3-TraceId: claimed",
        "baggage: claimed",
        "Remote-User: claimed",
        "X-Gateway-App-Id: 1",
    ];
    let mut connection = front.open(CLIENT).await;
    connection.send(&call.bytes(&claimed)).await;
    let response = connection.response().await.unwrap();
    assert_eq!(response.status, 200, "{}", response.head);
    let arrived = front.backend.request_number(1).await;
    let (target, form) = call.parts();
    assert_eq!(arrived.target, target);
    assert_eq!(arrived.body, form.into_bytes());
    assert_eq!(
        arrived.value("x-forwarded-for"),
        Some("127.0.0.2, 127.0.0.1")
    );
    assert_eq!(arrived.value("x-forwarded-proto"), Some("https"));
    let id = arrived.value("x-request-id").unwrap();
    assert_ne!(id, "claimed");
    assert_eq!(response.header("x-request-id"), Some(id));
    let text = format!("{:?}", arrived.headers);
    for claim in [
        "203.0.113.9",
        "elsewhere",
        "/admin",
        "claimed",
        "0af7651916cd",
    ] {
        assert!(!text.contains(claim), "{claim}: {text}");
    }
    // What the gateway rejects, it rejects here, too.
    let wrong = client
        .post("/x")
        .param("a", "1")
        .sign_given(&"0".repeat(32));
    connection.send(&wrong.bytes(&[])).await;
    let response = connection.response().await.unwrap();
    assert_eq!(response.code().as_deref(), Some("sign_mismatch"));
    assert_eq!(front.backend.requests().len(), 1);
}

async fn limits_requests_of_each_client(kind: Kind, limits: &[(&str, &str)]) {
    let front = Front::start(kind, limits).await;
    let mut flooding = front.open(CLIENT).await;
    let rejected = status_within(&mut flooding, 429, 200).await;
    let rejected = rejected.expect("a flood is rejected").to_lowercase();
    for words in [
        "retry-after: 10",
        "application/problem+json",
        "\"code\":\"rate_limited\"",
    ] {
        assert!(rejected.contains(words), "{words}: {rejected}");
    }
    let mut other = front.open(OTHER_CLIENT).await;
    assert!(status_within(&mut other, 200, 1).await.is_some());
}

#[tokio::test]
async fn nginx_passes_signed_requests_and_no_claimed_address() {
    passes_signed_requests_and_no_claimed_address(Kind::Nginx).await;
}

#[tokio::test]
async fn haproxy_passes_signed_requests_and_no_claimed_address() {
    passes_signed_requests_and_no_claimed_address(Kind::Haproxy).await;
}

#[tokio::test]
async fn nginx_limits_requests_of_each_client() {
    let limits = [("rate=500r/s", "rate=1r/s"), ("burst=5000", "burst=20")];
    limits_requests_of_each_client(Kind::Nginx, &limits).await;
}

#[tokio::test]
async fn haproxy_limits_requests_of_each_client() {
    let limits = [("http_req_rate gt 5000 ", "http_req_rate gt 20 ")];
    limits_requests_of_each_client(Kind::Haproxy, &limits).await;
}

/// Issue 22, row 1: a home line has 256 /64s. Addresses come by PROXY headers: this machine has one address of IPv6.
async fn limits_requests_of_each_ipv6_site(kind: Kind, limits: &[(&str, &str)]) {
    let front = Front::start(kind, limits).await;
    let get = request("GET", "/x", &[], b"");
    let statuses = async |address: String, count: usize| {
        let mut connection = front.try_open_as(&address).await.unwrap();
        let mut statuses = Vec::new();
        for _ in 0..count {
            connection.send(&get).await;
            statuses.push(connection.response().await.unwrap().status);
        }
        statuses
    };
    // All three ways in which an address of the site can be written.
    for site in ["2001:db8:5", "2001:db8:0", "2001:db8"] {
        let mut accepted = 0;
        for network in 1..=17 {
            let address = match site {
                "2001:db8" if network == 1 => "2001:db8::1".to_owned(),
                "2001:db8" => format!("2001:db8:0:{network:x}::1"),
                site => format!("{site}:{network:x}::1"),
            };
            let statuses = statuses(address, 10).await;
            accepted += statuses.iter().filter(|status| **status == 200).count();
        }
        // The second and the third are one site.
        let expected = if site == "2001:db8" { 0..=5 } else { 80..=95 };
        assert!(expected.contains(&accepted), "{site}: {accepted}");
    }
    assert_eq!(statuses("2001:db8:6::1".to_owned(), 1).await, [200]);
}

#[tokio::test]
async fn nginx_limits_requests_of_each_ipv6_site() {
    let limits = [
        ("rate=2000r/s", "rate=1r/m"),
        ("burst=20000", "burst=80"),
        ("rate=500r/s", "rate=1r/m"),
        ("burst=5000", "burst=20"),
        (" ssl http2;", " ssl http2 proxy_protocol;"),
        (
            "server_tokens off;",
            "server_tokens off; set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol;",
        ),
    ];
    limits_requests_of_each_ipv6_site(Kind::Nginx, &limits).await;
}

#[tokio::test]
async fn haproxy_limits_requests_of_each_ipv6_site() {
    let limits = [
        ("http_req_rate gt 20000 ", "http_req_rate gt 80 "),
        // However slowly the test sends them, all its requests count.
        ("http_req_rate(10s)", "http_req_rate(10m)"),
        ("tcp-request connection", "tcp-request session"),
        (" ssl crt", " accept-proxy ssl crt"),
    ];
    limits_requests_of_each_ipv6_site(Kind::Haproxy, &limits).await;
}
