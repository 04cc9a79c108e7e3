//! The PROXY protocol: clients' addresses from balancers, and from nobody else.

use std::net::IpAddr;

use end_to_end::{
    program::Program,
    raw_connection::{RawConnection, request},
    recording_backend::RecordingBackend,
    stack::Stack,
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
        assert_eq!(connection.answer().await.unwrap().status, 200);
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
    assert_eq!(direct.answer().await.unwrap().status, 200);
    let received = backend.request_number(1).await;
    assert_eq!(received.values("x-forwarded-for"), ["127.0.0.2"]);
    let mut forger = RawConnection::open_from(stranger, gateway).await;
    forger
        .send(&[V1, &request("GET", "/x", &[], b"")].concat())
        .await;
    assert_eq!(forger.answer().await.unwrap().status, 400);
    assert_eq!(backend.requests().len(), 1);
}

#[tokio::test]
async fn a_balancer_without_a_valid_header_is_closed() {
    let (stack, backend) = start("[timeouts]\nhandshake_seconds = 1").await;
    for bytes in [
        &request("GET", "/x", &[], b"")[..],
        b"PROXY TCP4 x\r\n",
        b"PROXY TC",
        b"",
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
            let answer = connection.answer().await;
            assert_eq!(answer.is_some(), number < 3, "{client} {number}");
            open.push(connection);
        }
    }
}
