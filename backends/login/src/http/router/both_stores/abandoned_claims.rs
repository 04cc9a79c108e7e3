//! Logins that a callback has claimed and, because its process was killed or lost the store, never finished.

use signpost_kit::clock::SystemClock;

use super::{
    polling::{Begun, begin, check, confirm},
    *,
};

/// Claims the login as a callback at `now` does.
async fn claim_only(setup: &Setup, now: Timestamp, until: Timestamp) {
    let (until, claimable_until) = (
        until.as_millis(),
        until.plus(Duration::from_secs(120)).as_millis(),
    );
    let expires_at = now.plus(Duration::from_secs(600)).as_millis();
    let claim = format!(
        "UPDATE logins SET status = 'exchanging', claimed_until = {until}, claimable_until = {claimable_until}, \
         expires_at = {expires_at}"
    );
    setup.store.execute(&claim).await;
}

async fn begun_and_confirmed(setup: &Setup) -> (Begun, String) {
    let begun = begin(setup).await;
    let cookie = confirm(setup, &begun).await;
    (begun, cookie)
}

/// The browser of the cookie gets a page that reloads itself; another browser, and one that takes no pages, an error.
async fn assert_is_being_completed(setup: &Setup, target: &str, cookie: &str) {
    let page = setup.browse(target, cookie).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.body);
    assert_eq!(page.header(header::REFRESH), "2");
    assert!(page.body.contains("being completed"), "{}", page.body);
    // The outcome may not be stored.
    assert!(!page.headers.contains_key(header::SET_COOKIE));
    let other = setup.browse(target, "").await;
    other.assert_problem(409, "login_used");
    let data = setup.follow(target, cookie).await;
    data.assert_problem(409, "login_used");
}

#[tokio::test]
async fn the_login_fails_when_the_claim_ends() {
    let setup = Setup::new().await;
    let (begun, cookie) = begun_and_confirmed(&setup).await;
    let now = setup.clock.now();
    claim_only(&setup, now, now.plus(Duration::from_secs(30))).await;
    let pending = serde_json::json!({"status": "pending", "expires_in": 150});
    assert_eq!(check(&setup, &begun.token).await, pending);
    assert_is_being_completed(&setup, &format!("/login?state={}", begun.state), &cookie).await;
    setup.later(30);
    let failed =
        serde_json::json!({"status": "failed", "expires_in": 120, "reason": "provider_failed"});
    assert_eq!(check(&setup, &begun.token).await, failed);
    let user_login = format!("/user/login?token={}", begun.token);
    setup
        .call("POST", &user_login, &[])
        .await
        .assert_problem(502, "provider_failed");
    let callback = format!("/login?state={}&code=me", begun.state);
    setup
        .browse(&callback, &cookie)
        .await
        .assert_problem(502, "provider_failed");
    setup.later(120);
    let expired = serde_json::json!({"status": "expired", "expires_in": 0});
    assert_eq!(check(&setup, &begun.token).await, expired);
}

#[tokio::test]
async fn a_second_callback_of_a_redirect_login_waits_for_the_first() {
    let setup = Setup::new().await;
    let begun = setup.call("GET", WITH_RETURN_TO, &[]).await;
    let callback = format!("/login?state={}&code=me", begun.state());
    let now = setup.clock.now();
    setup.browse(&callback, &begun.cookie()).await;
    setup
        .store
        .execute("UPDATE logins SET status = 'exchanging', account_id = NULL")
        .await;
    claim_only(&setup, now, now.plus(Duration::from_secs(30))).await;
    assert_is_being_completed(&setup, &callback, &begun.cookie()).await;
    setup.later(30);
    let failed = setup.browse(&callback, &begun.cookie()).await;
    assert_eq!(
        failed.header(header::LOCATION),
        "https://app.example/?error=provider_failed"
    );
}

#[tokio::test]
async fn a_waiting_check_responds_when_the_claim_ends() {
    let mut setup = Setup::new().await;
    let begun = begin(&setup).await;
    // This test uses the system clock.
    let config = setup.service.config().clone();
    let service = Service::new(config, setup.store.store(), Arc::new(SystemClock)).unwrap();
    setup.router = router::<Test>(service);
    let now = SystemClock.now();
    claim_only(&setup, now, now.plus(Duration::from_secs(1))).await;
    let target = format!("/check?token={}&wait=30", begun.token);
    let waiting = setup.call("POST", &target, &[]);
    let response = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    assert_eq!(response.unwrap().json()["status"], "failed");
    assert!(SystemClock.now() >= now.plus(Duration::from_secs(1)));
}
