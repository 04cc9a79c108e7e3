//! Logins by OpenID Connect, with a certified provider as the other side. CONTRACT 8.
//!
//! Version 2 has no such provider: only version 1 fetches, so that a test can count.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

use end_to_end::{
    browser::{Browser, Decision, Page, param},
    certificates::Authority,
    logins::{PollingLogin, check, confirm_polling, credential, until_well},
    openid_provider::{CLIENT_SECRET, OpenIdProvider, Options, decide, subject_of},
    port::free_address,
    program::{Program, output_text},
    real_browser::RealBrowser,
    recording_backend::RecordingBackend,
    response::Response,
    signed_client::SignedClient,
    stack::{Stack, StackBuilder},
    waiting::{WAIT_TIMEOUT, until, until_within},
};
use rcgen::date_time_ymd;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

mod faults;

const NAME: &str = "Ada Lovelace";
const TOKEN: &str = "/token";
const USER_INFO: &str = "/me";
const DISCOVERY: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/jwks";
/// The login service's pause between two fetches of what a provider publishes. CONTRACT 8 of backends.
const PAUSE: Duration = Duration::from_secs(5);

/// A provider by the name "company", and a stack that has it beside the sandbox.
async fn start() -> Option<(Stack, OpenIdProvider)> {
    let company = OpenIdProvider::start(Options::default()).await?;
    let stack = with(Stack::builder(), &[("company", &company)]).await;
    Some((stack, company))
}

/// Starts a stack that has these providers, and registers its callback at each.
async fn with(builder: StackBuilder, providers: &[(&str, &OpenIdProvider)]) -> Stack {
    let tables = providers
        .iter()
        .map(|(name, provider)| provider.table(name));
    let tables: String = tables.collect();
    let stack = builder.program(Program::V1, &tables).start().await;
    for (name, provider) in providers {
        provider.register(&stack.url("/login")).await;
        until_well(&stack.client(), name).await;
    }
    stack
}

/// Begins a redirect login of a client that takes data, and stops at the provider's page.
async fn begin(stack: &Stack, provider: &str) -> (Browser, Page) {
    let mut browser = Browser::for_data();
    let url = stack.client().login_url(&[("provider", provider)]);
    let page = browser.open(&url).await;
    (browser, page)
}

/// A whole redirect login: the last response.
async fn log_in(stack: &Stack, provider: &str) -> Response {
    log_in_at(stack.client().login_url(&[("provider", provider)])).await
}

async fn log_in_at(url: String) -> Response {
    let mut browser = Browser::for_data();
    let page = browser.open(&url).await;
    let back = decide(&mut browser, &page, NAME, Decision::Allow).await;
    browser.follow(back).await.response
}

/// Many redirect logins at the same time.
async fn log_in_often(stack: &Stack, provider: &str, count: usize) -> Vec<Response> {
    let url = stack.client().login_url(&[("provider", provider)]);
    let logins: JoinSet<_> = (0..count).map(|_| log_in_at(url.clone())).collect();
    logins.join_all().await
}

async fn begin_polling(client: &SignedClient, provider: &str) -> PollingLogin {
    let begun = client.post("/login").param("provider", provider);
    PollingLogin::from_response(&begun.signed().send().await.ok())
}

fn assert_account(login: &Value, provider: &str, name: &str) {
    let account = &login["account"];
    assert_eq!(account["username"], subject_of(name), "{login}");
    assert_eq!(account["display_name"], name, "{login}");
    assert_eq!(account["type"], provider, "{login}");
}

/// Whether a login succeeded that may have needed the next fetch: on a busy machine, it can time out.
fn is_served_or_slow(response: &Response) -> bool {
    matches!(response.status.as_u16(), 200 | 504)
}

/// Waits until a login succeeds that may need the next fetch.
async fn until_logged_in(stack: &Stack) {
    until_within(3 * WAIT_TIMEOUT, "a login to succeed", || async {
        (log_in(stack, "company").await.status == 200).then_some(())
    })
    .await;
}

/// Checks that a login failed which needed the next fetch: on a busy machine, it can time out instead.
fn assert_failed(response: &Response) {
    let status = response.status.as_u16();
    assert!([502, 504].contains(&status), "{}", response.text());
}

/// Waits for the access line of a failed login, and checks that neither this log nor the gateway's has what tokens say.
async fn assert_logged(stack: &Stack, words: &str) {
    let log = stack.log_with(Program::V1, words).await;
    for log in [log, stack.log(Program::Gateway)] {
        for secret in [NAME, &subject_of(NAME), CLIENT_SECRET, "eyJ"] {
            assert!(!log.contains(secret), "{secret}: {log}");
        }
    }
}

