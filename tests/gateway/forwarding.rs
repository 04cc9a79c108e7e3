//! Requests are forwarded byte for byte, without the headers that must be removed. CONTRACT 1, 2 and 9.

use std::collections::BTreeSet;

use end_to_end::{
    clock::now_ms,
    documents::root,
    raw_connection::{RawConnection, request},
    recording_backend::{Behaviour, Delivery, RecordedRequest, RecordingBackend},
    signer::{Profile, Request, sign},
    stack::{APP_KEY, Stack},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// Sends bytes, expects 200, and returns the request as it arrived.
async fn pass(stack: &Stack, backend: &RecordingBackend, bytes: &[u8]) -> RecordedRequest {
    let before = backend.requests().len();
    let mut connection = stack.raw().await;
    connection.send(bytes).await;
    let response = connection.response().await.unwrap();
    let about = format!(
        "{}: {}",
        bytes.escape_ascii(),
        String::from_utf8_lossy(&response.body)
    );
    assert_eq!(response.status, 200, "{about}");
    backend.request_number(before + 1).await
}

/// The headers in the first table below a heading of a document, in lower case.
fn listed(document: &str, heading: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let (_, section) = text.split_once(&format!("\n### {heading}\n")).unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("| "));
    let rows = rows.take_while(|line| line.starts_with("| "));
    let first = rows.filter_map(|row| row.split('|').nth(1));
    let names = first.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let names = names.filter_map(|name| name.split(':').next());
    names.map(str::to_ascii_lowercase).collect()
}

/// A header that the gateway adds is in the contract.
#[tokio::test]
async fn the_contract_lists_the_headers_that_the_gateway_adds() {
    let backend = RecordingBackend::start().await;
    let settings = "gateway_secret = '8b1a9953c4611296a827abf8c47804d7'\n\
                    versions.v1.deprecated = '2026-01-01'\n\
                    versions.v1.sunset = '2100-01-01'\n[rate_limits.application]\nper_second = 100";
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(settings)
        .start()
        .await;
    let mut connection = stack.raw().await;
    let call = stack.client().post("/x").param("a", "1").bytes(&[]);
    connection.send(&call).await;
    let response = connection.response().await.unwrap();
    assert_eq!(response.status, 200);
    let unlisted = |names: Vec<&str>, listed: BTreeSet<String>| {
        let names = names.into_iter().map(str::to_ascii_lowercase);
        names
            .filter(|name| !listed.contains(name))
            .collect::<Vec<_>>()
    };
    let mut to_backend = listed("backends/CONTRACT.md", "Headers that a backend gets");
    to_backend.insert("content-type".to_owned());
    let arrived = &backend.requests()[0].headers;
    let arrived = arrived.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(unlisted(arrived, to_backend), [""; 0]);
    let mut to_client = listed("gateway/protocol/CONTRACT.md", "Response headers");
    // Of the message, and the backend's own.
    to_client.extend(["content-length", "content-type", "date"].map(str::to_owned));
    let lines = response.head.lines().skip(1);
    let names = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name);
    assert_eq!(unlisted(names.collect(), to_client), [""; 0]);
    // These are among them.
    assert!(response.header("deprecation").is_some() && response.header("ratelimit").is_some());
}

#[tokio::test]
async fn a_target_arrives_as_sent() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend);
    let stack = stack.gateway("[versions.v1]\npaths = 'as_sent'\n");
    let stack = stack.start().await;
    for target in [
        "/",
        "//",
        "//x",
        "/a//b/",
        "/a/../b/./c",
        "/%2e%2e/%2F",
        "/a;b=c,d:e@f!$&'()*+=~-._",
        "/%E5%BC%A0",
        "/%e5%bc%a0",
        "/%00",
        "/x?",
        "/?",
    ] {
        let arrived = pass(&stack, &backend, &request("GET", target, &[], b"")).await;
        assert_eq!(arrived.target, target);
        assert_eq!(arrived.method, "GET");
    }
}

