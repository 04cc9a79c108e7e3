//! Which version serves a request, and how the response reports it. CONTRACT 5.

use end_to_end::{
    browser::Decision,
    logins::{PollingLogin, begin_polling, check, confirm_polling, log_in_by_redirect},
    recording_backend::RecordingBackend,
    stack::Stack,
};

#[tokio::test]
async fn the_header_names_the_version() {
    let one = RecordingBackend::start().await;
    let two = RecordingBackend::start().await;
    let second = format!("[versions.v2]\nbackend = \"{}\"", two.address());
    let stack = Stack::builder()
        .in_front_of(&one)
        .gateway(&second)
        .start()
        .await;
    let client = stack.client();
    for (header, version, source) in [
        (None, "v1", "default"),
        (Some("v1"), "v1", "header"),
        (Some("v2"), "v2", "header"),
        (Some("V2"), "v2", "header"),
        (Some("v3"), "v1", "unknown"),
        (Some("v2 "), "v2", "header"),
        (Some("v"), "v1", "unknown"),
        (Some("v1,v2"), "v1", "unknown"),
        (Some("../v2"), "v1", "unknown"),
    ] {
        let call = client.get("/x");
        let call = if let Some(header) = header {
            call.version(header)
        } else {
            call
        };
        let response = call.send().await;
        response.ok();
        assert_eq!(
            response.header("acme-x-version"),
            Some(version),
            "{header:?}"
        );
        assert_eq!(
            response.header("acme-x-version-source"),
            Some(source),
            "{header:?}"
        );
    }
    assert_eq!((one.requests().len(), two.requests().len()), (6, 3));
}

#[tokio::test]
async fn an_unknown_version_can_be_rejected() {
    let backend = RecordingBackend::start().await;
    let strict = Stack::builder()
        .in_front_of(&backend)
        .gateway("unknown = \"reject\"");
    let stack = strict.start().await;
    let response = stack.client().get("/x").version("v9").send().await;
    let problem = response.problem(400, "version_unknown");
    let text = problem.to_string();
    assert!(text.contains("v1") && text.contains("v2"), "{text}");
    assert_eq!(backend.connections(), 0);
    stack.client().get("/x").send().await.ok();
    stack.client().get("/x").version("v2").send().await.ok();
}

#[tokio::test]
async fn the_default_version_can_be_configured() {
    let backend = RecordingBackend::start().await;
    let other = Stack::builder()
        .in_front_of(&backend)
        .gateway("default_version = \"v2\"");
    let stack = other.start().await;
    let response = stack.client().get("/x").send().await;
    assert_eq!(response.header("acme-x-version"), Some("v2"));
}

#[tokio::test]
async fn an_account_has_the_member_names_of_the_version() {
    let stack = Stack::start().await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let credential = login["authorization"].as_str().unwrap();
    assert_eq!(login["account"]["type"], "bitbucket", "{login}");
    let one = client
        .get("/user")
        .authorization(credential)
        .send()
        .await
        .ok();
    let two = client
        .get("/user")
        .version("v2")
        .authorization(credential)
        .send()
        .await
        .ok();
    assert_eq!(
        (&one["type"], one.get("provider")),
        (&"bitbucket".into(), None),
        "{one}"
    );
    assert_eq!(
        (&two["provider"], two.get("type")),
        (&"bitbucket".into(), None),
        "{two}"
    );
    assert_eq!(one["username"], two["username"]);
    assert_eq!(one["created_at"], two["created_at"]);
}

#[tokio::test]
async fn a_login_begun_on_v2_returns_to_v2() {
    let stack = Stack::start().await;
    let client = stack.client();
    let mut browser = stack.browser();
    let begun = client.post("/login").version("v2").signed().send().await;
    assert_eq!(begun.header("acme-x-version"), Some("v2"));
    let begun = PollingLogin::from_response(&begun.ok());
    assert!(begun.token.starts_with("v2."));
    let provider = confirm_polling(&mut browser, &begun).await;
    let done = browser
        .decide_and_follow(&provider, "grace", Decision::Allow)
        .await;
    assert_eq!(done.response.status, 200, "{}", done.text());
    assert_eq!(done.response.header("acme-x-version"), Some("v2"));
    assert_eq!(done.response.header("acme-x-version-source"), Some("state"));
    // Each version can check any token, and answers in its own format.
    let on_one = check(&client, &begun.token).await;
    assert_eq!(on_one["login"]["account"]["type"], "bitbucket", "{on_one}");
    let on_two = client
        .post("/check")
        .version("v2")
        .param("token", &begun.token)
        .send()
        .await
        .ok();
    assert_eq!(
        on_two["login"]["account"]["provider"], "bitbucket",
        "{on_two}"
    );
    assert_eq!(
        on_one["login"]["authorization"],
        on_two["login"]["authorization"]
    );
}

#[tokio::test]
async fn a_login_begun_on_v1_can_be_confirmed_where_v2_is_the_default() {
    let stack = Stack::builder()
        .gateway("default_version = \"v2\"")
        .start()
        .await;
    let client = stack.client();
    let begun = client
        .post("/login")
        .version("v1")
        .signed()
        .send()
        .await
        .ok();
    let begun = PollingLogin::from_response(&begun);
    let page = stack.browser().open(&begun.authorize_url).await;
    assert_eq!(page.response.header("acme-x-version"), Some("v1"));
    assert!(begin_polling(&client).await.token.starts_with("v2."));
}

#[tokio::test]
async fn both_versions_work_in_one_process() {
    let stack = Stack::builder().internal_forwarding().start().await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "lin").await;
    let credential = login["authorization"].as_str().unwrap();
    assert_eq!(login["account"]["type"], "bitbucket", "{login}");
    let two = client
        .get("/user")
        .version("v2")
        .authorization(credential)
        .send()
        .await;
    assert_eq!(two.ok()["provider"], "bitbucket");
    assert_eq!(two.header("acme-x-version"), Some("v2"));
    let begun = client
        .post("/login")
        .version("v2")
        .signed()
        .send()
        .await
        .ok();
    assert!(
        begun["token"].as_str().unwrap().starts_with("v2."),
        "{begun}"
    );
}