/// Waits for the access line of this response, with these words.
async fn assert_line(stack: &Stack, response: &Response, words: &str) {
    let id = response.header("x-request-id").unwrap();
    until(&format!("{words} in the line of {id}"), || async {
        let log = stack.log(Program::V1);
        let mut lines = log.lines().filter(|line| line.contains(id));
        lines.any(|line| line.contains(words)).then_some(())
    })
    .await;
}

/// The number of people who have ever logged in.
fn accounts(stack: &Stack) -> i64 {
    let accounts = stack.store().query("SELECT count(*) FROM accounts");
    accounts.number()
}

/// One provider for each way to sign and to authenticate. One of them tells the name by its user info only.
#[tokio::test]
async fn people_log_in_by_redirect_and_by_polling() {
    let options = [
        ("company", "basic", "RS256"),
        ("university", "post", "EdDSA"),
        ("ministry", "basic", "ES256"),
    ];
    let mut providers = Vec::new();
    for (name, client_auth, algorithm) in options {
        let options = Options {
            client_auth,
            algorithm,
        };
        let Some(provider) = OpenIdProvider::start(options).await else {
            return;
        };
        providers.push((name, provider));
    }
    let by_name: Vec<_> = providers.iter().map(|(name, one)| (*name, one)).collect();
    let stack = with(Stack::builder(), &by_name).await;
    let client = stack.client();
    for (name, provider) in &providers {
        let is_first = *name == "company";
        let login = log_in(&stack, name).await.ok();
        assert_account(&login, name, NAME);
        assert_eq!(login["created"], true);
        provider
            .control(json!({ "claims": { "name": null } }))
            .await;
        // The same person, by polling.
        let begun = begin_polling(&client, name).await;
        let mut browser = Browser::default();
        let page = confirm_polling(&mut browser, &begun).await;
        let back = decide(&mut browser, &page, NAME, Decision::Allow).await;
        assert_eq!(browser.follow(back).await.response.status, 200);
        let checked = check(&client, &begun.token).await;
        assert_account(&checked["login"], name, NAME);
        assert_eq!(checked["login"]["created"], false);
        assert_eq!(provider.count(USER_INFO).await, 1);
        if is_first {
            let user = client.get("/user").authorization(credential(&login));
            assert_account(&json!({ "account": user.send().await.ok() }), name, NAME);
        }
        let (mut browser, page) = begin(&stack, name).await;
        let back = decide(&mut browser, &page, NAME, Decision::Deny).await;
        let denied = browser.follow(back).await.response;
        denied.rejected(403, "login_denied");
    }
    // The same name at three providers are three people.
    assert_eq!(accounts(&stack), 3);
    assert_logged(&stack, "login_denied").await;
}

#[tokio::test]
async fn a_person_logs_in_in_a_real_browser() {
    let Some(company) = OpenIdProvider::start(Options::default()).await else {
        return;
    };
    let origin = "[application]\nreturn_to = [\"http://$GATEWAY\"]";
    let stack = with(Stack::builder().backends(origin), &[("company", &company)]).await;
    let client = stack.client();
    let return_to = stack.url("/problems/app_missing");
    let browser = RealBrowser::start("en").await;
    let parameters = [("provider", "company"), ("return_to", &return_to)];
    browser.open(&client.login_url(&parameters)).await;
    browser.wait_for_text("Sign in at the company").await;
    browser.click("button[value=allow]").await;
    browser.wait_for_text("app_missing").await;
    let address = browser.address().await.parse().unwrap();
    let ticket = param(&address, "ticket").expect("a ticket");
    let collected = client.post("/user/login").param("ticket", &ticket);
    assert_account(&collected.send().await.ok(), "company", NAME);
    // The company still knows this browser: only the page of the login is shown.
    let begun = begin_polling(&client, "company").await;
    browser.open(&begun.authorize_url).await;
    browser.wait_for_text(&begun.user_code).await;
    browser.click("main a.button").await;
    browser.wait_for_text("You are logged in").await;
    let checked = check(&client, &begun.token).await;
    assert_account(&checked["login"], "company", NAME);
    assert_eq!(browser.console_errors().await, [""; 0]);
}

