//! The gateway reloads its configuration while it serves: each kind of change applies, and an invalid file does not.

mod listeners;
mod load;
mod under_load;
mod watched;

use std::{
    fs,
    time::{Duration, Instant},
};

use end_to_end::{
    port::free_address,
    program::{Program, output_text},
    raw_connection::request,
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    signed_client::SignedClient,
    stack::{APP_KEY, Stack},
    waiting::{WAIT_TIMEOUT, until, until_within},
};

const OTHER_KEY: &str = "0f0e0d0c0b0a09080706050403020100f0e0d0c0b0a090807060504030201000";

/// Merges `toml` into the gateway's file, and reloads it.
fn reload(stack: &Stack, toml: &str) -> String {
    stack.configure(Program::Gateway, toml);
    let output = stack.reload(Program::Gateway);
    let text = output_text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains(": reloaded"), "{text}");
    text
}

/// Writes a secret beside the configuration, and returns its setting.
fn secret(stack: &Stack, name: &str, secret: &str) -> String {
    let path = stack.folder().join(name);
    fs::write(&path, secret).unwrap();
    format!("\"file:{}\"", path.display())
}

async fn status(client: &SignedClient, path: &str) -> u16 {
    client
        .get(path)
        .param("a", "1")
        .send()
        .await
        .status
        .as_u16()
}

fn at(backend: &RecordingBackend) -> String {
    format!("\"{}\"", backend.address())
}

#[tokio::test]
async fn a_version_moves_and_requests_in_flight_finish_at_the_old_backend() {
    let (old, new) = tokio::join!(RecordingBackend::start(), RecordingBackend::start());
    let stack = Stack::builder().in_front_of(&old).start().await;
    let client = stack.client();
    old.behave(Behaviour::responding(Delivery::After(Duration::from_secs(
        1,
    ))));
    let slow = tokio::spawn({
        let client = client.clone();
        async move { client.get("/slow").param("a", "1").send().await }
    });
    old.request_number(1).await;
    let printed = reload(&stack, &format!("[versions.v1]\nbackend = {}", at(&new)));
    let change = format!("versions.v1.backend: {} -> {}", at(&old), at(&new));
    assert!(printed.contains(&change), "{printed}");
    assert_eq!(status(&client, "/fast").await, 200);
    assert_eq!(
        new.request_number(1).await.target.split('?').next(),
        Some("/fast")
    );
    assert_eq!(slow.await.unwrap().status, 200);
    assert_eq!(old.requests().len(), 1);
}

#[tokio::test]
async fn a_version_can_be_added_and_become_the_default() {
    let (one, other) = tokio::join!(RecordingBackend::start(), RecordingBackend::start());
    let stack = Stack::builder()
        .in_front_of(&one)
        .without(Program::Gateway, "versions")
        .gateway(&format!(
            "unknown = \"reject\"\n[versions.v1]\nbackend = {}",
            at(&one)
        ))
        .start()
        .await;
    let client = stack.client();
    let ask = || async {
        let call = client.get("/x").param("a", "1").version("v3");
        call.send().await.status.as_u16()
    };
    assert_eq!(ask().await, 400);
    reload(&stack, &format!("[versions.v3]\nbackend = {}", at(&other)));
    assert_eq!(ask().await, 200);
    reload(&stack, "default_version = \"v3\"");
    assert_eq!(status(&client, "/default").await, 200);
    assert_eq!((one.requests().len(), other.requests().len()), (0, 2));
    // The default version must have a backend.
    let file = stack.config(Program::Gateway);
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, whole.replace("[versions.v3]", "[versions.v4]")).unwrap();
    let output = stack.reload(Program::Gateway);
    assert_eq!(output.status.code(), Some(1), "{}", output_text(&output));
    assert!(output_text(&output).contains("default_version: found \"v3\""));
    assert_eq!(ask().await, 200);
}

