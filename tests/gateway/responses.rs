//! Answers of backends, as clients receive them. CONTRACT 1 and 2.

use end_to_end::{
    program::Program,
    raw_connection::{RawConnection, RawResponse, request},
    recording_backend::Behaviour,
    stack::Stack,
};

/// The responses that a client of this HTTP version receives if the backend sends these bytes.
async fn received(version: &str, bytes: &str) -> Vec<RawResponse> {
    let (stack, backend) = Stack::recording().await;
    backend.behave(Behaviour::verbatim(bytes));
    let mut connection = stack.raw().await;
    let head = format!("GET /x {version}\r\nHost: h\r\nConnection: close\r\n\r\n");
    connection.send(head.as_bytes()).await;
    connection.responses_until_close().await
}

fn body(response: &RawResponse) -> String {
    String::from_utf8_lossy(&response.body).into_owned()
}

#[tokio::test]
async fn an_http_1_0_client_gets_neither_chunks_nor_hints() {
    let hinted = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
                  HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let responses = received("HTTP/1.0", hinted).await;
    assert_eq!(responses.len(), 1, "{responses:?}");
    assert_eq!(responses[0].status, 200);
    assert_eq!(responses[0].header("transfer-encoding"), None);
    assert_eq!(body(&responses[0]), "hello");
}

#[tokio::test]
async fn an_unrequested_upgrade_is_a_failure_of_the_backend() {
    let switching =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw";
    let responses = received("HTTP/1.1", switching).await;
    assert_eq!(responses[0].status, 502, "{responses:?}");
    assert_eq!(responses[0].code().as_deref(), Some("backend_unreachable"));
}

#[tokio::test]
async fn internal_and_hop_by_hop_headers_are_not_passed_on() {
    let chatty = "HTTP/1.1 200 OK\r\nX-Gateway-App-Id: 7\r\nX_Gateway_App_Id: 7\r\nX-Hop: 1\r\n\
                  Keep-Alive: timeout=5\r\nConnection: close, X-Hop\r\nTrailer: X-Gateway-App-Id\r\n\
                  X-Kept: 1\r\nContent-Length: 2\r\n\r\nok";
    let responses = received("HTTP/1.1", chatty).await;
    for name in [
        "x-gateway-app-id",
        "x_gateway_app_id",
        "x-hop",
        "keep-alive",
        "trailer",
    ] {
        assert_eq!(responses[0].header(name), None, "{name}");
    }
    assert_eq!(responses[0].header("x-kept"), Some("1"));
    assert_eq!(body(&responses[0]), "ok");
}

#[tokio::test]
async fn the_reason_for_a_malformed_response_is_only_logged() {
    let (stack, backend) = Stack::recording().await;
    backend.behave(Behaviour::verbatim("HELLO\r\n\r\n"));
    let response = stack.client().get("/x").send().await;
    response.problem(502, "backend_unreachable");
    let log = stack
        .log_with(Program::Gateway, "the backend failed: ")
        .await;
    assert!(log.contains("malformed response"), "{log}");
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
    assert_eq!(connection.response().await.unwrap().status, 200);
    let arrived = backend.request_number(1).await;
    assert_eq!(
        arrived.value("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    assert_eq!(arrived.body, form.as_bytes());
}

/// Thereby a gateway recognises a response to another request. CONTRACT 9, #22
#[tokio::test]
async fn every_response_of_the_login_service_has_the_id_of_its_request() {
    let secret =
        "gateway_secret = \"8b1a9953c4611296a827abf8c47804d7\"\n[timeouts]\nbody_seconds = 1";
    let stack = Stack::builder().gateway(secret.lines().next().unwrap());
    let stack = stack.backends(secret).start().await;
    let large = vec![b'x'; 64 * 1024 + 1];
    let form = "Content-Type: application/x-www-form-urlencoded";
    let unfinished = "Content-Length: 9";
    let secret = "X-Gateway-Secret: 8b1a9953c4611296a827abf8c47804d7";
    let of_client = vec![secret, "X-Gateway-Version: v1", "X-Gateway-App-Id: 0"];
    let of_form = |further: &[&'static str]| [&of_client[..], &[form], further].concat();
    let (none, of_client) = (Vec::new, || of_client.clone());
    let calls = [
        (200, "GET", "/healthz", none(), &b""[..]),
        (200, "GET", "/readyz", none(), b""),
        (404, "GET", "/healthz", of_client(), b""),
        (405, "POST", "/healthz", none(), b""),
        (403, "GET", "/user", none(), b""),
        (403, "GET", "/x", none(), b""),
        (302, "GET", "/login", of_client(), b""),
        (404, "GET", "/login?state=v1.x&code=c", vec![secret], b""),
        (404, "GET", "/x", of_client(), b""),
        (401, "GET", "/user", of_client(), b""),
        (405, "DELETE", "/user", of_client(), b""),
        (400, "POST", "/check", of_form(&[]), b"a=%"),
        (413, "POST", "/login", of_form(&[]), &large),
        (408, "POST", "/login", of_form(&[unfinished]), b""),
    ];
    for (number, (status, method, target, headers, body)) in calls.into_iter().enumerate() {
        let id = format!("request-{number}");
        let named = format!("X-Request-Id: {id}");
        let length = format!("Content-Length: {}", body.len());
        let mut headers = [&headers[..], &[&*named]].concat();
        if !body.is_empty() {
            headers.push(&length);
        }
        let mut connection = RawConnection::open(stack.addresses().v1).await;
        let bytes = request(method, target, &headers, body);
        connection.send(&bytes).await;
        let response = connection.response().await.unwrap();
        assert_eq!(
            response.status, status,
            "{method} {target}: {}",
            response.head
        );
        assert_eq!(response.header("x-request-id"), Some(&*id), "{target}");
    }
}
