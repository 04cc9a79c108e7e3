//! The cases: answers as a broken, a hostile or an unusual backend sends them.

use std::fmt;

use end_to_end::scripted_backend::{Ending, Start};

/// A backend's response, and its expected outcome.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    pub(super) start: Start,
    pub(super) ending: Ending,
    pub(super) expected: Expected,
    pub(super) reuse: Reuse,
    /// Whether bytes follow the response. If they arrive later, they arrive on an idle connection.
    pub(super) has_excess: bool,
}

/// What the client must get.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    /// 502 `backend_unreachable`.
    Unreachable,
    /// A response that is visibly incomplete, or 502 `backend_unreachable`.
    Truncated,
    /// A whole response.
    Passed {
        status: u16,
        body: &'static [u8],
        /// Headers that it has, names in lower case.
        has: &'static [(&'static str, &'static str)],
        /// Headers that it lacks.
        lacks: &'static [&'static str],
    },
}

/// Whether a later request may come over the same backend connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reuse {
    /// The gateway closes the connection.
    Never,
    /// Either is valid.
    Optional,
    /// The next request must use it, which shows that connections are reused at all.
    Required,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.bytes[..self.bytes.len().min(200)];
        write!(
            f,
            "{} ({:?}): {}",
            self.name,
            self.ending,
            shown.escape_ascii()
        )
    }
}

impl Case {
    /// A response on a connection that stays open, after which the connection is not reused.
    fn new(name: &str, bytes: impl AsRef<[u8]>, expected: Expected) -> Self {
        Self {
            name: name.to_owned(),
            bytes: bytes.as_ref().to_vec(),
            start: Start::AfterRequest,
            ending: Ending::Open,
            expected,
            reuse: Reuse::Never,
            has_excess: false,
        }
    }

    fn closed(self) -> Self {
        let ending = Ending::Close;
        Self { ending, ..self }
    }

    fn reuse(self, reuse: Reuse) -> Self {
        Self { reuse, ..self }
    }

    fn excess(self) -> Self {
        let has_excess = true;
        Self { has_excess, ..self }
    }
}

fn unreachable(name: &str, bytes: impl AsRef<[u8]>) -> Case {
    Case::new(name, bytes, Expected::Unreachable)
}

/// A head that is well-formed but for one line.
fn line(name: &str, line: impl AsRef<[u8]>) -> Case {
    let bytes = [
        b"HTTP/1.1 200 OK\r\n",
        line.as_ref(),
        b"\r\nContent-Length: 4\r\n\r\nEVIL",
    ]
    .concat();
    unreachable(name, bytes)
}

/// A head whose framing is in doubt.
fn framing(name: &str, lines: &str) -> Case {
    let bytes = format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    unreachable(name, bytes)
}

/// A chunked body that is malformed.
fn chunks(name: &str, body: impl AsRef<[u8]>) -> Case {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    Case::new(name, [head, body.as_ref()].concat(), Expected::Truncated)
}

fn truncated(name: &str, bytes: &str) -> Case {
    Case::new(name, bytes, Expected::Truncated).closed()
}

fn passed(name: &str, bytes: impl AsRef<[u8]>, status: u16, body: &'static [u8]) -> Case {
    passed_with(name, bytes, (status, body), &[], &[])
}

fn passed_with(
    name: &str,
    bytes: impl AsRef<[u8]>,
    (status, body): (u16, &'static [u8]),
    has: &'static [(&'static str, &'static str)],
    lacks: &'static [&'static str],
) -> Case {
    let expected = Expected::Passed {
        status,
        body,
        has,
        lacks,
    };
    Case::new(name, bytes, expected)
}

/// A response with this status line that is otherwise well-formed.
fn status_line(line: &str) -> Case {
    let bytes = format!("{line}\r\nContent-Length: 4\r\n\r\nEVIL");
    unreachable("status line", bytes)
}

/// Every case.
pub(super) fn cases() -> Vec<Case> {
    let parts = [
        heads(),
        fields(),
        lengths(),
        encodings(),
        interim(),
        bodies(),
        whole(),
        endings(),
        bodiless(),
    ];
    parts.concat()
}