#[tokio::test]
async fn signing_rules_change_with_the_next_request() {
    let (stack, _backend) = Stack::recording().await;
    let client = stack.client();
    let late = |seconds: i64| {
        let client = client.clone();
        async move {
            let call = client
                .get("/x")
                .param("a", "1")
                .later_by_ms(-1000 * seconds);
            call.send().await.status.as_u16()
        }
    };
    assert_eq!(late(30).await, 200);
    reload(&stack, "[sign]\nwindow_seconds = 10");
    assert_eq!(late(30).await, 403);
    reload(&stack, "[sign]\nwindow_seconds = 120");
    assert_eq!(late(100).await, 200);
    reload(&stack, "[sign]\nalgorithm = \"hmac-sha256\"");
    assert_eq!(status(&client, "/x").await, 403);
    reload(&stack, "[sign]\nalgorithm = \"md5\"");
    assert_eq!(status(&client, "/x").await, 200);
    reload(
        &stack,
        &format!(
            "[application]\nkey = {}",
            secret(&stack, "app.key", OTHER_KEY)
        ),
    );
    assert_eq!(status(&client, "/x").await, 403);
    assert_eq!(status(&client.with_key(OTHER_KEY), "/x").await, 200);
    // The same file with another key in it.
    secret(&stack, "app.key", APP_KEY);
    let printed = reload(&stack, "");
    assert!(
        printed.contains("\n  application.key: changed"),
        "{printed}"
    );
    assert_eq!(status(&client, "/x").await, 200);
    for printed in [printed, stack.log(Program::Gateway)] {
        assert!(
            !printed.contains(APP_KEY) && !printed.contains(OTHER_KEY),
            "{printed}"
        );
    }
}

#[tokio::test]
async fn a_used_signature_stays_used() {
    let (stack, _backend) = Stack::recording().await;
    reload(&stack, "[sign]\nreplay = \"reject\"\nwindow_seconds = 25");
    let client = stack.client();
    let used = client.get("/x").param("a", "1").bytes(&[]);
    let send = || async {
        let mut connection = stack.raw().await;
        connection.send(&used).await;
        let response = connection.response().await.unwrap();
        (response.status, response.code())
    };
    assert_eq!(send().await.0, 200);
    reload(
        &stack,
        "[limits]\nparams = 99\n[sign]\nreplay_entries = 200",
    );
    assert_eq!(send().await.0, 409);
    // The larger window does not accept a signature that was stored for the smaller one only.
    reload(&stack, "[sign]\nwindow_seconds = 300");
    until_within(3 * WAIT_TIMEOUT, "the request to be too old", || async {
        let (status, code) = send().await;
        assert_ne!(status, 200);
        (status == 403 && code.as_deref() == Some("time_out_of_window")).then_some(())
    })
    .await;
    // A further request removes expired entries from the replay memory.
    assert_eq!(status(&client, "/sweep").await, 200);
    assert_eq!(send().await, (403, Some("time_out_of_window".to_owned())));
    reload(&stack, "[sign]\nwindow_seconds = 2");
    reload(&stack, "[sign]\nwindow_seconds = 200");
    assert_eq!(send().await, (403, Some("time_out_of_window".to_owned())));
    assert_eq!(status(&client, "/x").await, 200);
}

