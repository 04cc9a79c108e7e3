//! Versions and their report.

use signpost_store::tables::usage;
use signpost_store::values;

use super::*;

use crate::operations::versions::MAX_REPORTS;

#[tokio::test]
async fn the_versions_are_listed_with_their_backends() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    let called = scene.get("/api/v1/versions", &viewer).await;
    let items = called.body["items"].as_array().unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0]["version"], "v1");
    assert_eq!(items[0]["is_default"], true);
    assert_eq!(items[0]["stage"], "current");
    let backend = &items[0]["backends"][0];
    assert_eq!(
        (&backend["backend"], &backend["part"]),
        (&json!("v1"), &json!("own"))
    );
    let address = &backend["addresses"][0];
    assert_eq!(
        (&address["health"], &address["in_flight"]),
        (&json!("unchecked"), &json!(0))
    );
    let called = scene.get("/api/v1/versions?after=v1", &viewer).await;
    assert_eq!(called.body, json!({"items": [], "next": null}));
    let called = scene.get("/api/v1/versions?after=v9", &viewer).await;
    assert_eq!(called.code(), "param_invalid");
}

#[tokio::test]
async fn the_report_is_of_the_days_and_the_version_that_are_asked_for() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    let report = async |query: &str| {
        let path = format!("/api/v1/versions/report{query}");
        scene.get(&path, &viewer).await
    };
    let all = report("").await.body;
    assert_eq!(
        (&all["days"], &all["versions"][0]["version"]),
        (&json!(30), &json!("v1"))
    );
    assert_eq!(all["counted_since"], Value::Null);
    let day = report("?days=1&version=v1").await.body;
    assert_eq!(day["first_day"], day["last_day"]);
    for query in ["?days=0", "?days=91", "?version=v9"] {
        assert_eq!(report(query).await.code(), "param_invalid", "{query}");
    }
    assert_eq!(report("?day=1").await.code(), "request_malformed");
}

#[tokio::test]
async fn a_retirement_is_checked_in_the_language_of_its_caller() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    let read = async |query: &str, language: &'static str| {
        let path = format!("/api/v1/versions/retirement{query}");
        let headers = [("accept-language", language)];
        scene
            .send(request("GET", &path, &viewer, &headers, String::new()))
            .await
    };
    let checked = read("?version=v1&at=2099-03-01", "en").await.body;
    let stages = checked["stages"].as_array().unwrap();
    let names: Vec<_> = stages.iter().map(|stage| &stage["stage"]).collect();
    let expected = json!(["used", "paths", "proven", "bridged", "brownouts", "then"]);
    assert_eq!(json!(names), expected);
    assert_eq!(
        (&checked["at"], &checked["is_ready"]),
        (&json!("2099-03-01T00:00:00Z"), &json!(false))
    );
    let open = |checked: &Value| checked["stages"][5]["open"].clone();
    let expected = json!(["It has no sunset.", "It is not deprecated yet."]);
    assert_eq!(open(&checked), expected);
    let japanese = read("?version=v1", "ja").await.body;
    let expected = json!(["終了予定日がありません。", "まだ非推奨ではありません。"]);
    assert_eq!((open(&japanese), &japanese["at"]), (expected, &Value::Null));
    for query in ["?version=v9", "?version=v1&at=soon"] {
        assert_eq!(read(query, "en").await.code(), "param_invalid", "{query}");
    }
}

