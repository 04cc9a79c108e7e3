//! A version that another one's backend serves: what that gets, and what the client gets. CONTRACT 5.

mod converters;
mod responses;

use end_to_end::{
    clock::now_ms,
    metrics::Scrape,
    program::Program,
    recording_backend::{Behaviour, RecordedRequest, RecordingBackend},
    response::Response,
    signed_client::Call,
    stack::Stack,
    waiting::until,
};

/// Version 3 has no backend of its own.
const BRIDGED: &str = r#"
    [versions.v3]
    bridge = "v2"
    [[versions.v3.changes]]
    name = "nick"
    paths = ["/user", "/old/"]
    request = [
        { rename = "nick", to = "display name" },
        { default = "lang", value = "en" },
        { map = "state", values = ["1=on", "0=off"] },
        { path = "/old/", to = "/new/" },
    ]
    response = [{ rename = "$.display_name", to = "nick" }]
    [[versions.v3.changes]]
    name = "unknown_user"
    paths = ["/user"]
    status = ["404"]
    response = [{ status = 400 }, { constant = "$.code", value = "no_user" }]
"#;

async fn start(further: &str) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let builder = Stack::builder().in_front_of(&backend).gateway(BRIDGED);
    (builder.gateway(further).start().await, backend)
}

/// Sends a call of version 3, and returns what the backend got, and the response.
async fn exchange(
    backend: &RecordingBackend,
    call: Call<'_>,
) -> (Option<RecordedRequest>, Response) {
    let before = backend.requests().len();
    let response = call.version("v3").send().await;
    (backend.requests().into_iter().nth(before), response)
}

fn json(body: &str) -> Behaviour {
    Behaviour {
        body: body.into(),
        ..Behaviour::default()
    }
}

