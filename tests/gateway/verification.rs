//! No byte of a rejected request reaches a backend. CONTRACT 2, 3 and 4.

use end_to_end::{
    raw_connection::{RawResponse, request},
    recording_backend::RecordingBackend,
    signed_client::SignedClient,
    stack::Stack,
};
use reqwest::Method;

/// Limits small enough for a test to exceed them, and timeouts short enough to wait for.
const LIMITS: &str = "
[limits]
head_bytes = 16384
headers = 60
query_bytes = 4096
body_bytes = 4096
params = 32

[timeouts]
head_seconds = 5
body_seconds = 5
";

/// A request that is rejected, and the status and code of its response.
struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    status: u16,
    code: &'static str,
}

#[rustfmt::skip] // A table: one case a line.
fn cases(client: &SignedClient) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut case = |name, bytes, status, code| {
        cases.push(Case {
            name,
            bytes,
            status,
            code,
        })
    };
    let signed = || client.get("/x").param("a", "1");
    let form = "Content-Type: application/x-www-form-urlencoded";

    case("sign wrong", signed().sign_given(&"0".repeat(32)).bytes(&[]), 403, "sign_mismatch");
    case("sign of another key", client.with_key(&"1".repeat(64)).get("/x").param("a", "1").bytes(&[]), 403, "sign_mismatch");
    case("sign missing", signed().without_sign().bytes(&[]), 403, "sign_missing");
    case("sign twice", signed().query("sign", "0").bytes(&[]), 400, "param_duplicated");
    case("always signed", client.post("/login").unsigned().bytes(&["Content-Length: 0"]), 403, "sign_missing");
    case("time missing", signed().without_time().bytes(&[]), 403, "time_missing");
    case("time in seconds", signed().time("1732104000").bytes(&[]), 400, "time_invalid");
    case("time in the past", signed().later_by_ms(-90_000).bytes(&[]), 403, "time_out_of_window");
    case("time in the future", signed().later_by_ms(90_000).bytes(&[]), 403, "time_out_of_window");
    case("time twice", signed().query("time", "1").bytes(&[]), 400, "param_duplicated");

    for method in [
        "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "PROPFIND", "get",
    ] {
        case("method", request(method, "/x", &[], b""), 405, "method_not_allowed");
    }
    case("target absolute", request("GET", "http://gateway.example/x", &[], b""), 400, "target_invalid");
    case("target without a slash", request("GET", "@x", &[], b""), 400, "target_invalid");
    case("target with a backslash", request("GET", "/a\\b", &[], b""), 400, "target_invalid");
    case("target in UTF-8", request("GET", "/张", &[], b""), 400, "target_invalid");
    case("target with a fragment", request("GET", "/x#y", &[], b""), 400, "target_invalid");
    case("target with half an escape", request("GET", "/x%2", &[], b""), 400, "target_invalid");
    case("target with quotes", request("GET", "/x\"y", &[], b""), 400, "target_invalid");
    case("query with half an escape", request("GET", "/x?a=%2", &[], b""), 400, "params_malformed");
    case("query with a wrong escape", request("GET", "/x?a=%zz", &[], b""), 400, "params_malformed");
    case("query in UTF-8", request("GET", "/x?a=张", &[], b""), 400, "params_malformed");
    case("query not UTF-8", request("GET", "/x?a=%ff", &[], b""), 400, "params_malformed");
    case("query with quotes", request("GET", "/x?a=\"", &[], b""), 400, "params_malformed");
    case("query with a space", request("GET", "/x?a=b c", &[], b""), 400, "params_malformed");
    case("target with a space", request("GET", "/x y", &[], b""), 400, "target_invalid");
    case("query with a backslash, unsigned", request("GET", "/x?a=\\", &[], b""), 403, "time_missing");

    let many: String = (0..40).map(|number| format!("p{number}=1&")).collect();
    case("parameters by number", request("GET", &format!("/x?{many}"), &[], b""), 400, "params_too_many");
    case("query too long", request("GET", &format!("/x?a={}", "1".repeat(5000)), &[], b""), 414, "uri_too_long");
    let long = format!("X-Long: {}", "1".repeat(20_000));
    case("head too long", request("GET", "/x", &[&long], b""), 431, "headers_too_large");
    case("headers by number", request("GET", "/x", &["X-One: 1"; 70], b""), 431, "headers_too_large");

    case("version twice", request("GET", "/x", &["Acme-X-Version: v1", "acme-x-version: v1"], b""), 400, "header_duplicated");
    case("app twice", request("GET", "/x", &["Acme-X-App: a", "Acme-X-App: b"], b""), 400, "header_duplicated");
    case("language twice", request("GET", "/x", &["Acme-X-Language: en", "Acme-X-Language: ja"], b""), 400, "header_duplicated");
    case("authorization twice", request("GET", "/x", &["Acme-X-Authorization: a", "Acme-X-Authorization: a"], b""), 400, "header_duplicated");

    case("GET with a body", request("GET", "/x", &["Content-Length: 3", form], b"a=1"), 400, "body_not_allowed");
    case("GET with a chunked body", request("GET", "/x", &["Transfer-Encoding: chunked", form], b"3\r\na=1\r\n0\r\n\r\n"), 400, "body_not_allowed");
    case("JSON", request("POST", "/x", &["Content-Type: application/json", "Content-Length: 2"], b"{}"), 415, "content_type_unsupported");
    case("no content type", request("POST", "/x", &["Content-Length: 3"], b"a=1"), 415, "content_type_unsupported");
    case("another charset", request("POST", "/x", &["Content-Type: application/x-www-form-urlencoded; charset=gbk", "Content-Length: 3"], b"a=1"), 415, "content_type_unsupported");
    case("compressed", request("POST", "/x", &[form, "Content-Encoding: gzip", "Content-Length: 3"], b"a=1"), 415, "content_type_unsupported");
    case("body too large, announced", request("POST", "/x", &[form, "Content-Length: 5000"], b""), 413, "body_too_large");
    let chunk = format!("1388\r\n{}\r\n0\r\n\r\n", "a".repeat(5000));
    case("body too large, in a chunk", request("POST", "/x", &[form, "Transfer-Encoding: chunked"], chunk.as_bytes()), 413, "body_too_large");
    case("form not UTF-8", request("POST", "/x", &[form, "Content-Length: 5"], b"a=%ff"), 400, "params_malformed");
    case("form with raw bytes not UTF-8", request("POST", "/x", &[form, "Content-Length: 3"], b"a=\xff"), 400, "params_malformed");
    case("form broken", request("POST", "/x", &[form, "Content-Length: 3"], b"a=%"), 400, "params_malformed");
    case("form without sign", request("POST", "/x", &[form, "Content-Length: 3"], b"a=1"), 403, "time_missing");
    case("body never ends", request("POST", "/x", &[form, "Content-Length: 10"], b"a=1"), 408, "request_timeout");
    case("head never ends", b"GET /x HTTP/1.1\r\nHost: gateway.example\r\nX-".to_vec(), 408, "request_timeout");
    cases
}

