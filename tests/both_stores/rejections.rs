//! Why a request was rejected, asked for at any gateway of the store.

use end_to_end::{
    port::free_address,
    program::{Program, output_text},
    recording_backend::RecordingBackend,
    signed_client::http_client,
    signer::{Profile, Values},
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
        // The gateway records it after its response, and the other one may be late to answer.
        let found = until("the rejection", || async {
            let found = stack.get_api(number, &path, &token).await;
            let found: Value = found.json().await.unwrap();
            (found["code"] == "sign_mismatch").then_some(found)
        })
        .await;
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
    // The overview names the application, once its gateway has written its row.
    until(
        "the application to be among those with rejected requests",
        || async {
            let traffic = stack.call_api(0, "traffic", &token, None).await;
            let traffic: Value = traffic.json().await.unwrap();
            let expected = json!([{ "app": app.ident, "requests": 1 }]);
            (traffic["rejected_apps"] == expected).then_some(())
        },
    )
    .await;
    // By the command, for people and for programs.
    let explained = stack.command(&["explain", &id]);
    assert!(explained.status.success(), "{}", output_text(&explained));
    let text = output_text(&explained);
    for part in [
        "POST /orders",
        &*app.ident,
        "403 sign_mismatch",
        "The signature does not match",
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
    let path = format!("rejections/{unknown}");
    let response = stack.get_api(0, &path, &token).await;
    assert_eq!(response.status(), 404);
    let missing = stack.command(&["explain", unknown]);
    assert_eq!(missing.status.code(), Some(1));
    let text = output_text(&missing);
    assert!(
        text.contains("no gateway has rejected this request lately"),
        "{text}"
    );
}

/// In each language, the words of the response; and what an operator needs besides, if it is no client's fault.
#[tokio::test]
async fn an_explanation_has_the_words_of_the_response_and_what_failed() {
    let bridge = "[versions.v8]\nbridge = 'v2'\n[[versions.v8.changes]]\nname = 'nick'\npaths = ['/user']\n\
        request = [{ rename = 'nick', to = 'name' }]\n";
    let address = free_address();
    let stack = Stack::builder().in_front_of_address(address).multi();
    let stack = stack.gateway(&format!("unknown = 'reject'\n[management.api]\n{bridge}"));
    let stack = stack.start().await;
    let app = stack.create_application("shop", &[]);
    let token = stack.create_token("viewer");
    let client = stack.client_of(&app);
    let decoding = client.with_profile(Profile {
        values: Values::Decoded,
        ..Profile::default()
    });
    let unreachable = format!("{address}: ");
    let cases = [
        (decoding.get("/user").param("name", "a b").version("v1"), ""),
        (client.get("/user").version("v9"), ""),
        (client.get("/user").param("a", "1").time("1"), ""),
        (client.get("/%00"), "character %00 at byte 2"),
        (client.get("/user").version("v2"), &*unreachable),
        (
            client
                .post("/user")
                .param("nick", "a")
                .param("name", "b")
                .version("v8"),
            "the change nick does not apply",
        ),
    ];
    for (call, error) in cases {
        let response = call.language("ja").send().await;
        let problem: Value = serde_json::from_slice(&response.body).unwrap();
        let id = problem["request_id"].as_str().unwrap();
        let explained = async |language: &str| {
            until("an explanation", || async {
                let output = stack.command(&["explain", id, "--json", "--language", language]);
                serde_json::from_slice::<Value>(&output.stdout).ok()
            })
            .await
        };
        let found = explained("ja").await;
        for (here, there) in [
            ("title", "title"),
            ("detail", "detail"),
            ("hint_text", "hint"),
        ] {
            assert_eq!(found[here], problem[there], "{found}");
        }
        assert_ne!(explained("en").await["detail"], problem["detail"]);
        match error {
            "" => assert_eq!(found["error"], Value::Null, "{found}"),
            _ => {
                let [error_of, backend] =
                    ["error", "backend"].map(|name| found[name].as_str().unwrap_or_default());
                assert!(format!("{backend}: {error_of}").contains(error), "{found}");
            }
        }
        let url = stack.api_url(0, "rejections?limit=1");
        let list = http_client()
            .get(url)
            .bearer_auth(&token)
            .header("Accept-Language", "ja");
        let list: Value = list.send().await.unwrap().json().await.unwrap();
        assert_eq!(list["items"][0]["detail"], problem["detail"], "{list}");
    }
}

#[tokio::test]
async fn without_a_store_the_access_log_is_named() {
    let (stack, _backend) = Stack::recording().await;
    let explained = stack.command(&["explain", "0123"]);
    assert_eq!(explained.status.code(), Some(1));
    let text = output_text(&explained);
    assert!(text.contains("access log"), "{text}");
}
