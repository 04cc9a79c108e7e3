//! `/api/v1/apps`.

use signpost_proxy::AppStore;
use signpost_store::tables::audit::{self, Filter};

use super::*;

#[tokio::test]
async fn an_application_lives_by_revisions() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Operator).await;
    let new = json!({
        "name": "Shop", "return_to": ["https://shop.example"], "profile": {"preset": "wechat"},
        "rate_limit": "5/10", "reason": "ticket 7",
    });
    let created = scene.post("/api/v1/apps/create", &token, new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
    let ident = created.body["app"]["ident"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/apps/{ident}");
    assert_eq!(created.headers[header::LOCATION], path.as_str());
    assert_eq!(created.headers[header::ETAG], "\"1\"");
    let stored = scene
        .apps
        .find(ident.parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(created.body["key"], stored.key.expose());

    let shown = scene.get(&path, &token).await;
    assert_eq!(shown.body, created.body["app"]);
    assert_eq!(shown.headers[header::ETAG], "\"1\"");
    assert!(!shown.text.contains(stored.key.expose()));

    let update = async |body: Value| scene.post(&format!("{path}/update"), &token, body).await;
    assert_eq!(
        update(json!({"name": "Store"})).await.code(),
        "revision_missing"
    );
    let updated = update(json!({"revision": 1, "name": "Store", "rate_limit": null})).await;
    assert_eq!(
        (&updated.body["name"], &updated.body["revision"]),
        (&json!("Store"), &json!(2))
    );
    assert_eq!(updated.body["rate_limit"], Value::Null);
    assert_eq!(
        updated.body["sign_profile"],
        created.body["app"]["sign_profile"]
    );
    let stale = update(json!({"revision": 1, "name": "Late"})).await;
    assert_eq!(
        (stale.code(), &stale.body["revision"]),
        ("revision_stale", &json!(2))
    );
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
    for nothing in [
        json!({"revision": 2}),
        json!({"revision": 2, "profile": {}}),
    ] {
        let refused = update(nothing).await;
        assert_eq!(refused.code(), "nothing_to_change");
    }

    let post = async |action: &str, revision: i64| {
        let body = json!({ "revision": revision });
        scene.post(&format!("{path}/{action}"), &token, body).await
    };
    let rotated = post("rotate", 2).await;
    assert_ne!(rotated.body["key"], created.body["key"]);
    assert_eq!(rotated.body["app"]["revision"], 3);
    assert_eq!(post("rotate", 3).await.code(), "overlap_running");
    assert_eq!(post("end-overlap", 3).await.body["revision"], 4);
    assert_eq!(post("disable", 4).await.body["state"], "disabled");
    let (enable, seen) = (format!("{path}/enable"), [("if-match", "\"5\"")]);
    let enable = request("POST", &enable, &token, &seen, Body::empty());
    let enabled = scene.send(enable).await;
    assert_eq!(enabled.body["state"], "active");
    assert_eq!(post("delete", 5).await.code(), "revision_stale");
    assert_eq!(post("delete", 6).await.body["deleted"], ident.as_str());
    assert_eq!(scene.get(&path, &token).await.code(), "app_not_found");

    let rows = audit::page(
        &scene.store,
        Filter {
            subject: Some(ident),
            ..Filter::default()
        },
        100,
    );
    let rows = rows.await.unwrap();
    let actions: Vec<_> = rows.iter().rev().map(|row| &*row.action).collect();
    let expected = [
        "create",
        "update",
        "rotate",
        "end-overlap",
        "disable",
        "enable",
        "delete",
    ];
    assert_eq!(actions, expected.map(|action| format!("app.{action}")));
    assert!(rows.iter().all(|row| row.author.actor == "the operator"));
    assert!(rows.iter().all(|row| row.author.origin == "api 127.0.0.1"));
    assert_eq!(
        rows.last().unwrap().author.reason.as_deref(),
        Some("ticket 7")
    );
}

#[tokio::test]
async fn invalid_values_are_named() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Operator).await;
    for (body, code, detail) in [
        (json!({}), "request_malformed", "missing field `name`"),
        (json!([]), "request_malformed", ""),
        (
            json!({"name": "a", "colour": 1}),
            "request_malformed",
            "unknown field `colour`",
        ),
        (json!({"name": ""}), "param_invalid", "\"name\""),
        (json!({"name": "a\u{202e}b"}), "param_invalid", "\"name\""),
        (
            json!({"name": "a", "return_to": ["x"]}),
            "param_invalid",
            "\"return_to\"",
        ),
        (
            json!({"name": "a", "default_version": "v9"}),
            "param_invalid",
            "v1",
        ),
        (
            json!({"name": "a", "rate_limit": "0/0"}),
            "param_invalid",
            "\"rate_limit\"",
        ),
        (
            json!({"name": "a", "profile": {"preset": "x"}}),
            "param_invalid",
            "wechat",
        ),
        (
            json!({"name": "a", "profile": {"algorithm": "x"}}),
            "request_malformed",
            "md5",
        ),
        (
            json!({"name": "a", "reason": "\n"}),
            "param_invalid",
            "\"reason\"",
        ),
    ] {
        let called = scene
            .post("/api/v1/apps/create", &token, body.clone())
            .await;
        assert_eq!(
            (called.status.as_u16(), called.code()),
            (400, code),
            "{body} {called:?}"
        );
        let found = called.body["detail"].as_str().unwrap();
        assert!(found.contains(detail), "{body} {found}");
    }
    for query in ["limit=0", "limit=1001", "limit=x", "unknown=1", "after=%20"] {
        let called = scene.get(&format!("/api/v1/apps?{query}"), &token).await;
        assert_eq!(called.status, StatusCode::BAD_REQUEST, "{query} {called:?}");
    }
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let form = request("POST", "/api/v1/apps/create", &token, &form, "name=a");
    let called = scene.send(form).await;
    assert_eq!(
        (called.status.as_u16(), called.code()),
        (415, "content_type_unsupported")
    );
    assert!(
        called.body["detail"]
            .as_str()
            .unwrap()
            .contains("application/json")
    );
    let large = json!({ "name": "a".repeat(70_000) });
    let called = scene.post("/api/v1/apps/create", &token, large).await;
    assert_eq!(
        (called.status.as_u16(), called.code()),
        (413, "body_too_large")
    );
}

