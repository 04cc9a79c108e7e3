//! Heads that the strict parser accepts, and the many that it rejects.

use super::*;

fn read(head: &[u8]) -> Result<BackendHead, MalformedResponse> {
    let length = ResponseScanner::default().scan(head)?;
    BackendHead::read(&head[..length.expect("the head is whole")])
}

fn body(head: &str) -> Result<ResponseBody, MalformedResponse> {
    read(head.as_bytes()).map(|head| head.body)
}

fn with_fields(fields: &str) -> Result<ResponseBody, MalformedResponse> {
    body(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"))
}

#[test]
fn a_head_has_a_status_a_reason_and_fields() {
    let bytes = b"HTTP/1.1 404 Not\tFound \xfc\r\nA: \t b c \r\nX-D:\r\n\r\nbody";
    let head = read(bytes).unwrap();
    assert_eq!(head.status, 404);
    assert_eq!(head.reason(bytes), b"Not\tFound \xfc");
    let fields: Vec<_> = head.fields(bytes).collect();
    assert_eq!(fields, [(&b"A"[..], &b"b c"[..]), (b"X-D", b"")]);
    assert_eq!(head.value(bytes, "x-d"), Some(&b""[..]));
    assert_eq!(head.value(bytes, "x-e"), None);
}

#[test]
fn a_reason_may_be_missing() {
    for head in [&b"HTTP/1.1 200\r\n\r\n"[..], b"HTTP/1.1 200 \r\n\r\n"] {
        assert_eq!(read(head).unwrap().reason(head), b"");
    }
}

#[test]
fn other_status_lines_are_malformed() {
    for line in [
        "HTTP/1.2 200 OK",
        "HTTP/2.0 200 OK",
        "HTTP/0.9 200 OK",
        "HTTP/1.10 200 OK",
        "http/1.1 200 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1\t200 OK",
        " HTTP/1.1 200 OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 +20 OK",
        "HTTP/1.1 2x0 OK",
        "HTTP/1.1 200\tOK",
        "HTTP/1.1 099 OK",
        "HTTP/1.1 000 OK",
        "HTTP/1.1 600 OK",
        "HTTP/1.1 999 OK",
        "HTTP/1.1 200 O\0K",
        "HTTP/1.1 200 O\rK",
        "HTTP/1.1 200 O\u{7f}K",
        "HTTP/1.1",
        "HTTP/1.1 ",
        "<html>",
        "",
    ] {
        let head = format!("{line}\r\nContent-Length: 0\r\n\r\n");
        assert!(read(head.as_bytes()).is_err(), "{line:?}");
    }
}

#[test]
fn malformed_lines_are_rejected() {
    for lines in [
        "A: b\n",
        "A: b\r\n c\r\n",
        "A: b\r\n\tc\r\n",
        " A: b\r\n",
        "A : b\r\n",
        "A\r\n",
        ": b\r\n",
        "A B: c\r\n",
        "A: b\rc\r\n",
        "A: b\0c\r\n",
        "A: b\u{1}c\r\n",
        "A(): b\r\n",
        "\u{fc}: b\r\n",
    ] {
        assert!(with_fields(lines).is_err(), "{lines:?}");
    }
}

#[test]
fn the_framing_is_one_of_four() {
    for (fields, expected) in [
        ("", ResponseBody::UntilClose),
        ("Content-Length: 0\r\n", ResponseBody::Length(0)),
        ("content-length:\t007 \r\n", ResponseBody::Length(7)),
        ("TRANSFER-ENCODING: Chunked\r\n", ResponseBody::Chunked),
    ] {
        assert_eq!(with_fields(fields), Ok(expected), "{fields:?}");
    }
}

#[test]
fn a_status_without_a_body_has_none_whatever_the_fields_say() {
    for status in ["100", "103", "204", "304"] {
        for fields in [
            "",
            "Content-Length: 5\r\n",
            "Transfer-Encoding: chunked\r\n",
        ] {
            let head = format!("HTTP/1.1 {status} X\r\n{fields}\r\n");
            assert_eq!(body(&head), Ok(ResponseBody::None), "{head:?}");
        }
    }
}

#[test]
fn any_other_framing_is_malformed() {
    for fields in [
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 5.0\r\n",
        "Content-Length:\r\n",
        "Content-Length: 18446744073709551621\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    ] {
        assert!(with_fields(fields).is_err(), "{fields:?}");
        // It is rejected even if the status allows no body.
        let no_content = format!("HTTP/1.1 204 X\r\n{fields}\r\n");
        assert!(body(&no_content).is_err(), "{no_content:?}");
    }
    assert!(body("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
}

#[test]
fn a_connection_is_reusable_unless_the_head_excludes_it() {
    for (head, keeps_alive) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", true),
        ("HTTP/1.1 204 OK\r\n\r\n", true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: x\r\n\r\n",
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: x, Close\r\n\r\n",
            false,
        ),
        ("HTTP/1.1 200 OK\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", false),
        ("HTTP/1.1 204 OK\r\nContent-Length: 0\r\n\r\n", true),
        ("HTTP/1.1 204 OK\r\nContent-Length: 5\r\n\r\n", false),
        (
            "HTTP/1.1 204 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            false,
        ),
        ("HTTP/1.1 304 OK\r\nContent-Length: 5\r\n\r\n", true),
        (
            "HTTP/1.1 304 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            false,
        ),
    ] {
        assert_eq!(
            read(head.as_bytes()).unwrap().keeps_alive,
            keeps_alive,
            "{head:?}"
        );
    }
}

#[test]
fn the_size_of_a_head_and_its_fields_are_limited() {
    let long = |length: usize| format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "b".repeat(length));
    let frame = long(0).len();
    assert!(read(long(MAX_HEAD - frame).as_bytes()).is_ok());
    let over = long(MAX_HEAD - frame + 1);
    assert!(ResponseScanner::default().scan(over.as_bytes()).is_err());
    assert!(
        ResponseScanner::default()
            .scan(&over.as_bytes()[..MAX_HEAD])
            .is_err()
    );
    assert!(with_fields(&"A: b\r\n".repeat(MAX_FIELDS)).is_ok());
    assert!(with_fields(&"A: b\r\n".repeat(MAX_FIELDS + 1)).is_err());
}

#[test]
fn another_protocol_is_rejected_at_its_first_wrong_byte() {
    for (bytes, is_fine) in [
        ("H", true),
        ("HTTP/1.", true),
        ("X", false),
        ("HTTP/2", false),
        ("\r\n", false),
    ] {
        let scanned = ResponseScanner::default().scan(bytes.as_bytes());
        assert_eq!(scanned.is_ok(), is_fine, "{bytes:?}");
    }
}
