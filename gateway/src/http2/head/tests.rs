//! What is written out, and what is rejected.

use http::{HeaderMap, HeaderValue, Request};

use super::*;
use crate::request::{BodyLength, Headers};

const LIMITS: HeadLimits = HeadLimits {
    bytes: 1024,
    headers: 10,
    query: 64,
};

fn parts(method: &str, uri: &str, fields: &[(&'static str, &[u8])]) -> Parts {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_bytes(value).unwrap());
    }
    let mut request = Request::builder().method(method).uri(uri).body(()).unwrap();
    *request.headers_mut() = headers;
    request.into_parts().0
}

fn written(parts: &Parts, has_body: bool) -> String {
    let mut out = Vec::new();
    write_strict_form(parts, has_body, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn fault(parts: &Parts) -> HeadFault {
    read_stream_head(parts, false, &LIMITS).unwrap_err().0
}

#[test]
fn a_head_is_written_in_the_strict_form() {
    let get = parts(
        "GET",
        "https://h.example:1/a%2Fb?c=%20&d",
        &[("x-b", b"1"), ("x-a", b"2"), ("x-b", b"3")],
    );
    assert_eq!(
        written(&get, false),
        "GET /a%2Fb?c=%20&d HTTP/1.1\r\nHost: h.example:1\r\nx-b: 1\r\nx-b: 3\r\nx-a: 2\r\n\r\n"
    );
    let head = read_stream_head(&get, false, &LIMITS).unwrap();
    assert_eq!(head.host(), b"h.example:1");
    assert_eq!(head.target().path, "/a%2Fb");
    assert_eq!(head.target().query, "c=%20&d");
    assert_eq!(head.each().count(), 4);
}

#[test]
fn the_body_is_framed_as_in_http_1_1() {
    let post = |fields: &[(&'static str, &[u8])]| parts("POST", "http://h/p", fields);
    let length = |parts: &Parts, has_body| {
        let head = read_stream_head(parts, has_body, &LIMITS).unwrap();
        head.body()
    };
    assert_eq!(length(&post(&[]), false), BodyLength::None);
    assert_eq!(length(&post(&[]), true), BodyLength::Unknown);
    let known = post(&[("content-length", b"7")]);
    assert_eq!(length(&known, true), BodyLength::Known(7));
    assert!(!written(&known, true).contains("Transfer-Encoding"));
    let twice = post(&[("content-length", b"7"), ("content-length", b"7")]);
    assert!(matches!(fault(&twice), HeadFault::NotHttp(_)));
    let smuggled = post(&[("content-length", b"7"), ("transfer-encoding", b"chunked")]);
    assert!(matches!(fault(&smuggled), HeadFault::NotHttp(_)));
}

#[test]
fn crumbs_become_one_cookie() {
    let get = parts(
        "GET",
        "http://h/",
        &[
            ("cookie", b"a=1"),
            ("x-a", b"1"),
            ("cookie", b"b=2"),
            ("cookie", b"c=3"),
        ],
    );
    assert_eq!(
        written(&get, false),
        "GET / HTTP/1.1\r\nHost: h\r\ncookie: a=1; b=2; c=3\r\nx-a: 1\r\n\r\n"
    );
}

#[test]
fn authority_and_host_must_agree() {
    let host = |uri: &str, hosts: &[&'static [u8]]| {
        let fields: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
        let read = read_stream_head(&parts("GET", uri, &fields), false, &LIMITS);
        read.map(|head| String::from_utf8(head.host().to_vec()).unwrap())
            .map_err(|(fault, _)| fault)
    };
    assert_eq!(host("http://a:1/", &[]).unwrap(), "a:1");
    assert_eq!(host("/", &[b"b"]).unwrap(), "b");
    assert_eq!(host("http://a/", &[b"A"]).unwrap(), "a");
    for (uri, hosts) in [
        ("/", &[][..]),
        ("/", &[&b"a"[..], b"a"]),
        ("http://a/", &[b"b"]),
        ("http://a/", &[b"a:80"]),
        ("http://a/", &[b""]),
        ("http://a/", &[b"a", b"b"]),
        ("http://user@a/", &[]),
        ("http://[::1/", &[]),
        ("http://a:99999/", &[]),
    ] {
        if uri.parse::<http::Uri>().is_err() {
            // The `h2` crate resets the stream.
            continue;
        }
        assert_eq!(host(uri, hosts), Err(HeadFault::Target), "{uri} {hosts:?}");
    }
}

#[test]
fn other_targets_and_schemes_are_rejected() {
    for (method, uri) in [
        ("GET", "ftp://a/"),
        ("GET", "ws://a/"),
        ("CONNECT", "a:443"),
        ("OPTIONS", "*"),
        ("GET", "/a{b}"),
        ("GET", "/ü"),
        ("GET", "/a\"b"),
        ("GET", "/a|b"),
        ("GET", "?a=b"),
    ] {
        let Ok(uri) = uri.parse::<http::Uri>() else {
            continue;
        };
        let mut parts = parts(method, "/", &[("host", b"a")]);
        parts.uri = uri;
        assert_eq!(fault(&parts), HeadFault::Target, "{parts:?}");
    }
}

#[test]
fn a_missing_path_is_not_the_root() {
    let mut parts = parts("GET", "/", &[("host", b"a")]);
    parts.uri = http::Uri::from_parts(http::uri::Parts::default()).unwrap();
    assert!(matches!(fault(&parts), HeadFault::NotHttp(_)));
}

#[test]
fn values_with_blanks_at_an_end_are_rejected() {
    for value in [&b" a"[..], b"a ", b"\ta", b"a\t", b" "] {
        let parts = parts("GET", "http://h/", &[("x-a", value)]);
        assert!(matches!(fault(&parts), HeadFault::NotHttp(_)), "{value:?}");
    }
    let inside = parts("GET", "http://h/", &[("x-a", b"a \t b"), ("x-b", b"")]);
    assert!(read_stream_head(&inside, false, &LIMITS).is_ok());
}

#[test]
fn the_limits_are_those_of_http_1_1() {
    let long = "a".repeat(65);
    let query = parts("GET", &format!("http://h/?{long}"), &[]);
    assert_eq!(fault(&query), HeadFault::QueryTooLong);
    let query = parts("GET", &format!("http://h/?{}", "a".repeat(2000)), &[]);
    assert_eq!(fault(&query), HeadFault::QueryTooLong);
    let path = parts("GET", &format!("http://h/{}", "a".repeat(2000)), &[]);
    assert_eq!(fault(&path), HeadFault::TooLarge);
    let value = vec![b'a'; 1024];
    let fields = parts("GET", "http://h/", &[("x-a", &value)]);
    assert_eq!(fault(&fields), HeadFault::TooLarge);
    let many = parts("GET", "http://h/", &[("x-a", &b"1"[..]); 10]);
    assert_eq!(fault(&many), HeadFault::TooLarge);
    let most = parts("GET", "http://h/", &[("x-a", &b"1"[..]); 9]);
    assert!(read_stream_head(&most, false, &LIMITS).is_ok());
}
