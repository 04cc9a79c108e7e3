//! Why a request was rejected, asked for at any gateway of the store.

use end_to_end::{
    program::{Program, output_text},
    recording_backend::RecordingBackend,
    signed_client::http_client,
    stack::Stack,
    waiting::until,
};
use serde_json::{Value, json};

#[tokio::test]
async fn a_rejected_request_is_explained_whichever_gateway_has_rejected_it() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend).multi();
    let stack = stack.gateway("[management.api]\n[log]\nfilter = \"warn\"");
    let stack = stack.several(Program::Gateway, 2).start().await;
    let app = stack.create_application("shop", &[]);
    let token = stack.create_token("viewer");
    until("both gateways to be listed", || async {
        let output = stack.command(&["gateways", "--json"]);
        let all: Vec<Value> = serde_json::from_slice(&output.stdout).ok()?;
        (all.len() == 2).then_some(())
    })
    .await;
    let call = stack.client_of_at(&app, 1);
    let call = call.post("/orders").param("note", "privatewords");
    let call = call.query("page", "17").query("bare", "");
    let rejected = call.sign_given(&"0".repeat(32)).send().await;
    let id = rejected.headers["x-request-id"]
        .to_str()
        .unwrap()
        .to_owned();
    rejected.problem(403, "sign_mismatch");
    let path = format!("rejections/{id}");
    // By the API of both: the first asks the second.
    for number in [0, 1] {
        let found = stack.call_api(number, &path, &token, None).await;
        let found: Value = found.json().await.unwrap();
        assert_eq!(found["code"], "sign_mismatch", "{found}");
        assert_eq!(found["app"], app.ident.as_str());
        let params = found["params"].as_array().unwrap().iter();
        let of_name = |name: &str| params.clone().find(|one| one["name"] == name).cloned();
        let note = json!({ "name": "note", "length": 12, "in_form": true });
        assert_eq!(of_name("note"), Some(note), "{found}");
        let page = json!({ "name": "page", "length": 2, "in_form": false });
        assert_eq!(of_name("page"), Some(page), "{found}");
        let text = found.to_string();
        assert!(
            !text.contains("private") && !text.contains("17\""),
            "{text}"
        );
    }
    // By the command, for people and for programs.
    let explained = stack.command(&["explain", &id]);
    assert!(explained.status.success(), "{}", output_text(&explained));
    let text = output_text(&explained);
    for part in [
        "POST /orders",
        &*app.ident,
        "403 sign_mismatch",
        "hint_key_or_value",
        "note: 12 bytes, in the form",
        "page: 2 bytes, in the query",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let translated = stack.command(&["explain", &id, "--language", "ja"]);
    assert!(
        output_text(&translated).contains("署名"),
        "{}",
        output_text(&translated)
    );
    let json = stack.command(&["explain", &id, "--json"]);
    let found: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(found["request_id"], id.as_str());
    // One that no gateway has rejected.
    let unknown = "0123456789abcdef0123456789abcdef";
    let response = http_client().get(stack.api_url(0, &format!("rejections/{unknown}")));
    let response = response.bearer_auth(&token).send().await.unwrap();
    assert_eq!(response.status(), 404);
    let missing = stack.command(&["explain", unknown]);
    assert_eq!(missing.status.code(), Some(1));
    let text = output_text(&missing);
    assert!(
        text.contains("no gateway has rejected this request lately"),
        "{text}"
    );
}

#[tokio::test]
async fn without_a_store_the_access_log_is_named() {
    let (stack, _backend) = Stack::recording().await;
    let explained = stack.command(&["explain", "0123"]);
    assert_eq!(explained.status.code(), Some(1));
    let text = output_text(&explained);
    assert!(text.contains("access log"), "{text}");
}
