//! Idempotency keys.

use futures_util::FutureExt;
use signpost_store::{tables::audit, values};

use super::*;
use crate::administration::apps::both_stores::apps_under;

impl Scene {
    async fn post_with(&self, key: &str, path: &str, token: &str, body: &Value) -> Called {
        let fields = [JSON, ("idempotency-key", key)];
        let request = request("POST", path, token, &fields, body.to_string());
        self.send(request).await
    }

    /// The number of applications that were created or changed.
    async fn changes(&self) -> usize {
        let all = audit::Filter::default();
        let rows = audit::page(&self.store, all, 1000).await.unwrap();
        let of_apps = rows.iter().filter(|row| row.action.starts_with("app."));
        of_apps.count()
    }
}

const CREATE: &str = "/api/v1/apps/create";

#[tokio::test]
async fn a_repeated_request_gets_the_same_response_and_changes_nothing() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let (token, other) = (
        scene.token(Role::Operator).await,
        scene.token(Role::Admin).await,
    );
    let new = json!({ "name": "Shop" });
    let first = scene.post_with("k1", CREATE, &token, &new).await;
    assert_eq!(first.status, StatusCode::CREATED, "{first:?}");
    assert!(!first.headers.contains_key("idempotency-replayed"));
    let again = scene.post_with("k1", CREATE, &token, &new).await;
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    for name in [
        header::ETAG,
        header::LOCATION,
        header::CONTENT_TYPE,
        header::CACHE_CONTROL,
    ] {
        assert_eq!(again.headers[&name], first.headers[&name]);
    }
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(scene.changes().await, 1);
    // The store has the application's key in the response only under the master key.
    let find = "SELECT response FROM idempotency";
    let stored: Option<(Vec<u8>,)> = scene.store.row(find, Vec::new()).await.unwrap();
    let key = first.body["key"].as_str().unwrap().as_bytes();
    let stored = stored.unwrap().0;
    assert!(!stored.windows(key.len()).any(|part| part == key));

    let conflict = scene
        .post_with("k1", CREATE, &token, &json!({ "name": "Other" }))
        .await;
    assert_eq!(
        (conflict.status.as_u16(), conflict.code()),
        (409, "idempotency_conflict")
    );
    let rotate = format!(
        "{}/rotate",
        first.headers[header::LOCATION].to_str().unwrap()
    );
    let conflict = scene.post_with("k1", &rotate, &token, &new).await;
    assert_eq!(conflict.code(), "idempotency_conflict");
    assert_eq!(scene.changes().await, 1);
    // The keys of another token are others.
    let others = scene.post_with("k1", CREATE, &other, &new).await;
    assert_eq!(others.status, StatusCode::CREATED);
    assert_ne!(others.text, first.text);
    assert_eq!(scene.changes().await, 2);

    // A problem is kept, too, in its language.
    let stale = json!({ "revision": 9, "name": "x" });
    let update = rotate.replace("/rotate", "/update");
    let first = scene.post_with("k2", &update, &token, &stale).await;
    assert_eq!(first.code(), "revision_stale");
    let again = scene.post_with("k2", &update, &token, &stale).await;
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    assert_eq!(
        again.headers[header::CONTENT_TYPE],
        "application/problem+json"
    );
    assert_eq!(again.headers["idempotency-replayed"], "true");
}

#[tokio::test]
async fn of_concurrent_requests_with_one_key_one_runs() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Operator).await;
    let new = json!({ "name": "Shop" });
    let all = (0..3).map(|_| scene.post_with("k", CREATE, &token, &new));
    let mut created = 0;
    for called in join_all(all).await {
        match called.status {
            StatusCode::CREATED => created += 1,
            _ => assert_eq!(called.code(), "idempotency_unfinished"),
        }
    }
    assert!(created >= 1);
    assert_eq!(scene.changes().await, 1);
}

#[tokio::test]
async fn an_interrupted_request_does_not_run_again() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Operator).await;
    let new = json!({ "name": "Shop" });
    scene.post_with("k", CREATE, &token, &new).await;
    let interrupt = "UPDATE idempotency SET response = NULL";
    scene.store.execute(interrupt, Vec::new()).await.unwrap();
    let again = scene.post_with("k", CREATE, &token, &new).await;
    assert_eq!(
        (again.status.as_u16(), again.code()),
        (409, "idempotency_unfinished")
    );
    // As if another master key had sealed it.
    let lost = "UPDATE idempotency SET response = $1";
    scene
        .store
        .execute(lost, values![vec![0; 64]])
        .await
        .unwrap();
    let again = scene.post_with("k", CREATE, &token, &new).await;
    assert_eq!(again.code(), "idempotency_unfinished");
    assert_eq!(scene.changes().await, 1);
}