#[tokio::test]
async fn files_are_imported_whole_or_not_at_all_and_exported_without_keys() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Operator).await;
    let import = async |file: &str| {
        let (path, csv) = (
            "/api/v1/apps/import?reason=move",
            [("content-type", "text/csv")],
        );
        let request = request("POST", path, &token, &csv, file.to_owned());
        scene.send(request).await
    };
    let key = "4283fefc63f0cd0e873a0000c6d07ef7";
    let file = format!("ident,key,name\none,{key},First\nthree,{key},Third\ntwo,{key},Second\n");
    assert_eq!(import(&file).await.body["imported"], 3);
    let again = import(&file).await;
    assert_eq!(
        (again.status.as_u16(), again.code()),
        (422, "import_invalid")
    );
    assert_eq!(
        again.body["problems"].as_array().unwrap().len(),
        3,
        "{again:?}"
    );
    assert!(!again.text.contains(key));

    let exported = scene.get("/api/v1/apps/export", &token).await;
    assert_eq!(exported.headers[header::CONTENT_TYPE], "application/jsonl");
    let lines: Vec<Value> = exported
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        (&lines[0]["ident"], lines[0].get("key")),
        (&json!("one"), None)
    );

    let page = scene.get("/api/v1/apps?limit=2", &token).await;
    assert_eq!(page.body["items"].as_array().unwrap().len(), 2);
    let next = page.body["next"].as_str().unwrap();
    let page = scene
        .get(&format!("/api/v1/apps?limit=2&after={next}"), &token)
        .await;
    assert_eq!(
        (&page.body["items"][0]["ident"], &page.body["next"]),
        (&json!("two"), &Value::Null)
    );
    let found = scene.get("/api/v1/apps?search=sec", &token).await;
    assert_eq!(found.body["items"][0]["ident"], "two");
}

