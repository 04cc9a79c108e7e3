//! Metrics of the login service and of the store, and the listener that shows them.

use std::{
    fs,
    net::TcpListener,
    time::{Duration, Instant},
};

use end_to_end::{
    browser::{Browser, Decision},
    logins::{PollingLogin, begin_polling, confirm_polling, log_in_by_polling, log_in_by_redirect},
    metrics::Scrape,
    port::free_address,
    program::{Program, output_text},
    raw_connection::RawConnection,
    signed_client::fetch,
    stack::{Stack, StackBuilder},
    waiting::{WAIT_TIMEOUT, until},
};
use tokio::task::JoinSet;

const MANAGEMENT: &str = "[management]\nlisten = \"$MANAGEMENT\"";

fn builder() -> StackBuilder {
    Stack::builder().backends(MANAGEMENT)
}

async fn scrape(stack: &Stack, program: Program) -> Scrape {
    Scrape::of(stack.addresses().management_of(program)).await
}

/// The numbers of logins that were begun and that ended so, in one mode.
fn logins(scrape: &Scrape, mode: &str, outcome: &str) -> (f64, f64) {
    let by = [("mode", mode), ("provider", "bitbucket")];
    let begun = scrape.value("signpost_logins_begun_total", &by);
    let by = [by[0], by[1], ("outcome", outcome)];
    let finished = scrape.value("signpost_logins_finished_total", &by);
    (begun.unwrap(), finished.unwrap())
}

fn calls(scrape: &Scrape, call: &str, result: &str) -> f64 {
    let by = [
        ("provider", "bitbucket"),
        ("call", call),
        ("result", result),
    ];
    let count = "signpost_provider_call_duration_seconds_count";
    scrape.value(count, &by).unwrap()
}

fn requests(scrape: &Scrape, version: &str, endpoint: &str, status_class: &str) -> f64 {
    let by = [
        ("version", version),
        ("endpoint", endpoint),
        ("status_class", status_class),
    ];
    scrape
        .value("signpost_login_requests_total", &by)
        .unwrap_or_default()
}

/// Ends a polling login at the provider.
async fn decide(begun: &PollingLogin, user: &str, decision: Decision) {
    let mut browser = Browser::default();
    let provider = confirm_polling(&mut browser, begun).await;
    browser.decide_and_follow(&provider, user, decision).await;
}

#[tokio::test]
async fn logins_are_counted_by_mode_and_outcome() {
    let stack = builder().start().await;
    let client = stack.client();
    for user in ["ada", "grace"] {
        log_in_by_polling(&client, user).await;
    }
    log_in_by_redirect(&client, "ada").await;
    decide(&begin_polling(&client).await, "ada", Decision::Deny).await;
    // Begun, and never finished.
    begin_polling(&client).await;
    let mut browser = Browser::for_data();
    let provider = browser.open(&stack.url("/login")).await;
    let failed = browser
        .decide_and_follow(&provider, "profile-500", Decision::Allow)
        .await;
    failed.response.rejected(502, "provider_failed");

    let v1 = scrape(&stack, Program::V1).await;
    assert_eq!(logins(&v1, "polling", "success"), (4.0, 2.0));
    assert_eq!(logins(&v1, "polling", "denied"), (4.0, 1.0));
    assert_eq!(logins(&v1, "redirect", "success"), (2.0, 1.0));
    assert_eq!(logins(&v1, "redirect", "provider_failed"), (2.0, 1.0));
    let all = [("provider", "bitbucket")];
    assert_eq!(v1.sum("signpost_logins_finished_total", &all), 5.0);
    // A denied login calls nobody.
    assert_eq!(calls(&v1, "token", "success"), 4.0);
    assert_eq!(calls(&v1, "user", "success"), 3.0);
    assert_eq!(calls(&v1, "user", "failure"), 1.0);
    assert_eq!(
        v1.sum("signpost_provider_call_duration_seconds_count", &[]),
        8.0
    );
    assert_eq!(
        v1.value("signpost_provider_calls_in_flight", &[]),
        Some(0.0)
    );
    assert_eq!(requests(&v1, "v1", "/check", "2xx"), 2.0);
    assert_eq!(requests(&v1, "v1", "/login", "5xx"), 1.0);
    let by_version = [("version", "v1")];
    assert_eq!(
        v1.sum("signpost_login_requests_total", &by_version),
        v1.sum("signpost_login_request_duration_seconds_count", &by_version),
    );
    // The other version's process has nothing of it.
    let v2 = scrape(&stack, Program::V2).await;
    assert_eq!(logins(&v2, "polling", "success"), (0.0, 0.0));
}

