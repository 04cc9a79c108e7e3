//! Every method with every framing of a body: a backend sees exactly the request that was signed, or nothing of it.
//!
//! Each case has targets of its own, so that many run at once: `/N` for the request, and `/behind-N` for a GET that
//! follows it on the connection. The latter needs no signature, so it passes if it is ever taken for a request; it may
//! arrive only if a strict reading of the bytes contains it. The backend answers with the target, and closes nothing:
//! so each response on a client's connection must be the one to its own request.

use std::{collections::BTreeMap, fmt::Write as _, net::SocketAddr};

use end_to_end::{
    clock::now_ms,
    raw_connection::RawConnection,
    raw_http2::{END_STREAM, PADDED, RawHttp2, Reaction, fields, frame, get, headers, kind},
    recording_backend::{Behaviour, Delivery, Recorded, RecordedRequest, RecordingBackend},
    signed_client::SignedClient,
    signer::{hmac_hex, sha256_hex},
    stack::{APP_KEY, Stack},
};
use reqwest::Method;
use tokio::task::JoinSet;

/// v1 takes forms; v2 takes JSON by all methods, below its prefix or at its hosts.
const SETTINGS: &str = "[sign]
carrier = 'both'
window_seconds = 300
[timeouts]
idle_seconds = 10
[versions.v1]
methods = ['GET', 'HEAD', 'POST']
[versions.v2]
methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']
bodies = 'json'
path_prefix = '/v2'
hosts = ['v2.example.com', '[2001:db8::1]']
";

/// Connections at a time.
const AT_ONCE: usize = 32;
const JSON: &[u8] = b"{\"a\":1}";
const KNOWN: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const UNKNOWN: [&str; 6] = ["OPTIONS", "TRACE", "PROPFIND", "get", "PUTT", "CONNECT"];

/// What a connection sends, and what may become of it.
struct Case {
    name: String,
    bytes: Vec<u8>,
    method: String,
    /// What the backend must see of it: target and body.
    arrives: Option<(String, Vec<u8>)>,
    /// Whether a strict reading has the request behind it.
    has_behind: bool,
}

/// How a body is framed: header lines, bytes, and the body that a strict reading finds; `None`: there is none.
struct Framing {
    name: &'static str,
    lines: Vec<String>,
    bytes: Vec<u8>,
    body: Option<Vec<u8>>,
    /// Whether what follows begins with a request.
    ends_there: bool,
}

/// A body's type, and how it is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Signed in headers.
    Json,
    /// Signed among its parameters.
    Form,
    /// Signed in headers, but not accepted by v2.
    Text,
    /// Unsigned, and not accepted by v1.
    UnsignedText,
}

#[rustfmt::skip] // A table: one framing a line.
fn framings(body: &[u8]) -> Vec<Framing> {
    let n = body.len();
    let chunk = |size: &str, end: &str| [size.as_bytes(), b"\r\n", body, b"\r\n0", end.as_bytes()].concat();
    let size = format!("{n:x}");
    let te = "Transfer-Encoding: chunked";
    let length = |length: usize| format!("Content-Length: {length}");
    let mut all = Vec::new();
    let mut add = |name, lines: &[&str], bytes: Vec<u8>, body: Option<&[u8]>, ends_there| all.push(Framing {
        name,
        lines: lines.iter().map(ToString::to_string).collect(),
        bytes,
        body: body.map(<[u8]>::to_vec),
        ends_there,
    });
    add("length", &[&length(n)], body.to_vec(), Some(body), true);
    add("length with zeros in front", &[&format!("Content-Length: 00{n}")], body.to_vec(), Some(body), true);
    add("length, one short", &[&length(n - 1)], body.to_vec(), Some(&body[..n - 1]), false);
    // It takes the next request's first byte.
    add("length, one long", &[&length(n + 1)], body.to_vec(), Some(&[body, b"G"].concat()), false);
    add("length 0, a body nevertheless", &["Content-Length: 0"], body.to_vec(), Some(b""), false);
    add("no length, a body nevertheless", &[], body.to_vec(), Some(b""), false);
    add("a chunk", &[te], chunk(&size, "\r\n\r\n"), Some(body), true);
    let two = [b"1\r\n", &body[..1], b"\r\n", format!("{:X}\r\n", n - 1).as_bytes(), &body[1..], b"\r\n000\r\n\r\n"].concat();
    add("two chunks", &[te], two, Some(body), true);
    add("extensions", &[te], chunk(&format!("{size};a=b;c=\"d;\""), ";e\r\n\r\n"), Some(body), true);
    add("trailers", &[te, "Trailer: X"], chunk(&size, "\r\nX: 1\r\nY: 2\r\n\r\n"), Some(body), true);
    let framing = "\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\nAcme-X-Sign: 1\r\n\r\n";
    add("framing in trailers", &[te], chunk(&size, framing), Some(body), true);
    for size in ["0x", "+", "-", " ", "\t", "00000000"] {
        add("size with a prefix", &[te], chunk(&format!("{size}{n:x}"), "\r\n\r\n"), None, false);
    }
    for end in [" ;", "\n", "g", ",", "\r", ";a\nb"] {
        add("size with a suffix", &[te], chunk(&format!("{n:x}{end}"), "\r\n\r\n"), None, false);
    }
    add("size that wraps", &[te], chunk(&format!("1000000000000000{n:x}"), "\r\n\r\n"), None, false);
    add("size too small", &[te], chunk(&format!("{:x}", n - 1), "\r\n\r\n"), None, false);
    add("size too large", &[te], chunk(&format!("{:x}", n + 1), "\r\n\r\n"), None, false);
    add("trailer folded", &[te], chunk(&size, "\r\nX: 1\r\n y\r\n\r\n"), None, false);
    add("chunks beside a length", &[te, &length(n)], chunk(&size, "\r\n\r\n"), None, false);
    add("a length beside chunks", &[&length(n), te], body.to_vec(), None, false);
    add("two lengths", &[&length(n), &length(n)], body.to_vec(), None, false);
    add("a list of lengths", &[&format!("Content-Length: {n}, {n}")], body.to_vec(), None, false);
    add("another encoding", &["Transfer-Encoding: gzip, chunked"], chunk(&size, "\r\n\r\n"), None, false);
    add("chunked twice", &["Transfer-Encoding: chunked, chunked"], chunk(&size, "\r\n\r\n"), None, false);
    // A look-alike frames nothing.
    add("underscore", &["Transfer_Encoding: chunked", &length(n)], body.to_vec(), Some(body), true);
    all
}

