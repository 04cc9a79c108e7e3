//! Versions that are deprecated, switched off for a while, or retired. CONTRACT 5.

use std::fs;

use end_to_end::{
    browser::Browser,
    clock::{now_ms, rfc3339},
    port::free_address,
    program::{Program, output_text},
    recording_backend::{Behaviour, RecordingBackend},
    response::Response,
    stack::Stack,
    waiting::until,
};
use serde_json::Value;

const DAY: i64 = 86_400;
const LINK: &str = "https://acme.example/docs/v2?a=1&b=2";

/// A time this many seconds from now.
fn from_now(seconds: i64) -> String {
    rfc3339(now_ms() / 1000 + seconds)
}

/// Keys of a version that is retired.
fn retired() -> String {
    let [deprecated, sunset] = [-10 * DAY, -DAY].map(from_now);
    format!(
        "deprecated = \"{deprecated}\"\nsunset = \"{sunset}\"\nafter_sunset = \"gone\"\nlink = \"{LINK}\"\n"
    )
}

/// Keys of a version that has a brown-out of two days, since yesterday.
fn browned_out() -> String {
    let [start, sunset] = [-DAY, 9 * DAY].map(from_now);
    format!("sunset = \"{sunset}\"\nlink = \"{LINK}\"\nbrownouts = [\"{start}/P2D\"]\n")
}

fn all<'a>(response: &'a Response, name: &str) -> Vec<&'a str> {
    let values = response.headers.get_all(name).iter();
    values.map(|value| value.to_str().unwrap()).collect()
}

fn link_to(relations: &[&str]) -> String {
    let one = |relation: &&str| format!("<{LINK}>; rel=\"{relation}\"; type=\"text/html\"");
    relations.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn every_response_of_a_deprecated_version_has_its_dates() {
    let backend = RecordingBackend::start().await;
    backend.behave(Behaviour {
        head: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDeprecation: @1\r\nsunset: never\r\n\
               Link: </x?page=2>; rel=\"next\"\r\n"
            .to_owned(),
        ..Behaviour::default()
    });
    let down = free_address();
    let keys = format!("deprecated = \"2025-01-01\"\nsunset = 9999-01-01\nlink = \"{LINK}\"");
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(&format!(
            "[cors]\norigins = [\"https://app.example\"]\n[versions.v1]\n{keys}\n\
             [versions.v3]\nbackend = \"{down}\"\n{keys}\n"
        ))
        .start()
        .await;
    let client = stack.client();
    let links = link_to(&["deprecation", "sunset"]);
    let served = client.get("/x").param("a", "1").version("v1");
    let served = served.header("Origin", "https://app.example").send().await;
    served.ok();
    let failed = client.get("/x").version("v3").send().await;
    failed.problem(502, "backend_unreachable");
    for response in [&served, &failed] {
        assert_eq!(all(response, "deprecation"), ["@1735689600"]);
        assert_eq!(all(response, "sunset"), ["Fri, 01 Jan 9999 00:00:00 GMT"]);
        assert_eq!(all(response, "link")[0], links);
    }
    // A backend's own links stay, beside the gateway's.
    assert_eq!(all(&served, "link")[1..], ["</x?page=2>; rel=\"next\""]);
    let exposed = served.header("access-control-expose-headers").unwrap();
    assert!(exposed.ends_with("Deprecation, Link, Sunset"), "{exposed}");
    // The other version's backend speaks for itself.
    let other = client.get("/x").version("v2").send().await;
    assert_eq!(all(&other, "deprecation"), ["@1"]);
    assert_eq!(all(&other, "sunset"), ["never"]);
    // A request that is rejected before its version is chosen.
    let unsigned = client.get("/x").query("a", "1").version("v1").unsigned();
    let unsigned = unsigned.send().await;
    assert_eq!(unsigned.status, 403, "{}", unsigned.summary());
    assert!(all(&unsigned, "deprecation").is_empty());
}

#[tokio::test]
async fn a_retired_version_and_a_brownout_reach_no_backend() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(&format!(
            "unknown = \"reject\"\n[versions.v1]\n{}[versions.v2]\n{}[versions.v3]\nbackend = \"{}\"\n",
            retired(),
            browned_out(),
            backend.address()
        ))
        .start()
        .await;
    let client = stack.client();
    // Also as the default version.
    for call in [client.get("/x").version("V1"), client.post("/x").signed()] {
        let response = call.send().await;
        let problem = response.problem(410, "version_retired");
        assert_eq!(problem["link"], LINK);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("v3") && !detail.contains("v1"), "{detail}");
        assert_eq!(response.header("acme-x-version"), Some("v1"));
        assert_eq!(
            response.header("link"),
            Some(&*link_to(&["deprecation", "sunset"]))
        );
        assert!(response.header("deprecation").is_some() && response.header("sunset").is_some());
        assert_eq!(response.header("retry-after"), None);
    }
    let response = client.get("/x").version("v2").send().await;
    let problem = response.problem(503, "version_brownout");
    assert_eq!(problem["link"], LINK);
    let retry_after: i64 = response.header("retry-after").unwrap().parse().unwrap();
    assert!((DAY / 2..=DAY).contains(&retry_after), "{retry_after}");
    assert_eq!(response.header("link"), Some(&*link_to(&["sunset"])));
    assert_eq!(response.header("acme-x-version-source"), Some("header"));
    assert!(response.header("sunset").is_some());
    let unknown = client.get("/x").version("v9").send().await;
    let unknown = unknown.problem(400, "version_unknown").to_string();
    assert!(unknown.contains("v2, v3"), "{unknown}");
    assert_eq!(backend.connections(), 0);
    client.get("/x").version("v3").send().await.ok();
    let log = stack.log_with(Program::Gateway, "version_brownout").await;
    assert!(log.contains("version_retired"), "{log}");
}