#[tokio::test]
async fn a_query_and_a_form_arrive_as_sent() {
    let (stack, backend) = Stack::recording().await;
    let time = now_ms();
    for (query, form) in [
        ("a=1&b=2", ""),
        ("&&a=1&&", "b=2&&"),
        ("b=2&a", "c=&d"),
        ("a[]=1&a[]=2&q=/?:@!$'()*,;=", ""),
        // The URL standard's query set: what `fetch` sends as it is.
        ("q={a|b}^c`d\\e'f", ""),
        ("a=%e5%bc%a0+x", "b=%20+%2b"),
        ("", "a=1"),
        ("a=1", "b=%F0%9F%98%80"),
    ] {
        let whole_query = format!("{query}&time={time}");
        let profile = Profile::default();
        let unsigned = Request {
            method: "POST",
            path: "/x",
            query: &whole_query,
            body: form,
        };
        let sign = sign(&profile, APP_KEY, unsigned);
        let target = format!("/x?{whole_query}&sign={sign}");
        let length = format!("Content-Length: {}", form.len());
        let headers = [
            "Content-Type: application/x-www-form-urlencoded; charset=utf-8",
            &length,
        ];
        let bytes = request("POST", &target, &headers, form.as_bytes());
        let arrived = pass(&stack, &backend, &bytes).await;
        assert_eq!(arrived.target, target);
        assert_eq!(arrived.body, form.as_bytes());
    }
}

#[tokio::test]
async fn a_chunked_form_arrives_whole() {
    let (stack, backend) = Stack::recording().await;
    let (_, form) = stack
        .client()
        .post("/x")
        .param("a", "1")
        .param("b", "2")
        .parts();
    let mut chunks = Vec::new();
    for piece in form.as_bytes().chunks(7) {
        chunks.extend_from_slice(format!("{:X}\r\n", piece.len()).as_bytes());
        chunks.extend_from_slice(piece);
        chunks.extend_from_slice(b"\r\n");
    }
    chunks.extend_from_slice(b"0\r\n\r\n");
    let headers = [
        "Content-Type: application/x-www-form-urlencoded",
        "Transfer-Encoding: chunked",
    ];
    let arrived = pass(&stack, &backend, &request("POST", "/x", &headers, &chunks)).await;
    assert_eq!(arrived.body, form.as_bytes());
}

#[tokio::test]
async fn a_form_of_the_maximum_size_arrives_whole() {
    let (stack, backend) = Stack::recording().await;
    let client = stack.client();
    let (_, smallest) = client.post("/x").param("a", "").parts();
    let filler = "x".repeat(64 * 1024 - smallest.len());
    let call = client.post("/x").param("a", &filler);
    assert_eq!(call.parts().1.len(), 64 * 1024);
    call.send().await.ok();
    assert_eq!(backend.requests()[0].body.len(), 64 * 1024);
    let too_large = client.post("/x").param("a", &format!("{filler}x"));
    too_large.send().await.problem(413, "body_too_large");
    assert_eq!(backend.requests().len(), 1);
}

/// Lines that a client may send and that must not reach a backend with this value.
const UNWANTED: [&str; 33] = [
    "X-Gateway-Secret: guess",
    "X-Gateway-App: another",
    "X-Gateway-App-Id: 1",
    "X-Gateway-Version: v9",
    "X-Gateway-Version-Source: header",
    "X-Gateway-Anything: 1",
    "x_gateway_app_id: 1",
    "X_Gateway_App: another",
    "acme_x_authorization: another",
    "Acme_X-App: another",
    "Acme-X_Version: v2",
    "x_request_id: mine",
    "x_forwarded_for: 1.2.3.4",
    "Forwarded: for=1.2.3.4",
    "X-Forwarded-Server: 1.2.3.4",
    "X-Real-IP: 1.2.3.4",
    "tracestate: a=b",
    "X-Original-URL: /admin",
    "X-Rewrite-URL: /admin",
    "X-HTTP-Method-Override: DELETE",
    "Keep-Alive: timeout=5",
    "Proxy-Authorization: Basic x",
    "Proxy-Connection: keep-alive",
    "TE: trailers",
    "Upgrade: websocket",
    "X-Method-Override: DELETE",
    "b3: 0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
    "X-B3-Sampled: 1",
    "baggage: a=b",
    "X-Cloud-Trace-Context: 105445aa7843bc8bf206b12000100000/1;o=1",
    "uber-trace-id: 1:2:0:1",
    "X-Datadog-Trace-Id: 1",
    "x_amzn_trace_id: Root=1",
];

