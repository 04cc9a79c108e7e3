//! Endpoints that end before their version, and applications that may use a version longer. CONTRACT 5.

use end_to_end::{
    clock::{now_ms, rfc3339},
    metrics::Scrape,
    program::{Program, output_text},
    recording_backend::RecordingBackend,
    stack::Stack,
    waiting::until,
};
use serde_json::{Value, json};

const DAY: i64 = 86_400;

/// A time this many days from now.
fn in_days(days: i64) -> String {
    rfc3339(now_ms() / 1000 + days * DAY)
}

/// v1 ended yesterday; of v2, one path has ended, one has a brown-out, and one ends before the version.
fn endings() -> String {
    let [yesterday, week, month] = [-1, 7, 30].map(in_days);
    let then = rfc3339(now_ms() / 1000 + 5);
    format!(
        "default_version = 'v2'\n[versions.v1]\nsunset = '{yesterday}'\nafter_sunset = 'gone'\n\
         [versions.v2]\nsunset = '{month}'\nlink = 'https://a.example/v3'\n\
         [[versions.v2.endpoints]]\npaths = ['/old/**']\nmethods = ['GET']\nsunset = '{yesterday}'\n\
         after_sunset = 'gone'\nlink = 'https://a.example/old'\n\
         [[versions.v2.endpoints]]\npaths = ['/off']\nbrownouts = ['{yesterday}/P2D']\n\
         [[versions.v2.endpoints]]\npaths = ['/then']\nbrownouts = ['{then}/P1D']\n\
         [[versions.v2.endpoints]]\npaths = ['/soon']\ndeprecated = '2025-01-01'\nsunset = '{week}'\n\
         [versions.v3]\nbackend = '127.0.0.1:1'\n"
    )
}

async fn stack() -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let builder = Stack::builder().in_front_of(&backend).multi();
    (builder.gateway(&endings()).start().await, backend)
}