#[tokio::test]
async fn a_call_without_a_response_is_in_flight_and_then_a_timeout() {
    let stack = builder().start().await;
    let mut browser = Browser::for_data();
    let provider = browser.open(&stack.url("/login")).await;
    let slow = tokio::spawn(async move {
        browser
            .decide_and_follow(&provider, "token-slow", Decision::Allow)
            .await
    });
    until("the call in flight", || async {
        let v1 = scrape(&stack, Program::V1).await;
        (v1.value("signpost_provider_calls_in_flight", &[]) == Some(1.0)).then_some(())
    })
    .await;
    slow.await
        .unwrap()
        .response
        .rejected(504, "provider_timeout");
    let v1 = scrape(&stack, Program::V1).await;
    assert_eq!(calls(&v1, "token", "timeout"), 1.0);
    assert_eq!(logins(&v1, "redirect", "provider_timeout"), (1.0, 1.0));
    assert_eq!(
        v1.value("signpost_provider_calls_in_flight", &[]),
        Some(0.0)
    );
}

#[tokio::test]
async fn a_waiting_check_is_shown_while_it_waits() {
    let stack = builder().start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let check = client.post("/check").param("token", &begun.token);
    let check = check.param("wait", "25");
    let (waiting, ()) = tokio::join!(check.send(), async {
        until("the check to wait", || async {
            let v1 = scrape(&stack, Program::V1).await;
            (v1.value("signpost_checks_waiting", &[]) == Some(1.0)).then_some(())
        })
        .await;
        decide(&begun, "ada", Decision::Allow).await;
    });
    assert_eq!(waiting.ok()["status"], "complete");
    let v1 = scrape(&stack, Program::V1).await;
    assert_eq!(v1.value("signpost_checks_waiting", &[]), Some(0.0));
}

#[tokio::test]
async fn one_process_counts_all_versions_apart() {
    let stack = builder().internal_forwarding().start().await;
    let client = stack.client();
    log_in_by_polling(&client, "ada").await;
    for _ in 0..3 {
        let response = client.get("/user").version("v2").send().await;
        response.problem(401, "authorization_missing");
    }
    // No path of a client becomes a label.
    let unknown = client.get("/no-such-path").version("v2").signed();
    unknown.send().await.problem(404, "not_found");
    let all = scrape(&stack, Program::All).await;
    assert_eq!(requests(&all, "v2", "/user", "4xx"), 3.0);
    assert_eq!(requests(&all, "v2", "other", "4xx"), 1.0);
    assert_eq!(requests(&all, "v1", "/user", "4xx"), 0.0);
    assert_eq!(requests(&all, "v1", "/check", "2xx"), 1.0);
    assert!(!all.text().contains("no-such-path"), "{}", all.text());
    assert_eq!(logins(&all, "polling", "success"), (1.0, 1.0));
    let release = Program::All.release();
    let build = format!("signpost_build_info{{program=\"login-all\",version=\"{release}\"");
    assert!(all.text().contains(&build), "{}", all.text());
}

