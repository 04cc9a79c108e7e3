//! Generated requests: mostly valid ones in many spellings, some that the gateway may refuse, some that it must refuse.

use std::{fmt, sync::LazyLock};

use end_to_end::{
    clock::now_ms,
    random::Random,
    signer::{hmac_hex, sha256_hex},
    stack::APP_KEY,
};

/// Largest generated body.
pub(crate) const MAX_BODY: usize = 200 * 1024;

/// What the gateway does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Served,
    Refused,
    /// Served as it was sent, or refused.
    Either,
}

/// A request, as a strict reading of its bytes has it.
pub(crate) struct Generated {
    pub(crate) bytes: Vec<u8>,
    pub(crate) method: &'static str,
    pub(crate) target: String,
    pub(crate) body: Vec<u8>,
    pub(crate) expected: Expected,
}

impl fmt::Display for Generated {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.bytes[..self.bytes.len().min(4096)];
        let (expected, length) = (self.expected, self.bytes.len());
        write!(
            formatter,
            "{expected:?}, {length} bytes: {}",
            shown.escape_ascii()
        )
    }
}

/// What is known of a request before its bytes are written.
struct Draft {
    method: &'static str,
    target: String,
    body: Vec<u8>,
    version: &'static str,
    /// Lines behind `Host`, without their ends.
    lines: Vec<Vec<u8>>,
    framing: Framing,
    expected: Expected,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    None,
    Length,
    Chunked,
}

/// A request. `number` tells it apart from others.
pub(crate) fn generate(random: &mut Random, number: usize) -> Generated {
    const METHODS: [&str; 8] = [
        "GET", "GET", "HEAD", "POST", "POST", "PUT", "PATCH", "DELETE",
    ];
    let method = METHODS[random.below(METHODS.len())];
    let mut draft = Draft {
        method,
        target: path(random) + &query(random),
        body: Vec::new(),
        version: "HTTP/1.1",
        lines: Vec::new(),
        framing: Framing::None,
        expected: Expected::Served,
    };
    if random.percent(6) {
        draft.target = odd_target(random);
        draft.expected = Expected::Either;
    }
    if !matches!(method, "GET" | "HEAD") && random.percent(85) {
        draft.body = body(random);
    }
    draft.framing = match random.below(10) {
        0..4 if draft.body.is_empty() => Framing::None,
        0..6 => Framing::Length,
        _ => Framing::Chunked,
    };
    if random.percent(2) {
        draft.version = "HTTP/1.0";
        if draft.framing == Framing::Chunked {
            draft.framing = Framing::Length;
        }
    }
    add_content_type(random, &mut draft);
    add_further(random, &mut draft);
    if random.percent(4) {
        return damaged(random, draft, number);
    }
    add_signature(random, &mut draft, number);
    let framing = framing_line(random, &draft);
    draft.lines.extend(framing);
    shuffle(random, &mut draft.lines);
    let body = match draft.framing {
        Framing::Chunked => chunks(random, &draft.body),
        Framing::Length | Framing::None => draft.body.clone(),
    };
    draft.finish(&body)
}

impl Draft {
    /// Its bytes, with the body as it is sent.
    fn finish(self, body: &[u8]) -> Generated {
        let start = format!("{} {} {}", self.method, self.target, self.version);
        let host = b"Host: gateway.example".to_vec();
        let mut lines = vec![start.into_bytes(), host];
        lines.extend(self.lines);
        let mut bytes = lines.join(&b"\r\n"[..]);
        bytes.extend_from_slice(b"\r\n\r\n");
        bytes.extend_from_slice(body);
        Generated {
            bytes,
            method: self.method,
            target: self.target,
            body: self.body,
            expected: self.expected,
        }
    }
}

