//! Redirect logins.

use super::*;
use crate::config::Protocol;

#[tokio::test]
async fn without_return_to_the_response_is_the_result() {
    let setup = Setup::new().await;
    let begun = setup.call("GET", "/login", &[]).await;
    let (state, cookie) = (begun.state(), begun.cookie());
    let done = setup
        .follow(&format!("/login?state={state}&code=me"), &cookie)
        .await;
    assert_eq!(done.status, StatusCode::OK);
    assert_eq!(done.header(header::CACHE_CONTROL), "no-store");
    assert_eq!(done.header(header::REFERRER_POLICY), "no-referrer");
    let result = done.json();
    assert_eq!(result["account"]["username"], "{me}");
    assert_eq!(result["account"]["name_of_this_version"], "sandbox");
    assert_eq!(result["created"], true);
    assert_eq!(result["expires_in"], 30 * 24 * 3600);
    let authorization = result["authorization"].as_str().unwrap();
    let user = setup
        .call("GET", "/user", &[("acme-x-authorization", authorization)])
        .await;
    assert_eq!(user.json(), result["account"]);

    let begun = setup.call("GET", "/login", &[]).await;
    let again = setup
        .follow(
            &format!("/login?state={}&code=me", begun.state()),
            &begun.cookie(),
        )
        .await;
    assert_eq!(again.json()["created"], false);
    assert_ne!(again.json()["authorization"], result["authorization"]);
}

#[tokio::test]
async fn a_browsers_login_needs_return_to() {
    let setup = Setup::new().await;
    let accept = [("accept", "text/html")];
    let incomplete = setup.call("GET", "/login", &accept).await;
    incomplete.assert_problem(400, "param_missing");
    assert!(incomplete.body.contains("return_to"), "{}", incomplete.body);
    assert!(!incomplete.headers.contains_key(header::SET_COOKIE));
    // A program began it.
    let begun = setup.call("GET", "/login", &[]).await;
    let (callback, cookie) = (
        format!("/login?state={}&code=me", begun.state()),
        begun.cookie(),
    );
    let page = setup.browse(&callback, &cookie).await;
    page.assert_problem(400, "param_missing");
    assert_eq!(setup.store.count("accounts").await, 0);
    let data = setup.follow(&callback, &cookie).await;
    assert_eq!(data.json()["created"], true);
    let data = setup.follow(&callback, &cookie).await;
    data.assert_problem(409, "login_used");
}

#[tokio::test]
async fn a_reload_after_a_redirect_login_gives_no_second_ticket() {
    let setup = Setup::new().await;
    let path = "x".repeat(1500);
    let begin = format!("/login?return_to=https://app.example/{path}?a=1");
    let begun = setup.call("GET", &begin, &[]).await;
    assert!(begun.cookie().len() > 2000);
    let callback = format!("/login?state={}&code=me", begun.state());
    let done = setup.browse(&callback, &begun.cookie()).await;
    assert!(done.header(header::LOCATION).contains("ticket="));
    // What remains in the browser is short, and suffices.
    let set_cookie = done.header(header::SET_COOKIE);
    assert!(set_cookie.contains("; Max-Age=600; "), "{set_cookie}");
    assert!(done.cookie().len() < 80, "{}", done.cookie());
    for cookie in [begun.cookie(), done.cookie()] {
        let again = setup.browse(&callback, &cookie).await;
        assert_eq!(again.status, StatusCode::OK, "{}", again.body);
        let link = "href=\"https://app.example\"";
        assert!(again.body.contains(link), "{}", again.body);
        assert!(!again.body.contains("ticket"), "{}", again.body);
    }
    for cookie in ["", &done.cookie().replace('=', "=A")] {
        let other = setup.browse(&callback, cookie).await;
        other.assert_problem(409, "login_used");
    }
    let data = setup.follow(&callback, &done.cookie()).await;
    data.assert_problem(409, "login_used");
    assert_eq!(setup.store.count("logins").await, 1);
}

