//! The client libraries in `gateway/clients`: each has the same results for all vectors, and at a running installation: every
//! profile, a whole login, and what goes wrong. Each library's `run-vectors` says how.

mod bodies;
mod calls;
mod driver;
mod network;
mod redirect;
mod users;

use std::{
    fs,
    process::{Command, Output, Stdio},
    time::Duration,
};

use end_to_end::{
    client_library::{copy, first_difference, library},
    documents::root,
    folder::Folder,
    port::free_address,
    program::{Program, output_text},
    real_browser::RealBrowser,
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    signed_client::SignedClient,
    stack::{APP_KEY, Application, Stack},
    waiting::until,
};
use serde_json::{Value, json};
use tokio::{spawn, task::spawn_blocking, time::interval};

use self::driver::Driver;

/// What a language cannot, as `gateway/clients/README.md` says.
const EXCEPTIONS: &[(&str, Ability)] = &[
    ("shell", Ability::Connections),
    ("shell", Ability::Events),
    ("csharp", Ability::Interim),
    ("csharp", Ability::EllipticCurves),
];

/// What not every library can.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ability {
    /// Connections are kept, and threads share them.
    Connections,
    /// Server-sent events are read as they arrive.
    Events,
    /// Interim responses are skipped.
    Interim,
    /// Certificates have keys of elliptic curves.
    EllipticCurves,
}

fn can(language: &str, ability: Ability) -> bool {
    !EXCEPTIONS.contains(&(language, ability))
}

async fn finished(mut command: Command) -> Output {
    let output = spawn_blocking(move || command.output()).await.unwrap();
    output.unwrap()
}

/// Each profile, as arguments of `signpost app create` and as a setting of a client.
fn profiles() -> Vec<(Vec<&'static str>, Value)> {
    let hmac = ["--algorithm", "hmac-sha256"];
    let mut all = vec![
        (vec![], json!({})),
        (hmac.to_vec(), json!({ "algorithm": "hmac-sha256" })),
        (vec!["--cover", "request"], json!({ "cover": "request" })),
    ];
    for preset in ["decoded", "bilibili", "alipay", "wechat", "top"] {
        all.push((vec!["--preset", preset], json!({ "preset": preset })));
        let both = [&["--preset", preset][..], &hmac].concat();
        all.push((
            both,
            json!({ "preset": preset, "algorithm": "hmac-sha256" }),
        ));
    }
    all
}

async fn drive(language: &'static str) {
    let stack = Stack::builder().multi().start().await;
    let mut driver = Driver::start(language);
    for (arguments, profile) in profiles() {
        let app = stack.create_application("client", &arguments);
        driver
            .client(&stack, &app, json!({ "profile": profile }))
            .await;
        let begun = driver.begin().await;
        assert_eq!(begun["status"], 200, "{language}: {profile}: {begun}");
        // By GET: the signature is right, and `wait` is not.
        let pairs = json!([["token", "v1.a+b c&d=e"], ["wait", ""]]);
        let call = json!({ "call": { "method": "GET", "path": "/check", "pairs": pairs } });
        let checked = driver.ask(call).await;
        assert_eq!(
            checked["problem"]["code"], "param_invalid",
            "{language}: {profile}: {checked}"
        );
    }
    let app = stack.create_application("shop", &[]);
    logs_in(&mut driver, &stack, &app).await;
    meets_problems(&mut driver, &stack, &app).await;
    // A gateway that is gone.
    driver.client(&stack, &app, json!({ "retries": 0 })).await;
    drop(stack);
    let gone = driver.begin().await;
    let text = gone["transport"]
        .as_str()
        .unwrap_or_else(|| panic!("{language}: {gone}"));
    for secret in [&*app.key, "sign=", "time="] {
        assert!(!text.contains(secret), "{language}: {text}");
    }
}

