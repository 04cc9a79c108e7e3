//! Operators end all logins of an account or of an application, by command and by the management API. CONTRACT 8.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use end_to_end::{
    browser::{Browser, Decision},
    logins::{
        PollingLogin, begin_polling, check, confirm_polling, credential, log_in_by_polling,
        log_in_by_redirect,
    },
    program::{Program, output_text},
    recording_backend::RecordingBackend,
    signed_client::{SignedClient, http_client},
    stack::{Application, Stack},
    store::StoreKind,
    waiting::until,
};
use serde_json::{Value, json};
use tokio::task::{JoinSet, block_in_place};

/// An origin that logins may return to.
const APP: &str = "https://app.example";

/// Two gateways with the management API, each with a login service of its own and a route that needs an account; two
/// applications.
struct Two {
    stack: Stack,
    apps: [Application; 2],
    token: String,
    _backend: RecordingBackend,
}

impl Two {
    async fn start() -> Self {
        let backend = RecordingBackend::start().await;
        let route = format!(
            "[management.api]\n[[versions.v1.routes]]\npath = \"/mine\"\nbackend = \"{}\"\naccount = \"required\"",
            backend.address()
        );
        let builder = Stack::builder().multi().gateway(&route);
        let builder = builder
            .several(Program::Gateway, 2)
            .several(Program::V1, 2)
            .only(
                Program::Gateway.number(0),
                "[versions.v1]\nbackends = [\"$V1\"]",
            )
            .only(
                Program::Gateway.number(1),
                "[versions.v1]\nbackends = [\"$V1-1\"]",
            );
        let stack = builder.start().await;
        let apps = ["one", "two"].map(|name| stack.create_application(name, &["--return-to", APP]));
        Self {
            token: stack.create_token("operator"),
            stack,
            apps,
            _backend: backend,
        }
    }

    fn client(&self, app: usize, gateway: usize) -> SignedClient {
        self.stack.client_of_at(&self.apps[app], gateway)
    }