#[tokio::test]
async fn unwanted_headers_are_removed() {
    let (stack, backend) = Stack::recording().await;
    for line in UNWANTED {
        let arrived = pass(&stack, &backend, &request("GET", "/x", &[line], b"")).await;
        let (name, value) = line.split_once(": ").unwrap();
        let name = name.to_ascii_lowercase();
        for (arrived_name, arrived_value) in &arrived.headers {
            let is_unwanted = *arrived_name == name || arrived_name.contains('_');
            assert!(
                !(is_unwanted && arrived_value == value),
                "{line} arrived: {:?}",
                arrived.headers
            );
        }
    }
}

#[tokio::test]
async fn a_client_cannot_set_the_gateways_own_headers() {
    let (stack, backend) = Stack::recording().await;
    let claims = [
        "X-Forwarded-For: 1.2.3.4",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: evil.example",
        "X-Request-Id: mine",
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "Acme-X-Version: v2",
    ];
    let arrived = pass(&stack, &backend, &request("GET", "/x", &claims, b"")).await;
    assert_eq!(arrived.value("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(arrived.value("x-forwarded-proto"), Some("http"));
    assert_eq!(arrived.value("x-forwarded-host"), Some("gateway.example"));
    assert_ne!(arrived.value("x-request-id"), Some("mine"));
    assert_eq!(arrived.value("x-gateway-version"), Some("v2"));
    assert_eq!(arrived.value("x-gateway-version-source"), Some("header"));
    let traceparent = arrived.value("traceparent");
    assert!(
        !traceparent.is_some_and(|value| value.contains("0af7651916cd43dd")),
        "{traceparent:?}"
    );
}

#[tokio::test]
async fn a_trusted_proxys_headers_are_kept_and_extended() {
    let backend = RecordingBackend::start().await;
    let trusting = Stack::builder().in_front_of(&backend);
    let stack = trusting
        .gateway("trusted_proxies = [\"127.0.0.0/8\"]")
        .start()
        .await;
    let claims = [
        "X-Forwarded-For: 203.0.113.7",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: public.example",
        "X-Request-Id: from-the-proxy",
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ];
    let arrived = pass(&stack, &backend, &request("GET", "/x", &claims, b"")).await;
    assert_eq!(
        arrived.value("x-forwarded-for"),
        Some("203.0.113.7, 127.0.0.1")
    );
    assert_eq!(arrived.value("x-forwarded-proto"), Some("https"));
    assert_eq!(arrived.value("x-forwarded-host"), Some("public.example"));
    assert_eq!(arrived.value("x-request-id"), Some("from-the-proxy"));
    let traceparent = arrived.value("traceparent").unwrap();
    assert!(
        traceparent.contains("0af7651916cd43dd8448eb211c80319c"),
        "{traceparent}"
    );
}

#[tokio::test]
async fn headers_named_by_connection_are_removed() {
    let (stack, backend) = Stack::recording().await;
    let lines = [
        "Connection: close, X-Private, Acme-X-Version",
        "X-Private: 1",
        "Acme-X-Version: v2",
    ];
    let arrived = pass(&stack, &backend, &request("GET", "/x", &lines, b"")).await;
    assert_eq!(arrived.value("x-private"), None);
    assert_eq!(arrived.value("acme-x-version"), None);
    assert_eq!(arrived.value("x-gateway-version"), Some("v1"));
    // Headers that the gateway adds cannot be removed this way.
    let lines = ["Connection: close, X-Gateway-Version, X-Request-Id, X-Forwarded-For"];
    let arrived = pass(&stack, &backend, &request("GET", "/x", &lines, b"")).await;
    for name in ["x-gateway-version", "x-request-id", "x-forwarded-for"] {
        assert!(
            arrived.value(name).is_some(),
            "{name}: {:?}",
            arrived.headers
        );
    }
}

#[tokio::test]
async fn the_gateways_secret_reaches_the_backend_only() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("gateway_secret = \"hush-hush-4283fefc63f0\"");
    let stack = stack.start().await;
    let response = stack.client().get("/x").send().await;
    response.ok();
    assert!(!format!("{:?}", response.headers).contains("hush"));
    assert_eq!(
        backend.requests()[0].value("x-gateway-secret"),
        Some("hush-hush-4283fefc63f0")
    );
}

#[tokio::test]
async fn internal_headers_are_removed_from_responses() {
    let (stack, backend) = Stack::recording().await;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Gateway-App-Id: 7\r\n\
                x-gateway-secret: hush\r\nX-Gateway-Other: 1\r\nX-Mine: 1\r\nSet-Cookie: a=1\r\n\
                Set-Cookie: b=2\r\n";
    backend.behave(Behaviour {
        head: head.to_owned(),
        ..Behaviour::default()
    });
    let response = stack.client().get("/x").send().await;
    response.ok();
    let internal = response
        .headers
        .keys()
        .find(|name| name.as_str().starts_with("x-gateway"));
    assert_eq!(internal, None);
    assert_eq!(response.header("x-mine"), Some("1"));
    assert_eq!(response.headers.get_all("set-cookie").iter().count(), 2);
}

#[tokio::test]
async fn a_response_names_the_request_id_and_the_version() {
    let (stack, backend) = Stack::recording().await;
    let passed = stack.client().get("/x").send().await;
    passed.ok();
    assert_eq!(passed.header("acme-x-version"), Some("v1"));
    assert_eq!(passed.header("acme-x-version-source"), Some("default"));
    let request_id = passed.header("x-request-id").unwrap();
    assert_eq!(
        backend.requests()[0].value("x-request-id"),
        Some(request_id)
    );
    let rejected = stack
        .client()
        .get("/x")
        .param("a", "1")
        .unsigned()
        .send()
        .await;
    rejected.problem(403, "time_missing");
    assert_ne!(rejected.header("x-request-id"), Some(request_id));
}

#[tokio::test]
async fn a_response_arrives_as_the_backend_sent_it() {
    let (stack, backend) = Stack::recording().await;
    let body: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for delivery in [Delivery::Promptly, Delivery::ThenClose] {
        let head = "HTTP/1.1 418 Teapot\r\nContent-Type: application/octet-stream\r\n".to_owned();
        backend.behave(Behaviour {
            head,
            body: body.clone(),
            delivery,
        });
        let response = stack.client().get("/x").send().await;
        assert_eq!(response.status, 418);
        assert_eq!(response.body, body);
    }
}

#[tokio::test]
async fn prefix_and_header_names_are_configurable() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend);
    let stack = stack.gateway("prefix = \"Zeta-9\"\n[headers]\nversion = \"Api-Version\"");
    let stack = stack.start().await;
    let lines = [
        "Acme-X-Version: v1",
        "Acme-X-Version: v1",
        "Api-Version: v2",
    ];
    let arrived = pass(&stack, &backend, &request("GET", "/x", &lines, b"")).await;
    assert_eq!(arrived.value("x-gateway-version"), Some("v2"));
    let mut client = stack.client();
    client.prefix = "Zeta-9".to_owned();
    let response = client.get("/x").convention("Language", "ja").send().await;
    assert_eq!(response.header("api-version"), Some("v1"));
}

