//! Who uses which version: the counts of requests, and `signpost versions report`. #14

use std::process::Output;

use end_to_end::{
    port::free_address,
    program::{Program, output_text},
    recording_backend::RecordingBackend,
    signed_client::SignedClient,
    stack::{Application, Stack, StackBuilder},
    waiting::until,
};
use serde_json::{Value, json};

/// All requests that the store has.
const TOTAL: &str = "SELECT CAST(coalesce(sum(requests), 0) AS bigint) FROM usage_counts";

async fn multi(change: impl FnOnce(StackBuilder) -> StackBuilder) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let builder = Stack::builder().in_front_of(&backend).multi();
    (change(builder).start().await, backend)
}

fn total(stack: &Stack) -> i64 {
    stack.store().query(TOTAL).number()
}

/// Waits until the store has this many requests: the next batch is some seconds away.
async fn until_counted(stack: &Stack, expected: i64) {
    until(&format!("{expected} requests to be counted"), || async {
        let total = total(stack);
        assert!(total <= expected, "{total} of {expected} were counted");
        (total == expected).then_some(())
    })
    .await;
}

async fn send(client: &SignedClient, requests: usize) {
    for _ in 0..requests {
        client.get("/x").param("a", "1").send().await.ok();
    }
}

fn report(stack: &Stack, further: &[&str]) -> Output {
    let mut arguments = vec!["versions", "report"];
    arguments.extend(further);
    stack.command(&arguments)
}

