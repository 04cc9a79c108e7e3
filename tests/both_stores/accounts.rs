//! Routes with accounts: the gateway checks the credential, and tells the backend whose it is. CONTRACT 9.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use end_to_end::{
    browser::{Browser, Decision},
    logins::{credential, log_in_by_polling, log_in_by_redirect, rejection_of, until_well},
    program::{Program, output_text},
    recording_backend::{Behaviour, RecordedRequest, RecordingBackend},
    response::Response,
    signed_client::{Call, SignedClient, fetch},
    stack::{Stack, StackBuilder},
    waiting::{WAIT_TIMEOUT, until, until_within},
};
use serde_json::Value;
use tokio::task::JoinSet;

const AUTHORIZATION: &str = "acme-x-authorization";
const ID: &str = "x-gateway-account-id";
const USERNAME: &str = "x-gateway-account-username";
const TYPE: &str = "x-gateway-account-type";
const NAME: &str = "x-gateway-account-name";
const EMAIL: &str = "x-gateway-account-email";

/// Routes of version 1 for each kind of check, with and without the credential.
fn routes(backend: SocketAddr) -> String {
    let route = |path: &str, further: &str| {
        format!("[[versions.v1.routes]]\npath = \"{path}\"\nbackend = \"{backend}\"\n{further}\n")
    };
    [
        route("/none", ""),
        route("/none/passed", "pass_authorization = true"),
        route("/optional", "account = \"optional\""),
        route("/required", "account = \"required\""),
        route(
            "/required/passed",
            "account = \"required\"\npass_authorization = true",
        ),
    ]
    .concat()
}

/// An installation whose version 1 has these routes to a recording backend.
async fn with_routes(builder: StackBuilder) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let stack = builder.gateway(&routes(backend.address())).start().await;
    (stack, backend)
}

/// The request that the backend gets for a call that is served.
async fn forwarded(backend: &RecordingBackend, call: Call<'_>) -> RecordedRequest {
    let before = backend.requests().len();
    let response = call.send().await;
    assert_eq!(response.status, 200, "{}", response.summary());
    let requests = backend.requests();
    assert_eq!(requests.len(), before + 1);
    requests[before].clone()
}

fn account(request: &RecordedRequest) -> [Option<&str>; 3] {
    [ID, USERNAME, TYPE].map(|name| request.value(name))
}

#[tokio::test]
async fn a_backend_gets_the_account_that_the_gateway_has_checked() {
    let (stack, backend) = with_routes(Stack::builder()).await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let sent = credential(&login);
    let username = login["account"]["username"].as_str().unwrap();
    let kind = login["account"]["type"].as_str().unwrap();
    let call = |path: &str| {
        let call = client.get(path).authorization(sent).header("Cookie", "a=b");
        call.header("Authorization", "Basic eDp5")
    };
    let mut ids = Vec::new();
    for (path, has_account, is_passed) in [
        ("/none", false, false),
        ("/none/passed", false, true),
        ("/optional", true, false),
        ("/required", true, false),
        ("/required/passed", true, true),
    ] {
        let request = forwarded(&backend, call(path)).await;
        let [id, found_username, found_kind] = account(&request);
        ids.extend(id.map(str::to_owned));
        assert_eq!(id.is_some(), has_account, "{path}");
        assert_eq!(found_username, has_account.then_some(username), "{path}");
        assert_eq!(found_kind, has_account.then_some(kind), "{path}");
        let passed = request.value(AUTHORIZATION);
        assert_eq!(passed, is_passed.then_some(sent), "{path}");
        // Other headers are no concern of the account.
        assert_eq!(request.value("cookie"), Some("a=b"));
        assert_eq!(request.value("authorization"), Some("Basic eDp5"));
    }
    assert!(
        ids[0].parse::<u64>().is_ok() && ids.iter().all(|id| *id == ids[0]),
        "{ids:?}"
    );
    // A signed form, `Bearer`, another login of the user, and another user.
    let again = log_in_by_redirect(&client, "ada").await;
    let bearer = format!("bearer {}", credential(&again));
    let post = client
        .post("/required")
        .param("item", "x")
        .authorization(&bearer);
    let request = forwarded(&backend, post).await;
    assert_eq!(account(&request)[0], Some(&*ids[0]));
    assert!(request.body.starts_with(b"item=x&"), "{:?}", request.body);
    let other = log_in_by_redirect(&client, "grace").await;
    let call = client.get("/required").authorization(credential(&other));
    assert_ne!(account(&forwarded(&backend, call).await)[0], Some(&*ids[0]));
    // Without a credential.
    for path in ["/none", "/none/passed", "/optional"] {
        let request = forwarded(&backend, client.get(path)).await;
        assert_eq!(account(&request), [None; 3]);
    }
    // The login service itself still gets the credential, and only that.
    client.get("/user").authorization(sent).send().await.ok();
    let log = stack.log_with(Program::Gateway, "/required/passed").await;
    for secret in [sent, credential(&again), credential(&other)] {
        assert!(!log.contains(secret) && stack.store().find(secret.as_bytes()).is_none());
    }
}