/// A path that every reader takes the same way: no empty segment, none that ends with `.` or a space.
fn path(random: &mut Random) -> String {
    const PIECES: [&str; 24] = [
        "a",
        "orders",
        "5",
        "~x",
        "_",
        "-",
        ".well-known",
        "a.b",
        "!",
        "$",
        "&",
        "'",
        "()",
        "*",
        "+",
        ",",
        "=",
        ":",
        "@",
        "%41",
        "%c3%A9",
        "%E5%BC%A0",
        "%25",
        "%3Fq",
    ];
    let mut path = String::new();
    for _ in 0..=random.below(4) {
        path.push('/');
        for _ in 0..random.below(4) {
            path.push_str(random.choose(&PIECES));
        }
        path.push_str(random.choose(&["x", "Y", "0", "%7E", "%20z"]));
    }
    match random.below(20) {
        0 => "/".to_owned(),
        1..4 => path + "/",
        _ => path,
    }
}

fn query(random: &mut Random) -> String {
    const PIECES: [&str; 30] = [
        "a", "b=1", "c=", "=d", "time=5", "sign=x", "%74ime=1", "&", "&&", "=", "+", "%20", "%00",
        "%c3%A9", "?", "/", "..", ";", ":", "@", "!$'()*,", "[]", "{}", "|", "\\", "^", "`", "~",
        "%2F", "%2e",
    ];
    if random.percent(30) {
        return String::new();
    }
    let mut query = "?".to_owned();
    for _ in 0..random.below(12) {
        query.push_str(random.choose(&PIECES));
    }
    query
}

/// What some readers would change, or refuse.
fn odd_target(random: &mut Random) -> String {
    const TARGETS: [&str; 24] = [
        "//a",
        "/a//b",
        "/a/../b",
        "/a/./b",
        "/a/..",
        "/..;/b",
        "/a;b=c",
        "/a%2Fb",
        "/a%5Cb",
        "/a%00b",
        "/a%2e%2e/b",
        "/%2e",
        "/a.",
        "/a%20",
        "/a%0d%0ab",
        "/%c0%af",
        "/%ff",
        "/a%",
        "/a%zz",
        "/a?%",
        "/a?%ff",
        "/a?%zz=1",
        "/a?#b",
        "/a?\"<>",
    ];
    random.choose(&TARGETS).to_owned()
}

fn body(random: &mut Random) -> Vec<u8> {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut random = Random(0x5eed);
        let piece = (0..2 * MAX_BODY).map(|_| u8::try_from(random.below(256)).expect("a byte"));
        piece.collect()
    });
    let limit = match random.below(20) {
        0 => MAX_BODY,
        1..5 => 16 * 1024,
        5..8 => 2,
        _ => 1024,
    };
    let (length, start) = (random.below(limit + 1), random.below(MAX_BODY));
    if random.percent(50) {
        return BYTES[start..start + length].to_vec();
    }
    let text = "\u{5f20} ".repeat(length / 4);
    format!("{{\"n\": {length}, \"text\": \"{text}\"}}\n").into_bytes()
}

fn add_content_type(random: &mut Random, draft: &mut Draft) {
    const TYPES: [&str; 9] = [
        "application/json",
        "Application/JSON; charset=\"utf-8\"",
        "application/vnd.api+json",
        "application/octet-stream",
        "text/plain;charset=iso-8859-1",
        "multipart/form-data; boundary=\"a b\"",
        "image/png",
        "x/y ; z",
        "",
    ];
    if draft.body.is_empty() && random.percent(70) {
        return;
    }
    let value = if random.percent(3) {
        // It is read as a form, which most bodies here are not.
        draft.expected = Expected::Either;
        "application/x-www-form-urlencoded"
    } else {
        random.choose(&TYPES)
    };
    if !value.is_empty() {
        let line = header(random, "Content-Type", value.as_bytes());
        draft.lines.push(line);
    }
}

