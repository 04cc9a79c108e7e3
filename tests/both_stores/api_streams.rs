//! Two gateways on a store, and their management APIs: each reloads its own file, and shows what both do.

use end_to_end::{
    program::Program, recording_backend::RecordingBackend, signed_client::http_client,
    stack::Stack, waiting::until,
};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

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
            .gateway("[management.api]\n[management.console]\n");
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

#[tokio::test]
async fn each_gateway_reloads_its_own_file_and_shows_the_audit_of_both() {
    let scene = Scene::start().await;
    scene.post(0, "apps/create", json!({"name": "one"})).await;
    scene
        .stack
        .configure(Program::Gateway.number(1), "[limits]\nbody_bytes = 32768");
    let check: Value = scene.get(1, "config/check").await.json().await.unwrap();
    let reloaded = scene
        .post(1, "config/reload", json!({"reason": "smaller"}))
        .await;
    assert_eq!(reloaded["changed"], check["report"]["changed"]);
    assert_eq!(reloaded["changed"][0]["to"], "32768");
    for gateway in [0, 1] {
        let audit: Value = scene.get(gateway, "audit").await.json().await.unwrap();
        let actions = audit["items"].as_array().unwrap().iter();
        let actions: Vec<_> = actions
            .map(|item| item["action"].as_str().unwrap())
            .collect();
        assert_eq!(actions[..2], ["config.reload", "app.create"], "{audit}");
    }
}

#[tokio::test]
async fn a_stop_waits_for_no_stream() {
    let mut scene = Scene::start().await;
    let address = scene.stack.addresses().management;
    let browser = http_client();
    let sign_in = browser.post(format!("http://{address}/sign-in"));
    let signed_in = sign_in
        .form(&[("token", &scene.token)])
        .send()
        .await
        .unwrap();
    let cookie = signed_in.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let live = browser.get(format!("http://{address}/live/stream"));
    let live = live.header("cookie", cookie).send().await.unwrap();
    let api = scene.get(0, "requests").await;
    let mut streams = [live, api];
    for stream in &mut streams {
        assert_eq!(stream.status(), StatusCode::OK);
        assert_eq!(stream.headers()["cache-control"], "no-store");
        stream.chunk().await.unwrap().expect("the stream begins");
    }
    scene.stack.running(Program::Gateway).terminate();
    for mut stream in streams {
        while let Ok(Some(_)) = stream.chunk().await {}
    }
    scene.stack.wait_for_exit(Program::Gateway).await;
    let log = scene.stack.log(Program::Gateway);
    assert!(!log.contains("cutting off"), "{log}");
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