/// Framings of no body.
fn empty_framings() -> Vec<Framing> {
    let framing = |name, line: &str, bytes: &[u8]| Framing {
        name,
        lines: Some(line.to_owned())
            .filter(|line| !line.is_empty())
            .into_iter()
            .collect(),
        bytes: bytes.to_vec(),
        body: Some(Vec::new()),
        ends_there: true,
    };
    vec![
        framing("nothing", "", b""),
        framing("length 0", "Content-Length: 0", b""),
        framing("no chunk", "Transfer-Encoding: chunked", b"0\r\n\r\n"),
    ]
}

/// The headers that sign a request.
fn sign(method: &str, target: &str, body: &[u8]) -> [String; 2] {
    let time = now_ms();
    let text = format!("{method}\n{target}\n{time}\n\n{}", sha256_hex(body));
    let sign = hmac_hex(APP_KEY, text.as_bytes());
    [
        format!("Acme-X-Time: {time}"),
        format!("Acme-X-Sign: {sign}"),
    ]
}

fn head(method: &str, target: &str, version: &str, host: &str, lines: &[String]) -> Vec<u8> {
    let mut head = format!("{method} {target} HTTP/{version}\r\nHost: {host}\r\n");
    for line in lines {
        let _ = write!(head, "{line}\r\n");
    }
    (head + "\r\n").into_bytes()
}

fn behind(number: usize) -> Vec<u8> {
    let close = ["Connection: close".to_owned()];
    head(
        "GET",
        &format!("/behind-{number}"),
        "1.1",
        "gateway.example",
        &close,
    )
}