/// Signs it, or does not sign it validly.
fn add_signature(random: &mut Random, draft: &mut Draft, number: usize) {
    let fault = random.below(100);
    let time = if fault == 0 {
        now_ms() - 400_000
    } else {
        now_ms()
    }
    .to_string();
    let nonce = format!("n-{number}");
    let hash = sha256_hex(&draft.body);
    let lines = [draft.method, &draft.target, &time, &nonce, &hash];
    let mut sign = hmac_hex(APP_KEY, lines.join("\n").as_bytes());
    if random.percent(20) {
        sign = sign.to_uppercase();
    }
    let mut sent = vec![("Time", time), ("Sign", sign), ("Nonce", nonce)];
    match fault {
        1 => sent[1].1 = "0".repeat(64),
        2 => drop(sent.remove(1)),
        3 => sent.clear(),
        _ => {}
    }
    match fault {
        0..3 => draft.expected = Expected::Refused,
        // Without parameters and body it needs no signature.
        3 => draft.expected = Expected::Either,
        _ => {}
    }
    for (name, value) in sent {
        let line = header(random, &format!("Acme-X-{name}"), value.as_bytes());
        draft.lines.push(line);
    }
}

/// Headers that change nothing, or that end at the gateway.
const FURTHER: [(&str, &[u8]); 34] = [
    ("X-Empty", b""),
    ("X-Latin", b"caf\xe9"),
    ("X-UTF-8", "\u{5f20}".as_bytes()),
    ("X-Long", &[b'x'; 4000]),
    ("X-Twice", b"1"),
    ("X-Twice", b"2"),
    ("x.dots!#$%&'*+^`|~", b"tokens"),
    ("X-Tab", b"a\tb"),
    ("X-Quoted", b"\"a, b\\\"\""),
    ("Accept", b"*/*"),
    ("Accept-Encoding", b"gzip, br"),
    ("Accept-Language", b"ko, en;q=0.1"),
    ("User-Agent", b"Generated/1 (test)"),
    ("Cookie", b"a=b; c=d"),
    ("Cookie", b"e=f"),
    ("TE", b"trailers"),
    ("Trailer", b"X-End"),
    ("Content_Length", b"3"),
    ("Transfer_Encoding", b"chunked"),
    ("Content-Encoding", b"gzip"),
    ("X-Forwarded-For", b"203.0.113.9"),
    ("X-Forwarded-Host", b"evil.example"),
    ("X-Original-URL", b"/smuggled"),
    ("X-Rewrite-URL", b"/smuggled"),
    ("X-HTTP-Method-Override", b"DELETE"),
    ("X-Gateway-App-Id", b"7"),
    ("Range", b"bytes=0-1"),
    ("If-None-Match", b"*"),
    ("If-Modified-Since", b"Sat, 01 Jan 2000 00:00:00 GMT"),
    ("Connection", b"keep-alive, X-Hop"),
    ("X-Hop", b"ends at the gateway"),
    ("Keep-Alive", b"timeout=5"),
    ("Proxy-Connection", b"keep-alive"),
    ("Upgrade", b"websocket"),
];

fn add_further(random: &mut Random, draft: &mut Draft) {
    // Each at most once: nginx refuses some of them twice.
    for (name, value) in FURTHER {
        if random.percent(8) {
            let line = header(random, name, value);
            draft.lines.push(line);
        }
    }
    if !draft.body.is_empty() && random.percent(3) {
        let line = header(random, "Expect", b"100-continue");
        draft.lines.push(line);
    }
    if random.percent(2) {
        let line = header(random, "Connection", b"close");
        draft.lines.push(line);
    }
}

/// A header line, its name in a letter case of its own, white space around its value.
fn header(random: &mut Random, name: &str, value: &[u8]) -> Vec<u8> {
    let name = match random.below(4) {
        0 => name.to_lowercase(),
        1 => name.to_uppercase(),
        2 => {
            let mixed = name.chars().map(|character| match random.percent(50) {
                true => character.to_ascii_uppercase(),
                false => character.to_ascii_lowercase(),
            });
            mixed.collect()
        }
        _ => name.to_owned(),
    };
    let before = random.choose(&[" ", " ", " ", "", "\t", "  "]);
    let after = random.choose(&["", "", "", " ", "\t "]);
    [
        name.as_bytes(),
        b":",
        before.as_bytes(),
        value,
        after.as_bytes(),
    ]
    .concat()
}

