//! Malformed and hostile responses: the gateway passes on a complete response, or shows that it is incomplete.
//!
//! Each case is a backend's response to one request. It is judged by what the client receives, by the client's next
//! requests, and by the backend connections that these use. No byte of one response may become part of another; a
//! connection whose framing is in doubt is closed.

mod cases;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use end_to_end::{
    raw_connection::{RawConnection, RawResponse, request},
    scripted_backend::{Arrival, Ending, Pace, Script, ScriptedBackend, Start},
    signed_client::SignedClient,
    stack::Stack,
    waiting::until,
};
use reqwest::Method;
use tokio::{task::JoinSet, time::timeout};

use self::cases::{Case, Expected, Reuse, cases};

/// The kind of request that a case answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    /// A GET.
    Get,
    /// A GET of an HTTP/1.0 client.
    OldGet,
    /// A small form, or one of 60 KiB if the backend does not read it.
    Form,
    /// A HEAD, which has no body in its response.
    Head,
    /// A PUT whose body is in a file; larger than the buffers of sockets if the backend does not read it.
    Upload,
}

/// A gateway that reuses connections, in front of a backend that tracks them.
struct Setup {
    stack: Stack,
    backend: ScriptedBackend,
    client: SignedClient,
}

/// Minimum number of cases: the list must not shrink unnoticed.
const MIN_CASES: usize = 200;

/// Answers below this length are also written in single bytes.
const MAX_SINGLE_BYTES: usize = 400;

/// Gateways among which the single-byte cases are divided.
const SETUPS: usize = 6;

/// Timeout of a case: longer than the gateway waits for a backend.
const CASE_TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn no_response_to_a_get_is_taken_for_another() {
    let cases = cases().into_iter().filter(is_after_the_request).collect();
    judge_all(cases, RequestKind::Get, Pace::AtOnce, 1).await;
}

#[tokio::test]
async fn no_response_to_a_form_is_taken_for_another() {
    judge_all(cases(), RequestKind::Form, Pace::AtOnce, 1).await;
}

#[tokio::test]
async fn no_response_to_a_head_is_taken_for_another() {
    let cases = cases().into_iter().filter(is_after_the_request).collect();
    judge_all(cases, RequestKind::Head, Pace::AtOnce, 1).await;
}

#[tokio::test]
async fn no_response_to_an_upload_is_taken_for_another() {
    judge_all(cases(), RequestKind::Upload, Pace::AtOnce, 2).await;
}

#[tokio::test]
async fn no_response_in_single_bytes_is_taken_for_another() {
    let mut cases = cases();
    cases.retain(|case| {
        is_after_the_request(case) && !case.has_excess && case.bytes.len() < MAX_SINGLE_BYTES
    });
    judge_all(cases, RequestKind::Get, Pace::SingleBytes, SETUPS).await;
}

/// Without a length, a truncated answer looks like a complete one.
#[tokio::test]
async fn an_http_1_0_client_gets_every_response_without_chunks() {
    let mut cases = cases();
    cases.retain(|case| {
        let has_length = String::from_utf8_lossy(&case.bytes).contains("Content-Length");
        let is_detectable = match case.expected {
            Expected::Unreachable => false,
            Expected::Truncated => has_length,
            Expected::Passed { .. } => true,
        };
        is_detectable && is_after_the_request(case)
    });
    assert!(cases.len() > 40, "{}", cases.len());
    judge_all(cases, RequestKind::OldGet, Pace::AtOnce, 1).await;
}

#[test]
fn the_list_of_cases_is_long_enough() {
    let cases = cases();
    assert!(cases.len() >= MIN_CASES, "{}", cases.len());
    for (outcome, min) in [("Unreachable", 100), ("Truncated", 40), ("Passed", 50)] {
        let matching = cases
            .iter()
            .filter(|case| format!("{:?}", case.expected).starts_with(outcome));
        let count = matching.count();
        assert!(count >= min, "{outcome}: {count}");
    }
}

#[tokio::test]
async fn bytes_on_an_idle_connection_are_no_response() {
    let unsolicited = [
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL",
        "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-Evil: 1\r\n",
        "H",
        "\r\n",
    ];
    let setup = Setup::start().await;
    let mut connection = setup.stack.raw().await;
    for (number, bytes) in unsolicited.into_iter().enumerate() {
        for kind in [RequestKind::Get, RequestKind::Form] {
            let first = format!("/{number}/{kind:?}");
            setup.send_next(&mut connection, &first).await.unwrap();
            let used = setup.arrivals(&first)[0].connection;
            setup.backend.write(used, bytes.as_bytes()).await;
            // This response shows that the gateway's only thread has run since the write.
            let rejected = setup
                .client
                .get("/x")
                .param("a", "1")
                .unsigned()
                .send()
                .await;
            rejected.problem(403, "time_missing");
            let second = format!("{first}/next");
            connection.send(&setup.request(kind, &second, false)).await;
            let response = connection.response().await;
            let is_right = response
                .as_ref()
                .is_some_and(|response| is_echo(response, &second));
            assert!(is_right, "{kind:?} after {bytes:?}: {response:?}");
            assert_ne!(setup.arrivals(&second)[0].connection, used, "{bytes:?}");
            setup.wait_for_close(used).await;
        }
    }
}

