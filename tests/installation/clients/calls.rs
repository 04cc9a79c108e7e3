//! What belongs to a call, and what a call becomes: responses, errors, pauses, deadlines, streams.

use std::time::{Duration, Instant};

use end_to_end::{
    clock::{http_date, now_ms},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    signer::sha256_hex,
    stack::APP_KEY,
};
use serde_json::{Value, json};

use super::{Ability, can, driver::Driver};

/// For a call that is over at once, on a busy machine. A call that waits regardless takes 20 s at least.
const SLACK: Duration = Duration::from_secs(15);

/// A server without a gateway, and a client of it.
struct Scene {
    driver: Driver,
    server: RecordingBackend,
}

impl Scene {
    async fn start(language: &'static str) -> Self {
        let (mut driver, server) = (Driver::start(language), RecordingBackend::start().await);
        driver.client_of(&server, json!({})).await;
        Self { driver, server }
    }

    /// Answers from now on with this status, headers and body.
    fn behave(&self, head: &str, body: &str) {
        self.server.behave(Behaviour {
            head: format!("HTTP/1.1 {head}\r\n"),
            body: body.as_bytes().to_vec(),
            ..Behaviour::default()
        });
    }

    async fn call(&mut self, method: &str, further: Value) -> Value {
        self.driver.ask(call(method, further)).await
    }
}

fn call(method: &str, further: Value) -> Value {
    let mut call = json!({ "method": method, "path": "/x" });
    let members = further.as_object().unwrap().clone();
    call.as_object_mut().unwrap().extend(members);
    json!({ "call": call })
}

pub(super) async fn keeps_to_its_arguments(language: &'static str) {
    let mut scene = Scene::start(language).await;
    sends_what_belongs_to_it(&mut scene).await;
    hands_on_errors(&mut scene).await;
    reads_to_the_end(&mut scene).await;
    streams(&mut scene).await;
}

pub(super) async fn keeps_to_its_time(language: &'static str) {
    let mut scene = Scene::start(language).await;
    repeats_what_may_be_repeated(&mut scene).await;
    waits_as_it_is_told(&mut scene).await;
    meets_its_deadline(&mut scene).await;
    is_cancelled(&mut scene).await;
}

async fn sends_what_belongs_to_it(scene: &mut Scene) {
    let language = scene.driver.language;
    let credential = "c".repeat(43);
    let own = json!({
        "credential": credential, "version": "v7", "language": "ja", "idempotency_key": "k 1",
        "headers": { "X-Trace": "t/1 a" }, "pairs": [["a", "1"]]
    });
    let called = scene.call("POST", own).await;
    assert_eq!(called["status"], 200, "{language}: {called}");
    assert_eq!(
        called["headers"]["content-type"], "application/json",
        "{language}: {called}"
    );
    scene.call("POST", json!({})).await;
    let requests = scene.server.requests();
    for (name, value) in [
        ("acme-x-app", "demo"),
        ("acme-x-authorization", &*credential),
        ("acme-x-version", "v7"),
        ("acme-x-language", "ja"),
        ("idempotency-key", "k 1"),
        ("x-trace", "t/1 a"),
    ] {
        assert_eq!(requests[0].value(name), Some(value), "{language}: {name}");
        let is_client = name == "acme-x-app";
        assert_eq!(
            requests[1].value(name).is_some(),
            is_client,
            "{language}: {name}"
        );
    }
    let agent = requests[0].value("user-agent").unwrap_or_default();
    assert!(
        agent.starts_with("signpost-") && agent.ends_with("/0.9.0"),
        "{language}: {agent}"
    );
}