/// The case of a method, a kind and a framing, with what CONTRACT 2 and 3 say of it.
fn case(
    number: usize,
    (method, kind): (&str, Kind),
    framing: &Framing,
    signed: &[u8],
    (expects, version): (bool, &str),
) -> Case {
    let target = match kind {
        Kind::Json | Kind::Text => format!("/v2/{number}?q=%20"),
        Kind::Form => format!("/v2/{number}"),
        Kind::UnsignedText => format!("/{number}"),
    };
    let (content_type, mut lines) = match kind {
        Kind::Json => ("application/json", sign(method, &target, signed).to_vec()),
        Kind::Form => ("application/x-www-form-urlencoded", Vec::new()),
        Kind::Text => ("text/plain", sign(method, &target, signed).to_vec()),
        Kind::UnsignedText => ("text/plain", Vec::new()),
    };
    lines.push(format!("Content-Type: {content_type}"));
    lines.extend(framing.lines.iter().cloned());
    lines.extend(expects.then(|| "Expect: 100-continue".to_owned()));
    let is_safe = matches!(method, "GET" | "HEAD");
    let is_chunked = framing
        .lines
        .iter()
        .any(|line| line.starts_with("Transfer-Encoding"));
    let is_known = match kind {
        Kind::UnsignedText => KNOWN[..3].contains(&method),
        _ => KNOWN.contains(&method),
    };
    let takes_type = matches!(kind, Kind::Json | Kind::Form) && !is_safe;
    let is_read = framing.body.as_ref().filter(|body| {
        // Bytes that are refused without being read, and chunks that are announced and not sent.
        let is_empty = body.is_empty() && !(is_chunked && expects);
        is_known && (takes_type || is_empty) && !(is_chunked && version == "1.0")
    });
    let is_valid = is_read.filter(|body| match kind {
        // Without parameters nothing is signed, and strangers change nothing.
        Kind::Form if body.is_empty() => is_safe || method == "POST",
        Kind::UnsignedText => true,
        _ => **body == signed,
    });
    let arrives = is_valid.map(|body| {
        let target = target.strip_prefix("/v2").unwrap_or(&target);
        (target.to_owned(), body.clone())
    });
    let bytes = [
        head(method, &target, version, "gateway.example", &lines),
        framing.bytes.clone(),
        behind(number),
    ];
    Case {
        name: format!(
            "{method} {kind:?}, {}, expects {expects}, {version}",
            framing.name
        ),
        bytes: bytes.concat(),
        method: method.to_owned(),
        arrives,
        has_behind: framing.ends_there && version == "1.1",
    }
}

fn all_cases(client: &SignedClient) -> Vec<Case> {
    let mut cases = Vec::new();
    let methods = KNOWN.iter().chain(&UNKNOWN);
    for method in methods {
        for kind in [Kind::Json, Kind::Form, Kind::Text, Kind::UnsignedText] {
            if UNKNOWN.contains(method) && kind != Kind::Json {
                continue;
            }
            for (expects, version) in [(false, "1.1"), (true, "1.1"), (false, "1.0")] {
                let form = client.call(Method::POST, "/x").param("a", "1").parts().1;
                let signed = if kind == Kind::Form {
                    form.as_bytes()
                } else {
                    JSON
                };
                for framing in framings(signed) {
                    cases.push(case(
                        cases.len(),
                        (method, kind),
                        &framing,
                        signed,
                        (expects, version),
                    ));
                }
                for framing in empty_framings() {
                    cases.push(case(
                        cases.len(),
                        (method, kind),
                        &framing,
                        b"",
                        (expects, version),
                    ));
                }
            }
        }
    }
    cases
}

async fn start() -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    backend.behave(Behaviour::responding(Delivery::Echoing));
    let stack = Stack::builder().in_front_of(&backend).gateway(SETTINGS);
    (stack.start().await, backend)
}

/// What a connection has received: the responses' status, and body if it is 200.
fn responses(method: &str, mut received: &[u8]) -> Result<Vec<(u16, Vec<u8>)>, String> {
    let mut responses = Vec::new();
    while !received.is_empty() {
        let end = received.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.ok_or_else(|| format!("no head: {}", received.escape_ascii()))?;
        let text = String::from_utf8_lossy(&received[..end]).into_owned();
        received = &received[end + 4..];
        let status = text
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok());
        let status: u16 = status.ok_or_else(|| format!("no status: {text}"))?;
        if status == 100 {
            continue;
        }
        let length = text.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.parse::<usize>().ok())?
        });
        let is_head = responses.is_empty() && method == "HEAD";
        let length = if is_head { 0 } else { length.unwrap_or(0) };
        let body = received
            .get(..length)
            .ok_or_else(|| format!("no body: {text}"))?;
        responses.push((status, body.to_vec()));
        received = &received[length..];
    }
    Ok(responses)
}

async fn converse(gateway: SocketAddr, bytes: Vec<u8>) -> Vec<u8> {
    let mut connection = RawConnection::open(gateway).await;
    connection.send(&bytes).await;
    connection.bytes_until_close().await
}

/// What a backend may see of a request's framing and signature.
fn check_arrived(request: &RecordedRequest) -> Result<(), String> {
    let length = request.body.len();
    let anticipates = matches!(&*request.method, "POST" | "PUT" | "PATCH");
    let expected = (length > 0 || anticipates).then(|| length.to_string());
    if request.value("content-length") != expected.as_deref() {
        return Err(format!("length: {request:?}"));
    }
    let hidden = [
        "transfer-encoding",
        "transfer_encoding",
        "expect",
        "trailer",
        "acme-x-sign",
        "acme-x-time",
        "acme-x-nonce",
    ];
    match hidden.iter().find(|name| !request.values(name).is_empty()) {
        Some(name) => Err(format!("{name}: {request:?}")),
        None => Ok(()),
    }
}

