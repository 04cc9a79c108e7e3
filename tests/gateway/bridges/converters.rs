//! Converters: what they get, what they may return, and each way in which one fails.

use end_to_end::{
    clock::now_ms,
    metrics::Scrape,
    program::Program,
    raw_connection::{RawConnection, request as request_of},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    scripted_backend::{Ending, Pace, Script, ScriptedBackend, Start},
    stack::Stack,
    waiting::until,
};
use serde_json::{Value, json};

/// Version 3 has no backend of its own; a converter changes what its clients send and get.
async fn start(converter: &str) -> (Stack, RecordingBackend) {
    start_with(converter, "").await
}

async fn start_with(converter: &str, further: &str) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let toml = format!(
        "[versions.v2]\ngateway_secret = 'of-v2-4283fefc63f0cd0e'\nroutes = [{{ path = '/other/', backend = '{converter}' }}]\n\
         [versions.v3]\nbridge = 'v2'\nheaders.response.set = ['X-Fixed: 1']\n[[versions.v3.changes]]\nname = 'steps'\npaths = ['/order']\n\
         request = [{{ path = '/order', to = '/orders/{{id}}' }}, {{ set_header = 'X-A', value = 'b' }}]\n\
         response = [{{ constant = '$.last', value = [1.5, {{ a = true }}] }}, {{ remove_header = 'X-B' }}]\n\
         [[versions.v3.changes]]\nname = 'orders'\npaths = ['/order', '/orders']\nconverter = '{converter}'\n"
    );
    let builder = Stack::builder().in_front_of(&backend).gateway(&toml);
    (builder.gateway(further).start().await, backend)
}

fn script(status: &str, body: &Value) -> Script {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    Script {
        bytes: format!("{head}{body}").into_bytes(),
        pace: Pace::AtOnce,
        start: Start::AfterRequest,
        ending: Ending::Open,
    }
}

fn request() -> Value {
    json!({ "method": "POST", "path": "/orders/9", "query": "a=%20", "headers": { "x-new": "1", "content-type": "text/plain" },
            "body": "new" })
}

fn response() -> Value {
    json!({ "status": 201, "headers": { "content-type": "application/json", "x-b": "2" }, "body": { "big": 1 } })
}

