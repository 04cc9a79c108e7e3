//! Strangers begin logins and make up callbacks, as many as they can. CONTRACT 8: nobody else notices.

use end_to_end::{
    browser::{Browser, Decision, param},
    logins::{begin_polling, check, confirm_polling, log_in_by_polling, log_in_by_redirect},
    stack::Stack,
};
use tokio::task::JoinSet;

/// Browsers in other networks come through this proxy, as far as the gateway knows.
const PROXY: &str = "trusted_proxies = [\"127.0.0.1\"]";

fn rows(stack: &Stack) -> i64 {
    stack.store().query("SELECT count(*) FROM logins").number()
}

/// A stranger begins a login: the callback that a provider would send it back with, and its cookie.
async fn begin(stack: &Stack, address: &str) -> (String, String) {
    let begun = stack
        .client()
        .get("/login")
        .header("X-Forwarded-For", address)
        .send()
        .await;
    assert_eq!(begun.status, 302, "{}", begun.summary());
    let provider = begun.location().parse().unwrap();
    let state = param(&provider, "state").unwrap();
    let cookie = begun.header("set-cookie").unwrap();
    let (cookie, _) = cookie.split_once(';').unwrap();
    (
        format!("/login?state={state}&code=made-up"),
        cookie.to_owned(),
    )
}

#[tokio::test]
async fn made_up_callbacks_of_one_address_are_few() {
    let stack = Stack::builder().gateway(PROXY).start().await;
    let mut refused = None;
    for _ in 0..300 {
        let (callback, cookie) = begin(&stack, "192.0.2.1").await;
        let answer = stack
            .client()
            .get(&callback)
            .unsigned()
            .header("X-Forwarded-For", "192.0.2.1")
            .header("Cookie", &cookie)
            .send()
            .await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
        assert_eq!(answer.status, 502, "{}", answer.summary());
    }
    let refused = refused.expect("a limit is on by default");
    refused.problem(429, "rate_limited");
    let retry_after: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&retry_after), "{retry_after}");
    let asked = stack.provider_counts().await["token"].as_u64().unwrap();
    assert!((100..300).contains(&asked), "{asked}");
    assert_eq!(u64::try_from(rows(&stack)).unwrap(), asked);
    // Somebody else is let in, and what applications sign is no business of a stranger's.
    let begun = begin_polling(&stack.client()).await;
    let mut browser = Browser::default();
    let provider = confirm_polling(&mut browser, &begun).await;
    browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    let checked = check(&stack.client(), &begun.token).await;
    assert_eq!(checked["status"], "complete", "{checked}");
}

#[tokio::test]
async fn logins_that_strangers_begin_are_not_stored_and_refuse_nobody() {
    let stack = Stack::builder().gateway(PROXY).start().await;
    let client = stack.client();
    let mut flood = JoinSet::new();
    for stranger in 0..8 {
        let client = client.clone();
        flood.spawn(async move {
            for network in 0..250 {
                let address = format!("2001:db8:0:{:x}::1", stranger * 1000 + network % 25);
                let call = client.get("/login").header("X-Forwarded-For", &address);
                let status = call.send().await.status;
                assert!(matches!(status.as_u16(), 302 | 429), "{status}");
            }
        });
    }
    // Meanwhile, and after it.
    log_in_by_polling(&client, "ada").await;
    while let Some(ended) = flood.join_next().await {
        ended.unwrap();
    }
    let before = rows(&stack);
    assert_eq!(before, 1, "only what was signed is stored");
    client.post("/login").signed().send().await.ok();
    log_in_by_redirect(&client, "grace").await;
    assert_eq!(rows(&stack), before + 2);
}

#[tokio::test]
async fn an_application_that_begins_too_many_logins_is_told_when_it_may_again() {
    let limits = "[limits]\nstarts_per_second = 1\nstarts_burst = 3";
    let stack = Stack::builder().backends(limits).start().await;
    let client = stack.client();
    for _ in 0..3 {
        begin_polling(&client).await;
    }
    let answer = client.post("/login").signed().send().await;
    answer.problem(429, "rate_limited");
    assert_eq!(answer.header("retry-after"), Some("1"));
    // What browsers begin is not counted with it.
    log_in_by_redirect(&client, "ada").await;
}

/// Each login is looked at by one process, completed at another, and then asked for at the first.
#[tokio::test]
async fn once_one_backend_says_complete_every_backend_does() {
    let stack = Stack::start().await;
    let client = stack.client();
    for number in 0..20 {
        let begun = begin_polling(&client).await;
        let asked = client.post("/check").version("v2");
        let pending = asked.param("token", &begun.token).send().await;
        assert_eq!(pending.ok()["status"], "pending");
        let mut browser = Browser::default();
        let provider = confirm_polling(&mut browser, &begun).await;
        browser
            .decide_and_follow(&provider, "ada", Decision::Allow)
            .await;
        assert_eq!(check(&client, &begun.token).await["status"], "complete");
        let redeem = client.post("/user/login").version("v2");
        let redeemed = redeem.param("token", &begun.token).send().await;
        assert_eq!(redeemed.status, 200, "{number}: {}", redeemed.summary());
    }
}
