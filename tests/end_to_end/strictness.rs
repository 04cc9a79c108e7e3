//! HTTP as CONTRACT 2 wants it: limits, times, and what ends at the gateway.

use std::time::{Duration, Instant};

use end_to_end::{
    port::free_address,
    program::Program,
    raw_connection::request,
    recording_backend::{Behaviour, Manner, RecordingBackend},
    stack::Stack,
};

const SHORT: &str = "[timeouts]\nhead_seconds = 1\nbody_seconds = 1\nanswer_seconds = 1";

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
async fn a_dribbled_head_is_ended_by_the_total_time() {
    let (stack, backend) = stack(SHORT).await;
    let start = Instant::now();
    let mut connection = stack.raw().await;
    // Each piece comes well within the time; all of them together do not.
    let pieces = request("GET", "/x", &["X: y"; 8], b"");
    connection
        .dribble(pieces.chunks(10), Duration::from_millis(200))
        .await;
    let answer = connection.answer().await.unwrap();
    assert_eq!(
        (answer.status, answer.code().as_deref()),
        (408, Some("request_timeout"))
    );
    assert!(connection.is_closed().await);
    assert!(
        start.elapsed() < Duration::from_secs(6),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn a_dribbled_body_is_ended_by_the_total_time() {
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
        .dribble(bytes[head..].chunks(8), Duration::from_millis(200))
        .await;
    let answer = connection.answer().await.unwrap();
    assert_eq!(
        (answer.status, answer.code().as_deref()),
        (408, Some("request_timeout"))
    );
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn a_dribbled_request_within_the_time_passes() {
    let (stack, backend) = Stack::recording().await;
    let bytes = stack
        .client()
        .post("/x")
        .param("a", "1")
        .bytes(&["Connection: close"]);
    let mut connection = stack.raw().await;
    connection
        .dribble(bytes.chunks(1), Duration::from_millis(1))
        .await;
    assert_eq!(connection.answer().await.unwrap().status, 200);
    assert_eq!(backend.requests().len(), 1);
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let (stack, _backend) = stack("[timeouts]\nhead_seconds = 1\nidle_seconds = 1").await;
    let mut silent = stack.raw().await;
    let mut idle = stack.raw().await;
    idle.send(&request("GET", "/x", &[], b"")).await;
    assert_eq!(idle.answer().await.unwrap().status, 200);
    assert!(idle.is_closed().await);
    // It asked for nothing.
    let answers = silent.answers_until_close().await;
    assert!(answers.is_empty(), "{answers:?}");
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let (stack, backend) = Stack::recording().await;
    let client = stack.client();
    let mut connection = stack.raw().await;
    for number in 0..20 {
        let call = client.post("/x").param("number", &number.to_string());
        connection.send(&call.bytes(&[])).await;
        assert_eq!(connection.answer().await.unwrap().status, 200);
    }
    assert_eq!(backend.requests().len(), 20);
}

#[tokio::test]
async fn a_refusal_leaves_the_connection_as_it_should_be() {
    let (stack, backend) = Stack::recording().await;
    let mut connection = stack.raw().await;
    // Read to its end: the connection may go on.
    let wrong = stack
        .client()
        .post("/x")
        .param("a", "1")
        .sign_given(&"0".repeat(32))
        .bytes(&[]);
    connection.send(&wrong).await;
    assert_eq!(
        connection.answer().await.unwrap().code().as_deref(),
        Some("sign_mismatch")
    );
    // Not read to its end: it may not.
    let large = [
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 70000",
    ];
    let mut connection = stack.raw().await;
    connection
        .send(&request("POST", "/x", &large, b"a=1"))
        .await;
    let answer = connection.answer().await.unwrap();
    assert_eq!(answer.code().as_deref(), Some("body_too_large"));
    assert_eq!(
        answer.header("connection"),
        Some("close"),
        "{}",
        answer.head
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
    assert_eq!(connection.answer().await.unwrap().status, 200);
    assert!(connection.is_closed().await);
    assert_eq!(backend.requests().len(), 1);
}

#[tokio::test]
async fn expect_is_answered_by_the_gateway() {
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
    assert_eq!(connection.answer().await.unwrap().status, 100);
    connection.send(&bytes[head..]).await;
    assert_eq!(connection.answer().await.unwrap().status, 200);
    assert_eq!(backend.requests()[0].value("expect"), None);
}

#[tokio::test]
async fn expect_is_not_answered_for_a_body_that_is_refused() {
    let (stack, backend) = Stack::recording().await;
    let lines = [
        "Content-Type: text/plain",
        "Content-Length: 5",
        "Expect: 100-continue",
    ];
    let mut connection = stack.raw().await;
    connection.send(&request("POST", "/x", &lines, b"")).await;
    assert_eq!(connection.answer().await.unwrap().status, 415);
    assert!(connection.is_closed().await);
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn upgrade_te_and_trailers_end_at_the_gateway() {
    let (stack, backend) = Stack::recording().await;
    let lines = [
        "Connection: Upgrade, TE",
        "Upgrade: websocket",
        "TE: trailers",
        "Trailer: X-Late",
    ];
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/x", &lines, b"")).await;
    assert_eq!(connection.answer().await.unwrap().status, 200);
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
async fn what_is_no_http_gets_a_bare_400() {
    let (stack, backend) = Stack::recording().await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
        b"hello\r\n\r\n",
    ] {
        let mut connection = stack.raw().await;
        connection.send(bytes).await;
        let answers = connection.answers_until_close().await;
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].status, 400);
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
        let answers = connection.answers_until_close().await;
        let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [status], "{lines:?}");
    }
}

#[tokio::test]
async fn a_silent_backend_is_given_up() {
    let (stack, backend) = stack(SHORT).await;
    backend.behave(Behaviour::answering(Manner::Silently));
    let client = stack.client();
    client
        .get("/x")
        .send()
        .await
        .problem(504, "backend_timeout");
    client
        .post("/x")
        .param("a", "1")
        .send()
        .await
        .problem(504, "backend_timeout");
    backend.behave(Behaviour::default());
    client.get("/x").send().await.ok();
}

#[tokio::test]
async fn a_backend_that_is_away_is_unreachable() {
    let nobody = free_address();
    let stack = Stack::builder().in_front_of_address(nobody).start().await;
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
async fn a_backend_that_hangs_up_is_unreachable() {
    let (stack, backend) = Stack::recording().await;
    backend.behave(Behaviour::answering(Manner::HangUp));
    stack
        .client()
        .post("/x")
        .param("a", "1")
        .send()
        .await
        .problem(502, "backend_unreachable");
    // Nothing of an answer had come, and still a POST is not sent again.
    assert_eq!(backend.requests().len(), 1);
    stack
        .client()
        .get("/x")
        .send()
        .await
        .problem(502, "backend_unreachable");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_made_whole() {
    let (stack, backend) = Stack::recording().await;
    let behaviour = Behaviour {
        body: vec![b'x'; 10_000],
        ..Behaviour::answering(Manner::BreakOff)
    };
    backend.behave(behaviour);
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/x", &[], b"")).await;
    let answer = connection.answer().await;
    assert!(
        answer.is_none_or(|answer| answer.status == 502),
        "a broken answer looks whole"
    );
}

#[tokio::test]
async fn a_kept_connection_that_the_backend_closed_is_no_failure() {
    let (stack, backend) = Stack::recording().await;
    let client = stack.client();
    for number in 0..10 {
        let manner = if number % 2 == 0 {
            Manner::ThenClose
        } else {
            Manner::Promptly
        };
        backend.behave(Behaviour::answering(manner));
        client.get("/x").send().await.ok();
        client.post("/x").param("a", "1").send().await.ok();
    }
}

#[tokio::test]
async fn a_backend_that_speaks_no_http_is_unreachable() {
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
        let answer = stack.client().post("/x").param("a", "1").send().await;
        answer.problem(502, "backend_unreachable");
    }
    backend.behave(Behaviour::default());
    stack.client().get("/x").send().await.ok();
}

#[tokio::test]
async fn many_half_open_connections_keep_nobody_out() {
    let (stack, _backend) = Stack::recording().await;
    let mut half_open = Vec::new();
    for _ in 0..300 {
        let mut connection = stack.raw().await;
        connection.send(b"GET /x HTTP/1.1\r\nHost: ").await;
        half_open.push(connection);
    }
    stack.client().get("/x").param("a", "1").send().await.ok();
}

#[tokio::test]
async fn the_usual_spellings_of_the_content_type_are_taken() {
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
        assert_eq!(connection.answer().await.unwrap().status, 200, "{media}");
    }
    assert_eq!(backend.requests().len(), 5);
}

#[tokio::test]
async fn a_request_under_way_is_finished_before_the_gateway_ends() {
    let (mut stack, backend) = Stack::recording().await;
    backend.behave(Behaviour::answering(Manner::After(Duration::from_millis(
        700,
    ))));
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/x", &[], b"")).await;
    backend.request_number(1).await;
    stack.running(Program::Gateway).terminate();
    let answer = connection.answer().await;
    assert_eq!(answer.map(|answer| answer.status), Some(200));
}

#[tokio::test]
async fn a_connection_that_the_client_closes_ends_with_a_rejection_too() {
    let (stack, _backend) = stack("").await;
    for method in ["GET", "DELETE", "PUT"] {
        let mut connection = stack.raw().await;
        let last = request(method, "/x?a=1", &["Connection: close"], b"");
        let behind = request("GET", "/behind", &[], b"");
        connection.send(&[last, behind].concat()).await;
        let answers = connection.answers_until_close().await;
        assert_eq!(answers.len(), 1, "{method}: {answers:?}");
        assert_eq!(answers[0].header("connection"), Some("close"), "{method}");
        assert!(answers[0].status >= 400, "{method}: {answers:?}");
    }
}

#[tokio::test]
async fn an_empty_line_behind_a_request_begins_no_other() {
    let (stack, _backend) = stack("[timeouts]\nhead_seconds = 1\nidle_seconds = 2").await;
    let mut connection = stack.raw().await;
    let lined = [request("GET", "/x", &[], b""), b"\r\n".to_vec()].concat();
    connection.send(&lined).await;
    let statuses: Vec<_> = connection
        .answers_until_close()
        .await
        .iter()
        .map(|answer| answer.status)
        .collect();
    assert_eq!(statuses, [200]);
}

#[tokio::test]
async fn connection_may_name_a_bounded_number_of_headers() {
    let (stack, backend) = stack("").await;
    let line = format!("Connection: {}", "b,".repeat(10_000));
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/x", &[&line], b"")).await;
    let answer = connection.answer().await.unwrap();
    assert_eq!(answer.status, 431);
    assert_eq!(answer.code().as_deref(), Some("headers_too_large"));
    assert_eq!(backend.bytes(), 0);
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_its_form_leaves_a_line() {
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
async fn a_trailer_line_that_is_no_field_is_no_http() {
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
    let no_fields: [&[u8]; 5] = [
        b"GET /x\r\n",
        b"X-T : 1\r\n",
        b": x\r\n",
        b"X\xff: 1\r\n",
        b"X: 1\r\nGET /x HTTP/1.1\r\n",
    ];
    for trailers in no_fields {
        let mut connection = stack.raw().await;
        connection
            .send(&request("POST", "/x", &headers, &body(trailers)))
            .await;
        let answers = connection.answers_until_close().await;
        let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [400], "{}", trailers.escape_ascii());
    }
    assert_eq!(backend.bytes(), 0);
    let mut connection = stack.raw().await;
    let fields = body(b"X-T: 1\r\nx-u:\r\n");
    connection
        .send(&request("POST", "/x", &headers, &fields))
        .await;
    assert_eq!(connection.answer().await.unwrap().status, 200);
    assert_eq!(backend.request_number(1).await.value("x-t"), None);
}