#[tokio::test]
async fn a_callback_to_a_version_that_does_not_serve_is_a_page_with_the_link() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(&format!(
            "default_version = \"v3\"\n[versions.v1]\n{}[versions.v2]\n{}[versions.v3]\nbackend = \"{}\"\n",
            retired(),
            browned_out(),
            backend.address()
        ))
        .start()
        .await;
    for (version, status, code) in [
        ("v1", 410, "version_retired"),
        ("v2", 503, "version_brownout"),
    ] {
        let target = format!("/login?state={version}.x&code=y");
        let page = Browser::with_language("ja").step(&stack.url(&target)).await;
        page.response.rejected(status, code);
        assert_eq!(page.response.header("content-language"), Some("ja"));
        assert!(
            page.links().iter().any(|link| link.as_str() == LINK),
            "{}",
            page.text()
        );
        assert_eq!(page.response.header("acme-x-version"), Some(version));
        assert_eq!(page.response.header("acme-x-version-source"), Some("state"));
        let client = stack.client();
        let data = client
            .get("/login")
            .query("state", &format!("{version}.x"))
            .query("code", "y")
            .unsigned()
            .send()
            .await;
        data.problem(status, code);
    }
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn a_reload_begins_and_ends_a_life_cycle() {
    let (stack, _backend) = Stack::recording().await;
    let client = stack.client();
    let status = async || {
        let response = client.get("/x").param("a", "1").version("v1").send().await;
        let has_dates = response.header("deprecation").is_some();
        (response.status.as_u16(), has_dates)
    };
    let before = fs::read_to_string(stack.config(Program::Gateway)).unwrap();
    assert_eq!(status().await, (200, false));
    stack.configure(
        Program::Gateway,
        "[versions.v1]\ndeprecated = \"2025-01-01\"",
    );
    let reloaded = output_text(&stack.reload(Program::Gateway));
    assert!(
        reloaded.contains("versions.v1.deprecated: ") && reloaded.contains("2025-01-01T00:00:00Z"),
        "{reloaded}"
    );
    assert_eq!(status().await, (200, true));
    stack.configure(Program::Gateway, &format!("[versions.v1]\n{}", retired()));
    let reloaded = stack.reload(Program::Gateway);
    assert!(reloaded.status.success(), "{}", output_text(&reloaded));
    assert_eq!(status().await, (410, true));
    // An invalid file changes nothing.
    stack.configure(Program::Gateway, "[versions.v1]\nsunset = \"2020-01-01\"");
    let refused = stack.reload(Program::Gateway);
    let text = output_text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    let expected = "versions.v1.sunset: found 2020-01-01T00:00:00Z, which is before deprecated";
    assert!(text.contains(expected), "{text}");
    assert_eq!(status().await, (410, true));
    fs::write(stack.config(Program::Gateway), before).unwrap();
    let reloaded = stack.reload(Program::Gateway);
    assert!(reloaded.status.success(), "{}", output_text(&reloaded));
    assert_eq!(status().await, (200, false));
}