#[tokio::test]
async fn a_converter_changes_all_but_what_is_the_gateways() {
    let converter = ScriptedBackend::start().await;
    converter.script("/request", script("200 OK", &request()));
    converter.script("/response", script("200 OK", &response()));
    let (stack, backend) = start(&converter.address().to_string()).await;
    backend.behave(Behaviour {
        head: "HTTP/1.1 204 No Content\r\nETag: \"a\"\r\nX-Old: 1\r\nSet-Cookie: a=b\r\n"
            .to_owned(),
        body: Vec::new(),
        ..Behaviour::default()
    });
    let client = stack.client();
    let call = client.get("/order").query("id", "a b").version("v3");
    let got = call.header("X-Mine", "1").send().await;
    assert_eq!(
        (got.status.as_u16(), got.header("x-b"), got.header("x-old")),
        (201, None, None)
    );
    assert_eq!(
        (got.header("etag"), got.header("set-cookie")),
        (None, Some("a=b"))
    );
    assert_eq!(got.header("acme-x-version"), Some("v3"));
    assert_eq!(got.header("x-fixed"), Some("1"));
    assert_eq!(got.text(), r#"{"big":1,"last":[1.5,{"a":true}]}"#);
    let sent = backend.requests().pop().unwrap();
    assert_eq!(
        (&*sent.method, &*sent.target, &*sent.body),
        ("POST", "/orders/9?a=%20", &b"new"[..])
    );
    for (name, value) in [
        ("x-new", Some("1")),
        ("x-mine", None),
        ("x-a", None),
        ("content-type", Some("text/plain")),
        ("x-gateway-secret", Some("of-v2-4283fefc63f0cd0e")),
        ("x-gateway-bridge", Some("v3")),
        ("accept-encoding", Some("identity")),
    ] {
        assert_eq!(sent.value(name), value, "{name}");
    }
}

/// What a converter gets, by one that records it; it returns no document.
#[tokio::test]
async fn a_converter_gets_what_it_needs_to_call_the_other_version() {
    let converter = RecordingBackend::start().await;
    let (stack, backend) = start(&converter.address().to_string()).await;
    let client = stack.client();
    let call = client
        .get("/order")
        .query("id", "a b")
        .query("c", "d")
        .version("v3");
    call.send().await.problem(502, "bridge_failed");
    let got = converter.requests().pop().unwrap();
    assert_eq!((&*got.method, &*got.target), ("POST", "/request"));
    let document: Value = serde_json::from_slice(&got.body).unwrap();
    assert_eq!(document["path"], "/orders/a%20b");
    assert_eq!(
        (&document["method"], &document["query"]),
        (&"GET".into(), &"c=d".into())
    );
    assert_eq!(document["headers"]["x-a"], "b");
    assert_eq!(document.get("body"), None);
    let v2 = &document["backend"];
    assert_eq!(
        v2["addresses"],
        json!([format!("http://{}", backend.address())])
    );
    assert_eq!(
        (&v2["version"], &v2["headers"]["x-gateway-version"]),
        (&"v2".into(), &"v2".into())
    );
    assert_eq!(v2["headers"]["x-gateway-secret"], "of-v2-4283fefc63f0cd0e");
    assert_eq!(
        v2["headers"]["x-request-id"].as_str(),
        got.value("x-request-id")
    );
    assert!(backend.requests().is_empty());
}

#[tokio::test]
async fn whatever_a_converter_does_wrong_is_a_whole_error() {
    let converter = ScriptedBackend::start().await;
    let (stack, backend) = start(&converter.address().to_string()).await;
    let with = |mut document: Value, member: &str, value: Value| {
        document[member] = value;
        script("200 OK", &document)
    };
    let bytes = |text: String| Script {
        bytes: text.into_bytes(),
        ..script("200 OK", &request())
    };
    let bad_requests = [
        (script("500 Oops", &request()), "its status was 500"),
        (script("200 OK", &json!([])), "it returned no document"),
        (
            with(request(), "method", json!("HEAD")),
            "it returned no method",
        ),
        (
            with(request(), "path", json!("/a/../b")),
            "no canonical path",
        ),
        (with(request(), "path", json!("/a b")), "no canonical path"),
        (
            with(request(), "path", json!("/other/1")),
            "a path of another route",
        ),
        (
            with(request(), "query", json!("a b\r\n")),
            "a malformed query",
        ),
        (
            with(request(), "body", json!({})),
            "its content-type does not fit",
        ),
        (
            with(
                request(),
                "headers",
                json!({ "X-Gateway-Secret": "geheim" }),
            ),
            "the header x-gateway-secret",
        ),
        (
            with(request(), "headers", json!({ "acme-x-version": "v2" })),
            "the header acme-x-version",
        ),
        (
            with(
                request(),
                "headers",
                json!({ "transfer-encoding": "chunked" }),
            ),
            "the header transfer-encoding",
        ),
        (
            with(request(), "headers", json!({ "x-a": "b\r\nx-c: d" })),
            "a malformed header x-a",
        ),
        (
            with(request(), "headers", json!({ "x-a": "a".repeat(70_000) })),
            "too large a head",
        ),
        (
            with(
                request(),
                "headers",
                json!({ "Content-Type": "application/json", "content-type": "text/plain" }),
            ),
            "the header content-type twice",
        ),
        (
            with(request(), "headers", json!({ "HOST": "evil.example" })),
            "the header host",
        ),
        (
            with(request(), "headers", json!({ "cOnTeNt-LeNgTh": "0" })),
            "the header content-length",
        ),
        (
            with(request(), "headers", json!({ "aCme-x-Time": "0" })),
            "the header acme-x-time",
        ),
        (
            with(request(), "more", json!("a".repeat(1 << 20))),
            "more than 1048576 bytes",
        ),
        (
            // Chunks without an end.
            bytes(format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}",
                "8\r\n{{{{{{{{\r\n".repeat(200_000)
            )),
            "more than 1048576 bytes",
        ),
        (
            bytes("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(10_000)),
            "interim responses",
        ),
        (
            bytes("HTTP/1.1 200 OK\r\nX-A: b\nX-C: d\r\n\r\n".to_owned()),
            "a line feed without a carriage return",
        ),
    ];
    let client = stack.client();
    let fails = async |why: &str| {
        let logged = |log: &str| log.matches(why).count();
        let before = logged(&stack.log(Program::Gateway));
        let call = client.get("/orders").query("id", "1").version("v3");
        let problem = call.send().await.problem(502, "bridge_failed");
        assert!(
            problem["detail"].as_str().unwrap().contains("orders"),
            "{problem}"
        );
        let log = until(why, || async {
            let log = stack.log(Program::Gateway);
            (logged(&log) > before).then_some(log)
        })
        .await;
        assert!(
            log.contains("the change orders does not apply") && !log.contains("geheim"),
            "{log}"
        );
    };
    for (script, why) in bad_requests {
        converter.script("/request", script);
        fails(why).await;
    }
    assert!(backend.requests().is_empty());
    converter.script("/request", script("200 OK", &request()));
    for (script, why) in [
        (
            with(response(), "status", json!(101)),
            "no status from 200 to 599",
        ),
        (
            with(
                response(),
                "headers",
                json!({ "content-type": "application/json", "set-cookie": "a=b" }),
            ),
            "the header set-cookie",
        ),
        (
            with(
                response(),
                "headers",
                json!({ "content-type": "application/json", "deprecation": "@1" }),
            ),
            "the header deprecation",
        ),
        (
            with(
                response(),
                "headers",
                json!({ "content-type": "application/json", "x-fixed": "2" }),
            ),
            "the header x-fixed",
        ),
        (
            with(response(), "status", json!("200")),
            "it returned no document",
        ),
    ] {
        converter.script("/response", script);
        fails(why).await;
    }
    converter.script("/response", script("200 OK", &response()));
    backend.behave(Behaviour {
        body: "{".into(),
        ..Behaviour::default()
    });
    fails("the body is not JSON").await;
    until("the failures to be counted", || async {
        let metrics = Scrape::of(stack.addresses().management).await;
        let labels = [("version", "v3"), ("change", "orders")];
        let failures = metrics.sum("signpost_bridge_failures_total", &labels);
        (failures == 27.0).then_some(())
    })
    .await;
}