#[tokio::test]
async fn with_return_to_the_application_gets_a_ticket_that_works_once() {
    let setup = Setup::new().await;
    let begun = setup
        .call(
            "GET",
            "/login?return_to=https://app.example/back%3Fx=1",
            &[],
        )
        .await;
    let done = setup
        .browse(
            &format!("/login?state={}&code=me", begun.state()),
            &begun.cookie(),
        )
        .await;
    assert_eq!(done.status, StatusCode::FOUND);
    let ticket = done
        .header(header::LOCATION)
        .strip_prefix("https://app.example/back?x=1&ticket=")
        .unwrap();
    let target = format!("/user/login?ticket={ticket}");
    setup
        .raw("POST", &target, &[("x-gateway-app-id", "5")])
        .await
        .assert_problem(404, "app_not_found");
    let result = setup.call("POST", &target, &[]).await;
    assert_eq!(result.json()["account"]["username"], "{me}");
    setup
        .call("POST", &target, &[])
        .await
        .assert_problem(409, "login_used");
}

#[tokio::test]
async fn a_ticket_expires_after_a_minute() {
    let setup = Setup::new().await;
    let begun = setup
        .call("GET", "/login?return_to=https://app.example/", &[])
        .await;
    let done = setup
        .browse(
            &format!("/login?state={}&code=me", begun.state()),
            &begun.cookie(),
        )
        .await;
    let ticket = done
        .header(header::LOCATION)
        .strip_prefix("https://app.example/?ticket=")
        .unwrap();
    setup.later(60);
    let late = setup
        .call("POST", &format!("/user/login?ticket={ticket}"), &[])
        .await;
    late.assert_problem(410, "login_expired");
}

#[tokio::test]
async fn a_failed_login_fails_in_the_response_or_at_return_to() {
    let setup = Setup::new().await;
    for (grant, reason, status, code) in [
        ("error=access_denied", "access_denied", 403, "login_denied"),
        (
            "error=invalid_scope",
            "provider_failed",
            502,
            "provider_failed",
        ),
        ("code=fail", "provider_failed", 502, "provider_failed"),
    ] {
        let begun = setup.call("GET", "/login", &[]).await;
        let target = format!("/login?state={}&{grant}", begun.state());
        let failed = setup.follow(&target, &begun.cookie()).await;
        failed.assert_problem(status, code);
        let begun = setup.call("GET", WITH_RETURN_TO, &[]).await;
        let target = format!("/login?state={}&{grant}", begun.state());
        let failed = setup.browse(&target, &begun.cookie()).await;
        assert!(failed.cookie().len() < 80, "{}", failed.cookie());
        // A reload, and Allow after Back to the provider.
        let allowed = format!("/login?state={}&code=me", begun.state());
        for (target, cookie) in [
            (&target, begun.cookie()),
            (&target, failed.cookie()),
            (&allowed, failed.cookie()),
        ] {
            let again = setup.browse(target, &cookie).await;
            for response in [&failed, &again] {
                let location = format!("https://app.example/?error={reason}");
                assert_eq!(response.header(header::LOCATION), location);
            }
        }
        let other = setup.browse(&target, "").await;
        other.assert_problem(409, "login_used");
    }
}

#[tokio::test]
async fn a_failure_that_is_not_stored_leaves_the_browser_its_login() {
    let setup = Setup::new().await;
    let now = setup.clock.instant();
    while setup.service.limits.count_failure(now) {}
    let begun = setup.call("GET", WITH_RETURN_TO, &[]).await;
    let target = format!("/login?state={}&error=access_denied", begun.state());
    for _ in 0..2 {
        let failed = setup.browse(&target, &begun.cookie()).await;
        let location = "https://app.example/?error=access_denied";
        assert_eq!(failed.header(header::LOCATION), location);
        assert!(!failed.headers.contains_key(header::SET_COOKIE));
        assert_eq!(setup.store.count("logins").await, 0);
    }
}

