//! Attacks on a login, one per test. CONTRACT 8.

use end_to_end::{
    browser::{Browser, Decision, param},
    logins::{PollingLogin, begin_polling, check, confirm_polling, credential, log_in_by_redirect},
    program::Program,
    signed_client::{Call, SignedClient},
    stack::Stack,
};

#[tokio::test]
async fn a_victim_who_does_not_confirm_completes_nothing() {
    let stack = Stack::start().await;
    let attacker = stack.client();
    let begun = begin_polling(&attacker).await;
    // The victim opens the link and sees the confirmation page; the provider is not reached.
    let mut victim = Browser::default();
    let page = victim.open(&begun.authorize_url).await;
    assert_eq!(page.response.status, 200);
    assert!(page.text().contains(&begun.user_code));
    assert_eq!(stack.provider_counts().await["authorize"], 0);
    // The attacker's own confirmation is rejected in the victim's browser.
    let mut own = Browser::default();
    let own_page = own.open(&begun.authorize_url).await;
    let own_confirmation = own_page.confirmation().unwrap();
    let lured = victim.step(own_confirmation.as_str()).await;
    lured.response.rejected(400, "login_mismatch");
    // So is a forged one.
    let state = begun.state();
    let forged = stack.url(&format!("/login?state={state}&confirm=AAAA"));
    victim
        .step(&forged)
        .await
        .response
        .rejected(400, "login_mismatch");
    Browser::default()
        .step(&forged)
        .await
        .response
        .rejected(400, "login_mismatch");
    assert_eq!(stack.provider_counts().await["authorize"], 0);
    assert_eq!(check(&attacker, &begun.token).await["status"], "pending");
}

#[tokio::test]
async fn an_attackers_provider_page_cannot_be_completed_in_another_browser() {
    let stack = Stack::start().await;
    let attacker = stack.client();
    let begun = begin_polling(&attacker).await;
    let mut own = Browser::default();
    let provider = confirm_polling(&mut own, &begun).await;
    // The victim opens the provider's page of the attacker's login, and allows it.
    let mut victim = Browser::default();
    let page = victim.open(provider.url.as_str()).await;
    let lured = victim
        .decide_and_follow(&page, "ada", Decision::Allow)
        .await;
    lured.response.rejected(400, "login_mismatch");
    assert_eq!(check(&attacker, &begun.token).await["status"], "pending");
    assert_eq!(stack.provider_counts().await["token"], 0);
}

#[tokio::test]
async fn a_callback_without_the_cookie_is_rejected_and_does_not_end_the_login() {
    let stack = Stack::start().await;
    // Login CSRF: the attacker's own code, planted in the victim's browser.
    let mut attacker = Browser::for_data();
    let provider = attacker.open(&stack.url("/login")).await;
    let back = attacker.decide(&provider, "grace", Decision::Allow).await;
    let callback = back.redirect().unwrap();
    let mut victim = Browser::for_data();
    victim
        .step(callback.as_str())
        .await
        .response
        .rejected(400, "login_mismatch");
    // A login of the victim's own, in progress, makes no difference.
    victim.open(&stack.url("/login")).await;
    victim
        .step(callback.as_str())
        .await
        .response
        .rejected(400, "login_mismatch");
    let mut denial = callback.clone();
    let state = param(&callback, "state").unwrap();
    denial
        .query_pairs_mut()
        .clear()
        .append_pair("error", "access_denied")
        .append_pair("state", &state);
    victim
        .step(denial.as_str())
        .await
        .response
        .rejected(400, "login_mismatch");
    // The attacker's login is still pending: its own browser completes it.
    attacker.step(callback.as_str()).await.response.ok();
}

#[tokio::test]
async fn a_cookie_of_another_login_is_rejected() {
    let stack = Stack::start().await;
    let mut browser = Browser::for_data();
    let first = browser.open(&stack.url("/login")).await;
    let first_cookie = browser.cookies()[0].clone();
    let mut other = Browser::for_data();
    let second = other.open(&stack.url("/login")).await;
    let second_cookie = other.cookies()[0].clone();
    assert_ne!(first_cookie.name(), second_cookie.name());
    // The value of one cookie under the name of the other.
    let mut mixed = second_cookie;
    mixed.set_value(first_cookie.value().to_owned());
    other.put_cookie(&mixed, &stack.url("/login"));
    let mixed = other
        .decide_and_follow(&second, "ada", Decision::Allow)
        .await;
    mixed.response.rejected(400, "login_mismatch");
    browser
        .decide_and_follow(&first, "ada", Decision::Allow)
        .await
        .response
        .ok();
}