#[tokio::test]
async fn the_other_version_gets_changed_parameters_without_a_signature() {
    let (stack, backend) = start("").await;
    backend.behave(json(r#"{"display_name":"Ada"}"#));
    let client = stack.client();
    let call = client
        .post("/user")
        .query("a", "1")
        .param("nick", "Ada & Lin");
    let call = call
        .param("state", "1")
        .header("Accept-Encoding", "gzip")
        .header("Range", "bytes=0-1")
        .header("If-None-Match", "W/\"abc\"");
    let (got, response) = exchange(&backend, call).await;
    let got = got.unwrap();
    assert_eq!(got.target, "/user?a=1");
    assert_eq!(
        String::from_utf8(got.body.clone()).unwrap(),
        "display+name=Ada%20%26%20Lin&state=on&lang=en"
    );
    for (name, value) in [
        ("x-gateway-version", Some("v2")),
        ("x-gateway-bridge", Some("v3")),
        ("x-gateway-version-source", Some("header")),
        ("acme-x-version", Some("v3")),
        ("x-gateway-signed", Some("true")),
        ("accept-encoding", Some("identity")),
        ("range", None),
        ("if-none-match", None),
    ] {
        assert_eq!(got.value(name), value, "{name}");
    }
    assert_eq!(response.status, 200);
    assert_eq!(response.text(), r#"{"nick":"Ada"}"#);
    assert_eq!(response.header("acme-x-version"), Some("v3"));
    assert_eq!(response.header("content-length"), Some("14"));
    // Version 2 itself gets what was signed.
    let direct = client.get("/user").query("nick", "Ada").version("v2");
    assert_eq!(direct.send().await.text(), r#"{"display_name":"Ada"}"#);
    let got = backend.requests().pop().unwrap();
    assert!(
        got.target.contains("sign=") && got.target.contains("nick=Ada"),
        "{}",
        got.target
    );
    assert_eq!(got.value("x-gateway-bridge"), None);
}

#[tokio::test]
async fn a_change_takes_each_spelling_of_its_paths() {
    let (stack, backend) = start("").await;
    for (path, arrived) in [
        ("/%6Fld/a%20b%c3%a9", "/new/a%20b%C3%A9?a=1&lang=en"),
        ("/%6Fther/%c3%a9", "/%6Fther/%c3%a9?a=1"),
    ] {
        let client = stack.client();
        let call = client.get(path).query("a", "1");
        let call = call.version("v3").bytes(&[]);
        let mut connection = stack.raw().await;
        connection.send(&call).await;
        assert_eq!(connection.response().await.unwrap().status, 200, "{path}");
        assert_eq!(backend.requests().pop().unwrap().target, arrived);
    }
}

#[tokio::test]
async fn paths_without_a_change_keep_their_parameters_but_the_signature() {
    let (stack, backend) = start("").await;
    let client = stack.client();
    let call = client
        .get("/other")
        .query("nick", "\u{5f20}")
        .query("e", "");
    let call = call.header("Accept-Encoding", "gzip");
    let (got, response) = exchange(&backend, call).await;
    let got = got.unwrap();
    assert_eq!(got.target, "/other?nick=%E5%BC%A0&e=");
    assert_eq!(got.value("accept-encoding"), Some("gzip"));
    assert_eq!(response.text(), r#"{"recorded":true}"#);
    let (got, _) = exchange(&backend, client.get("/old/x/y").signed()).await;
    assert_eq!(got.unwrap().target, "/new/x/y?lang=en");
    // Without parameters there is no question mark.
    let (got, _) = exchange(&backend, client.get("/other").unsigned()).await;
    let got = got.unwrap();
    assert_eq!(got.target, "/other");
    assert_eq!(got.value("x-gateway-signed"), None);
}

#[tokio::test]
async fn nothing_unverified_takes_a_bridge() {
    let (stack, backend) = start("").await;
    let client = stack.client();
    let wrong = "0".repeat(32);
    for (call, status, code) in [
        (
            client.get("/user").query("a", "1").sign_given(&wrong),
            403,
            "sign_mismatch",
        ),
        (
            client.get("/user").query("a", "1").without_sign(),
            403,
            "sign_missing",
        ),
        (client.post("/login").unsigned(), 403, "sign_missing"),
    ] {
        let (got, response) = exchange(&backend, call).await;
        assert_eq!(got, None);
        response.problem(status, code);
    }
}

/// Backends rely on it: a request with parameters has a verified signature.
#[tokio::test]
async fn an_unsigned_request_gets_no_parameter() {
    let (stack, backend) = start("").await;
    let client = stack.client();
    let (got, response) = exchange(&backend, client.post("/user").unsigned()).await;
    assert_eq!(got, None);
    response.problem(403, "sign_missing");
}

#[tokio::test]
async fn a_changed_path_must_be_signed_where_the_other_versions_path_must() {
    let signs = "[sign]\nalways_signed = [\"GET /new/secret\"]\n";
    let (stack, backend) = start(signs).await;
    let client = stack.client();
    let (got, response) = exchange(&backend, client.get("/old/secret").unsigned()).await;
    assert_eq!(got, None);
    response.problem(403, "sign_missing");
    let (got, _) = exchange(&backend, client.get("/old/secret").signed()).await;
    assert_eq!(got.unwrap().target, "/new/secret?lang=en");
}

#[tokio::test]
async fn a_version_that_rejects_unsigned_requests_rejects_them_over_a_bridge() {
    let (stack, backend) = start("[versions.v2]\nunsigned = 'reject'\n").await;
    let client = stack.client();
    let (got, response) = exchange(&backend, client.get("/other").unsigned()).await;
    assert_eq!(got, None);
    response.problem(403, "sign_missing");
}

#[tokio::test]
async fn a_change_that_does_not_apply_is_named() {
    let (stack, backend) = start("").await;
    let client = stack.client();
    // The target of a rename exists.
    let call = client
        .post("/user")
        .param("nick", "a")
        .param("display name", "b");
    let (got, response) = exchange(&backend, call).await;
    assert_eq!(got, None);
    let problem = response.problem(502, "bridge_failed");
    assert!(
        problem["detail"].as_str().unwrap().contains("nick"),
        "{problem}"
    );
    // A value without an entry, which appears nowhere.
    let call = client.post("/user").param("state", "geheim");
    let (_, response) = exchange(&backend, call).await;
    response.problem(502, "bridge_failed");
    backend.behave(json(r#"{"display_name":1,"nick":"geheim"}"#));
    let (got, response) = exchange(&backend, client.get("/user").signed()).await;
    assert!(got.is_some());
    assert_eq!(response.header("acme-x-version"), Some("v3"));
    response.problem(502, "bridge_failed");
    let log = stack.log_with(Program::Gateway, "$.nick").await;
    assert!(log.contains("the change nick does not apply"), "{log}");
    assert!(!log.contains("geheim"), "{log}");
    // A request is counted after its line is written.
    until("three failures to be counted", || async {
        let metrics = Scrape::of(stack.addresses().management).await;
        let labels = [("version", "v3"), ("change", "nick")];
        let failures = metrics.sum("signpost_bridge_failures_total", &labels);
        (failures == 3.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn errors_pass_unless_a_change_names_their_status() {
    let (stack, backend) = start("").await;
    let problem = r#"{"type":"/problems/x","display_name":"stays","code":"x"}"#;
    let client = stack.client();
    for (status, expected, body) in [
        (403, 403, problem),
        (500, 500, problem),
        (
            404,
            400,
            r#"{"type":"/problems/x","display_name":"stays","code":"no_user"}"#,
        ),
    ] {
        backend.behave(Behaviour {
            head: format!("HTTP/1.1 {status} Why\r\nContent-Type: application/problem+json\r\n"),
            body: problem.into(),
            ..Behaviour::default()
        });
        let (_, response) = exchange(&backend, client.get("/user").signed()).await;
        assert_eq!(response.status, expected);
        assert_eq!(response.text(), body);
    }
}

#[tokio::test]
async fn what_is_said_of_the_body_is_true_of_the_changed_one() {
    let (stack, backend) = start("").await;
    backend.behave(Behaviour {
        head: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: \"abc\"\r\nAccept-Ranges: bytes\r\n\
               Content-MD5: x\r\nDigest: sha-256=x\r\nContent-Digest: sha-256=:x:\r\nRepr-Digest: sha-256=:x:\r\n\
               Last-Modified: Mon, 01 Mar 2027 00:00:00 GMT\r\nX-Other: kept\r\n"
            .to_owned(),
        body: r#"{"display_name":"Ada","id":12345678901234567890.10}"#.into(),
        ..Behaviour::default()
    });
    let client = stack.client();
    let (_, response) = exchange(&backend, client.get("/user").signed()).await;
    assert_eq!(
        response.text(),
        r#"{"nick":"Ada","id":12345678901234567890.10}"#
    );
    assert_eq!(response.header("x-other"), Some("kept"));
    for gone in [
        "accept-ranges",
        "etag",
        "last-modified",
        "content-md5",
        "digest",
        "content-digest",
        "repr-digest",
    ] {
        assert_eq!(response.header(gone), None, "{gone}");
    }
    // Without a change, all of it stays.
    let (_, response) = exchange(&backend, client.get("/other").signed()).await;
    assert_eq!(response.header("etag"), Some("\"abc\""));
    assert_eq!(response.header("digest"), Some("sha-256=x"));
}

#[tokio::test]
async fn a_status_without_a_body_says_nothing_of_one() {
    let empty = "[[versions.v3.changes]]\nname = 'empty'\npaths = ['/empty']\nresponse = [{ status = 204 }]\n";
    let (stack, backend) = start(empty).await;
    backend.behave(Behaviour {
        head: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nETag: \"a\"\r\n".to_owned(),
        ..Behaviour::default()
    });
    let client = stack.client();
    let (_, response) = exchange(&backend, client.get("/empty").signed()).await;
    assert_eq!(response.status, 204);
    for name in ["content-type", "content-encoding", "etag", "content-length"] {
        assert_eq!(response.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn a_route_of_its_own_gets_the_request_as_it_was_signed() {
    let converter = RecordingBackend::start().await;
    let route = format!(
        "[[versions.v3.routes]]\npath = '/user'\nbackend = '{}'\n[[versions.v2.routes]]\npath = '/new/'\nbackend = '{}'\n",
        converter.address(),
        converter.address()
    );
    let (stack, backend) = start(&route).await;
    let client = stack.client();
    let call = client.get("/user").query("nick", "a");
    let (got, response) = exchange(&converter, call).await;
    let got = got.unwrap();
    assert_eq!(response.status, 200);
    assert!(got.target.contains("sign="), "{}", got.target);
    assert_eq!(got.value("x-gateway-version"), Some("v3"));
    assert_eq!(got.value("x-gateway-bridge"), None);
    // The changed path takes the other version's route.
    let (got, _) = exchange(&converter, client.get("/old/1").signed()).await;
    let got = got.unwrap();
    assert_eq!(got.target, "/new/1?lang=en");
    assert_eq!(got.value("x-gateway-version"), Some("v2"));
    assert_eq!(got.value("x-gateway-bridge"), Some("v3"));
    assert!(backend.requests().is_empty());
}

#[tokio::test]
async fn a_client_can_send_no_header_of_the_gateway() {
    let (stack, backend) = start("").await;
    let client = stack.client();
    for version in ["v2", "v3"] {
        for name in [
            "X-Gateway-Bridge",
            "X-Gateway-Shadow",
            "X_Gateway_Bridge",
            "x-gateway_shadow",
        ] {
            let call = client
                .get("/other")
                .query("at", &now_ms().to_string())
                .header(name, "v1");
            let response = call.version(version).send().await;
            assert_eq!(response.status, 200);
            let got = backend.requests().pop().unwrap();
            let (bridge, signed) = match version {
                "v3" => (Some("v3"), Some("true")),
                _ => (None, None),
            };
            assert_eq!(got.value("x-gateway-signed"), signed, "{version} {name}");
            assert_eq!(got.value("x-gateway-bridge"), bridge, "{version} {name}");
            assert_eq!(got.value("x-gateway-shadow"), None, "{version} {name}");
            let spoofed = got.headers.iter().any(|(one, _)| one.contains('_'));
            assert!(!spoofed, "{:?}", got.headers);
        }
    }
    // Neither can a backend send them to a client.
    backend.behave(Behaviour {
        head: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Gateway-Bridge: v9\r\nX-Gateway-Shadow: v9\r\n".to_owned(),
        body: b"{}".to_vec(),
        ..Behaviour::default()
    });
    let (_, response) = exchange(&backend, client.get("/user").signed()).await;
    assert_eq!(response.header("x-gateway-bridge"), None);
    assert_eq!(response.header("x-gateway-shadow"), None);
}
