//! The example of a bridge: what version 1's clients get from version 2, byte for byte.

use end_to_end::{
    browser::Decision,
    examples::example,
    logins::{begin_polling, confirm_polling, credential, log_in_by_polling},
    response::Response,
    signed_client::{Call, SignedClient},
    stack::Stack,
    waiting::until,
};

/// Version 5 as the example has version 1: beside the real one.
fn as_version_5() -> String {
    let example = example("gateway-bridge.toml");
    let (_, rest) = example.split_once("[versions.v1]").unwrap();
    let (version, _) = rest.split_once("[versions.v2]").unwrap();
    let version = format!("[versions.v5]{version}").replace("versions.v1.", "versions.v5.");
    let changes = version.matches("[[versions.v5.changes]]").count();
    assert_eq!(changes, 4, "{version}");
    version
}

/// All that a client gets, but what is each request's own, and the address of a description: over a bridge there is none.
fn shown(response: &Response) -> String {
    let id = response.header("x-request-id").unwrap();
    let mut headers: Vec<_> = response
        .headers
        .iter()
        .filter(|(name, _)| {
            !["date", "x-request-id", "acme-x-version", "link"].contains(&name.as_str())
        })
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    headers.sort();
    let body = response.text().replace(id, "ID");
    format!("{}\n{}\n\n{body}", response.status, headers.join("\n"))
}

/// Sends the same call to both versions, and checks that the responses are the same; once more if a second has passed,
/// or if one version was slow.
async fn is_same<'c>(name: &str, call: impl Fn() -> Call<'c>) -> String {
    until(name, || async {
        let (one, other) = (
            call().version("v1").send().await,
            call().version("v5").send().await,
        );
        assert_eq!(one.header("acme-x-version"), Some("v1"));
        assert_eq!(other.header("acme-x-version"), Some("v5"));
        if one.status != other.status && one.status.max(other.status).as_u16() >= 503 {
            return None;
        }
        let (one, other) = (shown(&one), shown(&other));
        assert_eq!(one.len(), other.len(), "{one}\n{other}");
        (one == other).then_some(one)
    })
    .await
}

#[tokio::test]
async fn version_2_gives_what_version_1_gives_byte_for_byte() {
    let stack = Stack::builder().gateway(&as_version_5()).start().await;
    let client: &SignedClient = &stack.client();
    let login = log_in_by_polling(client, "ada").await;
    let credential = credential(&login);
    let user = is_same("/user", || client.get("/user").authorization(credential)).await;
    assert!(user.contains(r#""type":"bitbucket""#), "{user}");
    for (name, problem) in [
        (
            "/user without a credential",
            is_same("/user", || client.get("/user").unsigned()).await,
        ),
        (
            "/user with a wrong one",
            is_same("/user", || client.get("/user").authorization("x")).await,
        ),
        (
            "/events",
            is_same("/events", || {
                client.get("/events").authorization(credential)
            })
            .await,
        ),
        (
            "/v1/x",
            is_same("/v1/x", || client.get("/v1/x").signed()).await,
        ),
        (
            "PUT-like",
            is_same("POST /user", || client.post("/user").signed()).await,
        ),
        (
            "/check",
            is_same("/check", || client.post("/check").param("token", "v1.x")).await,
        ),
        (
            "in Japanese",
            is_same("/check", || {
                client.post("/check").param("token", "v1.x").language("ja")
            })
            .await,
        ),
    ] {
        assert!(problem.contains("\"code\":"), "{name}: {problem}");
    }
    // A login that version 1 has begun, at each of its steps.
    let begun = begin_polling(client).await;
    let check = || client.post("/check").param("token", &begun.token);
    let pending = is_same("a pending login", check).await;
    assert!(pending.contains("pending"), "{pending}");
    let mut browser = stack.browser();
    let provider = confirm_polling(&mut browser, &begun).await;
    browser
        .decide_and_follow(&provider, "lin", Decision::Allow)
        .await;
    let complete = is_same("a complete login", check).await;
    assert!(complete.contains(r#""type":"bitbucket""#), "{complete}");
    let result = is_same("its result", || {
        client.post("/user/login").param("token", &begun.token)
    })
    .await;
    assert!(result.contains(r#""type":"bitbucket""#), "{result}");
}