#[tokio::test]
async fn two_tabs_at_once_both_complete() {
    let stack = Stack::start().await;
    let client = stack.client();
    let mut browser = Browser::for_data();
    let redirect_tab = browser.open(&stack.url("/login")).await;
    let (one, two) = (begin_polling(&client).await, begin_polling(&client).await);
    let first_tab = browser.open(&one.authorize_url).await;
    let second_tab = browser.open(&two.authorize_url).await;
    let first_tab = browser.confirm(&first_tab).await;
    let second_tab = browser.confirm(&second_tab).await;
    browser
        .decide_and_follow(&second_tab, "ada", Decision::Allow)
        .await;
    browser
        .decide_and_follow(&redirect_tab, "lin", Decision::Allow)
        .await
        .response
        .ok();
    browser
        .decide_and_follow(&first_tab, "grace", Decision::Allow)
        .await;
    let (one, two) = (
        check(&client, &one.token).await,
        check(&client, &two.token).await,
    );
    assert_eq!(
        (&one["status"], &two["status"]),
        (&"complete".into(), &"complete".into())
    );
    assert_ne!(
        one["login"]["account"]["username"],
        two["login"]["account"]["username"]
    );
}

#[tokio::test]
async fn an_iss_of_another_provider_is_rejected() {
    let wrong = ["--issuer=https://evil.example"];
    let stack = Stack::builder().provider(&wrong).start().await;
    let mut browser = Browser::for_data();
    let provider = browser.open(&stack.url("/login")).await;
    let back = browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    back.response.rejected(400, "login_mismatch");
    assert_eq!(
        stack.provider_counts().await["token"],
        0,
        "the code was sent to the provider"
    );
}

#[tokio::test]
async fn the_configured_iss_is_accepted() {
    let issuer = "https://issuer.example";
    let config = format!("[providers.bitbucket]\nissuer = \"{issuer}\"");
    let argument = format!("--issuer={issuer}");
    let stack = Stack::builder()
        .backends(&config)
        .provider(&[&argument])
        .start()
        .await;
    log_in_by_redirect(&stack.client(), "ada").await;
}

#[tokio::test]
async fn secrets_of_a_login_are_in_no_log_and_not_in_the_store() {
    let config = "[application]\nreturn_to = [\"https://app.example\"]";
    let stack = Stack::builder().backends(config).start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let mut browser = Browser::default();
    let provider = confirm_polling(&mut browser, &begun).await;
    let back = browser.decide(&provider, "ada", Decision::Allow).await;
    let code = back.redirect_param("code").unwrap();
    // The user has confirmed, which a mark behind the value says.
    let cookie = browser.cookies()[0].value().to_owned();
    let cookie = cookie.strip_suffix(".confirmed").unwrap().to_owned();
    browser.follow(back).await;
    let login = check(&client, &begun.token).await["login"].clone();
    let provider = browser
        .open(&client.login_url(&[("return_to", "https://app.example/")]))
        .await;
    let back = browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    let ticket = back.redirect_param("ticket").unwrap();
    client
        .post("/user/login")
        .param("ticket", &ticket)
        .send()
        .await
        .ok();
    client
        .get("/user")
        .authorization(credential(&login))
        .send()
        .await
        .ok();

    let secrets = [
        &*begun.token,
        credential(&login),
        &code,
        &cookie,
        &ticket,
        "sandbox-only-secret",
    ];
    let state = begun.state();
    for program in [Program::Gateway, Program::V1, Program::V2] {
        let log = stack.log(program);
        for secret in secrets.iter().chain([&&*state]) {
            assert!(
                !log.contains(*secret),
                "{secret} is in the log of {program}:\n{log}"
            );
        }
        assert!(!log.contains("sign="), "{log}");
        if let Some(password) = stack.store().password() {
            // Only the part that is the same when it is escaped.
            let secret = password.split('/').next().unwrap();
            assert!(!log.contains(secret), "{log}");
        }
    }
    for secret in secrets {
        let found_in = stack.store().find(secret.as_bytes());
        assert_eq!(found_in, None, "{secret} is in the store");
    }
}

