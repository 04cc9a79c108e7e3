//! Copies of requests to another version, and what differs between both: at several gateways of one store. CONTRACT 5.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use end_to_end::{
    logins::{credential, log_in_by_polling},
    metrics::Scrape,
    program::{Program, output_text},
    recording_backend::{Behaviour, Delivery, RecordedRequest, RecordingBackend},
    response::Response,
    signed_client::http_client,
    stack::{Application, Stack},
    waiting::{WAIT_TIMEOUT, until, until_within},
};
use serde_json::Value;
use tokio::task::JoinSet;

/// v1 is compared with v3; each has a backend that records.
struct Compared {
    stack: Stack,
    app: Application,
    v1: RecordingBackend,
    v3: RecordingBackend,
}

impl Compared {
    async fn start(gateways: usize, further: &str) -> Self {
        let [v1, v3] = [
            RecordingBackend::start().await,
            RecordingBackend::start().await,
        ];
        let toml = format!(
            "[versions.v1.shadow]\nto = 'v3'\npercent = 100.0\npaths = ['/user', '/orders/']\nnoise_percent = 0\n\
             [versions.v3]\nbackend = '{}'\n",
            v3.address()
        );
        let stack = Stack::builder().in_front_of(&v1).multi();
        let stack = stack
            .several(Program::Gateway, gateways)
            .gateway(&toml)
            .gateway(further);
        let stack = stack.start().await;
        let app = stack.create_application("Shop", &[]);
        Self { stack, app, v1, v3 }
    }

    fn behave(&self, v1: &str, v3: &str) {
        for (backend, body) in [(&self.v1, v1), (&self.v3, v3)] {
            backend.behave(Behaviour {
                body: body.into(),
                ..Behaviour::default()
            });
        }
    }

    /// Sends this number of requests to one of the gateways, each of which must get v1's response.
    async fn send(&self, gateway: usize, path: &str, number: usize, expected: &str) {
        let client = self.stack.client_of_at(&self.app, gateway);
        for _ in 0..number {
            let response = client.get(path).version("v1").signed().send().await;
            assert_eq!(response.status, 200);
            assert_eq!(response.text(), expected);
        }
    }

    /// Waits until this number of copies has come to an end at a gateway.
    async fn copies(&self, gateway: usize, result: &str, number: f64) {
        let management = self
            .stack
            .addresses()
            .management_of(Program::Gateway.number(gateway));
        // Copies that get no response take their time.
        let what = format!("{number} copies that are {result}");
        until_within(3 * WAIT_TIMEOUT, &what, || async {
            let scrape = Scrape::of(management).await;
            let sum = scrape.sum("signpost_shadow_copies_total", &[("result", result)]);
            (sum == number).then_some(())
        })
        .await;
    }

    /// The report, once it has this number of pairs.
    async fn diff(&self, pairs: u64) -> (Value, bool) {
        until(&format!("{pairs} pairs in the store"), || async {
            let output = self
                .stack
                .command(&["versions", "diff", "v1", "v3", "--json"]);
            let diff: Value = serde_json::from_slice(&output.stdout).unwrap();
            (diff["pairs"] == pairs).then(|| (diff, output.status.success()))
        })
        .await
    }

    fn command(&self, arguments: &[&str]) -> (String, bool) {
        let output = self.stack.command(arguments);
        (output_text(&output), output.status.success())
    }
}

fn targets(backend: &RecordingBackend) -> Vec<String> {
    let requests = backend.requests().into_iter();
    requests.map(|request| request.target).collect()
}

const V1: &str = r#"{"name":"geheim","id":7,"items":[{"n":1},{"n":2}]}"#;
const V3: &str = r#"{"display_name":"geheim","id":"7","items":[{"n":1},{"n":3,"more":true}]}"#;

