//! Another spelling of a path passes no rule; what is malformed is named. CONTRACT 2, 5 and 7.

use end_to_end::{
    http2_client::Http2Client,
    metrics::Scrape,
    program::Program,
    raw_connection::{RawResponse, request},
    recording_backend::RecordingBackend,
    stack::Stack,
};
use serde_json::Value;

/// `b` stands for the backend's address. What v1 takes, v2 takes, too, and ambiguous paths.
const RULES: &str = "[[listen]]
address = '$LISTEN'
protocols = ['http/1.1', 'h2c']
[sign]
always_signed = ['POST /signed/**']
[versions.v1]
[versions.v2]
paths = 'as_sent'
[[routes]]
path = '/strict/**'
backend = 'b'
unsigned = 'reject'
";

async fn stack() -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let toml = RULES.replace("'b'", &format!("'{}'", backend.address()));
    let stack = Stack::builder().in_front_of(&backend);
    (stack.gateway(&toml).start().await, backend)
}

async fn send(stack: &Stack, bytes: &[u8]) -> RawResponse {
    let mut connection = stack.raw().await;
    connection.send(bytes).await;
    connection.response().await.unwrap()
}

/// The status and the code of an unsigned POST, at a version.
async fn post(stack: &Stack, version: &str, path: &str) -> (u16, Option<String>) {
    let version = format!("Acme-X-Version: {version}");
    let bytes = request("POST", path, &[&version, "Content-Length: 0"], b"");
    let response = send(stack, &bytes).await;
    (response.status, response.code())
}

fn rejected(status: u16, code: &str) -> (u16, Option<String>) {
    (status, Some(code.to_owned()))
}

/// Spellings that some backend takes for `path`.
fn ambiguous(path: &str) -> Vec<String> {
    let before = [
        "/",
        "/.",
        "/x/..",
        "/x/%2e%2E",
        "/x/.%2e",
        "/x/..;y",
        "/.;",
        "/a;x/..",
    ];
    let behind = [
        "//", "/.", "/x/..", ".", "%20", "%00", "%0d", ";x", "%3Bx", "%2F", "%5cx",
    ];
    let inside = ["//", "/./", "%2F", "%5C", "/%c0%ae/", "/%e4/"];
    let inside = inside
        .iter()
        .map(|by| format!("/{}", path[1..].replace('/', by)));
    let before = before.iter().map(|start| format!("{start}{path}"));
    let behind = behind.iter().map(|end| format!("{path}{end}"));
    before.chain(behind).chain(inside).collect()
}

#[tokio::test]
async fn an_ambiguous_path_reaches_no_backend() {
    let (stack, backend) = stack().await;
    let client = stack.client();
    let http2 = Http2Client::open(stack.addresses().gateway).await;
    for path in ["/signed/5", "/strict/5"] {
        assert_eq!(
            post(&stack, "v1", path).await,
            rejected(403, "sign_missing")
        );
        for spelling in ambiguous(path) {
            let (status, code) = post(&stack, "v1", &spelling).await;
            // Some are on `always_signed` as well, which is asked before.
            let expected = [
                rejected(403, "sign_missing"),
                rejected(400, "target_ambiguous"),
            ];
            assert!(expected.contains(&(status, code)), "{spelling} {status}");
            // A signature changes nothing of it, neither does HTTP/2.
            let signed = client.get(&spelling).param("a", "1");
            let response = send(&stack, &signed.bytes(&[])).await;
            let found = (response.status, response.code());
            assert_eq!(found, rejected(400, "target_ambiguous"), "{spelling}");
            let response = http2.send(&signed).await.unwrap();
            assert_eq!(
                response.code().as_deref(),
                Some("target_ambiguous"),
                "{spelling}"
            );
        }
    }
    assert!(backend.requests().is_empty());
    let response = send(&stack, &request("GET", "/a/%2e%2E/b", &[], b"")).await;
    let body: Value = serde_json::from_slice(&response.body).unwrap();
    let detail = body["detail"].as_str().unwrap();
    assert!(
        detail.contains("byte 7") && detail.contains("%2E"),
        "{detail}"
    );
    let counted = Scrape::of(stack.addresses().management).await;
    let code = [("problem_code", "target_ambiguous")];
    let rejections = counted.sum("signpost_requests_total", &code);
    assert!(rejections > 50.0, "{}", counted.text());
}

#[tokio::test]
async fn an_escape_is_compared_as_what_it_means_and_forwarded_as_sent() {
    let (stack, backend) = stack().await;
    for path in ["/signed/5", "/strict/5"] {
        for spelling in [path.replacen('s', "%73", 1), path.replace('5', "%35")] {
            for version in ["v1", "v2"] {
                let found = post(&stack, version, &spelling).await;
                let is_strict = found == rejected(403, "sign_missing");
                assert!(is_strict, "{version} {spelling} {found:?}");
            }
        }
    }
    for path in ["/%6Frders/%c3%A9%20x/", "/a;b/../%2f//", "/users/%40me"] {
        let version = format!(
            "Acme-X-Version: {}",
            if path.contains("..") { "v2" } else { "v1" }
        );
        let response = send(&stack, &request("GET", path, &[&version], b"")).await;
        assert_eq!(response.status, 200, "{path}");
        assert_eq!(backend.requests().last().unwrap().target, path);
    }
    let callback = request("GET", "/%6Cogin?state=v1.a&code=x", &[], b"");
    assert_eq!(send(&stack, &callback).await.status, 200);
    // A version that takes all paths takes what its operator is warned of.
    assert_eq!(post(&stack, "v2", "//strict/5").await.0, 200);
}

#[tokio::test]
async fn a_malformed_request_says_where() {
    let (stack, backend) = stack().await;
    let form = "Content-Type: application/x-www-form-urlencoded";
    for (bytes, code, says) in [
        (
            request("GET", "/x?a=1&q=a b", &[], b""),
            "params_malformed",
            &["Byte 8", "query", "\"q\"", "U+0020"][..],
        ),
        (
            request("GET", "/x y", &[], b""),
            "target_invalid",
            &["Byte 3", "path", "U+0020"],
        ),
        (
            request(
                "POST",
                "/x",
                &[form, "Content-Length: 14"],
                b"q=%C4%E3%BA%C3",
            ),
            "params_malformed",
            &["Byte 3", "form", "\"q\"", "GBK"],
        ),
        (
            request("GET", "/x?q=caf%E9", &[], b""),
            "params_malformed",
            &["Byte 6", "query", "\"q\"", "not UTF-8."],
        ),
        (
            request("GET", "/x", &["Host: other.example"], b""),
            "target_invalid",
            &["exactly one Host"],
        ),
    ] {
        let response = send(&stack, &bytes).await;
        assert_eq!((response.status, response.code()), rejected(400, code));
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        let detail = body["detail"].as_str().unwrap();
        assert!(says.iter().all(|part| detail.contains(part)), "{detail}");
        assert!(!detail.contains("caf"), "{detail}");
    }
    assert!(backend.requests().is_empty());
    let log = "the parameters are malformed: character U+0020 at byte 8 of the query, parameter q";
    stack.log_with(Program::Gateway, log).await;
}
