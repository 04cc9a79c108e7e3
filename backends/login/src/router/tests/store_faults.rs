//! What is said and done when the store fails.

use signpost_store::Change;

use super::{
    polling::{begin, check, confirm},
    users::log_in,
    *,
};

fn header(credential: &str) -> [(&str, &str); 1] {
    [("acme-x-authorization", credential)]
}

#[tokio::test]
async fn a_store_that_is_away_is_said_to_be_until_it_is_back() {
    let setup = Setup::new().await;
    let (known, unknown) = (log_in(&setup).await, log_in(&setup).await);
    let begun = begin(&setup).await;
    let user = async |credential: &str| setup.call("GET", "/user", &header(credential)).await;
    assert_eq!(user(&known).await.status, StatusCode::OK);

    setup.store.place().make_unavailable();
    let check_target = format!("/check?token={}", begun.token);
    let redeem = format!("/user/login?ticket={}", "A".repeat(43));
    for (method, target, credential) in [
        ("GET", "/user", &unknown),
        ("POST", "/user/logout", &known),
        ("POST", "/event/send?event=a", &known),
        ("POST", "/login", &known),
        ("POST", check_target.as_str(), &known),
        ("POST", redeem.as_str(), &known),
        ("GET", "/readyz", &known),
    ] {
        setup
            .call(method, target, &header(credential))
            .await
            .assert_problem(503, "store_unavailable");
    }
    // Beginning a redirect login needs nothing of the store.
    setup.call("GET", "/login", &[]).await.state();
    let page = setup
        .browse(&format!("/login?state={}", begun.state), "")
        .await;
    page.assert_problem(503, "store_unavailable");
    assert_eq!(
        user(&known).await.status,
        StatusCode::OK,
        "what is remembered serves meanwhile"
    );
    assert_eq!(
        setup.raw("GET", "/healthz", &[]).await.status,
        StatusCode::OK
    );

    setup.store.place().make_available();
    assert_eq!(user(&unknown).await.status, StatusCode::OK);
    assert_eq!(check(&setup, &begun.token).await["status"], "pending");
    assert_eq!(
        setup.raw("GET", "/readyz", &[]).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn what_is_remembered_serves_for_five_minutes_of_an_outage() {
    let setup = Setup::new().await;
    let known = log_in(&setup).await;
    let user = async || setup.call("GET", "/user", &header(&known)).await;
    assert_eq!(user().await.status, StatusCode::OK);
    setup.later(299);
    setup.store.place().make_unavailable();
    setup.service.state().on_change(&Change::Lost);
    for seconds in [0, 2, 298] {
        setup.later(seconds);
        assert_eq!(user().await.status, StatusCode::OK, "{seconds}");
    }
    setup.later(1);
    user().await.assert_problem(503, "store_unavailable");

    setup.store.place().make_available();
    assert_eq!(user().await.status, StatusCode::OK);
    setup.service.state().on_change(&Change::Everything);
    assert_eq!(user().await.status, StatusCode::OK);
    setup.store.place().make_unavailable();
    assert_eq!(user().await.status, StatusCode::OK, "remembered again");
}

#[tokio::test]
async fn a_login_that_is_remembered_is_not_told_without_the_store() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    assert_eq!(check(&setup, &begun.token).await["status"], "pending");
    setup.store.place().make_unavailable();
    setup.service.state().on_change(&Change::Lost);
    let target = format!("/check?token={}", begun.token);
    let told = setup.call("POST", &target, &[]).await;
    told.assert_problem(503, "store_unavailable");
    setup.store.place().make_available();
    // A pooled connection that the server ended can still fail one call.
    let back = async {
        loop {
            let told = setup.call("POST", &target, &[]).await;
            if told.status == StatusCode::OK {
                return told.json();
            }
            told.assert_problem(503, "store_unavailable");
            tokio::task::yield_now().await;
        }
    };
    let told = tokio::time::timeout(Duration::from_secs(10), back).await;
    assert_eq!(told.unwrap()["status"], "pending");
}

#[tokio::test]
async fn a_store_without_its_tables_is_not_ready() {
    let setup = Setup::new().await;
    setup
        .store
        .execute(
            "DROP TABLE events; DROP TABLE credentials; DROP TABLE logins; DROP TABLE accounts",
        )
        .await;
    for (method, target) in [("POST", "/login"), ("GET", "/readyz")] {
        setup
            .call(method, target, &[])
            .await
            .assert_problem(503, "store_unavailable");
    }
}

/// From now on no account can be stored; and what undoes that.
async fn refuse_accounts(setup: &Setup) -> &'static str {
    let (refuse, allow) = match setup.store.store() {
        signpost_store::Store::Sqlite(_) => (
            "CREATE TRIGGER no_accounts BEFORE INSERT ON accounts BEGIN SELECT RAISE(ABORT, 'away'); END",
            "DROP TRIGGER no_accounts",
        ),
        signpost_store::Store::Postgres(_) => (
            "ALTER TABLE accounts ADD CONSTRAINT no_accounts CHECK (false) NOT VALID",
            "ALTER TABLE accounts DROP CONSTRAINT no_accounts",
        ),
    };
    setup.store.execute(refuse).await;
    allow
}

#[tokio::test]
async fn a_login_whose_account_cannot_be_stored_fails() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let cookie = confirm(&setup, &begun).await;
    let allow = refuse_accounts(&setup).await;
    let callback = format!("/login?state={}&code=me", begun.state);
    setup
        .browse(&callback, &cookie)
        .await
        .assert_problem(503, "store_unavailable");
    let outcome = check(&setup, &begun.token).await;
    assert_eq!(outcome["status"], "failed", "{outcome}");
    assert_eq!(outcome["reason"], "provider_failed", "{outcome}");
    setup.store.execute(allow).await;
    setup
        .browse(&callback, &cookie)
        .await
        .assert_problem(409, "login_used");
}
