//! What an OpenID provider does wrong, and what the user, the client and the log get.

use super::*;

/// What the provider says wrongly of a login, and what the log says of it.
#[tokio::test]
async fn each_fault_of_an_id_token_fails_the_login_and_is_logged() {
    let Some((stack, company)) = start().await else {
        return;
    };
    // Clocks differ: an ID token lives for 10 s there, and a minute is allowed.
    for skew in [0, 45, -45] {
        company.control(json!({ "skew": skew })).await;
        log_in(&stack, "company").await.ok();
    }
    company.control(json!({ "skew": 0 })).await;
    let other = "http://127.0.0.1:9";
    for (settings, logged) in [
        (json!({ "skew": -90 }), "s ago: compare the clocks"),
        (json!({ "skew": -3600 }), "s ago: compare the clocks"),
        (
            json!({ "claims": { "nbf": 4_000_000_000_u64 } }),
            "valid only in",
        ),
        (
            json!({ "claims": { "aud": "another client" } }),
            "for another audience",
        ),
        (
            json!({ "claims": { "aud": ["another client"] } }),
            "for another audience",
        ),
        (
            json!({ "claims": { "azp": "another client" } }),
            "issued to another client",
        ),
        (
            json!({ "claims": { "nonce": "n" } }),
            "of another login (nonce)",
        ),
        (
            json!({ "claims": { "nonce": null } }),
            "claim nonce is missing",
        ),
        (
            json!({ "claims": { "iss": other } }),
            "of another issuer, \"http://127.0.0.1:9\"",
        ),
        (json!({ "claims": { "sub": null } }), "claim sub is missing"),
        (json!({ "claims": { "exp": null } }), "claim exp is missing"),
        (json!({ "header": { "alg": "none" } }), "is not signed"),
        (json!({ "header": { "alg": "HS256" } }), "signed by HS256"),
        (
            json!({ "header": { "alg": "ES256" } }),
            "no key of the provider fits",
        ),
        // The ID token of the first login, which was valid.
        (json!({ "replay": true }), "of another login (nonce)"),
    ] {
        let back = json!({ "skew": 0, "claims": {}, "header": {}, "replay": false });
        company.control(back).await;
        company.control(settings.clone()).await;
        // A key that is not known waits for the next fetch: on a busy machine, that can time out.
        let failed = until_within(3 * WAIT_TIMEOUT, logged, || async {
            let failed = log_in(&stack, "company").await;
            assert_failed(&failed);
            (failed.status == 502).then_some(failed)
        })
        .await;
        failed.rejected(502, "provider_failed");
        assert_line(&stack, &failed, logged).await;
    }
    assert_logged(&stack, "provider_failed").await;
    assert_eq!(accounts(&stack), 1);
}

/// Errors that the provider sends the browser back with.
#[tokio::test]
async fn each_error_of_the_provider_has_its_meaning() {
    let Some((stack, company)) = start().await else {
        return;
    };
    let callback = |error: &str| {
        let settings = json!({ "error": error });
        let (stack, company) = (&stack, &company);
        async move {
            company.control(settings).await;
            let mut browser = Browser::default();
            let begun = begin_polling(&stack.client(), "company").await;
            let page = confirm_polling(&mut browser, &begun).await;
            company.control(json!({ "error": null })).await;
            (browser, begun, page)
        }
    };
    let client = stack.client();
    for error in ["temporarily_unavailable", "server_error"] {
        let (mut browser, begun, page) = callback(error).await;
        assert_eq!(page.response.status, 502);
        assert!(
            page.text().contains("provider is unavailable"),
            "{}",
            page.text()
        );
        assert_line(&stack, &page.response, "problem.code=\"provider_failed\"").await;
        assert_eq!(check(&client, &begun.token).await["status"], "pending");
        let [again] = &page.links()[..] else {
            panic!("one link: {}", page.text());
        };
        let page = browser.open(again.as_str()).await;
        let page = browser.confirm(&page).await;
        let back = decide(&mut browser, &page, NAME, Decision::Allow).await;
        assert_eq!(browser.follow(back).await.response.status, 200);
        assert_eq!(check(&client, &begun.token).await["status"], "complete");
    }
    // LinkedIn's and Pipedrive's words for it.
    for error in [
        "user_cancelled_login",
        "user_cancelled_authorize",
        "user_denied",
    ] {
        let (_, begun, page) = callback(error).await;
        page.response.rejected(403, "login_denied");
        let checked = check(&client, &begun.token).await;
        assert_eq!(checked["reason"], "access_denied", "{error}: {checked}");
    }
    for error in ["invalid_scope", "unauthorized_client", "invalid_request"] {
        let (_, begun, page) = callback(error).await;
        page.response.rejected(502, "provider_failed");
        assert_eq!(check(&client, &begun.token).await["status"], "failed");
        assert_logged(&stack, &format!("rejected the request: {error}")).await;
    }
}

