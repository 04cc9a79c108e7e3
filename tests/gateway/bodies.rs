//! Bodies that are no forms, further methods, signatures in headers, versions by path or host. CONTRACT 2, 3 and 5.

use std::time::Duration;

use end_to_end::{
    metrics::Scrape,
    raw_connection::request,
    recording_backend::{Behaviour, Delivery, RecordedRequest, RecordingBackend},
    response::Response,
    signer::sha256_hex,
    stack::{Stack, StackBuilder},
};
use reqwest::Method;
use serde_json::json;

/// Takes JSON of all methods, and anything below `/files/`.
const SETTINGS: &str = "[sign]
carrier = 'both'
[spool]
folder = '/tmp'
bytes = 67108864
[versions.v2]
backend = '$BACKEND'
methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']
bodies = 'json'
path_prefix = '/v2'
hosts = ['v2.example.com']
routes = [{ path = '/files/**', backend = '$BACKEND', bodies = 'any', max_body = 8388608, methods = ['GET', 'PUT'] }]
";

fn settings(backend: &RecordingBackend) -> String {
    SETTINGS.replace("$BACKEND", &backend.address().to_string())
}

async fn start(backend: &RecordingBackend) -> Stack {
    built(Stack::builder(), backend).start().await
}

fn built(builder: StackBuilder, backend: &RecordingBackend) -> StackBuilder {
    builder.in_front_of(backend).gateway(&settings(backend))
}

/// The request that arrived, of a call that is answered with 200.
async fn arrived(backend: &RecordingBackend, response: Response) -> RecordedRequest {
    assert_eq!(response.status, 200, "{}", response.summary());
    backend.request_number(backend.requests().len()).await
}

#[tokio::test]
async fn each_method_arrives_with_its_json_as_it_was_sent() {
    let backend = RecordingBackend::start().await;
    let stack = start(&backend).await;
    let client = stack.client();
    let json = json!({ "name": "张", "price": 1.5, "tags": [] });
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let call = client
            .call(method.clone(), "/v2/orders/5")
            .query("time", "noon")
            .json(&json);
        let seen = arrived(&backend, call.send().await).await;
        assert_eq!(seen.method, method.as_str());
        assert_eq!(seen.target, "/orders/5?time=noon");
        assert_eq!(seen.body, json.to_string().as_bytes());
        assert_eq!(seen.value("x-gateway-signed"), Some("true"));
        assert_eq!(seen.value("x-forwarded-prefix"), Some("/v2"));
        assert_eq!(seen.value("x-gateway-version-source"), Some("prefix"));
        for hidden in ["time", "sign", "nonce"] {
            assert_eq!(seen.value(&format!("acme-x-{hidden}")), None);
        }
    }
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let call = client.call(method.clone(), "/v2/orders/5").body("", "");
        let seen = arrived(&backend, call.send().await).await;
        let length = (method == Method::PUT).then_some("0");
        assert_eq!(
            (seen.value("content-length"), &*seen.body),
            (length, &b""[..])
        );
    }
}

#[tokio::test]
async fn a_large_body_arrives_whole_and_only_if_it_is_signed() {
    let backend = RecordingBackend::start().await;
    let stack = start(&backend).await;
    let client = stack.client();
    let body: Vec<_> = (0..3_000_000_u32)
        .map(|index| (index % 251) as u8)
        .collect();
    let put = || {
        client
            .call(Method::PUT, "/v2/files/a")
            .body("image/png", body.clone())
    };
    let seen = arrived(&backend, put().send().await).await;
    assert_eq!(sha256_hex(&seen.body), sha256_hex(&body));
    assert_eq!(seen.value("content-length"), Some("3000000"));
    let (connections, bytes) = (backend.connections(), backend.bytes());
    for refused in [
        put().sign_given(&"0".repeat(64)),
        put().sign_given("x"),
        put().without_sign(),
        put().without_time(),
        put().later_by_ms(-90_000),
    ] {
        let response = refused.send().await;
        assert_eq!(response.status, 403, "{}", response.summary());
    }
    // In chunks, whose body is another one than the signed one.
    let (target, headers) = put().signed_head(&body);
    let mut lines: Vec<_> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    lines.extend(["Transfer-Encoding: chunked", "Content-Type: image/png"].map(str::to_owned));
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let mut connection = stack.raw().await;
    let mut chunks = Vec::new();
    for piece in body[1..].chunks(100_000) {
        chunks.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        chunks.extend_from_slice(piece);
        chunks.extend_from_slice(b"\r\n");
    }
    chunks.extend_from_slice(b"0\r\n\r\n");
    let mut bytes_sent = request("PUT", &target, &lines, b"");
    bytes_sent.extend_from_slice(&chunks);
    connection.send(&bytes_sent).await;
    let response = connection.response().await.unwrap();
    let text = String::from_utf8_lossy(&response.body);
    assert!(
        response.status == 403 && text.contains("sign_mismatch"),
        "{text}"
    );
    assert_eq!(
        (backend.connections(), backend.bytes()),
        (connections, bytes)
    );
}

