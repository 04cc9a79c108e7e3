//! What is said and done when the store fails.

use super::{
    polling::{begin, check, confirm},
    users::log_in,
    *,
};

async fn execute(setup: &Setup, sql: &'static str) {
    setup
        .store
        .database()
        .write(move |transaction| transaction.execute_batch(sql))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_store_that_is_away_is_said_to_be() {
    let setup = Setup::new().await;
    let authorization = log_in(&setup).await;
    execute(
        &setup,
        "DROP TABLE events; DROP TABLE credentials; DROP TABLE logins; DROP TABLE accounts;",
    )
    .await;
    let header = [("acme-x-authorization", authorization.as_str())];
    setup
        .call("GET", "/user", &header)
        .await
        .assert_problem(503, "store_unavailable");
    setup
        .call("POST", "/login", &[])
        .await
        .assert_problem(503, "store_unavailable");
    setup
        .raw("GET", "/readyz", &[])
        .await
        .assert_problem(503, "store_unavailable");
    assert_eq!(
        setup.raw("GET", "/healthz", &[]).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_login_whose_account_cannot_be_stored_fails_at_once() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let cookie = confirm(&setup, &begun).await;
    execute(
        &setup,
        "CREATE TRIGGER no_accounts BEFORE INSERT ON accounts BEGIN SELECT RAISE(ABORT, 'away'); END;",
    )
    .await;
    let callback = format!("/login?state={}&code=me", begun.state);
    setup
        .browse(&callback, &cookie)
        .await
        .assert_problem(503, "store_unavailable");
    let outcome = check(&setup, &begun.token).await;
    assert_eq!(outcome["status"], "failed", "{outcome}");
    assert_eq!(outcome["reason"], "provider_failed", "{outcome}");
    execute(&setup, "DROP TRIGGER no_accounts;").await;
    setup
        .browse(&callback, &cookie)
        .await
        .assert_problem(409, "login_used");
}
