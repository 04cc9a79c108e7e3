//! Requests that operators see: as they end, the last rejected ones, the numbers of an hour, and one that is examined.

use futures_util::StreamExt;
use signpost_kit::clock::Timestamp;
use signpost_protocol::{request_id::RequestId, sign::explain::Explanation};
use signpost_proxy::{App, Outcome, Rejection};

use super::*;
use crate::{
    api::streams::{MAX_STREAMS, MAX_STREAMS_OF_TOKEN},
    reports::gateways,
};

impl Scene {
    /// Lets a request with this id end, with a status below 400 or rejected with 400.
    pub(crate) fn end(&self, id: &str, status: u16) {
        let id: RequestId = id.parse().unwrap();
        let rejection = Rejection::RequestReplayed;
        let mut outcome = Outcome::unrouted(&id);
        outcome.sent.status = status;
        outcome.path = "/a\u{202e}<b>";
        outcome.rejection = (status == 400).then_some(&rejection);
        let gateway = self.current.load();
        let watch = gateway.state.records.watch.as_ref().unwrap();
        let names = &gateway.policy.rules.admission.names;
        watch.see(&outcome, names, || SystemClock.now());
    }

    /// Lets a request of an application end at 2020-09-13 12:26:06, since its signature does not match.
    pub(crate) fn reject(&self, id: &str, ident: &str, explanation: Explanation) {
        let (id, rejection) = (id.parse().unwrap(), Rejection::from(explanation));
        let key = "4283fefc63f0cd0e873a0000c6d07ef7".parse().unwrap();
        let mut app = App::single(key);
        app.ident = Some(ident.parse().unwrap());
        let app = Arc::new(app);
        let mut outcome = Outcome::unrouted(&id);
        outcome.sent.status = 403;
        outcome.learnt.app = Some(&app);
        outcome.rejection = Some(&rejection);
        let gateway = self.current.load();
        let watch = gateway.state.records.watch.as_ref().unwrap();
        let names = &gateway.policy.rules.admission.names;
        watch.see(&outcome, names, || {
            Timestamp::from_millis(1_599_999_966_000)
        });
    }

    /// Opens a stream.
    async fn stream(&self, path: &str, token: &str) -> Response {
        self.respond(request("GET", path, token, &[], Body::empty()))
            .await
    }

    async fn examine(&self, token: &str, sample: Value) -> Called {
        self.post("/api/v1/doctor", token, sample).await
    }
}

#[tokio::test]
async fn requests_are_streamed_as_they_end() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    let path = "/api/v1/requests?status=4";
    let response = scene.stream(path, &viewer).await;
    assert_eq!(
        response.headers()[header::CONTENT_TYPE],
        "text/event-stream"
    );
    let mut body = response.into_body().into_data_stream();
    let mut text = String::new();
    let mut read = async |until: &str| {
        while !text.contains(until) {
            let piece = timeout(Duration::from_secs(30), body.next()).await.unwrap();
            text += std::str::from_utf8(&piece.unwrap().unwrap()).unwrap();
        }
        text.clone()
    };
    read("retry: 5000").await;
    scene.end("0000", 200);
    scene.end("0001", 400);
    let seen = read("0001").await;
    assert!(!seen.contains("0000"), "{seen}");
    for part in [
        "event: request",
        r#""path":"/a\u202e<b>""#,
        r#""code":"request_replayed""#,
    ] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    for path in ["/api/v1/requests?status=6", "/api/v1/requests?status=x"] {
        let called = scene.get(path, &viewer).await;
        assert_eq!(called.status, StatusCode::BAD_REQUEST, "{path}");
    }
}