#[tokio::test]
async fn what_a_path_does_not_take_is_refused_in_its_words() {
    let backend = RecordingBackend::start().await;
    let stack = start(&backend).await;
    let client = stack.client();
    let json = || json!({ "a": 1 });
    let response = client.call(Method::PUT, "/x").json(&json()).send().await;
    assert_eq!(response.header("allow"), Some("GET, POST"));
    response.problem(405, "method_not_allowed");
    let response = client
        .call(Method::DELETE, "/v2/files/a")
        .body("", "")
        .send()
        .await;
    assert_eq!(response.header("allow"), Some("GET, PUT"));
    response.problem(405, "method_not_allowed");
    client
        .post("/x")
        .json(&json())
        .send()
        .await
        .problem(415, "content_type_unsupported");
    let problem = client.post("/v2/x").body("text/plain", "a").send().await;
    let problem = problem.problem(415, "content_type_unsupported");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("application/json"),
        "{problem}"
    );
    let large = client
        .post("/v2/x")
        .body("application/json", vec![b' '; 65_537]);
    large.send().await.problem(413, "body_too_large");
    let call = client.get("/v2/x").body("application/json", "{}");
    call.send().await.problem(400, "body_not_allowed");
    // Without a key that says so, strangers change nothing.
    let call = client.call(Method::DELETE, "/v2/x").unsigned();
    call.send().await.problem(403, "sign_missing");
    assert_eq!(backend.requests().len(), 0);
}

#[tokio::test]
async fn parameters_do_not_sign_a_body_and_the_response_says_so() {
    let backend = RecordingBackend::start().await;
    let settings = settings(&backend).replace("carrier = 'both'", "carrier = 'parameters'");
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(&settings)
        .start()
        .await;
    let client = stack.client();
    let response = client.post("/v2/x").json(&json!({})).send().await;
    let problem = response.problem(403, "sign_missing");
    assert!(
        problem["hint"].as_str().unwrap().contains("in headers"),
        "{problem}"
    );
    // The headers mean nothing here, and go nowhere.
    let call = client
        .get("/v2/x")
        .param("a", "1")
        .header("Acme-X-Sign", "x");
    let seen = arrived(&backend, call.send().await).await;
    assert_eq!(seen.value("acme-x-sign"), None);
    assert_eq!(seen.value("x-gateway-signed"), None);
}

#[tokio::test]
async fn a_host_a_path_and_a_header_name_one_version() {
    let backend = RecordingBackend::start().await;
    let stack = start(&backend).await;
    let client = stack.client();
    for (call, target, source) in [
        (client.get("/x"), "/x", "default"),
        (client.get("/v2/x"), "/x", "prefix"),
        (client.get("/v2/"), "/", "prefix"),
        (client.get("/v2"), "/v2", "default"),
        (client.get("/v2x"), "/v2x", "default"),
        (
            client.get("/x").header("Host", "V2.example.com:8080"),
            "/x",
            "host",
        ),
        (
            client
                .get("/x")
                .header("Host", "v2.example.com")
                .version("v1"),
            "/x",
            "header",
        ),
        (client.get("/v2/x").version("v2"), "/x", "header"),
        (
            client.get("/v2/x").header("Host", "v2.example.com"),
            "/x",
            "host",
        ),
    ] {
        let response = call.send().await;
        assert_eq!(response.header("acme-x-version-source"), Some(source));
        let seen = arrived(&backend, response).await;
        assert_eq!(seen.target, target);
        assert_eq!(seen.value("x-gateway-version-source"), Some(source));
    }
    for version in ["v1", "v9"] {
        let response = client.get("/v2/x").version(version).send().await;
        response.problem(400, "version_contradictory");
    }
    // The signature is over the path as sent.
    let call = client.get("/v2/x").param("a", "1");
    assert_eq!(
        arrived(&backend, call.send().await)
            .await
            .target
            .split('&')
            .next(),
        Some("/x?a=1")
    );
}

