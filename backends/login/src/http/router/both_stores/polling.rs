//! Polling logins and their page.

use signpost_kit::server::shutdown::Phase;

use super::*;
use crate::records::logins::{LoginCookie, LoginState};

/// A polling login that a client has begun.
pub(super) struct Begun {
    pub(super) token: String,
    pub(super) state: String,
    user_code: String,
}

pub(super) async fn begin(setup: &Setup) -> Begun {
    let response = setup.call("POST", "/login", &[]).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    let body = response.json();
    assert_eq!(
        (body["expires_in"].as_u64(), body["interval"].as_u64()),
        (Some(600), Some(2))
    );
    let text = |name: &str| body[name].as_str().unwrap().to_owned();
    let state = text("authorize_url")
        .strip_prefix("http://127.0.0.1:8080/login?state=")
        .unwrap()
        .to_owned();
    Begun {
        token: text("token"),
        state,
        user_code: text("user_code"),
    }
}

/// The URL of the page's button.
fn button(page: &Response) -> String {
    let (_, rest) = page.body.split_once("class=\"button\" href=\"").unwrap();
    format!(
        "/login{}",
        rest.split_once('"').unwrap().0.replace("&amp;", "&")
    )
}

/// The URL of the page's link that cancels the login.
fn cancel_link(page: &Response) -> String {
    let (_, rest) = page
        .body
        .split_once("<p class=\"cancel\"><a href=\"")
        .unwrap();
    let (link, _) = rest.split_once('"').unwrap();
    format!("/login{}", link.replace("&amp;", "&"))
}

/// Opens the page and presses its button; returns the cookie that the callback requires.
pub(super) async fn confirm(setup: &Setup, begun: &Begun) -> String {
    let page = setup
        .browse(&format!("/login?state={}", begun.state), "")
        .await;
    assert!(
        page.body.contains(&begun.user_code) && page.body.contains("Shop"),
        "{}",
        page.body
    );
    let sent_on = setup.browse(&button(&page), &page.cookie()).await;
    assert_eq!(sent_on.state(), begun.state);
    sent_on.cookie()
}

pub(super) async fn check(setup: &Setup, token: &str) -> Value {
    let response = setup
        .call("POST", &format!("/check?token={token}"), &[])
        .await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    response.json()
}

#[tokio::test]
async fn a_polling_login_completes() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    assert_eq!(
        check(&setup, &begun.token).await,
        serde_json::json!({"status": "pending", "expires_in": 600})
    );
    let user_login = format!("/user/login?token={}", begun.token);
    setup
        .call("POST", &user_login, &[])
        .await
        .assert_problem(409, "login_pending");

    let cookie = confirm(&setup, &begun).await;
    let done = setup
        .browse(&format!("/login?state={}&code=me", begun.state), &cookie)
        .await;
    assert_eq!(done.status, StatusCode::OK);
    assert!(done.body.contains("You are logged in"), "{}", done.body);
    // A reload, and the button, the page by Back; in another browser they are errors.
    for target in ["&code=me", "&confirm=x", ""] {
        let target = format!("/login?state={}{target}", begun.state);
        let again = setup.browse(&target, &cookie).await;
        assert!(again.body.contains("You are logged in"), "{}", again.body);
        let other = setup.browse(&target, "").await;
        other.assert_problem(409, "login_used");
    }

    setup.later(5);
    let checked = check(&setup, &begun.token).await;
    assert_eq!(
        (checked["status"].as_str(), checked["expires_in"].as_u64()),
        (Some("complete"), Some(115))
    );
    let login = &checked["login"];
    assert_eq!(
        (
            login["account"]["username"].as_str(),
            login["created"].as_bool()
        ),
        (Some("{me}"), Some(true))
    );
    assert_eq!(
        setup.call("POST", &user_login, &[]).await.json(),
        *login,
        "the same response again"
    );
    let authorization = [(
        "acme-x-authorization",
        login["authorization"].as_str().unwrap(),
    )];
    assert_eq!(
        setup.call("GET", "/user", &authorization).await.status,
        StatusCode::OK
    );

    setup.later(115);
    assert_eq!(
        check(&setup, &begun.token).await,
        serde_json::json!({"status": "expired", "expires_in": 0})
    );
    setup
        .call("POST", &user_login, &[])
        .await
        .assert_problem(410, "login_expired");
}