#[tokio::test]
async fn a_planted_code_does_not_complete_an_unconfirmed_login() {
    let stack = Stack::start().await;
    let client = stack.client();
    // The attacker allows a login of its own and keeps the code.
    let mut attacker = Browser::for_data();
    let provider = attacker.open(&stack.url("/login")).await;
    let back = attacker.decide(&provider, "grace", Decision::Allow).await;
    let code = back.redirect_param("code").unwrap();
    // The victim has opened the page of its own polling login, and not confirmed.
    let begun = begin_polling(&client).await;
    let mut victim = Browser::default();
    victim.open(&begun.authorize_url).await;
    let planted = stack.url(&format!("/login?state={}&code={code}", begun.state()));
    victim
        .step(&planted)
        .await
        .response
        .rejected(400, "login_mismatch");
    assert_eq!(check(&client, &begun.token).await["status"], "pending");
    assert_eq!(stack.provider_counts().await["token"], 0);
}

#[tokio::test]
async fn a_redirect_login_has_no_page_to_lure_a_victim_to() {
    let stack = Stack::start().await;
    let mut attacker = Browser::for_data();
    let begun = attacker.step(&stack.url("/login")).await;
    let state = param(&begun.redirect().unwrap(), "state").unwrap();
    for target in [
        format!("/login?state={state}"),
        format!("/login?state={state}&confirm=x"),
    ] {
        let mut victim = Browser::default();
        let page = victim.step(&stack.url(&target)).await;
        assert!(
            page.response.status.is_client_error(),
            "{target}: {}",
            page.response.summary()
        );
        assert!(
            victim.cookies().is_empty(),
            "{target}: {:?}",
            victim.cookies()
        );
    }
    assert_eq!(stack.provider_counts().await["authorize"], 0);
}

/// A call from this client address, by [`PROXY`].
fn from<'c>(call: Call<'c>, address: &str) -> Call<'c> {
    call.header("X-Forwarded-For", address)
}

/// Begins a polling login from this client address.
async fn begin_from(client: &SignedClient, address: &str) -> PollingLogin {
    let begun = from(client.post("/login").signed(), address).send().await;
    PollingLogin::from_response(&begun.ok())
}

/// Lets a test choose the client's address.
const PROXY: &str = "trusted_proxies = [\"127.0.0.1\"]";

#[tokio::test]
async fn the_page_shows_where_a_login_was_begun_and_warns_elsewhere() {
    let stack = Stack::builder().gateway(PROXY).start().await;
    let client = stack.client();
    for (begun_from, network, browser, warns) in [
        ("198.51.100.7", "198.51.100.0/24", "198.51.100.200", false),
        ("198.51.100.7", "198.51.100.0/24", "198.51.101.7", true),
        (
            "2001:db8:1:2::3",
            "2001:db8:1::/48",
            "2001:db8:1:ffff::",
            false,
        ),
        (
            "2001:db8:1:2::3",
            "2001:db8:1::/48",
            "2001:db8:2:2::3",
            true,
        ),
        // A home has both: they cannot be compared.
        ("198.51.100.7", "198.51.100.0/24", "2001:db8::1", false),
        ("2001:db8:1:2::3", "2001:db8:1::/48", "198.51.100.7", false),
    ] {
        let begun = begin_from(&client, begun_from).await;
        let page = format!("/login?state={}", begun.state());
        let page = from(client.get(&page).unsigned(), browser).send().await;
        let text = page.text();
        assert!(
            text.contains("This login was begun &lt;1 min ago"),
            "{text}"
        );
        assert!(
            text.contains(network) && !text.contains(begun_from),
            "{text}"
        );
        assert_eq!(
            text.contains("Your browser is in another network"),
            warns,
            "{text}"
        );
        assert!(text.contains("confirm="), "{text}");
        let stored = stack.store().find(begun_from.as_bytes());
        assert_eq!(stored, None, "the whole address is in the store");
    }
}

#[tokio::test]
async fn a_page_that_does_not_ask_is_shown_if_it_warns() {
    let stack = Stack::builder()
        .gateway(PROXY)
        .backends("[polling]\nconfirm = false")
        .start()
        .await;
    let client = stack.client();
    let begun = begin_from(&client, "198.51.100.7").await;
    let page = format!("/login?state={}", begun.state());
    let elsewhere = from(client.get(&page).unsigned(), "198.51.101.7")
        .send()
        .await;
    let text = elsewhere.text();
    assert!(
        text.contains("Your browser is in another network") && text.contains("confirm="),
        "{text}"
    );
    for unwarned in ["198.51.100.8", "2001:db8::1"] {
        let sent_on = from(client.get(&page).unsigned(), unwarned).send().await;
        assert_eq!(sent_on.status, 302, "{}", sent_on.summary());
    }
}