#[tokio::test]
async fn a_route_that_asks_gets_the_name_and_the_verified_e_mail_address() {
    const GOOGLE: &str = "[providers.google]\nkind = 'google'\nissuer = 'http://$PROVIDER/google'\n\
        scopes = ['openid', 'profile', 'email']\n\
        client_id = 'signpost-demo'\nclient_secret = 'sandbox-only-secret'";
    let builder = Stack::builder().backends(GOOGLE);
    let backend = RecordingBackend::start().await;
    let asks = "account = \"required\"\npass_profile = true";
    let route = format!(
        "[[versions.v1.routes]]\npath = \"/asks\"\nbackend = \"{}\"\n{asks}\n",
        backend.address()
    );
    let routes = format!("{route}{}", routes(backend.address()));
    let stack = builder.gateway(&routes).start().await;
    let client = stack.client();
    until_well(&client, "google").await;
    let name = "Jo%C3%A3o%20%E2%80%9CZ%C3%A9%E2%80%9D%20da%20Silva";
    // Bitbucket tells no address.
    for (provider, email) in [
        ("google", Some("joao@sandbox.example")),
        ("bitbucket", None),
    ] {
        let mut browser = Browser::for_data();
        let url = client.login_url(&[("provider", provider)]);
        let page = browser.open(&url).await;
        let last = browser.decide_and_follow(&page, "joao", Decision::Allow);
        let login = last.await.response.ok();
        for (path, is_asked) in [("/asks", true), ("/required", false)] {
            let call = client.get(path).authorization(credential(&login));
            let request = forwarded(&backend, call).await;
            let [id, ..] = account(&request);
            assert!(id.is_some(), "{path}");
            let profile = [NAME, EMAIL].map(|name| request.value(name));
            let expected = [Some(name), email].map(|text| text.filter(|_| is_asked));
            assert_eq!(profile, expected, "{provider} {path}");
        }
    }
    // A client cannot claim them.
    let call = client.get("/none").header("X-Gateway-Account-Email", "a@b");
    assert_eq!(forwarded(&backend, call).await.value(EMAIL), None);
}

