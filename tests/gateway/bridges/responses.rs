//! Every kind of response over a bridge, judged at the client: whole and right, or 502 `bridge_failed`.

use end_to_end::{
    metrics::Scrape,
    program::Program,
    raw_connection::{RawConnection, request},
    raw_http2::{RawHttp2, frame, get, kind},
    recording_backend::{Behaviour, RecordingBackend},
    scripted_backend::{Ending, Pace, Script, ScriptedBackend, Start},
    stack::Stack,
    waiting::until,
};

const BRIDGED: &str = r#"
    [versions.v3]
    bridge = "v2"
    [[versions.v3.changes]]
    name = "a"
    paths = ["/c/"]
    pass_types = ["text/html"]
    response = [{ rename = "$.a", to = "b" }]
"#;

/// The largest body that is changed.
const LIMIT: usize = 256 * 1024;

/// A body by its name, and what becomes of it; `None`: the change does not apply.
type Body = (&'static str, Vec<u8>, Option<Vec<u8>>);

fn bodies() -> Vec<Body> {
    let same = |name, body: &[u8]| (name, body.to_vec(), Some(body.to_vec()));
    let becomes = |name, body: &str, expected: &str| {
        (
            name,
            body.as_bytes().to_vec(),
            Some(expected.as_bytes().to_vec()),
        )
    };
    let fails = |name, body: &[u8]| (name, body.to_vec(), None);
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    let deep_objects = format!(
        "{{\"a\":{}1{}}}",
        "{\"a\":".repeat(3_000),
        "}".repeat(3_000)
    );
    let large = |length: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(length - 8));
    vec![
        same("empty", b""),
        becomes("one member", r#"{"a":1,"c":2}"#, r#"{"b":1,"c":2}"#),
        becomes(
            "in the middle",
            r#"{"z":0,"a":{"a":1},"c":[]}"#,
            r#"{"z":0,"b":{"a":1},"c":[]}"#,
        ),
        becomes(
            "white space",
            "{ \"a\" : 1 ,\r\n\t\"c\" : [ 2 ] }\n",
            r#"{"b":1,"c":[ 2 ]}"#,
        ),
        becomes("an escaped name", r#"{"\u0061":1}"#, r#"{"b":1}"#),
        same("another member", br#"{"c":2}"#),
        same("no member", b"{}"),
        same("null", b"null"),
        becomes(
            "a duplicate of another",
            r#"{"c":1,"c":2,"a":3}"#,
            r#"{"c":1,"c":2,"b":3}"#,
        ),
        fails("a duplicate", br#"{"a":1,"a":2}"#),
        fails("the new name exists", br#"{"a":1,"b":2}"#),
        fails("an array", b"[1,2]"),
        fails("a number", b"17"),
        fails("a text", b"\"a\""),
        becomes(
            "big numbers",
            r#"{"a":123456789012345678901234567890.1000e-7}"#,
            r#"{"b":123456789012345678901234567890.1000e-7}"#,
        ),
        becomes(
            "negative zero",
            r#"{"a":-0.0,"c":1E400}"#,
            r#"{"b":-0.0,"c":1E400}"#,
        ),
        becomes("deep arrays", &deep, &deep.replacen("\"a\"", "\"b\"", 1)),
        becomes(
            "deep objects",
            &deep_objects,
            &deep_objects.replacen("\"a\"", "\"b\"", 1),
        ),
        becomes(
            "texts of the world",
            "{\"a\":\"\u{5f20}\u{e9}\u{1f600}\u{200d}\u{202e}\u{0}x\"}"
                .replace('\u{0}', "\\u0000")
                .as_str(),
            "{\"b\":\"\u{5f20}\u{e9}\u{1f600}\u{200d}\u{202e}\u{0}x\"}"
                .replace('\u{0}', "\\u0000")
                .as_str(),
        ),
        becomes(
            "escapes",
            r#"{"a":"\ud83d\ude00\/\n\u00e9"}"#,
            r#"{"b":"\ud83d\ude00\/\n\u00e9"}"#,
        ),
        becomes("half a surrogate", r#"{"a":"\ud800"}"#, r#"{"b":"\ud800"}"#),
        fails("not UTF-8", b"{\"a\":\"\xff\"}"),
        fails("cut off", br#"{"a":1"#),
        fails("more behind it", br#"{"a":1}x"#),
        fails("a byte order mark", b"\xef\xbb\xbf{\"a\":1}"),
        fails("no JSON", b"<html>a</html>"),
        becomes(
            "the largest",
            &large(LIMIT),
            &large(LIMIT).replacen("\"a\"", "\"b\"", 1),
        ),
        fails("one byte more", large(LIMIT + 1).as_bytes()),
        fails("a megabyte", large(1024 * 1024).as_bytes()),
    ]
}

/// How a body is framed.
#[derive(Clone, Copy, Debug)]
enum Framing {
    Length,
    Chunked,
    UntilClose,
}

/// The bytes of a response.
fn response(
    status: &str,
    content_type: Option<&str>,
    further: &str,
    framing: Framing,
    body: &[u8],
) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\n{further}").into_bytes();
    if let Some(content_type) = content_type {
        bytes.extend(format!("Content-Type: {content_type}\r\n").into_bytes());
    }
    match framing {
        Framing::Length => {
            bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes());
            bytes.extend(body);
        }
        Framing::Chunked => {
            bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            for chunk in body.chunks(body.len() / 3 + 1) {
                bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
        }
        Framing::UntilClose => {
            bytes.extend(b"Connection: close\r\n\r\n");
            bytes.extend(body);
        }
    }
    bytes
}

/// A response of the backend, and what the client must get: the body, or 502.
struct Case {
    name: String,
    bytes: Vec<u8>,
    body: Vec<u8>,
    status: u16,
    expected: Option<Vec<u8>>,
    ending: Ending,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let types = [
        (Some("application/json"), true),
        (Some("Application/JSON; charset=utf-8"), true),
        (Some("application/vnd.acme+json"), true),
        (Some("text/html"), false),
    ];
    for (content_type, changes) in types {
        for framing in [Framing::Length, Framing::Chunked, Framing::UntilClose] {
            for (name, body, expected) in bodies() {
                cases.push(Case {
                    name: format!("{name}, {content_type:?}, {framing:?}"),
                    bytes: response("200 OK", content_type, "", framing, &body),
                    body: body.clone(),
                    status: 200,
                    // What is passed by its type keeps its bytes.
                    expected: if changes { expected } else { Some(body) },
                    ending: ending(framing),
                });
            }
        }
    }
    let body = br#"{"a":1}"#;
    let mut add = |name: &str, bytes: Vec<u8>, status, expected: Option<&[u8]>| {
        cases.push(Case {
            name: name.to_owned(),
            body: body_of(&bytes).to_vec(),
            bytes,
            status,
            expected: expected.map(<[u8]>::to_vec),
            ending: Ending::Open,
        });
    };
    let json = Some("application/json");
    for other in [
        None,
        Some("application/xml"),
        Some("text/plain"),
        Some("application/jsonp"),
        Some(""),
    ] {
        let bytes = response("200 OK", other, "", Framing::Length, body);
        add(&format!("type {other:?}"), bytes, 200, None);
        let bytes = response("200 OK", other, "", Framing::Chunked, b"");
        add(&format!("empty, type {other:?}"), bytes, 200, Some(b""));
    }
    for encoding in ["gzip", "br", "deflate", "gzip, identity", "unknown"] {
        let further = format!("Content-Encoding: {encoding}\r\n");
        let bytes = response("200 OK", json, &further, Framing::Length, body);
        add(encoding, bytes, 200, None);
    }
    let identity = response(
        "200 OK",
        json,
        "Content-Encoding: identity\r\n",
        Framing::Length,
        body,
    );
    add("identity", identity, 200, Some(br#"{"b":1}"#));
    let none = b"HTTP/1.1 204 No Content\r\nETag: \"a\"\r\n\r\n";
    add("204", none.to_vec(), 204, Some(b""));
    let not_modified = b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 7\r\n\r\n";
    add("304", not_modified.to_vec(), 304, Some(b""));
    for status in [201_u16, 202, 203, 206, 226, 299] {
        let bytes = response(&format!("{status} Some"), json, "", Framing::Length, body);
        add(&status.to_string(), bytes, status, Some(br#"{"b":1}"#));
    }
    for status in [300_u16, 302, 400, 401, 404, 410, 422, 500, 503, 599] {
        let bytes = response(&format!("{status} Some"), json, "", Framing::Chunked, body);
        add(&status.to_string(), bytes, status, Some(body));
    }
    let interim = [
        &b"HTTP/1.1 103 Early Hints\r\n\r\n"[..],
        &response("200 OK", json, "", Framing::Length, body),
    ]
    .concat();
    add("behind an interim one", interim, 200, Some(br#"{"b":1}"#));
    cases
}

/// The body of a response that is none of [`bodies`]: it has one, or none.
fn body_of(response: &[u8]) -> &[u8] {
    let has_body = response.windows(3).any(|window| window == b"{\"a");
    if has_body { br#"{"a":1}"# } else { b"" }
}

fn script(case: &Case) -> Script {
    Script {
        bytes: case.bytes.clone(),
        pace: Pace::AtOnce,
        start: Start::AfterRequest,
        ending: case.ending,
    }
}

fn ending(framing: Framing) -> Ending {
    match framing {
        Framing::UntilClose => Ending::Close,
        Framing::Length | Framing::Chunked => Ending::Open,
    }
}

#[tokio::test]
async fn each_kind_of_response_is_changed_passed_or_502() {
    let backend = ScriptedBackend::start().await;
    let builder = Stack::builder().in_front_of_address(backend.address());
    let stack = builder.gateway(BRIDGED).start().await;
    let client = stack.client();
    let cases = cases();
    assert!(cases.len() > 200, "{}", cases.len());
    let mut changed = 0;
    for (index, case) in cases.iter().enumerate() {
        let target = format!("/c/{index}");
        backend.script(&target, script(case));
        let response = client.get(&target).version("v3").unsigned().send().await;
        let Some(expected) = &case.expected else {
            let problem = response.problem(502, "bridge_failed");
            assert!(
                problem["detail"].as_str().unwrap().contains(" a "),
                "{}: {problem}",
                case.name
            );
            continue;
        };
        assert_eq!(response.status, case.status, "{}", case.name);
        assert_eq!(response.body.len(), expected.len(), "{}", case.name);
        assert!(response.body == *expected, "{}", case.name);
        changed += usize::from(response.body.starts_with(b"{\"b\""));
        if let Some(length) = response
            .header("content-length")
            .filter(|_| case.status != 304)
        {
            assert_eq!(length, expected.len().to_string(), "{}", case.name);
        }
    }
    assert!(changed > 50, "{changed}");
    let log = stack.log(Program::Gateway);
    assert!(!log.contains("panicked"), "{log}");
}

#[tokio::test]
async fn a_response_that_breaks_off_is_never_sent_in_part() {
    let backend = ScriptedBackend::start().await;
    let builder = Stack::builder().in_front_of_address(backend.address());
    let stack = builder.gateway(BRIDGED).start().await;
    let client = stack.client();
    let whole = response(
        "200 OK",
        Some("application/json"),
        "",
        Framing::Length,
        br#"{"a":1,"c":"text"}"#,
    );
    for (index, cut) in (whole.len() - 18..whole.len()).enumerate() {
        let target = format!("/c/{index}");
        backend.script(
            &target,
            Script {
                bytes: whole[..cut].to_vec(),
                pace: Pace::AtOnce,
                start: Start::AfterRequest,
                ending: Ending::Close,
            },
        );
        let response = client.get(&target).version("v3").unsigned().send().await;
        response.problem(502, "backend_unreachable");
    }
}

/// Copies of these requests get the same responses: none differs, and each client gets what the backend has sent.
#[tokio::test]
async fn each_kind_of_response_passes_unchanged_beside_a_shadow() {
    let backend = ScriptedBackend::start().await;
    let builder = Stack::builder().in_front_of_address(backend.address());
    let shadow =
        "[versions.v1.shadow]\nto = 'v2'\npercent = 100.0\npaths = ['/c/']\nnoise_percent = 20.0\n";
    let stack = builder.multi().gateway(shadow).start().await;
    let app = stack.create_application("Shop", &[]);
    let client = stack.client_of(&app);
    let cases = cases();
    for (index, case) in cases.iter().enumerate() {
        let target = format!("/c/{index}");
        backend.script(&target, script(case));
        let response = client.get(&target).version("v1").unsigned().send().await;
        assert_eq!(response.status, case.status, "{}", case.name);
        assert!(response.body == case.body, "{}", case.name);
    }
    let count = async |result: &str| {
        let scrape = Scrape::of(stack.addresses().management).await;
        scrape.sum("signpost_shadow_copies_total", &[("result", result)])
    };
    let number = f64::from(u32::try_from(cases.len()).unwrap());
    until("all copies to be compared", || async {
        let (equal, skipped) = (count("equal").await, count("skipped").await);
        (equal + skipped == number).then_some(())
    })
    .await;
    assert!(count("equal").await > 200.0);
    assert_eq!(count("different").await + count("failed").await, 0.0);
}

/// Streams of one connection.
const STREAMS: usize = 96;

/// Issue 44: a network whose clients read nothing took every place, and everybody else got 502.
#[tokio::test]
async fn clients_that_read_slowly_leave_places_to_others() {
    let backend = RecordingBackend::start().await;
    let any_number = "default_version = 'v3'\n[[listen]]\naddress = '$LISTEN'\nprotocols = ['http/1.1', 'h2c']\n\
                      [connections]\nper_address = 5000\n[limits.unsigned]\nper_second = 0\n";
    let stack = Stack::builder().in_front_of(&backend).gateway(BRIDGED);
    let stack = stack.gateway(any_number).start().await;
    // More than waits in a kernel's buffers, or beside other small ones.
    let body = |name: &str| format!("{{\"{name}\":\"{}\"}}", "x".repeat(70_000));
    backend.behave(Behaviour {
        body: body("a").into(),
        ..Behaviour::default()
    });
    let mut unread = Vec::new();
    for number in 0..11 {
        let mut connection = RawHttp2::open(stack.addresses().gateway).await;
        // INITIAL_WINDOW_SIZE 0: no byte of a body may be sent.
        let mut bytes = frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
        for stream in 0..u32::try_from(STREAMS).unwrap() {
            bytes.extend(get(2 * stream + 1, "/c/x"));
        }
        connection.send(&bytes).await;
        // Each has a head: the body waits, or the request was rejected.
        let mut heads = 0;
        while heads < STREAMS {
            heads += usize::from(connection.frame().await.unwrap().kind == kind::HEADERS);
        }
        unread.push(connection);
        // Each has its place back: the network has a quarter of the places, and of those of large bodies that wait.
        if number == 4 {
            let client = stack.client();
            let call = client.get("/c/x").version("v3").unsigned().send().await;
            assert!(call.text() == body("b"), "{}", call.status);
        }
    }
    let address = stack.addresses().gateway;
    let mut other = RawConnection::open_from([127, 0, 0, 2].into(), address).await;
    other.send(&request("GET", "/c/x", &[], b"")).await;
    let response = other.response().await.unwrap();
    assert_eq!(response.status, 200, "{}", response.head);
    assert!(response.body == body("b").into_bytes());
    drop(unread);
}