#[tokio::test]
async fn a_person_who_did_not_start_the_login_cancels_it() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let page = format!("/login?state={}", begun.state);
    let page = setup.browse(&page, "").await;
    let cancel = cancel_link(&page);
    // A link that someone else sends ends nothing: it needs the cookie of the page.
    let other = setup.browse(&cancel, "").await;
    other.assert_problem(400, "login_mismatch");
    assert_eq!(check(&setup, &begun.token).await["status"], "pending");
    for _ in ["the first time", "after a reload"] {
        let cancelled = setup.browse(&cancel, &page.cookie()).await;
        assert_eq!(cancelled.status, StatusCode::OK, "{}", cancelled.body);
        assert!(
            cancelled.body.contains("Nobody was logged in"),
            "{}",
            cancelled.body
        );
        let mark = "<div class=\"neutral\" role=\"status\">";
        assert!(cancelled.body.contains(mark), "{}", cancelled.body);
    }
    let checked = check(&setup, &begun.token).await;
    assert_eq!(checked["status"], "failed");
    assert_eq!(checked["reason"], "access_denied");
    let confirm = setup.browse(&button(&page), &page.cookie()).await;
    confirm.assert_problem(403, "login_denied");
    let other = setup.browse(&button(&page), "").await;
    other.assert_problem(409, "login_used");
}

#[tokio::test]
async fn the_links_of_each_tab_work_until_the_login_is_over() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let target = format!("/login?state={}", begun.state);
    let first = setup.browse(&target, "").await;
    let second = setup.browse(&target, &first.cookie()).await;
    assert_eq!(second.cookie(), first.cookie());
    // Each press of a button is as the first.
    let sent_on = setup.browse(&button(&second), &second.cookie()).await;
    assert_eq!(sent_on.cookie(), first.cookie() + ".confirmed");
    for page in [&first, &second] {
        for cookie in [first.cookie(), sent_on.cookie()] {
            let again = setup.browse(&button(page), &cookie).await;
            assert_eq!(again.state(), begun.state);
            assert_eq!(again.cookie(), sent_on.cookie());
        }
    }
    // Neither does a reload of the page disturb the tab at the provider.
    let reloaded = setup.browse(&target, &sent_on.cookie()).await;
    assert_eq!(reloaded.cookie(), sent_on.cookie());
    let cancelled = setup.browse(&cancel_link(&first), &sent_on.cookie()).await;
    assert_eq!(cancelled.status, StatusCode::OK, "{}", cancelled.body);
    assert!(cancelled.body.contains("Nobody was logged in"));
    assert_eq!(check(&setup, &begun.token).await["status"], "failed");
    let callback = format!("{target}&code=me");
    let denied = setup.browse(&callback, &sent_on.cookie()).await;
    denied.assert_problem(403, "login_denied");
}

#[tokio::test]
async fn a_login_that_is_complete_is_not_cancelled() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let target = format!("/login?state={}", begun.state);
    let page = setup.browse(&target, "").await;
    let cookie = setup.browse(&button(&page), &page.cookie()).await.cookie();
    setup.browse(&format!("{target}&code=me"), &cookie).await;
    let late = setup.browse(&cancel_link(&page), &cookie).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert!(late.body.contains("was completed before"), "{}", late.body);
    assert!(!late.body.contains("You are logged in"), "{}", late.body);
    assert_eq!(check(&setup, &begun.token).await["status"], "complete");
    let other = setup.browse(&cancel_link(&page), "").await;
    other.assert_problem(409, "login_used");
}