async fn logs_in(driver: &mut Driver, stack: &Stack, app: &Application) {
    let language = driver.language;
    driver.client(stack, app, json!({})).await;
    let done = driver.log_in().await;
    let login = &done["login"];
    assert_eq!(
        login["authorization"].as_str().map(str::len),
        Some(43),
        "{language}: {done}"
    );
    let user = driver.ask(json!({ "user": {} })).await;
    assert_eq!(
        user["user"]["username"], login["account"]["username"],
        "{language}: {user}"
    );
    let event =
        json!({ "send_event": { "event": "seen", "data": "a=1&b=张", "idempotency_key": "k1" } });
    let (first, again) = (driver.ask(event.clone()).await, driver.ask(event).await);
    assert!(first["event"]["id"].is_u64(), "{language}: {first}");
    assert_eq!(
        first["event"]["id"], again["event"]["id"],
        "{language}: {again}"
    );
    let out = driver.ask(json!({ "logout": {} })).await;
    assert_eq!(out["ok"], true, "{language}: {out}");
    let gone = driver.ask(json!({ "user": {} })).await;
    assert_eq!(
        gone["problem"]["code"], "authorization_missing",
        "{language}: {gone}"
    );
}

async fn meets_problems(driver: &mut Driver, stack: &Stack, app: &Application) {
    let language = driver.language;
    let other = Application {
        key: APP_KEY.to_owned(),
        ..app.clone()
    };
    driver
        .client(stack, &other, json!({ "language": "ja" }))
        .await;
    let wrong = driver.begin().await;
    let problem = &wrong["problem"];
    assert_eq!(
        (&problem["status"], &problem["code"]),
        (&json!(403), &json!("sign_mismatch")),
        "{language}: {wrong}"
    );
    assert!(problem["hint"].is_string(), "{language}: {wrong}");
    assert!(
        problem["title"].as_str().unwrap().contains("署名"),
        "{language}: {wrong}"
    );
    assert_eq!(
        problem["request_id"].as_str().map(str::len),
        Some(32),
        "{language}: {wrong}"
    );
    // A wrong clock, which is corrected once.
    for offset in [3_600_000, -3_600_000] {
        driver
            .client(stack, app, json!({ "clock_offset_ms": offset }))
            .await;
        let corrected = driver.begin().await;
        assert_eq!(
            corrected["status"], 200,
            "{language}: {offset}: {corrected}"
        );
        let [name, value] = [0, 1].map(|at| corrected["warnings"][0][at].as_str());
        let direction = if offset > 0 { "s ahead" } else { "s behind" };
        let is_off = value.is_some_and(|value| value.ends_with(direction));
        assert!(
            name == Some("clock_off") && is_off,
            "{language}: {offset}: {corrected}"
        );
    }
    // A version that there is not.
    driver.client(stack, app, json!({ "version": "v9" })).await;
    let other_version = driver.begin().await;
    assert_eq!(other_version["status"], 200, "{language}: {other_version}");
    assert_eq!(
        other_version["warnings"],
        json!([["version_unknown", "v1"]]),
        "{language}"
    );
    // A limit: its rejection is given to the caller, or waited for. Other calls use it up: in some languages a call takes longer
    // than the limit needs to recover.
    let slow = stack.create_application("slow", &["--rate-limit", "1/1"]);
    driver.client(stack, &slow, json!({ "retries": 0 })).await;
    let others = SignedClient::new(&stack.origin(), &slow.key).with_app(&slow.ident);
    let others = spawn(async move {
        let mut ticks = interval(Duration::from_millis(50));
        loop {
            ticks.tick().await;
            others.post("/login").signed().send().await;
        }
    });
    let mut limited = driver.begin().await;
    for _ in 0..10 {
        if limited["status"] == 200 {
            limited = driver.begin().await;
        }
    }
    others.abort();
    let problem = &limited["problem"];
    assert_eq!(
        (&problem["status"], &problem["code"]),
        (&json!(429), &json!("rate_limited")),
        "{language}: {limited}"
    );
    driver.client(stack, &slow, json!({})).await;
    for _ in 0..2 {
        let waited = driver.begin().await;
        assert_eq!(waited["status"], 200, "{language}: {waited}");
    }
    // What cannot be sent as it is signed.
    for (path, pairs) in [
        ("/a/../login", json!([["a", "1"]])),
        ("/a/%2e%2E/login", json!([["a", "1"]])),
        ("/a b", json!([["a", "1"]])),
        ("login", json!([["a", "1"]])),
        ("/login?b=2", json!([["a", "1"]])),
        ("/login", json!([["sign", "1"]])),
    ] {
        let call = json!({ "call": { "method": "POST", "path": path, "pairs": pairs } });
        let refused = driver.ask(call).await;
        assert!(
            refused["argument"].is_string(),
            "{language}: {path} {pairs}: {refused}"
        );
    }
}