/// What its token endpoint and its user info answer wrongly, and what the log says of it.
#[tokio::test]
async fn each_fault_of_an_answer_fails_the_login_and_is_logged() {
    let Some((stack, company)) = start().await else {
        return;
    };
    // It lasts as long as a callback may, beside all others.
    company
        .control(json!({ "faults": { TOKEN: "slow" } }))
        .await;
    let url = stack.client().login_url(&[("provider", "company")]);
    let slow = tokio::spawn(log_in_at(url));
    until("a request of the token endpoint", || async {
        (company.count(TOKEN).await == 1).then_some(())
    })
    .await;
    let of_token = [
        ("500", "the provider answered 500 for the code"),
        ("redirect", "the provider answered 302 for the code"),
        ("307", "the provider answered 307 for the code"),
        ("huge", "the provider's response is too large"),
        ("garbage", "the provider's token response is malformed"),
        (
            "html",
            "the provider's token response has a Content-Type that is not JSON",
        ),
        ("wrong", "the provider's token response has no ID token"),
    ];
    let refusals = [
        ("server_error", "is unavailable: server_error"),
        (
            "temporarily_unavailable",
            "is unavailable: temporarily_unavailable",
        ),
        (
            "invalid_client",
            "rejected the client: invalid_client: compare client_id, client_secret, client_auth and scopes",
        ),
        (
            "unauthorized_client",
            "rejected the client: unauthorized_client",
        ),
        ("invalid_scope", "rejected the client: invalid_scope"),
        (
            "unsupported_grant_type",
            "rejected the client: unsupported_grant_type",
        ),
        (
            "incorrect_client_credentials",
            "rejected the client: incorrect_client_credentials",
        ),
        (
            "redirect_uri_mismatch",
            "rejected the callback: redirect_uri_mismatch",
        ),
        ("invalid_grant", "rejected the code: invalid_grant"),
        // Not a word: it could be anything.
        ("the code eyJ", "rejected the code: another error"),
    ];
    let of_token = of_token.map(|(fault, logged)| (TOKEN, json!(fault), logged));
    let refusals = refusals.map(|(error, logged)| (TOKEN, json!({ "error": error }), logged));
    let faults = of_token.into_iter().chain(refusals);
    for (path, fault, logged) in faults {
        let asked = company.count(path).await;
        company.control(json!({ "faults": { path: fault } })).await;
        let failed = log_in(&stack, "company").await;
        assert_eq!(failed.status, 502, "{path} {fault}: {}", failed.text());
        failed.rejected(502, "provider_failed");
        assert_line(&stack, &failed, logged).await;
        assert_eq!(company.count(path).await, asked + 1, "{path} {fault}");
    }
    // Its user info is right, but not of the user whom the ID token names.
    let another = json!({ "name": null, "sub": "another user" });
    company
        .control(json!({ "faults": {}, "claims": another }))
        .await;
    let failed = log_in(&stack, "company").await;
    failed.rejected(502, "provider_failed");
    let other_user = "the provider's user info is about another user than its ID token";
    assert_line(&stack, &failed, other_user).await;
    let failed = slow.await.unwrap();
    assert_eq!(failed.status, 504, "{}", failed.text());
    failed.rejected(504, "provider_timeout");
    assert_line(&stack, &failed, "the provider timed out").await;
    assert_logged(&stack, "provider_timeout").await;
    assert_eq!(accounts(&stack), 0);
    company.control(json!({ "claims": { "name": null } })).await;
    log_in(&stack, "company").await.ok();
    assert_eq!(accounts(&stack), 1);
    let counts = company.counts().await;
    assert!(!counts.keys().any(|path| path.starts_with("/elsewhere")));
}

