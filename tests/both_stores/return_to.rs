//! `return_to`: where a login may send the browser, and attempts to evade that. CONTRACT 8.

use end_to_end::{
    browser::{Browser, Decision},
    program::Program,
    stack::Stack,
    waiting::until,
};

/// Addresses that a careless comparison with `https://app.example` would accept, and some that are plainly wrong.
const EVASIVE: [&str; 28] = [
    "https://app.example.evil.example/",
    "https://evil.example/https://app.example/",
    "https://evil.example?https://app.example/",
    "https://evil.example#https://app.example/",
    "https://app.example@evil.example/",
    "https://app.example:443@evil.example/",
    "https://user@app.example/",
    "https://user:password@app.example/",
    "https://app.example:8443/",
    "http://app.example/",
    "//evil.example/",
    "//app.example/",
    "/relative",
    "https:/evil.example/",
    "https:evil.example",
    "https:///evil.example/",
    "https:\\\\evil.example\\",
    "https://evil.example\\@app.example/",
    "https://app.example/#fragment",
    "https://app.example\u{2044}.evil.example/",
    "https://app\u{3002}example.evil.example/",
    "https://app.example%2eevil.example/",
    "https://app.example%00.evil.example/",
    "javascript://app.example/%0aalert(1)",
    "data:text/html,https://app.example/",
    "file://app.example/etc/passwd",
    "blob:https://app.example/x",
    "https://sub.app.example/",
];

