//! Behaviour when the store fails.

use signpost_kit::server::shutdown::Phase;
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
async fn an_outage_is_reported_until_the_store_is_available_again() {
    let setup = Setup::new().await;
    let (known, unknown) = (log_in(&setup).await, log_in(&setup).await);
    let begun = begin(&setup).await;
    let user = async |credential: &str| setup.call("GET", "/user", &header(credential)).await;
    assert_eq!(user(&known).await.status, StatusCode::OK);

    setup.store.database().make_unavailable();
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
    // Beginning a redirect login does not use the store.
    setup.call("GET", "/login", &[]).await.state();
    let page = setup
        .browse(&format!("/login?state={}", begun.state), "")
        .await;
    page.assert_problem(503, "store_unavailable");
    assert_eq!(
        user(&known).await.status,
        StatusCode::OK,
        "cached credentials still work"
    );
    assert_eq!(
        setup.raw("GET", "/healthz", &[]).await.status,
        StatusCode::OK
    );

    setup.store.database().make_available();
    assert_eq!(user(&unknown).await.status, StatusCode::OK);
    assert_eq!(check(&setup, &begun.token).await["status"], "pending");
    setup.until_ready().await;
}

#[tokio::test]
async fn cached_credentials_work_for_five_minutes_of_an_outage() {
    let setup = Setup::new().await;
    let known = log_in(&setup).await;
    let user = async || setup.call("GET", "/user", &header(&known)).await;
    assert_eq!(user().await.status, StatusCode::OK);
    setup.later(299);
    setup.store.database().make_unavailable();
    setup.service.state.on_change(&Change::Lost);
    for seconds in [0, 2, 298] {
        setup.later(seconds);
        assert_eq!(user().await.status, StatusCode::OK, "{seconds}");
    }
    setup.later(1);
    user().await.assert_problem(503, "store_unavailable");

    setup.store.database().make_available();
    assert_eq!(user().await.status, StatusCode::OK);
    setup.service.state.on_change(&Change::Restored);
    assert_eq!(user().await.status, StatusCode::OK);
    // Again and again, and for each return of the feed before the credential was read again.
    setup.store.database().make_unavailable();
    for _ in 0..3 {
        setup.service.state.on_change(&Change::Lost);
        assert_eq!(user().await.status, StatusCode::OK, "cached again");
        setup.service.state.on_change(&Change::Restored);
        setup.later(2);
        assert_eq!(user().await.status, StatusCode::OK, "not confirmed");
    }
}

#[tokio::test]
async fn the_status_of_a_login_is_not_cached() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    assert_eq!(check(&setup, &begun.token).await["status"], "pending");
    setup.store.database().make_unavailable();
    setup.service.state.on_change(&Change::Lost);
    let target = format!("/check?token={}", begun.token);
    let response = setup.call("POST", &target, &[]).await;
    response.assert_problem(503, "store_unavailable");
    setup.store.database().make_available();
    // One call can still fail on a pooled connection that the server has closed.
    let back = async {
        loop {
            let response = setup.call("POST", &target, &[]).await;
            if response.status == StatusCode::OK {
                return response.json();
            }
            response.assert_problem(503, "store_unavailable");
            tokio::task::yield_now().await;
        }
    };
    let status = tokio::time::timeout(Duration::from_secs(20), back).await;
    assert_eq!(status.unwrap()["status"], "pending");
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

/// Makes inserts into `accounts` fail; returns the statement that undoes this.
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
        .assert_problem(502, "provider_failed");
}

#[tokio::test]
async fn a_stop_that_begins_while_the_store_is_asked_is_reported() {
    let setup = Setup::new().await;
    setup.store.database().make_unavailable();
    let phase = &setup.service.state.phase;
    // The store may have answered before the stop begins.
    let is_reported = async || {
        phase.send_replace(Phase::Serving);
        let stop = async { phase.send_replace(Phase::Draining) };
        let (ready, _) = tokio::join!(setup.raw("GET", "/readyz", &[]), stop);
        ready.json()["status"] == "stopping"
    };
    let reported = async { while !is_reported().await {} };
    let reported = tokio::time::timeout(Duration::from_secs(20), reported).await;
    reported.expect("it is reported in one of many rounds");
}
