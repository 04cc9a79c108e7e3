//! Malformed frames and heads, and streams in a wrong state: the cases of RFC 9113 that matter, each on a connection of
//! its own. None reaches the backend unless the table says so.

use end_to_end::raw_http2::{
    END_HEADERS, END_STREAM, PADDED, PREFACE, RawHttp2, Reaction, block, fields, frame, get,
    headers, kind,
};

use super::stack;

/// The expected reaction.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// The connection ends with an error.
    Ends,
    /// The stream ends with an error, or the whole connection.
    Resets,
    /// 400 without a problem code.
    Bare,
    /// A rejection with this code.
    Rejects(u16, &'static str),
    /// The backend gets the request.
    Passes,
}

use Expected::{Bare, Ends, Passes, Rejects, Resets};

type Case = (&'static str, Vec<u8>, Expected);

/// An error code of the connection or the stream; all but `NO_ERROR`.
fn is_expected(reaction: &Reaction, expected: Expected) -> bool {
    match (expected, reaction) {
        (Ends, Reaction::Goaway(_) | Reaction::Closed)
        | (Resets, Reaction::Goaway(_) | Reaction::Closed) => true,
        (Resets, Reaction::Reset(code)) => *code != 0,
        (Bare, Reaction::Response(400, None)) | (Passes, Reaction::Response(200, None)) => true,
        (Rejects(status, code), Reaction::Response(found, Some(reason))) => {
            *found == status && reason == code
        }
        _ => false,
    }
}

async fn check(cases: Vec<Case>) {
    let (stack, backend) = stack("").await;
    let mut wrong = Vec::new();
    let mut passed = 0;
    for (name, bytes, expected) in cases {
        let mut connection = RawHttp2::open(stack.addresses().gateway).await;
        connection.send(&bytes).await;
        let reaction = connection.reaction(1).await;
        if !is_expected(&reaction, expected) {
            wrong.push(format!("{name}: {reaction:?} instead of {expected:?}"));
        }
        passed += usize::from(matches!(expected, Passes));
        let arrived = backend.recorded().len();
        if arrived != passed {
            wrong.push(format!(
                "{name}: {arrived} instead of {passed} requests arrived"
            ));
            passed = arrived;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(stack.client().get("/x").send().await.status, 200);
}

/// A GET of `/x` with further fields.
fn with(further: &[(&[u8], &[u8])]) -> Vec<u8> {
    headers(1, END_STREAM, &fields("GET", "/x", further))
}

/// A GET with these fields, pseudo-header fields included.
fn only(fields: &[(&[u8], &[u8])]) -> Vec<u8> {
    headers(1, END_STREAM, fields)
}

/// The head of a POST whose body follows.
fn post(further: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut all: Vec<(&[u8], &[u8])> =
        vec![(b"content-type", b"application/x-www-form-urlencoded")];
    all.extend_from_slice(further);
    headers(1, 0, &fields("POST", "/x", &all))
}

fn data(flags: u8, stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(kind::DATA, flags, stream, bytes)
}

#[tokio::test]
async fn malformed_frames_end_the_connection() {
    let zero = [0; 4];
    let part = block(&fields("GET", "/x", &[]));
    let open = |flags| frame(kind::HEADERS, flags, 1, &part);
    let settings = |payload: &[u8]| frame(kind::SETTINGS, 0, 0, payload);
    check(vec![
        (
            "a frame longer than allowed",
            frame(kind::DATA, 0, 1, &[0; 16_385]),
            Ends,
        ),
        ("DATA of the connection", data(0, 0, b"a"), Ends),
        ("DATA of an idle stream", data(0, 1, b"a"), Ends),
        (
            "HEADERS of the connection",
            headers(0, END_STREAM, &fields("GET", "/x", &[])),
            Ends,
        ),
        ("HEADERS of an even stream", get(2, "/x"), Ends),
        (
            "HEADERS with more padding than bytes",
            frame(kind::HEADERS, PADDED | END_HEADERS, 1, &[9, 0x82]),
            Ends,
        ),
        (
            "DATA with more padding than bytes",
            [post(&[]), data(PADDED, 1, &[9, 1])].concat(),
            Ends,
        ),
        (
            "a stream before the last one",
            [get(3, "/y?a=%zz"), get(1, "/x?a=%zz")].concat(),
            Resets,
        ),
        (
            "PRIORITY of the connection",
            frame(kind::PRIORITY, 0, 0, &[0; 5]),
            Ends,
        ),
        (
            "PRIORITY of another length",
            frame(kind::PRIORITY, 0, 1, &zero),
            Resets,
        ),
        (
            "PRIORITY that depends on itself",
            frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 1, 0]),
            Resets,
        ),
        (
            "RST_STREAM of an idle stream",
            frame(kind::RST_STREAM, 0, 1, &zero),
            Ends,
        ),
        (
            "RST_STREAM of the connection",
            frame(kind::RST_STREAM, 0, 0, &zero),
            Ends,
        ),
        (
            "RST_STREAM of another length",
            frame(kind::RST_STREAM, 0, 1, &[0; 3]),
            Ends,
        ),
        (
            "SETTINGS of a stream",
            frame(kind::SETTINGS, 0, 1, &[]),
            Ends,
        ),
        ("SETTINGS of another length", settings(&[0; 5]), Ends),
        (
            "acknowledged SETTINGS with a payload",
            frame(kind::SETTINGS, 1, 0, &[0; 6]),
            Ends,
        ),
        ("ENABLE_PUSH 2", settings(&[0, 2, 0, 0, 0, 2]), Ends),
        (
            "INITIAL_WINDOW_SIZE of 2^31",
            settings(&[0, 4, 0x80, 0, 0, 0]),
            Ends,
        ),
        ("MAX_FRAME_SIZE of 1", settings(&[0, 5, 0, 0, 0, 1]), Ends),
        (
            "PUSH_PROMISE",
            frame(kind::PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]),
            Ends,
        ),
        ("PING of a stream", frame(kind::PING, 0, 1, &[0; 8]), Ends),
        (
            "PING of another length",
            frame(kind::PING, 0, 0, &[0; 7]),
            Ends,
        ),
        (
            "GOAWAY of a stream",
            frame(kind::GOAWAY, 0, 1, &[0; 8]),
            Ends,
        ),
        (
            "WINDOW_UPDATE of 0",
            frame(kind::WINDOW_UPDATE, 0, 0, &zero),
            Ends,
        ),
        (
            "WINDOW_UPDATE of another length",
            frame(kind::WINDOW_UPDATE, 0, 0, &[1; 3]),
            Ends,
        ),
        (
            "WINDOW_UPDATE of an idle stream",
            frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
            Ends,
        ),
        (
            "WINDOW_UPDATE beyond the largest window",
            frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255]),
            Ends,
        ),
        (
            "WINDOW_UPDATE of 0 for a stream",
            [post(&[]), frame(kind::WINDOW_UPDATE, 0, 1, &zero)].concat(),
            Resets,
        ),
        (
            "CONTINUATION alone",
            frame(kind::CONTINUATION, END_HEADERS, 1, &part),
            Ends,
        ),
        (
            "CONTINUATION after the end",
            [post(&[]), frame(kind::CONTINUATION, END_HEADERS, 1, &part)].concat(),
            Ends,
        ),
        (
            "another frame before CONTINUATION",
            [open(END_STREAM), frame(kind::PING, 0, 0, &[0; 8])].concat(),
            Ends,
        ),
        (
            "CONTINUATION of another stream",
            [
                open(END_STREAM),
                frame(kind::CONTINUATION, END_HEADERS, 3, &[]),
            ]
            .concat(),
            Ends,
        ),
        (
            "an unknown frame before CONTINUATION",
            [open(END_STREAM), frame(kind::UNKNOWN, 0, 1, &[])].concat(),
            Ends,
        ),
        (
            "entry 0 of the table",
            frame(kind::HEADERS, END_STREAM | END_HEADERS, 1, &[0x80]),
            Ends,
        ),
        (
            "an entry that does not exist",
            frame(kind::HEADERS, END_STREAM | END_HEADERS, 1, &[0xff, 0x40]),
            Ends,
        ),
        (
            "a block that breaks off",
            frame(
                kind::HEADERS,
                END_STREAM | END_HEADERS,
                1,
                &part[..part.len() - 1],
            ),
            Ends,
        ),
        (
            "a table beyond the limit",
            frame(
                kind::HEADERS,
                END_STREAM | END_HEADERS,
                1,
                &[0x3f, 0xff, 0xff, 0x03, 0x82],
            ),
            Ends,
        ),
        ("a preface twice", PREFACE.to_vec(), Ends),
    ])
    .await;
}

