//! What is written out, and what is rejected.

use super::*;
use crate::request::Headers;

const LIMITS: HeadLimits = HeadLimits {
    bytes: 1024,
    headers: 10,
    query: 64,
};

type Pair<'a> = (&'a str, &'a [u8]);

/// A head of these fields.
fn head(fields: &[Pair<'_>], has_body: bool) -> StreamHead {
    let mut writer = HeadWriter::new(1024);
    for (name, value) in fields {
        writer.field(name.as_bytes(), value);
    }
    writer.finish(has_body)
}

/// A request of `http://h`, with these further fields.
fn request<'a>(method: &'a str, path: &'a str, fields: &[Pair<'a>], has_body: bool) -> StreamHead {
    let pseudo: [Pair<'_>; 4] = [
        (":method", method.as_bytes()),
        (":scheme", b"http"),
        (":authority", b"h"),
        (":path", path.as_bytes()),
    ];
    head(&[&pseudo[..], fields].concat(), has_body)
}

fn written(head: &StreamHead) -> String {
    assert_eq!(head.fault, None);
    String::from_utf8(head.written.clone()).unwrap()
}

fn fault(head: StreamHead) -> HeadFault {
    match head.judge(&LIMITS) {
        Err((StreamFault::Head(fault), _)) => fault,
        other => panic!("{other:?}"),
    }
}

fn is_malformed(head: StreamHead) -> bool {
    matches!(fault(head), HeadFault::NotHttp(_))
}

#[test]
fn a_head_is_written_in_the_strict_form() {
    let fields: [Pair<'_>; 3] = [("x-b", b"1"), ("x-a", b"2"), ("x-b", b"3")];
    let get = request("GET", "/a%2Fb?c=%20&d", &fields, false);
    assert_eq!(
        written(&get),
        "GET /a%2Fb?c=%20&d HTTP/1.1\r\nHost: h\r\nx-b: 1\r\nx-a: 2\r\nx-b: 3\r\n\r\n"
    );
    let (head, _) = get.judge(&LIMITS).unwrap();
    assert_eq!(head.host(), b"h");
    assert_eq!(head.target().path, "/a%2Fb");
    assert_eq!(head.target().query, "c=%20&d");
    assert_eq!(head.each().count(), 4);
}

#[test]
fn a_writer_is_reused() {
    let mut writer = HeadWriter::new(1024);
    for path in ["/one", "/two"] {
        for (name, value) in [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", path),
            ("host", "h"),
            ("cookie", "a=1"),
        ] {
            writer.field(name.as_bytes(), value.as_bytes());
        }
        assert_eq!(
            written(&writer.finish(false)),
            format!("GET {path} HTTP/1.1\r\nhost: h\r\ncookie: a=1\r\n\r\n")
        );
    }
}

#[test]
fn the_body_is_framed_as_in_http_1_1() {
    let length = |fields: &[Pair<'_>], has_body| {
        let judged = request("POST", "/p", fields, has_body)
            .judge(&LIMITS)
            .unwrap();
        (judged.0.body(), judged.1)
    };
    let both = |length| (length, length);
    assert_eq!(length(&[], false), both(BodyLength::None));
    assert_eq!(length(&[], true), both(BodyLength::Unknown));
    let seven: Pair<'_> = ("content-length", b"7");
    let zero: Pair<'_> = ("content-length", b"0");
    assert_eq!(length(&[seven], true), both(BodyLength::Known(7)));
    assert!(!written(&request("POST", "/p", &[seven], true)).contains("Transfer-Encoding"));
    // The body is read, and must be empty.
    assert_eq!(
        length(&[zero], true),
        (BodyLength::None, BodyLength::Known(0))
    );
    assert_eq!(length(&[zero], false), both(BodyLength::None));
    assert!(is_malformed(request("POST", "/p", &[seven], false)));
    assert!(is_malformed(request("POST", "/p", &[seven, seven], true)));
    assert!(is_malformed(request(
        "POST",
        "/p",
        &[seven, ("transfer-encoding", b"chunked")],
        true
    )));
    let get = request("GET", "/p", &[zero], true).judge(&LIMITS).unwrap();
    assert_eq!(
        (get.0.body(), get.1),
        (BodyLength::None, BodyLength::Known(0))
    );
}

#[test]
fn crumbs_become_one_cookie() {
    let fields: [Pair<'_>; 4] = [
        ("cookie", b"a=1"),
        ("x-a", b"1"),
        ("cookie", b"b=2"),
        ("cookie", b"c=3"),
    ];
    assert_eq!(
        written(&request("GET", "/", &fields, false)),
        "GET / HTTP/1.1\r\nHost: h\r\nx-a: 1\r\ncookie: a=1; b=2; c=3\r\n\r\n"
    );
}

#[test]
fn authority_and_host_must_agree() {
    let host = |authority: Option<&'static [u8]>, hosts: &[&'static [u8]]| {
        let mut fields: Vec<Pair<'_>> =
            vec![(":method", b"GET"), (":scheme", b"https"), (":path", b"/")];
        fields.extend(authority.map(|authority| (":authority", authority)));
        fields.extend(hosts.iter().map(|host| ("host", *host)));
        let judged = head(&fields, false).judge(&LIMITS);
        judged.map(|judged| String::from_utf8(judged.0.host().to_vec()).unwrap())
    };
    assert_eq!(host(Some(b"a:1"), &[]).unwrap(), "a:1");
    assert_eq!(host(None, &[b"b"]).unwrap(), "b");
    assert_eq!(host(Some(b"a"), &[b"A"]).unwrap(), "a");
    for (authority, hosts) in [
        (None, &[][..]),
        (None, &[&b"a"[..], b"a"]),
        (Some(&b"a"[..]), &[b"b"]),
        (Some(b"a"), &[b"a:80"]),
        (Some(b"a"), &[b""]),
        (Some(b"a"), &[b"a", b"b"]),
        (Some(b"user@a"), &[]),
        (Some(b"[::1"), &[]),
        (Some(b"a:99999"), &[]),
        (Some(b"a b"), &[]),
        (Some(b" a"), &[]),
        (Some(b"a\r\nx: y"), &[]),
        (Some(b""), &[]),
    ] {
        let found = host(authority, hosts).unwrap_err().0;
        assert_eq!(
            found,
            StreamFault::Head(HeadFault::Target),
            "{authority:?} {hosts:?}"
        );
    }
}

