//! Two gateways on a store, and their management APIs: what one changes, the other streams; each reloads its own file.

use std::time::{Duration, Instant};

use end_to_end::{
    program::Program, recording_backend::RecordingBackend, stack::Stack, waiting::until,
};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Limit of the time from a change to its event.
const DELAY: Duration = Duration::from_secs(1);

struct Scene {
    stack: Stack,
    token: String,
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
        Self {
            token: stack.create_token("operator"),
            stack,
            _backend: backend,
        }
    }

    async fn get(&self, gateway: usize, path: &str) -> Response {
        self.stack.call_api(gateway, path, &self.token, None).await
    }

    async fn post(&self, gateway: usize, path: &str, body: Value) -> Value {
        let response = self.stack.call_api(gateway, path, &self.token, Some(body));
        response.await.json().await.unwrap()
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
    let check: Value = scene.get(1, "config/check").await.json().await.unwrap();
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

#[tokio::test]
async fn each_gateway_shows_the_traffic_of_both() {
    let scene = Scene::start().await;
    let app = scene.stack.create_application("one", &[]);
    for gateway in 0..2 {
        let client = scene.stack.client_of_at(&app, gateway);
        let response = client.get("/orders").param("a", "1").send().await;
        assert_eq!(response.status, 200);
    }
    for gateway in 0..2 {
        until("both requests to be counted", || async {
            let traffic: Value = scene.get(gateway, "traffic").await.json().await.unwrap();
            let answered = traffic["versions"][0]["answered"].as_array()?.iter();
            (answered.filter_map(Value::as_u64).sum::<u64>() == 2).then_some(())
        })
        .await;
    }
}