#[tokio::test]
async fn limits_and_timeouts_change_with_the_next_request() {
    let (stack, backend) = Stack::recording().await;
    let client = stack.client();
    let form = |length: usize| {
        let client = client.clone();
        async move {
            let call = client.post("/form").param("a", &"x".repeat(length));
            call.send().await.status.as_u16()
        }
    };
    assert_eq!(form(5000).await, 200);
    reload(&stack, "[limits]\nbody_bytes = 1000");
    assert_eq!(form(5000).await, 413);
    assert_eq!(form(100).await, 200);
    // On a connection that was open before.
    let mut idle = stack.raw().await;
    let valid = || client.get("/idle").param("a", "1").bytes(&[]);
    idle.send(&valid()).await;
    assert_eq!(idle.response().await.unwrap().status, 200);
    reload(&stack, "[limits]\nheaders = 10");
    let many: Vec<_> = (0..12).map(|number| format!("h{number}: x")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    idle.send(&client.get("/idle").param("a", "1").bytes(&many))
        .await;
    assert_eq!(idle.response().await.unwrap().status, 431);
    backend.behave(Behaviour::responding(Delivery::Never));
    reload(&stack, "[timeouts]\nresponse_seconds = 1");
    assert_eq!(form(100).await, 504);
    // The limit on unsigned requests.
    backend.behave(Behaviour::default());
    reload(&stack, "[limits.unsigned]\nper_second = 1\nburst = 2");
    let served_until_limited = async || {
        for served in 0..30 {
            let mut connection = stack.raw().await;
            connection.send(&request("GET", "/login", &[], b"")).await;
            if connection.response().await.unwrap().status == 429 {
                return served;
            }
        }
        panic!("30 requests were served");
    };
    let start = Instant::now();
    served_until_limited().await;
    // Earlier requests still count under other rates: the larger burst and the time since then add, no more.
    reload(&stack, "[limits.unsigned]\nper_second = 1\nburst = 3");
    let served = served_until_limited().await;
    let max = 2 + start.elapsed().as_secs();
    assert!((1..=max).contains(&served), "{served} of at most {max}");
    reload(&stack, "[limits.unsigned]\nper_second = 0");
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/login", &[], b"")).await;
    assert_ne!(connection.response().await.unwrap().status, 429);
}

#[tokio::test]
async fn header_names_secrets_and_trusted_proxies_change_with_the_next_request() {
    let (stack, backend) = Stack::recording().await;
    let client = stack.client();
    let gateway_secret = secret(&stack, "gateway.secret", OTHER_KEY);
    reload(&stack, &format!("gateway_secret = {gateway_secret}"));
    let ask = |header: &'static str, value: &'static str| {
        let client = client.clone();
        async move {
            let call = client.get("/x").param("a", "1").header(header, value);
            call.send().await
        }
    };
    ask("x-forwarded-for", "192.0.2.1").await;
    let first = backend.request_number(1).await;
    assert_eq!(first.value("x-gateway-secret"), Some(OTHER_KEY));
    assert_eq!(first.value("x-forwarded-for"), Some("127.0.0.1"));
    secret(&stack, "gateway.secret", APP_KEY);
    reload(&stack, "trusted_proxies = [\"127.0.0.0/8\"]");
    // The client's connection is the same, but its address is trusted now.
    ask("x-forwarded-for", "192.0.2.1").await;
    let second = backend.request_number(2).await;
    assert_eq!(second.value("x-gateway-secret"), Some(APP_KEY));
    let forwarded = second.value("x-forwarded-for").unwrap();
    assert!(forwarded.starts_with("192.0.2.1"), "{forwarded}");
    let response = ask("other-version", "v2").await;
    assert_eq!(response.header("acme-x-version"), Some("v1"));
    reload(
        &stack,
        "prefix = \"Other\"\n[headers]\nversion = \"Other-Version\"",
    );
    let response = ask("other-version", "v2").await;
    assert_eq!(response.header("other-version"), Some("v2"));
    assert_eq!(response.header("acme-x-version"), None);
}

#[tokio::test]
async fn the_log_changes_with_the_next_line() {
    let (stack, _backend) = Stack::recording().await;
    let client = stack.client();
    assert_eq!(status(&client, "/first").await, 200);
    stack.log_with(Program::Gateway, "/first").await;
    reload(&stack, "[log]\nformat = \"json\"");
    assert_eq!(status(&client, "/second").await, 200);
    let log = stack.log_with(Program::Gateway, "/second").await;
    let line = log.lines().find(|line| line.contains("/second")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["http.path"], "/second");
    reload(&stack, "[log]\naccess_sample = 0");
    assert_eq!(status(&client, "/third").await, 200);
    reload(&stack, "[log]\naccess_sample = 1");
    assert_eq!(status(&client, "/fourth").await, 200);
    let log = stack.log_with(Program::Gateway, "/fourth").await;
    assert!(!log.contains("/third"), "{log}");
    reload(&stack, "[log]\nfilter = \"error\"");
    assert_eq!(status(&client, "/fifth").await, 200);
    // Over the same connection: the request before has been logged by now.
    assert_eq!(status(&client, "/fence").await, 200);
    reload(&stack, "[log]\nfilter = \"info\"");
    assert_eq!(status(&client, "/sixth").await, 200);
    let log = stack.log_with(Program::Gateway, "/sixth").await;
    assert!(!log.contains("/fifth"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unhealthy_address_stays_unhealthy() {
    let (one, other) = tokio::join!(RecordingBackend::start(), RecordingBackend::start());
    let backends = |further: &str| {
        format!(
            "[versions.v1]\nbackends = [{}, {}{further}]\nhealth = {{ interval_seconds = 3600, timeout_seconds = 30, unhealthy_after = 1 }}",
            at(&one),
            at(&other)
        )
    };
    one.behave_when_checked(Behaviour::responding(Delivery::HangUp));
    let stack = Stack::builder()
        .in_front_of(&one)
        .without(Program::Gateway, "versions")
        .gateway(&backends(""))
        .start()
        .await;
    stack.log_with(Program::Gateway, "fails its checks").await;
    let client = stack.client();
    let all_go_to_the_other = || async {
        let before = (one.requests().len(), other.requests().len());
        for _ in 0..6 {
            assert_eq!(status(&client, "/x").await, 200);
        }
        assert_eq!(one.requests().len(), before.0);
        assert_eq!(other.requests().len(), before.1 + 6);
    };
    all_go_to_the_other().await;
    // The version does not change: its balancer stays, and no health check runs.
    let checks = one.checks();
    reload(&stack, "[limits]\nparams = 99");
    all_go_to_the_other().await;
    assert_eq!(one.checks(), checks);
    // The balancing rule changes: health checks start again, with the same result.
    reload(&stack, "[versions.v1]\nbalance = \"least-connections\"");
    all_go_to_the_other().await;
    reload(&stack, "[versions.v1]\nhealth = { active = false }");
    let before = one.requests().len();
    for _ in 0..6 {
        assert_eq!(status(&client, "/x").await, 200);
    }
    assert!(
        one.requests().len() > before,
        "without health checks it counts as healthy"
    );
}

#[tokio::test]
async fn an_invalid_file_changes_nothing_and_is_reported_as_by_check() {
    let (stack, _backend) = Stack::recording().await;
    let client = stack.client();
    let file = stack.config(Program::Gateway);
    let whole = fs::read_to_string(&file).unwrap();
    for broken in [
        whole.replace("prefix", "prefiks"),
        format!("threads = -1\n{whole}"),
        whole[..whole.len() / 2].to_owned() + "\n[broken",
        String::new(),
    ] {
        fs::write(&file, &broken).unwrap();
        let printed = output_text(&stack.reload(Program::Gateway));
        let output = stack.check(Program::Gateway, &[]);
        assert_eq!(output.status.code(), Some(1));
        for line in output_text(&output).lines() {
            assert!(printed.contains(line), "{line} in {printed}");
        }
        assert!(printed.contains("the old configuration stays"), "{printed}");
        assert_eq!(status(&client, "/x").await, 200);
        // A running program is healthy even if its file is invalid.
        until("the gateway to be healthy", || async {
            let output = stack.command(&["health"]);
            output.status.success().then_some(())
        })
        .await;
    }
    fs::remove_file(&file).unwrap();
    let output = stack.reload(Program::Gateway);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output_text(&output).contains("cannot be read"),
        "{}",
        output_text(&output)
    );
    assert_eq!(status(&client, "/x").await, 200);
    fs::write(&file, &whole).unwrap();
    reload(&stack, "");
}

#[tokio::test]
async fn keys_that_need_a_new_process_name_the_upgrade() {
    let (stack, _backend) = Stack::recording().await;
    let other = free_address();
    let printed = reload(
        &stack,
        &format!("threads = 1\n[management]\nlisten = \"{other}\"\n[limits]\nparams = 99"),
    );
    let file = stack.config(Program::Gateway);
    let upgrade = format!(
        "signpost upgrade --config {} applies these, and loses nothing",
        file.display()
    );
    let (reloaded, kept) = printed.split_once(&format!("\n{upgrade}:\n")).unwrap();
    assert!(reloaded.contains("limits.params: 256 -> 99"), "{printed}");
    assert!(kept.contains("threads: 0 -> 1"), "{printed}");
    assert!(kept.contains(&format!("-> \"{other}\"")), "{printed}");
    assert_eq!(status(&stack.client(), "/x").await, 200);
    let log = stack.log_with(Program::Gateway, &upgrade).await;
    let line = log.lines().find(|line| line.contains(&upgrade)).unwrap();
    assert!(line.contains("management.listen") && line.contains("threads"));
    let output = stack.check(Program::Gateway, &["--diff"]);
    assert_eq!(output.status.code(), Some(0));
    let text = output_text(&output);
    assert!(
        text.contains(&format!("{upgrade}:\n")) && text.contains("threads: 0 -> 1"),
        "{text}"
    );
}

#[tokio::test]
async fn the_gateway_does_not_become_its_own_backend() {
    let (stack, _backend) = Stack::recording().await;
    let (management, other) = (stack.addresses().management, free_address());
    stack.configure(
        Program::Gateway,
        &format!("[management]\nlisten = \"{other}\"\n[versions.v1]\nbackend = \"{management}\""),
    );
    let output = stack.reload(Program::Gateway);
    assert_eq!(output.status.code(), Some(1));
    let text = output_text(&output);
    assert!(
        text.contains(
            "versions.v1: until an upgrade, the gateway's management listens on this backend's address"
        ),
        "{text}"
    );
    assert_eq!(status(&stack.client(), "/x").await, 200);
}

#[tokio::test]
async fn sighup_does_not_end_a_gateway_that_is_still_starting() {
    let (mut stack, _backend) = Stack::recording().await;
    // The lines of the first start: a kill could lose them.
    stack.log_with(Program::Gateway, "is listening").await;
    stack.restart_without_waiting(Program::Gateway);
    // The gateway logs its warnings before it opens its store and resolves names.
    until("the gateway to have read its file", || {
        let warned = stack
            .log(Program::Gateway)
            .matches("sign.algorithm")
            .count();
        async move { (warned == 2).then_some(()) }
    })
    .await;
    for _ in 0..5 {
        stack.running(Program::Gateway).reload_by_signal();
    }
    until("the gateway to reload and to listen", || {
        let log = stack.log(Program::Gateway);
        let is_listening = log.matches("is listening").count() == 2;
        async move { (is_listening && log.contains("configuration reloaded")).then_some(()) }
    })
    .await;
    assert!(stack.running(Program::Gateway).exit_status().is_none());
    assert_eq!(status(&stack.client(), "/x").await, 200);
}

#[tokio::test]
async fn switching_to_many_applications_needs_an_upgrade() {
    let (stack, _backend) = Stack::recording().await;
    let file = stack.config(Program::Gateway);
    let whole = fs::read_to_string(&file).unwrap();
    let many = whole.replace("[application]\n", "[applications]\n");
    let many: String = many
        .lines()
        .filter(|line| !line.starts_with("key = "))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(
        &file,
        format!(
            "store = \"sqlite:other.db\"\n{}",
            many.replace("store = ", "# store = ")
        ),
    )
    .unwrap();
    let printed = output_text(&stack.reload(Program::Gateway));
    let kept = printed.split("loses nothing:").nth(1).unwrap();
    assert!(
        kept.contains("applications: ") && kept.contains("application.key: removed"),
        "{printed}"
    );
    assert_eq!(status(&stack.client(), "/x").await, 200);
}

#[tokio::test]
async fn check_shows_the_difference_without_a_reload() {
    let (stack, _backend) = Stack::recording().await;
    let output = stack.check(Program::Gateway, &["--diff"]);
    assert!(
        output_text(&output).contains("a reload would change nothing"),
        "{}",
        output_text(&output)
    );
    stack.configure(
        Program::Gateway,
        "[sign]\nwindow_seconds = 1\nalgorithm = \"hmac-sha256\"",
    );
    let output = stack.check(Program::Gateway, &["--diff"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        output_text(&output).contains("sign.window_seconds: 60 -> 1"),
        "{}",
        output_text(&output)
    );
    assert_eq!(status(&stack.client(), "/x").await, 200);
}

#[tokio::test]
async fn the_application_cache_can_be_resized() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend).multi().start().await;
    let app = stack.create_application("shop", &[]);
    let client = stack.client_of(&app);
    assert_eq!(status(&client, "/x").await, 200);
    reload(&stack, "[applications]\ncache_entries = 5");
    assert_eq!(status(&client, "/x").await, 200);
    // The resized cache is notified of the change.
    let output = stack.command(&["app", "disable", &app.ident]);
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    until("the application to be disabled", || async {
        (status(&client, "/x").await == 403).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_check_warns_of_is_said_before_and_after_a_reload() {
    let (stack, _backend) = Stack::recording().await;
    stack.configure(Program::Gateway, "[sign]\nwindow_seconds = 90");
    let outputs = [
        stack.check(Program::Gateway, &[]),
        stack.check(Program::Gateway, &["--diff"]),
        stack.reload(Program::Gateway),
    ];
    let warnings = outputs.each_ref().map(|output| {
        let text = output_text(output);
        let lines = text.lines().filter(|line| line.starts_with("warning: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    });
    let [checked, compared, reloaded] = &warnings;
    assert!(checked.iter().any(|line| line.contains("sign.algorithm")));
    assert_eq!((compared, reloaded), (checked, checked));
}