#[tokio::test]
async fn return_to_cannot_lead_to_another_origin() {
    let config = "[application]\nreturn_to = [\"https://app.example\"]";
    let stack = Stack::builder().backends(config).start().await;
    let client = stack.client();
    let mut wrong = Vec::new();
    for evasive in EVASIVE {
        let response = client
            .get("/login")
            .param("return_to", evasive)
            .send()
            .await;
        if response.status != 403 || response.json()["code"] != "return_to_not_allowed" {
            wrong.push(format!(
                "{evasive}: {} {:?}",
                response.summary(),
                response.header("location")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn an_unusual_return_to_leads_to_the_allowed_origin() {
    let config = "[application]\nreturn_to = [\"https://app.example\"]";
    let stack = Stack::builder().backends(config).start().await;
    let client = stack.client();
    // Unusual, but of the allowed origin: the browser must end up there and nowhere else.
    for unusual in [
        "https://app.example",
        "https://APP.example/",
        "https://app.example:443/x",
        "https://app.example//evil.example/",
        "https://app.example/\\evil.example",
        "https://app.example/\t/evil.example",
        "https://app.example/x?next=https://evil.example/",
        "https://app.example/x?ticket=mine",
    ] {
        let mut browser = Browser::default();
        let begun = browser
            .step(&client.login_url(&[("return_to", unusual)]))
            .await;
        if begun.response.status == 403 {
            continue; // Rejecting more than necessary is safe.
        }
        let provider = browser.follow(begun).await;
        let back = browser
            .decide_and_follow(&provider, "ada", Decision::Allow)
            .await;
        let url = back.redirect().unwrap();
        assert_eq!(
            url.origin().ascii_serialization(),
            "https://app.example",
            "{unusual}: {url}"
        );
        assert!(
            !back.response.location().contains(['\\', '\t', '\r', '\n']),
            "{unusual}"
        );
        let tickets = url
            .query_pairs()
            .filter(|(name, _)| name == "ticket")
            .count();
        assert!(tickets >= 1, "{unusual}: {url}");
    }
}

/// A client recognises its own session by a value there: CONTRACT 10.
#[tokio::test]
async fn the_query_of_return_to_arrives_unchanged_before_the_outcome() {
    let config = "[application]\nreturn_to = [\"https://app.example\"]";
    let stack = Stack::builder().backends(config).start().await;
    let client = stack.client();
    let own = "https://app.example/done?session=aZ0-_.~%2B%2f%20%E5%BC%A0+x&next=%2Fcart%3Fid%3D1&flag&flag=&";
    for (decision, outcome) in [
        (Decision::Allow, "ticket="),
        (Decision::Deny, "error=access_denied"),
    ] {
        let mut browser = Browser::default();
        let begun = browser.step(&client.login_url(&[("return_to", own)])).await;
        let provider = browser.follow(begun).await;
        let back = browser.decide_and_follow(&provider, "ada", decision).await;
        let location = back.response.location();
        let rest = location
            .strip_prefix(own)
            .unwrap_or_else(|| panic!("{location}"));
        let rest = rest.strip_prefix('&').unwrap_or(rest);
        assert!(
            rest.starts_with(outcome) && !rest.contains('&'),
            "{location}"
        );
    }
}

/// #22
#[tokio::test]
async fn an_origin_that_the_application_has_lost_is_not_returned_to() {
    let stack = Stack::builder().multi().start().await;
    let origin = ["--return-to", "https://app.example"];
    let application = stack.create_application("one", &origin);
    let client = stack.client_of(&application);
    let target = ("return_to", "https://app.example/");
    let mut begun = Vec::new();
    for decision in [Decision::Allow, Decision::Deny] {
        let mut browser = Browser::default();
        let provider = browser.open(&client.login_url(&[target])).await;
        let back = browser.decide(&provider, "ada", decision).await;
        begun.push((browser, back));
    }
    let update = ["app", "update", &application.ident, "--no-return-to"];
    assert!(stack.command(&update).status.success());
    until("the origin to be gone", || async {
        let response = client.get("/login").param(target.0, target.1).send().await;
        (response.status == 403).then_some(())
    })
    .await;
    for (mut browser, back) in begun {
        let response = browser.follow(back).await.response;
        response.rejected(403, "return_to_not_allowed");
        assert_eq!(response.header("location"), None);
    }
    let exchanges = stack.provider_counts().await["token"].as_u64();
    assert_eq!(exchanges.unwrap_or(0), 0);
    let rows = stack.store().query("SELECT count(*) FROM logins").number();
    assert_eq!(rows, 0);
}

/// #22
#[tokio::test]
async fn an_origin_that_a_reload_removed_is_not_returned_to() {
    let origins = |origins: &str| format!("[application]\nreturn_to = [{origins}]");
    let both = origins("\"https://app.example\", \"https://other.example\"");
    let stack = Stack::builder().backends(&both).start().await;
    let client = stack.client();
    let mut begun = Vec::new();
    for target in ["https://app.example/", "https://other.example/"] {
        let mut browser = Browser::default();
        let url = client.login_url(&[("return_to", target)]);
        let provider = browser.open(&url).await;
        let back = browser.decide(&provider, "ada", Decision::Allow).await;
        begun.push((browser, back));
    }
    stack.configure(Program::V1, &origins("\"https://other.example\""));
    assert!(stack.reload(Program::V1).status.success());
    let [(mut removed, back_removed), (mut other, back_other)] = begun.try_into().unwrap();
    let response = removed.follow(back_removed).await.response;
    response.rejected(403, "return_to_not_allowed");
    let back = other.follow(back_other).await;
    assert!(back.redirect_param("ticket").is_some(), "{}", back.text());
}

#[tokio::test]
async fn no_reload_returns_to_an_origin_that_was_removed() {
    let origins = |origin: &str| format!("[application]\nreturn_to = [\"{origin}\"]");
    let stack = Stack::builder()
        .backends(&origins("https://app.example"))
        .start()
        .await;
    let client = stack.client();
    let mut finished = Vec::new();
    for (decision, outcome) in [(Decision::Allow, "ticket"), (Decision::Deny, "error")] {
        let mut browser = Browser::default();
        let url = client.login_url(&[("return_to", "https://app.example/")]);
        let provider = browser.open(&url).await;
        let callback = browser.decide(&provider, "ada", decision).await;
        let callback = callback.redirect().unwrap();
        let done = browser.step(callback.as_str()).await;
        assert!(done.redirect_param(outcome).is_some(), "{}", done.text());
        finished.push((browser, callback));
    }
    stack.configure(Program::V1, &origins("https://other.example"));
    assert!(stack.reload(Program::V1).status.success());
    for (mut browser, callback) in finished {
        let response = browser.step(callback.as_str()).await.response;
        assert_eq!(response.header("location"), None);
        assert!(!response.text().contains("https://app.example"));
        response.rejected(403, "return_to_not_allowed");
    }
}