#[tokio::test]
async fn concurrent_clicks_are_no_error() {
    for _ in 0..5 {
        let setup = Setup::new().await;
        let begun = begin(&setup).await;
        let target = format!("/login?state={}", begun.state);
        let page = setup.browse(&target, "").await;
        let (cancel, cookie) = (cancel_link(&page), page.cookie());
        let click = || setup.browse(&cancel, &cookie);
        let clicks = tokio::join!(click(), click(), click(), click());
        for one in [clicks.0, clicks.1, clicks.2, clicks.3] {
            assert_eq!(one.status, StatusCode::OK, "{}", one.body);
        }
        let cancelled = click().await;
        assert!(cancelled.body.contains("Nobody was logged in"));
        assert_eq!(check(&setup, &begun.token).await["status"], "failed");
    }
}

#[tokio::test]
async fn a_revoked_credential_stays_revoked_when_its_token_is_checked() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let cookie = confirm(&setup, &begun).await;
    setup
        .browse(&format!("/login?state={}&code=me", begun.state), &cookie)
        .await;
    let authorization = check(&setup, &begun.token).await["login"]["authorization"]
        .as_str()
        .unwrap()
        .to_owned();
    let header = [("acme-x-authorization", authorization.as_str())];
    assert_eq!(
        setup.call("POST", "/user/logout", &header).await.json(),
        serde_json::json!({})
    );
    check(&setup, &begun.token).await;
    setup
        .call("GET", "/user", &header)
        .await
        .assert_problem(401, "authorization_invalid");
}

#[tokio::test]
async fn a_user_who_is_lured_past_the_page_does_not_complete_the_login() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let callback = format!("/login?state={}&code=me", begun.state);
    // First without having opened the page, then with the cookie of the page only.
    setup
        .browse(&callback, "")
        .await
        .assert_problem(400, "login_mismatch");
    let page = setup
        .browse(&format!("/login?state={}", begun.state), "")
        .await;
    setup
        .browse(&callback, &page.cookie())
        .await
        .assert_problem(400, "login_mismatch");
    // The attacker confirms, and lures another user to the provider.
    let attacker = confirm(&setup, &begun).await;
    setup
        .browse(&callback, "")
        .await
        .assert_problem(400, "login_mismatch");
    assert_eq!(check(&setup, &begun.token).await["status"], "pending");
    assert_eq!(
        setup.browse(&callback, &attacker).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn the_button_works_only_in_the_browser_with_its_page() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let open = async || {
        let target = format!("/login?state={}", begun.state);
        setup.browse(&target, "").await
    };
    let (first, second) = (open().await, open().await);
    for (target, cookie) in [
        (button(&first), second.cookie()),
        (button(&second), String::new()),
        (
            format!("/login?state={}&confirm=yes", begun.state),
            second.cookie(),
        ),
    ] {
        setup
            .browse(&target, &cookie)
            .await
            .assert_problem(400, "login_mismatch");
    }
    // Both browsers have the page. The browser that confirms last can complete.
    let [first, second] = [&first, &second];
    let confirmed = async |page: &Response| setup.browse(&button(page), &page.cookie()).await;
    let (earlier, last) = (confirmed(second).await, confirmed(first).await);
    let callback = format!("/login?state={}&code=me", begun.state);
    let mismatch = setup.browse(&callback, &earlier.cookie()).await;
    mismatch.assert_problem(400, "login_mismatch");
    let done = setup.browse(&callback, &last.cookie()).await;
    assert_eq!(done.status, StatusCode::OK);
}

#[tokio::test]
async fn a_link_preview_does_not_disturb_a_browser_at_the_provider() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let cookie = confirm(&setup, &begun).await;
    let page = format!("/login?state={}", begun.state);
    assert_eq!(setup.browse(&page, "").await.status, StatusCode::OK);
    let callback = format!("/login?state={}&code=me", begun.state);
    let done = setup.browse(&callback, &cookie).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.body);
}

