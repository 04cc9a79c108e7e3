//! Heads that the strict parser accepts, and the many that it rejects.

use super::*;

const LIMITS: HeadLimits = HeadLimits {
    bytes: 1024,
    headers: 5,
    query: 32,
};

/// Scans and parses a complete head.
fn read(head: &str) -> Result<BodyLength, HeadFault> {
    let length = RequestScanner::default()
        .scan(head.as_bytes(), &LIMITS)?
        .expect("the head is whole");
    let head = head.as_bytes()[..length].to_vec();
    read_head(head, &LIMITS)
        .map(|read| read.head.body())
        .map_err(|(fault, _)| fault)
}

fn with_headers(headers: &str) -> Result<BodyLength, HeadFault> {
    read(&format!("POST /a HTTP/1.1\r\nHost: h\r\n{headers}\r\n"))
}

fn with_target(target: &str) -> Result<BodyLength, HeadFault> {
    read(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"))
}

fn with_host(host: &str) -> Result<BodyLength, HeadFault> {
    read(&format!("GET / HTTP/1.1\r\n{host}\r\n"))
}

#[test]
fn the_end_of_a_head_is_found_in_pieces_of_any_size() {
    let head = b"GET / HTTP/1.1\r\nHost: h\r\n\r\nrest";
    for pieces in 1..head.len() {
        let mut scanner = RequestScanner::default();
        let mut found = None;
        for end in (1..=head.len()).step_by(pieces).chain([head.len()]) {
            found = scanner.scan(&head[..end], &LIMITS).unwrap();
            if found.is_some() {
                break;
            }
        }
        assert_eq!(found, Some(head.len() - 4), "in pieces of {pieces}");
    }
}

#[test]
fn a_bare_line_feed_is_rejected_at_once() {
    let mut scanner = RequestScanner::default();
    let fault = scanner
        .scan(b"GET / HTTP/1.1\nHost: h\n", &LIMITS)
        .unwrap_err();
    assert!(matches!(fault, HeadFault::NotHttp(_)));
}

#[test]
fn another_protocol_is_rejected_at_its_first_byte() {
    for other in [&b"\x16\x03\x01\x02\x00"[..], b"\0", b" GET", b"\n"] {
        let fault = RequestScanner::default().scan(other, &LIMITS).unwrap_err();
        assert!(matches!(fault, HeadFault::NotHttp(_)), "{other:?}");
    }
}

#[test]
fn a_head_that_does_not_end_is_too_large() {
    let long = |start: &str| {
        let head = format!("{start}{}", "a".repeat(LIMITS.bytes));
        RequestScanner::default().scan(head.as_bytes(), &LIMITS)
    };
    assert_eq!(long("GET / HTTP/1.1\r\nHost: "), Err(HeadFault::TooLarge));
    assert_eq!(long("GET /"), Err(HeadFault::TooLarge));
    assert_eq!(long("GET /?"), Err(HeadFault::QueryTooLong));
}

#[test]
fn limits_are_inclusive() {
    let header = "A: b\r\n";
    assert!(with_headers(&header.repeat(4)).is_ok());
    assert_eq!(with_headers(&header.repeat(5)), Err(HeadFault::TooLarge));
    assert!(with_target(&format!("/?{}", "q".repeat(32))).is_ok());
    assert_eq!(
        with_target(&format!("/?{}", "q".repeat(33))),
        Err(HeadFault::QueryTooLong)
    );
}

#[test]
fn request_lines_have_three_parts_and_single_spaces() {
    for line in [
        "GET /",
        "GET / HTTP/1.1 ",
        " GET / HTTP/1.1",
        "GET /a b",
        "GET /a HTTP/1.1 b",
        "GET\t/ HTTP/1.1",
        "G(T / HTTP/1.1",
        "GET / HTTP/2.0",
        "GET / http/1.1",
        "GET / HTTP/1.10",
        "GET / HTTP/0.9",
        "GET /\u{1} HTTP/1.1",
        "GET /\u{0} HTTP/1.1",
        "GET /\r HTTP/1.1",
    ] {
        let fault = read(&format!("{line}\r\nHost: h\r\n\r\n")).unwrap_err();
        assert!(matches!(fault, HeadFault::NotHttp(_)), "{line:?}: {fault}");
    }
}

/// No body is framed by it: the request is rejected with words, and the connection closed.
#[test]
fn a_space_in_the_target_is_a_fault_of_the_target() {
    for target in ["/a b", " /", "/ ", "/a HTTP/1.1", "/a  b?c"] {
        assert_eq!(with_target(target), Err(HeadFault::Target), "{target:?}");
    }
    assert_eq!(with_target("/?q=a b"), Err(HeadFault::Query));
    assert_eq!(with_target("/?q=a HTTP/1.1"), Err(HeadFault::Query));
}

/// Where a head is malformed, as the log has it.
fn located(head: &str) -> String {
    locate(read(head).unwrap_err(), head.as_bytes()).to_string()
}

#[test]
fn a_malformed_target_is_located() {
    for (target, expected) in [
        ("/a b", "character U+0020 at byte 3 of the path"),
        ("/a|b?c", "character U+007C at byte 3 of the path"),
        ("/\u{5f20}", "character U+5F20 at byte 2 of the path"),
        ("/a%zz", "escape U+0025 at byte 3 of the path"),
        ("http://h/", "slash U+0068 at byte 1 of the path"),
        (
            "/?q=a b",
            "character U+0020 at byte 4 of the query, parameter q",
        ),
        (
            "/?a=1&%71=\u{e4}",
            "character U+00E4 at byte 9 of the query, parameter q",
        ),
        ("/?a#b", "character U+0023 at byte 2 of the query"),
        (
            "/?a=%4",
            "escape U+0025 at byte 3 of the query, parameter a",
        ),
    ] {
        let found = located(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(found, expected, "{target}");
    }
    for (hosts, expected) in [
        ("", "hosts  at byte 1 of the host"),
        ("Host: a\r\nhost: a\r\n", "hosts  at byte 1 of the host"),
        ("Host: a,b\r\n", "character U+002C at byte 2 of the host"),
        ("Host: a:b\r\n", "other U+0061 at byte 1 of the host"),
    ] {
        assert_eq!(located(&format!("GET / HTTP/1.1\r\n{hosts}\r\n")), expected);
    }
}

#[test]
fn targets_are_paths_of_pchar_and_queries() {
    for good in [
        "/",
        "/a/b;c=d@e:f,g",
        "//login",
        "/%41%e5",
        "/~a_-.!$&'()*+=",
        "/?a[]=1&b=?/&c",
        "/?{a}|b^c`d\\e'f",
        "/a?",
    ] {
        assert!(with_target(good).is_ok(), "{good}");
    }
    for bad in [
        "*",
        "a",
        "http://h/",
        "@x",
        "\\x",
        "/\"",
        "/<a>",
        "/a#b",
        "/ä",
        "/%",
        "/%4",
        "/%4g",
        "/[a]",
        "/a|b",
        "/a^",
        "/{a}",
        "/`",
        "/a\\b",
        "h:80",
    ] {
        assert_eq!(with_target(bad), Err(HeadFault::Target), "{bad}");
    }
    for bad in ["/?ä", "/?a#b", "/?%", "/?a=%zz", "/?\"", "/?<", "/?>"] {
        assert_eq!(with_target(bad), Err(HeadFault::Query), "{bad}");
    }
}

#[test]
fn a_callback_may_have_a_percent_sign_that_begins_no_escape() {
    for good in ["/login?state=s&a=100%", "/?a=%zz%&state=s&code=c"] {
        assert_eq!(with_target(good), Ok(BodyLength::None), "{good}");
    }
    for bad in [
        "/login?a=100%",
        "/login?state=s&sign=s&a=100%",
        "/login?state=s&a=%<",
        "/login?state=s&a=%ä",
    ] {
        assert_eq!(with_target(bad), Err(HeadFault::Query), "{bad}");
    }
}

#[test]
fn ambiguous_framing_is_rejected() {
    assert_eq!(with_headers(""), Ok(BodyLength::None));
    assert_eq!(with_headers("Content-Length: 0\r\n"), Ok(BodyLength::None));
    assert_eq!(
        with_headers("content-length:\t12 \r\n"),
        Ok(BodyLength::Known(12))
    );
    assert_eq!(
        with_headers("Transfer-Encoding: Chunked\r\n"),
        Ok(BodyLength::Unknown)
    );
    for bad in [
        "Content-Length: 1\r\nContent-Length: 1\r\n",
        "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Content-Length: 1, 1\r\n",
        "Content-Length: +1\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x1\r\n",
        "Content-Length: 1 1\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding:\r\n",
    ] {
        assert!(
            matches!(with_headers(bad), Err(HeadFault::NotHttp(_))),
            "{bad:?}"
        );
    }
}

#[test]
fn http_1_0_has_no_chunks() {
    let head = "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(matches!(read(head), Err(HeadFault::NotHttp(_))));
}

#[test]
fn a_header_line_has_a_token_a_colon_and_a_value() {
    for bad in [
        "A : b\r\n",
        " A: b\r\n",
        "A: b\r\n c\r\n",
        "A: b\r\n\tc\r\n",
        ": b\r\n",
        "A\r\n",
        "A b: c\r\n",
        "A: b\u{0}\r\n",
        "A: b\rc\r\n",
        "A: \u{7f}\r\n",
        "Ä: b\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Content-Length\u{b}: 1\r\n",
    ] {
        assert!(
            matches!(with_headers(bad), Err(HeadFault::NotHttp(_))),
            "{bad:?}"
        );
    }
    assert!(with_headers("A: \u{e4}\t b\r\n").is_ok());
}

#[test]
fn exactly_one_valid_host_is_required() {
    for good in [
        "h",
        "h:80",
        "a.b-c_d:1",
        "127.0.0.1:8080",
        "[::1]",
        "[::1]:80",
        "h:",
        "%41",
    ] {
        assert!(with_host(&format!("Host: {good}\r\n")).is_ok(), "{good}");
    }
    for bad in [
        "", "a b", "h:80:80", "h:x", "h:123456", "h:65536", "u@h", "h/p", "[::1", "[x]", "[::1]x",
        ":80", "h,h", "%4",
    ] {
        assert_eq!(
            with_host(&format!("Host: {bad}\r\n")),
            Err(HeadFault::Target),
            "{bad}"
        );
    }
    assert_eq!(with_host(""), Err(HeadFault::Target));
    assert_eq!(with_host("Host: a\r\nHost: a\r\n"), Err(HeadFault::Target));
    assert_eq!(with_host("Host: a\r\nHost: b\r\n"), Err(HeadFault::Target));
}

#[test]
fn the_request_line_of_a_rejected_head_is_available_for_the_log() {
    let head = b"PUT /a?b HTTP/1.1\r\nX: y\r\nAcme-X-Language:  ja \r\nbroken";
    assert_eq!(peek_request_line(head).unwrap().method, b"PUT");
    assert_eq!(peek_request_line(b"\x16\x03\x01"), None);
}

#[test]
fn the_last_request_of_a_connection_is_recognised() {
    for (version, connection, is_last) in [
        ("1.1", "close", true),
        ("1.1", "keep-alive, Close", true),
        ("1.1", "keep-alive", false),
        ("1.1", "closed", false),
        ("1.0", "keep-alive", true),
    ] {
        let head = format!("GET / HTTP/{version}\r\nHost: h\r\nConnection: {connection}\r\n\r\n");
        let read = read_head(head.into_bytes(), &LIMITS).unwrap();
        assert_eq!(read.is_last, is_last, "{version} {connection}");
    }
}
