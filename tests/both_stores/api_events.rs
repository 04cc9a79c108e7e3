//! Two gateways on a store, and their management APIs: what one changes, the other streams; each reloads its own file.

use std::time::{Duration, Instant};

use end_to_end::{program::Program, recording_backend::RecordingBackend, stack::Stack};
use reqwest::{Client, RequestBuilder, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Limit of the time from a change to its event.
const DELAY: Duration = Duration::from_secs(1);

struct Scene {
    stack: Stack,
    token: String,
    http: Client,
    _backend: RecordingBackend,
}

impl Scene {
    async fn start() -> Self {
        let backend = RecordingBackend::start().await;
        let builder = Stack::builder().multi().in_front_of(&backend);
        let builder = builder
            .several(Program::Gateway, 2)
            .gateway("[management.api]");
        let stack = builder.start().await;
        let create = [
            "token", "create", "--name", "ci", "--role", "operator", "--json",
        ];
        let created: Value = serde_json::from_slice(&stack.command(&create).stdout).unwrap();
        Self {
            stack,
            token: created["token"].as_str().unwrap().to_owned(),
            http: Client::new(),
            _backend: backend,
        }
    }

    fn url(&self, gateway: usize, path: &str) -> String {
        let gateway = Program::Gateway.number(gateway);
        let address = self.stack.addresses().management_of(gateway);
        format!("http://{address}/api/v1/{path}")
    }

    async fn send(&self, request: RequestBuilder) -> Response {
        let authorization = format!("Bearer {}", self.token);
        let request = request.header(header::AUTHORIZATION, authorization);
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{response:?}");
        response
    }

    async fn get(&self, gateway: usize, path: &str) -> Response {
        self.send(self.http.get(self.url(gateway, path))).await
    }

    async fn post(&self, gateway: usize, path: &str, body: Value) -> Value {
        let request = self.http.post(self.url(gateway, path));
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let response = self.send(request.body(body.to_string())).await;
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
    }
}

/// Waits for an event of this action, as long as one may take since `begun`.
async fn event(stream: &mut Response, action: &str, begun: Instant) {
    let mut text = String::new();
    let reading = async {
        while !text.contains(action) {
            let piece = stream.chunk().await.unwrap().expect("the stream goes on");
            text += std::str::from_utf8(&piece).unwrap();
        }
    };
    let rest = DELAY.saturating_sub(begun.elapsed());
    timeout(rest, reading)
        .await
        .unwrap_or_else(|_| panic!("no {action}"));
}

#[tokio::test]
async fn what_one_gateway_changes_is_streamed_by_both_within_a_second() {
    let mut scene = Scene::start().await;
    let mut streams = Vec::new();
    for gateway in [0, 1] {
        let mut stream = scene.get(gateway, "events").await;
        assert_eq!(stream.status(), StatusCode::OK);
        // The position at which it begins.
        let first = stream.chunk().await.unwrap().unwrap();
        assert!(first.starts_with(b"id: "), "{first:?}");
        streams.push(stream);
    }
    let begun = Instant::now();
    scene.post(0, "apps/create", json!({"name": "one"})).await;
    for stream in &mut streams {
        event(stream, "app.create", begun).await;
    }
    scene
        .stack
        .configure(Program::Gateway.number(1), "[limits]\nbody_bytes = 32768");
    let check = scene.get(1, "config/check").await.bytes().await.unwrap();
    let check: Value = serde_json::from_slice(&check).unwrap();
    let begun = Instant::now();
    let reloaded = scene
        .post(1, "config/reload", json!({"reason": "smaller"}))
        .await;
    assert_eq!(reloaded["changed"], check["report"]["changed"]);
    assert_eq!(reloaded["changed"][0]["to"], "32768");
    for stream in &mut streams {
        event(stream, "config.reload", begun).await;
    }
    // A stream does not delay a stop.
    scene.stack.running(Program::Gateway.number(1)).terminate();
    scene.stack.wait_for_exit(Program::Gateway.number(1)).await;
    while let Ok(Some(_)) = streams[1].chunk().await {}
}