#[tokio::test]
async fn what_differs_is_added_up_over_all_gateways() {
    let compared = Compared::start(2, "[management.api]\n[management.console]\n").await;
    compared.behave(V1, V3);
    for gateway in [0, 1] {
        compared.send(gateway, "/user", 30, V1).await;
        compared.copies(gateway, "different", 30.0).await;
    }
    let (diff, is_proof) = compared.diff(60).await;
    assert!(!is_proof);
    assert_eq!(diff["unseen"], serde_json::json!(["GET /orders/"]));
    let route = &diff["routes"][0];
    assert_eq!(route["route"], "GET /user");
    let rename = &route["renames"][1];
    assert_eq!(
        route["renames"][0],
        serde_json::json!({ "from": "$.id", "to": "$.id", "equal": 60, "of": 60 })
    );
    assert_eq!(
        (
            &rename["from"],
            &rename["to"],
            &rename["equal"],
            &rename["of"]
        ),
        (
            &"$.name".into(),
            &"$.display_name".into(),
            &60.into(),
            &60.into()
        )
    );
    let of = |path: &str| {
        let mut differences = route["differences"].as_array().unwrap().iter();
        differences.find(|one| one["path"] == path).unwrap().clone()
    };
    assert_eq!(of("$.name")["missing"], 60);
    assert_eq!(of("$.display_name")["extra"], 60);
    assert_eq!(of("$.id")["type"], 60);
    assert_eq!(
        of("$.id")["shapes"],
        serde_json::json!(["number", "string(1)"])
    );
    assert_eq!(of("$.items[].n")["value"], 60);
    assert_eq!(of("$.items[].more")["extra"], 60);
    assert_eq!(diff["differing_paths"], 5);
    let apps = &diff["applications"];
    assert_eq!(apps["differing"], serde_json::json!([compared.app.ident]));
    // The API has the same, and the console shows it.
    let token = compared.stack.create_token("viewer");
    let api = async |query: &str| {
        let url = compared.stack.api_url(1, &format!("versions/diff?{query}"));
        let response = http_client().get(url).bearer_auth(&token).send().await;
        Response::read(response.unwrap()).await
    };
    assert_eq!(api("version=v1").await.ok()["routes"], diff["routes"]);
    assert_eq!(api("version=v1&since=1h").await.ok()["pairs"], 60);
    for query in [
        "version=v3",
        "version=v9",
        "version=v1&changed=true",
        "version=v1&since=soon",
    ] {
        api(query).await.problem(400, "param_invalid");
    }
    let url = format!("http://{}/sign-in", compared.stack.addresses().management);
    let signed_in = http_client()
        .post(&url)
        .form(&[("token", &token)])
        .send()
        .await
        .unwrap();
    let cookie = signed_in.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let page = http_client().get(url.replace("sign-in", "versions"));
    let page = page
        .header("Cookie", cookie)
        .header("Sec-Fetch-Dest", "document");
    let page = Response::read(page.send().await.unwrap()).await.text();
    assert!(
        page.contains("$.name → $.display_name") && page.contains("for 1 of 1 applications"),
        "{page:.300}"
    );
    // Neither the report nor the store nor a log has a value.
    let (text, _) = compared.command(&["versions", "diff", "v1", "v3"]);
    assert!(text.contains("$.name → $.display_name, 60 of 60"), "{text}");
    assert!(text.contains("breaks for 1 of 1 applications"), "{text}");
    let everything = format!("{text}{diff}{}", compared.stack.log(Program::Gateway));
    assert!(!everything.contains("geheim"), "{everything}");
}