#[tokio::test]
async fn check_warns_of_what_has_passed() {
    let (stack, _backend) = Stack::recording().await;
    let over = from_now(-2 * DAY);
    stack.configure(
        Program::Gateway,
        &format!(
            "[versions.v1]\ndeprecated = \"2025-01-01\"\nbrownouts = [\"{over}/PT1H\"]\n\
             [versions.v2]\nsunset = \"2025-01-01\"\n"
        ),
    );
    let checked = stack.check(Program::Gateway, &[]);
    let text = output_text(&checked);
    assert!(checked.status.success(), "{text}");
    for warning in [
        "warning: default_version: v1 is deprecated".to_owned(),
        format!("warning: versions.v1.brownouts: over, and without effect: {over}"),
        "warning: versions.v2.sunset: 2025-01-01T00:00:00Z has passed".to_owned(),
    ] {
        assert!(text.contains(&warning), "{warning} in:\n{text}");
    }
    stack.configure(Program::Gateway, &format!("[versions.v1]\n{}", retired()));
    let text = output_text(&stack.check(Program::Gateway, &[]));
    assert!(text.contains("default_version: v1 is retired"), "{text}");
}

#[tokio::test]
async fn an_applications_retired_default_is_refused_and_warned_of() {
    let backend = RecordingBackend::start().await;
    let mut stack = Stack::builder().in_front_of(&backend).multi().start().await;
    let application = stack.create_application("shop", &["--default-version", "v2"]);
    let client = stack.client_of(&application);
    client.get("/x").param("a", "1").send().await.ok();
    stack.configure(Program::Gateway, &format!("[versions.v2]\n{}", retired()));
    let named = format!(
        "is retired, so their requests without a version get 410 version_retired: {} (v2)",
        application.ident
    );
    let checked = output_text(&stack.check(Program::Gateway, &[]));
    assert!(checked.contains(&named), "{checked}");
    let reloaded = stack.reload(Program::Gateway);
    assert!(reloaded.status.success(), "{}", output_text(&reloaded));
    stack.log_with(Program::Gateway, &named).await;
    let response = client.get("/x").param("a", "1").send().await;
    response.problem(410, "version_retired");
    assert_eq!(response.header("acme-x-version-source"), Some("app"));
    let refused = stack.command(&[
        "app",
        "update",
        &application.ident,
        "--default-version",
        "v2",
    ]);
    let text = output_text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(
        text.contains("retired default version; allowed: v1"),
        "{text}"
    );
    let updated = stack.command(&[
        "app",
        "update",
        &application.ident,
        "--default-version",
        "v1",
    ]);
    assert!(updated.status.success(), "{}", output_text(&updated));
    until("the new default version", || async {
        let response = client.get("/x").param("a", "1").send().await;
        (response.header("acme-x-version") == Some("v1")).then_some(())
    })
    .await;
    stack.kill(Program::Gateway);
}

