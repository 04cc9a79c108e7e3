//! A login in a browser: the ticket is exchanged with the code verifier of the same client. CONTRACT 8.

use std::time::{Duration, Instant};

use end_to_end::{browser::Decision, stack::Stack};
use serde_json::{Value, json};

use super::driver::Driver;

pub(super) async fn logs_in_by_redirect(language: &'static str) {
    let return_to = "[application]\nreturn_to = [\"https://app.example\"]";
    let stack = Stack::builder().backends(return_to).start().await;
    let mut driver = Driver::start(language);
    // Version 1 lists no events.
    let settings = json!({ "version": "v2" });
    driver.client_by(&stack.origin(), settings).await;
    let begun =
        json!({ "return_to": "https://app.example/done?state=a%20b", "provider": "bitbucket" });
    let begun = driver.ask(json!({ "login_url": begun })).await;
    let (url, verifier) = (begun["url"].as_str(), &begun["code_verifier"]);
    let mut browser = stack.browser();
    let provider = browser
        .open(url.unwrap_or_else(|| panic!("{language}: {begun}")))
        .await;
    let back = browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    assert_eq!(
        back.redirect_param("state").as_deref(),
        Some("a b"),
        "{language}"
    );
    let ticket = back.redirect_param("ticket").unwrap();
    let exchange =
        |verifier: &Value| json!({ "exchange": { "ticket": ticket, "code_verifier": verifier } });
    let refused = driver.ask(exchange(&json!("a".repeat(43)))).await;
    assert_eq!(
        refused["problem"]["code"], "login_unknown",
        "{language}: {refused}"
    );
    let done = driver.ask(exchange(verifier)).await;
    let login = &done["login"];
    assert_eq!(
        login["authorization"].as_str().map(str::len),
        Some(43),
        "{language}: {done}"
    );
    goes_on(&mut driver, login).await;
    stops(&mut driver).await;
}

/// As the user of the login.
async fn goes_on(driver: &mut Driver, login: &Value) {
    let language = driver.language;
    // The new credential is that of the next calls.
    let renewed = driver.ask(json!({ "renew": {} })).await;
    let new = &renewed["login"]["authorization"];
    assert!(
        new.is_string() && *new != login["authorization"],
        "{language}: {renewed}"
    );
    let user = driver.ask(json!({ "user": {} })).await;
    assert_eq!(
        user["user"]["username"], login["account"]["username"],
        "{language}: {user}"
    );
    let event = json!({ "send_event": { "event": "seen", "data": "a=1" } });
    let sent = driver.ask(event).await;
    let events = driver.ask(json!({ "events": { "limit": 5 } })).await;
    assert_eq!(
        (&events["events"][0]["id"], &events["events"][0]["data"]),
        (&sent["event"]["id"], &json!("a=1")),
        "{language}: {sent} {events}"
    );
}

/// A login that nobody confirms ends with its deadline, or when it is cancelled.
async fn stops(driver: &mut Driver) {
    let language = driver.language;
    for (how, expected) in [
        (json!({ "timeout": 1.5 }), "transport"),
        (json!({ "cancel_after_ms": 1_500 }), "cancelled"),
    ] {
        let start = Instant::now();
        let mut answer = driver.ask(json!({ "login": how })).await;
        if answer["open"].is_string() {
            answer = driver.answer().await;
        }
        assert!(!answer[expected].is_null(), "{language}: {how}: {answer}");
        // `/check` waits for 30 s.
        assert!(
            start.elapsed() < Duration::from_secs(25),
            "{language}: {how}"
        );
    }
}