#[tokio::test]
async fn heads_are_judged_as_in_http_1_1() {
    check(vec![
        ("a usual head", with(&[(b"x-a", b"1")]), Passes),
        ("an upper-case name", with(&[(b"X-A", b"1")]), Bare),
        ("connection", with(&[(b"connection", b"close")]), Bare),
        ("keep-alive", with(&[(b"keep-alive", b"1")]), Bare),
        (
            "proxy-connection",
            with(&[(b"proxy-connection", b"close")]),
            Bare,
        ),
        (
            "transfer-encoding",
            with(&[(b"transfer-encoding", b"chunked")]),
            Bare,
        ),
        ("upgrade", with(&[(b"upgrade", b"h2c")]), Bare),
        ("te", with(&[(b"te", b"gzip")]), Bare),
        ("te: trailers", with(&[(b"te", b"trailers")]), Passes),
        (
            "a line end in a value",
            with(&[(b"x-a", b"1\r\nx-b: 2")]),
            Bare,
        ),
        (
            "a line feed in a value",
            with(&[(b"x-a", b"1\nx-b: 2")]),
            Bare,
        ),
        ("a NUL in a value", with(&[(b"x-a", b"1\0")]), Bare),
        ("a blank before a value", with(&[(b"x-a", b" 1")]), Bare),
        ("a blank behind a value", with(&[(b"x-a", b"1\t")]), Bare),
        (
            "a line end in a name",
            with(&[(b"x-a: 1\r\nx-b", b"1")]),
            Bare,
        ),
        ("a blank in a name", with(&[(b"x a", b"1")]), Bare),
        ("a colon in a name", with(&[(b"x:a", b"1")]), Bare),
        ("an empty name", with(&[(b"", b"1")]), Bare),
        (
            "an unknown pseudo-header field",
            with(&[(b":x", b"1")]),
            Bare,
        ),
        (":status", with(&[(b":status", b"200")]), Bare),
        (":protocol", with(&[(b":protocol", b"websocket")]), Bare),
        (":path twice", with(&[(b":path", b"/y")]), Bare),
        (
            ":method behind a field",
            only(&[
                (b":scheme", b"http"),
                (b":authority", b"a"),
                (b":path", b"/x"),
                (b"x-a", b"1"),
                (b":method", b"GET"),
            ]),
            Bare,
        ),
        (
            "no :method",
            only(&[
                (b":scheme", b"http"),
                (b":authority", b"a"),
                (b":path", b"/x"),
            ]),
            Bare,
        ),
        (
            "no :scheme",
            only(&[
                (b":method", b"GET"),
                (b":authority", b"a"),
                (b":path", b"/x"),
            ]),
            Bare,
        ),
        (
            "no :path",
            only(&[
                (b":method", b"GET"),
                (b":scheme", b"http"),
                (b":authority", b"a"),
            ]),
            Bare,
        ),
        (
            "no :path and no :authority",
            only(&[(b":method", b"GET"), (b":scheme", b"http"), (b"host", b"a")]),
            Bare,
        ),
        (
            "an empty :path",
            headers(1, END_STREAM, &fields("GET", "", &[])),
            Bare,
        ),
        (
            "a method that is no token",
            headers(1, END_STREAM, &fields("GE T", "/x", &[])),
            Bare,
        ),
        (
            "a method in another case",
            headers(1, END_STREAM, &fields("get", "/x", &[])),
            Rejects(405, "method_not_allowed"),
        ),
        (
            "a method with a line end",
            headers(1, END_STREAM, &fields("GET / HTTP/1.1\r\nx: ", "/x", &[])),
            Bare,
        ),
        (
            "a target with a line end",
            headers(1, END_STREAM, &fields("GET", "/x HTTP/1.1\r\na: ", &[])),
            Rejects(400, "target_invalid"),
        ),
        (
            "a target with a blank",
            headers(1, END_STREAM, &fields("GET", "/x y", &[])),
            Rejects(400, "target_invalid"),
        ),
        (
            "a target with a brace",
            headers(1, END_STREAM, &fields("GET", "/{x}", &[])),
            Rejects(400, "target_invalid"),
        ),
        (
            "a target that is not ASCII",
            headers(1, END_STREAM, &fields("GET", "/ü", &[])),
            Rejects(400, "target_invalid"),
        ),
        (
            "a target with angle brackets",
            headers(1, END_STREAM, &fields("GET", "/<x>", &[])),
            Rejects(400, "target_invalid"),
        ),
        (
            "a target with a backtick",
            headers(1, END_STREAM, &fields("GET", "/`x`", &[])),
            Rejects(400, "target_invalid"),
        ),
        (
            "a target that is not UTF-8",
            only(&[
                (b":method", b"GET"),
                (b":scheme", b"http"),
                (b":authority", b"a"),
                (b":path", b"/\xff"),
            ]),
            Rejects(400, "target_invalid"),
        ),
        (
            "a target with a fragment",
            headers(1, END_STREAM, &fields("GET", "/x#a", &[])),
            Rejects(400, "target_invalid"),
        ),
        (
            "a query with angle brackets",
            headers(1, END_STREAM, &fields("GET", "/x?a=<b>", &[])),
            Rejects(400, "params_malformed"),
        ),
        (
            "a query with a blank",
            headers(1, END_STREAM, &fields("GET", "/x?a=b c", &[])),
            Rejects(400, "params_malformed"),
        ),
        (
            "a query with a brace",
            headers(1, END_STREAM, &fields("GET", "/x?{a}", &[])),
            Rejects(400, "params_malformed"),
        ),
        (
            "an absolute target",
            headers(1, END_STREAM, &fields("GET", "http://a/x", &[])),
            Rejects(400, "target_invalid"),
        ),
        (
            "a relative target",
            headers(1, END_STREAM, &fields("GET", "x", &[])),
            Rejects(400, "target_invalid"),
        ),
        (
            "an asterisk",
            headers(1, END_STREAM, &fields("OPTIONS", "*", &[])),
            Rejects(400, "target_invalid"),
        ),
        (
            "CONNECT",
            only(&[(b":method", b"CONNECT"), (b":authority", b"a:443")]),
            Rejects(400, "target_invalid"),
        ),
        (
            "CONNECT with a path",
            headers(1, END_STREAM, &fields("CONNECT", "/x", &[])),
            Rejects(400, "target_invalid"),
        ),
        (
            "extended CONNECT",
            headers(
                1,
                0,
                &fields("CONNECT", "/x", &[(b":protocol", b"websocket")]),
            ),
            Bare,
        ),
        (
            "another scheme",
            only(&[
                (b":method", b"GET"),
                (b":scheme", b"ftp"),
                (b":authority", b"a"),
                (b":path", b"/x"),
            ]),
            Rejects(400, "target_invalid"),
        ),
        (
            "another host",
            with(&[(b"host", b"other.example")]),
            Rejects(400, "target_invalid"),
        ),
        (
            "the same host",
            with(&[(b"host", b"gateway.example")]),
            Passes,
        ),
        (
            "only a host",
            only(&[
                (b":method", b"GET"),
                (b":scheme", b"http"),
                (b":path", b"/x"),
                (b"host", b"a"),
            ]),
            Passes,
        ),
        (
            "two hosts",
            only(&[
                (b":method", b"GET"),
                (b":scheme", b"http"),
                (b":path", b"/x"),
                (b"host", b"a"),
                (b"host", b"a"),
            ]),
            Rejects(400, "target_invalid"),
        ),
        (
            "no host",
            only(&[
                (b":method", b"GET"),
                (b":scheme", b"http"),
                (b":path", b"/x"),
            ]),
            Rejects(400, "target_invalid"),
        ),
        (
            "a host with a blank",
            only(&[
                (b":method", b"GET"),
                (b":scheme", b"http"),
                (b":path", b"/x"),
                (b":authority", b"a b"),
            ]),
            Rejects(400, "target_invalid"),
        ),
        (
            "another scheme, and the host in a field",
            only(&[
                (b":method", b"GET"),
                (b":scheme", b"ftp"),
                (b":path", b"/x"),
                (b"host", b"a"),
            ]),
            Rejects(400, "target_invalid"),
        ),
        (
            "a host with a user",
            only(&[
                (b":method", b"GET"),
                (b":scheme", b"http"),
                (b":path", b"/x"),
                (b":authority", b"u@a"),
            ]),
            Rejects(400, "target_invalid"),
        ),
        (
            "two values of a convention header",
            with(&[(b"acme-x-version", b"v1"), (b"acme-x-version", b"v2")]),
            Rejects(400, "header_duplicated"),
        ),
        (
            "too many fields",
            with(&[(&b"x-a"[..], &b"1"[..]); 101]),
            Rejects(431, "headers_too_large"),
        ),
        (
            "a head beyond the limit",
            with(&[(b"x-a", &[b'a'; 15_000]), (b"x-b", &[b'a'; 1000])]),
            Passes,
        ),
        (
            "HEADERS with padding and priority",
            {
                let mut payload = vec![3, 0, 0, 0, 0, 15];
                payload.extend(block(&fields("GET", "/x", &[])));
                payload.extend([0; 3]);
                frame(
                    kind::HEADERS,
                    END_STREAM | END_HEADERS | PADDED | 0x20,
                    1,
                    &payload,
                )
            },
            Passes,
        ),
        (
            "a head in two parts",
            {
                let all = block(&fields("GET", "/x", &[]));
                let (first, second) = all.split_at(10);
                [
                    frame(kind::HEADERS, END_STREAM, 1, first),
                    frame(kind::CONTINUATION, END_HEADERS, 1, second),
                ]
                .concat()
            },
            Passes,
        ),
        (
            "unknown frames and settings",
            [
                frame(kind::UNKNOWN, 0, 1, b"abc"),
                frame(kind::SETTINGS, 0, 0, &[0xff, 0, 0, 0, 0, 1]),
                get(1, "/x"),
            ]
            .concat(),
            Passes,
        ),
    ])
    .await;
}

