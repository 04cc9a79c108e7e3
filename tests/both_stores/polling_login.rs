//! Logging in by polling. CONTRACT 8.

use std::time::{Duration, Instant};

use end_to_end::{
    browser::Decision,
    logins::{begin_polling, check, confirm_polling, credential, log_in_by_polling},
    program::Program,
    response::Response,
    stack::Stack,
    waiting::until,
};
use tokio::task::JoinHandle;

#[tokio::test]
async fn a_person_logs_in_while_the_client_polls() {
    let stack = Stack::start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    assert!(begun.token.starts_with("v1."));
    assert!((541..=600).contains(&begun.expires_in));
    assert!((1..=10).contains(&begun.interval));
    assert!(
        begun
            .authorize_url
            .starts_with(&stack.url("/login?state=v1."))
    );
    assert!(!begun.authorize_url.contains(&begun.token));
    assert_ne!(begun.state(), begun.token);

    let pending = check(&client, &begun.token).await;
    assert_eq!(pending["status"], "pending", "{pending}");
    assert_eq!(pending.get("login"), None);
    assert!(
        (1..=600).contains(&pending["expires_in"].as_u64().unwrap()),
        "{pending}"
    );
    let early = client
        .post("/user/login")
        .param("token", &begun.token)
        .send()
        .await;
    early.problem(409, "login_pending");

    let mut browser = stack.browser();
    let provider = confirm_polling(&mut browser, &begun).await;
    assert_eq!(check(&client, &begun.token).await["status"], "pending");
    let done = browser
        .decide_and_follow(&provider, "grace", Decision::Allow)
        .await;
    assert_eq!(done.response.status, 200);
    assert!(
        done.response
            .header("content-type")
            .unwrap()
            .starts_with("text/html")
    );

    let complete = client
        .post("/check")
        .param("token", &begun.token)
        .send()
        .await;
    assert_eq!(complete.header("cache-control"), Some("no-store"));
    let complete = complete.ok();
    assert_eq!(complete["status"], "complete", "{complete}");
    assert!(
        (1..=120).contains(&complete["expires_in"].as_u64().unwrap()),
        "{complete}"
    );
    let login = &complete["login"];
    assert!(
        !done.text().contains(credential(login)),
        "the page shows the credential"
    );
    let account = client
        .get("/user")
        .authorization(credential(login))
        .send()
        .await
        .ok();
    assert_eq!(account, login["account"]);

    // The same result again: to GET, and from `/user/login`.
    let again = client
        .get("/check")
        .param("token", &begun.token)
        .send()
        .await
        .ok();
    assert_eq!(again["login"]["authorization"], login["authorization"]);
    let fetched = client
        .post("/user/login")
        .param("token", &begun.token)
        .send()
        .await
        .ok();
    assert_eq!(fetched["authorization"], login["authorization"]);
    assert_eq!(fetched["account"], login["account"]);
}

#[tokio::test]
async fn wait_delays_the_response_until_the_status_changes() {
    let stack = Stack::start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let mut browser = stack.browser();
    let provider = confirm_polling(&mut browser, &begun).await;
    let start = Instant::now();
    // At the other version's process, so that the change must reach it from another one.
    let waiting = check_in_background(&stack, "v2", &begun.token, "25");
    let_check_arrive(&stack, &begun.token).await;
    assert!(!waiting.is_finished(), "nothing has changed");
    browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    let response = waiting.await.unwrap();
    assert_eq!(
        response.ok()["status"],
        "complete",
        "{}",
        response.summary()
    );
    // The change ended the wait, not its time.
    assert!(start.elapsed() < Duration::from_secs(25));
}

#[tokio::test]
async fn wait_ends_when_its_time_is_up() {
    let stack = Stack::start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let start = Instant::now();
    let waiting = check_in_background(&stack, "v1", &begun.token, "5");
    let_check_arrive(&stack, &begun.token).await;
    assert_eq!(waiting.await.unwrap().ok()["status"], "pending");
    let took = start.elapsed();
    // Neither immediately nor after the maximum wait.
    assert!((4..29).contains(&took.as_secs()), "{took:?}");
    let call = client.post("/check").param("token", &begun.token);
    call.clone().param("wait", "0").send().await.ok();
    for wrong in ["31", "-1", "x", "1.5", "99999999999999999999"] {
        call.clone()
            .param("wait", wrong)
            .send()
            .await
            .problem(400, "param_invalid");
    }
}