/// Status lines, and heads that do not end as they should.
#[rustfmt::skip] // A table: one case a line.
fn heads() -> Vec<Case> {
    let mut cases: Vec<_> = [
        "HTTP/2.0 200 OK", "HTTP/2 200 OK", "HTTP/1.2 200 OK", "HTTP/0.9 200 OK", "HTTP/1.10 200 OK", "HTTP/11 200 OK",
        "HTTP/1,1 200 OK", "http/1.1 200 OK", "Http/1.1 200 OK", "ICY 200 OK", " HTTP/1.1 200 OK", "XHTTP/1.1 200 OK",
        "HTTP/1.1  200 OK", "HTTP/1.1\t200 OK", "HTTP/1.1 200\tOK", "HTTP/1.1 200OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK",
        "HTTP/1.1 000 OK", "HTTP/1.1 099 OK", "HTTP/1.1 600 OK", "HTTP/1.1 999 OK", "HTTP/1.1 2x0 OK", "HTTP/1.1 abc",
        "HTTP/1.1 +20 OK", "HTTP/1.1 -20 OK", "HTTP/1.1 0xC8 OK", "HTTP/1.1 OK", "HTTP/1.1", "HTTP/1.1 ",
        "HTTP/1.1 200 O\0K", "HTTP/1.1 200 O\x0bK", "HTTP/1.1 200 O\x7fK", "HTTP/1.1 200 O\rK",
    ]
    .map(status_line)
    .into();
    let head_of = |length: usize| format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 4\r\n\r\nEVIL", "y".repeat(length));
    cases.extend([
        unreachable("HTTP/0.9", "<html>EVIL</html>\r\n\r\n").closed(),
        unreachable("no HTTP at all", b"\x15\x03\x01\x00\x02\x02\x28\r\n\r\n").closed(),
        unreachable("an empty line first", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"),
        unreachable("two empty lines first", "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"),
        unreachable("a line feed first", "\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"),
        unreachable("line feed after the status line", "HTTP/1.1 200 OK\nContent-Length: 4\r\n\r\nEVIL"),
        unreachable("line feed after a field", "HTTP/1.1 200 OK\r\nX: y\nContent-Length: 4\r\n\r\nEVIL"),
        unreachable("line feed after the last field", "HTTP/1.1 200 OK\r\nContent-Length: 4\n\r\nEVIL"),
        unreachable("line feed as the empty line", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\nEVIL\r\n\r\n"),
        unreachable("line feeds only", "HTTP/1.1 200 OK\nContent-Length: 4\n\nEVIL\r\n\r\n"),
        unreachable("two carriage returns", "HTTP/1.1 200 OK\r\r\nContent-Length: 4\r\n\r\nEVIL"),
        unreachable("a head of more than 64 KiB", head_of(70_000)),
        unreachable("a head that never ends", vec![b'x'; 70_000]),
        unreachable("a field name that never ends", [b"HTTP/1.1 200 OK\r\n", &vec![b'x'; 70_000][..]].concat()),
        unreachable("a head of 300 fields", format!("HTTP/1.1 200 OK\r\n{}Content-Length: 4\r\n\r\nEVIL", "X: y\r\n".repeat(300))),
        unreachable("a head of 257 fields", format!("HTTP/1.1 200 OK\r\n{}Content-Length: 4\r\n\r\nEVIL", "X: y\r\n".repeat(256))),
        unreachable("end in the version", "H").closed(),
        unreachable("end in the status line", "HTTP/1.1 200 O").closed(),
        unreachable("end after the status line", "HTTP/1.1 200 OK\r\n").closed(),
        unreachable("end in a field", "HTTP/1.1 200 OK\r\nContent-Le").closed(),
        unreachable("end after a field", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n").closed(),
        unreachable("end in the empty line", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r").closed(),
        unreachable("an empty response", "").closed(),
    ]);
    cases
}

/// Malformed header lines.
#[rustfmt::skip] // A table: one case a line.
fn fields() -> Vec<Case> {
    vec![
        line("obs-fold with a space", "X: y\r\n z"),
        line("obs-fold with a tab", "X: y\r\n\tz"),
        line("obs-fold of an empty value", "X:\r\n z"),
        line("fold after the status line", " X: y"),
        line("space before the colon", "X : y"),
        line("tab before the colon", "X\t: y"),
        line("no colon", "X"),
        line("no colon, but a space", "X y"),
        line("empty name", ": y"),
        line("space in the name", "X Y: z"),
        line("bracket in the name", "X(: y"),
        line("quote in the name", "\"X\": y"),
        line("letter beyond ASCII in the name", "X\u{e9}: y"),
        line("NUL in the name", "X\0: y"),
        line("carriage return in the name", "X\rY: z"),
        line("carriage return in the value", "X: y\rz"),
        line("carriage return and a field in the value", "X: y\rContent-Length: 0"),
        line("NUL in the value", "X: y\0z"),
        line("control character in the value", "X: y\x01z"),
        line("vertical tab in the value", "X: y\x0bz"),
        line("escape in the value", "X: \x1b[31my"),
        line("DEL in the value", "X: y\x7fz"),
        line("framing, space before the colon", "Transfer-Encoding : chunked"),
        line("framing, folded", "Transfer-Encoding:\r\n chunked"),
    ]
}

/// An invalid `Content-Length`, or more than one.
fn lengths() -> Vec<Case> {
    let values = [
        "5, 5",
        "5,6",
        "+5",
        "-5",
        "0x5",
        "5 5",
        "5.0",
        "",
        "five",
        "5;",
        "5\u{b}",
        "\u{665}",
        "18446744073709551621",
        "99999999999999999999",
    ];
    let mut cases: Vec<_> = values
        .map(|value| framing("length", &format!("Content-Length: {value}")))
        .into();
    cases.extend([
        framing(
            "two equal lengths",
            "Content-Length: 5\r\nContent-Length: 5",
        ),
        framing("two lengths", "Content-Length: 5\r\nContent-Length: 6"),
        framing(
            "two lengths apart",
            "Content-Length: 0\r\nX: y\r\ncontent-length: 5",
        ),
        framing(
            "two lengths, one empty",
            "Content-Length:\r\nContent-Length: 5",
        ),
    ]);
    cases
}

/// A `Transfer-Encoding` that is not exactly `chunked`, or not alone.
fn encodings() -> Vec<Case> {
    let values = [
        "gzip",
        "gzip, chunked",
        "chunked, gzip",
        "chunked, chunked",
        "chunked;q=1",
        "xchunked",
        "chunkedx",
        "identity",
        "identity, chunked",
        "\"chunked\"",
        "chunked,",
        ", chunked",
        "chu\tnked",
        "",
    ];
    let mut cases: Vec<_> = values
        .map(|value| framing("encoding", &format!("Transfer-Encoding: {value}")))
        .into();
    let chunked = "Transfer-Encoding: chunked";
    cases.extend([
        framing("two encodings", &format!("{chunked}\r\n{chunked}")),
        framing(
            "two encodings, one identity",
            &format!("Transfer-Encoding: identity\r\n{chunked}"),
        ),
        framing(
            "length, then encoding",
            &format!("Content-Length: 5\r\n{chunked}"),
        ),
        framing(
            "encoding, then length",
            &format!("{chunked}\r\nContent-Length: 5"),
        ),
        framing(
            "encoding and a length of 0",
            &format!("{chunked}\r\nContent-Length: 0"),
        ),
        framing(
            "encoding in capitals beside a length",
            "TRANSFER-ENCODING: CHUNKED\r\nContent-Length: 5",
        ),
        unreachable(
            "encoding in HTTP/1.0",
            format!("HTTP/1.0 200 OK\r\n{chunked}\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        )
        .closed(),
    ]);
    cases
}

/// Interim responses.
#[rustfmt::skip] // A table: one case a line.
fn interim() -> Vec<Case> {
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let continue_100 = "HTTP/1.1 100 Continue\r\n\r\n";
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </evil>\r\n\r\n";
    let lacks_link = |name, before: String| {
        passed_with(name, before + whole, (200, b"hello"), &[], &["link"]).reuse(Reuse::Optional)
    };
    vec![
        unreachable("101", format!("HTTP/1.1 101 Switching Protocols\r\n\r\n{whole}")),
        unreachable("101 with Upgrade", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nEVIL"),
        unreachable("101 after 100", format!("{continue_100}HTTP/1.1 101 Switching Protocols\r\n\r\n{whole}")),
        unreachable("40 interim responses", continue_100.repeat(40) + whole),
        unreachable("interim responses only", continue_100.repeat(2)).closed(),
        unreachable("malformed interim response", format!("HTTP/1.1 100 Continue\r\nX Y: z\r\n\r\n{whole}")),
        unreachable("body of an interim response", format!("HTTP/1.1 100 Continue\r\nContent-Length: 4\r\n\r\nEVIL{whole}")),
        lacks_link("100 first", continue_100.to_owned()),
        lacks_link("102 first", "HTTP/1.1 102 Processing\r\n\r\n".to_owned()),
        lacks_link("103 first", hints.to_owned()),
        lacks_link("several interim responses first", [continue_100, hints, hints, continue_100].concat()),
    ]
}

/// Bodies that are cut short or malformed.
#[rustfmt::skip] // A table: one case a line.
fn bodies() -> Vec<Case> {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let extension = |length| format!("5;{}\r\nhello\r\n0\r\n\r\n", "a".repeat(length));
    let last = "5\r\nhello\r\n0\r\n";
    vec![
        truncated("no byte of a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        truncated("one byte less than the length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"),
        truncated("far less than the length", "HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\nhello"),
        truncated("no chunk", head),
        truncated("end in a chunk's size", &format!("{head}5")),
        truncated("end after a chunk's size", &format!("{head}5\r\n")),
        truncated("end in a chunk", &format!("{head}5\r\nhel")),
        truncated("end after a chunk's data", &format!("{head}5\r\nhello")),
        truncated("end before the last chunk", &format!("{head}5\r\nhello\r\n")),
        truncated("end in the last chunk", &format!("{head}5\r\nhello\r\n0\r\n")),
        truncated("end in the trailers", &format!("{head}5\r\nhello\r\n0\r\nX: y\r\n")),
        chunks("size: no digit", "g\r\nhello\r\n0\r\n\r\n"),
        chunks("size: empty", "\r\nhello\r\n0\r\n\r\n"),
        chunks("size: prefix", "0x5\r\nhello\r\n0\r\n\r\n"),
        chunks("size: space behind", "5 \r\nhello\r\n0\r\n\r\n"),
        chunks("size: space before", " 5\r\nhello\r\n0\r\n\r\n"),
        chunks("size: tab behind", "5\t\r\nhello\r\n0\r\n\r\n"),
        chunks("size: plus", "+5\r\nhello\r\n0\r\n\r\n"),
        chunks("size: minus", "-5\r\nhello\r\n0\r\n\r\n"),
        chunks("size: letter behind", "5h\r\nhello\r\n0\r\n\r\n"),
        chunks("size: comma behind", "5,\r\nhello\r\n0\r\n\r\n"),
        chunks("size: lone line feed", "5\nhello\r\n0\r\n\r\n"),
        chunks("size: lone carriage return", "5\rhello\r\n0\r\n\r\n"),
        chunks("size: 17 digits", "00000000000000005\r\nhello\r\n0\r\n\r\n"),
        chunks("size: 17 digits that wrap", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
        chunks("size of the last chunk: malformed", "5\r\nhello\r\n0x0\r\n\r\n"),
        chunks("extension only", ";a=b\r\nhello\r\n0\r\n\r\n"),
        chunks("extension with a lone line feed", "5;a\nb\r\nhello\r\n0\r\n\r\n"),
        chunks("extension with a NUL", "5;a\0\r\nhello\r\n0\r\n\r\n"),
        chunks("extension of 2 KiB", extension(2048)),
        chunks("extension without end", extension(100_000)),
        chunks("data longer than its chunk", "3\r\nhello\r\n0\r\n\r\n"),
        chunks("no line end after the data", "5\r\nhello0\r\n\r\n"),
        chunks("lone line feed after the data", "5\r\nhello\n0\r\n\r\n"),
        chunks("other bytes after the data", "5\r\nhelloXX0\r\n\r\n"),
        chunks("trailer: space in the name", format!("{last}X Y: z\r\n\r\n")),
        chunks("trailer: no colon", format!("{last}HTTP/1.1 200 OK\r\n\r\n")),
        chunks("trailer: empty name", format!("{last}: x\r\n\r\n")),
        chunks("trailer: lone line feed", format!("{last}X: y\n\r\n")),
        chunks("trailer: NUL", format!("{last}X: y\0\r\n\r\n")),
        chunks("trailer: folded", format!("{last}X: y\r\n z\r\n\r\n")),
        chunks("20 trailers", format!("{last}{}\r\n", "X: y\r\n".repeat(20))),
        chunks("trailers without end", format!("{last}{}\r\n", "X: y\r\n".repeat(20_000))),
    ]
}

/// Complete but unusual answers.
#[rustfmt::skip] // A table: one case a line.
fn whole() -> Vec<Case> {
    let ok = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 5\r\n\r\nhello");
    let hello = (200, &b"hello"[..]);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    vec![
        passed("a length", ok(""), 200, b"hello").reuse(Reuse::Required),
        passed("chunks", format!("{chunked}2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"), 200, b"hello").reuse(Reuse::Required),
        passed("chunked in capitals", "HTTP/1.1 200 OK\r\ntransfer-encoding:\t CHUNKED \r\n\r\n5\r\nhello\r\n0\r\n\r\n", 200, b"hello").reuse(Reuse::Optional),
        passed("chunk size with zeros in front", format!("{chunked}0005\r\nhello\r\n000\r\n\r\n"), 200, b"hello").reuse(Reuse::Optional),
        passed_with("chunks with extensions and trailers", format!("{chunked}2;a=b\r\nhe\r\n3;c=\"d\"\r\nllo\r\n0;e\r\nX-T: 1\r\nX-U:\r\n\r\n"), hello, &[], &["x-t", "x-u", "trailer"]).reuse(Reuse::Optional),
        passed_with("trailers that are framing", format!("{chunked}5\r\nhello\r\n0\r\nContent-Length: 99\r\nSet-Cookie: a=b\r\n\r\n"), hello, &[], &["set-cookie"]).reuse(Reuse::Optional),
        passed_with("a length of 0", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, b""), &[("content-length", "0")], &["transfer-encoding"]).reuse(Reuse::Optional),
        passed("no chunk but the last", format!("{chunked}0\r\n\r\n"), 200, b"").reuse(Reuse::Optional),
        passed("no reason", "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello").reuse(Reuse::Optional),
        passed("an empty reason", "HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello", 200, b"hello").reuse(Reuse::Optional),
        passed("a tab in the reason", "HTTP/1.1 200 O\tK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello").reuse(Reuse::Optional),
        passed("an unregistered status", "HTTP/1.1 599 Odd\r\nContent-Length: 5\r\n\r\nhello", 599, b"hello").reuse(Reuse::Optional),
        passed_with("obs-text in a value", b"HTTP/1.1 200 OK\r\nX-Text: a\x80\xfe\xffz\r\nContent-Length: 5\r\n\r\nhello", hello, &[("x-text", "a\u{80}\u{fe}\u{ff}z")], &[]).reuse(Reuse::Optional),
        passed_with("a tab in a value", ok("X-Text: a\tb\r\n"), hello, &[("x-text", "a\tb")], &[]).reuse(Reuse::Optional),
        passed_with("an empty value", ok("X-Text:\r\n"), hello, &[("x-text", "")], &[]).reuse(Reuse::Optional),
        passed_with("a name of unusual characters", ok("!#$%&'*+-.^_`|~: y\r\n"), hello, &[("!#$%&'*+-.^_`|~", "y")], &[]).reuse(Reuse::Optional),
        passed_with("256 fields", ok(&"X: y\r\n".repeat(255)), hello, &[("x", "y")], &[]).reuse(Reuse::Optional),
        passed("a head of 60 KiB", ok(&format!("X: {}\r\n", "y".repeat(60 * 1024))), 200, b"hello").reuse(Reuse::Optional),
        passed_with("hop-by-hop headers", ok("Connection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX-Kept: 1\r\n"), hello, &[("x-kept", "1")], &["x-hop", "keep-alive"]).reuse(Reuse::Optional),
        passed_with("Upgrade and Trailer", ok("Connection: upgrade\r\nUpgrade: h2c\r\nTrailer: X-T\r\n"), hello, &[], &["upgrade", "trailer"]).reuse(Reuse::Optional),
        passed("Connection that names the framing", ok("Connection: Content-Length\r\n"), 200, b"hello").reuse(Reuse::Optional),
        passed_with("the gateway's own headers", ok("X-Gateway-App-Id: 7\r\nx_gateway_app_id: 7\r\nX-GATEWAY-Secret: 7\r\nX-Kept: 1\r\n"), hello, &[("x-kept", "1")], &["x-gateway-app-id", "x_gateway_app_id", "x-gateway-secret"]).reuse(Reuse::Optional),
    ]
}

/// Answers after which the gateway closes the connection, with one exception that it may reuse.
#[rustfmt::skip] // A table: one case a line.
fn endings() -> Vec<Case> {
    let unsolicited = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL";
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let rejection = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\nlarge";
    let early = |name, ending| Case {
        start: Start::AfterHead,
        ending,
        ..passed(name, rejection, 413, b"large")
    };
    vec![
        passed("bytes after the length", format!("{ok}EVIL"), 200, b"hello").excess(),
        passed("line end after the length", format!("{ok}\r\n"), 200, b"hello").excess(),
        passed("a response behind the length", format!("{ok}{unsolicited}"), 200, b"hello").excess(),
        passed("a response behind a length of 0", format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n{unsolicited}"), 200, b"").excess(),
        passed("a response behind the last chunk", format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n{unsolicited}"), 200, b"hello").excess(),
        passed("a response behind trailers", format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n{unsolicited}"), 200, b"hello").excess(),
        passed("close after the length", ok, 200, b"hello").closed(),
        passed("no framing", "HTTP/1.1 200 OK\r\n\r\nhello", 200, b"hello").closed(),
        passed("no framing, and nothing in it", "HTTP/1.1 200 OK\r\n\r\n", 200, b"").closed(),
        passed("no framing, and a response in it", "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 200, b"HTTP/1.1 200 OK\r\n\r\n").closed(),
        passed("no framing, with Connection: keep-alive", "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nhello", 200, b"hello").closed(),
        passed("no framing in HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nhello", 200, b"hello").closed(),
        passed("HTTP/1.0 with a length", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
        passed("HTTP/1.0 with a length and keep-alive", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello", 200, b"hello").reuse(Reuse::Optional),
        passed("Connection: close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
        passed("Connection: close in a list", "HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
        passed("Connection: close beside keep-alive", "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
        early("a response before the form, then close", Ending::Close),
        early("a response before the form, then half a close", Ending::HalfClose),
    ]
}

/// Answers that never have a body (RFC 9112 section 6.3).
#[rustfmt::skip] // A table: one case a line.
fn bodiless() -> Vec<Case> {
    let unsolicited = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL";
    let framing = &["content-length", "transfer-encoding"];
    let no_content = |name, lines: &str| {
        let bytes = format!("HTTP/1.1 204 No Content\r\n{lines}");
        passed_with(name, bytes, (204, b""), &[], framing)
    };
    let not_modified = |name, lines: &str| {
        let bytes = format!("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n{lines}");
        passed_with(name, bytes, (304, b""), &[("etag", "\"x\"")], &["transfer-encoding"])
    };
    vec![
        no_content("204", "\r\n").reuse(Reuse::Optional),
        no_content("204 with a length of 0", "Content-Length: 0\r\n\r\n").reuse(Reuse::Optional),
        no_content("204 with a length", "Content-Length: 5\r\n\r\n").reuse(Reuse::Optional),
        no_content("204 with an encoding", "Transfer-Encoding: chunked\r\n\r\n").reuse(Reuse::Optional),
        no_content("204 with a body", "Content-Length: 5\r\n\r\nhello").excess(),
        no_content("204 with chunks", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n").excess(),
        no_content("204 with a response behind it", &format!("\r\n{unsolicited}")).excess(),
        not_modified("304", "\r\n").reuse(Reuse::Optional),
        not_modified("304 with a length", "Content-Length: 5\r\n\r\n").reuse(Reuse::Optional),
        not_modified("304 with an encoding", "Transfer-Encoding: chunked\r\n\r\n").reuse(Reuse::Optional),
        not_modified("304 with a body", "Content-Length: 5\r\n\r\nhello").excess(),
        not_modified("304 with a response behind it", &format!("\r\n{unsolicited}")).excess(),
    ]
}