/// Compares what arrived, and what the clients received, with what the cases say.
fn judge(
    cases: &[Case],
    received: &BTreeMap<usize, Vec<u8>>,
    recorded: Vec<Recorded>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut arrived = BTreeMap::<(String, String), Vec<RecordedRequest>>::new();
    for one in recorded {
        match one {
            Recorded::Unreadable(bytes) => {
                wrong.push(format!("unreadable: {}", bytes.escape_ascii()))
            }
            Recorded::Request(request) => {
                wrong.extend(check_arrived(&request).err());
                let number = request.target.split(['/', '?']).nth(1).unwrap_or_default();
                let (is_behind, number) = match number.strip_prefix("behind-") {
                    Some(number) => ("behind", number),
                    None => ("main", number),
                };
                let key = (is_behind.to_owned(), number.to_owned());
                arrived.entry(key).or_default().push(request);
            }
        }
    }
    for (number, case) in cases.iter().enumerate() {
        let mut take = |what: &str| {
            arrived
                .remove(&(what.to_owned(), number.to_string()))
                .unwrap_or_default()
        };
        let (main, behind) = (take("main"), take("behind"));
        let seen: Vec<_> = main
            .iter()
            .map(|request| (request.target.clone(), request.body.clone()))
            .collect();
        let expected: Vec<_> = case.arrives.iter().cloned().collect();
        let mut problem = None;
        if seen != expected || main.iter().any(|request| request.method != case.method) {
            problem = Some(format!("saw {main:?}"));
        }
        if behind.len() > usize::from(case.has_behind) {
            problem = Some("saw what is behind it".to_owned());
        }
        let mut targets: Vec<_> = main
            .iter()
            .chain(&behind)
            .map(|request| request.target.clone().into_bytes())
            .collect();
        if case.method == "HEAD" && !main.is_empty() {
            targets[0].clear();
        }
        match responses(&case.method, &received[&number]) {
            Ok(responses) => {
                let answers: Vec<_> = responses
                    .iter()
                    .filter(|(status, _)| *status == 200)
                    .map(|(_, body)| body.clone())
                    .collect();
                if answers != targets {
                    problem = Some(format!("answers {responses:?} for {targets:?}"));
                }
            }
            Err(why) => problem = Some(why),
        }
        if let Some(problem) = problem {
            let received = received[&number].escape_ascii();
            wrong.push(format!(
                "{}: {problem}\n    {}\n    {received:.700}",
                case.name,
                case.bytes.escape_ascii()
            ));
        }
    }
    wrong.extend(
        arrived
            .into_keys()
            .map(|key| format!("of no case: {key:?}")),
    );
    wrong
}

async fn try_all(stack: &Stack, backend: &RecordingBackend, cases: &[Case]) {
    let gateway = stack.addresses().gateway;
    let mut received = BTreeMap::new();
    let numbered: Vec<_> = cases.iter().enumerate().collect();
    for some in numbered.chunks(AT_ONCE) {
        let mut running = JoinSet::new();
        for (number, case) in some {
            let (number, bytes) = (*number, case.bytes.clone());
            running.spawn(async move { (number, converse(gateway, bytes).await) });
        }
        received.extend(running.join_all().await);
    }
    let wrong = judge(cases, &received, backend.recorded());
    let count = wrong.len();
    let shown = wrong
        .iter()
        .take(40)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(wrong.is_empty(), "{count} of {}:\n{shown}", cases.len());
}

#[tokio::test]
async fn each_method_and_framing_arrives_as_it_was_signed_or_not_at_all() {
    let (stack, backend) = start().await;
    let cases = all_cases(&stack.client());
    assert!(cases.len() > 1000, "{}", cases.len());
    let arriving = cases.iter().filter(|case| case.arrives.is_some()).count();
    assert!(arriving > 100, "{arriving}");
    try_all(&stack, &backend, &cases).await;
}

/// A signed PUT with JSON, but for what `change` makes of its lines. Its target is `/v2/N`.
fn changed(
    cases: &mut Vec<Case>,
    name: &str,
    arrives: bool,
    change: impl FnOnce(&mut Vec<String>),
) {
    let number = cases.len();
    let mut lines = sign("PUT", &format!("/v2/{number}"), JSON).to_vec();
    lines.push("Content-Type: application/json".to_owned());
    lines.push(format!("Content-Length: {}", JSON.len()));
    change(&mut lines);
    let head = head(
        "PUT",
        &format!("/v2/{number}"),
        "1.1",
        "gateway.example",
        &lines,
    );
    cases.push(Case {
        name: name.to_owned(),
        bytes: [head, JSON.to_vec(), behind(number)].concat(),
        method: "PUT".to_owned(),
        arrives: arrives.then(|| (format!("/{number}"), JSON.to_vec())),
        has_behind: true,
    });
}

