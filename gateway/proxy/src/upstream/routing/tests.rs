//! Choice of addresses: attempts, ejections and health checks.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{status::AddressHealth, *};
use crate::config::tests::versions;

async fn balancer(version: &str) -> Arc<Balancer> {
    let versions = versions(&format!("[versions.v1]\n{version}\n"));
    let balancer = Balancer::new(versions.default().own(), None).unwrap();
    balancer.resolve().await;
    balancer
}

const FIVE: &str =
    "backends = ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3', '127.0.0.1:4', '127.0.0.1:5']";

#[test]
fn a_fixed_address_has_no_balancer() {
    let versions = versions("[versions.v1]\nbackend = '127.0.0.1:1'\n");
    assert!(Balancer::new(versions.default().own(), None).is_none());
}

#[tokio::test]
async fn a_request_is_sent_to_three_different_addresses_at_most() {
    for balance in [
        "round-robin",
        "least-connections",
        "hash-app",
        "hash-client",
    ] {
        let balancer = balancer(&format!("{FIVE}\nbalance = '{balance}'")).await;
        let mut attempts = Attempts::default();
        let mut tried: Vec<_> =
            std::iter::from_fn(|| Some(balancer.choose(b"key", &mut attempts)?.address)).collect();
        assert!(!balancer.has_another(&attempts));
        tried.sort_unstable();
        tried.dedup();
        assert_eq!(tried.len(), 3, "{balance}");
    }
}

#[tokio::test]
async fn requests_in_flight_are_counted_until_they_end() {
    let balancer = balancer(FIVE).await;
    let in_flight = || -> usize {
        let addresses = balancer.addresses.load();
        addresses.iter().map(|address| address.in_flight()).sum()
    };
    let (mut one, mut other) = (Attempts::default(), Attempts::default());
    balancer.choose(b"", &mut one).unwrap();
    balancer.choose(b"", &mut other).unwrap();
    assert_eq!(in_flight(), 2);
    // After the next attempt it is no longer in flight to the last address.
    balancer.choose(b"", &mut other).unwrap();
    assert_eq!(in_flight(), 2);
    drop((one, other));
    assert_eq!(in_flight(), 0);
}

#[tokio::test]
async fn an_address_is_ejected_until_a_connection_is_established() {
    let balancer = balancer("backends = ['127.0.0.1:1', '127.0.0.1:2']").await;
    let mut failing = Attempts::default();
    let failed = balancer.choose(b"", &mut failing).unwrap();
    balancer.fail(&failing, "refused");
    for _ in 0..10 {
        let chosen = balancer.choose(b"", &mut Attempts::default()).unwrap();
        assert_ne!(chosen, failed);
    }
    assert!(
        balancer
            .choose(b"", &mut failing)
            .is_some_and(|other| other != failed)
    );
    balancer.fail(&failing, "refused");
    assert_eq!(balancer.choose(b"", &mut Attempts::default()), None);
    balancer.restore(&failing);
    let chosen = balancer.choose(b"", &mut Attempts::default()).unwrap();
    assert_ne!(chosen, failed);
}

#[tokio::test]
async fn the_only_address_is_never_ejected() {
    let balancer = balancer("backend = '127.0.0.1:1'\nhealth = {}").await;
    let mut attempts = Attempts::default();
    balancer.choose(b"", &mut attempts).unwrap();
    balancer.fail(&attempts, "refused");
    assert!(balancer.choose(b"", &mut Attempts::default()).is_some());
    let health = || balancer.status()[0].health;
    assert_eq!(health(), AddressHealth::Unreachable);
    balancer.restore(&attempts);
    assert_eq!(health(), AddressHealth::Unchecked);
}

#[tokio::test]
async fn drained_addresses_get_no_new_requests_unless_no_other_is_left() {
    let [one, two] = ["127.0.0.1:1", "127.0.0.1:2"].map(|text| text.parse().unwrap());
    let versions = versions("[versions.v1]\nbackends = ['127.0.0.1:1', '127.0.0.1:2']\n");
    let balancer = Balancer::new(versions.default().own(), None).unwrap();
    let chosen = || {
        let chosen = (0..4).filter_map(|_| balancer.choose(b"", &mut Attempts::default()));
        let mut chosen: Vec<_> = chosen.map(|endpoint| endpoint.address).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    };
    let drain = |all: &[(SocketAddr, bool)]| balancer.drain(all.iter().copied().collect());
    drain(&[(one, false)]);
    // An address that is resolved later is drained before its first request.
    balancer.resolve().await;
    let mut in_flight = Attempts::default();
    balancer.choose(b"", &mut in_flight).unwrap();
    assert_eq!(chosen(), [two]);
    assert_eq!(
        balancer
            .status()
            .iter()
            .map(|one| one.health)
            .collect::<Vec<_>>(),
        [AddressHealth::Drained, AddressHealth::Unchecked]
    );
    assert!(!balancer.has_another(&in_flight), "no retry on it, either");
    drain(&[(one, false), (two, false)]);
    assert_eq!(chosen(), [one, two]);
    drain(&[(one, true), (two, false)]);
    assert_eq!(chosen(), [two]);
    drain(&[(one, true), (two, true)]);
    assert!(chosen().is_empty() && !balancer.is_available());
    // A reload changes nothing of it.
    let reloaded = Balancer::new(versions.default().own(), Some(&balancer)).unwrap();
    reloaded.resolve().await;
    assert!(!reloaded.is_available());
    drain(&[]);
    assert_eq!(chosen(), [one, two]);
}