/// A response that names a request, with the name as its body.
fn response_for(id: &str) -> Script {
    let length = id.len();
    Script {
        bytes: format!(
            "HTTP/1.1 200 OK\r\nX-Request-ID: {id}\r\nContent-Length: {length}\r\n\r\n{id}"
        )
        .into_bytes(),
        pace: Pace::AtOnce,
        start: Start::AfterRequest,
        ending: Ending::Open,
    }
}

/// Sends a request by this id; the gateway trusts it.
async fn ask(connection: &mut RawConnection, method: &str, target: &str, id: &str) -> RawResponse {
    let id = format!("X-Request-Id: {id}");
    connection.send(&request(method, target, &[&id], b"")).await;
    connection.response().await.unwrap()
}

#[tokio::test]
async fn a_response_to_another_request_is_not_passed_on_if_the_backend_echoes_ids() {
    let backend = ScriptedBackend::start().await;
    let stack = Stack::builder().in_front_of_address(backend.address());
    let stack = stack.gateway("threads = 1\ntrusted_proxies = [\"127.0.0.1\"]");
    let stack = stack.start().await;
    let mut connection = stack.raw().await;
    for method in ["GET", "POST"] {
        // The backend answers the first request twice, so each later answer is that of the request before.
        for (target, answered) in [("/one", "one"), ("/two", "one"), ("/three", "three")] {
            backend.script(target, response_for(answered));
        }
        let before = backend.arrivals().len();
        assert_eq!(
            ask(&mut connection, method, "/one", "one").await.body,
            b"one"
        );
        let shifted = ask(&mut connection, method, "/two", "two").await;
        assert_eq!(shifted.status, 502, "{}", shifted.head);
        assert_eq!(shifted.code().as_deref(), Some("backend_unreachable"));
        assert_eq!(
            ask(&mut connection, method, "/three", "three").await.body,
            b"three"
        );
        let used: Vec<_> = backend.arrivals()[before..]
            .iter()
            .map(|one| one.connection)
            .collect();
        assert_eq!(used.len(), 3, "none is retried");
        assert_eq!(used[0], used[1]);
        assert_ne!(used[1], used[2]);
        until("the connection to be closed", || async {
            (!backend.is_open(used[0])).then_some(())
        })
        .await;
        // Answers without the header pass, on the same connection.
        assert_eq!(
            ask(&mut connection, method, "/plain", "four").await.body,
            b"/plain"
        );
    }
}

#[tokio::test]
async fn a_backend_with_request_ids_of_its_own_is_not_checked() {
    let backend = ScriptedBackend::start().await;
    let stack = Stack::builder().in_front_of_address(backend.address());
    let stack = stack.gateway("threads = 1").start().await;
    let mut connection = stack.raw().await;
    for number in 0..5 {
        backend.script("/x", response_for(&format!("own-{number}")));
        connection.send(&request("GET", "/x", &[], b"")).await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.status, 200);
        assert_ne!(
            response.header("x-request-id"),
            Some(&*format!("own-{number}"))
        );
    }
    assert!(backend.arrivals().iter().all(|one| one.connection == 0));
}

fn is_after_the_request(case: &Case) -> bool {
    case.start == Start::AfterRequest
}