/// What `versions list --json` prints.
fn listed(stack: &Stack) -> Value {
    let output = stack.command(&["versions", "list", "--json"]);
    let text = output_text(&output);
    assert!(output.status.success(), "{text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_are_listed_with_the_health_that_the_gateway_knows() {
    let backend = RecordingBackend::start().await;
    let down = free_address();
    let mut stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(&format!(
            "[versions.v2]\n{}health = {{ interval_seconds = 1, unhealthy_after = 1 }}\n\
             [versions.v3]\nbackends = [\"{}\", \"{down}\"]\n\
             health = {{ interval_seconds = 1, unhealthy_after = 1 }}\n\
             [[versions.v3.canaries]]\nname = \"next\"\npercent = 5\nbackend = \"{down}\"\n\
             [[versions.v3.routes]]\npath = \"/orders/\"\nbackend = \"{}\"\n",
            browned_out(),
            backend.address(),
            backend.address()
        ))
        .start()
        .await;
    let (up, down) = (backend.address().to_string(), down.to_string());
    let listing = until("the health of each address that is checked", || async {
        let listing = listed(&stack);
        let health = |version: usize, address: &str| {
            let addresses = listing["versions"][version]["backends"][0]["addresses"].as_array();
            let mut addresses = addresses?.iter();
            let found = addresses.find(|one| one["address"] == address)?;
            found["health"].as_str()
        };
        let healths = [health(1, &up), health(2, &up), health(2, &down)];
        let is_known = healths == ["healthy", "healthy", "unhealthy"].map(Some);
        is_known.then_some(listing)
    })
    .await;
    assert_eq!(listing["gateway"], "running");
    assert_eq!(listing["differs"], false);
    let [one, two, three] = [0, 1, 2].map(|index| &listing["versions"][index]);
    assert_eq!(one["stage"], "current");
    assert_eq!(one["is_default"], true);
    let own = &one["backends"][0]["addresses"][0];
    assert_eq!(own["address"], up);
    assert_eq!(own["health"], "unchecked");
    assert_eq!(two["stage"], "brownout");
    assert_eq!(two["link"], LINK);
    assert_eq!(two["after_sunset"], "serve");
    assert_eq!(two["backends"][0]["addresses"][0]["in_flight"], 0);
    assert_eq!(three["backends"][0]["percent"], 95);
    assert_eq!(three["backends"][1]["backend"], "v3 (canary next)");
    assert_eq!(three["backends"][2]["path"], "/orders/");
    let text = output_text(&stack.command(&["versions", "list"]));
    for words in [
        "VERSION",
        "brownout",
        "v1 (default)",
        "v3 /orders/",
        "unhealthy",
        "  5 % of v3",
        LINK,
    ] {
        assert!(text.contains(words), "{words} in:\n{text}");
    }
    // Each version has a whole of its own, whose share its addresses have together.
    for (share, rows) in [
        ("all of v1", 1),
        ("all of v2", 1),
        ("95 % of v3", 1),
        ("100 %", 0),
    ] {
        assert_eq!(text.matches(share).count(), rows, "{share} in:\n{text}");
    }
    assert!(!text.contains("another configuration"), "{text}");
    // The file is changed, but not reloaded.
    stack.configure(
        Program::Gateway,
        "[versions.v1]\ndeprecated = \"2025-01-01\"",
    );
    let listing = listed(&stack);
    assert_eq!(listing["differs"], true);
    assert_eq!(listing["versions"][0]["stage"], "deprecated");
    let text = output_text(&stack.command(&["versions", "list"]));
    assert!(text.contains("another configuration"), "{text}");
    stack.kill(Program::Gateway);
    stack.wait_for_exit(Program::Gateway).await;
    let listing = listed(&stack);
    assert_eq!(listing["gateway"], "none");
    assert_eq!(listing["differs"], Value::Null);
    let own = &listing["versions"][0]["backends"][0]["addresses"][0];
    assert_eq!(own["health"], "unknown");
    let text = output_text(&stack.command(&["versions", "list"]));
    let expected = "health: unknown, no gateway runs with this file";
    assert!(text.contains(expected), "{text}");
}