#[tokio::test]
async fn there_is_a_limit_on_streams() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let open = async |token: &str| scene.stream("/api/v1/requests", token).await;
    let mut streams = Vec::new();
    let check_refused = async |response: Response| {
        let called = Called::read(response).await;
        let refused = (called.status.as_u16(), called.code());
        assert_eq!(refused, (429, "rate_limited"));
        assert_eq!(called.headers[header::RETRY_AFTER], "5");
    };
    for number in 0..MAX_STREAMS / MAX_STREAMS_OF_TOKEN {
        let token = scene
            .token_of(&format!("viewer {number}"), Role::Viewer)
            .await;
        for _ in 0..MAX_STREAMS_OF_TOKEN {
            let response = open(&token).await;
            assert_eq!(response.status(), StatusCode::OK);
            streams.push(response);
        }
        check_refused(open(&token).await).await;
    }
    let other = scene.token(Role::Viewer).await;
    check_refused(open(&other).await).await;
    streams.pop();
    assert_eq!(open(&other).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let (viewer, admin) = (
        scene.token(Role::Viewer).await,
        scene.token(Role::Admin).await,
    );
    let open = async |token: &str| {
        let response = scene.stream("/api/v1/requests", token).await;
        response.into_body().into_data_stream()
    };
    let (mut ended, mut other) = (open(&viewer).await, open(&admin).await);
    let id = scene.tokens.list(None, 1).await.unwrap().0[0].id;
    let revoked = scene.tokens.revoke(id, author(), SystemClock.now()).await;
    revoked.unwrap();
    let end = async { while ended.next().await.is_some() {} };
    timeout(Duration::from_secs(30), end).await.unwrap();
    scene.end("0001", 400);
    let mut text = String::new();
    while !text.contains("0001") {
        let piece = timeout(Duration::from_secs(30), other.next())
            .await
            .unwrap();
        text += std::str::from_utf8(&piece.unwrap().unwrap()).unwrap();
    }
}

#[tokio::test]
async fn a_rejected_request_is_found_by_its_id() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    scene.end("0000", 200);
    scene.end("0001", 400);
    let found = scene.get("/api/v1/rejections/0001", &viewer).await;
    assert_eq!(found.body["code"], "request_replayed", "{}", found.text);
    let others = scene.get("/api/v1/rejections/0000", &viewer).await;
    assert_eq!(others.code(), "not_found");
    let all = scene.get("/api/v1/rejections?limit=5", &viewer).await;
    assert_eq!(all.body["items"].as_array().unwrap().len(), 1);
    let of_app = scene.get("/api/v1/rejections?app=shop", &viewer).await;
    assert_eq!(of_app.body["items"], json!([]));
}

#[tokio::test]
async fn the_traffic_is_that_of_all_gateways_also_of_stopped_ones() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    let minute = SystemClock.now().as_millis() / 60_000;
    let hour = json!([{ "at": minute, "counted": { "versions": { "v1": [2, 1, 0] }, "problems": { "sign_mismatch": 1 } } }]);
    for id in [[1; 16], [2; 16]] {
        let row = "INSERT INTO gateways (id, state, traffic, seen_at) VALUES ($1, NULL, $2, 0)";
        let values = signpost_store::values![&id, hour.to_string()];
        scene.store.execute(row, values).await.unwrap();
    }
    let traffic = scene.get("/api/v1/traffic", &viewer).await.body;
    let version = &traffic["versions"][0];
    let sum = |row: &str| -> u64 {
        let minutes = version[row].as_array().unwrap().iter();
        minutes.map(|count| count.as_u64().unwrap()).sum()
    };
    assert_eq!(version["version"], "v1");
    assert_eq!((sum("answered"), sum("rejected"), sum("failed")), (4, 2, 0));
    assert_eq!(
        traffic["problems"],
        json!([{ "code": "sign_mismatch", "requests": 2 }])
    );
    let listed = gateways::list(&scene.store).await.unwrap();
    assert!(listed.is_empty(), "they have stopped");
}

/// The step that failed, with its code and its hint.
fn failed(findings: &Value) -> Vec<[String; 3]> {
    let steps = findings["steps"].as_array().unwrap().iter();
    let failed = steps.filter(|step| !step["problem"].is_null());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let parts = |step: &Value| {
        let problem = &step["problem"];
        [&step["step"], &problem["code"], &problem["hint"]].map(text)
    };
    failed.map(parts).collect()
}