#[tokio::test]
async fn an_unusual_connection_header_is_accepted() {
    let (stack, _backend) = Stack::recording().await;
    let many = format!("Connection: close{}", ", x-y".repeat(40));
    let lines = [
        &*many,
        "Connection: close, Host",
        "Connection: close, Content-Length, Transfer-Encoding",
        "Connection: close, X-Forwarded-For",
        "Connection: close, :authority",
        "Connection: close, \"X-Forwarded-For\"",
        "Connection: close, a b",
        "Connection: ,,close,,",
        "Connection: close\r\nConnection: close",
        "Connection: keep-alive, close",
    ];
    let mut wrong = Vec::new();
    for line in lines {
        let mut connection = stack.raw().await;
        connection.send(&request("GET", "/x", &[line], b"")).await;
        let status = connection.response().await.map(|response| response.status);
        if status != Some(200) {
            wrong.push(format!("{line}: {status:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn responses_are_never_mixed_up() {
    let (stack, backend) = Stack::recording().await;
    backend.behave(Behaviour::responding(Delivery::Echoing));
    let mut tasks = tokio::task::JoinSet::new();
    for connection in 0..40 {
        let gateway = stack.addresses().gateway;
        let client = stack.client();
        tasks.spawn(async move {
            let mut raw = RawConnection::open(gateway).await;
            for number in 0..25 {
                let call = client
                    .get("/x")
                    .param("of", &format!("{connection}-{number}"));
                raw.send(&call.bytes(&[])).await;
                let response = raw.response().await.unwrap();
                assert_eq!(String::from_utf8_lossy(&response.body), call.parts().0);
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(backend.requests().len(), 1000);
}

/// Answers each form 200 if its first read returns more than the head, and 500 otherwise.
async fn reads_once(listener: TcpListener) -> std::io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let mut buffer = [0; 16 * 1024];
            while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                let is_head_alone = buffer[..length].ends_with(b"\r\n\r\n");
                let status = if is_head_alone { 500 } else { 200 };
                let response = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(response.as_bytes()).await?;
            }
            std::io::Result::Ok(())
        });
    }
}

/// In two pieces, the second would wait 40 ms for the delayed acknowledgement of the first.
#[tokio::test]
async fn a_form_arrives_in_one_piece_with_its_head() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let builder = Stack::builder().in_front_of_address(listener.local_addr().unwrap());
    tokio::spawn(reads_once(listener));
    let stack = builder.start().await;
    let mut connection = stack.raw().await;
    for size in [10, 1000, 8000, 10, 8000, 10, 10, 10] {
        let value = "x".repeat(size);
        let (_, form) = stack.client().post("/x").param("a", &value).parts();
        let length = format!("Content-Length: {}", form.len());
        let media = "Content-Type: application/x-www-form-urlencoded";
        let request = request("POST", "/x", &[media, &length], form.as_bytes());
        connection.send(&request).await;
        assert_eq!(connection.response().await.unwrap().status, 200, "{size}");
    }
}

/// Answers the first request of the first connection, breaks off in the response to the second, and answers all others.
async fn breaks_off(listener: TcpListener) -> std::io::Result<()> {
    const WHOLE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let mut buffer = [0; 16 * 1024];
    let (mut first, _) = listener.accept().await?;
    for response in [WHOLE, b"HTTP/1.1 2"] {
        let _whole_request = first.read(&mut buffer).await?;
        first.write_all(response).await?;
    }
    drop(first);
    loop {
        let (mut other, _) = listener.accept().await?;
        let _whole_request = other.read(&mut buffer).await?;
        other.write_all(WHOLE).await?;
    }
}

/// Only a request without a single byte of a response is retried.
#[tokio::test]
async fn a_request_whose_response_began_is_not_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // With one thread, the backend connection is idle again before the next request takes one from the pool.
    let builder = Stack::builder()
        .in_front_of_address(listener.local_addr().unwrap())
        .gateway("threads = 1");
    tokio::spawn(breaks_off(listener));
    let stack = builder.start().await;
    let mut statuses = Vec::new();
    let mut connection = stack.raw().await;
    for _ in 0..2 {
        connection.send(&request("GET", "/x", &[], b"")).await;
        statuses.push(connection.response().await.unwrap().status);
    }
    assert_eq!(statuses, [200, 502]);
}

#[tokio::test]
async fn headers_that_name_another_client_user_or_target_are_always_removed() {
    let removed = [
        "X-Override-URL: /admin",
        "X-Envoy-Original-Path: /admin",
        "X-Original-Forwarded-For: 203.0.113.9",
        "X_Original_Forwarded_For: 203.0.113.9",
        "CF-Connecting-IP: 203.0.113.9",
        "cf_connecting_ip: 203.0.113.9",
        "Client-IP: 203.0.113.9",
        "X-Client-IP: 203.0.113.9",
        "True-Client-IP: 203.0.113.9",
        "X-Cluster-Client-IP: 203.0.113.9",
        "X-Method: DELETE",
        "X_Method: DELETE",
        "X-Scheme: https",
        "Front-End-Https: on",
        "Client-Cert: :MIIB:",
        "Client-Cert-Chain: :MIIB:",
        "X-SSL-Client-Verify: SUCCESS",
        "SSL_CLIENT_S_DN: CN=admin",
        "ssl-client-verify: SUCCESS",
        "X-Client-Cert: MIIB",
        "X-Forwarded-Client-Cert: Subject=admin",
        "X-Forwarded-Tls-Client-Cert-Info: Subject=admin",
        "X-ARR-ClientCert: MIIB",
        "X-Amzn-Mtls-Clientcert: MIIB",
        "Remote-User: admin",
        "Remote_User: admin",
        "X-Remote-Group: system:masters",
        "X-Remote-Extra-Scopes: all",
        "X-Forwarded-User: admin",
        "X-Forwarded-Access-Token: guess",
        "X-Auth-Request-Email: admin@acme.example",
        "X-WEBAUTH-USER: admin",
        "X-Goog-Authenticated-User-Email: admin",
        "X-Goog-IAP-JWT-Assertion: guess",
        "X-Amzn-Oidc-Identity: admin",
        "X-MS-CLIENT-PRINCIPAL-NAME: admin",
        "Cf-Access-Authenticated-User-Email: admin",
        "Tailscale-User-Login: admin",
        "$WSRU: admin",
    ];
    for trusted in ["", "trusted_proxies = [\"127.0.0.1\"]"] {
        let backend = RecordingBackend::start().await;
        let stack = Stack::builder().in_front_of(&backend).gateway(trusted);
        let stack = stack.start().await;
        let arrived = pass(&stack, &backend, &request("GET", "/x", &removed, b"")).await;
        for line in removed {
            let (name, _) = line.split_once(':').unwrap();
            let name = name.to_lowercase();
            assert_eq!(arrived.value(&name), None, "{name} {trusted}");
        }
    }
}

#[tokio::test]
async fn further_headers_of_traces_are_passed_on_from_a_trusted_proxy_only() {
    let lines = [
        "b3: 0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        "baggage: a=b",
        "X-Amzn-Trace-Id: Root=1",
        "X-Datadog-Trace-Id: 1",
    ];
    for (trusted, passes) in [("", false), ("trusted_proxies = [\"127.0.0.1\"]", true)] {
        let backend = RecordingBackend::start().await;
        let stack = Stack::builder().in_front_of(&backend).gateway(trusted);
        let stack = stack.start().await;
        let arrived = pass(&stack, &backend, &request("GET", "/x", &lines, b"")).await;
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            let expected = passes.then_some(value);
            assert_eq!(arrived.value(&name.to_lowercase()), expected, "{name}");
        }
    }
}