#[tokio::test]
async fn a_credential_is_rejected_as_by_the_login_service() {
    let (stack, backend) = with_routes(Stack::builder()).await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let right = credential(&login);
    let first = if right.starts_with('A') { 'B' } else { 'A' };
    let unknown = format!("{first}{}", &right[1..]);
    let wrong = [
        "",
        "x",
        "Bearer",
        &right[1..],
        &format!("{right}A"),
        &format!("Basic {right}"),
        &right.to_lowercase(),
        &unknown,
    ];
    let missing = |path: &'static str| client.get(path).language("ja");
    assert_same(
        missing("/required").send().await,
        &missing("/user").send().await,
        "authorization_missing",
    );
    for wrong in wrong {
        let code = rejection_of(wrong);
        for path in ["/required", "/optional", "/required/passed"] {
            let call = |path| client.get(path).language("ko").authorization(wrong);
            assert_same(call(path).send().await, &call("/user").send().await, code);
        }
    }
    // In the contract's order: a wrong signature comes first.
    let unsigned = client.get("/required").param("a", "1").without_sign();
    unsigned
        .authorization("x")
        .send()
        .await
        .problem(403, "sign_missing");
    let named = client.get("/required").authorization(right);
    let named = named.header("Connection", "acme-x-authorization");
    named.send().await.problem(401, "authorization_missing");
    let twice = client
        .get("/required")
        .authorization(right)
        .authorization(right);
    twice.send().await.problem(400, "header_duplicated");
    assert!(backend.requests().is_empty(), "nothing reaches the backend");
    // A route without accounts does not read the credential.
    let ignored = client.get("/none").authorization("x");
    assert_eq!(
        forwarded(&backend, ignored).await.value(AUTHORIZATION),
        None
    );
    let log = stack.log_with(Program::Gateway, "path=/none").await;
    let rejected = log
        .lines()
        .find(|line| line.contains("authorization_invalid"));
    let rejected = rejected.expect("rejections are in the access log");
    assert!(rejected.contains("version=v1"), "{rejected}");
    assert!(!log.contains(right) && !log.contains(&*unknown));
}

/// Both are the same problem, but for the request's id.
fn assert_same(gateway: Response, login: &Response, code: &str) {
    let [mut one, mut other] = [&gateway, login].map(|response| response.problem(401, code));
    for problem in [&mut one, &mut other] {
        problem["request_id"] = Value::Null;
    }
    assert_eq!(one, other);
    for name in [
        "content-language",
        "cache-control",
        "www-authenticate",
        "acme-x-version",
        "acme-x-version-source",
    ] {
        assert_eq!(gateway.header(name), login.header(name), "{name}");
    }
}

#[tokio::test]
async fn a_logout_ends_the_credential_at_every_gateway() {
    let (stack, _backend) = with_routes(Stack::builder().several(Program::Gateway, 2)).await;
    let clients = [stack.client_at(0), stack.client_at(1)];
    let login = log_in_by_redirect(&clients[0], "ada").await;
    let other = log_in_by_redirect(&clients[0], "ada").await;
    let required = |client: &SignedClient, login: &Value| {
        let (client, credential) = (client.clone(), credential(login).to_owned());
        async move {
            client
                .get("/required")
                .authorization(&credential)
                .send()
                .await
        }
    };
    for client in &clients {
        for login in [&login, &other] {
            required(client, login).await.ok();
        }
    }
    let logout = clients[0]
        .post("/user/logout")
        .authorization(credential(&login));
    logout.send().await.ok();
    for client in &clients {
        // The cache alone would accept it for five minutes: the change feed has reported the logout.
        until("the login to end", || async {
            (required(client, &login).await.status == 401).then_some(())
        })
        .await;
        required(client, &login)
            .await
            .problem(401, "authorization_invalid");
        // The user's other login stays valid.
        required(client, &other).await.ok();
    }
}

#[tokio::test]
async fn an_expired_credential_is_rejected_although_it_is_cached() {
    let ttl = "[login]\ncredential_ttl_seconds = 15";
    let (stack, _backend) = with_routes(Stack::builder().backends(ttl)).await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let call = || client.get("/required").authorization(credential(&login));
    call().send().await.ok();
    // It is cached now: without the clock, it would be accepted for minutes.
    let response = until_within(2 * WAIT_TIMEOUT, "the credential to expire", || async {
        let response = call().send().await;
        (response.status != 200).then_some(response)
    });
    response.await.problem(401, "authorization_invalid");
}

#[tokio::test]
async fn a_credential_is_valid_for_its_application_only() {
    let (stack, backend) = with_routes(Stack::builder().multi()).await;
    let one = stack.client_of(&stack.create_application("one", &[]));
    let two = stack.client_of(&stack.create_application("two", &[]));
    let login = log_in_by_polling(&one, "ada").await;
    // Also before the credential is cached, and signed or not.
    for client in [&two, &one, &two] {
        for call in [
            client.get("/required"),
            client.get("/optional").param("a", "1"),
        ] {
            let response = call.authorization(credential(&login)).send().await;
            match client.app == one.app {
                true => drop(response.ok()),
                false => drop(response.problem(401, "authorization_invalid")),
            }
        }
    }
    let idents: Vec<_> = backend.requests();
    let idents: Vec<_> = idents
        .iter()
        .map(|one| one.value("x-gateway-app"))
        .collect();
    assert_eq!(idents, [one.app.as_deref(); 2]);
}

