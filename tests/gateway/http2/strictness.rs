//! Strictness once more, through HTTP/2.
//!
//! | group | over HTTP/2 |
//! | --- | --- |
//! | `desync` cases with one head | sent as fields, names in lower case, bytes otherwise as they are; the rest is the body |
//! | `desync` cases of chunks, of HTTP/1.0, and of request lines in another form | no equivalent: frames and pseudo-header fields take their place, see `cases` |
//! | requests behind one another | no equivalent: what follows a head is its stream's body, which is what these cases try |
//! | timeouts of bodies, faults of backends, content types, `Expect` | below |
//! | timeouts of heads, idle and silent connections, floods | `floods`: they concern the connection, not a head |
//! | `Connection`, `Upgrade`, `TE`, trailers, heads beyond a limit | `cases` |

use std::time::Duration;

use end_to_end::{
    http2_client::{Http2Client, Http2Response},
    port::free_address,
    raw_http2::{END_STREAM, RawHttp2, Reaction, frame, headers, kind},
    recording_backend::{Behaviour, Delivery, Recorded},
    stack::Stack,
    waiting::until,
};

use super::{LISTEN, client, request, stack};
use crate::{
    desync::cases::{Case, Material, cases},
    strictness::PATIENT,
};

const FORM: &str = "application/x-www-form-urlencoded";

/// A case, as fields and a body.
struct Stream {
    method: Vec<u8>,
    target: Vec<u8>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
}

impl Stream {
    /// `None` if the case has no equivalent.
    fn read(case: &Case) -> Option<Self> {
        let length = case.bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let (head, body) = (&case.bytes[..length], &case.bytes[length + 4..]);
        let mut lines = split_lines(head).into_iter();
        let line = lines.next()?.strip_suffix(b" HTTP/1.1")?;
        let (method, target) = split_at(line, b' ')?;
        let mut fields = Vec::new();
        let mut has_authority = false;
        for line in lines {
            let (name, value) = split_at(line, b':')?;
            let mut name = name.to_ascii_lowercase();
            let value = value.strip_prefix(b" ").unwrap_or(value);
            if name == b"host" && !has_authority {
                has_authority = true;
                name = b":authority".to_vec();
            }
            fields.push((name, value.to_vec()));
        }
        // Pseudo-header fields come first.
        fields.sort_by_key(|(name, _)| name != b":authority");
        Some(Self {
            method: method.to_vec(),
            target: target.to_vec(),
            fields,
            body: body.to_vec(),
        })
    }

    fn frames(&self) -> Vec<u8> {
        let mut fields: Vec<(&[u8], &[u8])> = vec![
            (b":method", &self.method),
            (b":scheme", b"http"),
            (b":path", &self.target),
        ];
        let further = self.fields.iter();
        fields.extend(further.map(|(name, value)| (&**name, &**value)));
        if self.body.is_empty() {
            return headers(1, END_STREAM, &fields);
        }
        let body = frame(kind::DATA, END_STREAM, 1, &self.body);
        [headers(1, 0, &fields), body].concat()
    }

    /// Whether it has a field of HTTP/1.1 connections, which no request of HTTP/2 may have.
    fn is_of_http_1(&self) -> bool {
        let of_connection: [&[u8]; 3] = [b"connection", b"transfer-encoding", b"upgrade"];
        let mut names = self.fields.iter().map(|(name, _)| &**name);
        names.any(|name| of_connection.contains(&name))
    }

    /// Whether this was recorded.
    fn is_same(&self, recorded: &Recorded) -> bool {
        match recorded {
            Recorded::Request(request) => {
                request.method.as_bytes() == self.method
                    && request.target.as_bytes() == self.target
                    && request.body == self.body
            }
            Recorded::Unreadable(_) => false,
        }
    }
}

/// What must happen to a case.
enum Outcome {
    /// It arrives as sent.
    Passes,
    /// Nothing arrives.
    Fails,
}

fn outcome(case: &Case, stream: &Stream) -> Outcome {
    // CONTRACT 2: `:authority` and `host` may be the same.
    if case.name == "two Hosts" {
        return Outcome::Passes;
    }
    match &*case.contains {
        [(method, _, body)]
            if !stream.is_of_http_1()
                && method.as_bytes() == stream.method
                && *body == stream.body =>
        {
            Outcome::Passes
        }
        // Requests behind one another are a body here, which no GET may have.
        _ => Outcome::Fails,
    }
}