/// What may be repeated is, what may not is not; what the gateway says of its version is handed on. CONTRACT 5, 7 and 10.
async fn retries_and_warns(language: &'static str) {
    let gone = free_address();
    let builder = Stack::builder().in_front_of_address(gone);
    let toml =
        "prefix = \"Shop\"\n[versions.v1]\ndeprecated = \"2026-01-01\"\nsunset = \"2037-01-01\"";
    let stack = builder.gateway(toml).start().await;
    let mut driver = Driver::start(language);
    let settings = json!({ "url": stack.origin(), "key": APP_KEY, "prefix": "Shop", "version": "v1", "retries": 2 });
    driver.ask(json!({ "new": settings })).await;
    let warned = json!([
        ["deprecated", "@1767225600"],
        ["sunset", "Thu, 01 Jan 2037 00:00:00 GMT"]
    ]);
    for (number, (method, further, calls)) in [
        ("GET", json!({}), 3),
        ("POST", json!({}), 1),
        ("POST", json!({ "repeatable": true }), 3),
        ("GET", json!({ "repeatable": false }), 1),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/call-{number}");
        let mut call = json!({ "method": method, "path": path, "pairs": [["a", "1"]] });
        call.as_object_mut()
            .unwrap()
            .extend(further.as_object().unwrap().clone());
        let answer = driver.ask(json!({ "call": call })).await;
        assert_eq!(
            answer["problem"]["code"], "backend_unreachable",
            "{language}: {answer}"
        );
        let expected = if number == 0 { &warned } else { &json!([]) };
        assert_eq!(&answer["warnings"], expected, "{language}: {number}");
        let answered = format!("answered {method} {path} ");
        until("each call in the log", || async {
            let log = stack.log_with(Program::Gateway, &answered).await;
            (log.matches(&answered).count() == calls).then_some(())
        })
        .await;
    }
    // A pause that is too long is the caller's.
    let limited = "prefix = \"Shop\"\n[rate_limits.application]\nper_second = 1\nburst = 1";
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(limited)
        .start()
        .await;
    let settings =
        json!({ "url": stack.origin(), "key": APP_KEY, "prefix": "Shop", "max_wait": 0 });
    driver.ask(json!({ "new": settings })).await;
    let call = json!({ "call": { "method": "GET", "path": "/x", "pairs": [["a", "1"]] } });
    // Another caller takes what is left meanwhile: a slow client alone would find a new token at each call.
    let other = stack.client();
    let taking = async {
        let mut pace = interval(Duration::from_millis(20));
        loop {
            pace.tick().await;
            other.get("/x").signed().send().await;
        }
    };
    let asking = async {
        let mut answer = Value::Null;
        for _ in 0..20 {
            answer = driver.ask(call.clone()).await;
            if answer["problem"]["code"] == "rate_limited" {
                break;
            }
        }
        answer
    };
    let answer: Value = tokio::select! { answer = taking => answer, answer = asking => answer };
    assert_eq!(
        answer["problem"]["code"], "rate_limited",
        "{language}: {answer}"
    );
}

/// What a server has written reaches no terminal as it stands, neither in an error nor as an address to open. CONTRACT 7.
async fn shows_texts(language: &'static str) {
    let (stack, server) = Stack::recording().await;
    let mut driver = Driver::start(language);
    let url = stack.origin();
    let settings = json!({ "url": url, "key": APP_KEY, "retries": 0 });
    driver.ask(json!({ "new": settings })).await;
    let answer = |head: &str, body: Value| Behaviour {
        head: format!("HTTP/1.1 {head}\r\n"),
        body: body.to_string().into_bytes(),
        ..Behaviour::default()
    };
    let vectors = fs::read(root().join("tests/vectors/text-vectors.json")).unwrap();
    let vectors: Value = serde_json::from_slice(&vectors).unwrap();
    for case in vectors["cases"].as_array().unwrap() {
        let of = |name: &str| case[name].as_str().unwrap();
        let title = format!("<{}>", of("text"));
        server.behave(answer(
            "400 Bad Request\r\nContent-Type: application/problem+json",
            json!({ "code": "odd", "title": title, "detail": title, "request_id": "r1" }),
        ));
        let failed = driver.begin().await;
        let message = failed["problem"]["message"].as_str().unwrap_or_default();
        let shown = format!("<{}>", of("shown"));
        let expected = format!("400 odd: {shown} {shown} (request r1)");
        assert_eq!(message, expected, "{language}: {}", case["name"]);
        if of("text") != of("shown") {
            let address = format!("{url}/login?{}", of("text"));
            server.behave(answer(
                "200 OK\r\nContent-Type: application/json",
                json!({ "token": "t", "authorize_url": address, "user_code": "BCDF-GHJK" }),
            ));
            let begun = driver.ask(json!({ "login": { "provider": null } })).await;
            assert!(begun["transport"].is_string(), "{language}: {begun}");
        }
    }
}