#[tokio::test]
async fn bodies_are_judged_as_in_http_1_1() {
    let length = |value: &'static [u8]| post(&[(b"content-length", value)]);
    check(vec![
        (
            "a GET that ends with an empty DATA",
            [
                headers(1, 0, &fields("GET", "/x", &[])),
                data(END_STREAM, 1, b""),
            ]
            .concat(),
            Rejects(400, "body_not_allowed"),
        ),
        (
            "a GET with a body",
            [
                headers(1, 0, &fields("GET", "/x", &[])),
                data(END_STREAM, 1, b"a"),
            ]
            .concat(),
            Rejects(400, "body_not_allowed"),
        ),
        (
            "a POST of length 0 with a body",
            [length(b"0"), data(END_STREAM, 1, b"a=1")].concat(),
            Bare,
        ),
        (
            "a POST of length 0 that ends with an empty DATA",
            [length(b"0"), data(END_STREAM, 1, b"")].concat(),
            Passes,
        ),
        (
            "a GET of length 0 with a body",
            [
                headers(1, 0, &fields("GET", "/x", &[(b"content-length", b"0")])),
                data(END_STREAM, 1, b"a=1"),
            ]
            .concat(),
            Rejects(400, "body_not_allowed"),
        ),
        (
            "more than content-length",
            [length(b"1"), data(END_STREAM, 1, b"ab")].concat(),
            Bare,
        ),
        (
            "less than content-length",
            [length(b"3"), data(END_STREAM, 1, b"ab")].concat(),
            Bare,
        ),
        (
            "a content-length without a body",
            headers(
                1,
                END_STREAM,
                &fields("POST", "/x", &[(b"content-length", b"3")]),
            ),
            Bare,
        ),
        (
            "a content-length twice",
            [
                post(&[(b"content-length", b"1"), (b"content-length", b"1")]),
                data(END_STREAM, 1, b"a"),
            ]
            .concat(),
            Bare,
        ),
        (
            "two content-lengths",
            [
                post(&[(b"content-length", b"1"), (b"content-length", b"2")]),
                data(END_STREAM, 1, b"a"),
            ]
            .concat(),
            Bare,
        ),
        (
            "a content-length with a sign",
            [length(b"+1"), data(END_STREAM, 1, b"a")].concat(),
            Bare,
        ),
        (
            "trailers that do not end the stream",
            [
                post(&[]),
                data(0, 1, b"a=1"),
                headers(1, 0, &[(b"x-a", b"1")]),
            ]
            .concat(),
            Resets,
        ),
        (
            "trailers with a pseudo-header field, which end at the gateway",
            [
                post(&[]),
                data(0, 1, b"a=1"),
                headers(1, END_STREAM, &[(b":path", b"/y")]),
            ]
            .concat(),
            Rejects(403, "time_missing"),
        ),
        (
            "DATA after the end",
            [get(1, "/x?a=%zz"), data(0, 1, b"a")].concat(),
            Ends,
        ),
        (
            "a body beyond the window",
            [post(&[]), data(0, 1, &[b'a'; 16_384]).repeat(5)].concat(),
            Resets,
        ),
    ])
    .await;
}