#[tokio::test]
async fn a_passed_check_ends_an_ejection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let is_ok = Arc::new(AtomicBool::new(false));
    let _server = tokio::spawn(responses(listener, Arc::clone(&is_ok)));
    let balancer = balancer(&format!(
        "backends = ['{address}', '127.0.0.1:1']\n\
         health = {{ path = '/up?x=1', timeout_seconds = 60, unhealthy_after = 9 }}"
    ))
    .await;
    let is_ejected = || {
        let addresses = balancer.addresses.load();
        let found = addresses.iter().find(|found| found.socket() == address);
        // At time 0, the ejection has not expired by itself.
        found.is_some_and(|found| found.state.ejection.is_active(|| 0))
    };
    let mut attempts = Attempts::default();
    let endpoint = Endpoint::plain(address);
    while balancer.choose(b"", &mut attempts).as_ref() != Some(&endpoint) {}
    balancer.fail(&attempts, "refused");
    assert!(is_ejected());
    balancer.check().await;
    assert!(is_ejected(), "after a failed check");
    is_ok.store(true, Ordering::Relaxed);
    balancer.check().await;
    assert!(!is_ejected());
}

#[tokio::test]
async fn names_are_resolved_if_no_address_is_available() {
    let is_requested = async |balancer: &Balancer| {
        let requested = balancer.resolve_requested.notified();
        tokio::time::timeout(Duration::ZERO, requested)
            .await
            .is_ok()
    };
    let all = balancer("backends = ['127.0.0.1:1', '127.0.0.1:2']").await;
    let mut attempts = Attempts::default();
    all.choose(b"", &mut attempts).unwrap();
    all.fail(&attempts, "refused");
    assert!(!is_requested(&all).await, "another address is available");
    all.choose(b"", &mut attempts).unwrap();
    all.fail(&attempts, "refused");
    assert!(is_requested(&all).await);
    assert_eq!(all.choose(b"", &mut Attempts::default()), None);
    assert!(is_requested(&all).await);
    // The only address is never ejected, but the name may have another one by now.
    let one = balancer("backend = '127.0.0.1:1'\nhealth = {}").await;
    let mut attempts = Attempts::default();
    one.choose(b"", &mut attempts).unwrap();
    one.fail(&attempts, "refused");
    assert!(is_requested(&one).await);
}

/// Answers each request with 200 or 500. A request that does not look like a check gets 500.
async fn responses(listener: TcpListener, is_ok: Arc<AtomicBool>) -> std::io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let is_check = head.starts_with("get /up?x=1 http/1.1\r\n") && head.contains("\r\nhost: ");
        let is_ok = is_ok.load(Ordering::Relaxed) && is_check && !head.contains("x-gateway");
        let status = if is_ok { "200 OK" } else { "500 No" };
        let response = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
        stream.write_all(response.as_bytes()).await?;
    }
}

#[tokio::test]
async fn checks_make_an_address_unhealthy_and_healthy_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let is_ok = Arc::new(AtomicBool::new(true));
    let server = tokio::spawn(responses(listener, Arc::clone(&is_ok)));
    let balancer = balancer(&format!(
        "backend = '{address}'\n\
         health = {{ path = '/up?x=1', timeout_seconds = 60, unhealthy_after = 2 }}"
    ))
    .await;
    let is_healthy = || balancer.choose(b"", &mut Attempts::default()).is_some();
    for (check_passes, is_healthy_after) in [
        (true, true),
        (false, true),
        (true, true),
        (false, true),
        (false, false),
        (true, true),
    ] {
        is_ok.store(check_passes, Ordering::Relaxed);
        balancer.check().await;
        assert_eq!(is_healthy(), is_healthy_after);
    }
    // No server listens any more.
    server.abort();
    assert!(server.await.is_err());
    for _ in 0..2 {
        balancer.check().await;
    }
    assert!(!is_healthy());
}

#[tokio::test]
async fn a_version_without_a_known_address_serves_no_request() {
    let balancer = balancer("backend = 'no-such-host.invalid:1'").await;
    assert_eq!(balancer.choose(b"", &mut Attempts::default()), None);
}