#[tokio::test]
async fn the_outcome_is_kept_although_the_client_leaves() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Operator).await;
    let new = json!({ "name": "Shop" });
    let mut left = Box::pin(scene.post_with("k", CREATE, &token, &new));
    // Until the request has begun, or has ended already.
    while scene.begun().await == 0 {
        tokio::select! {
            biased;
            _ = &mut left => break,
            () = tokio::task::yield_now() => {}
        }
    }
    drop(left);
    loop {
        let again = scene.post_with("k", CREATE, &token, &new).await;
        if again.status == StatusCode::CREATED {
            break;
        }
        assert_eq!(again.code(), "idempotency_unfinished");
    }
    assert_eq!(scene.changes().await, 1);
}

#[tokio::test]
async fn a_change_without_a_key_ends_and_a_stop_waits_for_it_although_the_client_leaves() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Operator).await;
    let in_flight = || scene.current.load().state.drain.in_flight();
    let left = scene.post(CREATE, &token, json!({ "name": "Shop" }));
    assert!(left.now_or_never().is_none());
    assert_eq!(in_flight(), 1);
    while in_flight() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(scene.changes().await, 1);
}

#[tokio::test]
async fn a_request_that_surely_changed_nothing_runs_again() {
    let test_store = TestStore::chosen();
    let mut scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Operator).await;
    let reload = "/api/v1/config/reload";
    // Its reloader has ended.
    scene.router = scene.router_with(config::ended_reload());
    let stopping = scene.post_with("k", reload, &token, &json!({})).await;
    assert_eq!(stopping.code(), "gateway_stopping", "{stopping:?}");
    assert_eq!(scene.begun().await, 0);
    scene.router = scene.router_with(scene.reload.clone());
    let again = scene.post_with("k", reload, &token, &json!({})).await;
    assert_eq!(again.status, StatusCode::OK, "{again:?}");
}

#[tokio::test]
async fn a_request_is_known_while_its_master_key_is_the_previous_one() {
    let test_store = TestStore::chosen();
    let mut scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Operator).await;
    let (new, other) = (json!({ "name": "Shop" }), json!({ "name": "Other" }));
    let first = scene.post_with("k", CREATE, &token, &new).await;
    for (previous, is_known) in [(Some("ab"), true), (None, false)] {
        scene.apps = apps_under(scene.store.clone(), "cd", previous);
        scene.router = scene.router_with(scene.reload.clone());
        let again = scene.post_with("k", CREATE, &token, &new).await;
        let changed = scene.post_with("k", CREATE, &token, &other).await;
        if is_known {
            assert_eq!(again.text, first.text);
            assert_eq!(changed.code(), "idempotency_conflict");
        } else {
            assert_eq!(again.code(), "idempotency_unfinished");
            assert_eq!(changed.code(), "idempotency_unfinished");
        }
    }
    assert_eq!(scene.changes().await, 1);
}

impl Scene {
    async fn begun(&self) -> i64 {
        let count = "SELECT count(*) FROM idempotency";
        let count: Option<(i64,)> = self.store.row(count, Vec::new()).await.unwrap();
        count.unwrap().0
    }
}

#[tokio::test]
async fn a_key_is_visible_ascii_of_bounded_length() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Operator).await;
    let new = json!({ "name": "Shop" });
    for wrong in ["", "a b", "é", &"x".repeat(256)] {
        let refused = scene.post_with(wrong, CREATE, &token, &new).await;
        assert_eq!(refused.code(), "param_invalid", "{wrong}");
    }
    assert_eq!(scene.changes().await, 0);
    let longest = scene
        .post_with(&"~".repeat(255), CREATE, &token, &new)
        .await;
    assert_eq!(longest.status, StatusCode::CREATED);
    // A GET has no key.
    let key = [("idempotency-key", "a b")];
    let request = request("GET", "/api/v1/whoami", &token, &key, Body::empty());
    let read = scene.send(request).await;
    assert_eq!(read.status, StatusCode::OK);
}
