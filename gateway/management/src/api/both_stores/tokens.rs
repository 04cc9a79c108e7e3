//! `/api/v1/tokens` and `/api/v1/whoami`.

use super::*;

#[tokio::test]
async fn an_admin_creates_and_revokes_tokens_and_everyone_knows_who_they_are() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let admin = scene.token(Role::Admin).await;
    let create = async |body: Value| scene.post("/api/v1/tokens/create", &admin, body).await;
    let created = create(json!({ "name": "ci", "role": "operator", "days": 7 })).await;
    assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
    let (token, secret) = (
        &created.body["token"],
        created.body["secret"].as_str().unwrap(),
    );
    assert_eq!(token["created_by"], "the admin");
    let who = scene.get("/api/v1/whoami", secret).await;
    for member in ["id", "name", "role", "expires_at"] {
        assert_eq!(who.body[member], token[member]);
    }
    let taken = create(json!({ "name": "ci", "role": "viewer" })).await;
    assert_eq!((taken.status.as_u16(), taken.code()), (409, "token_taken"));
    for wrong in [
        json!({}),
        json!({ "name": "a" }),
        json!({ "name": "a", "role": "root" }),
        json!({ "name": "", "role": "viewer" }),
        json!({ "name": "a", "role": "viewer", "days": 0 }),
        json!({ "name": "a", "role": "viewer", "days": 367 }),
        json!({ "name": "a", "role": "viewer", "days": u64::MAX }),
        json!({ "name": "a", "role": "viewer", "end": 1 }),
        json!({ "name": "a", "role": "viewer", "reason": "a\u{202e}" }),
    ] {
        let refused = create(wrong.clone()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{wrong}");
    }

    let listed = scene.get("/api/v1/tokens?limit=1", secret).await;
    assert_eq!(listed.body["items"][0]["name"], "the admin");
    let next = listed.body["next"].as_str().unwrap();
    let listed = scene
        .get(&format!("/api/v1/tokens?after={next}"), secret)
        .await;
    assert_eq!(listed.body["items"][0]["id"], token["id"]);
    assert_eq!(listed.body["next"], Value::Null);
    assert!(!listed.text.contains("sp_"), "{}", listed.text);

    let path = format!("/api/v1/tokens/{}/revoke", token["id"]);
    let revoked = scene.post(&path, &admin, json!({ "reason": "lost" })).await;
    assert!(revoked.body["revoked_at"].is_string(), "{revoked:?}");
    assert_eq!(
        scene.get("/api/v1/whoami", secret).await.code(),
        "token_invalid"
    );
    for unknown in ["0", "99", "x", "+1", "99999999999999999999"] {
        let path = format!("/api/v1/tokens/{unknown}/revoke");
        let refused = scene.post(&path, &admin, json!({})).await;
        assert_eq!(refused.code(), "token_not_found", "{unknown}");
    }
}
