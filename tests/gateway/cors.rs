//! CORS: preflights, and the headers by which pages of other origins read answers. CONTRACT 2.

use end_to_end::{
    program::{Program, output_text},
    raw_connection::{RawConnection, RawResponse, request},
    real_browser::RealBrowser,
    recording_backend::{Behaviour, RecordingBackend},
    response::Response,
    signed_client::{Call, http_client},
    stack::Stack,
};
use reqwest::Method;
use serde_json::json;

const ORIGIN: &str = "https://app.example.com";
const FORBIDDEN: &str = "https://evil.example.com";

const CORS: &str = "[cors]\norigins = ['https://app.example.com', 'https://*.example.org']\n";

/// A gateway with `[cors]` and these keys in addition, in front of a recording backend.
async fn stack(keys: &str) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend);
    let stack = stack.gateway(&format!("{CORS}{keys}")).start().await;
    (stack, backend)
}

/// A preflight as browsers send it.
async fn preflight(stack: &Stack, origin: &str) -> Response {
    let request = http_client()
        .request(Method::OPTIONS, stack.url("/x?a=1"))
        .header("Origin", origin)
        .header("Access-Control-Request-Method", "POST")
        .header(
            "Access-Control-Request-Headers",
            "acme-x-version,content-type",
        );
    Response::read(request.send().await.unwrap()).await
}

fn cors_headers(response: &Response) -> Vec<String> {
    let names = response.headers.keys().map(ToString::to_string);
    names
        .filter(|name| name.starts_with("access-control-"))
        .collect()
}

/// Checks the headers of a response to a page that may call.
fn assert_readable(response: &Response) {
    assert_eq!(response.header("access-control-allow-origin"), Some(ORIGIN));
    let exposed = response.header("access-control-expose-headers").unwrap();
    for name in [
        "X-Request-Id",
        "Acme-X-Version",
        "Acme-X-Version-Source",
        "Retry-After",
    ] {
        assert!(exposed.split(", ").any(|one| one == name), "{exposed}");
    }
    assert_eq!(response.header("access-control-allow-credentials"), None);
    assert_varies(response);
}

fn assert_varies(response: &Response) {
    let mut vary = response.headers.get_all("vary").iter();
    assert!(
        vary.any(|value| value == "Origin"),
        "{:?}",
        response.headers
    );
}

fn assert_hidden(response: &Response) {
    assert_eq!(cors_headers(response), Vec::<String>::new());
    assert_varies(response);
}

#[tokio::test]
async fn the_gateway_responds_to_preflights() {
    let (stack, backend) = stack("").await;
    let response = preflight(&stack, "https://a.b.example.org").await;
    assert_eq!(response.status, 204);
    for (name, value) in [
        ("access-control-allow-origin", "https://a.b.example.org"),
        ("access-control-allow-methods", "GET, POST"),
        (
            "access-control-allow-headers",
            "Acme-X-App, Acme-X-Version, Acme-X-Language, Acme-X-Authorization, Acme-X-Time, Acme-X-Sign, Acme-X-Nonce, \
             Content-Type",
        ),
        ("access-control-max-age", "600"),
        (
            "vary",
            "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
        ),
    ] {
        assert_eq!(response.header(name), Some(value));
    }
    assert_eq!(cors_headers(&response).len(), 4);
    assert!(response.header("x-request-id").is_some() && response.body.is_empty());
    assert_eq!(response.header("content-length"), None);
    let other = preflight(&stack, FORBIDDEN).await;
    assert_eq!(
        (other.status.as_u16(), cors_headers(&other).len()),
        (204, 0)
    );
    assert_eq!(backend.connections(), 0);
    let log = stack.log_with(Program::Gateway, "OPTIONS").await;
    assert!(log.contains("204"), "{log}");
}

#[tokio::test]
async fn several_preflights_pass_on_one_connection() {
    let (stack, _backend) = stack("").await;
    let mut connection = stack.raw().await;
    let lines = [
        format!("Origin: {ORIGIN}"),
        "Access-Control-Request-Method: GET".to_owned(),
    ];
    let lines = lines.each_ref().map(String::as_str);
    for _ in 0..3 {
        connection
            .send(&request("OPTIONS", "/x", &lines, b""))
            .await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.status, 204);
    }
    connection.send(&request("GET", "/x", &lines, b"")).await;
    assert_eq!(connection.response().await.unwrap().status, 200);
}

