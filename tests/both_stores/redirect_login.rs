//! Logging in by redirect. CONTRACT 8.

use end_to_end::{
    browser::{Browser, Decision, param},
    logins::{begin_polling, credential, log_in_by_redirect},
    program::{Program, output_text},
    response::Response,
    stack::Stack,
    waiting::{WAIT_TIMEOUT, until_within},
};
use sandbox_provider::user::User;
use serde_json::Value;

const RETURN_TO: &str = "[application]\nreturn_to = [\"https://app.example\"]";

#[tokio::test]
async fn a_person_logs_in() {
    let stack = Stack::start().await;
    let mut browser = Browser::for_data();
    let begun = browser.step(&stack.url("/login")).await;
    let provider = begun.redirect().unwrap();
    assert_eq!(provider.path(), "/site/oauth2/authorize");
    assert_eq!(
        param(&provider, "client_id").as_deref(),
        Some("signpost-demo")
    );
    assert_eq!(param(&provider, "response_type").as_deref(), Some("code"));
    assert_eq!(
        param(&provider, "redirect_uri").as_deref(),
        Some(&*stack.url("/login"))
    );
    assert!(param(&provider, "state").unwrap().starts_with("v1."));

    let page = browser.follow(begun).await;
    let done = browser
        .decide_and_follow(&page, "ada", Decision::Allow)
        .await;
    let login = done.response.ok();
    assert_eq!(login["created"], true, "{login}");
    assert_eq!(login["account"]["type"], "bitbucket");
    let expires_in = login["expires_in"].as_u64().unwrap();
    let month = 30 * 24 * 60 * 60;
    assert!((month - 60..=month).contains(&expires_in), "{login}");
    let username = login["account"]["username"].as_str().unwrap();
    assert_eq!(
        username,
        User::named("ada").unwrap().uuid(),
        "the provider's uuid, byte for byte"
    );
    assert_eq!(done.response.header("cache-control"), Some("no-store"));
    assert_eq!(done.response.header("referrer-policy"), Some("no-referrer"));

    let account = stack
        .client()
        .get("/user")
        .authorization(credential(&login))
        .send()
        .await
        .ok();
    assert_eq!(account, login["account"]);
    let again = log_in_by_redirect(&stack.client(), "ada").await;
    assert_eq!(again["created"], false);
    assert_eq!(again["account"], login["account"]);
    assert_ne!(again["authorization"], login["authorization"]);
}

#[tokio::test]
async fn an_account_has_the_providers_display_name_and_is_not_identified_by_it() {
    let kind = |further: &str| {
        format!(
            "[providers.bitbucket]\nkind = \"oauth2\"\nid_field = \"uuid\"\n\
             authorize_url = \"/site/oauth2/authorize\"\ntoken_url = \"/site/oauth2/access_token\"\n\
             user_url = \"/2.0/user\"\n{further}"
        )
    };
    let stack = Stack::start().await;
    let client = stack.client();
    let names = async |user: &str| {
        let login = log_in_by_redirect(&client, user).await;
        let call = client.get("/user").version("v2");
        let user = call.authorization(credential(&login)).send().await.ok();
        let account = &login["account"];
        assert_eq!(account.get("display_name"), user.get("display_name"));
        assert_eq!(account["username"], user["username"]);
        (
            account["username"].clone(),
            account.get("display_name").cloned(),
        )
    };
    let (lin, name) = names("lin").await;
    assert_eq!(name, Some("林巧稚".into()));
    // Characters that change the text around them are removed, and a name of nothing else is none.
    assert_eq!(names("any:a\u{202e}b\u{200f}").await.1, Some("ab".into()));
    assert_eq!(names("any:\u{2066}\u{200b}").await.1, None);
    let long = names(&format!("any:{}", "é".repeat(200))).await.1;
    assert_eq!(long, Some("é".repeat(127).into()));
    // The same person under another name, and without one.
    for (further, expected) in [
        (
            "display_name_field = \"nickname\"",
            Some(Value::from("lin")),
        ),
        ("display_name_field = \"links\"", None),
        ("", None),
    ] {
        stack.configure(Program::V1, &kind(further));
        let reloaded = stack.reload(Program::V1);
        assert!(reloaded.status.success(), "{}", output_text(&reloaded));
        assert_eq!(names("lin").await, (lin.clone(), expected), "{further}");
    }
}