fn split_lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        lines.push(&rest[..end]);
        rest = &rest[end + 2..];
    }
    lines.push(rest);
    lines
}

fn split_at(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == separator)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

#[tokio::test]
async fn a_backend_sees_no_request_that_was_not_sent() {
    tokio::join!(try_cases("canonical"), try_cases("as_sent"));
}

async fn try_cases(paths: &str) {
    let window = "[sign]\nwindow_seconds = 300\n";
    let (stack, backend) = stack(&format!("{window}[versions.v1]\npaths = '{paths}'\n")).await;
    let (_, form) = stack.client().post("/x").param("a", "1").parts();
    let material = Material {
        form: form.into_bytes(),
    };
    let (mut sent, mut passed, mut seen) = (0, 0, 0);
    let mut wrong = Vec::new();
    for (number, case) in cases(&material).iter().enumerate() {
        let Some(stream) = Stream::read(case) else {
            continue;
        };
        sent += 1;
        let mut connection = RawHttp2::open(stack.addresses().gateway).await;
        connection.send(&stream.frames()).await;
        let reaction = connection.reaction(1).await;
        // Once this request has arrived, no byte of the case is in flight.
        let fence = format!("/fence-{number}");
        stack.client().get(&fence).send().await.ok();
        let recorded = backend.recorded();
        let is_fence =
            |one: &&Recorded| matches!(one, Recorded::Request(one) if one.target == fence);
        let arrived: Vec<_> = recorded[seen..]
            .iter()
            .filter(|one| !is_fence(one))
            .collect();
        seen = recorded.len();
        let ambiguous = Reaction::Response(400, Some("target_ambiguous".to_owned()));
        let is_right = match outcome(case, &stream) {
            Outcome::Passes if paths == "canonical" && reaction == ambiguous => arrived.is_empty(),
            Outcome::Passes => {
                reaction == Reaction::Response(200, None)
                    && arrived.len() == 1
                    && stream.is_same(arrived[0])
            }
            Outcome::Fails => arrived.is_empty() && reaction != Reaction::Response(200, None),
        };
        passed += arrived.len();
        if !is_right {
            wrong.push(format!("{case}: {reaction:?}, {arrived:#?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{paths}: {} of {sent}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // The translation has lost none of the cases.
    assert!(sent >= 110 && passed >= 5, "{passed} of {sent} passed");
}

fn found(response: &Http2Response) -> (u16, Option<String>) {
    (response.status, response.code())
}

fn problem(status: u16, code: &str) -> (u16, Option<String>) {
    (status, Some(code.to_owned()))
}

#[tokio::test]
async fn a_body_that_stops_is_ended_by_its_timeout() {
    let (stack, backend) = stack("[timeouts]\nbody_seconds = 1").await;
    let mut connection = RawHttp2::open(stack.addresses().gateway).await;
    let fields = end_to_end::raw_http2::fields("POST", "/x", &[(b"content-type", FORM.as_bytes())]);
    let begun = [headers(1, 0, &fields), frame(kind::DATA, 0, 1, b"a=1")];
    connection.send(&begun.concat()).await;
    let timed_out = Reaction::Response(408, Some("request_timeout".to_owned()));
    assert_eq!(connection.reaction(1).await, timed_out);
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn the_usual_spellings_of_the_content_type_are_accepted() {
    let (stack, backend) = stack("").await;
    let client = client(&stack).await;
    let (target, form) = stack.client().post("/x").param("a", "1").parts();
    for (media, is_accepted) in [
        (FORM, true),
        ("Application/X-WWW-Form-URLEncoded", true),
        ("application/x-www-form-urlencoded;charset=utf-8", true),
        (
            "application/x-www-form-urlencoded ; charset=\"utf-8\"",
            true,
        ),
        ("text/plain", false),
        ("application/x-www-form-urlencoded, text/plain", false),
    ] {
        let post = request("POST", &target).header("content-type", media);
        let response = client.send_request(post.body(()).unwrap(), form.clone().into_bytes());
        let expected = if is_accepted { 200 } else { 415 };
        assert_eq!(response.await.unwrap().status, expected, "{media}");
    }
    let bodies: Vec<_> = backend.requests().into_iter().map(|one| one.body).collect();
    assert_eq!(bodies, vec![form.into_bytes(); 4]);
}

#[tokio::test]
async fn faults_of_backends_have_their_usual_responses() {
    let (stack, backend) = stack("[versions.v2]\nresponse_seconds = 1").await;
    let client = client(&stack).await;
    let signer = stack.client();
    let (get, post) = (signer.get("/x"), signer.post("/x").param("a", "1"));
    backend.behave(Behaviour::responding(Delivery::Never));
    for call in [&get, &post] {
        let response = client.send(&call.clone().version("v2")).await.unwrap();
        assert_eq!(found(&response), problem(504, "backend_timeout"));
    }
    let verbatim = Behaviour::verbatim;
    for behaviour in [
        Behaviour::responding(Delivery::HangUp),
        verbatim("hello\r\n\r\n"),
        verbatim("HTTP/1.1 abc\r\n\r\n"),
        verbatim("HTTP/1.1 200 OK\r\nX Y: z\r\nContent-Length: 0\r\n\r\n"),
        verbatim(
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
    ] {
        backend.behave(behaviour);
        for call in [&get, &post] {
            let response = client.send(call).await.unwrap();
            assert_eq!(found(&response), problem(502, "backend_unreachable"));
        }
    }
    // The connection goes on.
    backend.behave(Behaviour::default());
    assert_eq!(client.send(&get).await.unwrap().status, 200);
    // A POST was not sent again, although no byte of a response had arrived.
    let posts = backend
        .requests()
        .into_iter()
        .filter(|one| one.method == "POST");
    assert_eq!(posts.count(), 6);
}

#[tokio::test]
async fn a_backend_that_is_down_is_unreachable() {
    let unused = free_address();
    let stack = Stack::builder().in_front_of_address(unused).gateway(LISTEN);
    let stack = stack.start().await;
    let client = Http2Client::open(stack.addresses().gateway).await;
    let signer = stack.client();
    for call in [signer.get("/x"), signer.post("/x").param("a", "1")] {
        let response = client.send(&call).await.unwrap();
        assert_eq!(found(&response), problem(502, "backend_unreachable"));
    }
}

#[tokio::test]
async fn unfinished_bodies_do_not_block_other_clients() {
    let (stack, backend) = stack("").await;
    let fields =
        end_to_end::raw_http2::fields("POST", "/left", &[(b"content-type", FORM.as_bytes())]);
    let mut unfinished = Vec::new();
    for _ in 0..30 {
        let mut connection = RawHttp2::open(stack.addresses().gateway).await;
        let streams = (0..10).map(|number| headers(2 * number + 1, 0, &fields));
        let ping = frame(kind::PING, 0, 0, &[0; 8]);
        connection
            .send(&streams.chain([ping]).collect::<Vec<_>>().concat())
            .await;
        // The streams have arrived once the ping is answered.
        while connection.frame().await.expect("it is open").kind != kind::PING {}
        unfinished.push(connection);
    }
    let client = client(&stack).await;
    let signer = stack.client();
    let call = signer.get("/x").param("a", "1");
    assert_eq!(client.send(&call).await.unwrap().status, 200);
    drop(unfinished);
    // Clients that left in the middle of their forms are logged.
    until("the access lines", || async {
        let log = stack.log(end_to_end::program::Program::Gateway);
        (log.matches("http.path=/left").count() == 300).then_some(())
    })
    .await;
    assert_eq!(backend.requests().len(), 1);
}

#[tokio::test]
async fn an_idle_connection_closed_by_the_backend_causes_no_failure() {
    let (stack, backend) = stack("").await;
    let client = client(&stack).await;
    let signer = stack.client();
    for delivery in [Delivery::ThenClose, Delivery::Promptly].repeat(5) {
        backend.behave(Behaviour::responding(delivery));
        for call in [signer.get("/x"), signer.post("/x").param("a", "1")] {
            assert_eq!(client.send(&call).await.unwrap().status, 200);
        }
    }
}

#[tokio::test]
async fn a_slow_body_within_the_timeout_passes() {
    let (stack, backend) = stack(PATIENT).await;
    let (target, form) = stack.client().post("/x").param("a", "1").parts();
    let fields =
        end_to_end::raw_http2::fields("POST", &target, &[(b"content-type", FORM.as_bytes())]);
    let mut connection = RawHttp2::open(stack.addresses().gateway).await;
    connection.send(&headers(1, 0, &fields)).await;
    for byte in form.as_bytes() {
        connection.send(&frame(kind::DATA, 0, 1, &[*byte])).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    connection
        .send(&frame(kind::DATA, END_STREAM, 1, b""))
        .await;
    assert_eq!(connection.reaction(1).await, Reaction::Response(200, None));
    assert_eq!(backend.requests()[0].body, form.as_bytes());
}