    /// Runs a command that ends logins, and returns what it prints.
    fn run(&self, arguments: &[&str]) -> Value {
        let output = self.stack.command(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{}", output_text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    async fn call(&self, path: &str, body: Value) -> Value {
        let response = self.stack.call_api(1, path, &self.token, Some(body)).await;
        response.json().await.unwrap()
    }

    /// Whether each gateway and each login service accepts the credential: all must agree.
    async fn accepts(&self, app: usize, credential: &str) -> Option<bool> {
        let mut accepted = Vec::new();
        for gateway in [0, 1] {
            let client = self.client(app, gateway);
            for path in ["/user", "/mine"] {
                let call = client.get(path).authorization(credential);
                accepted.push(match call.send().await.status.as_u16() {
                    200 => true,
                    401 => false,
                    // The store was slow.
                    503 => return None,
                    other => panic!("{other} from {path}"),
                });
            }
        }
        let is_same = accepted.iter().all(|one| *one == accepted[0]);
        is_same.then_some(accepted[0])
    }

    async fn expect_valid(&self, app: usize, credential: &str) {
        let accepted = until("the store to say", || self.accepts(app, credential)).await;
        assert!(accepted);
    }

    async fn expect_ended(&self, logins: &[(usize, &str)]) {
        for (app, credential) in logins {
            until("a login to end everywhere", || async {
                (self.accepts(*app, credential).await == Some(false)).then_some(())
            })
            .await;
        }
    }

    /// What the audit says of the last action.
    fn last_audited(&self) -> Value {
        let output = self.stack.command(&["audit", "--limit", "1", "--json"]);
        let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
        rows[0].clone()
    }
}

/// Renews a credential; both are valid for a while.
async fn renew(client: &SignedClient, credential: &str) -> String {
    let renewed = client.post("/user/renew").authorization(credential);
    let renewed = renewed.send().await.ok();
    renewed["authorization"].as_str().unwrap().to_owned()
}

/// A polling login that its user has completed, and whose client has not collected it.
async fn uncollected(client: &SignedClient, user: &str) -> PollingLogin {
    let begun = begin_polling(client).await;
    let mut browser = Browser::default();
    let provider = confirm_polling(&mut browser, &begun).await;
    let done = browser.decide_and_follow(&provider, user, Decision::Allow);
    assert_eq!(done.await.response.status, 200);
    begun
}

/// The ticket of a redirect login.
async fn ticket(client: &SignedClient, user: &str) -> String {
    let mut browser = Browser::default();
    let provider = browser.open(&client.login_url(&[("return_to", APP)])).await;
    let decided = browser.decide(&provider, user, Decision::Allow).await;
    let back = browser.step(decided.redirect().unwrap().as_str()).await;
    back.redirect_param("ticket").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_logins_of_an_account_end_everywhere_and_no_others() {
    let two = Two::start().await;
    let [one, other] = [two.client(0, 0), two.client(1, 1)];
    let polled = log_in_by_polling(&one, "ada").await;
    let redirected = log_in_by_redirect(&one, "ada").await;
    let renewed = log_in_by_redirect(&one, "ada").await;
    let present = renew(&one, credential(&renewed)).await;
    let elsewhere = log_in_by_polling(&other, "ada").await;
    let grace = log_in_by_polling(&one, "grace").await;
    let ended = [
        credential(&polled),
        credential(&redirected),
        credential(&renewed),
        &*present,
    ];
    for valid in ended.into_iter().chain([credential(&grace)]) {
        // Now it is cached everywhere.
        two.expect_valid(0, valid).await;
    }
    two.expect_valid(1, credential(&elsewhere)).await;

    let member = |name: &str| polled["account"][name].as_str().unwrap().to_owned();
    let (provider, username) = (member("type"), member("username"));
    let ident = &*two.apps[0].ident;
    let logout = ["account", "logout", &*provider, &*username];
    let of_one = [&logout[..], &["--app", ident, "--reason", "lost phone"]].concat();
    let printed = two.run(&of_one);
    let expected = json!({ "provider": provider, "username": username, "ended": 3 });
    assert_eq!(printed, expected);
    two.expect_ended(&ended.map(|login| (0, login))).await;
    let response = one.get("/user").authorization(ended[0]).send().await;
    response.problem(401, "authorization_invalid");
    two.expect_valid(0, credential(&grace)).await;
    two.expect_valid(1, credential(&elsewhere)).await;
    let audited = two.last_audited();
    assert_eq!(audited["action"], "account.logout", "{audited}");
    assert_eq!(audited["subject"], format!("{provider}/{username}"));
    assert_eq!(audited["reason"], "lost phone");
    assert!(audited["origin"].as_str().unwrap().starts_with("cli "));
    assert_eq!(audited["changes"], json!({ "app": ident }));
    assert_eq!(two.run(&of_one)["ended"], 0);

    let body = json!({ "provider": provider, "username": username, "reason": "left" });
    let response = two.call("accounts/logout", body.clone()).await;
    assert_eq!(response, json!({ "ended": 1 }));
    two.expect_ended(&[(1, credential(&elsewhere))]).await;
    two.expect_valid(0, credential(&grace)).await;
    let audited = two.last_audited();
    assert_eq!(audited["action"], "account.logout", "{audited}");
    assert_eq!(
        [&audited["actor"], &audited["reason"]],
        ["operator", "left"]
    );
    assert_eq!(two.call("accounts/logout", body).await["ended"], 0);

    // The user logs in again.
    let again = log_in_by_polling(&one, "ada").await;
    assert_eq!(again["account"], polled["account"]);
    two.expect_valid(0, credential(&again)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_logins_of_an_application_end_everywhere_and_no_others() {
    let two = Two::start().await;
    let [one, other] = [two.client(0, 0), two.client(1, 1)];
    let ada = log_in_by_polling(&one, "ada").await;
    let grace = log_in_by_redirect(&one, "grace").await;
    let elsewhere = log_in_by_polling(&other, "ada").await;
    let ended = [(0, credential(&ada)), (0, credential(&grace))];
    for (app, valid) in ended.into_iter().chain([(1, credential(&elsewhere))]) {
        two.expect_valid(app, valid).await;
    }
    let ident = &*two.apps[0].ident;
    let logout = ["app", "logout", ident, "--reason", "key leaked"];
    assert_eq!(two.run(&logout), json!({ "ident": ident, "ended": 2 }));
    two.expect_ended(&ended).await;
    two.expect_valid(1, credential(&elsewhere)).await;
    let audited = two.last_audited();
    assert_eq!(audited["action"], "app.logout", "{audited}");
    assert_eq!(
        [&audited["subject"], &audited["reason"]],
        [ident, "key leaked"]
    );
    let text = output_text(&two.stack.command(&["app", "logout", ident]));
    assert_eq!(text, format!("0 logins of {ident} ended\n"));

    let again = log_in_by_polling(&one, "ada").await;
    two.expect_valid(0, credential(&again)).await;
    let path = format!("apps/{}/logout", two.apps[1].ident);
    assert_eq!(two.call(&path, json!({})).await, json!({ "ended": 1 }));
    two.expect_ended(&[(1, credential(&elsewhere))]).await;
    two.expect_valid(0, credential(&again)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_was_not_collected_ends_too() {
    let two = Two::start().await;
    let [one, other] = [two.client(0, 0), two.client(1, 1)];
    let account = log_in_by_redirect(&one, "ada").await["account"].clone();
    let member = |name: &str| account[name].as_str().unwrap();
    let of_account = ["account", "logout", member("type"), member("username")];
    let of_app = ["app", "logout", &*two.apps[0].ident];
    for logout in [&of_account[..], &of_app] {
        let collected = uncollected(&one, "ada").await;
        let first = check(&one, &collected.token).await["login"].clone();
        let polled = uncollected(&one, "ada").await;
        let ticket = ticket(&one, "ada").await;
        let kept = uncollected(&other, "grace").await;
        two.run(logout);
        for token in [&polled.token, &collected.token] {
            assert_eq!(check(&one, token).await["status"], "expired");
            let fetch = one.post("/user/login").param("token", token);
            fetch.send().await.problem(410, "login_expired");
        }
        let redeem = one.post("/user/login").param("ticket", &ticket);
        redeem.send().await.problem(410, "login_expired");
        let ended = [(0, credential(&first))];
        two.expect_ended(&ended).await;
        let kept = check(&other, &kept.token).await;
        assert_eq!(kept["status"], "complete", "{kept}");
        let valid = "SELECT count(*) FROM credentials JOIN accounts ON accounts.id = account_id \
                     WHERE revoked_at IS NULL AND username = '{}'";
        let valid = valid.replace("{}", member("username"));
        assert_eq!(two.stack.store().query(&valid).number(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_gets_no_logins_ended_and_what_is_unknown_is_named() {
    let two = Two::start().await;
    let login = log_in_by_polling(&two.client(0, 0), "ada").await;
    let member = |name: &str| login["account"][name].as_str().unwrap();
    let (provider, username) = (member("type"), member("username"));
    let (ident, unknown) = (&*two.apps[0].ident, "x".repeat(24));
    let account = json!({ "provider": provider, "username": username });
    let viewer = two.stack.create_token("viewer");
    let call = async |path: &str, token: &str, key: Option<&str>, body: &Value| {
        let mut request = http_client().post(two.stack.api_url(0, path));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request.bearer_auth(token).json(body);
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body: Value = response.json().await.unwrap();
        (status, headers.contains_key("idempotency-replayed"), body)
    };
    let rows = "SELECT count(*) FROM audit WHERE action LIKE '%.logout'";
    for (path, token, body, expected) in [
        (
            "accounts/logout",
            &viewer,
            account.clone(),
            (403, "role_insufficient"),
        ),
        (
            &format!("apps/{ident}/logout"),
            &viewer,
            json!({}),
            (403, "role_insufficient"),
        ),
        (
            "accounts/logout",
            &two.token,
            json!({ "provider": provider, "username": "x" }),
            (404, "account_not_found"),
        ),
        (
            "accounts/logout",
            &two.token,
            json!({ "provider": "a\0b", "username": username }),
            (404, "account_not_found"),
        ),
        (
            "accounts/logout",
            &two.token,
            json!({ "provider": provider, "username": username, "app": unknown }),
            (404, "app_not_found"),
        ),
        (
            "accounts/logout",
            &two.token,
            json!({ "provider": provider }),
            (400, "request_malformed"),
        ),
        (
            &format!("apps/{unknown}/logout"),
            &two.token,
            json!({}),
            (404, "app_not_found"),
        ),
    ] {
        let (status, _, problem) = call(path, token, None, &body).await;
        assert_eq!(
            (status, &problem["code"]),
            (expected.0, &expected.1.into()),
            "{problem}"
        );
    }
    for (arguments, expected) in [
        (
            &["account", "logout", provider, "x"][..],
            "no account has this provider and username",
        ),
        (
            &["account", "logout", provider, username, "--app", &unknown],
            "no application has the ident",
        ),
        (&["app", "logout", &unknown], "no application has the ident"),
        (&["app", "logout"], "IDENT is missing"),
    ] {
        let output = two.stack.command(arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            output_text(&output).contains(expected),
            "{}",
            output_text(&output)
        );
    }
    assert_eq!(two.stack.store().query(rows).number(), 0);
    two.expect_valid(0, credential(&login)).await;
    // A call that is repeated with its key gets the first response, and is not done again.
    for is_replayed in [false, true] {
        let called = call("accounts/logout", &two.token, Some("k"), &account).await;
        assert_eq!(called, (200, is_replayed, json!({ "ended": 1 })));
    }
    assert_eq!(two.stack.store().query(rows).number(), 1);
}

/// Inserts credentials of an application, for an account that exists.
fn insert_credentials(stack: &Stack, ident: &str, number: usize) {
    let (numbers, hash) = match stack.store().kind() {
        StoreKind::Sqlite => (
            format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {number})"
            ),
            "randomblob(32)",
        ),
        StoreKind::Postgres => (
            format!("WITH n(i) AS (SELECT * FROM generate_series(1, {number}))"),
            "sha256(CAST(gen_random_uuid() AS text)::bytea)",
        ),
    };
    stack.store().query(&format!(
        "{numbers} INSERT INTO credentials (hash, login_hash, account_id, application_id, created_at, expires_at) \
         SELECT {hash}, {hash}, (SELECT min(id) FROM accounts), (SELECT id FROM applications WHERE ident = '{ident}'), \
         1, 9000000000000 FROM n"
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_end_while_requests_are_served() {
    const NUMBER: usize = 5000;
    let two = Two::start().await;
    let [one, other] = [two.client(0, 0), two.client(1, 1)];
    let ended = log_in_by_polling(&one, "ada").await;
    let kept = log_in_by_polling(&other, "grace").await;
    insert_credentials(&two.stack, &two.apps[0].ident, NUMBER);
    insert_credentials(&two.stack, &two.apps[1].ident, NUMBER);
    two.expect_valid(0, credential(&ended)).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut requests = JoinSet::new();
    for gateway in [0, 1] {
        let (client, given) = (two.client(1, gateway), credential(&kept).to_owned());
        let is_over = Arc::clone(&is_over);
        requests.spawn(async move {
            let mut during = 0;
            while !is_over.load(Ordering::Relaxed) {
                // Reads the cache, the store and writes it.
                for call in [
                    client.get("/user").authorization(&given),
                    client.get("/mine").authorization(&given),
                    client.post("/login").signed(),
                ] {
                    call.send().await.ok();
                    during += usize::from(!is_over.load(Ordering::Relaxed));
                }
            }
            during
        });
    }
    let ident = &*two.apps[0].ident;
    let printed = block_in_place(|| two.run(&["app", "logout", ident]));
    assert_eq!(printed["ended"], NUMBER + 1);
    is_over.store(true, Ordering::Relaxed);
    for during in requests.join_all().await {
        assert!(during > 0, "no response while the command ran");
    }
    two.expect_ended(&[(0, credential(&ended))]).await;
    let valid = "SELECT count(*) FROM credentials WHERE revoked_at IS NULL";
    assert_eq!(two.stack.store().query(valid).number(), NUMBER as i64 + 1);
    two.expect_valid(1, credential(&kept)).await;
}

/// A process that is killed leaves no login that has ended without its row of the audit, and the command can be repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_command_is_audited_and_can_be_repeated() {
    const NUMBER: usize = 10_000;
    let two = Two::start().await;
    log_in_by_polling(&two.client(0, 0), "ada").await;
    let ident = &*two.apps[0].ident;
    let count = |what: &str| {
        let counted = two
            .stack
            .store()
            .query(&format!("SELECT count(*) FROM {what}"));
        counted.number()
    };
    let (valid, ended) = (
        "credentials WHERE revoked_at IS NULL",
        "credentials WHERE revoked_at IS NOT NULL",
    );
    let rows = "audit WHERE action = 'app.logout'";
    let config = two.stack.folder().join("signpost.toml");
    // A command that has ended before the kill proves nothing: the next one has as much to do again.
    let mut commands = 0;
    let before = loop {
        commands += 1;
        insert_credentials(&two.stack, ident, NUMBER);
        let ended_before = count(ended);
        let mut command = Program::Gateway.command(two.stack.folder());
        command
            .args(["app", "logout", ident, "--config"])
            .arg(&config);
        let mut running = command.spawn().unwrap();
        until("some logins to end", || async {
            (count(ended) > ended_before).then_some(())
        })
        .await;
        running.kill().unwrap();
        running.wait().unwrap();
        if count(valid) > 0 {
            break count(ended);
        }
        assert!(commands < 10, "each command was killed too late");
    };
    assert_eq!(count(rows), commands);
    // A statement that had begun before the kill may end rows after they were counted.
    let again = two.run(&["app", "logout", ident])["ended"]
        .as_i64()
        .unwrap();
    let all = commands * NUMBER as i64 + 1;
    let left = all - before;
    assert!((1..=left).contains(&again), "{again} of {left}");
    assert_eq!(count(ended), all);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_only_application_has_no_ident() {
    let stack = Stack::start().await;
    let client = stack.client();
    let user = async |login: &Value| {
        let call = client.get("/user").authorization(credential(login));
        call.send().await.status.as_u16()
    };
    let [ada, grace] = [
        log_in_by_polling(&client, "ada").await,
        log_in_by_redirect(&client, "grace").await,
    ];
    let member = |name: &str| ada["account"][name].as_str().unwrap();
    let of_account = ["account", "logout", member("type"), member("username")];
    for (further, expected) in [
        (
            &["--app", "x"][..],
            "serves a single application: leave --app out",
        ),
        (&["x"], "serves a single application: leave IDENT out"),
    ] {
        let front = if further.len() == 2 {
            &of_account[..]
        } else {
            &["app", "logout"]
        };
        let refused = output_text(&stack.command(&[front, further].concat()));
        assert!(refused.contains(expected), "{refused}");
    }
    for (command, login) in [(&of_account[..], &ada), (&["app", "logout"], &grace)] {
        assert_eq!(user(login).await, 200);
        let output = stack.command(command);
        let text = output_text(&output);
        assert!(
            output.status.success() && text.starts_with("1 logins of "),
            "{text}"
        );
        until(&text, || async { (user(login).await == 401).then_some(()) }).await;
    }
    let subjects = "SELECT action FROM audit WHERE reason IS NULL ORDER BY id";
    let subjects = stack.store().query(subjects);
    assert_eq!(
        subjects.values().collect::<Vec<_>>(),
        ["account.logout", "app.logout"]
    );
}

/// A gateway with a single application may name no store, or none that has tables.
#[tokio::test]
async fn a_store_without_tables_is_not_created() {
    let stack = Stack::start().await;
    let missing = stack.folder().join("missing.db");
    stack.configure(
        Program::Gateway,
        &format!("store = \"sqlite:{}\"", missing.display()),
    );
    let output = stack.command(&["account", "logout", "one", "ada"]);
    let text = output_text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("must be the store of the login service"),
        "{text}"
    );
    assert!(!missing.exists());
}