#[tokio::test]
async fn a_backend_can_be_spared_time_and_sign() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("versions.v1.strip_sign = true");
    let stack = stack.start().await;
    let client = stack.client();
    let get = client.get("/x").param("b", "2 3").param("a", "1");
    let seen = arrived(&backend, get.send().await).await;
    assert_eq!(seen.target, "/x?b=2%203&a=1");
    assert_eq!(seen.value("x-gateway-signed"), Some("true"));
    let post = client.post("/x").param("b", "2").query("a", "1");
    let seen = arrived(&backend, post.send().await).await;
    assert_eq!((&*seen.target, &*seen.body), ("/x?a=1", &b"b=2"[..]));
    assert_eq!(seen.value("content-length"), Some("3"));
    let seen = arrived(&backend, client.get("/x").signed().send().await).await;
    assert_eq!(seen.target, "/x");
    // Nothing is taken out of what is not signed.
    let seen = arrived(&backend, client.get("/x").unsigned().send().await).await;
    assert_eq!(seen.value("x-gateway-signed"), None);
}

#[tokio::test]
async fn a_body_that_breaks_off_or_stalls_leaves_nothing() {
    let backend = RecordingBackend::start().await;
    let settings = settings(&backend) + "[connections]\nmin_bytes_per_second = 200000\n";
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(&settings)
        .start()
        .await;
    let client = stack.client();
    let body = vec![7; 2_000_000];
    let (target, headers) = client.call(Method::PUT, "/v2/files/a").signed_head(&body);
    let mut lines: Vec<_> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    lines.push("Content-Length: 2000000".to_owned());
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let mut head = request("PUT", &target, &lines, b"");
    head.extend_from_slice(&body[..1_000_000]);
    let room = async || {
        let metrics = Scrape::of(stack.addresses().management).await;
        metrics.sum("signpost_body_bytes", &[("where", "spool")])
    };
    let mut broken = stack.raw().await;
    broken.send(&head).await;
    end_to_end::waiting::until("room to be taken", || async {
        (room().await > 0.0).then_some(())
    })
    .await;
    drop(broken);
    end_to_end::waiting::until("its room to come back", || async {
        (room().await == 0.0).then_some(())
    })
    .await;
    // Slower than the smallest rate: five seconds, and five for what it has sent.
    let mut slow = stack.raw().await;
    slow.send(&head).await;
    let response = tokio::time::timeout(Duration::from_secs(30), slow.response()).await;
    assert_eq!(response.unwrap().unwrap().status, 408);
    assert_eq!((room().await, backend.bytes()), (0.0, 0));
}

#[tokio::test]
async fn a_route_has_timeouts_of_its_own() {
    let backend = RecordingBackend::start().await;
    backend.behave(Behaviour::responding(Delivery::Never));
    let settings = format!(
        "[timeouts]\nresponse_seconds = 600\n[shutdown]\ngrace_seconds = 602\n[versions.v1]\nresponse_seconds = 600\n\
         routes = [{{ path = '/fast', backend = '{}', response_seconds = 1 }}]",
        backend.address()
    );
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(&settings)
        .start()
        .await;
    let client = stack.client();
    client
        .get("/fast")
        .send()
        .await
        .problem(504, "backend_timeout");
}

#[tokio::test]
async fn a_bridge_changes_the_json_of_requests() {
    let backend = RecordingBackend::start().await;
    let settings = settings(&backend)
        + "[versions.v9]\nbridge = 'v2'\nbodies = 'json'\nmethods = ['POST', 'PUT']\nmax_body = 1000000\n\
           [[versions.v9.changes]]\nname = 'nick'\npaths = ['/people/**']\n\
           request_body = [{ rename = '$.nick', to = 'name' }, { default = '$.lang', value = 'en' }]\n\
           [[versions.v9.changes]]\nname = 'number'\npaths = ['/people/**']\n\
           request_body = [{ to_text = '$.id' }]\nrequest = [{ rename = 'a', to = 'b' }]\n";
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(&settings)
        .start()
        .await;
    let client = stack.client();
    let put = |json| {
        client
            .call(Method::PUT, "/people/5")
            .version("v9")
            .query("a", "1")
            .json(&json)
    };
    let seen = arrived(
        &backend,
        put(json!({ "nick": "ada", "id": 5 })).send().await,
    )
    .await;
    let json: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(json, json!({ "name": "ada", "id": "5", "lang": "en" }));
    assert_eq!(seen.target, "/people/5?b=1");
    assert_eq!(
        seen.value("content-length"),
        Some(&*seen.body.len().to_string())
    );
    assert_eq!(seen.value("x-gateway-bridge"), Some("v9"));
    let before = backend.requests().len();
    let twice = put(json!({ "nick": "ada", "name": "x" })).send().await;
    let problem = twice.problem(502, "bridge_failed");
    assert!(
        problem["detail"].as_str().unwrap().contains("nick"),
        "{problem}"
    );
    let large = put(json!({ "nick": "a".repeat(70_000) })).send().await;
    large.problem(502, "bridge_failed");
    assert_eq!(backend.requests().len(), before);
    // Without a body there is nothing to change.
    let call = client.post("/people/5").version("v9").body("", "");
    arrived(&backend, call.send().await).await;
}