/// Judges every case, one after another on each of `setups` gateways, and reports all failures together.
async fn judge_all(cases: Vec<Case>, kind: RequestKind, pace: Pace, setups: usize) {
    assert!(!cases.is_empty());
    let count = cases.len();
    let mut judging = JoinSet::new();
    for cases in cases.chunks(count.div_ceil(setups)) {
        let cases = cases.to_vec();
        judging.spawn(async move {
            let setup = Arc::new(Setup::start().await);
            let mut wrong = Vec::new();
            for (number, case) in cases.into_iter().enumerate() {
                let (setup, shown) = (Arc::clone(&setup), case.to_string());
                // A panic in one case, for example for a response that is not HTTP, must not end the others.
                let judging = tokio::spawn(async move {
                    let judging = setup.judge(number, &case, kind, pace);
                    let is_late = |_| "neither a response nor a close in time".to_owned();
                    timeout(CASE_TIMEOUT, judging)
                        .await
                        .map_err(is_late)
                        .flatten()
                });
                let judged = judging.await;
                match judged.map_err(|panic| panic.to_string()).flatten() {
                    Ok(()) => {}
                    Err(failure) => wrong.push(format!("{shown}\n    {failure}")),
                }
            }
            wrong
        });
    }
    let wrong = judging.join_all().await.concat();
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

impl Setup {
    async fn start() -> Self {
        let backend = ScriptedBackend::start().await;
        // One thread, so that there is one connection pool; less than the client waits, so that each case is answered.
        let stack = Stack::builder()
            .in_front_of_address(backend.address())
            .gateway("threads = 1\n[timeouts]\nresponse_seconds = 20")
            .gateway(
                "[sign]\ncarrier = 'both'\n[versions.v1]\nmethods = ['GET', 'HEAD', 'POST', 'PUT']",
            )
            .gateway("versions.v1 = { bodies = 'any', max_body = 8388608 }")
            .start()
            .await;
        let client = stack.client();
        Self {
            stack,
            backend,
            client,
        }
    }

    /// Sends a case's request and later ones; returns what is wrong with the outcome.
    async fn judge(
        &self,
        number: usize,
        case: &Case,
        kind: RequestKind,
        pace: Pace,
    ) -> Result<(), String> {
        let target = format!("/{number}");
        let script = Script {
            bytes: case.bytes.clone(),
            pace,
            start: case.start,
            ending: case.ending,
        };
        self.backend.script(&target, script);
        let mut connection = self.stack.raw().await;
        connection
            .send(&self.request(kind, &target, case.start == Start::AfterHead))
            .await;
        let response = match kind {
            RequestKind::Head => connection.response_to_head().await,
            _ => connection.response().await,
        };
        judge_response(case, kind, response.as_ref(), connection.unread())?;
        if response.is_none() {
            connection = self.stack.raw().await;
        }
        if kind == RequestKind::OldGet && response.is_some() && !connection.is_closed().await {
            return Err("an HTTP/1.0 client's connection stays open".to_owned());
        }

        let nexts: Vec<_> = (0..3).map(|next| format!("{target}/next-{next}")).collect();
        for next in &nexts {
            self.send_next(&mut connection, next).await?;
        }
        connection.finish().await;
        let stray = connection.responses_until_close().await;
        if !stray.is_empty() || !connection.unread().is_empty() {
            return Err(format!("behind the last response: {stray:?}"));
        }
        self.judge_connections(case, kind, &target, &nexts).await
    }

    /// Sends another request, on a new connection if the old one is closed, and expects its own response.
    async fn send_next(&self, connection: &mut RawConnection, target: &str) -> Result<(), String> {
        let bytes = self.request(RequestKind::Get, target, false);
        connection.send(&bytes).await;
        let mut response = connection.response().await;
        if response.is_none() && connection.unread().is_empty() {
            *connection = self.stack.raw().await;
            connection.send(&bytes).await;
            response = connection.response().await;
        }
        match response {
            Some(response) if is_echo(&response, target) => Ok(()),
            other => Err(format!("{target} is answered by {other:?}")),
        }
    }

    /// Checks how often the case's request was sent, and whether its connection was reused.
    async fn judge_connections(
        &self,
        case: &Case,
        kind: RequestKind,
        target: &str,
        nexts: &[String],
    ) -> Result<(), String> {
        let sent = self.arrivals(target);
        // RFC 9110 section 9.2.2: a GET may be retried if no byte of a response came.
        let max_sent = if case.bytes.is_empty() && kind != RequestKind::Form {
            2
        } else {
            1
        };
        if !(1..=max_sent).contains(&sent.len()) {
            return Err(format!("sent {} times", sent.len()));
        }
        let used: BTreeSet<_> = sent.iter().map(|arrival| arrival.connection).collect();
        // A HEAD has no body whose framing could be in doubt.
        if kind == RequestKind::Head {
            return Ok(());
        }
        let is_reused = |next: &String| {
            let arrivals = self.arrivals(next);
            arrivals
                .iter()
                .any(|arrival| used.contains(&arrival.connection))
        };
        match case.reuse {
            Reuse::Optional => {}
            Reuse::Required if is_reused(&nexts[0]) => {}
            Reuse::Required => return Err("the backend connection is not reused".to_owned()),
            Reuse::Never if nexts.iter().any(is_reused) => {
                return Err("the backend connection is reused".to_owned());
            }
            // The backend does not notice the close of a connection from which it does not read.
            Reuse::Never if case.start == Start::AfterHead => {}
            Reuse::Never => {
                for connection in used {
                    self.wait_for_close(connection).await;
                }
            }
        }
        Ok(())
    }

    /// Waits until the gateway has closed a backend connection.
    async fn wait_for_close(&self, connection: usize) {
        until("the gateway to close the backend connection", || async {
            (!self.backend.is_open(connection)).then_some(())
        })
        .await;
    }

    fn arrivals(&self, target: &str) -> Vec<Arrival> {
        let mut arrivals = self.backend.arrivals();
        arrivals.retain(|arrival| arrival.target == target);
        arrivals
    }

    fn request(&self, kind: RequestKind, target: &str, is_large: bool) -> Vec<u8> {
        match kind {
            RequestKind::Get => request("GET", target, &[], b""),
            RequestKind::OldGet => {
                format!("GET {target} HTTP/1.0\r\nHost: gateway.example\r\n\r\n").into_bytes()
            }
            RequestKind::Form => {
                let value = "y".repeat(if is_large { 60 * 1024 } else { 1 });
                self.client.post(target).param("a", &value).bytes(&[])
            }
            RequestKind::Head => request("HEAD", target, &[], b""),
            RequestKind::Upload => {
                let body = vec![b'y'; if is_large { 8 * 1024 * 1024 } else { 70_000 }];
                let call = self.client.call(Method::PUT, target);
                let (target, headers) = call.signed_head(&body);
                let mut lines = vec![format!("Content-Length: {}", body.len())];
                lines.extend(
                    headers
                        .iter()
                        .map(|(name, value)| format!("{name}: {value}")),
                );
                let lines: Vec<_> = lines.iter().map(String::as_str).collect();
                request("PUT", &target, &lines, &body)
            }
        }
    }
}

/// What is wrong with the response to a case's request; `rest` has the bytes of a truncated one.
fn judge_response(
    case: &Case,
    kind: RequestKind,
    response: Option<&RawResponse>,
    rest: &[u8],
) -> Result<(), String> {
    let is_unreachable = response.is_some_and(|response| {
        response.status == 502 && response.code().as_deref() == Some("backend_unreachable")
    });
    let is_right = match (&case.expected, response) {
        // The head alone decides, and the problem of a 502 is not sent.
        (expected, Some(response)) if kind == RequestKind::Head => match expected {
            Expected::Unreachable => response.status == 502,
            Expected::Truncated => matches!(response.status, 200 | 502),
            Expected::Passed { status, .. } => response.status == *status,
        },
        (Expected::Unreachable, _) => is_unreachable,
        (Expected::Truncated, Some(_)) => is_unreachable,
        // It began, and the connection was closed before its end.
        (Expected::Truncated, None) => rest.starts_with(b"HTTP/1.1 200 "),
        (Expected::Passed { .. }, None) => false,
        (
            Expected::Passed {
                status,
                body,
                has,
                lacks,
            },
            Some(response),
        ) => {
            response.status == *status
                && response.body == *body
                && is_framed_for(kind, response)
                && has
                    .iter()
                    .all(|(name, value)| response.header(name) == Some(value))
                && lacks.iter().all(|name| response.header(name).is_none())
        }
    };
    if is_right {
        return Ok(());
    }
    let rest = &rest[..rest.len().min(300)];
    let got = response.map(|response| {
        let shown: String = response.head.chars().take(300).collect();
        let body = &response.body[..response.body.len().min(300)];
        format!("{shown:?} {}", body.escape_ascii())
    });
    Err(format!(
        "the client gets {got:?}, then {:?}",
        rest.escape_ascii().to_string()
    ))
}

/// Whether the framing is unambiguous, and supported by the client.
fn is_framed_for(kind: RequestKind, response: &RawResponse) -> bool {
    let lines = response
        .head
        .lines()
        .filter_map(|line| line.split_once(':'));
    let framing: Vec<_> = lines
        .filter(|(name, _)| {
            name.eq_ignore_ascii_case("content-length")
                || name.eq_ignore_ascii_case("transfer-encoding")
        })
        .collect();
    let encoding = response.header("transfer-encoding");
    let is_known = match kind {
        RequestKind::OldGet => encoding.is_none(),
        RequestKind::Get | RequestKind::Form | RequestKind::Head | RequestKind::Upload => {
            encoding.is_none_or(|encoding| encoding.eq_ignore_ascii_case("chunked"))
        }
    };
    framing.len() <= 1 && is_known
}

fn is_echo(response: &RawResponse, target: &str) -> bool {
    response.status == 200 && response.body == target.as_bytes()
}