/// A library warns by itself, once for a client, of another version than the one asked for, and of a version that ends. CONTRACT 5.
async fn warns_by_itself(language: &'static str) {
    let server = RecordingBackend::start().await;
    let versions = "Acme-X-Version: v1\r\nAcme-X-Version-Source: header\r\n";
    let behave = |further: &str| {
        server.behave(Behaviour {
            head: format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{versions}{further}"
            ),
            ..Behaviour::responding(Delivery::ThenClose)
        });
    };
    let mut driver = Driver::start_with(language, Stdio::piped());
    let url = format!("http://{}", server.address());
    let mut settings = json!({ "url": url, "key": APP_KEY });
    behave("");
    // The gateway writes versions in lower case.
    for (asked, warnings) in [
        ("v2", json!([["version_unknown", "v1"]])),
        ("V1", json!([])),
        ("", json!([])),
    ] {
        settings["version"] = json!(asked);
        driver.ask(json!({ "new": settings })).await;
        let begun = driver.begin().await;
        assert_eq!(begun["status"], 200, "{language}: {begun}");
        assert_eq!(begun["warnings"], warnings, "{language}: {asked}");
    }
    behave("Deprecation: @1767225600\u{ad}\r\nSunset: Thu, 01 Jan 2037 00:00:00 GMT\r\n");
    settings["version"] = json!("v2");
    for warnings in ["default", "off", "default"] {
        settings["warnings"] = json!(warnings);
        driver.ask(json!({ "new": settings })).await;
        for _ in 0..2 {
            let begun = driver.begin().await;
            assert_eq!(begun["status"], 200, "{language}: {begun}");
        }
    }
    let errors = driver.end().await;
    for warning in [
        "signpost: version_unknown: v1 served, not the version asked for",
        "signpost: deprecated: @1767225600",
        "signpost: sunset: Thu, 01 Jan 2037 00:00:00 GMT",
    ] {
        assert_eq!(errors.matches(warning).count(), 2, "{language}: {errors}");
    }
    assert!(!errors.contains('\u{ad}'), "{language}: {errors}");
}

/// Parameters with their values, and how an error shows each value: as the gateway does in `canonical`.
fn shown_pairs() -> Vec<(String, String, String)> {
    let names = "token ticket code code_verifier state confirm authorization credential password passwd secret \
         client_secret access_token refresh_token id_token api_key";
    let credential = "AbCd-_0123456789AbCd-_0123456789AbCd-_01234";
    assert_eq!(credential.len(), 43);
    let secret = names
        .split_whitespace()
        .map(|name| (name, "hidden", "***"))
        .chain([
            ("Token", "hidden", "***"),
            ("x", credential, "***"),
            ("y", credential, "***"),
            ("key", APP_KEY, "***"),
        ]);
    let shown = [
        ("a", "x y\u{e9}", "x%20y%C3%A9"),
        ("cod", "1", "1"),
        ("empty", "", ""),
        ("my-token", "seen", "seen"),
        ("state2", "CA", "CA"),
        ("z", &credential[1..], &credential[1..]),
        ("time", "1732104000000", "1732104000000"),
    ];
    let owned = |(name, value, shown): (&str, &str, &str)| {
        (name.to_owned(), value.to_owned(), shown.to_owned())
    };
    secret.chain(shown).map(owned).collect()
}