#[test]
fn malformed_targets_and_schemes_have_the_faults_of_http_1_1() {
    for path in [
        "/a{b}", "/ü", "/a\"b", "/a|b", "/a<b", "/a>b", "/a`b", "/a b", "/a\0b", "/a\r\nb", "*",
        "a", "/a#b", "?a=b",
    ] {
        assert_eq!(
            fault(request("GET", path, &[], false)),
            HeadFault::Target,
            "{path:?}"
        );
    }
    for path in ["/?a<b", "/?a b", "/?a\nb", "/?ü", "/?%zz", "/?a#b"] {
        assert_eq!(
            fault(request("GET", path, &[], false)),
            HeadFault::Query,
            "{path:?}"
        );
    }
    let connect: [Pair<'_>; 2] = [(":method", b"CONNECT"), (":authority", b"a:443")];
    assert_eq!(fault(head(&connect, false)), HeadFault::Target);
    for scheme in [&b"ftp"[..], b"ws", b"HTTP", b""] {
        let fields: [Pair<'_>; 4] = [
            (":method", b"GET"),
            (":scheme", scheme),
            (":authority", b"a"),
            (":path", b"/"),
        ];
        assert_eq!(fault(head(&fields, false)), HeadFault::Target);
    }
    // The log gets what is in front.
    let (_, written) = request("GET", "/a b\r\nc", &[], false)
        .judge(&LIMITS)
        .unwrap_err();
    assert_eq!(written, b"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n");
}

#[test]
fn malformed_fields_are_rejected() {
    let of = |name: &str, value: &[u8]| request("GET", "/", &[(name, value)], false);
    for value in [
        &b" a"[..],
        b"a ",
        b"\ta",
        b"a\t",
        b" ",
        b"a\rb",
        b"a\nb",
        b"a\0b",
        b"a\x01b",
        b"\x7f",
    ] {
        assert!(is_malformed(of("x-a", value)), "{value:?}");
    }
    for name in [
        "X-A",
        "x a",
        "x:a",
        "x\0",
        "",
        "ü",
        "x\r\ny",
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
        "te",
        ":path",
        ":status",
        ":protocol",
        ":x",
        ":",
    ] {
        assert!(is_malformed(of(name, b"a")), "{name:?}");
    }
    let pseudo: [Pair<'_>; 3] = [(":method", b"GET"), (":path", b"/"), (":path", b"/")];
    assert!(is_malformed(head(&pseudo, false)));
    assert!(is_malformed(head(
        &[(":scheme", b"http"), (":scheme", b"http")],
        false
    )));
    for method in ["", "G T", "GET\r\n"] {
        assert!(is_malformed(request(method, "/", &[], false)), "{method:?}");
    }
    // No path is not the root.
    assert!(is_malformed(head(
        &[(":method", b"GET"), (":authority", b"a")],
        false
    )));
    for (name, value) in [
        ("x-a", &b"a \t b"[..]),
        ("x-a", b""),
        ("x-a", "ü".as_bytes()),
        ("te", b"trailers"),
    ] {
        assert!(of(name, value).judge(&LIMITS).is_ok(), "{name}: {value:?}");
    }
}

#[test]
fn the_limits_are_those_of_http_1_1() {
    for length in [65, 2000, 9000] {
        let query = format!("/?{}", "a".repeat(length));
        assert_eq!(
            fault(request("GET", &query, &[], false)),
            HeadFault::QueryTooLong
        );
    }
    for length in [2000, 9000] {
        let path = format!("/{}", "a".repeat(length));
        assert_eq!(
            fault(request("GET", &path, &[], false)),
            HeadFault::TooLarge
        );
        for name in ["x-a", "cookie"] {
            let value = vec![b'a'; length];
            assert_eq!(
                fault(request("GET", "/", &[(name, &value)], false)),
                HeadFault::TooLarge
            );
        }
    }
    let crumbs = [("cookie", &[b'a'; 500][..]); 40];
    assert_eq!(
        fault(request("GET", "/", &crumbs, false)),
        HeadFault::TooLarge
    );
    let fields = |number: usize| request("GET", "/", &vec![("x-a", &b"1"[..]); number], false);
    assert_eq!(fault(fields(10)), HeadFault::TooLarge);
    assert!(fields(9).judge(&LIMITS).is_ok());
}
