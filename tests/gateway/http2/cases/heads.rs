//! Heads, bodies and trailers: the same rules as for HTTP/1.1.

use end_to_end::raw_http2::{
    END_HEADERS, END_STREAM, PADDED, RawHttp2, Reaction, block, fields, frame, get, headers, kind,
};

use super::{
    Expected::{Bare, Ends, Passes, Rejects, Resets},
    check, data, only, post, with,
};
use crate::http2::stack;

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
            Rejects(403, "time_missing"),
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
            Passes,
        ),
        (
            "a POST without a type that ends with an empty DATA",
            [
                headers(1, 0, &fields("POST", "/x", &[])),
                data(END_STREAM, 1, b""),
            ]
            .concat(),
            Passes,
        ),
        (
            "a POST without a type whose second DATA has a byte",
            [
                headers(1, 0, &fields("POST", "/x", &[])),
                data(0, 1, b""),
                data(END_STREAM, 1, b"a"),
            ]
            .concat(),
            Rejects(415, "content_type_unsupported"),
        ),
        (
            "an encoded JSON that ends with an empty DATA",
            [
                headers(
                    1,
                    0,
                    &fields(
                        "POST",
                        "/x",
                        &[
                            (b"content-type", b"application/json"),
                            (b"content-encoding", b"gzip"),
                        ],
                    ),
                ),
                data(END_STREAM, 1, b""),
            ]
            .concat(),
            Passes,
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
            Bare,
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