#[tokio::test]
async fn rotated_keys_are_fetched_and_a_flood_of_unknown_ones_is_not() {
    let Some(company) = OpenIdProvider::start(Options::default()).await else {
        return;
    };
    // An eighth of it is one address's.
    let limits = "[limits]\nprovider_calls = 1000";
    let builder = Stack::builder().program(Program::V1, limits);
    let stack = with(builder, &[("company", &company)]).await;
    let (started, first) = (Instant::now(), company.count(KEYS).await);
    log_in(&stack, "company").await.ok();
    // One more if the first fetch timed out.
    assert!(company.count(KEYS).await <= first + 1);
    // While a person is at the provider's page.
    let (mut browser, page) = begin(&stack, "company").await;
    sleep(PAUSE).await;
    company.control(json!({ "rotate": true })).await;
    let back = decide(&mut browser, &page, NAME, Decision::Allow).await;
    let response = browser.follow(back).await.response;
    assert!(is_served_or_slow(&response), "{}", response.text());
    until_logged_in(&stack).await;
    assert!(company.count(KEYS).await > first);
    // At once again, when many wait for the new keys: on a busy machine, they can time out.
    company.control(json!({ "rotate": true })).await;
    for response in log_in_often(&stack, "company", 5).await {
        assert!(is_served_or_slow(&response), "{}", response.text());
    }
    until_logged_in(&stack).await;
    company
        .control(json!({ "header": { "kid": "random" } }))
        .await;
    for response in log_in_often(&stack, "company", 50).await {
        assert_failed(&response);
    }
    for path in [KEYS, DISCOVERY] {
        let fetches = company.count(path).await;
        let most = first + 1 + started.elapsed().as_secs() / PAUSE.as_secs();
        let expected = first + 2..=most;
        assert!(expected.contains(&fetches), "{path}: {fetches} of {most}");
    }
    assert_logged(&stack, "no key of the provider fits").await;
    // A failed fetch changes nothing, and each fault has its line, also within a minute.
    for (path, fault) in [
        (DISCOVERY, "answered 500 for its discovery document"),
        (KEYS, "answered 500 for its keys"),
    ] {
        company.control(json!({ "faults": { path: "500" } })).await;
        // On a busy machine, a fetch can time out instead.
        until_within(3 * WAIT_TIMEOUT, fault, || async {
            assert_failed(&log_in(&stack, "company").await);
            stack.log(Program::V1).contains(fault).then_some(())
        })
        .await;
        assert_logged(&stack, fault).await;
    }
    company.control(json!({ "header": {} })).await;
    until_logged_in(&stack).await;
}

/// Nothing in a token says that its key is a new one: only its signature does.
#[tokio::test]
async fn a_key_without_an_id_or_with_the_same_is_replaced_and_forgers_cause_few_fetches() {
    let Some(company) = OpenIdProvider::start(Options::default()).await else {
        return;
    };
    let limits = "[limits]\nprovider_calls = 1000";
    let builder = Stack::builder().program(Program::V1, limits);
    let stack = with(builder, &[("company", &company)]).await;
    let (started, first) = (Instant::now(), company.count(KEYS).await);
    log_in(&stack, "company").await.ok();
    for replaced in [
        json!({ "rotate": "same kid" }),
        json!({ "rotate": true, "kidless": true, "header": { "kid": null } }),
        json!({ "rotate": true }),
    ] {
        sleep(PAUSE).await;
        company.control(replaced).await;
        until_logged_in(&stack).await;
    }
    company.control(json!({ "forged": true })).await;
    for response in log_in_often(&stack, "company", 30).await {
        assert_failed(&response);
    }
    let fetches = company.count(KEYS).await;
    let most = first + 1 + started.elapsed().as_secs() / PAUSE.as_secs();
    let expected = first + 3..=most;
    assert!(expected.contains(&fetches), "{fetches} of {most}");
    company.control(json!({ "forged": false })).await;
    until_logged_in(&stack).await;
}

/// A code is used once, and only where it comes from: mix-up attacks, RFC 9207.
#[tokio::test]
async fn a_code_of_another_login_or_provider_is_worth_nothing() {
    let Some((company, evil)) = both().await else {
        return;
    };
    let stack = with(Stack::builder(), &[("company", &company), ("evil", &evil)]).await;
    // A code that has been used, in another login.
    let (mut browser, page) = begin(&stack, "company").await;
    let used = decide(&mut browser, &page, NAME, Decision::Allow).await;
    let code = used.redirect_param("code").unwrap();
    browser.follow(used).await.response.ok();
    let (mut browser, page) = begin(&stack, "company").await;
    let back = decide(&mut browser, &page, NAME, Decision::Allow).await;
    let replayed = with_param(&back, "code", &code);
    let failed = browser.open(&replayed).await;
    failed.response.rejected(502, "provider_failed");
    assert_logged(&stack, "rejected the code: invalid_grant").await;

    let tokens = [company.count(TOKEN).await, evil.count(TOKEN).await];
    // Two logins of one browser: each has the other's state.
    let mut browser = Browser::for_data();
    let mut backs = Vec::new();
    for name in ["company", "evil", "bitbucket"] {
        let url = stack.client().login_url(&[("provider", name)]);
        let page = browser.open(&url).await;
        backs.push(match name {
            "bitbucket" => browser.decide(&page, "ada", Decision::Allow).await,
            _ => decide(&mut browser, &page, NAME, Decision::Allow).await,
        });
    }
    let state = |page: &Page| page.redirect_param("state").unwrap();
    let [company_back, evil_back, sandbox_back] = &backs[..] else {
        panic!("three logins");
    };
    for (from, to) in [
        (company_back, evil_back),
        (evil_back, company_back),
        // The sandbox sends no `iss`.
        (sandbox_back, company_back),
        (company_back, sandbox_back),
    ] {
        let swapped = with_param(from, "state", &state(to));
        let mixed = browser.open(&swapped).await;
        mixed.response.rejected(400, "login_mismatch");
        let stripped = without_param(&swapped, "iss");
        if to.redirect_param("iss").is_some() {
            let mixed = browser.open(&stripped).await;
            mixed.response.rejected(400, "login_mismatch");
        }
    }
    assert_eq!(stack.provider_counts().await["token"], 0);
    assert_eq!(
        [company.count(TOKEN).await, evil.count(TOKEN).await],
        tokens
    );
    // None of it has done a login any harm.
    for back in backs {
        browser.follow(back).await.response.ok();
    }
}