fn framing_line(random: &mut Random, draft: &Draft) -> Option<Vec<u8>> {
    let length = draft.body.len();
    match draft.framing {
        Framing::None => None,
        Framing::Length => {
            let width = random.choose(&["", "", "", "0", "000"]);
            let value = format!("{width}{length}");
            Some(header(random, "Content-Length", value.as_bytes()))
        }
        Framing::Chunked => {
            let value = random.choose(&["chunked", "Chunked", "CHUNKED"]);
            Some(header(random, "Transfer-Encoding", value.as_bytes()))
        }
    }
}

/// The body in chunks, with extensions and trailers.
fn chunks(random: &mut Random, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = body;
    let most = 1 + body.len() / 4 + random.below(body.len() + 1);
    // Of all chunks together there may be 1 KiB.
    let mut extensions = 20;
    let mut size_line = |random: &mut Random, bytes: &mut Vec<u8>, size: usize| {
        let size = match random.below(4) {
            0 => format!("{size:X}"),
            1 => format!("{size:08x}"),
            _ => format!("{size:x}"),
        };
        bytes.extend_from_slice(size.as_bytes());
        if extensions > 0 && random.percent(10) {
            extensions -= 1;
            let extension = random.choose(&[";a", ";a=b", ";a=\"b;c\"", ";a=b;c=d"]);
            bytes.extend_from_slice(extension.as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
    };
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rest.len().min(1 + random.below(most)));
        size_line(random, &mut bytes, chunk.len());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
        rest = after;
    }
    size_line(random, &mut bytes, 0);
    if random.percent(20) {
        for _ in 0..=random.below(4) {
            let (name, value) = TRAILERS[random.below(TRAILERS.len())];
            let line = header(random, name, value);
            bytes.extend_from_slice(&line);
            bytes.extend_from_slice(b"\r\n");
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

const TRAILERS: [(&str, &[u8]); 5] = [
    ("X-End", b"1"),
    ("X-Checksum", b"\"a\""),
    ("Expires", b"0"),
    ("X-Empty", b""),
    ("Acme-X-Version", b"v2"),
];

fn shuffle(random: &mut Random, lines: &mut [Vec<u8>]) {
    for end in (1..lines.len()).rev() {
        lines.swap(end, random.below(end + 1));
    }
}

/// Needs no signature, so that it arrives if it is ever taken for a request.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

/// Signed, but with a fault in its head or its framing: the gateway must refuse it before a backend gets a byte.
fn damaged(random: &mut Random, mut draft: Draft, number: usize) -> Generated {
    let (mut sent, mut behind) = (draft.body.clone(), SMUGGLED);
    if random.percent(35) {
        let (chunks, body) = damaged_chunks(random);
        (draft.method, draft.body) = ("POST", body.into());
        sent = chunks.into_bytes();
        draft.lines.push(b"Transfer-Encoding: chunked".to_vec());
    } else {
        let fault = random.below(16);
        let lines = damaged_lines(random, fault, draft.body.len());
        match fault {
            0..3 => sent = chunks(random, &draft.body),
            12 => {
                draft.method = random.choose(&METHODS_REFUSED);
                // Its end is clear, so that the connection may stay open.
                behind = "";
            }
            13 => draft.version = random.choose(&VERSIONS_REFUSED),
            14 => draft.target = random.choose(&TARGETS_REFUSED).to_owned(),
            _ => {}
        }
        draft
            .lines
            .extend(lines.into_iter().map(String::into_bytes));
    }
    add_signature(random, &mut draft, number);
    draft.expected = Expected::Refused;
    sent.extend_from_slice(behind.as_bytes());
    draft.finish(&sent)
}

/// The lines of a damaged head that frame its body. The first three numbers have a body in chunks.
fn damaged_lines(random: &mut Random, fault: usize, length: usize) -> Vec<String> {
    let right = format!("Content-Length: {length}");
    let chunked = "Transfer-Encoding: chunked".to_owned();
    match fault {
        0 => vec![right, chunked],
        1 => vec![chunked.clone(), chunked],
        2 => vec![format!(
            "Transfer-Encoding: {}",
            random.choose(&CODINGS_REFUSED)
        )],
        3 => vec![right.clone(), right],
        4 => vec![right, format!("Content-Length: {}", length + 1)],
        5 => {
            let spelling = random.below(6);
            let values = ["+N", "-N", "0xN", "N N", "N,N", "N.0"];
            let value = values[spelling].replace('N', &length.to_string());
            vec![format!("Content-Length: {value}")]
        }
        6 => vec![format!("Content-Length : {length}")],
        7 => vec![format!("{right}\n")],
        8 => vec![right, " folded: 1".to_owned()],
        9 => vec![format!("{right}\r")],
        10 => vec!["X-Nul: a\0b".to_owned(), right],
        11 => vec!["Host: other.example".to_owned(), right],
        15 => vec!["no colon".to_owned(), right],
        _ => vec![right],
    }
}

const CODINGS_REFUSED: [&str; 7] = [
    "gzip, chunked",
    "chunked, chunked",
    "identity",
    "xchunked",
    "chunked;a=b",
    "",
    "\"chunked\"",
];

const METHODS_REFUSED: [&str; 7] = ["OPTIONS", "TRACE", "CONNECT", "get", "Post", "QUERY", "G:T"];

const VERSIONS_REFUSED: [&str; 7] = [
    "HTTP/2.0",
    "HTTP/1.2",
    "http/1.1",
    "HTTP/1.1 ",
    "HTTP/01.1",
    "",
    "HTTP/0.9",
];

const TARGETS_REFUSED: [&str; 7] = [
    "http://gateway.example/a",
    "*",
    "gateway.example:80",
    "a",
    "/a b",
    "/a\x01",
    "/\u{e9}",
];

/// Chunks that some readers take for others, and the body that they find.
fn damaged_chunks(random: &mut Random) -> (String, &'static str) {
    const CHUNKS: [(&str, &str); 17] = [
        ("0x1\r\na\r\n0\r\n\r\n", "a"),
        ("+1\r\na\r\n0\r\n\r\n", "a"),
        ("-1\r\na\r\n0\r\n\r\n", "a"),
        (" 1\r\na\r\n0\r\n\r\n", "a"),
        ("1 \r\na\r\n0\r\n\r\n", "a"),
        ("000000001\r\na\r\n0\r\n\r\n", "a"),
        ("100000001\r\na\r\n0\r\n\r\n", "a"),
        ("1\na\n0\n\n", "a"),
        ("1\r\na\n0\r\n\r\n", "a"),
        ("1\r\nab\r\n0\r\n\r\n", "a"),
        ("2\r\na\r\n0\r\n\r\n", "a\r"),
        ("\r\n0\r\n\r\n", ""),
        ("g\r\n0\r\n\r\n", ""),
        ("1;a\nb\r\na\r\n0\r\n\r\n", "a"),
        ("1;a\rb\r\na\r\n0\r\n\r\n", "a"),
        ("1\r\na\r\n0\r\nno colon\r\n\r\n", "a"),
        ("1\r\na\r\n0\r\nX : 1\r\n\r\n", "a"),
    ];
    match CHUNKS.get(random.below(CHUNKS.len() + 1)) {
        Some((chunks, body)) => ((*chunks).to_owned(), body),
        None => (format!("1\r\na\r\n0\r\n{}\r\n", "X: 1\r\n".repeat(17)), "a"),
    }
}