/// Above what a library signed, the error of a wrong signature has what the gateway signed; neither has a secret. CONTRACT 7.
async fn compares_what_was_signed(language: &'static str) {
    let server = RecordingBackend::start().await;
    let behave = |canonical: Value| {
        let body =
            json!({ "code": "sign_mismatch", "title": "T", "hint": "H", "canonical": canonical });
        server.behave(Behaviour {
            head: "HTTP/1.1 403 Forbidden\r\nContent-Type: application/problem+json\r\n".to_owned(),
            body: body.to_string().into_bytes(),
            ..Behaviour::responding(Delivery::ThenClose)
        });
    };
    let mut driver = Driver::start(language);
    let mut pairs = shown_pairs();
    let call = |pairs: &[(String, String, String)]| {
        let pairs: Vec<_> = pairs.iter().map(|(name, value, _)| [name, value]).collect();
        json!({ "call": { "method": "POST", "path": "/a", "pairs": pairs } })
    };
    let sent = call(&pairs);
    pairs.sort();
    let joined = |equals: &str, separator: &str| {
        let parts: Vec<_> = pairs
            .iter()
            .map(|(name, _, shown)| format!("{name}{equals}{shown}"))
            .collect();
        parts.join(separator)
    };
    let plain = format!("{}<APP_KEY>", joined("=", "&"));
    let concat = joined("", "")
        .replace("empty", "")
        .replace("x%20y%C3%A9", "x y\u{e9}");
    let top = format!("POST /a <APP_KEY>{concat}<APP_KEY>");
    let gateway = "a=1\u{1b}[31m&\nb=张";
    behave(json!(gateway));
    for (profile, own) in [
        (json!({}), plain),
        (json!({ "preset": "top", "cover": "request" }), top),
    ] {
        let settings = json!({ "url": format!("http://{}", server.address()), "key": APP_KEY, "profile": profile });
        driver.ask(json!({ "new": settings })).await;
        let failed = driver.ask(sent.clone()).await;
        let problem = &failed["problem"];
        assert_eq!(problem["canonical"], gateway, "{language}: {failed}");
        let message = format!(
            "403 sign_mismatch: T H\nthe gateway signed: a=1 [31m& b=张\nthis client signed: {own}"
        );
        assert_eq!(problem["message"], message, "{language}: {profile}");
    }
    // A long text is cut, as the gateway's is.
    let settings = json!({ "url": format!("http://{}", server.address()), "key": APP_KEY });
    driver.ask(json!({ "new": settings })).await;
    let long = [("a".to_owned(), "1".repeat(5000), String::new())];
    let failed = driver.ask(call(&long)).await;
    let message = failed["problem"]["message"].as_str().unwrap_or_default();
    let own = message.rsplit_once("signed: ").map(|(_, own)| own.len());
    assert_eq!(own, Some(2048), "{language}: {failed}");
    // Without the gateway's text there is nothing to compare.
    for canonical in [Value::Null, json!(1), json!({})] {
        behave(canonical);
        let failed = driver.ask(sent.clone()).await;
        let message = &failed["problem"]["message"];
        assert_eq!(message, "403 sign_mismatch: T H", "{language}: {failed}");
    }
}

/// Runs a library's sample as a project of its own, edited, and returns what it prints.
async fn run_sample(
    language: &str,
    [sample, run]: [&str; 2],
    key: &str,
    edit: impl Fn(&str) -> String,
) -> String {
    let text = fs::read_to_string(library(language).join(sample)).unwrap();
    let folder = Folder::create();
    let copied = folder.path().join(language);
    copy(language, &copied);
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(folder.path().join("data/app.key"), format!("{key}\n")).unwrap();
    fs::write(copied.join(sample), edit(&text)).unwrap();
    let mut command = Command::new("bash");
    command
        .args(["-euc", run])
        .env("LIBRARY", &copied)
        .current_dir(folder.path());
    let output = finished(command).await;
    let text = output_text(&output);
    assert!(output.status.success(), "{language}: {text}");
    text
}

/// The first call, whose lines the documents show: a test of the gateway's samples compares them.
async fn run_documented(language: &str, files: [&str; 2]) {
    let stack = Stack::start().await;
    let edit = |text: &str| {
        text.replace("http://127.0.0.1:8080", &stack.origin())
            .replace("sandbox", "bitbucket")
    };
    let text = run_sample(language, files, APP_KEY, edit).await;
    assert!(
        text.contains("200") && text.contains("user_code"),
        "{language}: {text}"
    );
}

