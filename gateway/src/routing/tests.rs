//! A request's way from address to address, and what keeps addresses from it.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;
use crate::config::tests::versions;

async fn balancer(version: &str) -> Arc<Balancer> {
    let versions = versions(&format!("[versions.v1]\n{version}\n"));
    let balancer = Balancer::new(versions.default(), None).unwrap();
    balancer.look_up().await;
    balancer
}

const FIVE: &str =
    "backends = ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3', '127.0.0.1:4', '127.0.0.1:5']";

#[test]
fn there_is_nothing_to_choose_for_one_address() {
    let versions = versions("[versions.v1]\nbackend = '127.0.0.1:1'\n");
    assert!(Balancer::new(versions.default(), None).is_none());
}

#[tokio::test]
async fn a_request_goes_to_no_address_twice_and_to_three_at_most() {
    for balance in [
        "round-robin",
        "least-connections",
        "hash-app",
        "hash-client",
    ] {
        let balancer = balancer(&format!("{FIVE}\nbalance = '{balance}'")).await;
        let mut attempts = Attempts::default();
        let mut tried: Vec<_> =
            std::iter::from_fn(|| balancer.choose(b"key", &mut attempts)).collect();
        assert!(!balancer.has_another(&attempts));
        tried.sort_unstable();
        tried.dedup();
        assert_eq!(tried.len(), 3, "{balance}");
    }
}

#[tokio::test]
async fn what_is_under_way_ends_with_its_request() {
    let balancer = balancer(FIVE).await;
    let under_way = || -> usize {
        let addresses = balancer.addresses.load();
        addresses.iter().map(|address| address.under_way()).sum()
    };
    let (mut one, mut other) = (Attempts::default(), Attempts::default());
    balancer.choose(b"", &mut one).unwrap();
    balancer.choose(b"", &mut other).unwrap();
    assert_eq!(under_way(), 2);
    // At the next address it is no longer under way to the last.
    balancer.choose(b"", &mut other).unwrap();
    assert_eq!(under_way(), 2);
    drop((one, other));
    assert_eq!(under_way(), 0);
}

#[tokio::test]
async fn an_address_without_a_connection_is_out_until_it_has_one() {
    let balancer = balancer("backends = ['127.0.0.1:1', '127.0.0.1:2']").await;
    let mut failing = Attempts::default();
    let away = balancer.choose(b"", &mut failing).unwrap();
    balancer.take_out(&failing, "refused");
    for _ in 0..10 {
        let chosen = balancer.choose(b"", &mut Attempts::default()).unwrap();
        assert_ne!(chosen, away);
    }
    assert!(
        balancer
            .choose(b"", &mut failing)
            .is_some_and(|other| other != away)
    );
    balancer.take_out(&failing, "refused");
    assert_eq!(balancer.choose(b"", &mut Attempts::default()), None);
    balancer.mark_healthy(&failing);
    let chosen = balancer.choose(b"", &mut Attempts::default()).unwrap();
    assert_ne!(chosen, away);
}

#[tokio::test]
async fn the_only_address_is_never_out() {
    let balancer = balancer("backend = '127.0.0.1:1'\nhealth = {}").await;
    let mut attempts = Attempts::default();
    balancer.choose(b"", &mut attempts).unwrap();
    balancer.take_out(&attempts, "refused");
    assert!(balancer.choose(b"", &mut Attempts::default()).is_some());
}

#[tokio::test]
async fn a_passed_check_ends_an_outage() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let is_well = Arc::new(AtomicBool::new(false));
    let _server = tokio::spawn(answers(listener, Arc::clone(&is_well)));
    let balancer = balancer(&format!(
        "backends = ['{address}', '127.0.0.1:1']\nhealth = {{ path = '/up?x=1', unhealthy_after = 9 }}"
    ))
    .await;
    let is_out = || {
        let addresses = balancer.addresses.load();
        let found = addresses.iter().find(|found| found.socket() == address);
        // Asked at a time at which it has not ended by itself.
        found.is_some_and(|found| found.state().outage.holds(|| 0))
    };
    let mut attempts = Attempts::default();
    while balancer.choose(b"", &mut attempts) != Some(address) {}
    balancer.take_out(&attempts, "refused");
    assert!(is_out());
    balancer.check().await;
    assert!(is_out(), "by a check that failed");
    is_well.store(true, Ordering::Relaxed);
    balancer.check().await;
    assert!(!is_out());
}

#[tokio::test]
async fn names_are_looked_up_when_no_address_serves() {
    let is_wanted = async |balancer: &Balancer| {
        let wanted = balancer.wants_look_up.notified();
        tokio::time::timeout(Duration::ZERO, wanted).await.is_ok()
    };
    let all = balancer("backends = ['127.0.0.1:1', '127.0.0.1:2']").await;
    let mut attempts = Attempts::default();
    all.choose(b"", &mut attempts).unwrap();
    all.take_out(&attempts, "refused");
    assert!(!is_wanted(&all).await, "there is another");
    all.choose(b"", &mut attempts).unwrap();
    all.take_out(&attempts, "refused");
    assert!(is_wanted(&all).await);
    assert_eq!(all.choose(b"", &mut Attempts::default()), None);
    assert!(is_wanted(&all).await);
    // The only address is never out, but it may be another one by now.
    let one = balancer("backend = '127.0.0.1:1'\nhealth = {}").await;
    let mut attempts = Attempts::default();
    one.choose(b"", &mut attempts).unwrap();
    one.take_out(&attempts, "refused");
    assert!(is_wanted(&one).await);
}

/// Answers each request 200 or 500, and checks what a check looks like.
async fn answers(listener: TcpListener, is_well: Arc<AtomicBool>) -> std::io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let is_check = head.starts_with("get /up?x=1 http/1.1\r\n") && head.contains("\r\nhost: ");
        let is_well = is_well.load(Ordering::Relaxed) && is_check && !head.contains("x-gateway");
        let status = if is_well { "200 OK" } else { "500 No" };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
        stream.write_all(answer.as_bytes()).await?;
    }
}

#[tokio::test]
async fn checks_take_an_address_out_and_bring_it_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let is_well = Arc::new(AtomicBool::new(true));
    let server = tokio::spawn(answers(listener, Arc::clone(&is_well)));
    let balancer = balancer(&format!(
        "backend = '{address}'\nhealth = {{ path = '/up?x=1', unhealthy_after = 2, healthy_after = 2 }}"
    ))
    .await;
    let is_in = || balancer.choose(b"", &mut Attempts::default()).is_some();
    for (answers_well, is_in_after) in [
        (true, true),
        (false, true),
        (true, true),
        (false, true),
        (false, false),
        (true, false),
        (false, false),
        (true, false),
        (true, true),
    ] {
        is_well.store(answers_well, Ordering::Relaxed);
        balancer.check().await;
        assert_eq!(is_in(), is_in_after);
    }
    // Nobody is there any more.
    server.abort();
    assert!(server.await.is_err());
    for _ in 0..2 {
        balancer.check().await;
    }
    assert!(!is_in());
}

#[tokio::test]
async fn a_version_without_a_known_address_serves_nobody() {
    let balancer = balancer("backend = 'no-such-host.invalid:1'").await;
    assert_eq!(balancer.choose(b"", &mut Attempts::default()), None);
}