/// An API's own error has its status, headers and body; no error has a secret.
async fn hands_on_errors(scene: &mut Scene) {
    let language = scene.driver.language;
    let credential = "c".repeat(43);
    let own = || json!({ "credential": credential, "repeatable": false, "pairs": [["a", "1"]] });
    scene.behave(
        "500 Internal Server Error\r\nContent-Type: application/json\r\nX-Reason: storm",
        r#"{"error":"boom"}"#,
    );
    let failed = scene.call("POST", own()).await;
    let problem = &failed["problem"];
    assert_eq!(
        (
            &problem["status"],
            &problem["body"],
            &problem["headers"]["x-reason"]
        ),
        (&json!(500), &json!(r#"{"error":"boom"}"#), &json!("storm")),
        "{language}: {failed}"
    );
    let document = r#"{"code":"odd","title":"T","hint":"H","request_id":"r1"}"#;
    scene.behave(
        "404 Not Found\r\nContent-Type: Application/Problem+JSON; charset=utf-8",
        document,
    );
    let odd = scene.call("POST", own()).await;
    let problem = &odd["problem"];
    assert_eq!(
        (&problem["code"], &problem["message"], &problem["body"]),
        (
            &json!("odd"),
            &json!("404 odd: T H (request r1)"),
            &json!(document)
        ),
        "{language}: {odd}"
    );
    let mut texts = vec![failed.to_string(), odd.to_string()];
    for delivery in [Delivery::HangUp, Delivery::BreakOff] {
        scene.server.behave(Behaviour::responding(delivery));
        let lost = scene.call("POST", own()).await;
        assert!(lost["transport"].is_string(), "{language}: {lost}");
        texts.push(lost.to_string());
    }
    for text in texts {
        let has = |secret: &&str| text.contains(*secret);
        let secrets = [APP_KEY, &*credential, "sign="];
        assert!(!secrets.iter().any(has), "{language}: {text}");
    }
}

async fn reads_to_the_end(scene: &mut Scene) {
    let language = scene.driver.language;
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n";
    let mut responses = vec![whole.to_owned(), chunks.to_owned()];
    if can(language, Ability::Interim) {
        responses.push(format!("{early}{whole}"));
    }
    for response in responses {
        scene.server.behave(Behaviour::verbatim(&response));
        let called = scene.call("GET", json!({})).await;
        assert_eq!(called["body"], "ok", "{language}: {response}: {called}");
    }
}

async fn streams(scene: &mut Scene) {
    let language = scene.driver.language;
    let body = "0123456789abcdef".repeat(100_000);
    scene.behave("200 OK\r\nContent-Type: text/plain", &body);
    let download = json!({ "download": { "path": "/x", "limit": body.len() } });
    let read = scene.driver.ask(download).await;
    assert_eq!(
        (&read["bytes"], &read["sha256"]),
        (&json!(body.len()), &json!(sha256_hex(body.as_bytes()))),
        "{language}: {read}"
    );
    let download = json!({ "download": { "path": "/x", "limit": body.len() - 1 } });
    let refused = scene.driver.ask(download).await;
    let is_refused = refused["transport"].is_string() || refused["argument"].is_string();
    assert!(is_refused, "{language}: {refused}");
    let feed = "event: a\r\ndata: 1\r\n\r\n: a comment\n\nid: 7\ndata:x\ndata: y\n\ndata: cut off";
    scene.behave("200 OK\r\nContent-Type: text/event-stream", feed);
    let events = scene
        .driver
        .ask(json!({ "events_stream": { "path": "/x" } }))
        .await;
    if can(language, Ability::Events) {
        assert_eq!(
            events["events"],
            json!([{ "event": "a", "data": "1", "id": "" }, { "event": "message", "data": "x\ny", "id": "7" }]),
            "{language}: {events}"
        );
    }
}

/// A call that may have been executed is repeated if that does no harm. CONTRACT 7.
async fn repeats_what_may_be_repeated(scene: &mut Scene) {
    let language = scene.driver.language;
    let further = json!({ "retries": 1, "profile": { "carrier": "headers" } });
    scene.driver.client_of(&scene.server, further).await;
    scene.behave(
        "502 Bad Gateway\r\nContent-Type: application/problem+json",
        r#"{"code":"backend_unreachable","title":"T"}"#,
    );
    for (method, own, requests) in [
        ("PUT", json!({ "json": 1 }), 2),
        ("DELETE", json!({}), 2),
        ("POST", json!({ "json": 1 }), 1),
        ("PATCH", json!({ "json": 1 }), 1),
        ("POST", json!({ "idempotency_key": "k" }), 2),
    ] {
        let before = scene.server.requests().len();
        let failed = scene.call(method, own).await;
        assert_eq!(
            failed["problem"]["status"], 502,
            "{language}: {method}: {failed}"
        );
        let sent = scene.server.requests().len() - before;
        assert_eq!(sent, requests, "{language}: {method}");
    }
    scene.driver.client_of(&scene.server, json!({})).await;
}

/// `Retry-After` in seconds, and as an HTTP date. CONTRACT 7.
async fn waits_as_it_is_told(scene: &mut Scene) {
    let language = scene.driver.language;
    for (status, is_date) in [
        ("429 Too Many Requests", false),
        ("503 Service Unavailable", false),
        ("503 Service Unavailable", true),
    ] {
        let (before, start) = (scene.server.requests().len(), Instant::now());
        let value = match is_date {
            true => http_date(now_ms() / 1000 + 3),
            false => "1".to_owned(),
        };
        scene.behave("200 OK\r\nContent-Type: text/plain", "");
        scene.server.behave_once(Behaviour {
            head: format!("HTTP/1.1 {status}\r\nRetry-After: {value}\r\n"),
            ..Behaviour::default()
        });
        let called = scene.call("GET", json!({})).await;
        assert_eq!(called["status"], 200, "{language}: {value}: {called}");
        // A date has no fractions of a second.
        let least = Duration::from_millis(if is_date { 1_900 } else { 950 });
        assert!(start.elapsed() >= least, "{language}: {value}");
        assert_eq!(
            scene.server.requests().len(),
            before + 2,
            "{language}: {value}"
        );
    }
}

/// A call ends with its deadline, whatever it waits for: a response, the rest of one, or a pause.
async fn meets_its_deadline(scene: &mut Scene) {
    let language = scene.driver.language;
    let timeout = Duration::from_millis(1_500);
    for (head, delivery) in [
        ("200 OK", Delivery::Never),
        (
            "503 Service Unavailable\r\nRetry-After: 1",
            Delivery::Promptly,
        ),
        (
            "503 Service Unavailable\r\nRetry-After: 20",
            Delivery::Promptly,
        ),
    ] {
        scene.server.behave(Behaviour {
            head: format!("HTTP/1.1 {head}\r\n"),
            delivery,
            ..Behaviour::default()
        });
        let start = Instant::now();
        let over = scene
            .call("GET", json!({ "timeout": timeout.as_secs_f64() }))
            .await;
        assert!(start.elapsed() < timeout + SLACK, "{language}: {head}");
        let is_over = over["transport"].is_string() || over["problem"]["status"] == 503;
        assert!(is_over, "{language}: {head}: {over}");
    }
}

async fn is_cancelled(scene: &mut Scene) {
    let language = scene.driver.language;
    for (head, delivery) in [
        ("200 OK", Delivery::Never),
        (
            "503 Service Unavailable\r\nRetry-After: 20",
            Delivery::Promptly,
        ),
    ] {
        scene.server.behave(Behaviour {
            head: format!("HTTP/1.1 {head}\r\n"),
            delivery,
            ..Behaviour::default()
        });
        let start = Instant::now();
        let over = scene.call("GET", json!({ "cancel_after_ms": 700 })).await;
        assert_eq!(over["cancelled"], true, "{language}: {head}: {over}");
        assert!(start.elapsed() < SLACK, "{language}: {head}");
    }
    scene.behave("200 OK\r\nContent-Type: text/plain", "");
    let next = scene.call("GET", json!({})).await;
    assert_eq!(next["status"], 200, "{language}: {next}");
}