#[tokio::test]
async fn a_request_is_examined_step_by_step_and_only_operators_get_it_signed() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let (viewer, operator) = (
        scene.token(Role::Viewer).await,
        scene.token(Role::Operator).await,
    );
    let wrong = json!({ "request": "curl 'https://api.example/user?b=2&a=1&time=1600000000000&sign=00112233445566778899aabbccddeeff' -H 'Acme-X-Version: v1'" });
    let found = scene.examine(&viewer, wrong.clone()).await;
    let steps: Vec<_> = failed(&found.body);
    let codes: Vec<_> = steps
        .iter()
        .map(|[step, code, _]| (&**step, &**code))
        .collect();
    assert_eq!(
        codes,
        [("time", "time_out_of_window"), ("sign", "sign_mismatch")]
    );
    assert_eq!(
        found.body["canonical"],
        "a=1&b=2&time=1600000000000<APP_KEY>"
    );
    assert_eq!(found.body["signed"], Value::Null, "{}", found.text);
    let keys: Vec<_> = found.body["params"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["key"])
        .collect();
    assert_eq!(keys, ["a", "b", "sign", "time"]);
    assert!(!found.text.contains("4283fefc"), "the key");

    // What an operator gets is right, and the gateway's own answer to it is the same.
    let signed = scene.examine(&operator, wrong).await.body["signed"].clone();
    let target = signed["target"].as_str().unwrap();
    assert!(target.starts_with("/user?b=2&a=1&time="), "{target}");
    let curl = signed["curl"].as_str().unwrap();
    assert_eq!(
        curl,
        format!("curl -g 'https://api.example{target}' -H 'Acme-X-Version: v1'")
    );
    for sample in [target, curl] {
        let found = scene.examine(&viewer, json!({ "request": sample })).await;
        assert_eq!(
            failed(&found.body),
            <[[String; 3]; 0]>::default(),
            "{}",
            found.text
        );
    }
    let form =
        "POST /events HTTP/1.1\nHost: a\nContent-Type: application/x-www-form-urlencoded\n\na=it's";
    let signed = scene
        .examine(&operator, json!({ "request": form }))
        .await
        .body["signed"]
        .clone();
    assert_eq!(signed["target"], "/events");
    let again = signed["curl"].as_str().unwrap();
    let found = scene.examine(&viewer, json!({ "request": again })).await;
    assert_eq!(
        failed(&found.body),
        <[[String; 3]; 0]>::default(),
        "{again}: {}",
        found.text
    );
}

#[tokio::test]
async fn the_first_difference_to_the_clients_own_string_is_shown_without_its_key() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    let own = "b=2&a=1&time=14283fefc63f0cd0e873a0000c6d07ef7";
    let sample = json!({ "request": "/user?b=2&a=1&time=1&sign=0", "canonical": own });
    let found = scene.examine(&viewer, sample).await;
    assert_eq!(found.body["difference"]["at"], 0);
    assert_eq!(found.body["difference"]["found"], "b=2&a=1&time=1<APP_KEY>");
    let right = own.replace("b=2&a=1", "a=1&b=2");
    let sample = json!({ "request": "/user?b=2&a=1&time=1&sign=0", "canonical": right });
    let found = scene.examine(&viewer, sample).await;
    assert_eq!(found.body["difference"], Value::Null);
    for (request, step, code) in [
        (
            "PUT /user HTTP/1.1\nHost: a",
            "request",
            "method_not_allowed",
        ),
        (
            "GET /user HTTP/1.1\nHost: a\n\na=1",
            "request",
            "body_not_allowed",
        ),
        ("/user?a=%zz", "request", "params_malformed"),
        ("/a|b", "request", "target_invalid"),
        ("GET /user HTTP/1.1", "request", "target_invalid"),
        (
            "POST /e HTTP/1.1\nHost: a\nContent-Type: application/x-www-form-urlencoded\n\na=%zz",
            "params",
            "params_malformed",
        ),
    ] {
        let found = scene.examine(&viewer, json!({ "request": request })).await;
        let [found_step, found_code, _] = &failed(&found.body)[0];
        assert_eq!((&**found_step, &**found_code), (step, code), "{request}");
    }
    let none = scene.examine(&viewer, json!({ "request": "hello" })).await;
    assert_eq!(none.code(), "param_invalid");
}