#[tokio::test]
async fn a_copy_has_what_the_other_version_would_have_got() {
    let secret = "[versions.v3]\ngateway_secret = 'of-v3-4283fefc63f0cd0e'\n[versions.v1]\ngateway_secret = 'of-v1-4283fefc63f0cd0e'\n";
    let compared = Compared::start(1, secret).await;
    compared.behave(V1, V1);
    let client = compared.stack.client_of(&compared.app);
    let call = client.get("/orders/7").version("v1").query("a", "b c");
    let call = call.header("X-Gateway-Shadow", "v9").header("X-Mine", "1");
    assert_eq!(call.send().await.text(), V1);
    compared.copies(0, "equal", 1.0).await;
    let (original, copy) = (&compared.v1.requests()[0], &compared.v3.requests()[0]);
    assert_eq!(
        (&copy.target, &copy.body),
        (&original.target, &original.body)
    );
    let without = |request: &RecordedRequest| {
        let changed = [
            "x-gateway-version",
            "x-gateway-shadow",
            "x-gateway-secret",
            "traceparent",
        ];
        let fields = request.headers.iter();
        fields
            .filter(|(name, _)| !changed.contains(&name.as_str()))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(without(copy), without(original));
    assert_eq!(copy.value("x-gateway-version"), Some("v3"));
    assert_eq!(copy.value("x-gateway-shadow"), Some("v1"));
    assert_eq!(
        copy.value("x-gateway-secret"),
        Some("of-v3-4283fefc63f0cd0e")
    );
    assert_eq!(original.value("x-gateway-shadow"), None);
}

#[tokio::test]
async fn only_configured_requests_are_copied() {
    let compared = Compared::start(1, "[versions.v3]\nunsigned = 'reject'\n").await;
    compared.behave(V1, V1);
    let client = compared.stack.client_of(&compared.app);
    for call in [
        client.get("/users").version("v1").signed(),
        client.get("/orders").version("v1").signed(),
        client.post("/user").version("v1").signed(),
        client.get("/user").version("v3").signed(),
        client
            .get("/user")
            .query("a", "1")
            .version("v1")
            .without_sign(),
        client.get("/login?state=v1.x&code=y").unsigned(),
    ] {
        call.send().await;
    }
    // The other version would not have got this one: that is a difference.
    client.get("/user").version("v1").unsigned().send().await;
    compared.copies(0, "different", 1.0).await;
    let (diff, _) = compared.diff(1).await;
    assert_eq!(
        diff["routes"][0]["differences"][0]["shapes"],
        serde_json::json!(["200", "sign_missing"])
    );
    client.get("/user").version("v1").signed().send().await;
    compared.copies(0, "equal", 1.0).await;
    let copied = targets(&compared.v3);
    let copies = copied
        .iter()
        .filter(|target| target.starts_with("/user?time"));
    // The direct request to v3, and the copy.
    assert_eq!(copies.count(), 2, "{copied:?}");
    assert_eq!(copied.len(), 2, "{copied:?}");
}

#[tokio::test]
async fn posts_are_copied_only_where_the_file_says_so() {
    let posts = "[versions.v1.shadow]\npost_paths = ['/quote']\nnoise_percent = 100.0\n";
    let compared = Compared::start(1, posts).await;
    compared.behave(V1, V1);
    let client = compared.stack.client_of(&compared.app);
    let call = client.post("/quote").version("v1").param("sum", "5");
    assert_eq!(call.send().await.text(), V1);
    compared.copies(0, "equal", 1.0).await;
    let copy = &compared.v3.requests()[0];
    assert_eq!(copy.body, compared.v1.requests()[0].body);
    // Its own version never executes a POST twice.
    assert_eq!(compared.v1.requests().len(), 1);
    let (checked, _) = compared.command(&["check"]);
    assert!(
        checked.contains("v3 executes a share of these requests a second time"),
        "{checked}"
    );
}

#[tokio::test]
async fn what_differs_by_itself_is_noise() {
    let compared = Compared::start(
        1,
        "[versions.v1.shadow]\nnoise_percent = 100.0\nignore = ['$.trace']\n",
    )
    .await;
    // The target has the time, and so the body differs each time.
    for backend in [&compared.v1, &compared.v3] {
        backend.behave(Behaviour {
            head: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n".to_owned(),
            body: br#"{"a":1}"#.to_vec(),
            delivery: Delivery::Promptly,
        });
    }
    compared.send(0, "/user", 3, r#"{"a":1}"#).await;
    compared.copies(0, "noise", 3.0).await;
    compared.copies(0, "equal", 3.0).await;
    assert_eq!(compared.v1.requests().len(), 6);
    let copies = compared.v1.requests();
    let copies = copies
        .iter()
        .filter(|one| one.value("x-gateway-shadow") == Some("v1"));
    assert_eq!(copies.count(), 3);
    compared.send(0, "/orders/1", 1, r#"{"a":1}"#).await;
    compared.copies(0, "equal", 4.0).await;
    let (diff, is_proof) = compared.diff(4).await;
    assert!(is_proof, "{diff}");
}

#[tokio::test]
async fn a_refused_copy_is_not_compared_and_no_response_is_a_difference() {
    let compared = Compared::start(1, "").await;
    compared.behave(V1, V1);
    compared.v3.behave(Behaviour {
        head: "HTTP/1.1 403 Forbidden\r\nX-Gateway-Refused: shadow\r\n".to_owned(),
        ..Behaviour::default()
    });
    compared.send(0, "/user", 2, V1).await;
    compared.copies(0, "refused", 2.0).await;
    compared.v3.behave(Behaviour::responding(Delivery::HangUp));
    compared.send(0, "/user", 1, V1).await;
    compared.copies(0, "failed", 1.0).await;
    let (diff, is_proof) = compared.diff(1).await;
    assert!(!is_proof);
    let difference = &diff["routes"][0]["differences"][0];
    assert_eq!(difference["path"], "response");
    assert_eq!(
        difference["shapes"],
        serde_json::json!(["200", "no response"])
    );
}

#[tokio::test]
async fn bodies_that_are_too_large_or_cut_off_are_not_compared() {
    let compared = Compared::start(1, "").await;
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(64 * 1024));
    for (v1, v3) in [(&*large, V1), (V1, &*large), (&*large, &*large)] {
        compared.behave(v1, v3);
        compared.send(0, "/user", 1, v1).await;
    }
    compared.copies(0, "skipped", 3.0).await;
    // Of the first and the last, no copy was sent: it could not be compared.
    assert_eq!(compared.v3.requests().len(), 1);
    compared.behave(V1, V1);
    compared
        .v3
        .behave(Behaviour::responding(Delivery::BreakOff));
    compared.send(0, "/user", 1, V1).await;
    compared.copies(0, "skipped", 4.0).await;
    compared.behave(V1, V1);
    compared.send(0, "/user", 1, V1).await;
    compared.copies(0, "equal", 1.0).await;
    // Nothing differs, but that is no proof.
    let (diff, is_proof) = compared.diff(1).await;
    assert!(!is_proof);
    assert_eq!(diff["routes"][0]["uncompared"], 4);
}

/// The bodies are those of one text, compressed by `gzip`, `zlib` and `brotli`.
#[tokio::test]
async fn encoded_bodies_are_decoded() {
    let compared = Compared::start(1, "").await;
    let plain = r#"{"a":1}"#;
    for (number, (encoding, body)) in [
        ("gzip", "H4sIAAAAAAACA6tWSlSyMqwFAK+sG1YHAAAA"),
        ("deflate", "eJyrVkpUsjKsBQAIKgIJ"),
        ("br", "CwOAeyJhIjoxfQM="),
    ]
    .into_iter()
    .enumerate()
    {
        compared.behave(plain, plain);
        compared.v3.behave(Behaviour {
            head: format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: {encoding}\r\n"),
            body: BASE64_STANDARD.decode(body).unwrap(),
            delivery: Delivery::Promptly,
        });
        compared.send(0, "/user", 1, plain).await;
        let equal = u32::try_from(number).unwrap() + 1;
        compared.copies(0, "equal", f64::from(equal)).await;
    }
}

#[tokio::test]
async fn a_shadow_that_hangs_takes_no_more_than_its_places() {
    let compared = Compared::start(1, "").await;
    // All come before the first copies end, 10 s after their requests, and make room.
    compared.v1.behave(Behaviour {
        body: V1.into(),
        ..Behaviour::responding(Delivery::After(Duration::from_secs(10)))
    });
    compared.v3.behave(Behaviour::responding(Delivery::Never));
    let client = compared.stack.client_of(&compared.app);
    let calls = (0..300).map(|_| {
        let client = client.clone();
        async move {
            let call = client.get("/user").version("v1").signed();
            call.send().await.ok()
        }
    });
    calls.collect::<JoinSet<_>>().join_all().await;
    compared.copies(0, "dropped", 44.0).await;
    compared.v3.request_number(256).await;
    assert_eq!(compared.v3.requests().len(), 256);
    compared.copies(0, "failed", 256.0).await;
    compared.behave(V1, V1);
    compared.send(0, "/user", 1, V1).await;
    compared.copies(0, "equal", 1.0).await;
}

#[tokio::test]
async fn a_draft_of_changes_passes_its_check() {
    let compared = Compared::start(1, "").await;
    let old = r#"{"account":{"name":"Ada","id":7}}"#;
    let new = r#"{"account":{"display_name":"Ada","id":"7","avatar":"x"}}"#;
    compared.behave(old, new);
    compared.send(0, "/user", 60, old).await;
    compared.send(0, "/orders/1", 55, old).await;
    compared.diff(115).await;
    let (draft, drafted) = compared.command(&["bridge", "draft", "v1"]);
    assert!(drafted, "{draft}");
    assert!(draft.contains("equal in 60 of 60"), "{draft}");
    let (unchecked, checked) = compared.command(&["bridge", "check", "v1"]);
    assert!(
        !checked && unchecked.contains("has no changes to check"),
        "{unchecked}"
    );
    let file = compared.stack.config(Program::Gateway);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n{draft}")).unwrap();
    let reloaded = compared.stack.reload(Program::Gateway);
    assert!(reloaded.status.success(), "{}", output_text(&reloaded));
    let (early, checked) = compared.command(&["bridge", "check", "v1"]);
    assert!(!checked && early.contains("no pairs"), "{early}");
    compared.send(0, "/user", 10, old).await;
    let check = async |pairs: &str| {
        until(pairs, || async {
            let (text, checked) = compared.command(&["bridge", "check", "v1"]);
            text.contains(pairs).then_some((text, checked))
        })
        .await
    };
    let (text, checked) = check("10 pairs;").await;
    assert!(
        !checked && text.contains("1 route was not seen: GET /orders/"),
        "{text}"
    );
    compared.send(0, "/orders/1", 10, old).await;
    let (text, checked) = check("20 pairs;").await;
    assert!(checked && text.contains("0 differ"), "{text}");
    // What clients use beside it has no proof.
    let client = compared.stack.client_of(&compared.app);
    let quote = client.post("/quotes/17").version("v1").param("sum", "5");
    assert_eq!(quote.send().await.text(), old);
    let (text, checked) =
        check("requests without a pair: POST /quotes/* 1 by 1 application\n").await;
    assert!(!checked, "{text}");
    let (report, _) = compared.command(&["versions", "report", "--paths", "--version", "v1"]);
    let is_quote = |line: &&str| line.trim().starts_with("POST /quotes/*  ");
    let quotes: Vec<_> = report.lines().filter(is_quote).collect();
    assert!(
        quotes.len() == 1 && quotes[0].contains(&compared.app.ident),
        "{report}"
    );
    assert!(
        report.contains("v1, the default version: 136 requests of 1 application"),
        "{report}"
    );
    // An operation that breaks names who uses it.
    let beside = |name: &str| std::path::Path::new(&file).with_file_name(name);
    let (operation, name) = (serde_json::json!({ "responses": {} }), "POST /quotes/{id}");
    for (name, paths) in [
        (
            "old.json",
            serde_json::json!({ "/quotes/{id}": { "post": operation } }),
        ),
        ("new.json", serde_json::json!({})),
    ] {
        let document = serde_json::json!({ "openapi": "3.0.3", "paths": paths });
        std::fs::write(beside(name), document.to_string()).unwrap();
    }
    let (old_file, new_file) = (beside("old.json"), beside("new.json"));
    let files = [&old_file, &new_file].map(|file| file.to_str().unwrap());
    let diff = ["versions", "diff", "v1", "v3", "--used", "--openapi"];
    let (text, _) = compared.command(&[&diff[..], &files].concat());
    let expected = format!("{name}: 1 request {}\n", compared.app.ident);
    assert!(text.contains(&expected), "{text}");
    let unproven = |text: &str| {
        let table = "[[versions.v1.unproven]]\nrequest = 'POST /quotes/*'\nreason = 'proved by tests'\n[versions.v1.shadow]";
        text.replacen("[versions.v1.shadow]", table, 1)
    };
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, unproven(&text)).unwrap();
    let (proven, checked) = compared.command(&["bridge", "check", "v1"]);
    let named = "unproven: POST /quotes/*, 1 request: proved by tests";
    assert!(checked && proven.contains(named), "{proven}");
    let (page, is_ready) = compared.command(&["versions", "retire", "v1", "--at", "2030-01-01"]);
    for line in [
        "unproven: POST /quotes/* (requests: 1): proved by tests",
        "open: Its own backend still serves it",
        "open: It has no sunset",
    ] {
        assert!(!is_ready && page.contains(line), "{page}");
    }
    std::fs::write(&file, &text).unwrap();
    // Then v1 needs no backend any more.
    let text = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once("[versions.v1.shadow]").unwrap();
    let (_, rest) = rest.split_once("[versions.v2]").unwrap();
    let bridged = format!("{before}[versions.v2]{rest}");
    let own = format!("backend = \"{}\"", compared.v1.address());
    let bridged = bridged.replacen(&own, "bridge = \"v3\"", 1);
    std::fs::write(&file, bridged).unwrap();
    let without = "without a pair with the present changes: POST /quotes/* 1 by 1 application.";
    for arguments in [&["check"][..], &["check", "--diff"]] {
        let (text, _) = compared.command(arguments);
        assert!(text.contains(without), "{text}");
    }
    let reloaded = compared.stack.reload(Program::Gateway);
    assert!(reloaded.status.success(), "{}", output_text(&reloaded));
    let requests = compared.v1.requests().len();
    compared.send(0, "/user", 1, old).await;
    compared.send(0, "/orders/1", 1, old).await;
    assert_eq!(compared.v1.requests().len(), requests);
}

#[tokio::test]
async fn a_change_that_does_not_apply_to_copies_is_told_with_its_place() {
    let changes = "[[versions.v1.changes]]\nname = 'ids'\npaths = ['/user']\nresponse = [{ to_number = '$.name' }]\n";
    let compared = Compared::start(1, changes).await;
    compared.behave(V1, V1);
    compared.send(0, "/user", 1, V1).await;
    let why = "$.name is a string, but not of a number";
    until("the report to say why", || async {
        let (text, is_proof) = compared.command(&["bridge", "check", "v1"]);
        (!is_proof && text.contains("change ids") && text.contains(why)).then_some(())
    })
    .await;
    let line = format!("the last one ids: {why}");
    compared.stack.log_with(Program::Gateway, &line).await;
}

#[tokio::test]
async fn a_proof_that_begins_anew_needs_new_pairs() {
    let changes =
        "[[versions.v1.changes]]\nname = 'a'\npaths = ['/user']\nresponse = [{ remove = '$.a' }]\n";
    let compared = Compared::start(1, changes).await;
    compared.behave(V1, V3);
    let check = async |expected: &str| {
        until(expected, || async {
            let (text, is_proof) = compared.command(&["bridge", "check", "v1"]);
            text.contains(expected).then_some(is_proof)
        })
        .await
    };
    compared.send(0, "/user", 3, V1).await;
    assert!(!check("3 pairs; 5 differ").await);
    let (text, restarted) = compared.command(&["bridge", "check", "--restart", "v1"]);
    assert!(restarted, "{text}");
    assert!(!check("no pairs: nothing was compared").await);
    compared.behave(V1, V1);
    // Until the gateway has learnt it, pairs are of the proof before.
    until("pairs of the new proof", || async {
        compared.send(0, "/user", 1, V1).await;
        compared.send(0, "/orders/1", 1, V1).await;
        let (text, is_proof) = compared.command(&["bridge", "check", "v1"]);
        (is_proof && text.contains("0 differ")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_copy_has_the_account_that_only_the_other_version_asks_for() {
    let v3 = RecordingBackend::start().await;
    let toml = format!(
        "[versions.v1.shadow]\nto = 'v3'\npercent = 100.0\npaths = ['/user']\n[versions.v3]\nbackend = '$V2'\n\
         [[versions.v3.routes]]\npath = '/user'\nbackend = '{}'\naccount = 'required'\n",
        v3.address()
    );
    let stack = Stack::builder().multi().gateway(&toml).start().await;
    let app = stack.create_application("Shop", &[]);
    let client = stack.client_of(&app);
    let login = log_in_by_polling(&client, "ada").await;
    let call = client
        .get("/user")
        .version("v1")
        .authorization(credential(&login));
    assert_eq!(call.send().await.status, 200);
    let copy = until("the copy", || async { v3.requests().pop() }).await;
    assert_eq!(copy.value("x-gateway-account-type"), Some("bitbucket"));
    assert!(copy.value("x-gateway-account-id").is_some());
    // The credential itself is not for a route.
    assert_eq!(copy.value("acme-x-authorization"), None);
    // Without a credential, v1 rejects the request as the route does.
    let call = client.get("/user").version("v1").unsigned();
    assert_eq!(call.send().await.status, 401);
    until("two copies", || async {
        let scrape = Scrape::of(stack.addresses().management).await;
        let count = |result| scrape.sum("signpost_shadow_copies_total", &[("result", result)]);
        (count("different") == 1.0 && count("skipped") == 1.0).then_some(())
    })
    .await;
    assert_eq!(v3.requests().len(), 1);
}

/// What a shadow's own backend gets is what a route gets: nothing of logins unless its table says so.
#[tokio::test]
async fn a_shadows_own_backend_is_trusted_with_what_its_table_says() {
    const COOKIE: &str = "a=1; login-0123456789abcdef=v; __Host-login-0123456789abcdef=w";
    const OWN_SECRET: &str = "of-shadow-4283fefc63f0cd0e";
    let trusted = format!(
        "account = 'required'\npass_authorization = true\ngateway_secret = '{OWN_SECRET}'\n"
    );
    for (keys, is_trusted) in [("", false), (&*trusted, true)] {
        let own = RecordingBackend::start().await;
        let toml = format!(
            "gateway_secret = 'of-all-4283fefc63f0cd0e'\n[versions.v1.shadow]\nto = 'v2'\npercent = 100.0\n\
             paths = ['/user']\nnoise_percent = 0\nbackend = '{}'\n{keys}",
            own.address()
        );
        let logins = "gateway_secret = 'of-all-4283fefc63f0cd0e'\n";
        let stack = Stack::builder().multi().gateway(&toml);
        let stack = stack.backends(logins).start().await;
        let app = stack.create_application("Shop", &[]);
        let client = stack.client_of(&app);
        let login = log_in_by_polling(&client, "ada").await;
        let call = client.get("/user").version("v1").header("Cookie", COOKIE);
        let call = call.authorization(credential(&login));
        assert_eq!(call.send().await.status, 200);
        let copy = until("the copy", || async { own.requests().pop() }).await;
        assert_eq!(copy.value("x-gateway-shadow"), Some("v1"));
        assert_eq!(copy.value("cookie"), Some("a=1"));
        for (name, value) in [
            ("acme-x-authorization", credential(&login)),
            ("x-gateway-account-type", "bitbucket"),
            ("x-gateway-secret", OWN_SECRET),
        ] {
            assert_eq!(copy.value(name), is_trusted.then_some(value), "{name}");
        }
    }
}