fn json_report(stack: &Stack) -> Value {
    let output = report(stack, &["--json"]);
    assert!(output.status.success(), "{}", output_text(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text_report(stack: &Stack, further: &[&str]) -> String {
    let output = report(stack, further);
    let text = output_text(&output);
    assert!(output.status.success(), "{text}");
    text
}

/// The entry of an application, or of a kind of requests, in a version's list.
fn entry<'v>(version: &'v Value, member: &str, value: &str) -> &'v Value {
    let all = version["applications"].as_array().unwrap();
    let found = all.iter().find(|one| one[member] == value);
    found.unwrap_or_else(|| panic!("no {member} {value}: {version}"))
}

fn sources(header: u64, app: u64, default: u64, unknown: u64, state: u64) -> Value {
    json!({"header": header, "host": 0, "prefix": 0, "app": app, "default": default, "unknown": unknown, "state": state})
}

/// Sends requests of all kinds through two gateways. Returns their number.
async fn send_all_kinds(stack: &Stack, shop: &Application, pinned: &Application) -> i64 {
    for gateway in [0, 1] {
        let shop = stack.client_of_at(shop, gateway);
        let signed = || shop.get("/x").param("a", "1");
        for version in [None, Some("v1"), Some("V1"), Some("v9")] {
            let call = signed().header("user-agent", "shop/1.0");
            let call = match version {
                Some(version) => call.version(version),
                None => call,
            };
            call.send().await.ok();
        }
        // Unsigned: anyone can send it.
        shop.get("/x").version("v1").send().await.ok();
        // Its version has no backend: it is counted nevertheless.
        let pinned = stack.client_of_at(pinned, gateway);
        let failed = pinned.get("/x").param("a", "1").send().await;
        failed.problem(502, "backend_unreachable");
        let callback = stack.client_at(gateway);
        callback.get("/login?state=v1.x&code=y").send().await.ok();
        // Rejected: not counted.
        let forged = signed().sign_given(&"0".repeat(32)).send().await;
        assert_ne!(forged.status, 200);
    }
    2 * 7
}

#[tokio::test]
async fn requests_of_two_gateways_are_reported_by_version_application_and_source() {
    let nowhere = format!("[versions.v2]\nbackend = \"{}\"", free_address());
    let (stack, _backend) =
        multi(|builder| builder.several(Program::Gateway, 2).gateway(&nowhere)).await;
    let shop = stack.create_application("Shop", &[]);
    let pinned = stack.create_application("Pinned", &["--default-version", "v2"]);
    let idle = text_report(&stack, &[]);
    for part in [
        "Counting began at",
        "No request used v1 since counting began",
        "Pinned to v2",
    ] {
        assert!(idle.contains(part), "{part}: {idle}");
    }
    let sent = send_all_kinds(&stack, &shop, &pinned).await;
    until_counted(&stack, sent).await;
    let disable = ["app", "disable", &pinned.ident];
    assert!(stack.command(&disable).status.success());
    let json = json_report(&stack);
    assert_eq!(
        (&json["days"], &json["is_complete"]),
        (&json!(30), &json!(false))
    );
    let since = json["counted_since"].as_str();
    assert!(since.is_some_and(|since| since.ends_with('Z')), "{json}");
    let [v1, v2] = [&json["versions"][0], &json["versions"][1]];
    assert_eq!(
        (&v1["version"], &v1["is_default"]),
        (&json!("v1"), &json!(true))
    );
    assert_eq!((&v1["requests"], &v1["signed"]), (&json!(12), &json!(8)));
    assert_eq!(v1["sources"], sources(6, 0, 2, 2, 2));
    let of_shop = entry(v1, "ident", &shop.ident);
    assert_eq!(of_shop["name"], "Shop");
    assert_eq!(of_shop["sources"], sources(6, 0, 2, 2, 0));
    assert_eq!(of_shop["state"], "active");
    assert_eq!(
        of_shop["client"],
        json!({"address": "127.0.0.1", "user_agent": "shop/1.0", "is_signed": true})
    );
    let callbacks = entry(v1, "kind", "callbacks");
    assert_eq!(callbacks["sources"], sources(0, 0, 0, 0, 2));
    assert_eq!(callbacks["client"], json!(null));
    assert_eq!(v1["retiring"]["named_by"], json!([shop.ident]));
    let of_pinned = entry(v2, "ident", &pinned.ident);
    assert_eq!(of_pinned["sources"], sources(0, 2, 0, 0, 0));
    assert_eq!(of_pinned["state"], "disabled");
    assert_eq!(v2["retiring"]["pinned"], json!([pinned.ident]));
    let delete = ["app", "delete", &shop.ident];
    assert!(stack.command(&delete).status.success());
    let text = text_report(&stack, &["--version", "v1"]);
    for part in [
        "v1, the default version: 12 requests",
        "deleted",
        "shop/1.0",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        text.contains(&shop.ident) && !text.contains("\nv2"),
        "{text}"
    );
    for (version, days) in [("v9", "30"), ("v1", "0"), ("v1", "91")] {
        let wrong = report(&stack, &["--version", version, "--days", days]);
        assert!(!wrong.status.success(), "{}", output_text(&wrong));
    }
}

#[tokio::test]
async fn a_retired_version_is_reported_as_such() {
    let retired =
        "default_version = \"v2\"\n[versions.v1]\nsunset = \"2025-01-01\"\nafter_sunset = \"gone\"";
    let (stack, _backend) = multi(|builder| builder).await;
    let shop = stack.create_application("Shop", &["--default-version", "v1"]);
    send(&stack.client_of(&shop), 2).await;
    until_counted(&stack, 2).await;
    let text = text_report(&stack, &["--version", "v1"]);
    assert!(
        text.contains("would get 410") && text.contains("  Shop  "),
        "{text}"
    );
    stack.configure(Program::Gateway, retired);
    let text = text_report(&stack, &["--version", "v1"]);
    let pinned = "their requests that name no version get 410 version_retired now, and go to the default version v2 once";
    assert!(text.contains("v1, retired: 2 requests"), "{text}");
    assert!(text.contains(pinned) && !text.contains("would"), "{text}");
    assert_eq!(json_report(&stack)["versions"][0]["is_retired"], true);
}

/// Before it is too late: by `check`, by `check --diff` and by the reload itself.
#[tokio::test]
async fn who_uses_a_version_is_said_before_it_ends() {
    let (stack, _backend) = multi(|builder| builder).await;
    for name in ["one", "other"] {
        let client = stack.client_of(&stack.create_application(name, &[]));
        client.get("/x").version("v2").send().await.ok();
    }
    until_counted(&stack, 2).await;
    let users = ", and 2 applications have sent requests to it in the last 7 days";
    let says = |output: &Output, what: &str| {
        let text = output_text(output);
        assert!(
            output.status.success() && text.contains(&format!("versions.v2: {what}{users}")),
            "{text}"
        );
    };
    stack.configure(
        Program::Gateway,
        "[versions.v2]\nsunset = '2025-01-02'\nafter_sunset = 'gone'",
    );
    let gone = "its requests get 410 from 2025-01-02T00:00:00Z on";
    says(&stack.check(Program::Gateway, &[]), gone);
    let backend = stack.addresses().v2;
    let bridged = "bridge = 'v3'\n[[changes]]\nname = 'a'\npaths = ['/x']\nrequest = [{ default = 'a', value = '1' }]\n";
    let file = stack.config(Program::Gateway);
    let before = std::fs::read_to_string(&file).unwrap();
    let mut table: toml::Table = before.parse().unwrap();
    // Without a use, nothing is said of v1.
    let v2: toml::Table = bridged.parse().unwrap();
    table["versions"]["v2"] = v2.into();
    let v3: toml::Table = format!("backend = '{backend}'\n").parse().unwrap();
    let versions = table["versions"].as_table_mut().unwrap();
    versions.insert("v3".to_owned(), v3.into());
    std::fs::write(&file, table.to_string()).unwrap();
    says(
        &stack.check(Program::Gateway, &["--diff"]),
        "its requests are bridged to v3",
    );
    table["versions"].as_table_mut().unwrap().remove("v2");
    std::fs::write(&file, table.to_string()).unwrap();
    says(&stack.check(Program::Gateway, &["--diff"]), "it is removed");
    let reloaded = stack.reload(Program::Gateway);
    says(&reloaded, "it is removed");
    assert!(!output_text(&reloaded).contains("versions.v1: it"));
}

#[tokio::test]
async fn a_clean_restart_and_a_reload_lose_no_request() {
    let (mut stack, _backend) = multi(|builder| builder).await;
    let client = stack
        .client_of(&stack.create_application("one", &[]))
        .without_keep_alive();
    send(&client, 4).await;
    stack.configure(Program::Gateway, "[limits]\nparams = 77");
    let reload = stack.reload(Program::Gateway);
    assert!(reload.status.success(), "{}", output_text(&reload));
    send(&client, 3).await;
    for expected in [7, 12] {
        stack.running(Program::Gateway).terminate();
        let status = stack.wait_for_exit(Program::Gateway).await;
        assert!(status.success(), "{status}");
        // At once: the stop has written them.
        assert_eq!(total(&stack), expected);
        if expected == 7 {
            stack.restart(Program::Gateway).await;
            send(&client, 5).await;
        }
    }
}

#[tokio::test]
async fn an_upgrade_loses_no_request() {
    let (mut stack, _backend) = multi(|builder| builder).await;
    let client = stack
        .client_of(&stack.create_application("one", &[]))
        .without_keep_alive();
    send(&client, 5).await;
    let upgraded = stack.upgrade().await;
    assert!(upgraded.status.success(), "{}", output_text(&upgraded));
    send(&client, 4).await;
    let status = stack.wait_for_exit(Program::Gateway).await;
    assert!(status.success(), "{status}");
    until_counted(&stack, 9).await;
}

#[tokio::test]
async fn a_kill_loses_at_most_what_was_counted_since_the_last_batch() {
    let (mut stack, _backend) = multi(|builder| builder).await;
    let client = stack
        .client_of(&stack.create_application("one", &[]))
        .without_keep_alive();
    send(&client, 6).await;
    until_counted(&stack, 6).await;
    send(&client, 3).await;
    stack.kill(Program::Gateway);
    stack.restart(Program::Gateway).await;
    let kept = total(&stack);
    assert!((6..=9).contains(&kept), "{kept}");
    send(&client, 2).await;
    until_counted(&stack, kept + 2).await;
}

#[tokio::test]
async fn requests_of_an_outage_of_the_store_are_counted_when_it_is_back() {
    let (mut stack, _backend) = multi(|builder| builder).await;
    let client = stack
        .client_of(&stack.create_application("one", &[]))
        .without_keep_alive();
    // The change feed of a gateway that starts now does not report the application as changed, which would invalidate
    // the cache just before the outage.
    stack.restart(Program::Gateway).await;
    send(&client, 1).await;
    stack.store().make_unavailable();
    send(&client, 5).await;
    stack
        .log_with(
            Program::Gateway,
            "the counts of requests cannot be written now",
        )
        .await;
    send(&client, 2).await;
    stack.store().make_available();
    until_counted(&stack, 8).await;
    let log = stack
        .log_with(Program::Gateway, "the counts of requests are written again")
        .await;
    assert_eq!(log.matches("cannot be written now").count(), 1, "{log}");
}

#[tokio::test]
async fn in_single_application_mode_the_command_says_that_nothing_is_counted() {
    let (stack, _backend) = Stack::recording().await;
    stack.client().get("/x").param("a", "1").send().await.ok();
    let output = report(&stack, &[]);
    let text = output_text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("serves a single application") && text.contains("counts no requests"),
        "{text}"
    );
}
