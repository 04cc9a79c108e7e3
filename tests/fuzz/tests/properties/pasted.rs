//! Requests that people paste.

use std::time::Duration;

use super::{Inputs, check, damage::damaged, text};
use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};

const TOKENS: &[&[u8]] = &[
    b"'", b"\"", b"\\", b"$", b"`", b"!", b"^", b"\n", b"\r\n", b"{}", b"\n}", b" HTTP/1",
    b"curl ", b"#", b"> ", b"\\\n",
];

fn requests() -> Inputs {
    let head = text(
        "(GET|POST|get) /([a-z]{1,5}/?){0,3}(\\?[a-z]=([a-z0-9'$]|%2[0-9]){0,9}(&b=[`^]?)?)? HTTP/1\\.1\r\nHost: a:80\r\n\
         (X-[A-D]{1,2}: ?([!-~]([ -~]{0,20}[!-~])?)?\r\n){0,5}(Content-Type: text/plain\r\n)?",
    );
    let body = text(
        "()|([a-z]=[a-z%'\"$!\\\\^&]{0,9}&?){1,4}|\\{\n(  \"[a-z]\": \"[a-z' é\\\\]{0,9}\",?\r?\n){0,3}\\}",
    );
    let requests = (head, body).prop_map(|(head, body)| {
        let length = format!("Content-Length: {}\r\n\r\n", body.len());
        [&head, length.as_bytes(), &body].concat()
    });
    requests.boxed()
}

#[test]
fn a_pasted_request_is_read_as_it_was_written() {
    check(fuzz::pasted, damaged(requests(), TOKENS), 1_000, 45..=85);
}

#[test]
fn long_texts_take_no_time() {
    // What the management API accepts. Work that grows by the square of the length takes minutes.
    let (length, limit) = (64 * 1024, Duration::from_secs(10));
    for start in [
        "",
        "curl ",
        "curl \"",
        "curl $'",
        "Invoke-WebRequest ",
        "fetch(",
        "> GET / HTTP/1.1\n",
        "GET / HTTP/1.1\n",
    ] {
        for part in [
            "$", "a", " ", "\\", "'", "\"", "^\n", "-s", "-H a:b ", "curl ", "[", "a: b\n", "`",
            "$([char]", "$(", "\u{a0}",
        ] {
            let text = [start, &part.repeat(length / part.len())].concat();
            // What others compute meanwhile does not count.
            let computed = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
            let before = computed();
            fuzz::pasted(text.as_bytes());
            let took = computed().checked_sub(before).unwrap();
            assert!(took < limit, "{start:?} and many {part:?}: {took:?}");
        }
    }
}
