//! Which role each route needs. The table is complete: the routes are those of the API's description.

use signpost_store::testing::TestStore;

use super::*;

/// Each route, and the role that it needs.
const ROUTES: &[(&str, &str, Role)] = &[
    ("GET", "/api/v1/apps", Role::Viewer),
    ("GET", "/api/v1/apps/export", Role::Viewer),
    ("GET", "/api/v1/apps/{ident}", Role::Viewer),
    ("GET", "/api/v1/audit", Role::Viewer),
    ("GET", "/api/v1/config", Role::Viewer),
    ("GET", "/api/v1/config/check", Role::Viewer),
    ("GET", "/api/v1/events", Role::Viewer),
    ("GET", "/api/v1/tokens", Role::Viewer),
    ("GET", "/api/v1/versions", Role::Viewer),
    ("GET", "/api/v1/versions/report", Role::Viewer),
    ("POST", "/api/v1/config/reload", Role::Operator),
    ("GET", "/api/v1/whoami", Role::Viewer),
    ("POST", "/api/v1/apps/create", Role::Operator),
    ("POST", "/api/v1/apps/import", Role::Operator),
    ("POST", "/api/v1/apps/{ident}/delete", Role::Operator),
    ("POST", "/api/v1/apps/{ident}/disable", Role::Operator),
    ("POST", "/api/v1/apps/{ident}/enable", Role::Operator),
    ("POST", "/api/v1/apps/{ident}/end-overlap", Role::Operator),
    ("POST", "/api/v1/apps/{ident}/rotate", Role::Operator),
    ("POST", "/api/v1/apps/{ident}/update", Role::Operator),
    ("POST", "/api/v1/tokens/create", Role::Admin),
    ("POST", "/api/v1/tokens/{id}/revoke", Role::Admin),
    ("GET", "/api/v1/backends", Role::Viewer),
    ("POST", "/api/v1/backends/drain", Role::Operator),
    ("POST", "/api/v1/backends/undrain", Role::Operator),
    ("GET", "/api/v1/gateways", Role::Viewer),
];

/// The routes of the description, with their roles' words.
fn described(document: &Value) -> Vec<(String, String, String)> {
    let paths = document["paths"].as_object().unwrap();
    let mut routes = Vec::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            let role = operation["x-role"].as_str().expect("each route has a role");
            routes.push((method.to_uppercase(), path.clone(), role.to_owned()));
        }
    }
    routes.sort();
    routes
}

#[tokio::test]
async fn each_route_is_in_the_table_with_its_role() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let mut expected: Vec<_> = ROUTES
        .iter()
        .map(|(method, path, role)| (*method, *path, role.as_str()))
        .map(|(method, path, role)| (method.to_owned(), path.to_owned(), role.to_owned()))
        .collect();
    expected.sort();
    assert_eq!(described(&scene.document().await), expected);
}

#[tokio::test]
async fn a_route_serves_its_role_and_those_above_it_only() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let mut tokens = Vec::new();
    for role in Role::ALL {
        tokens.push((role, scene.token(role).await));
    }
    // Wrong tokens come from several networks: none reaches its limit.
    for ((method, path, needed), network) in ROUTES.iter().zip(1..) {
        let address = SocketAddr::from(([192, 0, network, 1], 1));
        let path = path.replace("{ident}", "none").replace("{id}", "0");
        for (role, token) in &tokens {
            let called = scene.call(method, &path, token, json!({})).await;
            let case = format!("{method} {path} by {}: {}", role.as_str(), called.text);
            if role >= needed {
                let status = called.status.as_u16();
                assert!(status < 500 && ![401, 403].contains(&status), "{case}");
            } else {
                assert_eq!(called.code(), "role_insufficient", "{case}");
            }
        }
        for token in ["", "sp_", "unknown", &format!("sp_{}", "A".repeat(43))] {
            let request = Request::builder()
                .method(*method)
                .uri(&path)
                .header(header::AUTHORIZATION, format!("Bearer {token}"))
                .extension(ConnectInfo(address));
            let called = scene.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(called.code(), "token_invalid", "{method} {path} {token}");
        }
        let request = Request::builder().method(*method).uri(&path);
        let called = scene.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(called.code(), "token_missing", "{method} {path}");
    }
}

#[tokio::test]
async fn a_token_is_rejected_once_it_is_revoked_or_has_ended() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let admin = scene.token(Role::Admin).await;
    assert_eq!(
        scene.get("/api/v1/apps", &admin).await.status,
        StatusCode::OK
    );
    let token = scene
        .tokens
        .list(None, 1)
        .await
        .unwrap()
        .tokens
        .pop()
        .unwrap();
    scene
        .tokens
        .revoke(token.id, author(), SystemClock.now())
        .await
        .unwrap();
    assert_eq!(
        scene.get("/api/v1/apps", &admin).await.code(),
        "token_invalid"
    );
    let at = SystemClock.now();
    let ended = NewToken {
        name: "short".to_owned(),
        role: Role::Admin,
        expires_at: at.plus(Duration::from_millis(1)),
    };
    let (_, ended) = scene.tokens.create(ended, author(), at).await.unwrap();
    while SystemClock.now() <= at.plus(Duration::from_millis(1)) {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        scene.get("/api/v1/apps", ended.expose()).await.code(),
        "token_invalid"
    );
}