/// A page is bounded in bytes, too: an application can have 100 origins of 255 characters.
#[tokio::test]
async fn applications_with_many_origins_are_listed_in_shorter_pages() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Operator).await;
    let host = "x".repeat(60);
    let origins: Vec<_> = (0..100)
        .map(|number| format!("https://{host}.{host}.{host}.x{number}.example"))
        .collect();
    let line = |number: usize| {
        let key = "4283fefc63f0cd0e873a0000c6d07ef7";
        json!({"ident": format!("app-{number}"), "key": key, "name": "Shop", "origins": origins})
    };
    let lines: Vec<_> = (0..100).map(|number| line(number).to_string()).collect();
    let request = Request::post("/api/v1/apps/import")
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, "application/jsonl")
        .body(lines.join("\n").into());
    let imported = scene.send(request.unwrap()).await;
    assert_eq!(imported.body["imported"], 100, "{imported:?}");
    for query in ["", "&search=Shop"] {
        let (mut found, mut pages, mut after) = (0, 0, String::new());
        loop {
            let path = format!("/api/v1/apps?limit=1000{query}{after}");
            let page = scene.get(&path, &token).await;
            assert!(
                page.text.len() < 2 * 1024 * 1024,
                "{} bytes",
                page.text.len()
            );
            found += page.body["items"].as_array().unwrap().len();
            pages += 1;
            match page.body["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        assert_eq!(found, 100);
        assert!(pages > 1);
    }
}

/// The members of bodies that a call may leave out, and for which null says the same.
const NULL_IS_ABSENT: [&str; 9] = [
    "reason",
    "revision",
    "AccountLogout.app",
    "NewAppInput.default_version",
    "NewAppInput.profile",
    "NewAppInput.rate_limit",
    "NewTokenInput.days",
    "Sample.app",
    "Sample.canonical",
];

/// Every member of every body in the description. In a change of settings null removes; what it cannot remove, and what is
/// not described as nullable, refuses it.
#[tokio::test]
async fn null_removes_a_setting_or_is_refused() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Admin).await;
    let new = json!({
        "name": "Shop", "return_to": ["https://shop.example"], "profile": {"preset": "wechat"},
        "default_version": "v1", "rate_limit": "5/10",
    });
    let created = scene.post("/api/v1/apps/create", &token, new).await;
    let path = format!(
        "/api/v1/apps/{}",
        created.body["app"]["ident"].as_str().unwrap()
    );
    let document = scene.document().await;
    let schemas = &document["components"]["schemas"];
    let is_nullable = |member: &Value| {
        let of_type = member["type"].as_array().into_iter().flatten();
        let of_choice = member["oneOf"].as_array().into_iter().flatten();
        let mut kinds = of_type.chain(of_choice.map(|one| &one["type"]));
        kinds.any(|kind| kind == "null")
    };
    let (mut removed, mut refused) = (Vec::new(), 0);
    for (called, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let method = method.to_uppercase();
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            let Some(schema) = body["$ref"]
                .as_str()
                .and_then(|name| name.rsplit('/').next())
            else {
                assert_eq!(*body, Value::Null, "{called}: a body without a name");
                continue;
            };
            let url = called
                .replace("/api/v1/apps/{ident}", &path)
                .replace("{id}", "0");
            for (name, member) in schemas[schema]["properties"].as_object().unwrap() {
                let case = format!("{method} {called} {name}");
                let full_name = format!("{schema}.{name}");
                if !is_nullable(member) {
                    let call = scene
                        .call(&method, &url, &token, json!({ name: null }))
                        .await;
                    assert_eq!(call.code(), "request_malformed", "{case} {call:?}");
                    let is_for_null = ["null", "expected value"]
                        .iter()
                        .any(|why| call.text.contains(why));
                    assert!(is_for_null, "{case} {call:?}");
                    refused += 1;
                } else if schema == "Update" && !["reason", "revision"].contains(&&**name) {
                    let shown = scene.get(&path, &token).await.body;
                    let shown_as = if name == "profile" {
                        "sign_profile"
                    } else {
                        name
                    };
                    assert!(!is_empty(&shown[shown_as]), "{case} {shown}");
                    let update = json!({ "revision": shown["revision"], name: null });
                    let call = scene.call(&method, &url, &token, update).await;
                    assert_eq!(call.status, StatusCode::OK, "{case} {call:?}");
                    let after = scene.get(&path, &token).await.body;
                    assert!(is_empty(&after[shown_as]), "{case} {after}");
                    removed.push(name.clone());
                } else {
                    let names = [&**name, &*full_name];
                    let is_known = names.iter().any(|name| NULL_IS_ABSENT.contains(name));
                    assert!(is_known, "{case}: what does null mean?");
                }
            }
        }
    }
    assert_eq!(
        removed,
        ["default_version", "profile", "rate_limit", "return_to"]
    );
    assert!(refused > 10, "{refused}");
    // A part of a profile cannot be removed: only the whole is kept.
    for part in ["preset", "algorithm", "cover", "replay"] {
        let update = json!({ "revision": 9, "profile": { part: null } });
        let call = scene.post(&format!("{path}/update"), &token, update).await;
        assert_eq!(call.code(), "request_malformed", "{part} {call:?}");
    }
}

/// Whether a setting is not there.
fn is_empty(setting: &Value) -> bool {
    setting.is_null() || setting.as_array().is_some_and(Vec::is_empty)
}