/// What no JSON library keeps: digits beyond 2^53, half a surrogate pair, members that are there twice, 100,000 levels.
#[tokio::test]
async fn a_body_keeps_its_bytes() {
    let converter = ScriptedBackend::start().await;
    let (stack, backend) = start(&converter.address().to_string()).await;
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let body =
        format!(r#"{{"a":12345678901234567890.10,"s":"\ud800","a":1E400,"d":{open}{close}}}"#);
    let of = |rest: &str| {
        let headers = r#""headers":{"content-type":"application/json","x-a":"é"}"#;
        let text = format!("{{{rest},{headers},\"body\":{body}}}");
        let length = text.len();
        Script {
            bytes: format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}")
                .into_bytes(),
            ..script("200 OK", &json!({}))
        }
    };
    let post = r#""method":"POST","path":"/orders","query":"""#;
    converter.script("/request", of(post));
    converter.script("/response", of(r#""status":200"#));
    backend.behave(Behaviour {
        head: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n".to_owned(),
        body: body.clone().into(),
        ..Behaviour::default()
    });
    let client = stack.client();
    let got = client.get("/orders").version("v3").signed().send().await;
    assert!(got.status == 200 && got.text() == body);
    let sent = backend.requests().pop().unwrap();
    assert!(sent.body == body.as_bytes());
    assert_eq!(sent.value("x-a"), Some("é"));
}

/// The other version's 204 has no body, whatever its converter says.
#[tokio::test]
async fn a_response_without_a_body_gets_none() {
    let converter = ScriptedBackend::start().await;
    converter.script("/request", script("200 OK", &request()));
    let mut document = response();
    document["status"] = json!(204);
    converter.script("/response", script("200 OK", &document));
    let (stack, backend) = start(&converter.address().to_string()).await;
    backend.behave(Behaviour {
        head: "HTTP/1.1 204 No Content\r\n".to_owned(),
        body: Vec::new(),
        ..Behaviour::default()
    });
    let client = stack.client();
    let got = client.get("/orders").version("v3").signed().send().await;
    assert_eq!((got.status.as_u16(), &*got.text()), (204, ""));
    let log = stack
        .log_with(Program::Gateway, "GET /orders with 204")
        .await;
    assert!(log.contains("size_bytes=0"), "{log}");
}

/// A stream is not held: it takes no place from others.
#[tokio::test]
async fn what_passes_has_no_place() {
    let converter = ScriptedBackend::start().await;
    let address = converter.address();
    let further = format!(
        "default_version = 'v3'\n[connections]\nper_address = 5000\n\
         [[versions.v3.changes]]\nname = 'streams'\npaths = ['/other/**']\nconverter = '{address}'\n"
    );
    let (stack, _backend) = start_with(&address.to_string(), &further).await;
    let get = json!({ "method": "GET", "path": "/other/1", "query": "", "headers": {} });
    converter.script("/request", script("200 OK", &get));
    let head = "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\na";
    let stream = Script {
        bytes: head.as_bytes().to_vec(),
        ..script("404 Not Found", &get)
    };
    converter.script("/other/1", stream);
    let mut waiting = Vec::new();
    // More than the places of a network.
    for _ in 0..257 {
        let mut connection = RawConnection::open(stack.addresses().gateway).await;
        let request = request_of("GET", "/other/1", &[], b"");
        connection.send(&request).await;
        // Its head: the body never ends.
        let response = connection.response_to_head().await.unwrap();
        assert_eq!(response.status, 404);
        waiting.push(connection);
    }
}

#[tokio::test]
async fn a_converter_that_is_down_or_breaks_off_fails_its_requests_only() {
    let mut converter = RecordingBackend::start().await;
    let (stack, backend) = start(&converter.address().to_string()).await;
    let client = stack.client();
    let orders = || client.get("/orders").version("v3").signed();
    for delivery in [Delivery::HangUp, Delivery::BreakOff] {
        converter.behave(Behaviour {
            body: request().to_string().into(),
            ..Behaviour::responding(delivery)
        });
        orders().send().await.problem(502, "bridge_failed");
    }
    converter.end().await;
    orders().send().await.problem(502, "bridge_failed");
    assert!(backend.requests().is_empty());
    assert_eq!(
        client
            .get("/free")
            .version("v3")
            .signed()
            .send()
            .await
            .status,
        200
    );
}

/// The client leaves while its converter thinks: the call ends with it.
#[tokio::test]
async fn a_cancelled_request_cancels_the_call() {
    let converter = RecordingBackend::start().await;
    converter.behave(Behaviour::responding(Delivery::Never));
    let (stack, backend) = start(&converter.address().to_string()).await;
    let client = stack.client();
    let call = client.get("/orders").version("v3").signed();
    let began = now_ms();
    tokio::select! {
        _ = call.try_send() => panic!("nobody has answered"),
        _ = converter.request_number(1) => {}
    }
    drop(call);
    until(
        "the request to be recorded as one of a client that left",
        || async {
            stack
                .log(Program::Gateway)
                .contains("the client disconnected")
                .then_some(())
        },
    )
    .await;
    assert!(now_ms() - began < 30_000);
    assert!(backend.requests().is_empty());
}

/// Nobody has more calls than places: a network gets a quarter of the 1,024.
#[tokio::test]
async fn a_network_leaves_calls_to_others() {
    let converter = RecordingBackend::start().await;
    converter.behave(Behaviour::responding(Delivery::Never));
    let further = "default_version = 'v3'\n[connections]\nper_address = 5000\n";
    let (stack, _backend) = start_with(&converter.address().to_string(), further).await;
    let address = stack.addresses().gateway;
    let mut waiting = Vec::new();
    for _ in 0..256 {
        let mut connection = RawConnection::open(address).await;
        connection
            .send(&request_of("GET", "/orders", &[], b""))
            .await;
        waiting.push(connection);
    }
    converter.request_number(256).await;
    let client = stack.client();
    let beyond = client.get("/orders").unsigned().send().await;
    beyond.problem(502, "bridge_failed");
    stack.log_with(Program::Gateway, "others are held").await;
    assert_eq!(converter.requests().len(), 256);
    let mut other = RawConnection::open_from([127, 0, 0, 2].into(), address).await;
    other.send(&request_of("GET", "/orders", &[], b"")).await;
    converter.request_number(257).await;
    // Who leaves, leaves nothing.
    drop(waiting);
    until("a place to be free", || async {
        let call = client.get("/orders").unsigned();
        tokio::select! {
            response = call.send() => { response.problem(502, "bridge_failed"); None }
            _ = converter.request_number(258) => Some(()),
        }
    })
    .await;
}

#[tokio::test]
async fn an_unsigned_request_gets_no_more_than_it_had() {
    let converter = ScriptedBackend::start().await;
    converter.script("/response", script("200 OK", &response()));
    let (stack, backend) = start(&converter.address().to_string()).await;
    backend.behave(Behaviour {
        body: "{}".into(),
        ..Behaviour::default()
    });
    let client = stack.client();
    let get = json!({ "method": "GET", "path": "/orders", "query": "", "headers": {} });
    let send = async |member: &str, value: Value| {
        let mut document = get.clone();
        document[member] = value;
        converter.script("/request", script("200 OK", &document));
        client.get("/orders").version("v3").unsigned().send().await
    };
    for (member, value) in [
        ("method", json!("DELETE")),
        ("path", json!("/admin")),
        ("query", json!("a=1")),
        ("body", json!("a=1")),
    ] {
        send(member, value).await.problem(403, "sign_missing");
    }
    assert!(backend.requests().is_empty());
    assert_eq!(send("headers", json!({ "x-a": "1" })).await.status, 201);
}