#[tokio::test]
async fn a_callback_of_another_browser_changes_nothing() {
    let setup = Setup::new().await;
    let begun = setup.call("GET", WITH_RETURN_TO, &[]).await;
    let other = setup.call("GET", "/login", &[]).await;
    let target = format!("/login?state={}&code=me", begun.state());
    let error = format!("/login?state={}&error=access_denied", begun.state());
    for cookie in ["", &other.cookie(), &begun.cookie().replace('=', "=A")] {
        setup
            .browse(&target, cookie)
            .await
            .assert_problem(400, "login_mismatch");
        setup
            .browse(&error, cookie)
            .await
            .assert_problem(400, "login_mismatch");
    }
    let done = setup.browse(&target, &begun.cookie()).await;
    assert!(done.header(header::LOCATION).contains("ticket="));
}

#[tokio::test]
async fn iss_of_another_provider_changes_nothing() {
    let setup = Setup::new().await;
    let begun = setup.call("GET", WITH_RETURN_TO, &[]).await;
    let target = format!("/login?state={}&code=me", begun.state());
    let wrong = format!("{target}&iss=https://evil.example");
    setup
        .browse(&wrong, &begun.cookie())
        .await
        .assert_problem(400, "login_mismatch");
    let Protocol::OAuth(settings) = &setup.service.config().providers.all[0].protocol else {
        panic!("the sandbox speaks OAuth 2.0");
    };
    let issuer = &settings.issuer;
    let right = format!("{target}&iss={issuer}");
    let done = setup.browse(&right, &begun.cookie()).await;
    assert!(done.header(header::LOCATION).contains("ticket="));
}

#[tokio::test]
async fn two_callbacks_at_once_have_one_outcome() {
    let setup = Setup::new().await;
    let begun = setup.call("GET", "/login", &[]).await;
    let target = format!("/login?state={}&code=me", begun.state());
    let cookie = begun.cookie();
    let (one, two) = tokio::join!(
        setup.follow(&target, &cookie),
        setup.follow(&target, &cookie)
    );
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
}

#[tokio::test]
async fn expired_logins_and_unknown_states_are_rejected() {
    let setup = Setup::new().await;
    let begun = setup.call("GET", "/login", &[]).await;
    let (state, cookie) = (begun.state(), begun.cookie());
    for unknown in [&state.replace("v1.", "v2."), "v1.x", "", "nothing"] {
        let target = format!("/login?state={unknown}&code=me");
        setup
            .browse(&target, &cookie)
            .await
            .assert_problem(404, "login_unknown");
    }
    setup.later(600);
    let late = setup
        .browse(&format!("/login?state={state}&code=me"), &cookie)
        .await;
    late.assert_problem(410, "login_expired");
}

#[tokio::test]
async fn invalid_parameters_are_rejected() {
    let setup = Setup::new().await;
    let accept = [("accept", "text/html"), ("accept-language", "zh-CN")];
    let evil = setup
        .call("GET", "/login?return_to=https://evil.example/", &accept)
        .await;
    evil.assert_problem(403, "return_to_not_allowed");
    assert!(
        evil.body
            .starts_with("<!DOCTYPE html><html lang=\"zh-CN\">"),
        "{}",
        evil.body
    );
    setup
        .call("GET", "/login?provider=other", &[])
        .await
        .assert_problem(400, "param_invalid");
    let twice = setup
        .call("GET", "/login?provider=sandbox&provider=sandbox", &[])
        .await;
    twice.assert_problem(400, "param_invalid");
    let begun = setup.call("GET", "/login", &[]).await;
    let both = format!("/login?state={}&code=c&error=e", begun.state());
    setup
        .call("GET", &both, &[])
        .await
        .assert_problem(400, "param_invalid");
}