#[tokio::test]
async fn crumbs_become_one_cookie() {
    let (stack, backend) = stack("").await;
    let mut connection = RawHttp2::open(stack.addresses().gateway).await;
    let crumbs = fields(
        "GET",
        "/d",
        &[(b"cookie", b"a=1"), (b"x-a", b"1"), (b"cookie", b"b=2")],
    );
    connection.send(&headers(1, END_STREAM, &crumbs)).await;
    assert_eq!(connection.reaction(1).await, Reaction::Response(200, None));
    assert_eq!(backend.requests()[0].value("cookie"), Some("a=1; b=2"));
}

#[tokio::test]
async fn trailers_of_a_request_end_at_the_gateway() {
    let (stack, backend) = stack("").await;
    let (target, form) = stack.client().post("/x").param("a", "1").parts();
    let fields = fields(
        "POST",
        &target,
        &[(b"content-type", b"application/x-www-form-urlencoded")],
    );
    let mut connection = RawHttp2::open(stack.addresses().gateway).await;
    let (first, second) = form.as_bytes().split_at(3);
    let bytes = [
        headers(1, 0, &fields),
        data(0, 1, first),
        data(0, 1, b""),
        data(PADDED, 1, &[&[4], second, &[0; 4]].concat()),
        headers(1, END_STREAM, &[(b"x-trailer", b"1")]),
    ];
    connection.send(&bytes.concat()).await;
    assert_eq!(connection.reaction(1).await, Reaction::Response(200, None));
    let requests = backend.requests();
    assert_eq!(requests[0].body, form.as_bytes());
    assert_eq!(requests[0].value("x-trailer"), None);
}