/// The first call of the cards of applications with rules of their own, pasted, at an API without logins: in parameters, then in
/// headers with JSON.
async fn run_card(language: &str, files: [&str; 2]) {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().multi().in_front_of(&backend);
    let toml = "prefix = 'Shop'\n[sign]\ncallback_paths = []\n[versions.v1]\nbodies = 'json'";
    let stack = stack.gateway(toml).start().await;
    let strong = ["--algorithm", "hmac-sha256", "--cover", "request"];
    let strong = [&["--preset", "wechat"][..], &strong].concat();
    for (number, rules) in [strong, vec!["--carrier", "headers"]]
        .into_iter()
        .enumerate()
    {
        let app = stack.create_application("First", &rules);
        run_card_of(language, files, &stack, &app).await;
        let requests = backend.requests();
        assert_eq!(requests.len(), number + 1, "{language}");
        let seen = &requests[number];
        let json = serde_json::from_slice::<Value>(&seen.body).ok();
        match number {
            0 => assert!(seen.target.starts_with("/?"), "{language}: {}", seen.target),
            _ => assert_eq!(json, Some(json!({ "demo": "hello world" })), "{language}"),
        }
    }
}

async fn run_card_of(language: &str, files: [&str; 2], stack: &Stack, app: &Application) {
    let shown = stack.command(&["app", "show", &app.ident, "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let mut code = shown["card"]["code"].as_array().unwrap().iter();
    let code = code.find(|code| code["language"] == language).unwrap();
    let lines = code["code"].as_str().unwrap();
    let edit = |text: &str| {
        let (before, rest) = text.split_once("sample: begin\n").unwrap();
        let (_, after) = rest.split_once("sample: end").unwrap();
        let (_, comment) = before.rsplit_once('\n').unwrap();
        format!("{before}sample: begin\n{lines}\n{comment}sample: end{after}")
    };
    let text = run_sample(language, files, &app.key, edit).await;
    assert!(text.contains("200"), "{language}: {text}");
}

/// The commands of a card whose application signs in headers.
#[tokio::test]
async fn the_commands_of_a_card_sign_in_headers() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().multi().in_front_of(&backend);
    let toml = "[sign]\ncallback_paths = []\n[versions.v1]\nbodies = 'json'";
    let stack = stack.gateway(toml).start().await;
    let signpost = Program::Gateway.path().display().to_string();
    let in_headers = ["--carrier", "headers"];
    for (number, rules) in [
        in_headers.to_vec(),
        [&in_headers[..], &["--algorithm", "md5"]].concat(),
        vec!["--carrier", "both"],
    ]
    .iter()
    .enumerate()
    {
        let app = stack.create_application("First", rules);
        fs::write(stack.folder().join("app.key"), &app.key).unwrap();
        let shown = stack.command(&["app", "show", &app.ident, "--json"]);
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        let card = &shown["card"];
        let lines = card["first_call"].as_array().unwrap().iter();
        let lines: Vec<_> = lines.map(|line| line.as_str().unwrap()).collect();
        let command = card["command"].as_str().unwrap();
        let command = command.replacen("signpost", &signpost, 1);
        for (script, before) in [(lines.join("\n"), 2 * number), (command, 2 * number + 1)] {
            let mut bash = Command::new("bash");
            bash.args(["-euc", &script]).current_dir(stack.folder());
            let output = finished(bash).await;
            let requests = backend.requests();
            assert_eq!(
                requests.len(),
                before + 1,
                "{script}: {}",
                output_text(&output)
            );
            let seen = requests.last().unwrap();
            assert_eq!(seen.body, br#"{"demo":"hello world"}"#, "{script}");
            assert_eq!(seen.value("x-gateway-signed"), Some("true"), "{script}");
        }
    }
}

macro_rules! languages {
    ($($language:ident $sample:literal $run:literal,)*) => {$(
        mod $language {
            use super::*;

            const LANGUAGE: &str = stringify!($language);

            #[tokio::test]
            async fn all_vectors_have_their_results() {
                let compare = || first_difference(&library(LANGUAGE));
                assert_eq!(spawn_blocking(compare).await.unwrap(), None);
            }

            #[tokio::test]
            async fn calls_and_logins_work_at_a_running_gateway() {
                drive(LANGUAGE).await;
            }

            #[tokio::test]
            async fn what_may_be_repeated_is_and_warnings_are_handed_on() {
                retries_and_warns(LANGUAGE).await;
            }

            #[tokio::test]
            async fn texts_of_a_server_are_shown_as_the_vectors_say() {
                shows_texts(LANGUAGE).await;
            }

            #[tokio::test]
            async fn a_client_warns_by_itself_and_only_once() {
                warns_by_itself(LANGUAGE).await;
            }

            #[tokio::test]
            async fn a_wrong_signature_shows_what_both_sides_signed() {
                compares_what_was_signed(LANGUAGE).await;
            }

            #[tokio::test]
            async fn many_users_and_threads_share_a_client() {
                users::mixes_no_users(LANGUAGE).await;
            }

            #[tokio::test]
            async fn any_method_and_body_arrives_as_it_was_signed() {
                bodies::sends_any_body(LANGUAGE).await;
            }

            #[tokio::test]
            async fn a_call_has_its_own_arguments_and_hands_on_all_of_the_response() {
                calls::keeps_to_its_arguments(LANGUAGE).await;
            }

            #[tokio::test]
            async fn a_call_waits_as_it_is_told_and_ends_in_time() {
                calls::keeps_to_its_time(LANGUAGE).await;
            }

            #[tokio::test]
            async fn a_login_by_redirect_is_exchanged_with_its_verifier() {
                redirect::logs_in_by_redirect(LANGUAGE).await;
            }

            #[tokio::test]
            async fn certificates_and_a_proxy_of_ones_own_are_used() {
                network::uses_certificates_and_proxies(LANGUAGE).await;
            }

            #[tokio::test]
            async fn the_first_call_works_as_the_documents_show_it() {
                run_documented(LANGUAGE, [$sample, $run]).await;
            }

            #[tokio::test]
            async fn the_first_call_of_a_card_works_as_it_is_pasted() {
                run_card(LANGUAGE, [$sample, $run]).await;
            }
        }
    )*};
}

languages! {
    python "sample.py" "python3 -B $LIBRARY/sample.py",
    javascript "sample.mjs" "node $LIBRARY/sample.mjs",
    go "sample/main.go" "(cd $LIBRARY && go build -buildvcs=false -o sample.out ./sample) && $LIBRARY/sample.out",
    java "Sample.java" "javac -d classes $LIBRARY/Sample.java $LIBRARY/src/main/java/signpost/*.java && java -cp classes Sample",
    php "sample.php" "php $LIBRARY/sample.php",
    csharp "Sample.cs" "mcs -out:sample.exe $LIBRARY/{Sample,Client,Json,Signature,Transport,Types}.cs -r:System.Net.Http && mono sample.exe",
    shell "sample.sh" "bash $LIBRARY/sample.sh",
}

/// The library for JavaScript in a browser: every vector, and a call to a gateway that lets the page's origin call.
#[tokio::test]
async fn the_library_for_javascript_works_in_a_browser() {
    let backend = RecordingBackend::start().await;
    let cors = "[cors]\norigins = [\"*\"]";
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(cors)
        .start()
        .await;
    let browser = RealBrowser::start("en").await;
    let page = stack.folder().join("page.html");
    fs::write(&page, "<!doctype html><title>A page</title>").unwrap();
    browser.open(&format!("file://{}", page.display())).await;
    let source = fs::read_to_string(library("javascript").join("signpost.mjs")).unwrap();
    let read = |file: &str| fs::read_to_string(root().join("tests/vectors").join(file)).unwrap();
    let script = format!(
        "return (async () => {{
            const address = URL.createObjectURL(new Blob([{source}], {{ type: 'text/javascript' }}));
            const {{ Client, canonical, sign, signature }} = await import(address);
            const wrong = [];
            for (const one of {sign_vectors}.cases) {{
                const {{ head, ...profile }} = one.profile;
                const [method, path] = head ? head.split('\\n') : ['', ''];
                if (head) profile.cover = 'request';
                if (canonical(one.query, one.body, profile, method, path) !== one.canonical) wrong.push(one.name);
                if (await signature(one.query, one.body, one.app_key, profile, method, path) !== one.sign) wrong.push(one.name);
            }}
            for (const one of {text_vectors}.cases) {{
                const text = await sign(one.pairs, one.app_key, one.profile, one.method, one.path, one.time);
                if (text !== one.text) wrong.push(one.name);
            }}
            const client = new Client({{ url: {origin}, key: {key} }});
            const response = await client.call('POST', '/x', [['a', \"it's 张\"]]);
            return [wrong, response.status];
        }})()",
        source = json!(source),
        sign_vectors = read("sign-vectors.json"),
        text_vectors = read("client-vectors.json"),
        origin = json!(stack.origin()),
        key = json!(APP_KEY),
    );
    assert_eq!(browser.run(&script).await, json!([[], 200]));
    assert_eq!(backend.requests().len(), 1);
}
