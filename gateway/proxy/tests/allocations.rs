//! Limits of allocations for a verified request, from its bytes to the head for its backend: in the gateway's phases,
//! on a connection that has served a request before.

#![cfg(test)]

use std::{
    net::{IpAddr, Ipv4Addr},
    pin::pin,
    task::{Context, Poll, Waker},
    time::Instant,
};

use allocation_counter::AllocationInfo;
use signpost_kit::server::descriptors::Descriptors;
use signpost_protocol::{
    param::Params,
    sign::{SignProfile, sign},
};
use signpost_proxy::measured::{
    AppDirectory, Applications, Attempts, Balancer, ClientConnection, Config, ConnectionInfo,
    Gateway, Http1Exchange, Peer, ReceiveOutcome, Received, Recipient, RequestScanner, State,
    read_head, receive,
};
use tokio::io::{AsyncWrite, DuplexStream};

/// Limit for each request: its head, its form, and the head for the backend, which may grow once.
const MAX_ALLOCATIONS: u64 = 4;

const CONFIG: &str = r#"
prefix = "Acme"
[versions.v1]
backend = "127.0.0.1:1"
[application]
key = "4283fefc63f0cd0e873a0000c6d07ef74283fefc63f0cd0e873a0000c6d07ef7"
[log]
access_sample = 0
"#;

/// A gateway without a network.
struct Phases {
    gateway: Gateway,
    peer: Peer,
    _folder: tempfile::TempDir,
}

impl Phases {
    fn new() -> Self {
        Self::with(CONFIG)
    }

    fn with(toml: &str) -> Self {
        let (config, folder) = config(toml);
        let Applications::Single(key) = &config.applications else {
            unreachable!("the configuration has one application")
        };
        let apps = AppDirectory::single(key.clone());
        let state = State::new(&apps, Descriptors::raise_limit());
        let gateway = Gateway::new(config, apps, state).unwrap();
        Self {
            gateway,
            peer: Peer::new(&ConnectionInfo::plain(IpAddr::V4(Ipv4Addr::LOCALHOST)), &[]),
            _folder: folder,
        }
    }

    /// Signs the pairs with the current time.
    fn signed(&self, pairs: &str) -> String {
        let AppDirectory::Single(app) = &self.gateway.policy.apps else {
            unreachable!("the configuration has one application")
        };
        let pairs = format!(
            "{pairs}&time={}",
            self.gateway.state.clock.now().as_millis()
        );
        let params = Params::parse(pairs.as_bytes(), b"", 99).unwrap();
        let sign = sign(&SignProfile::default(), &app.key, "", "", &params);
        format!("{pairs}&sign={}", sign.to_hex())
    }

    /// The allocations for the second of two such requests.
    fn cost(&self, request: &str) -> AllocationInfo {
        let (here, mut there) = tokio::io::duplex(4096);
        let mut connection = ClientConnection::new(here, self.gateway.policy.bounds.send());
        let mut serve = || {
            let request = request.as_bytes();
            let context = &mut Context::from_waker(Waker::noop());
            let sent = pin!(&mut there).poll_write(context, request);
            assert!(matches!(sent, Poll::Ready(Ok(length)) if length == request.len()));
            allocation_counter::measure(|| self.receive(&mut connection))
        };
        serve();
        serve()
    }

    fn receive(&self, connection: &mut ClientConnection<DuplexStream>) {
        let Gateway { policy, state } = &self.gateway;
        let limits = &policy.bounds.requests;
        let received = connection.receive(Instant::now().into());
        assert_eq!(at_once(received), ReceiveOutcome::Received);
        let end = RequestScanner::default().scan(connection.ahead(), &limits.head);
        let bytes = connection.take(end.unwrap().unwrap());
        let head = read_head(bytes, &limits.head).unwrap().head;
        let recipient = Recipient {
            is_http_1_0: false,
            is_head: false,
        };
        let mut client =
            Http1Exchange::new(connection, &state.drain, recipient, head.body(), false);
        let (gateway, peer) = (&self.gateway, &self.peer);
        let (method, target, protocol) = (head.method(), head.target(), "HTTP/1.1");
        let mut request = Received::new(gateway, method, target, &head, peer, protocol);
        let accepted = at_once(receive(gateway, peer, &mut request, &mut client)).unwrap();
        let out = accepted.backend_head(request.id(), &state.ids);
        assert!(out.len() > 200);
    }
}

fn config(text: &str) -> (Config, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    std::fs::write(&path, text).unwrap();
    (Config::load(&path).unwrap(), folder)
}