#[tokio::test]
async fn the_login_cookie_has_its_attributes() {
    let stack = Stack::start().await;
    let mut browser = Browser::for_data();
    let begun = browser.step(&stack.url("/login")).await;
    let [cookie] = &browser.cookies()[..] else {
        panic!("{:?}", browser.cookies())
    };
    assert_eq!((cookie.http_only(), cookie.secure()), (Some(true), None));
    let line = begun.response.header("set-cookie").unwrap();
    assert!(
        line.split("; ").any(|part| part == "SameSite=Lax"),
        "{line}"
    );
    assert_eq!(cookie.path(), Some("/login"));
    let max_age = cookie.max_age().unwrap().whole_seconds();
    assert!((541..=600).contains(&max_age), "{max_age}");
    assert!(!begun.response.location().contains(cookie.value()));

    let https = "public_url = \"https://login.example\"";
    let stack = Stack::builder()
        .gateway(https)
        .backends(https)
        .start()
        .await;
    let begun = stack.client().get("/login").send().await;
    let cookie = begun.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-"), "{cookie}");
    for attribute in ["Secure", "HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(
            cookie.split("; ").any(|part| part == attribute),
            "{attribute}: {cookie}"
        );
    }
    assert!(
        begun
            .location()
            .contains("redirect_uri=https%3A%2F%2Flogin.example%2Flogin")
    );
}

#[tokio::test]
async fn return_to_receives_a_ticket() {
    let stack = Stack::builder().backends(RETURN_TO).start().await;
    let client = stack.client();
    let mut browser = stack.browser();
    let target = "https://app.example/done?from=login";
    let provider = browser
        .open(&client.login_url(&[("return_to", target)]))
        .await;
    let back = browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    let url = back.redirect().unwrap();
    assert_eq!(
        url.as_str().split("ticket=").next(),
        Some("https://app.example/done?from=login&")
    );
    let ticket = param(&url, "ticket").unwrap();
    assert_eq!(back.response.header("cache-control"), Some("no-store"));
    assert_eq!(back.response.header("referrer-policy"), Some("no-referrer"));

    let login = client
        .post("/user/login")
        .param("ticket", &ticket)
        .send()
        .await;
    assert_eq!(login.header("cache-control"), Some("no-store"));
    let login = login.ok();
    let account = client
        .get("/user")
        .authorization(credential(&login))
        .send()
        .await
        .ok();
    assert_eq!(account, login["account"]);
    let again = client
        .post("/user/login")
        .param("ticket", &ticket)
        .send()
        .await;
    again.problem(409, "login_used");
}

#[tokio::test]
async fn a_ticket_serves_only_who_began_its_login() {
    // RFC 7636 appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    let stack = Stack::builder().backends(RETURN_TO).start().await;
    let client = stack.client();
    let ticket = async |further: &[(&str, &str)]| {
        let mut browser = stack.browser();
        let params = [&[("return_to", "https://app.example/")], further].concat();
        let provider = browser.open(&client.login_url(&params)).await;
        let back = browser
            .decide_and_follow(&provider, "ada", Decision::Allow)
            .await;
        back.redirect_param("ticket").unwrap()
    };
    let exchange = async |ticket: &str, version: &str, further: &[(&str, &str)]| {
        let call = client.post("/user/login").version(version);
        let mut call = call.param("ticket", ticket);
        for (name, value) in further {
            call = call.param(name, value);
        }
        call.send().await
    };
    let other = "a".repeat(43);
    for version in ["v1", "v2"] {
        let bound = ticket(&[("code_challenge", CHALLENGE)]).await;
        for wrong in [
            &[][..],
            &[("code_verifier", &*other)],
            &[("code_verifier", CHALLENGE)],
        ] {
            let refused = exchange(&bound, version, wrong).await;
            refused.problem(404, "login_unknown");
        }
        for malformed in [
            "",
            "short",
            &"a".repeat(129),
            &format!("{other}+"),
            &format!("{other}\u{e9}"),
        ] {
            let refused = exchange(&bound, version, &[("code_verifier", malformed)]).await;
            refused.problem(400, "param_invalid");
        }
        let twice = [("code_verifier", VERIFIER), ("code_verifier", VERIFIER)];
        exchange(&bound, version, &twice)
            .await
            .problem(400, "param_invalid");
        // The wrong ones have used nothing up.
        let right = [("code_verifier", VERIFIER)];
        exchange(&bound, version, &right).await.ok();
        exchange(&bound, version, &right)
            .await
            .problem(409, "login_used");
        exchange(&bound, version, &[])
            .await
            .problem(404, "login_unknown");
        // Without a challenge, nobody has a verifier.
        let free = ticket(&[]).await;
        exchange(&free, version, &right)
            .await
            .problem(404, "login_unknown");
        exchange(&free, version, &[]).await.ok();
    }
    for malformed in [
        "",
        VERIFIER.trim_end_matches('k'),
        "+".repeat(43).as_str(),
        &format!("{CHALLENGE}="),
    ] {
        let begun = client
            .get("/login")
            .param("return_to", "https://app.example/");
        let begun = begun.param("code_challenge", malformed).send().await;
        begun.problem(400, "param_invalid");
    }
}

