//! Floods of unsigned logins and forged callbacks do not affect other clients. CONTRACT 8.

use end_to_end::{
    browser::{Browser, Decision, param},
    logins::{begin_polling, check, confirm_polling, log_in_by_polling, log_in_by_redirect},
    stack::Stack,
};
use tokio::task::JoinSet;

/// Lets a test choose the client's address with `X-Forwarded-For`.
const PROXY: &str = "trusted_proxies = [\"127.0.0.1\"]";

fn rows(stack: &Stack) -> i64 {
    stack.store().query("SELECT count(*) FROM logins").number()
}

/// Begins an unsigned login. Returns a forged callback for it, and its cookie.
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
        format!("/login?state={state}&code=forged"),
        cookie.to_owned(),
    )
}

#[tokio::test]
async fn forged_callbacks_from_one_address_are_limited() {
    // By default 200 and 20 a second, which a busy machine may not reach.
    let slow = "[limits]\ncallbacks_per_second = 1\ncallbacks_burst = 50";
    let stack = Stack::builder().gateway(PROXY).backends(slow);
    let stack = stack.start().await;
    let mut refused = None;
    for _ in 0..300 {
        let (callback, cookie) = begin(&stack, "192.0.2.1").await;
        let response = stack
            .client()
            .get(&callback)
            .unsigned()
            .header("X-Forwarded-For", "192.0.2.1")
            .header("Cookie", &cookie)
            .send()
            .await;
        if response.status == 429 {
            refused = Some(response);
            break;
        }
        assert_eq!(response.status, 502, "{}", response.summary());
    }
    let refused = refused.expect("a limit");
    refused.problem(429, "rate_limited");
    let retry_after: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&retry_after), "{retry_after}");
    let exchanges = stack.provider_counts().await["token"].as_u64().unwrap();
    assert!((50..300).contains(&exchanges), "{exchanges}");
    assert_eq!(u64::try_from(rows(&stack)).unwrap(), exchanges);
    // Another address can still log in, and signed requests are not limited.
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
async fn unsigned_logins_are_not_stored_and_block_no_other_client() {
    let stack = Stack::builder().gateway(PROXY).start().await;
    let client = stack.client();
    let mut flood = JoinSet::new();
    for task in 0..8 {
        let client = client.clone();
        flood.spawn(async move {
            for network in 0..250 {
                let address = format!("2001:db8:0:{:x}::1", task * 1000 + network % 25);
                let call = client.get("/login").header("X-Forwarded-For", &address);
                let status = call.send().await.status;
                assert!(matches!(status.as_u16(), 302 | 429), "{status}");
            }
        });
    }
    // A login succeeds during the flood, and another after it.
    log_in_by_polling(&client, "ada").await;
    while let Some(ended) = flood.join_next().await {
        ended.unwrap();
    }
    let before = rows(&stack);
    assert_eq!(before, 1, "only the signed login is stored");
    client.post("/login").signed().send().await.ok();
    log_in_by_redirect(&client, "grace").await;
    assert_eq!(rows(&stack), before + 2);
}

#[tokio::test]
async fn an_application_over_its_login_limit_gets_retry_after() {
    let limits = "[limits]\nstarts_per_second = 1\nstarts_burst = 3";
    let stack = Stack::builder().backends(limits).start().await;
    let client = stack.client();
    let starts = (0..20).map(|_| {
        let client = client.clone();
        async move { client.post("/login").signed().send().await }
    });
    let responses = starts.collect::<JoinSet<_>>().join_all().await;
    let (begun, limited): (Vec<_>, Vec<_>) = responses.iter().partition(|one| one.status == 200);
    assert!(begun.len() >= 3, "{}", begun.len());
    let response = limited.first().expect("more than the burst");
    response.problem(429, "rate_limited");
    assert_eq!(response.header("retry-after"), Some("1"));
    // Logins that browsers begin do not count.
    log_in_by_redirect(&client, "ada").await;
}

/// v2 checks each login, v1 completes it, and v2 redeems it.
#[tokio::test]
async fn a_login_completed_at_one_backend_is_complete_at_every_backend() {
    let stack = Stack::start().await;
    let client = stack.client();
    for number in 0..20 {
        let begun = begin_polling(&client).await;
        let call = client.post("/check").version("v2");
        let pending = call.param("token", &begun.token).send().await;
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