/// The result of a future that is ready at once.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    let context = &mut Context::from_waker(Waker::noop());
    match pin!(future).poll(context) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("the future is not ready at once"),
    }
}

const HEADERS: &str = "Host: api.example.com\r\nUser-Agent: app/1.0\r\nAccept: application/json\r\n\
    Acme-X-Version: v1\r\n";

#[test]
fn the_allocations_of_a_verified_get_are_limited() {
    let phases = Phases::new();
    let query = phases.signed("user=someone&page=7");
    let cost = phases.cost(&format!("GET /user?{query} HTTP/1.1\r\n{HEADERS}\r\n"));
    assert!(cost.count_total <= MAX_ALLOCATIONS, "{cost:?}");
}

#[test]
fn the_allocations_of_a_verified_post_are_limited() {
    let phases = Phases::new();
    let form = phases.signed("user=someone&event=page.view&data=a%20b&page=7");
    let cost = phases.cost(&format!(
        "POST /event/send HTTP/1.1\r\n{HEADERS}Content-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\n\r\n{form}",
        form.len()
    ));
    assert!(cost.count_total <= MAX_ALLOCATIONS, "{cost:?}");
}

#[test]
fn the_allocations_of_a_signed_get_on_a_browser_path_are_limited() {
    let phases = Phases::new();
    let query = phases.signed("provider=bitbucket&return_to=https://a.example/");
    let cost = phases.cost(&format!("GET /login?{query} HTTP/1.1\r\n{HEADERS}\r\n"));
    assert!(cost.count_total <= MAX_ALLOCATIONS, "{cost:?}");
}

#[test]
fn counting_an_unsigned_request_allocates_nothing() {
    let phases = Phases::new();
    let limiter = &phases.gateway.policy.rate_limits;
    let now = Instant::now();
    // The first use creates the table.
    let _ = limiter.count_unsigned("192.0.2.9".parse().unwrap(), now);
    for client in ["192.0.2.1", "2001:db8::1"] {
        let client = client.parse().unwrap();
        let cost = allocation_counter::measure(|| {
            for _ in 0..1000 {
                // The last ones are rejected.
                let _ = limiter.count_unsigned(client, now);
            }
        });
        assert_eq!(cost.count_total, 0, "{client}: {cost:?}");
    }
}

#[test]
fn counting_a_request_by_application_address_and_path_allocates_nothing() {
    let limits = "[rate_limits.application]\nper_second = 1000\n[rate_limits.address]\nper_second = 1000\n\
                  [[rate_limits.paths]]\npath = '/user'\nper_second = 1000\n";
    let (without, with) = (Phases::new(), Phases::with(&format!("{CONFIG}{limits}")));
    let cost = |phases: &Phases| {
        let query = phases.signed("user=someone&page=7");
        let request = format!("GET /user?{query} HTTP/1.1\r\n{HEADERS}\r\n");
        phases.cost(&request).count_total
    };
    assert_eq!(cost(&with), cost(&without));
}

#[test]
fn fixed_headers_of_a_response_allocate_nothing() {
    let fixed = "[headers.response]\nset = ['X-A: 1']\nadd = ['X-B: 2']\nremove = ['Server']\n";
    let (config, _folder) = config(&format!("{CONFIG}{fixed}"));
    let headers = config.versions.default().response_headers();
    let cost = allocation_counter::measure(|| {
        assert_eq!(headers.fields().count(), 2);
        assert!(headers.replaces(b"SERVER") && !headers.replaces(b"X-B"));
    });
    assert_eq!(cost.count_total, 0, "{cost:?}");
}

#[test]
fn choosing_among_addresses_allocates_nothing() {
    for balance in [
        "round-robin",
        "least-connections",
        "hash-app",
        "hash-client",
    ] {
        let several = format!(
            "backends = [\"127.0.0.1:1\", \"127.0.0.1:2\", \"127.0.0.1:3\"]\nbalance = \"{balance}\""
        );
        let (config, _folder) = config(&CONFIG.replace("backend = \"127.0.0.1:1\"", &several));
        let balancer = Balancer::new(config.versions.default().own(), None).unwrap();
        at_once(balancer.resolve());
        // The first use creates thread-local data.
        balancer.choose(b"key", &mut Attempts::default()).unwrap();
        let cost = allocation_counter::measure(|| {
            let mut attempts = Attempts::default();
            for _ in 0..3 {
                balancer.choose(b"key", &mut attempts).unwrap();
            }
        });
        assert_eq!(cost.count_total, 0, "{balance}: {cost:?}");
    }
}