#[tokio::test]
async fn a_login_belongs_to_one_application() {
    let setup = Setup::new().await;
    let id = setup
        .store
        .application("Market", r#"["https://market.example"]"#)
        .await
        .get()
        .to_string();
    let app = ("x-gateway-app-id", id.as_str());
    let elsewhere = setup
        .raw("GET", "/login?return_to=https://app.example/", &[app])
        .await;
    elsewhere.assert_problem(403, "return_to_not_allowed");
    let begun = setup
        .raw("GET", "/login?return_to=https://market.example/", &[app])
        .await;
    let callback = format!("/login?state={}&code=me", begun.state());
    let cookie = begun.cookie();
    setup
        .call("GET", &callback, &[("cookie", &cookie)])
        .await
        .assert_problem(404, "login_unknown");
    let done = setup.browse(&callback, &cookie).await;
    let ticket = done
        .header(header::LOCATION)
        .strip_prefix("https://market.example/?ticket=")
        .unwrap();
    // Nor does another application learn the outcome.
    let short = done.cookie();
    let page = [("cookie", &*short), ("accept", "text/html")];
    let again = setup.call("GET", &callback, &page).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND, "{}", again.body);
    let redeem = format!("/user/login?ticket={ticket}");
    setup
        .call("POST", &redeem, &[])
        .await
        .assert_problem(404, "login_unknown");
    let result = setup.raw("POST", &redeem, &[app]).await.json();
    let authorization = (
        "acme-x-authorization",
        result["authorization"].as_str().unwrap(),
    );
    setup
        .call("GET", "/user", &[authorization])
        .await
        .assert_problem(401, "authorization_invalid");
    assert_eq!(
        setup
            .raw("GET", "/user", &[app, authorization])
            .await
            .status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn beginning_stores_nothing_and_callbacks_are_limited_by_address() {
    let limits = "limits.callbacks_per_second = 1\nlimits.callbacks_burst = 2";
    let setup = Setup::with(limits).await;
    let begun = setup.call("GET", "/login", &[]).await;
    let callback = async |begun: &Response, address: &str, grant: &str| {
        let target = format!("/login?state={}&{grant}", begun.state());
        let headers = [("x-forwarded-for", address), ("cookie", &*begun.cookie())];
        setup.raw("GET", &target, &headers).await
    };
    for _ in 0..100 {
        setup.call("GET", "/login", &[]).await.state();
    }
    assert_eq!(setup.store.count("logins").await, 0);
    // Without the login's own cookie, a callback does not count.
    let target = format!("/login?state={}&code=me", begun.state());
    let others = setup.call("GET", "/login", &[]).await.cookie();
    let own = begun.cookie();
    let (name, _) = own.split_once('=').unwrap();
    let forged = format!("{name}=forged");
    for cookie in ["", &others, &forged].repeat(5) {
        let headers = [("x-forwarded-for", "192.0.2.1"), ("cookie", cookie)];
        let mismatch = setup.raw("GET", &target, &headers).await;
        mismatch.assert_problem(400, "login_mismatch");
    }
    for _ in 0..2 {
        let other = setup.call("GET", "/login", &[]).await;
        let made_up = callback(&other, "192.0.2.1", "code=fail").await;
        made_up.assert_problem(502, "provider_failed");
    }
    let refused = callback(&begun, "192.0.2.1, 10.0.0.1", "code=me").await;
    refused.assert_problem(429, "rate_limited");
    assert_eq!(refused.header(header::RETRY_AFTER), "1");
    assert!(refused.header(header::SET_COOKIE).is_empty());
    // The login is unchanged, and another address has its own limit.
    let done = callback(&begun, "192.0.2.2", "code=me").await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.body);
    assert_eq!(setup.store.count("logins").await, 3);
}

#[tokio::test]
async fn a_return_to_that_does_not_fit_into_a_cookie_is_rejected() {
    let setup = Setup::new().await;
    let begin = async |length: usize| {
        let origin = "https://app.example/";
        let path = "x".repeat(length - origin.len());
        let target = format!("/login?return_to={origin}{path}");
        setup.call("GET", &target, &[]).await
    };
    begin(2048).await.state();
    begin(2049)
        .await
        .assert_problem(403, "return_to_not_allowed");
}

#[tokio::test]
async fn a_callback_without_its_cookie_gets_the_most_precise_error() {
    let setup = Setup::new().await;
    let begun = setup.call("GET", WITH_RETURN_TO, &[]).await;
    let target = format!("/login?state={}&code=me", begun.state());
    let other_key = crate::records::logins::SealKey::generate();
    let never_issued = other_key.issue_state(&"v1".parse().unwrap(), setup.clock.now());
    let unknown = format!("/login?state={}&code=me", never_issued.encode());
    setup
        .browse(&unknown, &begun.cookie())
        .await
        .assert_problem(404, "login_unknown");
    setup
        .browse(&target, "")
        .await
        .assert_problem(400, "login_mismatch");
    let done = setup.browse(&target, &begun.cookie()).await;
    assert!(done.header(header::LOCATION).contains("ticket="));
    setup
        .browse(&target, "")
        .await
        .assert_problem(409, "login_used");
    let late = setup.call("GET", "/login", &[]).await;
    setup.later(600);
    let target = format!("/login?state={}&code=me", late.state());
    setup
        .browse(&target, "")
        .await
        .assert_problem(410, "login_expired");
}

#[tokio::test]
async fn a_confirm_on_a_redirect_login_is_a_mismatch_and_ends_nothing() {
    let setup = Setup::new().await;
    let begun = setup.call("GET", WITH_RETURN_TO, &[]).await;
    let other = setup.call("GET", WITH_RETURN_TO, &[]).await;
    let own = begun.cookie();
    let name = own.split('=').next().unwrap();
    let others = other.cookie();
    let mixed = format!("{name}={}", others.split_once('=').unwrap().1);
    for more in ["&confirm=x", "&confirm=", "&confirm=x&provider=sandbox"] {
        let target = format!("/login?state={}{more}", begun.state());
        for cookie in ["", &own, &others, &mixed] {
            setup
                .browse(&target, cookie)
                .await
                .assert_problem(400, "login_mismatch");
        }
    }
    let unknown = format!("/login?state=v1.{}", "A".repeat(43));
    for more in ["", "&confirm=x", "&provider=sandbox", "&code=me"] {
        let target = format!("{unknown}{more}");
        let response = setup.browse(&target, &own).await;
        response.assert_problem(404, "login_unknown");
    }
    let done = format!("/login?state={}&code=me", begun.state());
    let done = setup.browse(&done, &own).await;
    assert!(done.header(header::LOCATION).contains("?ticket="));
}

#[tokio::test]
async fn what_is_unknown_in_a_callback_is_ignored_and_two_outcomes_are_none() {
    let setup = Setup::new().await;
    let many = "&a=b".repeat(300);
    for more in [
        "&code=me&userState=Authenticated&locale=en&scope=a&scope=b",
        "&code=me&x=%zz&y=%ff&%=&return_to&return_to",
        "&error=&code=me&confirm=x",
        &format!("&code=me{many}"),
    ] {
        let begun = setup.call("GET", WITH_RETURN_TO, &[]).await;
        for (bad, code) in [
            ("&code=me&error=x", "param_invalid"),
            ("&code=me&code=me", "param_invalid"),
            ("&code=me&state=x", "param_invalid"),
            ("&code=me&iss=x&iss=x", "param_invalid"),
            ("&provider=x&provider=x", "param_invalid"),
            ("&confirm=x&confirm=x", "param_invalid"),
        ] {
            let target = format!("/login?state={}{bad}", begun.state());
            let response = setup.browse(&target, &begun.cookie()).await;
            response.assert_problem(400, code);
        }
        let target = format!("/login?state={}{more}", begun.state());
        let done = setup.browse(&target, &begun.cookie()).await;
        assert!(
            done.header(header::LOCATION).contains("?ticket="),
            "{more}: {}",
            done.body
        );
    }
    // An outcome without a value ends the login.
    for (empty, status) in [
        ("&code=", "provider_failed"),
        ("&error=", "provider_failed"),
        ("&code&error", "provider_failed"),
        ("&code=&error=access_denied", "access_denied"),
    ] {
        let begun = setup.call("GET", WITH_RETURN_TO, &[]).await;
        let target = format!("/login?state={}{empty}", begun.state());
        let failed = setup.browse(&target, &begun.cookie()).await;
        let location = failed.header(header::LOCATION);
        assert_eq!(
            location,
            format!("https://app.example/?error={status}"),
            "{empty}"
        );
    }
}