fn value(line: &str) -> &str {
    line.split_once(": ").map_or("", |(_, value)| value)
}

#[rustfmt::skip] // A table: one case a line.
fn look_alikes() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut case = |name: &str, arrives, change: &dyn Fn(&mut Vec<String>)| changed(&mut cases, name, arrives, change);
    case("as it is", true, &|_| {});
    let (time, sign) = (0, 1);
    // Twice, in any spelling of the name: readers could take either.
    for name in ["Acme-X-Sign", "acme-x-sign", "ACME-X-SIGN"] {
        case("a second sign", false, &|lines| lines.push(format!("{name}: {}", value(&lines[sign]))));
        case("another sign before", false, &|lines| lines.insert(0, format!("{name}: {}", "0".repeat(64))));
    }
    case("a second time", false, &|lines| lines.push(lines[time].clone()));
    case("two nonces", false, &|lines| lines.extend(["Acme-X-Nonce: a".to_owned(), "Acme-X-Nonce: a".to_owned()]));
    case("an empty second sign", false, &|lines| lines.push("Acme-X-Sign:".to_owned()));
    case("an empty second nonce", false, &|lines| lines.extend(["Acme-X-Nonce:".to_owned(), "Acme-X-Nonce:".to_owned()]));
    // An empty nonce is none.
    case("an empty nonce", true, &|lines| lines.push("Acme-X-Nonce:".to_owned()));
    case("a nonce that was not signed", false, &|lines| lines.push("Acme-X-Nonce: a".to_owned()));
    case("a list of signs", false, &|lines| lines[sign] = format!("{0}, {1}", lines[sign], value(&lines[sign])));
    // Look-alikes count as nothing, and go nowhere.
    for name in ["Acme_X_Sign", "Acme-X_Sign", "acme_x-sign"] {
        case("a look-alike beside it", true, &|lines| lines.push(format!("{name}: {}", value(&lines[sign]))));
        case("a look-alike instead", false, &|lines| lines[sign] = format!("{name}: {}", value(&lines[sign])));
    }
    case("a look-alike of time", false, &|lines| lines[time] = lines[time].replace("X-Time", "X_Time"));
    case("a look-alike of nonce", true, &|lines| lines.push("Acme_X_Nonce: a".to_owned()));
    // What `Connection` names counts as absent.
    case("the sign is hop-by-hop", false, &|lines| lines.push("Connection: Acme-X-Sign".to_owned()));
    case("the time is hop-by-hop", false, &|lines| lines.insert(0, "Connection: close, acme-x-time".to_owned()));
    case("a nonce is hop-by-hop", true, &|lines| lines.extend(["Acme-X-Nonce: a".to_owned(), "Connection: acme-x-nonce".to_owned()]));
    case("both signs are hop-by-hop", false, &|lines| lines.extend([lines[sign].clone(), "Connection: acme-x-sign".to_owned()]));
    // Framing and type stay.
    case("the type is hop-by-hop", true, &|lines| lines.push("Connection: content-type".to_owned()));
    case("the length is hop-by-hop", true, &|lines| lines.push("Connection: content-length".to_owned()));
    // Digits have no letter case, and white space around a value is none of it.
    case("upper case", true, &|lines| lines[sign] = format!("Acme-X-Sign: {}", value(&lines[sign]).to_uppercase()));
    case("white space around", true, &|lines| lines[sign] = format!("Acme-X-Sign:\t {} \t", value(&lines[sign])));
    case("white space within", false, &|lines| lines[sign].insert(40, ' '));
    case("one digit less", false, &|lines| { lines[sign].pop(); });
    case("one digit more", false, &|lines| lines[sign].push('0'));
    case("the first half", false, &|lines| { let half = lines[sign].len() - 32; lines[sign].truncate(half); });
    case("quoted", false, &|lines| lines[sign] = format!("Acme-X-Sign: \"{}\"", value(&lines[sign])));
    case("another time", false, &|lines| { let last = lines[time].pop(); lines[time].push(if last == Some('0') { '1' } else { '0' }); });
    // The text has the time as sent.
    case("zeros before the time", false, &|lines| lines[time] = lines[time].replace(": ", ": 00"));
    case("no time", false, &|lines| { lines.remove(time); });
    case("no sign", false, &|lines| { lines.remove(sign); });
    case("neither", false, &|lines| { lines.drain(..2); });
    case("an empty time", false, &|lines| lines[time] = "Acme-X-Time:".to_owned());
    case("both empty", false, &|lines| { lines[time] = "Acme-X-Time:".to_owned(); lines[sign] = "Acme-X-Sign:".to_owned(); });
    case("folded", false, &|lines| lines[sign] = lines[sign].replace(": ", ":\r\n "));
    // What only the gateway says.
    case("it says that it is signed", true, &|lines| lines.push("X-Gateway-Signed: true".to_owned()));
    case("it says so without a sign", false, &|lines| { lines.drain(..2); lines.push("X-Gateway-Signed: true".to_owned()); });
    case("two types", false, &|lines| lines.push("Content-Type: application/json".to_owned()));
    case("a form beside JSON", false, &|lines| lines.push("Content-Type: application/x-www-form-urlencoded".to_owned()));
    case("encoded JSON", false, &|lines| lines.push("Content-Encoding: gzip".to_owned()));
    case("an upgrade", false, &|lines| lines.extend(["Connection: upgrade".to_owned(), "Upgrade: websocket".to_owned()]));
    case("another version", false, &|lines| lines.push("Acme-X-Version: v1".to_owned()));
    case("the same version", true, &|lines| lines.push("Acme-X-Version: V2".to_owned()));
    case("an unknown version", false, &|lines| lines.push("Acme-X-Version: v9".to_owned()));
    case("a host of another version", true, &|lines| lines.push("X-Forwarded-Host: v1.example.com".to_owned()));
    case("another method by a header", true, &|lines| lines.push("X-HTTP-Method-Override: DELETE".to_owned()));
    cases
}