#[tokio::test]
async fn any_other_options_is_still_405() {
    let (stack, backend) = stack("").await;
    let origin = format!("Origin: {ORIGIN}");
    let method = "Access-Control-Request-Method: POST";
    for (lines, body) in [
        (vec![], &b""[..]),
        (vec![&*origin], b""),
        (vec![method], b""),
        (vec![&*origin, method, "Content-Length: 3"], b"a=1"),
    ] {
        let mut connection = stack.raw().await;
        connection
            .send(&request("OPTIONS", "/x", &lines, body))
            .await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.status, 405, "{lines:?}");
        assert_eq!(response.header("allow"), Some("GET, POST"));
    }
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn responses_and_errors_are_readable_by_allowed_origins_only() {
    let (stack, backend) = stack("").await;
    backend.behave(Behaviour {
        head: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nVary: Accept\r\n\
               Access-Control-Allow-Origin: *\r\naccess-control-allow-credentials: true\r\n"
            .to_owned(),
        ..Behaviour::default()
    });
    let client = stack.client();
    let calls: [(Call<'_>, u16); 5] = [
        (client.get("/x").param("a", "1"), 200),
        (client.post("/x").param("a", "1"), 200),
        (client.get("/x").param("a", "1").sign_given("0"), 403),
        (client.get("/x?%zz"), 400),
        (client.call(Method::PUT, "/x"), 405),
    ];
    for (call, status) in calls {
        for (origin, is_allowed) in [
            (Some(ORIGIN), true),
            (Some(FORBIDDEN), false),
            (Some("null"), false),
            (Some("https://app.example.com.evil.com"), false),
            (None, false),
        ] {
            let call = origin.map_or(call.clone(), |origin| call.clone().header("Origin", origin));
            let response = call.send().await;
            assert_eq!(response.status, status, "{}", response.text());
            if is_allowed {
                assert_readable(&response);
            } else {
                assert_hidden(&response);
            }
        }
    }
    let vary = client.get("/x").send().await;
    let vary: Vec<_> = vary.headers.get_all("vary").iter().collect();
    assert_eq!(vary, ["Origin", "Accept"]);
    // A head that is too large is rejected before the phases.
    let long = "x".repeat(40_000);
    let large = client
        .get("/x")
        .header("Origin", ORIGIN)
        .header("X-Long", &long);
    let large = large.send().await;
    large.problem(431, "headers_too_large");
    assert_readable(&large);
}

#[tokio::test]
async fn a_failed_backend_is_readable_and_a_bare_400_is_not() {
    let (stack, mut backend) = stack("").await;
    backend.end().await;
    let response = stack
        .client()
        .get("/x")
        .header("Origin", ORIGIN)
        .send()
        .await;
    response.problem(502, "backend_unreachable");
    assert_readable(&response);
    let mut connection = stack.raw().await;
    let origin = format!("Origin: {ORIGIN}");
    let bad = ["Content-Length: 1, 1", &origin];
    connection.send(&request("GET", "/x", &bad, b"")).await;
    let response: RawResponse = connection.response().await.unwrap();
    assert_eq!(response.status, 400);
    assert_eq!(response.header("access-control-allow-origin"), None);
    assert_eq!(response.header("vary"), None);
}

#[tokio::test]
async fn the_login_service_is_readable_through_the_gateway() {
    let stack = Stack::builder().gateway(CORS).start().await;
    let client = stack.client();
    let call = client.post("/login").param("provider", "bitbucket");
    let response = call.header("Origin", ORIGIN).send().await;
    response.ok();
    assert_readable(&response);
}

#[tokio::test]
async fn credentials_and_further_headers_are_configured() {
    let keys = "credentials = true\nexpose_headers = ['x-more']\nallow_headers = ['X-Trace']\n\
                [headers]\napp = 'X-Application'";
    let (stack, _backend) = stack(keys).await;
    let response = preflight(&stack, ORIGIN).await;
    let header = |name| response.header(name).unwrap();
    assert_eq!(header("access-control-allow-credentials"), "true");
    assert_eq!(header("access-control-max-age"), "600");
    let allowed = header("access-control-allow-headers");
    assert!(
        allowed.starts_with("X-Application, Acme-X-Version, "),
        "{allowed}"
    );
    assert!(allowed.ends_with("Content-Type, X-Trace"), "{allowed}");
    let response = stack
        .client()
        .get("/x")
        .header("Origin", ORIGIN)
        .send()
        .await;
    assert_eq!(
        response.header("access-control-allow-credentials"),
        Some("true")
    );
    let exposed = response.header("access-control-expose-headers").unwrap();
    assert!(exposed.ends_with(", X-More"), "{exposed}");
}

#[tokio::test]
async fn every_origin_can_be_allowed_without_credentials() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend);
    let stack = stack.gateway("[cors]\norigins = ['*']").start().await;
    let response = preflight(&stack, FORBIDDEN).await;
    assert_eq!(response.header("access-control-allow-origin"), Some("*"));
    let response = stack
        .client()
        .get("/x")
        .header("Origin", FORBIDDEN)
        .send()
        .await;
    assert_eq!(response.header("access-control-allow-origin"), Some("*"));
    assert_varies(&response);
}