/// The name is optional, so no answer about it fails a login, and no access token is needed for one.
#[tokio::test]
async fn a_name_that_cannot_be_had_fails_no_login() {
    let Some((stack, company)) = start().await else {
        return;
    };
    let nameless = |login: &Value| {
        assert_eq!(login["account"]["username"], subject_of(NAME), "{login}");
        assert!(login["account"].get("display_name").is_none(), "{login}");
    };
    // A login whose ID token has a name does without the user info.
    company.control(json!({ "claims": { "name": null } })).await;
    let faults = [
        "slow", "500", "redirect", "huge", "garbage", "html", "jwt", "wrong",
    ];
    for fault in faults {
        company
            .control(json!({ "faults": { USER_INFO: fault } }))
            .await;
        nameless(&log_in(&stack, "company").await.ok());
    }
    let warned = "users logged in without their user info";
    let log = stack.log_with(Program::V1, warned).await;
    // The first fault; the others are counted within the next minute.
    let line = log.lines().find(|line| line.contains(warned)).unwrap();
    assert!(line.contains("WARN") && line.contains("company"), "{line}");
    assert!(line.contains("the provider timed out"), "{line}");
    // Nothing but the ID token is read.
    let asked = company.count(USER_INFO).await;
    let odd =
        json!({ "expires_in": "3600", "scope": ["openid"], "refresh_token": null, "error": null });
    for access in [
        json!({ "token_type": "mac" }),
        json!({ "token_type": "Bearer", "access_token": "" }),
        json!({ "access_token": 1 }),
    ] {
        let mut answer = odd.clone();
        answer
            .as_object_mut()
            .unwrap()
            .extend(access.as_object().unwrap().clone());
        let settings = json!({ "faults": {}, "claims": { "name": null }, "answer": answer });
        company.control(settings).await;
        nameless(&log_in(&stack, "company").await.ok());
        company.control(json!({ "claims": { "name": NAME } })).await;
        assert_account(&log_in(&stack, "company").await.ok(), "company", NAME);
    }
    assert_eq!(company.count(USER_INFO).await, asked, "as a bearer token");
    assert_logged(&stack, warned).await;
}

/// Neither what an OpenID provider publishes nor a token can be had there.
async fn assert_certificate_fault(stack: &Stack, name: &str, cause: &str) {
    let client = stack.client();
    let mut browser = Browser::for_data();
    let begun = browser.step(&client.login_url(&[("provider", name)])).await;
    let by_polling = begin_polling(&client, name).await;
    let confirmed = confirm_polling(&mut Browser::default(), &by_polling).await;
    let by_oauth = format!("{name}-oauth");
    let page = browser
        .step(&client.login_url(&[("provider", &by_oauth)]))
        .await;
    let state = page.redirect_param("state").expect("at the provider");
    let callback = stack.url(&format!("/login?code=c&state={state}"));
    let exchanged = browser.step(&callback).await;
    for Page { url, response } in [begun, confirmed, exchanged] {
        assert_eq!(response.status, 502, "{url}: {}", response.text());
        response.rejected(502, "provider_failed");
        assert_line(stack, &response, "the provider is unreachable").await;
        assert_line(stack, &response, cause).await;
    }
}

