//! Each fault of the provider fails the login, with a reason and within the deadline. CONTRACT 8.

use std::time::{Duration, Instant};

use end_to_end::{
    browser::{Browser, Decision},
    logins::{begin_polling, check, confirm_polling, log_in_by_redirect},
    program::Program,
    stack::Stack,
    waiting::until,
};
use sandbox_provider::user::User;

/// More than the deadline for a login's provider calls, and less than the 30 s of a slow answer.
const MAX_DURATION: Duration = Duration::from_secs(25);

#[tokio::test]
async fn every_fault_fails_a_redirect_login() {
    let stack = Stack::start().await;
    let mut tasks = tokio::task::JoinSet::new();
    for user in User::faulty() {
        let url = stack.url("/login");
        tasks.spawn(async move {
            let mut browser = Browser::for_data();
            let provider = browser.open(&url).await;
            let start = Instant::now();
            let failed = browser
                .decide_and_follow(&provider, &user.name, Decision::Allow)
                .await;
            assert!(
                start.elapsed() < MAX_DURATION,
                "{}: {:?}",
                user.name,
                start.elapsed()
            );
            let (status, code) = expected(&user.name);
            failed.response.rejected(status, code);
        });
    }
    tasks.join_all().await;
    assert_eq!(
        stack.provider_counts().await["elsewhere"],
        0,
        "a redirect was followed"
    );
    let accounts = stack.store().query("SELECT count(*) FROM accounts");
    assert_eq!(accounts.number(), 0);
}

#[tokio::test]
async fn every_fault_fails_a_polling_login() {
    let stack = Stack::start().await;
    let mut tasks = tokio::task::JoinSet::new();
    for user in User::faulty() {
        let client = stack.client();
        tasks.spawn(async move {
            let begun = begin_polling(&client).await;
            let mut browser = Browser::default();
            let provider = confirm_polling(&mut browser, &begun).await;
            let page = browser
                .decide_and_follow(&provider, &user.name, Decision::Allow)
                .await;
            let media = page.response.header("content-type").unwrap();
            assert!(media.starts_with("text/html"), "{}: {media}", user.name);
            let failed = check(&client, &begun.token).await;
            assert_eq!(failed["status"], "failed", "{}: {failed}", user.name);
            assert_eq!(
                failed["reason"],
                expected(&user.name).1,
                "{}: {failed}",
                user.name
            );
            let (status, code) = expected(&user.name);
            let fetched = client
                .post("/user/login")
                .param("token", &begun.token)
                .send()
                .await;
            fetched.problem(status, code);
        });
    }
    tasks.join_all().await;
    assert_eq!(
        stack.provider_counts().await["elsewhere"],
        0,
        "a redirect was followed"
    );
}

#[tokio::test]
async fn an_unreachable_provider_fails_the_login() {
    let mut stack = Stack::start().await;
    let client = stack.client();
    let mut browser = Browser::for_data();
    let provider = browser.open(&stack.url("/login")).await;
    let back = browser.decide(&provider, "ada", Decision::Allow).await;
    stack.kill(Program::Provider);
    browser
        .follow(back)
        .await
        .response
        .rejected(502, "provider_failed");
    // Once the provider is back, logins succeed.
    stack.restart(Program::Provider).await;
    let login = log_in_by_redirect(&client, "ada").await;
    assert_eq!(login["created"], true);
}

#[tokio::test]
async fn a_fault_redirects_to_return_to_with_an_error() {
    let config = "[application]\nreturn_to = [\"https://app.example\"]";
    let stack = Stack::builder().backends(config).start().await;
    let mut browser = Browser::default();
    let url = stack
        .client()
        .login_url(&[("return_to", "https://app.example/done")]);
    let provider = browser.open(&url).await;
    let back = browser
        .decide_and_follow(&provider, "profile-500", Decision::Allow)
        .await;
    assert_eq!(
        back.response.location(),
        "https://app.example/done?error=provider_failed"
    );
}

#[tokio::test]
async fn a_slow_provider_delays_no_other_login() {
    let stack = Stack::start().await;
    // On a busy machine, a login can take longer than the timeout of the slow one.
    for _ in 0..3 {
        let before = stack.provider_counts().await["token"].clone();
        let mut slow = Browser::for_data();
        let provider = slow.open(&stack.url("/login")).await;
        let waiting = tokio::spawn(async move {
            slow.decide_and_follow(&provider, "token-slow", Decision::Allow)
                .await
        });
        until("the slow exchange to begin", || async {
            (stack.provider_counts().await["token"] != before).then_some(())
        })
        .await;
        log_in_by_redirect(&stack.client(), "ada").await;
        let is_in_time = !waiting.is_finished();
        let response = waiting.await.unwrap().response;
        response.rejected(504, "provider_timeout");
        if is_in_time {
            return;
        }
    }
    panic!("the other login was slow, too");
}

fn expected(user: &str) -> (u16, &'static str) {
    if user.ends_with("-slow") || user.ends_with("-dribbled") {
        (504, "provider_timeout")
    } else {
        (502, "provider_failed")
    }
}

#[tokio::test]
async fn two_provider_calls_share_one_deadline() {
    let stack = Stack::builder()
        .provider(&["--slow-seconds=7"])
        .start()
        .await;
    let mut browser = Browser::for_data();
    let provider = browser.open(&stack.url("/login")).await;
    let start = Instant::now();
    let failed = browser
        .decide_and_follow(&provider, "both-slow", Decision::Allow)
        .await;
    failed.response.rejected(504, "provider_timeout");
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}
