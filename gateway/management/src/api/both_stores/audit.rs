//! `/api/v1/audit`.

use signpost_store::values;

use super::*;

#[tokio::test]
async fn the_audit_has_what_tokens_did_and_is_read_by_pages() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let operator = scene.token(Role::Operator).await;
    for name in ["one", "two"] {
        let new = json!({ "name": name, "reason": "a test" });
        let created = scene.post("/api/v1/apps/create", &operator, new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
    }
    let viewer = scene.token(Role::Viewer).await;
    let get = async |query: &str| scene.get(&format!("/api/v1/audit{query}"), &viewer).await;
    let of_operator = get("?actor=the%20operator&since=1h").await;
    let items = of_operator.body["items"].as_array().unwrap();
    assert_eq!(items.len(), 2, "{of_operator:?}");
    assert_eq!(items[0]["action"], "app.create");
    assert_eq!(items[0]["origin"], "api 127.0.0.1");
    assert_eq!(items[0]["reason"], "a test");
    assert_eq!(items[0]["changes"]["name"], json!([null, "two"]));
    assert_eq!(items[0]["changes"]["key"], "changed");
    assert_eq!(of_operator.body["next"], Value::Null);

    let first = get("?limit=3").await;
    let next = first.body["next"].as_str().unwrap();
    let second = get(&format!("?limit=3&after={next}")).await;
    let all = [&first, &second].map(|page| page.body["items"].as_array().unwrap().clone());
    let actions = all.iter().flatten().map(|item| item["action"].clone());
    let actions: Vec<_> = actions.collect();
    assert_eq!(
        actions,
        ["token.create", "app.create", "app.create", "token.create"]
    );
    assert_eq!(second.body["next"], Value::Null);
    let subject = items[1]["subject"].as_str().unwrap();
    let of_subject = get(&format!("?subject={subject}")).await;
    assert_eq!(of_subject.body["items"], json!([items[1]]));

    let wrong = [
        "?limit=0",
        "?limit=1001",
        "?since=never",
        "?after=x",
        "?after=%2B1",
        "?action=x",
        "?limit=x",
    ];
    for query in wrong {
        assert_eq!(get(query).await.status, StatusCode::BAD_REQUEST, "{query}");
    }

    let (nul, percent) = (get("?subject=a%00").await, get("?actor=%2500").await);
    assert_eq!(nul.code(), "param_invalid");
    assert_eq!(percent.status, StatusCode::OK);
    let nul = scene.get("/api/v1/apps?search=%00", &viewer).await;
    assert_eq!(nul.code(), "param_invalid");

    // The response escapes what a terminal would interpret.
    let hostile = "UPDATE audit SET actor = $1";
    scene
        .store
        .execute(hostile, values!["x\u{202e}y"])
        .await
        .unwrap();
    let shown = get("").await;
    assert!(shown.text.contains(r"x\u202ey"), "{}", shown.text);
    assert_eq!(shown.body["items"][0]["actor"], "x\u{202e}y");
}