/// Each of them ends before anything secret is sent.
#[tokio::test]
async fn a_certificate_that_is_not_valid_is_named_in_the_log() {
    let authority = Authority::new("The company's authority");
    let valid = authority.issue(&["127.0.0.1"]);
    let expired = authority.issue_with(&["127.0.0.1"], |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    let elsewhere = authority.issue(&["id.example"]);
    let mut tables = String::new();
    let mut servers = Vec::new();
    for (name, certificate) in [
        ("valid", valid),
        ("expired", expired),
        ("elsewhere", elsewhere),
    ] {
        let server = RecordingBackend::start_with_tls(certificate.server_config(None)).await;
        let url = format!("https://{}", server.address());
        tables += &format!(
            "[providers.{name}]\nkind = \"oidc\"\nissuer = \"{url}\"\nclient_id = \"c\"\nclient_secret = \"s\"\n\
             [providers.{name}-oauth]\nkind = \"oauth2\"\nauthorize_url = \"{url}/a\"\ntoken_url = \"{url}/t\"\n\
             user_url = \"{url}/u\"\nid_field = \"id\"\nclient_id = \"c\"\nclient_secret = \"s\"\n"
        );
        servers.push(server);
    }
    let builder = Stack::builder().program(Program::V1, &tables);
    let mut stack = builder.file("ca.pem", authority.pem()).start().await;
    let unknown = "invalid peer certificate: UnknownIssuer";
    assert_certificate_fault(&stack, "valid", unknown).await;
    assert!(servers.iter().all(|server| server.recorded().is_empty()));
    // The authorities of the system, for this process.
    let mut command = Program::V1.command(stack.folder());
    command.env("SSL_CERT_FILE", stack.folder().join("ca.pem"));
    stack.restart_as(Program::V1, command).await;
    assert_certificate_fault(&stack, "expired", "certificate expired").await;
    assert_certificate_fault(&stack, "elsewhere", "not valid for name").await;
    let (valid, others) = servers.split_first().expect("three servers");
    assert!(others.iter().all(|server| server.recorded().is_empty()));
    // It is no provider, but its certificate is all right.
    let url = stack.client().login_url(&[("provider", "valid")]);
    let failed = Browser::for_data().step(&url).await.response;
    failed.rejected(502, "provider_failed");
    assert_line(&stack, &failed, "the provider cannot be used").await;
    assert_eq!(valid.request_number(1).await.target, DISCOVERY);
    // The verifier has no lines of its own: a client could cause any number.
    let log = stack.log(Program::V1);
    assert!(!log.contains("failed to verify TLS certificate"), "{log}");
}

/// Faults of what a provider publishes: each is an issuer of its own.
#[tokio::test]
async fn what_a_provider_publishes_wrongly_fails_logins_until_it_is_mended() {
    let Some(company) = OpenIdProvider::start(Options::default()).await else {
        return;
    };
    let documents = [("discovery", DISCOVERY), ("jwks", KEYS)];
    let faults = [
        "slow", "500", "redirect", "huge", "garbage", "html", "wrong",
    ];
    let (mut names, mut settings, mut tables) = (Vec::new(), json!({}), String::new());
    for (document, path) in documents {
        for fault in faults {
            let name = format!("{document}-{fault}");
            settings[format!("/{name}{path}")] = fault.into();
            tables += &company.table_of_own(&name);
            names.push(name);
        }
    }
    tables += &company.table("company");
    company
        .control(json!({ "faults": settings, "issuer": "https://id.example" }))
        .await;
    let stack = Stack::builder().program(Program::V1, &tables).start().await;
    company.register(&stack.url("/login")).await;
    let client = stack.client();
    names.push("company".to_owned());
    // In a browser it is a page, and the login stays pending.
    for name in &names {
        let begun = begin_polling(&client, name).await;
        let page = confirm_polling(&mut Browser::default(), &begun).await;
        let media = page.response.header("content-type").unwrap();
        assert!(media.starts_with("text/html"), "{name}: {media}");
        let status = page.response.status.as_u16();
        // On a busy machine, each fetch can time out.
        match name.ends_with("-slow") || status == 504 {
            true => page.response.rejected(504, "provider_timeout"),
            false => page.response.rejected(502, "provider_failed"),
        }
        assert_eq!(check(&client, &begun.token).await["status"], "pending");
    }
    for (name, fault) in [
        ("discovery-slow", "the provider timed out"),
        ("discovery-500", "answered 500 for its discovery document"),
        (
            "discovery-redirect",
            "answered 302 for its discovery document",
        ),
        ("discovery-huge", "too large"),
        ("discovery-garbage", "not a JSON object"),
        ("discovery-html", "not JSON"),
        ("discovery-wrong", "issuer is missing or malformed"),
        ("jwks-slow", "the provider timed out"),
        ("jwks-500", "answered 500 for its keys"),
        ("jwks-redirect", "answered 302 for its keys"),
        ("jwks-huge", "too large"),
        ("jwks-garbage", "not a JSON object"),
        ("jwks-html", "not JSON"),
        ("jwks-wrong", "not a JSON object with a list of keys"),
        ("company", "of another issuer, \"https://id.example\""),
    ] {
        // On a busy machine, a fetch that fails can time out instead; the next one comes after 5 s.
        until(&format!("{name}: {fault}"), || async {
            let url = client.login_url(&[("provider", name)]);
            let failed = Browser::for_data().step(&url).await.response;
            let status = failed.status.as_u16();
            assert!([502, 504].contains(&status), "{}", failed.text());
            let expected = if name.ends_with("-slow") { 504 } else { 502 };
            let id = failed.header("x-request-id").unwrap();
            let log = stack.log_with(Program::V1, &format!("{id} ")).await;
            let mut lines = log.lines().filter(|line| line.contains(id));
            let is_logged = lines.any(|line| line.contains(fault));
            (status == expected && is_logged).then_some(())
        })
        .await;
    }
    let followed =
        |counts: &BTreeMap<String, u64>| counts.keys().any(|path| path.starts_with("/elsewhere"));
    assert!(!followed(&company.counts().await));
    // The service notices by itself.
    company
        .control(json!({ "faults": {}, "issuer": null }))
        .await;
    for name in &names {
        until_well(&stack.client(), name).await;
    }
    log_in(&stack, "company").await.ok();
}
