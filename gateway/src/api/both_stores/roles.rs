//! Which role each route needs. The description in the tree has every route: it is the one that is served.

use std::fs;

use super::*;

/// The description in the tree, which shows a change of any route or role.
const DESCRIPTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");

#[tokio::test]
async fn the_description_in_the_tree_is_the_one_that_is_served() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let served = serde_json::to_string_pretty(&scene.document().await).unwrap() + "\n";
    if fs::read_to_string(DESCRIPTION).unwrap_or_default() != served {
        let new = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/openapi.json");
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
