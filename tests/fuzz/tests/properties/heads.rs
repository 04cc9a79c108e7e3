//! Request heads, and the heads of backends' responses.

use proptest::{collection::vec, prelude::*};

use super::{Inputs, check, damage::damaged, text};

const TOKENS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b":",
    b"\0",
    b"\xff",
    b"%",
    b"%4",
    b"?",
    b"#",
    b"HTTP/1.0",
    b"\r\nHost: b",
    b"\r\nContent-Length: 1",
    b"\r\nTransfer-Encoding: chunked",
    b"\r\n folded",
    b"\r\n\r\n",
];

/// Any header field, or trailer field.
pub(super) const FIELD: &str =
    r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}:[ \t]{0,2}[ -~\x80-\xff]{0,20}[ \t]{0,2}\r\n";

const TARGET: &str = concat!(
    r"/(([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9a-fA-F]{2}){0,6}/?){0,3}",
    r"(\?([A-Za-z0-9._~!$&'()*+,;=:@/?\[\]-]|%[0-9A-Fa-f]{2}){0,25})?",
);

const HOST: &str = concat!(
    r"[Hh][Oo][Ss][Tt]:[ \t]{0,2}(",
    r"([a-z0-9!$&'()*+;=._~-]|%[0-9a-f]{2}){1,12}|",
    r"(25[0-9]\.){3}[0-9]|",
    r"\[([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}\]|",
    r"\[([0-9A-F]{1,4}:){1,6}:([0-9a-f]{1,4}:){0,1}[0-9a-f]{1,4}\]|",
    r"\[::(ffff:)?(1?[0-9]{1,2}\.){3}[0-9]{1,3}\]|",
    r"\[::\]",
    r")(:[0-9]{0,5})?[ \t]?\r\n",
);

fn fields() -> Inputs {
    vec(text(FIELD), 0..6)
        .prop_map(|fields| fields.concat())
        .boxed()
}

fn framing() -> Inputs {
    prop_oneof![
        2 => Just(Vec::new()),
        1 => text(r"[Cc]ontent-[Ll]ength: ?([0-9]{1,18}|0{0,3}[0-9]{1,17})\r\n"),
        1 => text(r"[Tt]ransfer-[Ee]ncoding: ?[Cc]hunked\r\n"),
    ]
    .boxed()
}

fn request_heads() -> Inputs {
    let method = prop_oneof![text("GET|POST"), text("[!#$%&'*+.^_`|~0-9A-Z-]{1,8}")];
    let version = text(r"HTTP/1\.(1|1|1|0)\r\n");
    let fields = (fields(), text(HOST), framing(), fields());
    let parts = (
        method,
        text(TARGET),
        version,
        fields,
        text(r"[A-Z /\r\n]{0,9}"),
    );
    parts
        .prop_map(
            |(method, target, version, (before, host, framing, after), rest)| {
                let line = [&method[..], b" ", &target, b" ", &version].concat();
                [line, before, host, framing, after, b"\r\n".to_vec(), rest].concat()
            },
        )
        .boxed()
}

fn backend_heads() -> Inputs {
    let line = text(r"HTTP/1\.(1|1|1|0) ([1-5][0-9]{2}|20[04]|304)( [ -~\x80-\xff]{0,12})?\r\n");
    let parts = (line, fields(), framing(), fields(), text(r"[a-z\r\n]{0,9}"));
    parts
        .prop_map(|(line, before, framing, after, rest)| {
            [line, before, framing, after, b"\r\n".to_vec(), rest].concat()
        })
        .boxed()
}

#[test]
fn request_heads_are_parsed_by_the_grammar() {
    check(fuzz::head, damaged(request_heads(), TOKENS), 3_000, 40..=70);
}

/// The product stores offsets in a head as `u16`: these heads just fit, or just do not.
#[test]
fn request_heads_of_64_kib_are_parsed_by_the_grammar() {
    let padded = (request_heads(), 65_500..65_560_usize).prop_map(|(head, length)| {
        let line_end = head
            .iter()
            .position(|&byte| byte == b'\n')
            .map_or(0, |index| index + 1);
        let (line, rest) = head.split_at(line_end);
        let padding = vec![b'a'; length.saturating_sub(head.len() + b"Padding:\r\n".len())];
        [line, b"Padding:", &padding, b"\r\n", rest].concat()
    });
    check(fuzz::head, padded.boxed(), 60, 25..=75);
}

#[test]
fn response_heads_are_parsed_by_the_grammar() {
    check(
        fuzz::response,
        damaged(backend_heads(), TOKENS),
        3_000,
        40..=75,
    );
}