#[tokio::test]
async fn a_rejected_request_reaches_no_backend() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(LIMITS)
        .start()
        .await;
    let mut wrong = Vec::new();
    for case in cases(&stack.client()) {
        let mut connection = stack.raw().await;
        connection.send(&case.bytes).await;
        let response = connection.response().await;
        let found = response
            .as_ref()
            .map(|response| (response.status, response.code()));
        if found != Some((case.status, Some(case.code.to_owned()))) {
            wrong.push(format!(
                "{}: {} {} expected, {found:?} found",
                case.name, case.status, case.code
            ));
        }
        if backend.connections() > 0 {
            wrong.push(format!("{}: reached the backend", case.name));
            break;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!((backend.connections(), backend.bytes()), (0, 0));
    // The same gateway forwards a valid request.
    stack.client().get("/x").param("a", "1").send().await.ok();
    assert_eq!(backend.connections(), 1);
}

#[tokio::test]
async fn an_unknown_application_reaches_no_backend() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend).multi().start().await;
    let application = stack.create_application("one", &[]);
    let known = stack.client_of(&application);
    let unknown = known.with_app(&"x".repeat(24));
    for call in [
        unknown.get("/x"),
        unknown.get("/x").param("a", "1"),
        unknown.post("/login"),
    ] {
        call.send().await.problem(404, "app_not_found");
    }
    let malformed = known.with_app("../etc");
    malformed
        .get("/x")
        .param("a", "1")
        .send()
        .await
        .problem(404, "app_not_found");
    let absent = stack.client().with_key(&application.key);
    absent
        .get("/x")
        .param("a", "1")
        .send()
        .await
        .problem(400, "app_missing");
    absent.get("/x").send().await.problem(400, "app_missing");
    assert_eq!(backend.connections(), 0);
    known.get("/x").param("a", "1").send().await.ok();
}

#[tokio::test]
async fn a_405_names_the_methods() {
    let (stack, backend) = Stack::recording().await;
    for method in [Method::PUT, Method::OPTIONS, Method::DELETE] {
        let response = stack.client().call(method, "/user").send().await;
        response.problem(405, "method_not_allowed");
        assert_eq!(response.header("allow"), Some("GET, POST"));
    }
    // A response to HEAD has no body.
    let response = stack.client().call(Method::HEAD, "/user").send().await;
    assert_eq!((response.status.as_u16(), response.body.len()), (405, 0));
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn a_rejected_body_is_never_read_as_a_request() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(LIMITS)
        .start()
        .await;
    let inner = request("GET", "/smuggled", &[], b"");
    let length = format!("Content-Length: {}", inner.len());
    let bytes = request("POST", "/x", &["Content-Type: text/plain", &length], &inner);
    let mut connection = stack.raw().await;
    connection.send(&bytes).await;
    let responses: Vec<RawResponse> = connection.responses_until_close().await;
    assert_eq!(responses.len(), 1);
    assert_eq!(
        responses[0].code().as_deref(),
        Some("content_type_unsupported")
    );
    assert_eq!(backend.connections(), 0);
}
