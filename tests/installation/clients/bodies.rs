//! What a library sends: all methods, JSON, other bodies, files; signed in parameters or in headers. CONTRACT 2 and 3.

use std::fs;

use end_to_end::{
    recording_backend::{RecordedRequest, RecordingBackend},
    signer::sha256_hex,
    stack::{APP_KEY, Application, Stack},
};
use serde_json::{Value, json};

use super::driver::Driver;

/// Takes JSON of all methods, and anything below `/files/`.
const SETTINGS: &str = "[spool]
folder = '$FOLDER'
bytes = 67108864
[versions.v2]
backend = '$BACKEND'
methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']
bodies = 'json'
path_prefix = '/v2'
routes = [{ path = '/files/**', backend = '$BACKEND', bodies = 'any', max_body = 8388608, methods = ['GET', 'PUT'] }]
";

/// Values of each kind, and how they are sent.
const SENT: &str = "n=5&price=1.5&isPaid=true&isOld=false&tag=a&tag=b&text=%E5%BC%A0%20%2B&empty=";

fn values() -> Value {
    json!([
        ["n", 5],
        ["price", 1.5],
        ["isPaid", true],
        ["isOld", false],
        ["tag", ["a", "b"]],
        ["text", "张 +"],
        ["empty", ""]
    ])
}

/// A gateway in front of a backend, and a client of an application.
struct Scene {
    driver: Driver,
    stack: Stack,
    backend: RecordingBackend,
}

impl Scene {
    async fn start(language: &'static str) -> Self {
        let backend = RecordingBackend::start().await;
        let settings = SETTINGS.replace("$BACKEND", &backend.address().to_string());
        let builder = Stack::builder().multi().in_front_of(&backend);
        Self {
            driver: Driver::start(language),
            stack: builder.gateway(&settings).start().await,
            backend,
        }
    }

    /// A client of a new application.
    async fn client(&mut self, arguments: &[&str], profile: &Value) -> Application {
        let app = self.stack.create_application("client", arguments);
        let further = json!({ "profile": profile });
        self.driver.client(&self.stack, &app, further).await;
        app
    }

    /// What the backend gets of a command.
    async fn arrives(&mut self, command: Value) -> RecordedRequest {
        let answer = self.driver.ask(command.clone()).await;
        let language = self.driver.language;
        assert_eq!(answer["status"], 200, "{language}: {command}: {answer}");
        let seen = self.backend.requests().pop().unwrap();
        // Otherwise the signature is in the parameters.
        let body = String::from_utf8_lossy(&seen.body);
        let is_in_headers = ![&*seen.target, &*body].concat().contains("&sign=");
        let says_so = seen.value("x-gateway-signed") == Some("true");
        assert_eq!(says_so, is_in_headers, "{language}: {command}");
        seen
    }
}

pub(super) async fn sends_any_body(language: &'static str) {
    let mut scene = Scene::start(language).await;
    for (arguments, profile) in [
        (
            &["--carrier", "headers"][..],
            json!({ "carrier": "headers" }),
        ),
        (
            &["--carrier", "headers", "--algorithm", "md5"],
            json!({ "carrier": "headers", "algorithm": "md5" }),
        ),
        (&["--carrier", "both"], json!({ "carrier": "both" })),
    ] {
        scene.client(arguments, &profile).await;
        json_arrives(&mut scene).await;
        pairs_arrive(&mut scene, profile["carrier"] == "both").await;
        files_arrive(&mut scene).await;
    }
    scene.client(&[], &json!({})).await;
    refuses_arguments(&mut scene).await;
    compares_heads(&mut scene).await;
}

async fn json_arrives(scene: &mut Scene) {
    let language = scene.driver.language;
    let documents = [
        json!({ "name": "张 \u{1f600}\n\"", "price": 1.5, "tags": [], "a": { "b": [null, true, -3] } }),
        json!([1, "2"]),
        json!("text"),
        json!({}),
    ];
    for (method, document) in ["POST", "PUT", "PATCH", "DELETE"]
        .into_iter()
        .zip(documents)
    {
        let call = json!({ "method": method, "path": "/v2/orders/5", "json": document });
        let seen = scene.arrives(json!({ "call": call })).await;
        assert_eq!(
            (&*seen.method, &*seen.target),
            (method, "/orders/5"),
            "{language}"
        );
        let body: Value = serde_json::from_slice(&seen.body).unwrap();
        assert_eq!(body, document, "{language}: {method}");
        let kind = seen.value("content-type").unwrap_or_default();
        assert!(kind.starts_with("application/json"), "{language}: {kind}");
    }
    // Beside a body, pairs are the query.
    let call = json!({ "method": "POST", "path": "/v2/a", "json": 1, "pairs": [["time", "noon"]] });
    let seen = scene.arrives(json!({ "call": call })).await;
    assert_eq!(seen.target, "/a?time=noon", "{language}");
}