#[tokio::test]
async fn a_trusted_proxys_trace_is_continued_only_if_it_is_valid() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend);
    let stack = stack.gateway("trusted_proxies = [\"127.0.0.1\"]");
    let stack = stack.start().await;
    let (trace, parent) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let (no_trace, no_parent) = ("0".repeat(32), "0".repeat(16));
    for (version, trace, parent, is_continued) in [
        ("00", trace, parent, true),
        ("00", &no_trace, parent, false),
        ("00", trace, &no_parent, false),
        ("01", trace, parent, true),
        ("ff", trace, parent, false),
    ] {
        let appended = if version == "01" { "-more" } else { "" };
        let given = format!("{version}-{trace}-{parent}-01{appended}");
        let line = format!("traceparent: {given}");
        let bytes = request("GET", "/x", &[&line, "tracestate: a=b"], b"");
        let arrived = pass(&stack, &backend, &bytes).await;
        let forwarded = arrived.value("traceparent").unwrap();
        let continued = format!("00-{trace}-{parent}-01");
        assert_eq!(forwarded == continued, is_continued, "{given}");
        assert!(!forwarded.contains(&*no_parent), "{forwarded}");
        let state = is_continued.then_some("a=b");
        assert_eq!(arrived.value("tracestate"), state, "{given}");
    }
}
