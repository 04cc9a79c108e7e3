//! The role that each route needs. The description in the tree has every route, since the gateway serves the same
//! description.

use std::fs;

use super::*;

/// The description in the tree, which shows a change of any route or role.
const DESCRIPTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi.json");

#[tokio::test]
async fn the_description_in_the_tree_is_the_one_that_is_served() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let served = serde_json::to_string_pretty(&scene.document().await).unwrap() + "\n";
    if fs::read_to_string(DESCRIPTION).unwrap_or_default() != served {
        let new = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/openapi.json");
        fs::write(new, served).unwrap();
        panic!("the API has changed: look at the difference, then cp {new} {DESCRIPTION}");
    }
}

#[tokio::test]
async fn a_route_serves_its_role_and_those_above_it_only() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let mut tokens = Vec::new();
    for role in Role::ALL {
        tokens.push((role, scene.token(role).await));
    }
    let wrong = format!("sp_{}", "A".repeat(43));
    let document = fs::read(DESCRIPTION).unwrap();
    let document: Value = serde_json::from_slice(&document).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let routes = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (method.to_uppercase(), path, operation))
    });
    for (method, path, operation) in routes {
        let needed = operation["x-role"].as_str().expect("each route has a role");
        let needed: Role = needed.parse().unwrap();
        let path = path.replace("{ident}", "none").replace("{id}", "0");
        let path = path.replace("{request_id}", "none");
        for (role, token) in &tokens {
            let called = scene.call(&method, &path, token, json!({})).await;
            let case = format!("{method} {path} by {}: {}", role.as_str(), called.text);
            if *role >= needed {
                let status = called.status.as_u16();
                assert!(status < 500 && ![401, 403].contains(&status), "{case}");
            } else {
                assert_eq!(called.code(), "role_insufficient", "{case}");
            }
        }
        // Of many, most are over the limit.
        let refused = scene.call(&method, &path, &wrong, json!({})).await;
        let is_refused = ["token_invalid", "rate_limited"].contains(&refused.code());
        assert!(is_refused, "{method} {path}: {}", refused.text);
    }
}

/// The console's application as a line of an import.
fn console_line(origin: &str) -> String {
    json!({ "ident": CONSOLE, "key": "00112233445566778899aabbccddeeff", "name": "Console", "return_to": [origin] })
        .to_string()
}

#[tokio::test]
async fn only_an_admin_changes_the_application_of_the_console() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let [viewer, operator, admin] = [Role::Viewer, Role::Operator, Role::Admin];
    let import = async |role, origin: &str| {
        let (path, lines) = ("/api/v1/apps/import", console_line(origin));
        let jsonl = [("content-type", "application/jsonl")];
        let token = scene
            .token_of(&format!("{}{origin}", role as u8), role)
            .await;
        scene
            .send(request("POST", path, &token, &jsonl, lines))
            .await
    };
    // Before it exists, its creator would have its key.
    let refused = import(operator, "https://attacker.example").await;
    assert_eq!(refused.code(), "import_invalid");
    let problems = refused.body["problems"].to_string();
    assert!(
        problems.contains("line 1: ident: only an admin"),
        "{problems}"
    );
    assert_eq!(
        import(admin, "https://gateway.example").await.status,
        StatusCode::OK
    );
    let operators = scene.token(operator).await;
    let created = scene.post("/api/v1/apps/create", &operators, json!({ "name": "Shop" }));
    let other = created.await.body["app"]["ident"]
        .as_str()
        .unwrap()
        .to_owned();
    let viewers = scene.token(viewer).await;
    let admins = scene.token(admin).await;
    let document = scene.document().await;
    let paths = document["paths"].as_object().unwrap().keys();
    let changes: Vec<_> = paths
        .filter(|path| path.contains("/apps/{ident}/"))
        .filter(|path| document["paths"][path.as_str()]["post"].is_object())
        .collect();
    assert!(changes.len() >= 7, "{changes:?}");
    let body =
        |revision: i64| json!({ "revision": revision, "return_to": ["https://attacker.example"] });
    for path in &changes {
        for ident in [CONSOLE, "%63onsole"] {
            let path = path.replace("{ident}", ident);
            for (token, needed) in [(&viewers, "admin"), (&operators, "admin")] {
                for body in [body(1), json!({ "revision": 1 }), json!({})] {
                    let called = scene.post(&path, token, body).await;
                    assert_eq!(
                        called.code(),
                        "role_insufficient",
                        "{path}: {}",
                        called.text
                    );
                    assert!(called.text.contains(needed), "{}", called.text);
                }
            }
        }
        // Of another one, the same token passes.
        let called = scene
            .post(&path.replace("{ident}", &other), &operators, json!({}))
            .await;
        assert_ne!(
            called.code(),
            "role_insufficient",
            "{path}: {}",
            called.text
        );
    }
    let shown = scene.get("/api/v1/apps/console", &viewers).await;
    assert_eq!(shown.body["return_to"], json!(["https://gateway.example"]));
    assert_eq!(shown.body["revision"], 1);
    for name in ["rotate", "end-overlap", "disable", "enable", "update"] {
        let path = format!("/api/v1/apps/console/{name}");
        let revision = scene.get("/api/v1/apps/console", &viewers).await.body["revision"].clone();
        let body = match name {
            "update" => json!({ "revision": revision, "name": "The console" }),
            _ => json!({ "revision": revision }),
        };
        let called = scene.post(&path, &admins, body).await;
        assert_eq!(called.status, StatusCode::OK, "{path}: {}", called.text);
    }
}