#[tokio::test]
async fn without_cors_nothing_is_added_and_nothing_removed() {
    let (stack, backend) = Stack::recording().await;
    backend.behave(Behaviour {
        head: "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: https://its.own\r\n".to_owned(),
        ..Behaviour::default()
    });
    let response = stack
        .client()
        .get("/x")
        .header("Origin", ORIGIN)
        .send()
        .await;
    assert_eq!(
        response.header("access-control-allow-origin"),
        Some("https://its.own")
    );
    assert_eq!(response.header("vary"), None);
    let refused = preflight(&stack, ORIGIN).await;
    refused.problem(405, "method_not_allowed");
    // A reload switches it on.
    stack.configure(Program::Gateway, CORS);
    let reloaded = output_text(&stack.reload(Program::Gateway));
    assert!(reloaded.contains("cors.origins"), "{reloaded}");
    assert_eq!(preflight(&stack, ORIGIN).await.status, 204);
}

#[tokio::test]
async fn a_flood_of_preflights_is_limited_and_signed_requests_are_not() {
    let (stack, _backend) = stack("[limits.unsigned]\nper_second = 1\nburst = 5").await;
    let mut connection: RawConnection = stack.raw().await;
    let origin = format!("Origin: {ORIGIN}");
    let lines = [&*origin, "Access-Control-Request-Method: GET"];
    let mut limited = None;
    for _ in 0..300 {
        connection
            .send(&request("OPTIONS", "/x", &lines, b""))
            .await;
        let response = connection.response().await.unwrap();
        if response.status == 429 {
            limited = Some(response);
            break;
        }
        assert_eq!(response.status, 204);
    }
    let limited = limited.expect("300 preflights were answered");
    assert_eq!(limited.code().as_deref(), Some("rate_limited"));
    assert!(limited.header("retry-after").is_some());
    assert_eq!(limited.header("access-control-allow-origin"), Some(ORIGIN));
    let client = stack.client();
    let signed = client.get("/x").param("a", "1");
    signed.header("Origin", ORIGIN).send().await.ok();
}

#[tokio::test]
async fn a_real_browser_calls_from_an_allowed_origin_only() {
    // It serves an empty page, whatever is requested.
    let pages = RecordingBackend::start().await;
    pages.behave(Behaviour {
        head: "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n".to_owned(),
        body: b"<!doctype html><title>A page</title><p>Ready".to_vec(),
        ..Behaviour::default()
    });
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend);
    let port = pages.address().port();
    let cors = format!("[cors]\norigins = ['http://127.0.0.1:{port}']");
    let stack = stack.gateway(&cors).start().await;
    let client = stack.client();
    let fetch = |call: &Call<'_>| {
        let (target, form) = call.parts();
        format!(
            "const response = await fetch({}, {{ method: 'POST', body: {}, headers: {{\
               'Acme-X-Version': 'v2', 'Acme-X-Language': 'ja',\
               'Content-Type': 'application/x-www-form-urlencoded' }} }});\
             const get = name => response.headers.get(name);\
             return {{ status: response.status, version: get('acme-x-version'), id: get('x-request-id') !== null,\
               language: get('content-language'), body: await response.json() }};",
            json!(stack.url(&target)),
            json!(form)
        )
    };
    let browser = RealBrowser::start("en").await;
    browser.open(&format!("http://127.0.0.1:{port}/")).await;
    browser.wait_for_text("Ready").await;
    let good = browser
        .run(&fetch(&client.post("/x").param("a", "1")))
        .await;
    assert_eq!(good["status"], 200, "{good}");
    assert_eq!(
        (&good["version"], &good["id"]),
        (&json!("v2"), &json!(true)),
        "{good}"
    );
    assert_eq!(good["body"]["recorded"], true, "{good}");
    let wrong = client.post("/x").param("a", "1").sign_given("0");
    let wrong = browser.run(&fetch(&wrong)).await;
    assert_eq!(wrong["status"], 403, "{wrong}");
    assert_eq!(wrong["body"]["code"], "sign_mismatch", "{wrong}");
    assert_eq!(wrong["language"], "ja", "{wrong}");
    assert_eq!(backend.requests().len(), 1);
    // The same page under another origin.
    browser.open(&format!("http://localhost:{port}/")).await;
    browser.wait_for_text("Ready").await;
    let refused = browser
        .run(&fetch(&client.post("/x").param("b", "2")))
        .await;
    let text = refused.as_str().unwrap_or_default();
    assert!(text.contains("Failed to fetch"), "{refused}");
    assert_eq!(backend.requests().len(), 1, "the preflight failed");
}