#[tokio::test]
async fn a_ticket_is_redeemed_once_by_concurrent_requests() {
    let stack = Stack::builder().backends(RETURN_TO).start().await;
    let client = stack.client();
    let mut browser = stack.browser();
    let url = client.login_url(&[("return_to", "https://app.example/")]);
    let provider = browser.open(&url).await;
    let back = browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    let ticket = back.redirect_param("ticket").unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..10 {
        let (client, ticket) = (client.clone(), ticket.clone());
        tasks.spawn(async move {
            let version = if number % 2 == 0 { "v1" } else { "v2" };
            let call = client
                .post("/user/login")
                .version(version)
                .param("ticket", &ticket);
            call.send().await.status.as_u16()
        });
    }
    let mut statuses = tasks.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409, 409, 409]);
}

#[tokio::test]
async fn deny_ends_the_login() {
    let stack = Stack::builder().backends(RETURN_TO).start().await;
    let client = stack.client();
    let mut browser = Browser::for_data();
    let provider = browser.open(&client.login_url(&[])).await;
    let denied = browser
        .decide_and_follow(&provider, "ada", Decision::Deny)
        .await;
    denied.response.rejected(403, "login_denied");

    let url = client.login_url(&[("return_to", "https://app.example/done")]);
    let provider = browser.open(&url).await;
    let denied = browser
        .decide_and_follow(&provider, "ada", Decision::Deny)
        .await;
    assert_eq!(
        denied.response.location(),
        "https://app.example/done?error=access_denied"
    );
    assert_eq!(stack.provider_counts().await["token"], 0);
}

#[tokio::test]
async fn a_second_callback_changes_nothing() {
    let stack = Stack::start().await;
    let mut browser = Browser::for_data();
    let provider = browser.open(&stack.url("/login")).await;
    let cookies = browser.cookies();
    let back = browser.decide(&provider, "ada", Decision::Allow).await;
    let callback = back.redirect().unwrap();
    let login = browser.step(callback.as_str()).await.response.ok();
    // With the original cookie, so that only the used state prevents a second login.
    for cookie in cookies {
        browser.put_cookie(&cookie, callback.as_str());
    }
    browser
        .step(callback.as_str())
        .await
        .response
        .rejected(409, "login_used");
    let mut denial = callback.clone();
    let state = param(&callback, "state").unwrap();
    denial
        .query_pairs_mut()
        .clear()
        .append_pair("state", &state)
        .append_pair("error", "x");
    browser
        .step(denial.as_str())
        .await
        .response
        .rejected(409, "login_used");
    stack
        .client()
        .get("/user")
        .authorization(credential(&login))
        .send()
        .await
        .ok();
    assert_eq!(stack.provider_counts().await["token"], 1);
}

#[tokio::test]
async fn a_forged_state_is_unknown() {
    let stack = Stack::start().await;
    let mut browser = Browser::for_data();
    let provider = browser.open(&stack.url("/login")).await;
    let back = browser.decide(&provider, "ada", Decision::Allow).await;
    let right = back.redirect_param("state").unwrap();
    let forged: String = format!("v1.{}", "A".repeat(right.len() - 3));
    for state in [
        &*forged,
        "v1.",
        "v1",
        "",
        "v9.abc",
        &right.replace("v1.", "v2."),
        "v1.%00",
        ".",
    ] {
        let url = stack.url(&format!("/login?state={state}&code=x"));
        let page = browser.step(&url).await;
        assert!(
            page.response.status == 404 || page.response.status == 400,
            "{state}: {}",
            page.response.summary()
        );
        assert!(!page.response.headers.contains_key("location"), "{state}");
    }
    browser
        .step(&stack.url(&format!("/login?state={forged}&code=x")))
        .await
        .response
        .rejected(404, "login_unknown");
    assert_eq!(stack.provider_counts().await["token"], 0);
    // The right state still completes.
    browser.follow(back).await.response.ok();
}