#[tokio::test]
async fn counts_survive_a_reload() {
    let stack = builder().start().await;
    let client = stack.client();
    log_in_by_polling(&client, "ada").await;
    stack.configure(
        Program::V1,
        "[limits]\nstarts_burst = 77\n[providers.second]\nkind = 'bitbucket'\nclient_id = 'i'\nclient_secret = 's'\n\
         url = 'http://127.0.0.1:1'",
    );
    let output = stack.reload(Program::V1);
    assert!(output.status.success(), "{}", output_text(&output));
    let begin = client.post("/login").param("provider", "second");
    begin.send().await.ok();
    let v1 = scrape(&stack, Program::V1).await;
    assert_eq!(logins(&v1, "polling", "success"), (1.0, 1.0));
    assert_eq!(requests(&v1, "v1", "/login", "2xx") as u64, 4);
    let second = [("mode", "polling"), ("provider", "second")];
    assert_eq!(v1.value("signpost_logins_begun_total", &second), Some(1.0));
}

#[tokio::test]
async fn only_the_management_listener_shows_metrics() {
    let stack = builder().start().await;
    for program in [Program::V1, Program::V2] {
        let management = stack.addresses().management_of(program);
        let get = |path: &str| {
            let url = format!("http://{management}{path}");
            async move { fetch(&url).await }
        };
        for (path, status, body) in [
            ("/healthz", 200, "alive\n"),
            (
                "/user",
                404,
                "not found; available: /healthz, /readyz, /metrics\n",
            ),
        ] {
            let response = get(path).await;
            assert_eq!(response.status, status, "{path}");
            assert_eq!(response.text(), body, "{path}");
        }
        until("it to be ready", || async {
            let response = get("/readyz").await;
            (response.status == 200 && response.text() == "ready\n").then_some(())
        })
        .await;
        // The address for the gateway has neither the metrics nor a way to them.
        let own = stack.addresses().of(program);
        fetch(&format!("http://{own}/metrics"))
            .await
            .problem(404, "not_found");
    }
    let through = stack.client().get("/metrics").signed().send().await;
    through.problem(404, "not_found");
    // Without the key, nothing is served.
    let stack = Stack::start().await;
    let management = stack.addresses().management_of(Program::V1);
    assert!(tokio::net::TcpStream::connect(management).await.is_err());
}

#[tokio::test]
async fn an_unusable_address_is_an_error_that_names_the_key() {
    let open = "[management]\nlisten = '0.0.0.0:9'";
    for program in [Program::V1, Program::All] {
        let files = Stack::builder().program(program, open).write_files();
        let run = |arguments: &[&str]| {
            let config = files.config(program);
            let arguments = [arguments, &["--config", &config]].concat();
            let output = program.run(files.path(), &arguments);
            (output.status.success(), output_text(&output))
        };
        let (is_valid, printed) = run(&["check"]);
        let expected = "management.listen: found 0.0.0.0:9; allowed: a loopback address, or insecure = true in [management]";
        assert!(!is_valid && printed.contains(expected), "{printed}");
        let text = fs::read_to_string(files.config(program)).unwrap();
        let allowed = text.replace("[management]", "[management]\ninsecure = true");
        fs::write(files.config(program), &allowed).unwrap();
        let (is_valid, printed) = run(&["check"]);
        assert!(is_valid, "{printed}");
        // An address that another program has.
        let taken = TcpListener::bind(free_address()).unwrap();
        let taken_address = taken.local_addr().unwrap().to_string();
        fs::write(
            files.config(program),
            allowed.replace("0.0.0.0:9", &taken_address),
        )
        .unwrap();
        let (has_started, printed) = run(&[]);
        let expected = format!("cannot listen on {taken_address} (management.listen)");
        assert!(!has_started && printed.contains(&expected), "{printed}");
    }
}

