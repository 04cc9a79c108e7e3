//! The store fails for a moment while a login's account or outcome is stored.

use super::{
    polling::{begin, check, confirm},
    *,
};
use crate::testing::Faults;

/// A setup in which the first calls of each kind fail.
async fn setup(failures: u32, loses_responses: bool) -> Setup {
    let setup = Setup::new().await;
    Faults::begin(&setup.service, failures, loses_responses);
    setup
}

#[tokio::test]
async fn an_outcome_is_stored_after_a_short_outage() {
    for loses_responses in [false, true] {
        for (grant, page, status, reason) in [
            ("code=me", 200, "complete", None),
            ("code=fail", 502, "failed", Some("provider_failed")),
            ("error=access_denied", 403, "failed", Some("access_denied")),
        ] {
            let setup = setup(2, loses_responses).await;
            let begun = begin(&setup).await;
            let cookie = confirm(&setup, &begun).await;
            let callback = format!("/login?state={}&{grant}", begun.state);
            let response = setup.browse(&callback, &cookie).await;
            assert_eq!(response.status.as_u16(), page, "{grant} {loses_responses}");
            let checked = check_with_retries(&setup, &begun.token).await;
            assert_eq!(checked["status"], status, "{grant} {loses_responses}");
            assert_eq!(
                checked["reason"].as_str(),
                reason,
                "{grant} {loses_responses}"
            );
            if status == "complete" {
                assert_eq!(checked["login"]["created"], true, "{loses_responses}");
            }
        }
    }
}

/// Calls `/check`, and retries after a 503, as clients do.
async fn check_with_retries(setup: &Setup, token: &str) -> Value {
    let target = format!("/check?token={token}");
    for _ in 0..2 {
        let response = setup.call("POST", &target, &[]).await;
        if response.status == StatusCode::OK {
            return response.json();
        }
        response.assert_problem(503, "store_unavailable");
    }
    check(setup, token).await
}

#[tokio::test]
async fn storing_a_random_credential_is_retried() {
    let setup = setup(2, false).await;
    let begun = setup.call("GET", "/login", &[]).await;
    let callback = format!("/login?state={}&code=me", begun.state());
    let done = setup.follow(&callback, &begun.cookie()).await.json();
    let authorization = done["authorization"].as_str().unwrap();
    let user = setup
        .call("GET", "/user", &[("acme-x-authorization", authorization)])
        .await;
    assert_eq!(user.json()["username"], "{me}");
}

#[tokio::test]
async fn a_ticket_works_once_if_the_response_to_its_storing_was_lost() {
    let setup = setup(1, true).await;
    let begun = setup
        .call("GET", "/login?return_to=https://app.example/", &[])
        .await;
    let callback = format!("/login?state={}&code=me", begun.state());
    let done = setup.browse(&callback, &begun.cookie()).await;
    let ticket = done
        .header(header::LOCATION)
        .strip_prefix("https://app.example/?ticket=")
        .unwrap();
    let redeem = format!("/user/login?ticket={ticket}");
    let result = setup.call("POST", &redeem, &[]).await.json();
    assert_eq!(result["account"]["username"], "{me}");
    setup
        .call("POST", &redeem, &[])
        .await
        .assert_problem(409, "login_used");
}

#[tokio::test]
async fn a_ticket_is_not_lost_if_redeeming_it_was_retried() {
    for loses_responses in [false, true] {
        let setup = Setup::new().await;
        let target = "/login?return_to=https://app.example/";
        let begun = setup.call("GET", target, &[]).await;
        let callback = format!("/login?state={}&code=me", begun.state());
        let done = setup.browse(&callback, &begun.cookie()).await;
        let (_, ticket) = done.header(header::LOCATION).split_once("ticket=").unwrap();
        let redeem = format!("/user/login?ticket={ticket}");
        Faults::begin(&setup.service, 2, loses_responses);
        let result = setup.call("POST", &redeem, &[]).await.json();
        let authorization = result["authorization"].as_str().unwrap();
        let header = [("acme-x-authorization", authorization)];
        let user = setup.call("GET", "/user", &header).await;
        assert_eq!(user.json()["username"], "{me}", "{loses_responses}");
        let again = setup.call("POST", &redeem, &[]).await;
        again.assert_problem(409, "login_used");
    }
}

#[tokio::test]
async fn after_a_long_outage_the_login_fails_when_the_claim_ends() {
    let setup = setup(u32::MAX, false).await;
    let begun = begin(&setup).await;
    let cookie = confirm(&setup, &begun).await;
    let callback = format!("/login?state={}&error=access_denied", begun.state);
    setup
        .browse(&callback, &cookie)
        .await
        .assert_problem(503, "store_unavailable");
    assert_eq!(check(&setup, &begun.token).await["status"], "pending");
    setup.later(30);
    assert_eq!(check(&setup, &begun.token).await["status"], "failed");
}