#[tokio::test]
async fn concurrent_first_logins_of_one_person_create_one_account() {
    // By default, an eighth of the calls may be of one address.
    let calls = "[limits]\nprovider_calls = 10000";
    let stack = Stack::builder().backends(calls).start().await;
    let mut callbacks = Vec::new();
    for _ in 0..20 {
        let mut browser = Browser::for_data();
        let provider = browser.open(&stack.url("/login")).await;
        let back = browser
            .decide(&provider, "any:one person", Decision::Allow)
            .await;
        callbacks.push((browser, back));
    }
    let mut tasks = tokio::task::JoinSet::new();
    for (mut browser, back) in callbacks {
        tasks.spawn(async move { browser.follow(back).await.response });
    }
    let logins: Vec<Value> = tasks.join_all().await.iter().map(Response::ok).collect();
    assert_eq!(
        logins
            .iter()
            .filter(|login| login["created"] == true)
            .count(),
        1
    );
    let usernames: std::collections::BTreeSet<_> = logins
        .iter()
        .map(|login| login["account"]["username"].as_str().unwrap())
        .collect();
    assert_eq!(usernames.len(), 1);
    let mut created: Vec<_> = logins
        .iter()
        .map(|login| &login["account"]["created_at"])
        .collect();
    created.dedup();
    assert_eq!(created.len(), 1);
}

#[tokio::test]
async fn pkce_and_the_absent_redirect_uri_work_where_configured() {
    for provider in [
        "pkce = false",
        "redirect_uri = false",
        "pkce = false\nredirect_uri = false",
    ] {
        let config = format!("[providers.bitbucket]\n{provider}");
        let stack = Stack::builder().backends(&config).start().await;
        let mut browser = Browser::for_data();
        let begun = browser.step(&stack.url("/login")).await;
        let url = begun.redirect().unwrap();
        let has_challenge = param(&url, "code_challenge_method").as_deref() == Some("S256");
        assert_eq!(has_challenge, !provider.contains("pkce"), "{url}");
        assert_eq!(
            param(&url, "redirect_uri").is_none(),
            provider.contains("redirect_uri"),
            "{url}"
        );
        let page = browser.follow(begun).await;
        browser
            .decide_and_follow(&page, "ada", Decision::Allow)
            .await
            .response
            .ok();
    }
}

#[tokio::test]
async fn a_provider_is_chosen_by_name() {
    let second = "default_provider = \"bitbucket\"\n[providers.other]\nkind = \"bitbucket\"\n\
                  url = \"http://$PROVIDER\"\n\
                  client_id = \"another-client\"\nclient_secret = \"x\"\n";
    let stack = Stack::builder().backends(second).start().await;
    let client = stack.client();
    let named = client.get("/login").param("provider", "other").send().await;
    assert!(
        named.location().contains("client_id=another-client"),
        "{}",
        named.location()
    );
    let unnamed = client.get("/login").send().await;
    assert!(
        unnamed.location().contains("client_id=signpost-demo"),
        "{}",
        unnamed.location()
    );
    let unknown = client
        .get("/login")
        .param("provider", "absent")
        .send()
        .await;
    unknown.problem(400, "param_invalid");
}

#[tokio::test]
async fn a_login_expires() {
    let short = "[login]\nlogin_ttl_seconds = 15";
    let stack = Stack::builder().backends(short).start().await;
    let mut browser = Browser::for_data();
    let provider = browser.open(&stack.url("/login")).await;
    let cookies = browser.cookies();
    let back = browser.decide(&provider, "ada", Decision::Allow).await;
    let callback = back.redirect().unwrap();
    let client = stack.client();
    // A polling login begun now expires no sooner than this one.
    let begun = begin_polling(&client).await;
    until_within(2 * WAIT_TIMEOUT, "the logins to expire", || async {
        let checked = client
            .post("/check")
            .param("token", &begun.token)
            .send()
            .await;
        (checked.status != 200 || checked.json()["status"] == "expired").then_some(())
    })
    .await;
    let mut late = Browser::for_data();
    for mut cookie in cookies {
        cookie.set_max_age(None);
        late.put_cookie(&cookie, callback.as_str());
    }
    late.step(callback.as_str())
        .await
        .response
        .rejected(410, "login_expired");
    assert_eq!(stack.provider_counts().await["token"], 0);
}