#[tokio::test]
async fn floods_of_connections_do_not_keep_operators_out() {
    let stack = builder()
        .backends("[limits]\nconnections = 5")
        .start()
        .await;
    let management = stack.addresses().management_of(Program::V1);
    // More than the connections for requests: the first make room for the last.
    let mut own = Vec::new();
    for _ in 0..20 {
        own.push(RawConnection::open(stack.addresses().of(Program::V1)).await);
    }
    assert_eq!(
        fetch(&format!("http://{management}/healthz")).await.status,
        200
    );
    // More than the management listener serves.
    let mut opened = JoinSet::new();
    for _ in 0..300 {
        opened.spawn(RawConnection::open(management));
    }
    let mut opened = opened.join_all().await;
    let begun_at = Instant::now();
    while opened.len() > 256 {
        let mut open = Vec::new();
        for mut connection in opened {
            if !connection
                .has_activity_within(Duration::from_millis(1))
                .await
            {
                open.push(connection);
            }
        }
        opened = open;
        assert!(
            begun_at.elapsed() < WAIT_TIMEOUT,
            "{} are open",
            opened.len()
        );
    }
    drop(opened);
    until("a scrape after the flood", || async {
        let url = format!("http://{management}/metrics");
        let response = reqwest::get(url).await.ok()?;
        response.status().is_success().then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_listener_responds_during_a_graceful_stop() {
    let shutdown = "[shutdown]\ndrain_delay_seconds = 60";
    let mut stack = builder().backends(shutdown).start().await;
    let management = stack.addresses().management_of(Program::V1);
    stack.running(Program::V1).terminate();
    let stopping = until("the stop", || async {
        let response = fetch(&format!("http://{management}/readyz")).await;
        (response.status == 503).then_some(response)
    })
    .await;
    assert_eq!(stopping.text(), "stopping\n");
    Scrape::of(management).await;
    // A second signal ends the drain.
    stack.running(Program::V1).terminate();
    assert!(stack.wait_for_exit(Program::V1).await.success());
    let log = stack.log(Program::V1);
    assert!(
        log.contains(&format!("management is listening management={management}")),
        "{log}"
    );
}

#[tokio::test]
async fn an_outage_of_the_store_is_seen_and_its_end() {
    let stack = builder().multi().start().await;
    let client = stack.client_of(&stack.create_application("one", &[]));
    log_in_by_polling(&client, "ada").await;
    let failures = |scrape: &Scrape| {
        let failure = [("result", "failure")];
        scrape.value("signpost_store_call_duration_seconds_count", &failure)
    };
    let lag = |scrape: &Scrape| scrape.value("signpost_change_feed_lag_seconds", &[]);
    let programs = [Program::Gateway, Program::V1, Program::V2];
    let mut before = Vec::new();
    for program in programs {
        let good = scrape(&stack, program).await;
        let success = [("result", "success")];
        let calls = good.value("signpost_store_call_duration_seconds_count", &success);
        assert!(calls > Some(0.0), "{program}: {calls:?}");
        let open = good.sum("signpost_store_connections", &[]);
        assert!((1.0..=10.0).contains(&open), "{program}: {open}");
        assert_eq!(good.value("signpost_store_waiting", &[]), Some(0.0));
        assert!(
            good.value("signpost_change_feed_changes_total", &[])
                .is_some()
        );
        before.push(failures(&good).unwrap());
    }
    stack.store().make_unavailable();
    for (program, before) in programs.into_iter().zip(before) {
        until(&format!("failures and a lag at {program}"), || async {
            // Each is a call.
            fetch(&format!(
                "http://{}/readyz",
                stack.addresses().management_of(program)
            ))
            .await;
            let now = scrape(&stack, program).await;
            (failures(&now) > Some(before) && lag(&now) > Some(2.0)).then_some(())
        })
        .await;
    }
    stack.store().make_available();
    for program in programs {
        until(&format!("no lag at {program}"), || async {
            let now = scrape(&stack, program).await;
            (lag(&now) < Some(1.5)).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn without_a_store_its_families_have_no_samples() {
    let stack = Stack::start().await;
    let gateway = scrape(&stack, Program::Gateway).await;
    for family in [
        "signpost_store_call_duration_seconds histogram",
        "signpost_store_connections gauge",
        "signpost_store_waiting gauge",
        "signpost_change_feed_lag_seconds gauge",
        "signpost_change_feed_changes_total counter",
    ] {
        let line = format!("# TYPE {family}\n");
        assert!(gateway.text().contains(&line), "{family}");
        let name = family.split(' ').next().unwrap();
        assert!(!gateway.text().contains(&format!("\n{name}")), "{family}");
    }
}