/// Sends `/check` to one version, with `wait` in seconds.
fn check_in_background(
    stack: &Stack,
    version: &'static str,
    token: &str,
    wait: &'static str,
) -> JoinHandle<Response> {
    let (client, token) = (stack.client(), token.to_owned());
    tokio::spawn(async move {
        let call = client
            .post("/check")
            .version(version)
            .param("token", &token);
        call.param("wait", wait).send().await
    })
}

/// Gives a check sent before time to arrive: several later ones, which do not wait, are answered in turn.
async fn let_check_arrive(stack: &Stack, token: &str) {
    for _ in 0..5 {
        assert_eq!(check(&stack.client(), token).await["status"], "pending");
    }
}

#[tokio::test]
async fn deny_fails_the_login() {
    let stack = Stack::start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let mut browser = stack.browser();
    let provider = confirm_polling(&mut browser, &begun).await;
    let denied = browser
        .decide_and_follow(&provider, "ada", Decision::Deny)
        .await;
    assert!(
        denied
            .response
            .header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    let failed = check(&client, &begun.token).await;
    assert_eq!(
        (&failed["status"], &failed["reason"]),
        (&"failed".into(), &"access_denied".into())
    );
    assert_eq!(failed.get("login"), None, "{failed}");
    client
        .post("/user/login")
        .param("token", &begun.token)
        .send()
        .await
        .problem(403, "login_denied");
}

#[tokio::test]
async fn a_result_expires() {
    let short = "[login]\nclaim_ttl_seconds = 1";
    let stack = Stack::builder().backends(short).start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let mut browser = stack.browser();
    let provider = confirm_polling(&mut browser, &begun).await;
    browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    let expired = until("the result to expire", || async {
        let checked = check(&client, &begun.token).await;
        (checked["status"] == "expired").then_some(checked)
    })
    .await;
    assert_eq!(expired.get("login"), None, "{expired}");
    let late = client
        .post("/user/login")
        .param("token", &begun.token)
        .send()
        .await;
    late.problem(410, "login_expired");
}

#[tokio::test]
async fn a_backend_restart_keeps_sessions_and_pending_logins() {
    let mut stack = Stack::start().await;
    let client = stack.client();
    let login = log_in_by_polling(&client, "grace").await;
    let begun = begin_polling(&client).await;
    let mut browser = stack.browser();
    let provider = confirm_polling(&mut browser, &begun).await;
    stack.restart(Program::V1).await;
    client
        .get("/user")
        .authorization(credential(&login))
        .send()
        .await
        .ok();
    let done = browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    assert_eq!(done.response.status, 200, "{}", done.text());
    stack.restart(Program::V1).await;
    stack.restart(Program::V2).await;
    let checked = check(&client, &begun.token).await;
    assert_eq!(checked["status"], "complete", "{checked}");
    let credential = credential(&checked["login"]);
    client
        .get("/user")
        .authorization(credential)
        .send()
        .await
        .ok();
    client
        .get("/user")
        .version("v2")
        .authorization(credential)
        .send()
        .await
        .ok();
}

#[tokio::test]
async fn a_wrong_token_is_not_found() {
    let stack = Stack::start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let state = begun.state();
    let token = &begun.token;
    let tampered = format!("{}A", &token[..token.len() - 1]);
    for wrong in [
        "v1.",
        "v1.abc",
        "x",
        "",
        &state,
        &token[3..],
        &token.replace("v1.", "v2."),
        &tampered,
    ] {
        if wrong == token {
            continue;
        }
        let response = client.post("/check").param("token", wrong).send().await;
        assert!(
            response.status == 404 || (wrong.is_empty() && response.status == 400),
            "{wrong}: {}",
            response.summary()
        );
    }
    client
        .post("/check")
        .signed()
        .send()
        .await
        .problem(400, "param_missing");
    client
        .post("/user/login")
        .signed()
        .send()
        .await
        .problem(400, "param_missing");
}

#[tokio::test]
async fn a_post_right_after_a_backends_restart_succeeds() {
    let mut stack = Stack::start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    for _ in 0..3 {
        stack.restart(Program::V1).await;
        // The gateway's pool still has connections to the previous process.
        assert_eq!(check(&client, &begun.token).await["status"], "pending");
    }
}

#[tokio::test]
async fn a_login_whose_account_cannot_be_stored_fails_at_once() {
    let stack = Stack::start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    stack.store().fail_account_inserts();
    let mut browser = stack.browser();
    let provider = confirm_polling(&mut browser, &begun).await;
    let seen = browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    assert_eq!(seen.response.status, 503);
    let failed = check(&client, &begun.token).await;
    assert_eq!(
        (&failed["status"], &failed["reason"]),
        (&"failed".into(), &"provider_failed".into()),
        "{failed}"
    );
}
