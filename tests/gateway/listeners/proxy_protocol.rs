//! The PROXY protocol: clients' addresses from balancers, and from nobody else.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use end_to_end::{
    program::Program,
    raw_connection::{RawConnection, request},
    raw_http2::{PREFACE, RawHttp2, Reaction, frame, get, kind},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    stack::Stack,
    waiting::until,
};

const LISTEN: &str = "[[listen]]\naddress = '$LISTEN'\nproxy_protocol = ['127.0.0.1']";
const V1: &[u8] = b"PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\r\n";

/// A header of version 2 for the client 192.0.2.8, with these TLVs.
fn v2(tlvs: &[u8]) -> Vec<u8> {
    let length = u8::try_from(12 + tlvs.len()).unwrap();
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend([
        0x21, 0x11, 0, length, 192, 0, 2, 8, 10, 0, 0, 1, 220, 4, 1, 187,
    ]);
    header.extend(tlvs);
    header
}

async fn start(further: &str) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .gateway(LISTEN)
        .gateway(further)
        .in_front_of(&backend);
    (stack.start().await, backend)
}

#[tokio::test]
async fn the_header_names_the_client() {
    let (stack, backend) = start("").await;
    let tls = [0x20, 0, 5, 1, 0, 0, 0, 0];
    for (header, client, scheme) in [
        (V1.to_vec(), "192.0.2.7", "http"),
        (v2(&[]), "192.0.2.8", "http"),
        (v2(&tls), "192.0.2.8", "https"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1", "http"),
    ] {
        let number = backend.requests().len();
        let mut connection = stack.raw().await;
        let forged = ["X-Forwarded-For: 203.0.113.9"];
        let bytes = [&header[..], &request("GET", "/x", &forged, b"")].concat();
        connection.send(&bytes).await;
        assert_eq!(connection.response().await.unwrap().status, 200);
        let received = backend.request_number(number + 1).await;
        assert_eq!(received.values("x-forwarded-for"), [client]);
        assert_eq!(received.values("x-forwarded-proto"), [scheme]);
    }
}

#[tokio::test]
async fn other_peers_are_served_without_a_header_and_cannot_send_one() {
    let (stack, backend) = start("").await;
    let stranger: IpAddr = "127.0.0.2".parse().unwrap();
    let gateway = stack.addresses().gateway;
    let mut direct = RawConnection::open_from(stranger, gateway).await;
    direct.send(&request("GET", "/x", &[], b"")).await;
    assert_eq!(direct.response().await.unwrap().status, 200);
    let received = backend.request_number(1).await;
    assert_eq!(received.values("x-forwarded-for"), ["127.0.0.2"]);
    let mut forger = RawConnection::open_from(stranger, gateway).await;
    forger
        .send(&[V1, &request("GET", "/x", &[], b"")].concat())
        .await;
    assert_eq!(forger.response().await.unwrap().status, 400);
    assert_eq!(backend.requests().len(), 1);
}

#[tokio::test]
async fn a_balancer_without_a_valid_header_is_closed() {
    let (stack, backend) = start("[timeouts]\nhead_seconds = 1").await;
    // Those that take too long come first: a line about them must not hide the others for a minute.
    for bytes in [
        &b"PROXY TC"[..],
        b"",
        &request("GET", "/x", &[], b""),
        b"PROXY TCP4 x\r\n",
    ] {
        let mut connection = stack.raw().await;
        connection.send(bytes).await;
        assert!(connection.is_closed().await, "{bytes:?}");
    }
    assert!(backend.requests().is_empty());
    stack.log_with(Program::Gateway, "valid PROXY header").await;
}

#[tokio::test]
async fn the_client_of_the_header_is_counted_not_the_balancer() {
    let (stack, _backend) = start("[connections]\nper_address = 3").await;
    let mut open = Vec::new();
    for client in 1..=9 {
        for number in 0..4 {
            let mut connection = stack.raw().await;
            let header = format!("PROXY TCP4 192.0.2.{client} 10.0.0.1 1 2\r\n");
            let bytes = [header.as_bytes(), &request("GET", "/x", &[], b"")].concat();
            connection.send(&bytes).await;
            let response = connection.response().await;
            assert_eq!(response.is_some(), number < 3, "{client} {number}");
            open.push(connection);
        }
    }
}

/// A PROXY header that names this IPv6 client.
fn v1_of(client: &str) -> Vec<u8> {
    format!("PROXY TCP6 {client} 2001:db8:ffff::1 1 2\r\n").into_bytes()
}

/// A new connection, unless so many are open that it is reset.
async fn connected(stack: &Stack) -> Option<RawConnection> {
    let gateway = stack.addresses().gateway;
    let opened = RawConnection::try_open_from(Ipv4Addr::LOCALHOST.into(), gateway);
    opened.await.ok()
}

/// Whether a new connection of this client is served; with the connection.
async fn opened_by(client: &str, stack: &Stack) -> Option<RawConnection> {
    let mut connection = connected(stack).await?;
    let bytes = [v1_of(client), request("GET", "/x", &[], b"")].concat();
    connection.send(&bytes).await;
    let response = connection.response().await?;
    (response.status == 200).then_some(connection)
}

/// As [`opened_by`], until there is room.
async fn served_again(client: &str, stack: &Stack) {
    until("room for a connection", || opened_by(client, stack)).await;
}

#[tokio::test]
async fn the_networks_of_one_ipv6_48_leave_room_for_others() {
    let (stack, _backend) = start("[connections]\nmax = 32\nper_address = 1000").await;
    // A quarter of all for a /64, half of all for the /48 around it.
    for round in 0..3 {
        let mut open = Vec::new();
        for network in 0..17 {
            for number in 0..9 {
                let client = format!("2001:db8:0:{network:x}::{number:x}");
                open.extend(opened_by(&client, &stack).await);
            }
            assert_eq!(open.len(), 16.min(8 * (network + 1)), "{round}");
        }
        // Others, as many as in 16 more connections.
        for client in ["2001:db8:1::1", "2001:db8:2::1", "::ffff:192.0.2.7"] {
            let opened = opened_by(client, &stack).await;
            assert!(opened.is_some(), "{client}");
            served_again(client, &stack).await;
        }
        // A connection that ends makes room for another network of the /48.
        open.pop();
        served_again("2001:db8:0:11::1", &stack).await;
        drop(open);
        // Clients that leave before their header is complete, or before their response, leave nothing behind.
        for number in 0..50 {
            let mut leaving = until("those that left make room", || connected(&stack)).await;
            let mut bytes = v1_of(&format!("2001:db8:0:{number:x}::1"));
            bytes.extend(request("GET", "/x", &[], b""));
            leaving.send(&bytes[..number + 10]).await;
        }
        served_again("2001:db8:0:1::1", &stack).await;
    }
    let log = stack
        .log_with(
            Program::Gateway,
            "max=16 limit=\"four times connections.per_address, for one IPv6 /48\"",
        )
        .await;
    assert!(
        log.contains("max=8 limit=\"connections.per_address\""),
        "{log}"
    );
}

const H2C: &str =
    "[[listen]]\naddress = '$LISTEN'\nproxy_protocol = ['127.0.0.1']\nprotocols = ['h2c']";

async fn open_http_2(client: &str, stack: &Stack) -> RawHttp2 {
    let mut connection = RawHttp2::open_silently(stack.addresses().gateway).await;
    let settings = frame(kind::SETTINGS, 0, 0, &[0, 1, 0, 0, 0, 0]);
    let bytes = [&v1_of(client)[..], PREFACE, &settings].concat();
    connection.send(&bytes).await;
    connection
}

/// Begins streams that the backend does not answer. Returns how many were refused.
async fn refused(connection: &mut RawHttp2, streams: impl Iterator<Item = u32>) -> usize {
    const REFUSED_STREAM: u32 = 7;
    for stream in streams {
        connection.send(&get(stream, "/held")).await;
    }
    let mut refused = 0;
    // A reset may follow the response to the first PING, but not that to the second one.
    for _ in 0..2 {
        connection.send(&frame(kind::PING, 0, 0, &[0; 8])).await;
        loop {
            let frame = connection.frame().await;
            let frame = frame.expect("the connection stays open");
            match frame.kind {
                kind::RST_STREAM => {
                    assert_eq!(frame.payload, REFUSED_STREAM.to_be_bytes());
                    refused += 1;
                }
                kind::PING => break,
                _ => {}
            }
        }
    }
    refused
}

/// Begins streams until one is not refused.
async fn room_for_a_stream(connection: &mut RawHttp2) {
    for stream in (5..1001).step_by(2) {
        if refused(connection, [stream].into_iter()).await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no room for a stream");
}

#[tokio::test]
async fn streams_of_an_address_and_of_a_48_are_counted_one_by_one() {
    let backend = RecordingBackend::start().await;
    let limits = "[connections]\nmax = 1000\nper_address = 10";
    let stack = Stack::builder().gateway(H2C).gateway(limits);
    let stack = stack.in_front_of(&backend).start().await;
    backend.behave(Behaviour::responding(Delivery::Never));
    // An office whose ten connections have two streams each.
    let mut office = Vec::new();
    for number in 0..10 {
        let mut connection = open_http_2(&format!("2001:db8:0:1::{number}"), &stack).await;
        assert_eq!(
            refused(&mut connection, [1, 3].into_iter()).await,
            0,
            "{number}"
        );
        office.push(connection);
    }
    assert_eq!(refused(&mut office[0], [5].into_iter()).await, 1);
    // A stream that ends makes room for one on another connection, and for no more.
    let ended = frame(kind::RST_STREAM, 0, 3, &[0, 0, 0, 8]);
    office[3].send(&ended).await;
    room_for_a_stream(&mut office[4]).await;
    assert_eq!(refused(&mut office[4], [1001, 1003].into_iter()).await, 2);
    // So does a connection that breaks off with two streams, of which the first one did not count.
    office.remove(5);
    room_for_a_stream(&mut office[6]).await;
    assert_eq!(refused(&mut office[6], [1001].into_iter()).await, 1);
    // The /48 has four times as many: 30 more.
    let mut neighbours = Vec::new();
    let mut begun = 0;
    for network in 2..9 {
        let client = format!("2001:db8:0:{network}::1");
        let mut connection = open_http_2(&client, &stack).await;
        let streams = (0..20).map(|number| 2 * number + 1);
        begun += 20 - refused(&mut connection, streams).await - 1;
        neighbours.push(connection);
    }
    assert_eq!(begun, 30);
    let mut other = open_http_2("2001:db8:1::1", &stack).await;
    let streams = (0..11).map(|number| 2 * number + 1);
    assert_eq!(refused(&mut other, streams).await, 0);
    let log = stack.log_with(Program::Gateway, "HTTP/2 streams").await;
    assert!(
        log.contains("max=10 limit=\"connections.per_address\""),
        "{log}"
    );
    // The streams in flight are served.
    backend.behave(Behaviour::default());
    let mut again = open_http_2("2001:db8:2::1", &stack).await;
    again.send(&get(1, "/x")).await;
    assert_eq!(again.reaction(1).await, Reaction::Response(200, None));
}