#[tokio::test]
async fn a_login_is_confirmed_only_in_its_own_network_if_that_is_required() {
    for confirm in [true, false] {
        let rule = format!("[login]\nsame_network = \"require\"\n[polling]\nconfirm = {confirm}");
        let stack = Stack::builder()
            .gateway(PROXY)
            .backends(&rule)
            .start()
            .await;
        let client = stack.client();
        let begun = begin_from(&client, "198.51.100.7").await;
        let page = format!("/login?state={}", begun.state());
        for (browser, is_near) in [
            ("198.51.101.7", false),
            ("2001:db8::1", false),
            ("198.51.100.8", true),
        ] {
            let mut response = from(client.get(&page).unsigned(), browser).send().await;
            if confirm {
                let text = response.text().to_owned();
                let link = text
                    .split("confirm=")
                    .nth(1)
                    .unwrap()
                    .split('"')
                    .next()
                    .unwrap();
                let cookie = response.header("set-cookie").unwrap();
                let link = client.get(&format!("{page}&confirm={link}")).unsigned();
                response = from(link.header("Cookie", cookie), browser).send().await;
            }
            if is_near {
                assert_eq!(response.status, 302, "{}", response.summary());
            } else {
                response.problem(403, "network_mismatch");
            }
        }
        let authorized = stack.provider_counts().await["authorize"].clone();
        assert_eq!(
            (
                authorized,
                check(&client, &begun.token).await["status"].clone()
            ),
            (0.into(), "pending".into())
        );
    }
}

#[tokio::test]
async fn a_prefetch_uses_up_no_login() {
    let stack = Stack::start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let mut browser = Browser::default();
    let page = browser.open(&begun.authorize_url).await;
    let cancel = page.text().rsplit("confirm=").next().unwrap().to_owned();
    let cancel = cancel.split('"').next().unwrap().to_owned();
    let cancel = format!("/login?state={}&confirm={cancel}", begun.state());
    let provider = browser.confirm(&page).await;
    let back = browser.decide(&provider, "ada", Decision::Allow).await;
    let callback = back.redirect().unwrap();
    let target = callback.as_str().strip_prefix(&stack.origin()).unwrap();
    let cookie = &browser.cookies()[0];
    let cookie = format!("{}={}", cookie.name(), cookie.value());
    for (target, header, value) in [
        (target, "Sec-Purpose", "prefetch"),
        (target, "Sec-Purpose", "prefetch;prerender"),
        (target, "Purpose", "prefetch"),
        (&cancel, "Sec-Purpose", "prefetch"),
    ] {
        let call = client.get(target).unsigned().header("Cookie", &cookie);
        let refused = call.header(header, value).send().await;
        refused.problem(403, "prefetch_refused");
    }
    assert_eq!(stack.provider_counts().await["token"], 0);
    assert_eq!(check(&client, &begun.token).await["status"], "pending");
    let done = browser.step(callback.as_str()).await;
    assert!(done.text().contains("You are logged in"), "{}", done.text());
    assert_eq!(check(&client, &begun.token).await["status"], "complete");
}

#[tokio::test]
async fn whatever_a_provider_adds_to_the_callback_a_user_is_logged_in() {
    let stack = Stack::start().await;
    let client = stack.client();
    let many = "&a=b".repeat(1000);
    for more in [
        "&userState=Authenticated&locale=en",
        "&cid=abc",
        "&scope=a&scope=b",
        "&time=1&sign=2&app=3",
        "&error=&y=%ff&%fe=%e4%f6&&",
        "&confirm=a",
        &many,
    ] {
        let mut browser = Browser::for_data();
        let provider = browser.open(&stack.url("/login")).await;
        let back = browser.decide(&provider, "ada", Decision::Allow).await;
        let callback = format!("{}{more}", back.redirect().unwrap());
        let login = browser.step(&callback).await.response.ok();
        assert!(login["authorization"].is_string(), "{more}: {login}");
        let mut browser = Browser::for_data();
        let provider = browser.open(&stack.url("/login")).await;
        let back = browser.decide(&provider, "ada", Decision::Deny).await;
        let callback = format!(
            "{}{}",
            back.redirect().unwrap(),
            more.replace("&error=", "&code=")
        );
        browser
            .step(&callback)
            .await
            .response
            .problem(403, "login_denied");
        // A page whose link has passed through a messenger, and its button.
        if more.contains("sign=") {
            continue;
        }
        let begun = begin_polling(&client).await;
        let mut browser = Browser::default();
        let more = more.replace("&error=", "").replace("&confirm=a", "");
        let page = browser
            .open(&format!("{}{more}", begun.authorize_url))
            .await;
        let button = page.confirmation().unwrap();
        let sent_on = browser.step(&format!("{button}{more}")).await;
        assert_eq!(sent_on.response.status, 302, "{more}: {}", sent_on.text());
    }
}
