//! Unsigned requests are limited by the client's address; signed ones, and other addresses, are not. CONTRACT 3, 7 and 8.

use std::net::{IpAddr, Ipv4Addr};

use end_to_end::{
    program::Program,
    raw_connection::{RawAnswer, RawConnection, request},
    recording_backend::RecordingBackend,
    stack::{Stack, StackBuilder},
};

/// As few as that can be told from the time that a test takes.
const FEW: &str = "[limits.unsigned]\nper_second = 1\nburst = 5\n";

/// More than any rate here lets through in the time that they take.
const FLOOD: usize = 300;

/// Another address of this machine.
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Sends the same request until it is refused.
async fn flood(connection: &mut RawConnection, bytes: &[u8]) -> RawAnswer {
    for _ in 0..FLOOD {
        connection.send(bytes).await;
        let answer = connection.answer().await.expect("the connection goes on");
        if answer.status == 429 {
            return answer;
        }
    }
    panic!("{FLOOD} requests were served");
}

/// The status that one request gets.
async fn status(connection: &mut RawConnection, bytes: &[u8]) -> u16 {
    connection.send(bytes).await;
    connection.answer().await.unwrap().status
}

#[tokio::test]
async fn a_flood_from_one_address_refuses_nobody_else_and_nothing_signed() {
    let stack = Stack::builder().gateway(FEW).start().await;
    let begin = |lines: &[&str]| request("GET", "/login", lines, b"");
    let mut flooding = stack.raw().await;
    let refused = flood(&mut flooding, &begin(&["Acme-X-Language: ja"])).await;
    assert_eq!(refused.code().as_deref(), Some("rate_limited"));
    assert_eq!(refused.header("content-language"), Some("ja"));
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert_eq!(seconds, 1);
    let page = ["Accept: text/html", "Accept-Language: ko"];
    let page = flood(&mut flooding, &begin(&page)).await;
    assert_eq!(page.header("content-language"), Some("ko"));
    assert!(
        page.header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    // The provider's redirect is counted with it.
    let back = request("GET", "/login?state=v1.x&code=y", &[], b"");
    flood(&mut flooding, &back).await;

    let mut elsewhere = RawConnection::open_from(ELSEWHERE, stack.addresses().gateway).await;
    assert_eq!(status(&mut elsewhere, &begin(&[])).await, 302);
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
    let trusted = format!("trusted_proxies = [\"127.0.0.1\"]\n{FEW}");
    Stack::builder().in_front_of(backend).gateway(&trusted)
}

#[tokio::test]
async fn behind_a_trusted_proxy_its_clients_are_counted() {
    let backend = RecordingBackend::start().await;
    let stack = behind_a_proxy(&backend).start().await;
    let of = |client: &str| {
        let line = format!("X-Forwarded-For: {client}");
        request("GET", "/login?state=v1.x&code=y", &[&line], b"")
    };
    let mut proxy = stack.raw().await;
    flood(&mut proxy, &of("198.51.100.1")).await;
    // Whatever it makes up in front of what the proxy wrote.
    flood(&mut proxy, &of("203.0.113.9, 198.51.100.1")).await;
    assert_eq!(status(&mut proxy, &of("198.51.100.2")).await, 200);
    flood(&mut proxy, &of("2001:db8:0:1::1")).await;
    // One /64 is one client, and does not use up its /48.
    flood(&mut proxy, &of("2001:db8:0:1::2")).await;
    assert_eq!(status(&mut proxy, &of("2001:db8:0:2::1")).await, 200);
    let mut elsewhere = RawConnection::open_from(ELSEWHERE, stack.addresses().gateway).await;
    flood(&mut elsewhere, &of("198.51.100.3")).await;
    assert_eq!(status(&mut proxy, &of("198.51.100.3")).await, 200);
}

#[tokio::test]
async fn the_rate_comes_behind_the_method_and_before_everything_else() {
    let (backend, get) = (RecordingBackend::start().await, "/login?state=v1.x&code=y");
    let stack = Stack::builder().in_front_of(&backend).gateway(FEW);
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
async fn there_is_a_limit_by_default_and_it_can_be_switched_off() {
    const MANY: usize = 900;
    let backend = RecordingBackend::start().await;
    let target = "/login?state=v1.x&code=y";
    let bytes = request("GET", target, &[], b"").repeat(MANY);
    let usual = Stack::builder()
        .in_front_of(&backend)
        .without(Program::Gateway, "limits");
    let off = Stack::builder()
        .in_front_of(&backend)
        .gateway("[limits.unsigned]\nenabled = false");
    for (stack, is_limited) in [(usual, true), (off, false)] {
        let stack = stack.start().await;
        let mut connection = stack.raw().await;
        connection.send(&bytes).await;
        let mut statuses = Vec::new();
        for _ in 0..MANY {
            statuses.push(connection.answer().await.unwrap().status);
        }
        assert_eq!(statuses.contains(&429), is_limited);
        // An office has its burst.
        assert!(statuses[..500].iter().all(|status| *status == 200));
    }
}