async fn pairs_arrive(scene: &mut Scene, has_both: bool) {
    let language = scene.driver.language;
    for method in ["GET", "HEAD", "DELETE", "POST", "PUT", "PATCH"] {
        let call = json!({ "method": method, "path": "/v2/orders/5", "pairs": values() });
        let seen = scene.arrives(json!({ "call": call })).await;
        let form = String::from_utf8(seen.body).unwrap();
        let query = seen.target.strip_prefix("/orders/5").unwrap();
        let (sent, other) = match method {
            "GET" | "HEAD" | "DELETE" => (query.trim_start_matches('?'), &*form),
            _ => (&*form, query),
        };
        assert_eq!(other, "", "{language}: {method}");
        let further = sent.strip_prefix(SENT);
        let further = further.unwrap_or_else(|| panic!("{language}: {method}: {sent}"));
        let has_time = has_both && ["GET", "POST"].contains(&method);
        assert_eq!(
            further.starts_with("&time="),
            has_time,
            "{language}: {method}: {sent}"
        );
        assert!(has_time || further.is_empty(), "{language}: {sent}");
    }
}

async fn files_arrive(scene: &mut Scene) {
    let language = scene.driver.language;
    let call = json!({ "method": "PUT", "path": "/v2/files/a", "body": "a,b\n张", "content_type": "text/csv" });
    let seen = scene.arrives(json!({ "call": call })).await;
    assert_eq!(
        (seen.value("content-type"), &*seen.body),
        (Some("text/csv"), "a,b\n张".as_bytes()),
        "{language}"
    );
    let body: Vec<_> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let file = scene.stack.folder().join("upload");
    fs::write(&file, &body).unwrap();
    let upload = json!({ "method": "PUT", "path": "/v2/files/a", "file": file, "content_type": "image/png" });
    let seen = scene.arrives(json!({ "upload": upload })).await;
    assert_eq!(seen.value("content-type"), Some("image/png"), "{language}");
    assert_eq!(sha256_hex(&seen.body), sha256_hex(&body), "{language}");
}

/// What parameters cannot sign, and values without a clear text.
async fn refuses_arguments(scene: &mut Scene) {
    let language = scene.driver.language;
    let before = scene.backend.requests().len();
    for body in [
        json!({ "json": { "a": 1 } }),
        json!({ "body": "x", "content_type": "text/csv" }),
    ] {
        let mut call = json!({ "method": "POST", "path": "/v2/a" });
        let members = body.as_object().unwrap().clone();
        call.as_object_mut().unwrap().extend(members);
        let refused = scene.driver.ask(json!({ "call": call })).await;
        let reason = refused["argument"].as_str().unwrap_or_default();
        let names_it = reason.to_lowercase().contains("carrier");
        assert!(names_it, "{language}: {refused}");
    }
    for value in [
        json!(null),
        json!({ "b": 1 }),
        json!([["b"]]),
        json!([null]),
    ] {
        let call = json!({ "method": "POST", "path": "/v2/a", "pairs": [["a", value]] });
        let refused = scene.driver.ask(json!({ "call": call })).await;
        assert!(
            refused["argument"].is_string(),
            "{language}: {value}: {refused}"
        );
    }
    assert_eq!(scene.backend.requests().len(), before, "{language}");
}

/// The error of a wrong signature in headers shows what both sides signed, and no secret.
async fn compares_heads(scene: &mut Scene) {
    let language = scene.driver.language;
    let app = scene.client(&["--carrier", "headers"], &json!({})).await;
    let other = Application {
        key: APP_KEY.to_owned(),
        ..app
    };
    let credential = "c".repeat(43);
    let further = json!({ "profile": { "carrier": "headers" }, "credential": credential });
    scene.driver.client(&scene.stack, &other, further).await;
    let pairs = json!([["a", "1"], ["token", "hidden"]]);
    let call = json!({ "method": "PUT", "path": "/v2/a", "json": { "b": 2 }, "pairs": pairs });
    let failed = scene.driver.ask(json!({ "call": call })).await;
    let problem = &failed["problem"];
    assert_eq!(problem["code"], "sign_mismatch", "{language}: {failed}");
    let message = problem["message"].as_str().unwrap();
    let hint = problem["hint"].as_str();
    assert!(message.contains(hint.unwrap()), "{language}: {message}");
    let signed = |side: &str| {
        let lines = message.lines();
        let mut lines = lines.filter_map(|line| line.strip_prefix(side));
        lines.next().map(str::to_owned)
    };
    let ours = signed("this client signed: ");
    assert!(ours.is_some(), "{language}: {message}");
    assert_eq!(
        signed("the gateway signed: "),
        ours,
        "{language}: {message}"
    );
    for secret in [APP_KEY, &*credential, "hidden"] {
        assert!(!message.contains(secret), "{language}: {message}");
    }
}