#[tokio::test]
async fn redirect_logins_do_not_count_towards_an_applications_limit() {
    let limits = "limits.starts_per_second = 1\nlimits.starts_burst = 2";
    let setup = Setup::with(limits).await;
    for index in 0..200 {
        let address = format!("2001:db8:0:{index:x}::1");
        let headers = [("x-forwarded-for", address.as_str())];
        setup.call("GET", "/login", &headers).await.state();
    }
    let id = setup.store.application("Market", "[]").await.get();
    let other = ("x-gateway-app-id", &*id.to_string());
    begin(&setup).await;
    begin(&setup).await;
    let refused = setup.call("POST", "/login", &[]).await;
    refused.assert_problem(429, "rate_limited");
    assert_eq!(refused.header(header::RETRY_AFTER), "1");
    let theirs = setup.raw("POST", "/login", &[other]).await;
    assert_eq!(theirs.status, StatusCode::OK, "{}", theirs.body);
}

/// Processes must not cache the status of a login.
#[tokio::test]
async fn once_one_process_reports_complete_every_process_does() {
    let setup = Setup::new().await;
    let config = setup.service.config().clone();
    let store = setup.store.of_another_process().await.database;
    // Without the change feed, which could hide that a process uses a cached status.
    let other = Service::new(config, &store, Arc::new(setup.clock.clone())).unwrap();
    let other = router::<Test>(other);
    let ask = async |method: &str, target: String| {
        let request = Request::builder().method(method).uri(target);
        let request = request.header("x-gateway-app-id", "0");
        let response = other
            .clone()
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 9999).await.unwrap();
        (parts.status, String::from_utf8(body.to_vec()).unwrap())
    };
    let begun = begin(&setup).await;
    let target = format!("/check?token={}", begun.token);
    let pending = ask("POST", target.clone()).await.1;
    assert!(pending.contains("\"pending\""), "{pending}");
    let cookie = confirm(&setup, &begun).await;
    let callback = format!("/login?state={}&code=me", begun.state);
    setup.browse(&callback, &cookie).await;
    assert_eq!(check(&setup, &begun.token).await["status"], "complete");
    let redeemed = ask("POST", format!("/user/login?token={}", begun.token)).await;
    assert_eq!(redeemed.0, StatusCode::OK, "{}", redeemed.1);
    let complete = ask("POST", target).await.1;
    assert!(complete.contains("\"complete\""), "{complete}");
}

/// What a process remembers of a login decides nothing: another process may have bound it to another browser since.
#[tokio::test]
async fn a_login_that_another_process_has_changed_is_read_again() {
    let setup = Setup::new().await;
    let elsewhere = setup.store.of_another_process().await.logins;
    for is_older_first in [true, false] {
        let begun = begin(&setup).await;
        let older = confirm(&setup, &begun).await;
        let state = LoginState::decode(&begun.state).unwrap();
        let newer = LoginCookie::generate();
        let (hash, now) = (newer.hash(), setup.clock.now());
        let bound = elsewhere.bind(state.hash(), &hash, None, now).await;
        assert!(bound.unwrap());
        let callback = format!("/login?state={}&code=me", begun.state);
        if is_older_first {
            let refused = setup.browse(&callback, &older).await;
            assert_eq!(refused.status, LoginError::LoginMismatch.status());
            assert_eq!(check(&setup, &begun.token).await["status"], "pending");
        }
        let (name, _) = older.split_once('=').unwrap();
        let newer = format!("{name}={}", newer.encode_confirmed());
        let done = setup.browse(&callback, &newer).await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.body);
        assert_eq!(check(&setup, &begun.token).await["status"], "complete");
    }
}

#[tokio::test]
async fn without_confirmation_the_page_redirects_to_the_provider() {
    let setup = Setup::with("polling.confirm = false").await;
    let begun = begin(&setup).await;
    let sent_on = setup
        .browse(&format!("/login?state={}", begun.state), "")
        .await;
    assert_eq!(sent_on.state(), begun.state);
    let done = setup
        .browse(
            &format!("/login?state={}&code=me", begun.state),
            &sent_on.cookie(),
        )
        .await;
    assert_eq!(done.status, StatusCode::OK);
}