#[tokio::test]
async fn nobody_else_can_set_the_headers_of_an_account() {
    let (stack, backend) = with_routes(Stack::builder()).await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let spoofed = |call: Call<'static>| {
        [
            "X-Gateway-Account-Id",
            "x-gateway-account-username",
            "X-GATEWAY-ACCOUNT-TYPE",
            "X_Gateway_Account_Id",
            "X-Gateway_Account-Username",
            "Acme_X_Authorization",
            "ACME-X_Authorization",
        ]
        .into_iter()
        .fold(call, |call, name| call.header(name, "4711"))
    };
    let client: &'static SignedClient = Box::leak(Box::new(client));
    backend.behave(Behaviour {
        head: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Gateway-Account-Id: 4711\r\n\
               X_Gateway_Account_Id: 4711\r\n"
            .to_owned(),
        ..Behaviour::default()
    });
    for path in ["/none", "/none/passed", "/optional"] {
        let request = forwarded(&backend, spoofed(client.get(path))).await;
        assert!(
            request.headers.iter().all(|(_, value)| value != "4711"),
            "{request:?}"
        );
    }
    let call = spoofed(client.get("/required").authorization(credential(&login)));
    let response = call.send().await;
    assert!(
        !format!("{:?}", response.headers).contains("4711"),
        "{:?}",
        response.headers
    );
    let request = backend.requests().pop().unwrap();
    assert!(
        request.headers.iter().all(|(_, value)| value != "4711"),
        "{request:?}"
    );
    assert!(account(&request).iter().all(Option::is_some));
}

#[tokio::test]
async fn a_renamed_credential_is_withheld_by_its_own_name() {
    let renamed = "[headers]\nauthorization = \"X-Token\"";
    let builder = Stack::builder().gateway(renamed).backends(renamed);
    let (stack, backend) = with_routes(builder).await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let call = client
        .get("/required")
        .header("x-TOKEN", credential(&login));
    let request = forwarded(&backend, call.authorization("ordinary")).await;
    assert_eq!(request.value("x-token"), None);
    assert_eq!(request.value(AUTHORIZATION), Some("ordinary"));
    assert!(account(&request)[0].is_some());
    // The gateway and the login service name it so.
    for path in ["/required", "/user"] {
        let missing = client.get(path).authorization(credential(&login));
        let missing = missing.send().await;
        let problem = missing.problem(401, "authorization_missing");
        assert!(problem["detail"].as_str().unwrap().contains("X-Token"));
        let challenge = missing.header("www-authenticate").unwrap();
        assert!(challenge.contains("header=\"X-Token\""), "{challenge}");
    }
}