#[tokio::test]
async fn look_alikes_of_a_signature_sign_nothing() {
    let (stack, backend) = start().await;
    let cases = look_alikes();
    try_all(&stack, &backend, &cases).await;
}

/// Where a request goes: target, version, and how that was found; or the status that it gets.
type Placed = Result<(&'static str, &'static str, &'static str), u16>;

#[rustfmt::skip] // A table: one case a line.
const PLACES: &[(&str, &str, Placed)] = &[
    // The prefix is whole segments of the path as sent.
    ("/v2/x", "g", Ok(("/x", "v2", "prefix"))),
    ("/v2/", "g", Ok(("/", "v2", "prefix"))),
    ("/v2/x?", "g", Ok(("/x?", "v2", "prefix"))),
    ("/v2/?", "g", Ok(("/?", "v2", "prefix"))),
    ("/v2/v2/x", "g", Ok(("/v2/x", "v2", "prefix"))),
    ("/v2/%7Ex", "g", Ok(("/%7Ex", "v2", "prefix"))),
    ("/v2/%76%32/x", "g", Ok(("/%76%32/x", "v2", "prefix"))),
    ("/v2", "g", Ok(("/v2", "v1", "default"))),
    ("/v2?", "g", Ok(("/v2?", "v1", "default"))),
    ("/v2x", "g", Ok(("/v2x", "v1", "default"))),
    ("/V2/x", "g", Ok(("/V2/x", "v1", "default"))),
    ("/x/v2/", "g", Ok(("/x/v2/", "v1", "default"))),
    ("/%76%32/x", "g", Ok(("/%76%32/x", "v1", "default"))),
    ("/%762/x", "g", Ok(("/%762/x", "v1", "default"))),
    // Ambiguous, whichever version it is.
    ("/v2//x", "g", Err(400)),
    ("//v2/x", "g", Err(400)),
    ("/v2//", "g", Err(400)),
    ("/v2/../x", "g", Err(400)),
    ("/v2/..", "g", Err(400)),
    ("/v2/./x", "g", Err(400)),
    ("/x/../v2/x", "g", Err(400)),
    ("/./v2/x", "g", Err(400)),
    ("/v2/%2e%2e/x", "g", Err(400)),
    ("/v2/%2E./x", "g", Err(400)),
    ("/v2;x/y", "g", Err(400)),
    ("/v2;/x", "g", Err(400)),
    ("/;x/v2/y", "g", Err(400)),
    ("/v2/..;/x", "g", Err(400)),
    ("/v2%2Fx", "g", Err(400)),
    ("/v2%2f%2fx/", "g", Err(400)),
    ("/v2%5Cx", "g", Err(400)),
    ("/v2/%00", "g", Err(400)),
    ("/v2%00/x", "g", Err(400)),
    ("/v2./x", "g", Err(400)),
    ("/v2%20/x", "g", Err(400)),
    ("/v2/x.", "g", Err(400)),
    ("/v2/%c0%ae%c0%ae/x", "g", Err(400)),
    ("/v2\\x", "g", Err(400)),
    ("/v2/%zz", "g", Err(400)),
    ("/v2/%", "g", Err(400)),
    ("v2/x", "g", Err(400)),
    ("*", "g", Err(400)),
    ("http://g/v2/x", "g", Err(400)),
    // Hosts, in any letter case, with any port.
    ("/x", "v2.example.com", Ok(("/x", "v2", "host"))),
    ("/x", "V2.EXAMPLE.com", Ok(("/x", "v2", "host"))),
    ("/x", "v2.example.com:80", Ok(("/x", "v2", "host"))),
    ("/x", "v2.example.com:65535", Ok(("/x", "v2", "host"))),
    ("/x", "v2.example.com:", Ok(("/x", "v2", "host"))),
    ("/v2/x", "v2.example.com", Ok(("/x", "v2", "host"))),
    ("/x", "[2001:db8::1]", Ok(("/x", "v2", "host"))),
    ("/x", "[2001:DB8::1]:8080", Ok(("/x", "v2", "host"))),
    // Another name, which is not resolved.
    ("/x", "v2.example.com.", Ok(("/x", "v1", "default"))),
    ("/x", "x.v2.example.com", Ok(("/x", "v1", "default"))),
    ("/x", "v2.example.comx", Ok(("/x", "v1", "default"))),
    ("/x", "example.com", Ok(("/x", "v1", "default"))),
    ("/x", "[2001:db8::2]:8080", Ok(("/x", "v1", "default"))),
    ("/x", "[2001:db8:0::1]", Ok(("/x", "v1", "default"))),
    ("/x", "v2.example.com,g", Err(400)),
    ("/x", "g@v2.example.com", Err(400)),
    ("/x", "v2.example.com@g", Err(400)),
    ("/x", "v2.example.com:x", Err(400)),
    ("/x", "v2.example.com:80:80", Err(400)),
    ("/x", "v2.example.com/", Err(400)),
    ("/x", "v2.example.com g", Err(400)),
    ("/x", "2001:db8::1", Err(400)),
    ("/x", "[2001:db8::1", Err(400)),
    ("/x", "[v2.example.com]", Err(400)),
    ("/x", "", Err(400)),
];

#[tokio::test]
async fn a_path_and_a_host_name_one_version_or_none() {
    let (stack, backend) = start().await;
    let gateway = stack.addresses().gateway;
    for method in ["GET", "POST"] {
        for (target, host, placed) in PLACES {
            let (body, content_type) = match method {
                // Of both versions: a form without parameters is signed in headers, too.
                "POST" => (&b"&"[..], "application/x-www-form-urlencoded"),
                _ => (&b""[..], "text/plain"),
            };
            let mut lines = sign(method, target, body).to_vec();
            lines.push(format!("Content-Type: {content_type}"));
            lines.push(format!("Content-Length: {}", body.len()));
            lines.push("Connection: close".to_owned());
            let before = backend.requests().len();
            let bytes = [&head(method, target, "1.1", host, &lines), body].concat();
            let received = converse(gateway, bytes).await;
            let received = responses(method, &received).unwrap();
            let seen = backend.requests().split_off(before);
            let seen: Vec<_> = seen
                .iter()
                .map(|one| {
                    let name = |name| one.value(name).unwrap_or_default();
                    let version = name("x-gateway-version");
                    (
                        &*one.target,
                        version,
                        name("x-gateway-version-source"),
                        &*one.body,
                        name("host"),
                    )
                })
                .collect();
            let what = format!("{method} {target} at {host}: {received:?}");
            match placed {
                Ok((target, version, source)) => {
                    assert_eq!(seen, [(*target, *version, *source, body, *host)], "{what}");
                    assert_eq!(received, [(200, target.as_bytes().to_vec())], "{what}");
                }
                Err(status) => {
                    assert_eq!(seen, [], "{what}");
                    assert_eq!(received[0].0, *status, "{what}");
                }
            }
        }
    }
}

/// How a body is sent over HTTP/2: a `content-length`, the pieces, and what ends the stream.
struct Http2Framing {
    name: &'static str,
    length: Option<&'static str>,
    /// Frames behind the head, of which `D` is DATA with a piece, `E` DATA without one, `P` the same with padding, `T`
    /// trailers, `R` a reset. The last one ends the stream.
    frames: &'static str,
    /// Whether the pieces are the whole body, once, and framed as announced.
    is_whole: bool,
}

#[rustfmt::skip] // A table: one framing a line.
const HTTP_2: &[Http2Framing] = &[
    Http2Framing { name: "nothing", length: None, frames: "", is_whole: true },
    Http2Framing { name: "length 0 and nothing", length: Some("0"), frames: "", is_whole: true },
    Http2Framing { name: "a length and nothing", length: Some("7"), frames: "", is_whole: false },
    Http2Framing { name: "an empty frame", length: None, frames: "E", is_whole: true },
    Http2Framing { name: "length 0, an empty frame", length: Some("0"), frames: "E", is_whole: true },
    Http2Framing { name: "a frame", length: None, frames: "D", is_whole: true },
    Http2Framing { name: "a frame of its length", length: Some("7"), frames: "D", is_whole: true },
    Http2Framing { name: "empty frames around it", length: Some("7"), frames: "EEDE", is_whole: true },
    Http2Framing { name: "padding", length: Some("7"), frames: "DPP", is_whole: true },
    Http2Framing { name: "trailers", length: Some("7"), frames: "DT", is_whole: true },
    Http2Framing { name: "trailers alone", length: None, frames: "T", is_whole: true },
    Http2Framing { name: "longer than it says", length: Some("6"), frames: "D", is_whole: false },
    Http2Framing { name: "shorter than it says", length: Some("8"), frames: "D", is_whole: false },
    Http2Framing { name: "shorter, with trailers", length: Some("8"), frames: "DT", is_whole: false },
    Http2Framing { name: "more than nothing", length: Some("0"), frames: "D", is_whole: false },
    Http2Framing { name: "twice", length: None, frames: "DD", is_whole: false },
    Http2Framing { name: "twice its length", length: Some("7"), frames: "DD", is_whole: false },
    Http2Framing { name: "two lengths", length: Some("7, 7"), frames: "D", is_whole: false },
    Http2Framing { name: "no number", length: Some("+7"), frames: "D", is_whole: false },
    Http2Framing { name: "a reset in its midst", length: None, frames: "DR", is_whole: false },
];

fn http2_frames(stream: u32, frames: &str) -> Vec<u8> {
    let last = frames.chars().count();
    let frames = frames.chars().enumerate().map(|(index, kind_of)| {
        let end = if index + 1 == last { END_STREAM } else { 0 };
        match kind_of {
            'D' => frame(kind::DATA, end, stream, JSON),
            'E' => frame(kind::DATA, end, stream, b""),
            'P' => frame(kind::DATA, end | PADDED, stream, &[2, 0, 0]),
            'T' => headers(
                stream,
                END_STREAM,
                &[(b"content-length", b"9"), (b"acme-x-sign", b"1")],
            ),
            _ => frame(kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes()),
        }
    });
    frames.collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn each_method_and_framing_over_http_2_arrives_as_it_was_signed_or_not_at_all() {
    let backend = RecordingBackend::start().await;
    let listen = "[[listen]]\naddress = '$LISTEN'\nprotocols = ['http/1.1', 'h2c']\n";
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(SETTINGS)
        .gateway(listen);
    let stack = stack.start().await;
    let mut wrong = Vec::new();
    for method in KNOWN.iter().chain(&UNKNOWN[..2]) {
        for framing in HTTP_2 {
            let has_data = framing.frames.contains('D');
            let signed = if has_data { JSON } else { b"" };
            let [time, sign] = sign(method, "/v2/x?q", signed);
            let mut further: Vec<(&[u8], &[u8])> = vec![
                (b"acme-x-time", value(&time).as_bytes()),
                (b"acme-x-sign", value(&sign).as_bytes()),
                (b"content-type", b"application/json"),
            ];
            further.extend(
                framing
                    .length
                    .map(|length| (&b"content-length"[..], length.as_bytes())),
            );
            let flags = if framing.frames.is_empty() {
                END_STREAM
            } else {
                0
            };
            let before = backend.recorded().len();
            let mut client = RawHttp2::open(stack.addresses().gateway).await;
            let head = headers(1, flags, &fields(method, "/v2/x?q", &further));
            client
                .send(&[head, http2_frames(1, framing.frames), get(3, "/next")].concat())
                .await;
            // A stream that its client has reset gets no response.
            let next = match framing.frames.ends_with('R') {
                true => client.reaction(3).await,
                false => {
                    let [_, next] = client.reactions([1, 3]).await;
                    next
                }
            };
            let seen = backend.recorded().split_off(before);
            let seen: Vec<_> = seen
                .iter()
                .map(|one| match one {
                    Recorded::Request(request) => {
                        (&*request.method, &*request.target, &*request.body)
                    }
                    Recorded::Unreadable(bytes) => ("", "", &**bytes),
                })
                .filter(|(_, target, _)| *target != "/next")
                .collect();
            let is_safe = matches!(*method, "GET" | "HEAD");
            let arrives = KNOWN.contains(method) && framing.is_whole && !(is_safe && has_data);
            let expected: &[_] = if arrives {
                &[(*method, "/x?q", signed)]
            } else {
                &[]
            };
            if seen != expected || next != Reaction::Response(200, None) {
                wrong.push(format!(
                    "{method}, {}: {seen:?}, then {next:?}",
                    framing.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
