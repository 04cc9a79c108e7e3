//! `/api/v1/backends` and `/api/v1/gateways`.

use signpost_store::tables::audit::{self, Filter};

use super::*;
use crate::reports::gateways::{GatewayState, ID_BYTES, write};

#[tokio::test]
async fn an_address_is_drained_and_undrained() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Operator).await;
    let listed = scene.get("/api/v1/backends", &token).await;
    let first = &listed.body["items"][0];
    let (backend, address) = (&first["backend"], &first["addresses"][0]["address"]);
    assert_eq!(
        first["addresses"][0]["drained_until"],
        Value::Null,
        "{listed:?}"
    );
    let drain = async |further: Value| {
        let mut body = json!({ "backend": backend, "address": address, "seconds": 60 });
        let further = further.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(further);
        scene.post("/api/v1/backends/drain", &token, body).await
    };
    for (further, code) in [
        (json!({}), "last_address"),
        (json!({"force": true, "seconds": 0}), "param_invalid"),
        (json!({"force": true, "seconds": 604_801}), "param_invalid"),
        (json!({"force": true, "seconds": u64::MAX}), "param_invalid"),
        (json!({"force": true, "backend": "v9"}), "address_not_found"),
        (
            json!({"force": true, "address": "127.0.0.1:9"}),
            "address_not_found",
        ),
        (json!({"force": true, "address": "here"}), "param_invalid"),
        (json!({"force": true, "for": 7}), "request_malformed"),
    ] {
        let case = format!("{further}");
        assert_eq!(drain(further).await.code(), code, "{case}");
    }
    let drained = drain(json!({"force": true, "reason": "new kernel"})).await;
    assert_eq!(drained.status, StatusCode::OK, "{drained:?}");
    let until = scene.get("/api/v1/backends", &token).await;
    let until = &until.body["items"][0]["addresses"][0]["drained_until"];
    assert_eq!(*until, drained.body["until"]);
    let body = json!({ "backend": backend, "address": address });
    let undrain = async || {
        let path = "/api/v1/backends/undrain";
        scene.post(path, &token, body.clone()).await
    };
    assert_eq!(undrain().await.body, body);
    assert_eq!(undrain().await.code(), "not_drained");
    let rows = audit::page(&scene.store, Filter::default(), 2)
        .await
        .unwrap();
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                &*row.action,
                &*row.author.actor,
                row.author.reason.as_deref(),
            )
        })
        .collect();
    let expected = [
        ("backend.undrain", "the operator", None),
        ("backend.drain", "the operator", Some("new kernel")),
    ];
    assert_eq!(rows, expected);
}

#[tokio::test]
async fn gateways_are_listed() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Viewer).await;
    let state = GatewayState {
        host: "host".to_owned(),
        process: 7,
        addresses: Vec::new(),
        keys: Default::default(),
        release: "1.0.0".to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        config: "a hash".to_owned(),
        loaded_at: "2026-01-01T00:00:00Z".to_owned(),
        is_reload_rejected: false,
        is_ready: true,
        readiness: "ready".to_owned(),
        certificates: Vec::new(),
    };
    for id in [1, 2] {
        write(&scene.store, [id; ID_BYTES], &state, "[]")
            .await
            .unwrap();
    }
    let listed = scene.get("/api/v1/gateways?limit=1", &token).await;
    let one = &listed.body["items"][0];
    let members = ["host", "process", "is_alive", "differs", "is_ready"].map(|name| &one[name]);
    let expected = [
        json!("host"),
        json!(7),
        json!(true),
        json!(false),
        json!(true),
    ];
    assert_eq!(members, expected.each_ref(), "{listed:?}");
    let next = listed.body["next"].as_str().unwrap();
    let path = format!("/api/v1/gateways?limit=1&after={next}");
    let last = scene.get(&path, &token).await.body;
    assert_eq!(last["items"][0]["id"], "02".repeat(ID_BYTES));
    assert_eq!(
        (last["items"].as_array().unwrap().len(), &last["next"]),
        (1, &Value::Null)
    );
    for (query, status) in [
        ("limit=1", 200),
        ("limit=0", 400),
        ("after=v9", 400),
        ("x=1", 400),
    ] {
        let called = scene
            .get(&format!("/api/v1/backends?{query}"), &token)
            .await;
        assert_eq!(called.status.as_u16(), status, "{query} {called:?}");
    }
}