fn json_of(stack: &Stack, arguments: &[&str]) -> Value {
    let output = stack.command(arguments);
    assert!(output.status.success(), "{}", output_text(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn an_endpoint_ends_before_its_version() {
    let (stack, backend) = stack().await;
    let shop = stack.create_application("Shop", &[]);
    let client = stack.client_of(&shop);
    let get = async |path: &str| client.get(path).param("a", "1").send().await;
    let whole = get("/x").await;
    whole.ok();
    let soon = get("/soon").await;
    soon.ok();
    assert_eq!(whole.header("deprecation"), None);
    assert_eq!(soon.header("deprecation"), Some("@1735689600"));
    assert_ne!(
        soon.header("sunset").unwrap(),
        whole.header("sunset").unwrap()
    );
    assert!(
        soon.header("link")
            .unwrap()
            .starts_with("<https://a.example/v3>; rel=\"deprecation\"")
    );
    client.post("/old/1").param("a", "1").send().await.ok();
    let forwarded = backend.requests().len();
    let old = get("/old/1").await;
    let problem = old.problem(410, "version_retired");
    assert_eq!(problem["link"], "https://a.example/old");
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("Only this path") && detail.contains("v3"),
        "{detail}"
    );
    assert!(
        !detail.contains("v2") && old.header("link").unwrap().contains("/old"),
        "{detail}"
    );
    let off = get("/off").await;
    off.problem(503, "version_brownout");
    assert!(off.header("retry-after").is_some());
    assert_eq!(backend.requests().len(), forwarded);
    until("the brown-out to begin", async || {
        let then = get("/then").await;
        (then.status != 200).then(|| then.problem(503, "version_brownout"))
    })
    .await;

    let listed = json_of(&stack, &["versions", "list", "--json"]);
    let endpoints = listed["versions"][1]["endpoints"].as_array().unwrap();
    let stages: Vec<_> = endpoints
        .iter()
        .map(|one| [&one["endpoint"], &one["stage"]])
        .collect();
    assert_eq!(
        json!(stages),
        json!([
            ["/then", "brownout"],
            ["/soon", "deprecated"],
            ["/off", "brownout"],
            ["GET /old/**", "retired"]
        ])
    );
    let report = || {
        json_of(
            &stack,
            &["versions", "report", "--version", "v2", "--paths", "--json"],
        )
    };
    let ends = until("the paths to be counted", || async {
        let report = report();
        let paths = report["versions"][0]["paths"].as_array().cloned().unwrap();
        let soon = paths.iter().find(|path| path["path"] == "/soon")?.clone();
        Some(soon["ends"].clone())
    });
    assert_eq!(ends.await[0]["endpoint"], "/soon");
    let text = output_text(&stack.command(&["versions", "list"]));
    assert!(text.contains("v2 GET /old/**"), "{text}");
}

#[tokio::test]
async fn an_application_may_use_a_version_longer() {
    let (mut stack, _backend) = stack().await;
    let [shop, other] = ["Shop", "Other"].map(|name| stack.create_application(name, &[]));
    let get = async |stack: &Stack, of, path: &'static str, version: &'static str| {
        let client = stack.client_of(of);
        client
            .get(path)
            .param("a", "1")
            .version(version)
            .send()
            .await
    };
    let update = |extend: &str| {
        let arguments = [
            "app",
            "update",
            &*shop.ident,
            "--extend",
            extend,
            "--reason",
            "contract 7",
        ];
        stack.command(&arguments)
    };
    get(&stack, &shop, "/x", "v1")
        .await
        .problem(410, "version_retired");
    let callback = async |stack: &Stack| {
        let client = stack.client_of(&shop);
        client
            .get("/login")
            .query("state", "v1.x")
            .query("code", "y")
            .unsigned()
            .send()
            .await
    };
    callback(&stack).await.problem(410, "version_retired");
    for (wrong, says) in [
        ("v1=2020-01-01", "in the future"),
        ("v9=2099-01-01", "v1, v2, v3"),
        ("v1", "v1=none"),
    ] {
        let refused = update(wrong);
        let text = output_text(&refused);
        assert!(!refused.status.success() && text.contains(says), "{text}");
    }
    for extend in ["v1=2099-03-01", "v2=2099-03-02"] {
        let updated = update(extend);
        assert!(updated.status.success(), "{}", output_text(&updated));
    }
    // Both of the version and of its endpoints, by the time of each, and only for this application.
    until("the brown-out to begin", async || {
        let then = get(&stack, &other, "/then", "v2").await;
        (then.status == 503).then_some(())
    })
    .await;
    for (path, version, sunset) in [
        ("/x", "v1", "Sun, 01 Mar 2099 00:00:00 GMT"),
        ("/old/1", "v2", "Mon, 02 Mar 2099 00:00:00 GMT"),
        ("/off", "v2", "Mon, 02 Mar 2099 00:00:00 GMT"),
        ("/then", "v2", "Mon, 02 Mar 2099 00:00:00 GMT"),
    ] {
        let what = format!("{path} of {version} to be served");
        let served = until(&what, || async {
            let response = get(&stack, &shop, path, version).await;
            (response.status == 200).then_some(response)
        });
        assert_eq!(served.await.header("sunset"), Some(sunset), "{path}");
    }
    get(&stack, &other, "/x", "v1")
        .await
        .problem(410, "version_retired");
    get(&stack, &other, "/x", "v2").await.ok();

    let report = json_of(&stack, &["versions", "report", "--version", "v1", "--json"]);
    let extended = json!({ &*shop.ident: "2099-03-01T00:00:00Z" });
    assert_eq!(report["versions"][0]["retiring"]["extended"], extended);
    let audit = output_text(&stack.command(&["audit", "--json"]));
    assert!(
        audit.contains("contract 7") && audit.contains("v1=2099-03-01T00:00:00Z"),
        "{audit}"
    );
    // An export keeps it.
    let exported = output_text(&stack.command(&["app", "export"]));
    assert!(
        exported.contains("\"v1=2099-03-01T00:00:00Z\""),
        "{exported}"
    );

    // A start counts the users of versions that end.
    until("both applications to be counted", async || {
        let are_counted = ["v1", "v2"].iter().all(|version| {
            let report = output_text(&stack.command(&["versions", "report", "--version", version]));
            [&shop, &other]
                .iter()
                .all(|app| report.contains(&*app.ident))
        });
        are_counted.then_some(())
    })
    .await;
    stack.running(Program::Gateway).terminate();
    assert!(stack.wait_for_exit(Program::Gateway).await.success());
    stack.restart(Program::Gateway).await;
    // Also those whose requests were rejected.
    until("both users of each version to be counted", || async {
        let scrape = Scrape::of(stack.addresses().management).await;
        let value = |version| {
            let labels = [("version", version)];
            let mut samples = scrape.samples("signpost_version_users", &labels);
            samples.next().map(|sample| sample.value)
        };
        (["v1", "v2"].map(value) == [Some(2.0); 2]).then_some(())
    })
    .await;
    let scrape = Scrape::of(stack.addresses().management).await;
    let sunsets = scrape.samples("signpost_version_sunset_timestamp_seconds", &[]);
    assert_eq!(sunsets.count(), 2);
    // What is kept is kept by the snapshot and by the store: it outlived the restart.
    get(&stack, &shop, "/x", "v1").await.ok();
    // A callback names no application: it is served since one is extended.
    assert_eq!(callback(&stack).await.status, 200);
    let ended = stack.command(&["app", "update", &shop.ident, "--extend", "v1=none"]);
    assert!(ended.status.success(), "{}", output_text(&ended));
    until("the extension to end", || async {
        (get(&stack, &shop, "/x", "v1").await.status == 410).then_some(())
    })
    .await;
}
