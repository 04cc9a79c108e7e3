//! HTTP as CONTRACT 2 requires: limits, timeouts, and headers that the gateway does not forward.

use std::time::Duration;

use end_to_end::{
    port::free_address,
    program::Program,
    raw_connection::request,
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    stack::Stack,
};

const SHORT: &str = "[timeouts]\nhead_seconds = 5\nbody_seconds = 5";
/// Neither a timeout nor the smallest rate ends what a busy machine sends.
pub(crate) const PATIENT: &str =
    "[timeouts]\nhead_seconds = 60\nbody_seconds = 60\n[connections]\nmin_bytes_per_second = 1\n";

async fn stack(config: &str) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    (
        Stack::builder()
            .in_front_of(&backend)
            .gateway(config)
            .start()
            .await,
        backend,
    )
}

#[tokio::test]
async fn a_slow_head_is_ended_by_the_total_timeout() {
    let (stack, backend) = stack(SHORT).await;
    let mut connection = stack.raw().await;
    // Each piece arrives well within the timeout; all of them together do not.
    let pieces = request("GET", "/x", &["X: y"; 8], b"");
    connection
        .send_slowly(pieces.chunks(2), Duration::from_millis(200))
        .await;
    let response = connection.response().await.unwrap();
    assert_eq!(
        (response.status, response.code().as_deref()),
        (408, Some("request_timeout"))
    );
    assert!(connection.is_closed().await);
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn a_slow_body_is_ended_by_the_total_timeout() {
    let (stack, backend) = stack(SHORT).await;
    let bytes = stack
        .client()
        .post("/x")
        .param("a", &"1".repeat(100))
        .bytes(&[]);
    let head = bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap()
        + 4;
    let mut connection = stack.raw().await;
    connection.send(&bytes[..head]).await;
    connection
        .send_slowly(bytes[head..].chunks(3), Duration::from_millis(200))
        .await;
    let response = connection.response().await.unwrap();
    assert_eq!(
        (response.status, response.code().as_deref()),
        (408, Some("request_timeout"))
    );
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn a_slow_request_within_the_timeout_passes() {
    let (stack, backend) = stack(PATIENT).await;
    let bytes = stack
        .client()
        .post("/x")
        .param("a", "1")
        .bytes(&["Connection: close"]);
    let mut connection = stack.raw().await;
    connection
        .send_slowly(bytes.chunks(8), Duration::from_millis(1))
        .await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    assert_eq!(backend.requests().len(), 1);
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let (stack, _backend) = stack("[timeouts]\nhead_seconds = 5\nidle_seconds = 1").await;
    let mut silent = stack.raw().await;
    let mut idle = stack.raw().await;
    idle.send(&request("GET", "/x", &[], b"")).await;
    assert_eq!(idle.response().await.unwrap().status, 200);
    assert!(idle.is_closed().await);
    // It sent no request.
    let responses = silent.responses_until_close().await;
    assert!(responses.is_empty(), "{responses:?}");
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let (stack, backend) = Stack::recording().await;
    let client = stack.client();
    let mut connection = stack.raw().await;
    for number in 0..20 {
        let call = client.post("/x").param("number", &number.to_string());
        connection.send(&call.bytes(&[])).await;
        assert_eq!(connection.response().await.unwrap().status, 200);
    }
    assert_eq!(backend.requests().len(), 20);
}

#[tokio::test]
async fn a_rejection_closes_the_connection_if_the_body_is_unread() {
    let (stack, backend) = Stack::recording().await;
    let mut connection = stack.raw().await;
    // The body was read to its end: the connection may stay open.
    let wrong = stack
        .client()
        .post("/x")
        .param("a", "1")
        .sign_given(&"0".repeat(32))
        .bytes(&[]);
    connection.send(&wrong).await;
    assert_eq!(
        connection.response().await.unwrap().code().as_deref(),
        Some("sign_mismatch")
    );
    // The body was not read to its end: it may not.
    let large = [
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 70000",
    ];
    let mut connection = stack.raw().await;
    connection
        .send(&request("POST", "/x", &large, b"a=1"))
        .await;
    let response = connection.response().await.unwrap();
    assert_eq!(response.code().as_deref(), Some("body_too_large"));
    assert_eq!(
        response.header("connection"),
        Some("close"),
        "{}",
        response.head
    );
    assert!(connection.is_closed().await);
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn http_1_0_is_served_without_keep_alive() {
    let (stack, backend) = Stack::recording().await;
    let mut connection = stack.raw().await;
    let bytes = b"GET /x HTTP/1.0\r\nHost: gateway.example\r\nConnection: keep-alive\r\n\r\n";
    connection.send(bytes).await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    assert!(connection.is_closed().await);
    assert_eq!(backend.requests().len(), 1);
}

#[tokio::test]
async fn expect_gets_a_response_by_the_gateway() {
    let (stack, backend) = Stack::recording().await;
    let bytes = stack
        .client()
        .post("/x")
        .param("a", "1")
        .bytes(&["Expect: 100-continue"]);
    let head = bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap()
        + 4;
    let mut connection = stack.raw().await;
    connection.send(&bytes[..head]).await;
    assert_eq!(connection.response().await.unwrap().status, 100);
    connection.send(&bytes[head..]).await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    assert_eq!(backend.requests()[0].value("expect"), None);
}

#[tokio::test]
async fn expect_is_not_responded_for_a_body_that_is_rejected() {
    let (stack, backend) = Stack::recording().await;
    let lines = [
        "Content-Type: text/plain",
        "Content-Length: 5",
        "Expect: 100-continue",
    ];
    let mut connection = stack.raw().await;
    connection.send(&request("POST", "/x", &lines, b"")).await;
    assert_eq!(connection.response().await.unwrap().status, 415);
    assert!(connection.is_closed().await);
    assert_eq!(backend.connections(), 0);
}

/// Node's `http2` announces the body of each POST, for example. No bytes need no type.
#[tokio::test]
async fn an_announced_body_without_bytes_needs_no_type() {
    let (stack, backend) = stack(SHORT).await;
    let mut connection = stack.raw().await;
    for (method, target, lines) in [
        ("POST", "/x", &[][..]),
        ("POST", "/x", &["Content-Type: text/plain"]),
        ("POST", "/x", &["Content-Encoding: gzip"]),
        ("GET", "/x", &[]),
        ("GET", "/login?state=v1.x&code=y", &[]),
    ] {
        let lines = [lines, &["Transfer-Encoding: chunked"]].concat();
        let bytes = request(method, target, &lines, b"0\r\n\r\n");
        connection.send(&bytes).await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.status, 200, "{method} {lines:?}");
    }
    let arrived = backend.requests();
    assert_eq!(arrived.len(), 5);
    assert!(arrived.iter().all(|request| request.body.is_empty()));
    // Until it is known whether there are bytes, the gateway waits as for a form.
    for (rest, status) in [(&b"1\r\n"[..], 408), (b"1\r\nx", 415)] {
        let mut connection = stack.raw().await;
        let head = request("POST", "/x", &["Transfer-Encoding: chunked"], rest);
        connection.send(&head).await;
        assert_eq!(connection.response().await.unwrap().status, status);
        assert!(connection.is_closed().await);
    }
    assert_eq!(backend.requests().len(), 5);
}

#[tokio::test]
async fn an_upgrade_to_another_protocol_reaches_no_backend() {
    let (stack, backend) = Stack::recording().await;
    let mut connection = stack.raw().await;
    let handshake = [
        "Connection: keep-alive, Upgrade",
        "Upgrade: WebSocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    connection
        .send(&request("GET", "/chat", &handshake, b""))
        .await;
    let response = connection.response().await.unwrap();
    let found = (response.status, response.code());
    assert_eq!(found, (501, Some("upgrade_not_supported".to_owned())));
    assert_eq!(backend.connections(), 0);
    let log = stack
        .log_with(Program::Gateway, "problem.code=upgrade_not_supported")
        .await;
    assert!(log.contains("http.path=/chat"), "{log}");
    // Clients that offer HTTP/2 or TLS take a plain response, and HTTP/1.0 has no upgrade (RFC 9110 section 7.8).
    for (version, connection, upgrade) in [
        ("1.1", "Upgrade, HTTP2-Settings", "h2c"),
        ("1.1", "Upgrade", "TLS/1.2"),
        ("1.1", "keep-alive", "websocket"),
        ("1.0", "Upgrade", "websocket"),
    ] {
        let lines = [
            &*format!("Connection: {connection}"),
            &*format!("Upgrade: {upgrade}"),
        ];
        let bytes = String::from_utf8(request("GET", "/x", &lines, b"")).unwrap();
        let bytes = bytes.replace("HTTP/1.1", &format!("HTTP/{version}"));
        let mut connection = stack.raw().await;
        connection.send(bytes.as_bytes()).await;
        assert_eq!(connection.response().await.unwrap().status, 200);
        assert_eq!(backend.requests().last().unwrap().value("upgrade"), None);
    }
}

#[tokio::test]
async fn a_405_names_what_the_gateway_accepts() {
    let (stack, _backend) = Stack::recording().await;
    let mut connection = stack.raw().await;
    connection.send(&request("PUT", "/x", &[], b"")).await;
    let response = connection.response().await.unwrap();
    assert_eq!(response.header("allow"), Some("GET, POST"));
    let text = String::from_utf8(response.body).unwrap();
    assert!(
        text.contains("This gateway accepts only GET, POST."),
        "{text}"
    );
}

#[tokio::test]
async fn upgrade_te_and_trailers_end_at_the_gateway() {
    let (stack, backend) = Stack::recording().await;
    let lines = [
        "Connection: Upgrade, TE",
        "Upgrade: h2c",
        "TE: trailers",
        "Trailer: X-Late",
    ];
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/x", &lines, b"")).await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    let arrived = &backend.requests()[0];
    for name in ["upgrade", "te", "trailer"] {
        assert_eq!(arrived.value(name), None, "{name}");
    }
    assert!(
        !arrived
            .values("connection")
            .iter()
            .any(|value| value.contains("pgrade"))
    );
}

#[tokio::test]
async fn bytes_that_are_not_http_get_a_bare_400() {
    let (stack, backend) = Stack::recording().await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
        b"hello\r\n\r\n",
    ] {
        let mut connection = stack.raw().await;
        connection.send(bytes).await;
        let responses = connection.responses_until_close().await;
        assert_eq!(responses.len(), 1);
        assert_eq!(responses[0].status, 400);
    }
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn an_empty_line_before_a_request_is_skipped_once() {
    let (stack, _backend) = Stack::recording().await;
    let head = request("GET", "/x", &["Connection: close"], b"");
    for (lines, status) in [("\r\n", 200), ("\r\n\r\n", 400), ("\n", 400)] {
        let mut connection = stack.raw().await;
        connection.send(&[lines.as_bytes(), &head].concat()).await;
        let responses = connection.responses_until_close().await;
        let statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
        assert_eq!(statuses, [status], "{lines:?}");
    }
}

#[tokio::test]
async fn a_silent_backend_times_out() {
    let (stack, backend) = stack("[versions.v2]\nresponse_seconds = 1").await;
    backend.behave(Behaviour::responding(Delivery::Never));
    let client = stack.client();
    for call in [client.get("/x"), client.post("/x").param("a", "1")] {
        let response = call.version("v2").send().await;
        response.problem(504, "backend_timeout");
    }
    backend.behave(Behaviour::default());
    client.get("/x").send().await.ok();
}

#[tokio::test]
async fn a_backend_that_is_down_is_unreachable() {
    let unused = free_address();
    let stack = Stack::builder().in_front_of_address(unused).start().await;
    let client = stack.client();
    client
        .get("/x")
        .send()
        .await
        .problem(502, "backend_unreachable");
    client
        .post("/x")
        .param("a", "1")
        .send()
        .await
        .problem(502, "backend_unreachable");
}

#[tokio::test]
async fn a_backend_that_closes_the_connection_is_unreachable() {
    let (stack, backend) = Stack::recording().await;
    backend.behave(Behaviour::responding(Delivery::HangUp));
    stack
        .client()
        .post("/x")
        .param("a", "1")
        .send()
        .await
        .problem(502, "backend_unreachable");
    // A POST is not retried, although no byte of a response had arrived.
    assert_eq!(backend.requests().len(), 1);
    stack
        .client()
        .get("/x")
        .send()
        .await
        .problem(502, "backend_unreachable");
}

#[tokio::test]
async fn a_truncated_response_is_not_passed_on_as_complete() {
    let (stack, backend) = Stack::recording().await;
    let behaviour = Behaviour {
        body: vec![b'x'; 10_000],
        ..Behaviour::responding(Delivery::BreakOff)
    };
    backend.behave(behaviour);
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/x", &[], b"")).await;
    let response = connection.response().await;
    assert!(
        response.is_none_or(|response| response.status == 502),
        "a truncated answer looks complete"
    );
}

#[tokio::test]
async fn an_idle_connection_closed_by_the_backend_causes_no_failure() {
    let (stack, backend) = Stack::recording().await;
    let client = stack.client();
    for number in 0..10 {
        let delivery = if number % 2 == 0 {
            Delivery::ThenClose
        } else {
            Delivery::Promptly
        };
        backend.behave(Behaviour::responding(delivery));
        client.get("/x").send().await.ok();
        client.post("/x").param("a", "1").send().await.ok();
    }
}

#[tokio::test]
async fn a_backend_that_does_not_speak_http_is_unreachable() {
    let (stack, backend) = Stack::recording().await;
    for head in [
        "hello\r\n",
        "HTTP/1.1 abc\r\n",
        "HTTP/1.1 200 OK\r\nX Y: z\r\n",
    ] {
        backend.behave(Behaviour {
            head: head.to_owned(),
            ..Behaviour::default()
        });
        let response = stack.client().post("/x").param("a", "1").send().await;
        response.problem(502, "backend_unreachable");
    }
    backend.behave(Behaviour::default());
    stack.client().get("/x").send().await.ok();
}

#[tokio::test]
async fn many_unfinished_heads_do_not_block_other_clients() {
    let (stack, _backend) = Stack::recording().await;
    let mut unfinished = Vec::new();
    for _ in 0..300 {
        let mut connection = stack.raw().await;
        connection.send(b"GET /x HTTP/1.1\r\nHost: ").await;
        unfinished.push(connection);
    }
    stack.client().get("/x").param("a", "1").send().await.ok();
}

#[tokio::test]
async fn the_usual_spellings_of_the_content_type_are_accepted() {
    let (stack, backend) = Stack::recording().await;
    let (_, form) = stack.client().post("/x").param("a", "1").parts();
    let length = format!("Content-Length: {}", form.len());
    for media in [
        "application/x-www-form-urlencoded",
        "Application/X-WWW-Form-URLEncoded",
        "application/x-www-form-urlencoded;charset=utf-8",
        "application/x-www-form-urlencoded; charset=UTF-8",
        "application/x-www-form-urlencoded ; charset=\"utf-8\"",
    ] {
        let line = format!("Content-Type: {media}");
        let mut connection = stack.raw().await;
        connection
            .send(&request("POST", "/x", &[&line, &length], form.as_bytes()))
            .await;
        assert_eq!(connection.response().await.unwrap().status, 200, "{media}");
    }
    assert_eq!(backend.requests().len(), 5);
}

#[tokio::test]
async fn a_request_in_flight_is_finished_before_the_gateway_ends() {
    let (mut stack, backend) = Stack::recording().await;
    backend.behave(Behaviour::responding(Delivery::After(
        Duration::from_millis(700),
    )));
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/x", &[], b"")).await;
    backend.request_number(1).await;
    stack.running(Program::Gateway).terminate();
    let response = connection.response().await;
    assert_eq!(response.map(|response| response.status), Some(200));
}

#[tokio::test]
async fn connection_close_also_applies_to_a_rejection() {
    let (stack, _backend) = stack("").await;
    for method in ["GET", "DELETE", "PUT"] {
        let mut connection = stack.raw().await;
        let last = request(method, "/x?a=1", &["Connection: close"], b"");
        let behind = request("GET", "/behind", &[], b"");
        connection.send(&[last, behind].concat()).await;
        let responses = connection.responses_until_close().await;
        assert_eq!(responses.len(), 1, "{method}: {responses:?}");
        assert_eq!(responses[0].header("connection"), Some("close"), "{method}");
        assert!(responses[0].status >= 400, "{method}: {responses:?}");
    }
}

#[tokio::test]
async fn an_empty_line_after_a_request_begins_no_other() {
    let (stack, _backend) = stack("[timeouts]\nidle_seconds = 2").await;
    let mut connection = stack.raw().await;
    let lined = [request("GET", "/x", &[], b""), b"\r\n".to_vec()].concat();
    connection.send(&lined).await;
    let statuses: Vec<_> = connection
        .responses_until_close()
        .await
        .iter()
        .map(|response| response.status)
        .collect();
    assert_eq!(statuses, [200]);
}

#[tokio::test]
async fn the_connection_header_may_name_a_limited_number_of_headers() {
    let (stack, backend) = stack("").await;
    let line = format!("Connection: {}", "b,".repeat(10_000));
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/x", &[&line], b"")).await;
    let response = connection.response().await.unwrap();
    assert_eq!(response.status, 431);
    assert_eq!(response.code().as_deref(), Some("headers_too_large"));
    assert_eq!(backend.bytes(), 0);
}

#[tokio::test]
async fn a_client_that_disconnects_in_the_middle_of_its_form_is_logged() {
    let (stack, _backend) = stack("").await;
    let mut connection = stack.raw().await;
    let headers = [
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 100",
    ];
    let begun = request("POST", "/left", &headers, b"a=1");
    connection.send(&begun).await;
    drop(connection);
    stack.log_with(Program::Gateway, "http.path=/left").await;
}

#[tokio::test]
async fn a_malformed_trailer_is_rejected() {
    let (stack, backend) = stack("").await;
    let (_, form) = stack.client().post("/x").param("a", "1").parts();
    let headers = [
        "Content-Type: application/x-www-form-urlencoded",
        "Transfer-Encoding: chunked",
    ];
    let body = |trailers: &[u8]| {
        let chunk = format!("{:x}\r\n{form}\r\n0\r\n", form.len());
        [chunk.as_bytes(), trailers, b"\r\n"].concat()
    };
    let malformed: [&[u8]; 5] = [
        b"GET /x\r\n",
        b"X-T : 1\r\n",
        b": x\r\n",
        b"X\xff: 1\r\n",
        b"X: 1\r\nGET /x HTTP/1.1\r\n",
    ];
    for trailers in malformed {
        let mut connection = stack.raw().await;
        connection
            .send(&request("POST", "/x", &headers, &body(trailers)))
            .await;
        let responses = connection.responses_until_close().await;
        let statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
        assert_eq!(statuses, [400], "{}", trailers.escape_ascii());
    }
    assert_eq!(backend.bytes(), 0);
    let mut connection = stack.raw().await;
    let fields = body(b"X-T: 1\r\nx-u:\r\n");
    connection
        .send(&request("POST", "/x", &headers, &fields))
        .await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    assert_eq!(backend.request_number(1).await.value("x-t"), None);
}
