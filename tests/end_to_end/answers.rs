//! Answers of backends, as clients receive them. CONTRACT 1 and 2.

use end_to_end::{
    program::Program,
    raw_connection::{RawAnswer, request},
    recording_backend::Behaviour,
    stack::Stack,
};

/// The answers that a client of this HTTP version receives if the backend sends these bytes.
async fn received(version: &str, bytes: &str) -> Vec<RawAnswer> {
    let (stack, backend) = Stack::recording().await;
    backend.behave(Behaviour::verbatim(bytes));
    let mut connection = stack.raw().await;
    let head = format!("GET /x {version}\r\nHost: h\r\nConnection: close\r\n\r\n");
    connection.send(head.as_bytes()).await;
    connection.answers_until_close().await
}

fn body(answer: &RawAnswer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

#[tokio::test]
async fn an_http_1_0_client_gets_neither_chunks_nor_hints() {
    let hinted = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
                  HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let answers = received("HTTP/1.0", hinted).await;
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0].status, 200);
    assert_eq!(answers[0].header("transfer-encoding"), None);
    assert_eq!(body(&answers[0]), "hello");
}

#[tokio::test]
async fn an_unrequested_upgrade_is_a_failure_of_the_backend() {
    let switching =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw";
    let answers = received("HTTP/1.1", switching).await;
    assert_eq!(answers[0].status, 502, "{answers:?}");
    assert_eq!(answers[0].code().as_deref(), Some("backend_unreachable"));
}

#[tokio::test]
async fn internal_and_hop_by_hop_headers_are_not_passed_on() {
    let chatty = "HTTP/1.1 200 OK\r\nX-Gateway-App-Id: 7\r\nX_Gateway_App_Id: 7\r\nX-Hop: 1\r\n\
                  Keep-Alive: timeout=5\r\nConnection: close, X-Hop\r\nTrailer: X-Gateway-App-Id\r\n\
                  X-Kept: 1\r\nContent-Length: 2\r\n\r\nok";
    let answers = received("HTTP/1.1", chatty).await;
    for name in [
        "x-gateway-app-id",
        "x_gateway_app_id",
        "x-hop",
        "keep-alive",
        "trailer",
    ] {
        assert_eq!(answers[0].header(name), None, "{name}");
    }
    assert_eq!(answers[0].header("x-kept"), Some("1"));
    assert_eq!(body(&answers[0]), "ok");
}

#[tokio::test]
async fn the_reason_for_a_malformed_answer_is_only_logged() {
    let (stack, backend) = Stack::recording().await;
    backend.behave(Behaviour::verbatim("HELLO\r\n\r\n"));
    let answer = stack.client().get("/x").send().await;
    answer.problem(502, "backend_unreachable");
    let log = stack
        .log_with(Program::Gateway, "the backend failed: ")
        .await;
    assert!(log.contains("malformed answer"), "{log}");
}

#[tokio::test]
async fn the_connection_header_cannot_remove_the_content_type_of_a_form() {
    let (stack, backend) = Stack::recording().await;
    let (_, form) = stack.client().post("/x").param("a", "1").parts();
    let lines = [
        "Content-Type: application/x-www-form-urlencoded".to_owned(),
        "Connection: content-type, content-length".to_owned(),
        format!("Content-Length: {}", form.len()),
    ];
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let mut connection = stack.raw().await;
    connection
        .send(&request("POST", "/x", &lines, form.as_bytes()))
        .await;
    assert_eq!(connection.answer().await.unwrap().status, 200);
    let arrived = backend.request_number(1).await;
    assert_eq!(
        arrived.value("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    assert_eq!(arrived.body, form.as_bytes());
}
