//! Unsigned requests are limited for each client address; signed requests are not. CONTRACT 3, 7 and 8.

use std::net::{IpAddr, Ipv4Addr};

use end_to_end::{
    program::Program,
    raw_connection::{RawConnection, RawResponse, request},
    recording_backend::RecordingBackend,
    stack::{Stack, StackBuilder},
};

/// A rate so low that the duration of a test does not matter.
const LOW_LIMIT: &str = "[limits.unsigned]\nper_second = 1\nburst = 5\n";

/// More requests than any limit here admits meanwhile.
const FLOOD: usize = 300;

/// Another client address on this machine.
const OTHER_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Sends the same request until it is rejected, and returns the rejection.
async fn flood(connection: &mut RawConnection, bytes: &[u8]) -> RawResponse {
    for _ in 0..FLOOD {
        connection.send(bytes).await;
        let response = connection
            .response()
            .await
            .expect("the connection stays open");
        if response.status == 429 {
            return response;
        }
    }
    panic!("{FLOOD} requests were served");
}

/// Sends one request and returns the status.
async fn status(connection: &mut RawConnection, bytes: &[u8]) -> u16 {
    connection.send(bytes).await;
    connection.response().await.unwrap().status
}

#[tokio::test]
async fn a_flood_from_one_address_affects_neither_other_addresses_nor_signed_requests() {
    let stack = Stack::builder().gateway(LOW_LIMIT).start().await;
    let begin = |lines: &[&str]| request("GET", "/login", lines, b"");
    let mut flooding = stack.raw().await;
    let rejected = flood(&mut flooding, &begin(&["Acme-X-Language: ja"])).await;
    assert_eq!(rejected.code().as_deref(), Some("rate_limited"));
    assert_eq!(rejected.header("content-language"), Some("ja"));
    let seconds: u64 = rejected.header("retry-after").unwrap().parse().unwrap();
    assert_eq!(seconds, 1);
    let page = ["Accept: text/html", "Accept-Language: ko"];
    let page = flood(&mut flooding, &begin(&page)).await;
    assert_eq!(page.header("content-language"), Some("ko"));
    assert!(
        page.header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    // The provider's callback counts towards the same limit.
    let callback = request("GET", "/login?state=v1.x&code=y", &[], b"");
    flood(&mut flooding, &callback).await;

    let mut other = RawConnection::open_from(OTHER_CLIENT, stack.addresses().gateway).await;
    assert_eq!(status(&mut other, &begin(&[])).await, 302);
    let client = stack.client();
    for _ in 0..20 {
        client.post("/login").signed().send().await.ok();
        let begun = client.get("/login").signed().send().await;
        assert_eq!(begun.status, 302, "{}", begun.text());
        client
            .get("/user")
            .send()
            .await
            .problem(401, "authorization_missing");
    }
    flood(&mut flooding, &begin(&[])).await;
}

fn behind_a_proxy(backend: &RecordingBackend) -> StackBuilder {
    let trusted = format!("trusted_proxies = [\"127.0.0.1\"]\n{LOW_LIMIT}");
    Stack::builder().in_front_of(backend).gateway(&trusted)
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_client_has_its_own_limit() {
    let backend = RecordingBackend::start().await;
    let stack = behind_a_proxy(&backend).start().await;
    let request_from = |client: &str| {
        let line = format!("X-Forwarded-For: {client}");
        request("GET", "/login?state=v1.x&code=y", &[&line], b"")
    };
    let mut proxy = stack.raw().await;
    flood(&mut proxy, &request_from("198.51.100.1")).await;
    // An address that the client puts before the proxy's entry does not count.
    flood(&mut proxy, &request_from("203.0.113.9, 198.51.100.1")).await;
    assert_eq!(status(&mut proxy, &request_from("198.51.100.2")).await, 200);
    flood(&mut proxy, &request_from("2001:db8:0:1::1")).await;
    // A /64 counts as one client, and does not exhaust the limit of its /48.
    flood(&mut proxy, &request_from("2001:db8:0:1::2")).await;
    assert_eq!(
        status(&mut proxy, &request_from("2001:db8:0:2::1")).await,
        200
    );
    let mut other = RawConnection::open_from(OTHER_CLIENT, stack.addresses().gateway).await;
    flood(&mut other, &request_from("198.51.100.3")).await;
    assert_eq!(status(&mut proxy, &request_from("198.51.100.3")).await, 200);
}

#[tokio::test]
async fn the_limit_is_checked_after_the_method_and_before_everything_else() {
    let (backend, get) = (RecordingBackend::start().await, "/login?state=v1.x&code=y");
    let stack = Stack::builder().in_front_of(&backend).gateway(LOW_LIMIT);
    let stack = stack.start().await;
    let mut connection = stack.raw().await;
    flood(&mut connection, &request("GET", get, &[], b"")).await;
    assert_eq!(
        status(&mut connection, &request("PUT", get, &[], b"")).await,
        405
    );
    let twice = ["Acme-X-Version: v1", "Acme-X-Version: v1"];
    flood(&mut connection, &request("GET", get, &twice, b"")).await;
}

#[tokio::test]
async fn a_limit_applies_by_default_and_can_be_disabled() {
    const MANY: usize = 900;
    let backend = RecordingBackend::start().await;
    // The gateway answers it by itself, far faster than the limit allows.
    let bytes = request("GET", "/favicon.ico", &[], b"").repeat(MANY);
    let by_default = Stack::builder()
        .in_front_of(&backend)
        .without(Program::Gateway, "limits");
    let disabled = Stack::builder()
        .in_front_of(&backend)
        .gateway("[limits.unsigned]\nper_second = 0");
    for (stack, is_limited) in [(by_default, true), (disabled, false)] {
        let stack = stack.start().await;
        let mut connection = stack.raw().await;
        connection.send(&bytes).await;
        let mut statuses = Vec::new();
        for _ in 0..MANY {
            statuses.push(connection.response().await.unwrap().status);
        }
        assert_eq!(statuses.contains(&429), is_limited);
        // The burst suffices for an office behind one address.
        assert!(statuses[..500].iter().all(|status| *status == 204));
    }
}
