//! Pages that the gateway has itself, whatever its versions serve. CONTRACT 7.

use end_to_end::{
    http2_client::Http2Client,
    metrics::Scrape,
    program::Program,
    raw_connection::{RawResponse, request},
    recording_backend::RecordingBackend,
    stack::Stack,
    waiting::until,
};
use reqwest::Method;
use serde_json::Value;
use signpost_protocol::{language::Language, problem::ProblemCode, text::text};

/// Many applications, and every request must be signed.
async fn strict(toml: &str) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let toml = format!("{toml}\n[sign]\nunsigned = 'reject'");
    let stack = Stack::builder().multi().in_front_of(&backend);
    (stack.gateway(&toml).start().await, backend)
}

async fn send(stack: &Stack, method: &str, target: &str, headers: &[&str]) -> RawResponse {
    let mut connection = stack.raw().await;
    let bytes = request(method, target, headers, b"");
    connection.send(&bytes).await;
    connection.response().await.unwrap()
}

#[tokio::test]
async fn the_type_of_every_problem_is_a_page_in_five_languages() {
    let (stack, backend) = strict("[limits.unsigned]\nper_second = 0").await;
    for &code in ProblemCode::ALL {
        for language in Language::ALL {
            let title = text(language, code.as_str(), &[]);
            let retry = text(language, code.retry().as_str(), &[]);
            let wanted = format!("Accept-Language: {}", language.tag());
            let data = send(&stack, "GET", code.type_uri(), &[&wanted]).await;
            assert_eq!(data.status, 200, "{}", code.as_str());
            assert_eq!(data.header("content-type"), Some("application/json"));
            let about: Value = serde_json::from_slice(&data.body).unwrap();
            assert_eq!(about["type"], code.type_uri());
            assert_eq!(about["title"], title);
            assert_eq!(about["status"], code.status().as_u16());
            assert_eq!(about["code"], code.as_str());
            assert!(about["retry"].is_string(), "{about}");
            let lines = [&*wanted, "Accept: text/html,application/xhtml+xml"];
            let page = send(&stack, "GET", code.type_uri(), &lines).await;
            let media = page.header("content-type");
            assert_eq!(media, Some("text/html; charset=utf-8"));
            let policy = page.header("content-security-policy").unwrap();
            assert!(policy.starts_with("default-src 'none'"), "{policy}");
            let shown = String::from_utf8(page.body.clone()).unwrap();
            let escaped = |text: &str| text.replace('"', "&quot;");
            for part in [&title, about["detail"].as_str().unwrap(), &retry] {
                assert!(shown.contains(&escaped(part)), "{part} is not in {shown}");
            }
            for response in [data, page] {
                assert_eq!(response.header("content-language"), Some(language.tag()));
                let cached = response.header("cache-control");
                assert_eq!(cached, Some("private, max-age=86400"));
                let vary = response.header("vary");
                assert_eq!(vary, Some("accept, accept-language, acme-x-language"));
            }
        }
    }
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn only_a_read_of_a_code_of_the_contract_is_served() {
    let (stack, backend) = Stack::recording().await;
    let target = "/problems/not_found";
    let head = stack.client().call(Method::HEAD, target).send().await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    // What is no parameter of the page is ignored, as by any page.
    let read = send(&stack, "GET", "/problems/not_found?a=1", &[]).await;
    assert_eq!(read.status, 200);
    assert_eq!(backend.connections(), 0);
    let client = stack.client();
    for path in [
        "/problems/unknown",
        "/problems/not_found/",
        "/problems/%6eot_found",
        "/problems",
        "/favicon.ico/",
    ] {
        client.get(path).send().await.ok();
        assert_eq!(backend.requests().last().unwrap().target, path);
    }
    client.post(target).signed().send().await.ok();
    client.get("/favicon.ico").signed().send().await.ok();
    assert_eq!(backend.requests().len(), 7);
    let other = client.call(Method::PUT, target).send().await;
    other.problem(405, "method_not_allowed");
    let mut connection = stack.raw().await;
    let chunked = ["Transfer-Encoding: chunked"];
    let chunked = request("GET", target, &chunked, b"1\r\na\r\n0\r\n\r\n");
    connection.send(&chunked).await;
    let response = connection.response().await.unwrap();
    assert_eq!(response.code().as_deref(), Some("body_not_allowed"));
}

#[tokio::test]
async fn a_flood_of_them_is_limited_and_signed_requests_are_not() {
    let cors = "[cors]\norigins = ['https://app.example']\n";
    let limit = "[limits.unsigned]\nper_second = 1\nburst = 5";
    let stack = Stack::builder().gateway(&format!("{cors}{limit}"));
    let stack = stack.start().await;
    for target in ["/problems/sign_mismatch", "/favicon.ico"] {
        let mut connection = stack.raw().await;
        let bytes = request("GET", target, &["Origin: https://app.example"], b"");
        let mut limited = None;
        for _ in 0..300 {
            connection.send(&bytes).await;
            let response = connection.response().await.unwrap();
            let origin = response.header("access-control-allow-origin");
            assert_eq!(origin, Some("https://app.example"), "{}", response.head);
            if response.status == 429 {
                limited = Some(response);
                break;
            }
            assert!(matches!(response.status, 200 | 204), "{}", response.head);
        }
        let limited = limited.expect("300 requests were served");
        assert_eq!(limited.code().as_deref(), Some("rate_limited"));
    }
    let client = stack.client();
    client.post("/login").signed().send().await.ok();
}

#[tokio::test]
async fn a_browsers_request_for_an_icon_is_no_error() {
    let (stack, backend) = strict("").await;
    let icon = send(&stack, "GET", "/favicon.ico", &["Accept: image/*"]).await;
    assert_eq!((icon.status, icon.body.len()), (204, 0));
    assert_eq!(icon.header("cache-control"), Some("private, max-age=86400"));
    let http2 = Stack::builder()
        .gateway("[[listen]]\naddress = \"$LISTEN\"\nprotocols = [\"http/1.1\", \"h2c\"]");
    let http2 = http2.start().await;
    let client = Http2Client::open(http2.addresses().gateway).await;
    let icon = client.send(&http2.client().get("/favicon.ico")).await;
    assert_eq!(icon.unwrap().status, 204);

    assert_eq!(backend.connections(), 0);
    let line = until("the access line", || async {
        let log = stack.log(Program::Gateway);
        let mut lines = log.lines();
        let line = lines.find(|line| line.contains("http.path=/favicon.ico"));
        line.map(str::to_owned)
    })
    .await;
    assert!(
        line.contains(" INFO ") && !line.contains("problem."),
        "{line}"
    );
    let scrape = until("the request to be counted", || async {
        let scrape = Scrape::of(stack.addresses().management).await;
        let is_counted = scrape.sum("signpost_requests_total", &[]) > 0.0;
        is_counted.then_some(scrape)
    })
    .await;
    let requests = |labels| scrape.sum("signpost_requests_total", labels);
    assert_eq!(requests(&[]), 1.0);
    assert_eq!(requests(&[("status_class", "2xx")]), 1.0);
}