async fn both() -> Option<(OpenIdProvider, OpenIdProvider)> {
    let company = OpenIdProvider::start(Options::default()).await?;
    let evil = OpenIdProvider::start(Options::default()).await?;
    Some((company, evil))
}

/// The target of a redirect, with another value of a parameter.
fn with_param(page: &Page, name: &str, value: &str) -> String {
    let mut url = page.redirect().unwrap();
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let changed = pairs.iter().map(|(key, old)| match key == name {
        true => (key.as_str(), value),
        false => (key.as_str(), old.as_str()),
    });
    url.query_pairs_mut().clear().extend_pairs(changed);
    url.into()
}

fn without_param(url: &str, name: &str) -> String {
    let mut url: url::Url = url.parse().unwrap();
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let kept = pairs.iter().filter(|(key, _)| key != name);
    url.query_pairs_mut().clear().extend_pairs(kept);
    url.into()
}

#[tokio::test]
async fn a_check_finds_what_would_fail_at_the_first_login() {
    let Some(company) = OpenIdProvider::start(Options::default()).await else {
        return;
    };
    let unreachable = free_address();
    let sandbox = Stack::builder().only_provider().start().await;
    let sandbox = sandbox.addresses().provider;
    let of_sandbox = |name: &str, port: SocketAddr, secret: &str| {
        format!(
            "[providers.{name}]\nkind = \"bitbucket\"\nurl = \"http://{port}\"\nclient_id = \"signpost-demo\"\n\
             client_secret = \"{secret}\"\n"
        )
    };
    let wrong_secret = company.table("secret").replace(CLIENT_SECRET, "wrong");
    let well = [
        company.table("company"),
        of_sandbox("sandbox", sandbox, "sandbox-only-secret"),
    ]
    .concat();
    let all = [
        well.clone(),
        wrong_secret,
        company.table_of("slash", &format!("{}/", company.issuer())),
        company.table_of("away", &format!("http://{unreachable}")),
        of_sandbox("refused", unreachable, "sandbox-only-secret"),
        of_sandbox("stranger", sandbox, "another-secret"),
    ]
    .concat();
    let run = |tables: &str| {
        let builder = Stack::builder().without(Program::V1, "providers");
        let files = builder.program(Program::V1, tables).write_files();
        let config = files.config(Program::V1);
        let arguments = ["check", "--online", "--config", &config];
        let output = Program::V1.run(files.path(), &arguments);
        (output.status.code(), output_text(&output))
    };
    let (code, text) = run(&well);
    assert_eq!(code, Some(0), "{text}");
    for line in [
        "providers.company: OK: 1 keys, RS256",
        "providers.sandbox: OK",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let (code, text) = run(&all);
    assert_eq!(code, Some(1), "{text}");
    for (line, fault) in [
        ("providers.company: ", "OK: 1 keys, RS256"),
        ("providers.sandbox: ", "OK"),
        ("providers.secret: ", "rejected the client: invalid_client"),
        ("providers.slash: ", "of another issuer"),
        ("providers.away: ", "unreachable"),
        ("providers.refused: ", "unreachable"),
        (
            "providers.stranger: ",
            "rejected the client: invalid_client",
        ),
    ] {
        let mut lines = text.lines().filter(|found| found.starts_with(line));
        let found = lines.next().unwrap_or_default();
        assert!(found.contains(fault), "{line}{fault}: {text}");
        assert_eq!(lines.next(), None, "{text}");
    }
    for secret in [CLIENT_SECRET, "sandbox-only-secret", "another-secret"] {
        assert!(!text.contains(secret), "{text}");
    }
}