#[tokio::test]
async fn a_failed_login_has_its_reason() {
    let setup = Setup::new().await;
    for (grant, reason, status, code) in [
        ("error=access_denied", "access_denied", 403, "login_denied"),
        ("error=x", "provider_failed", 502, "provider_failed"),
        ("code=fail", "provider_failed", 502, "provider_failed"),
    ] {
        let begun = begin(&setup).await;
        let cookie = confirm(&setup, &begun).await;
        let callback = format!("/login?state={}&{grant}", begun.state);
        let page = format!("/login?state={}", begun.state);
        let button = format!("{page}&confirm=x");
        // The first time, after a reload, and the button and the page by Back; in another browser they are errors.
        for target in [&callback, &callback, &button, &page] {
            let failed = setup.browse(target, &cookie).await;
            failed.assert_problem(status, code);
        }
        for target in [&callback, &button, &page] {
            let other = setup.browse(target, "").await;
            other.assert_problem(409, "login_used");
        }
        let checked = check(&setup, &begun.token).await;
        let expected = serde_json::json!({"status": "failed", "expires_in": 120, "reason": reason});
        assert_eq!(checked, expected);
        let user_login = format!("/user/login?token={}", begun.token);
        setup
            .call("POST", &user_login, &[])
            .await
            .assert_problem(status, code);
    }
}

#[tokio::test]
async fn a_token_is_valid_for_one_application_and_a_state_is_not_a_token() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let id = setup
        .store
        .application("Market", "[]")
        .await
        .get()
        .to_string();
    let target = format!("/check?token={}", begun.token);
    setup
        .raw("POST", &target, &[("x-gateway-app-id", &id)])
        .await
        .assert_problem(404, "login_unknown");
    for unknown in [
        begun.state.as_str(),
        &begun.token.replace("v1", "v2"),
        "",
        "x",
    ] {
        setup
            .call("GET", &format!("/check?token={unknown}"), &[])
            .await
            .assert_problem(404, "login_unknown");
    }
    setup
        .call("POST", "/check", &[])
        .await
        .assert_problem(400, "param_missing");
    setup
        .call("POST", &format!("{target}&wait=31"), &[])
        .await
        .assert_problem(400, "param_invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_check_responds_as_soon_as_the_login_is_finished() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let cookie = confirm(&setup, &begun).await;
    let target = format!("/check?token={}&wait=30", begun.token);
    let waiting = async {
        let checked = setup.call("POST", &target, &[]).await;
        checked.json()["status"].as_str().unwrap().to_owned()
    };
    let callback = format!("/login?state={}&code=me", begun.state);
    let both = async { tokio::join!(waiting, setup.browse(&callback, &cookie)).0 };
    let status = tokio::time::timeout(Duration::from_secs(20), both).await;
    assert_eq!(status.unwrap(), "complete");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_check_of_another_process_responds_as_soon_as_the_login_is_finished() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let cookie = confirm(&setup, &begun).await;
    let config = setup.service.config().clone();
    let store = setup.store.of_another_process().await.database;
    let other = Service::new(config, &store, Arc::new(setup.clock.clone())).unwrap();
    let watched = Arc::clone(&other);
    let _watch = setup
        .store
        .store()
        .watch(Duration::default, move |change| {
            watched.state.on_change(&change);
        })
        .unwrap();
    let request = Request::post(format!("/check?token={}&wait=30", begun.token))
        .header("x-gateway-app-id", "0")
        .body(Body::empty())
        .unwrap();
    let waiting = router::<Test>(other).oneshot(request);
    let callback = format!("/login?state={}&code=me", begun.state);
    let both = async { tokio::join!(waiting, setup.browse(&callback, &cookie)).0 };
    let response = tokio::time::timeout(Duration::from_secs(20), both).await;
    let body = response.unwrap().unwrap().into_body();
    let checked: Value = serde_json::from_slice(&to_bytes(body, 9999).await.unwrap()).unwrap();
    assert_eq!(checked["status"], "complete");
}

#[tokio::test]
async fn a_waiting_check_responds_when_the_process_stops() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let target = format!("/check?token={}&wait=30", begun.token);
    setup.service.state.phase.send_replace(Phase::Closing);
    let response =
        tokio::time::timeout(Duration::from_secs(20), setup.call("POST", &target, &[])).await;
    assert_eq!(response.unwrap().json()["status"], "pending");
}
