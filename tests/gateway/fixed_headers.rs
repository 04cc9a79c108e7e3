//! Fixed headers of responses, `[headers.response]`, of the gateway and of a version. CONTRACT 1.

use end_to_end::{
    http2_client::Http2Client,
    program::Program,
    raw_connection::{RawResponse, request},
    recording_backend::{Behaviour, RecordingBackend},
    stack::Stack,
};

/// A backend that says more than it should.
const CHATTY: &str = "HTTP/1.1 200 OK\r\nServer: Werkzeug\r\nX-Powered-By: Express\r\n\
                      X-Frame-Options: SAMEORIGIN\r\nCache-Control: public\r\nLink: </own>\r\n\
                      Strict-Transport-Security: max-age=1\r\nContent-Length: 2\r\n\r\nok";

const FIXED: &str = "[cors]\norigins = ['https://app.example']\n\
                     [headers.response]\nset = ['X-Frame-Options: DENY', 'Cache-Control: private']\n\
                     add = ['Link: </fixed>']\nremove = ['Server']\n\
                     [versions.v2.headers.response]\nset = ['x-frame-options: NONE']\nremove = ['x-powered-by']\n";

/// The values of a header, in the order of its lines.
fn values<'r>(response: &'r RawResponse, name: &str) -> Vec<&'r str> {
    let fields = response
        .head
        .lines()
        .filter_map(|line| line.split_once(':'));
    let named = fields.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value.trim()).collect()
}

async fn start(toml: &str) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    backend.behave(Behaviour::verbatim(CHATTY));
    let listen = "[[listen]]\naddress = '$LISTEN'\nprotocols = ['http/1.1', 'h2c']\n";
    let builder = Stack::builder().in_front_of(&backend).gateway(listen);
    (builder.gateway(toml).start().await, backend)
}

#[tokio::test]
async fn a_backends_headers_are_replaced_supplemented_and_removed() {
    let (stack, _backend) = start(FIXED).await;
    let address = stack.addresses().gateway;
    for (version, frame, powered) in [("v1", "DENY", &["Express"][..]), ("v2", "NONE", &[])] {
        let client = stack.client();
        let call = client.get("/x").version(version);
        let mut connection = stack.raw().await;
        connection.send(&call.bytes(&[])).await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.status, 200);
        for (name, expected) in [
            ("x-frame-options", &[frame][..]),
            ("cache-control", &["private"]),
            ("link", &["</own>", "</fixed>"]),
            ("server", &[]),
            ("x-powered-by", powered),
            ("strict-transport-security", &["max-age=1"]),
            ("acme-x-version", &[version]),
        ] {
            assert_eq!(values(&response, name), expected, "{version} {name}");
        }
        let response = Http2Client::open(address).await.send(&call).await.unwrap();
        let found = |name: &str| {
            let values = response.fields.get_all(name).iter();
            values
                .map(|value| value.to_str().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(found("x-frame-options"), [frame], "{version}");
        assert_eq!(found("link"), ["</own>", "</fixed>"], "{version}");
        assert_eq!(found("x-powered-by"), powered, "{version}");
        assert!(found("server").is_empty(), "{version}");
    }
}

#[tokio::test]
async fn the_gateways_own_responses_have_fixed_headers_too() {
    let (stack, backend) = start(&format!("{FIXED}[sign]\nunsigned = 'reject'\n")).await;
    let mut connection = stack.raw().await;
    let origin = "Origin: https://app.example";
    let asked = "Access-Control-Request-Method: GET";
    for (method, target, header, status, frame) in [
        ("OPTIONS", "/x", asked, 204, "DENY"),
        ("PUT", "/x", "A: b", 405, "DENY"),
        ("GET", "/x?a=1", "A: b", 403, "DENY"),
        // It has a version.
        ("GET", "/x", "Acme-X-Version: v2", 403, "NONE"),
    ] {
        let bytes = request(method, target, &[origin, header], b"");
        connection.send(&bytes).await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.status, status, "{}", response.head);
        assert_eq!(values(&response, "x-frame-options"), [frame]);
        assert_eq!(values(&response, "link"), ["</fixed>"]);
        // An error is not cached, even if a backend's responses are.
        let cached = if status == 204 { "private" } else { "no-store" };
        assert_eq!(values(&response, "cache-control"), [cached], "{method}");
    }
    // What is not HTTP gets nothing.
    connection.send(b"HELLO\r\n\r\n").await;
    let bare = connection.response().await.unwrap();
    assert_eq!(bare.status, 400);
    assert!(values(&bare, "x-frame-options").is_empty(), "{}", bare.head);
    assert!(backend.requests().is_empty());
}

/// Responses of the login service carry credentials.
#[tokio::test]
async fn a_backends_no_store_prevails() {
    for line in [
        "set = ['Cache-Control: public, max-age=600']",
        "add = ['Cache-Control: public']",
        "remove = ['Cache-Control']",
    ] {
        let (stack, backend) = start(&format!("[headers.response]\n{line}\n")).await;
        let own = "private, No-Store";
        let answer = CHATTY.replace("public", own);
        backend.behave(Behaviour::verbatim(&answer));
        let mut connection = stack.raw().await;
        connection.send(&stack.client().get("/x").bytes(&[])).await;
        let response = connection.response().await.unwrap();
        assert_eq!(values(&response, "cache-control"), [own], "{line}");
    }
}

#[tokio::test]
async fn fixed_headers_are_reloaded() {
    let (stack, _backend) = start("").await;
    let client = stack.client();
    let frame = || async {
        let response = client.get("/x").send().await;
        response.header("x-frame-options").map(str::to_owned)
    };
    assert_eq!(frame().await.as_deref(), Some("SAMEORIGIN"));
    for (line, expected) in [
        ("set = ['X-Frame-Options: DENY']", Some("DENY")),
        ("set = []\nremove = ['X-Frame-Options']", None),
    ] {
        stack.configure(Program::Gateway, &format!("[headers.response]\n{line}\n"));
        assert!(stack.reload(Program::Gateway).status.success());
        assert_eq!(frame().await.as_deref(), expected);
    }
}