#[tokio::test]
async fn while_the_store_is_down_cached_credentials_are_valid_and_others_are_503() {
    let builder = Stack::builder();
    let (stack, backend) = with_routes(builder).await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let other = log_in_by_redirect(&client, "grace").await;
    let call = |login: &Value| client.get("/required").authorization(credential(login));
    let ready = format!("http://{}/readyz", stack.addresses().management);
    assert_eq!(fetch(&ready).await.status, 200);
    call(&login).send().await.ok();
    stack.interrupt_store(&[Program::Gateway]).await;
    // A second outage, before the credential was read again.
    stack.store().make_unavailable();
    call(&login).send().await.ok();
    let before = backend.requests().len();
    call(&other).send().await.problem(503, "store_unavailable");
    client
        .get("/required")
        .send()
        .await
        .problem(401, "authorization_missing");
    client.get("/optional").send().await.ok();
    let call_of_none = client.get("/none").authorization(credential(&other));
    call_of_none.send().await.ok();
    assert_eq!(backend.requests().len(), before + 2);
    let response = fetch(&ready).await;
    let text = response.text();
    assert_eq!(response.status, 200, "{text}");
    let parts = [
        "ready, but the store does not answer: ",
        "; cached credentials are accepted until 20",
    ];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    call(&login).send().await.ok();
    stack.store().make_available();
    until("the other credential to be found", || async {
        (call(&other).send().await.status == 200).then_some(())
    })
    .await;
    call(&login).send().await.ok();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_random_credentials_delays_nobody_else() {
    let (mut stack, backend) = with_routes(Stack::builder().multi()).await;
    let client = stack.client_of(&stack.create_application("one", &[]));
    let login = log_in_by_polling(&client, "ada").await;
    let call = || client.get("/required").authorization(credential(&login));
    call().send().await.ok();
    let new: Vec<_> = (1..=5)
        .map(|number| stack.create_application(&format!("new {number}"), &[]))
        .collect();
    let (is_over, number) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
    );
    let mut flood = JoinSet::new();
    for _ in 0..100 {
        let (is_over, number, client) = (is_over.clone(), number.clone(), client.clone());
        flood.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let number = number.fetch_add(1, Ordering::Relaxed);
                let random = format!("{number:A>42}A");
                let response = client.get("/optional").authorization(&random).send().await;
                // 503: it waited too long for its turn.
                assert!(
                    [401, 503].contains(&response.status.as_u16()),
                    "{}",
                    response.summary()
                );
            }
        });
    }
    let flooded = |count: u32| {
        let number = Arc::clone(&number);
        async move {
            until("the flood", || async {
                (number.load(Ordering::Relaxed) >= count).then_some(())
            })
            .await;
        }
    };
    flooded(500).await;
    let memory = stack.running(Program::Gateway).resident_kib();
    let mut longest = Duration::ZERO;
    for (round, new) in (1..).zip(&new) {
        let start = Instant::now();
        call().send().await.ok();
        // An application that is not cached needs the store, as the flood does.
        stack.client_of(new).get("/none").send().await.ok();
        longest = longest.max(start.elapsed());
        flooded(500 + 200 * round).await;
    }
    assert!(longest < WAIT_TIMEOUT, "{longest:?}");
    let grown = stack
        .running(Program::Gateway)
        .resident_kib()
        .saturating_sub(memory);
    assert!(grown < 32 * 1024, "{grown} KiB");
    is_over.store(true, Ordering::Relaxed);
    let mut done = flood.join_all().await;
    assert_eq!(done.len(), 100);
    done.clear();
    call().send().await.ok();
    let log = stack.log(Program::Gateway);
    assert!(
        !log.contains("AAAAAAAAAAAAAAAA"),
        "a credential is in the log"
    );
    assert!(
        backend
            .requests()
            .iter()
            .all(|one| one.target != "/optional")
    );
}

#[tokio::test]
async fn a_reload_can_add_the_first_route_with_an_account() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::start().await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let call = || client.get("/required").authorization(credential(&login));
    call().send().await.problem(404, "not_found");
    stack.configure(Program::Gateway, &routes(backend.address()));
    let reloaded = stack.reload(Program::Gateway);
    assert!(reloaded.status.success(), "{}", output_text(&reloaded));
    assert!(account(&forwarded(&backend, call()).await)[0].is_some());
    client
        .post("/user/logout")
        .authorization(credential(&login))
        .send()
        .await
        .ok();
    until("the logout to be reported", || async {
        (call().send().await.status == 401).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_reload_that_needs_a_store_that_cannot_be_opened_changes_nothing() {
    let backend = RecordingBackend::start().await;
    // With one application and without accounts, the gateway needs no store.
    let builder = Stack::builder().in_front_of(&backend);
    let stack = builder
        .gateway("store = \"sqlite:/proc/none/x.db\"")
        .start()
        .await;
    let client = stack.client();
    client.get("/required").send().await.ok();
    stack.configure(Program::Gateway, &routes(backend.address()));
    let reloaded = stack.reload(Program::Gateway);
    assert!(!reloaded.status.success());
    let output = output_text(&reloaded);
    assert!(
        output.contains(
            "cannot open the store, which routes with accounts or replay_scope = \"all\" need"
        ),
        "{output}"
    );
    client.get("/required").send().await.ok();
}