#[tokio::test]
async fn a_report_of_one_application_has_its_requests_only() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let operator = scene.token(Role::Operator).await;
    let mut idents = Vec::new();
    for name in ["one", "two"] {
        let created = scene.post("/api/v1/apps/create", &operator, json!({ "name": name }));
        idents.push(
            created.await.body["app"]["ident"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    let day = SystemClock.now().as_millis() / 86_400_000;
    let counts = "INSERT INTO usage_counts (day, version, application, is_signed, source, requests) \
                  SELECT $1, $2, id, $3, 'default', 7 * id FROM applications";
    for (day, version) in [(day, "v1"), (day - 29, "v1"), (day - 30, "v1"), (day, "v9")] {
        let values = values![day, version, true];
        scene.store.execute(counts, values).await.unwrap();
    }
    let path = format!("/api/v1/versions/report?app={}", idents[1]);
    let report = scene.get(&path, &operator).await;
    let versions = report.body["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 1, "{}", report.text);
    let apps = versions[0]["applications"].as_array().unwrap();
    assert_eq!(apps.len(), 1, "{}", report.text);
    assert_eq!(
        (&apps[0]["name"], &apps[0]["requests"]),
        (&json!("two"), &json!(2 * 14))
    );
    for unknown in ["none", "%20"] {
        let path = format!("/api/v1/versions/report?app={unknown}");
        assert_eq!(scene.get(&path, &operator).await.code(), "app_not_found");
    }
}

#[tokio::test]
async fn a_report_with_paths_says_who_calls_what() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let operator = scene.token(Role::Operator).await;
    for name in ["one", "two"] {
        let created = scene.post("/api/v1/apps/create", &operator, json!({ "name": name }));
        assert_eq!(created.await.status, StatusCode::CREATED);
    }
    let now = SystemClock.now();
    let counts = "INSERT INTO usage_paths (day, version, application, is_bridged, method, path, class, requests, last_seen) \
                  SELECT $1, 'v1', id, FALSE, 'GET', $2, $3, $4 * id, $5 FROM applications";
    for (path, class, requests) in [("/a", "2xx", 3_i64), ("/a", "4xx", 1), ("/b/*", "5xx", 1)] {
        let day = now.as_millis() / 86_400_000;
        let values = values![day, path, class, requests, now];
        scene.store.execute(counts, values).await.unwrap();
    }
    let report = async |query: &str| {
        let path = format!("/api/v1/versions/report{query}");
        scene.get(&path, &operator).await.body["versions"][0]["paths"].clone()
    };
    assert_eq!(report("").await, Value::Null);
    let paths = report("?paths=true").await;
    let shown = |path: &Value| {
        let members = [
            "path",
            "requests",
            "client_errors",
            "server_errors",
            "applications",
        ];
        members.map(|member| path[member].clone())
    };
    assert_eq!(
        shown(&paths[0]),
        [json!("/a"), json!(12), json!(3), json!(0), json!(2)]
    );
    assert_eq!(
        shown(&paths[1]),
        [json!("/b/*"), json!(3), json!(0), json!(3), json!(2)]
    );
    assert_eq!(paths[0]["users"][0]["requests"], 8);
    let ident = paths[0]["users"][1]["ident"].as_str().unwrap().to_owned();
    let of_one = report(&format!("?paths=true&app={ident}")).await;
    assert_eq!(shown(&of_one[0])[1], json!(4));
}

#[tokio::test]
async fn a_report_of_very_many_applications_is_refused() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let operator = scene.token(Role::Operator).await;
    let is_large = async |number| usage::is_large(&scene.store, number).await.unwrap();
    assert!(!is_large(1).await);
    let pinned = json!({"name": "one", "default_version": "v1"});
    let called = scene.post("/api/v1/apps/create", &operator, pinned).await;
    assert_eq!(called.status, StatusCode::CREATED, "{called:?}");
    assert!(is_large(1).await && !is_large(2).await);
    let many = "INSERT INTO usage_clients (version, application, is_signed, last_seen) VALUES ('v1', $1, TRUE, 1)";
    for application in 0..3_i64 {
        scene
            .store
            .execute(many, values![application])
            .await
            .unwrap();
    }
    assert!(is_large(4).await && !is_large(5).await);
}

#[tokio::test]
async fn reports_that_are_not_read_leave_no_place_to_more() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    let report = || {
        Request::get("/api/v1/versions/report")
            .header(header::AUTHORIZATION, format!("Bearer {viewer}"))
            .body(Body::empty())
            .unwrap()
    };
    let mut unread = Vec::new();
    for _ in 0..MAX_REPORTS {
        let response = scene.respond(report()).await;
        assert_eq!(response.status(), StatusCode::OK);
        unread.push(response);
    }
    assert_eq!(scene.send(report()).await.code(), "rate_limited");
    unread.pop();
    assert_eq!(scene.send(report()).await.status, StatusCode::OK);
}
