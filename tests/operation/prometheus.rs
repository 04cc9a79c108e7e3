//! The files of `conf/observe`, read by a real Prometheus and its promtool. #15

use std::{
    io::Write,
    net::SocketAddr,
    process::{Command, Stdio},
};

use end_to_end::{
    documents::root,
    observe::{dashboard, rules},
    port::free_address,
    program::{Program, output_text},
    prometheus::Prometheus,
    signed_client::{SignedClient, fetch, http_client},
    stack::{Stack, StackBuilder},
    waiting::until,
};

/// Runs promtool in `conf/observe`; it must succeed.
fn promtool(arguments: &[&str], input: &str) {
    run("promtool", arguments, input);
}

/// Reads a page of OpenMetrics with the strict parser of Python's client library, as collectors do that use it.
async fn parse_strictly(management: SocketAddr) {
    let url = format!("http://{management}/metrics");
    let page = http_client().get(&url);
    let page = page.header("accept", "application/openmetrics-text; version=1.0.0");
    let page = page.send().await.unwrap().text().await.unwrap();
    assert!(page.ends_with("# EOF\n"), "{page}");
    let parser = "import sys\n\
                  from prometheus_client.openmetrics.parser import text_string_to_metric_families\n\
                  assert len(list(text_string_to_metric_families(sys.stdin.read()))) > 20";
    // Debian's, as the library is.
    run("/usr/bin/python3", &["-c", parser], &page);
}

/// Runs a program in `conf/observe`; it must succeed.
fn run(program: &str, arguments: &[&str], input: &str) {
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(root().join("conf/observe"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("scripts/prerequisites test installs it");
    let mut stdin = child.stdin.take().unwrap();
    // Fails if the program does not read it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let printed = output_text(&output);
    assert!(output.status.success(), "{arguments:?}: {printed}");
}

/// A stack whose backends serve metrics, with the addresses of these.
fn with_metrics(builder: StackBuilder, programs: &[Program]) -> (StackBuilder, Vec<SocketAddr>) {
    let addresses: Vec<_> = programs.iter().map(|_| free_address()).collect();
    let builder = programs
        .iter()
        .zip(&addresses)
        .fold(builder, |builder, (program, address)| {
            builder.program(*program, &format!("[management]\nlisten = '{address}'"))
        });
    (builder, addresses)
}

#[test]
fn promtool_accepts_the_rules_and_the_configuration() {
    promtool(&["check", "rules", "--lint-fatal", "alerts.yml"], "");
    promtool(&["check", "config", "--lint-fatal", "prometheus.yml"], "");
}

#[test]
fn alerts_fire_when_they_should_and_only_then() {
    promtool(&["test", "rules", "alerts_test.yml"], "");
}

#[tokio::test]
async fn promtool_and_a_strict_parser_accept_the_metrics_of_the_gateway() {
    let (stack, _backend) = Stack::recording().await;
    let client = stack.client();
    for skew in [-90_000, -1_000, 0, 1_000, 90_000] {
        client.get("/x").later_by_ms(skew).signed().send().await;
    }
    let management = stack.addresses().management;
    let url = format!("http://{management}/metrics");
    promtool(&["check", "metrics"], &fetch(&url).await.text());
    parse_strictly(management).await;
}

#[tokio::test]
async fn promtool_and_a_strict_parser_accept_the_metrics_of_the_login_service() {
    let programs = [Program::V1, Program::V2];
    let (builder, addresses) = with_metrics(Stack::builder(), &programs);
    let stack = builder.start().await;
    stack.client().post("/login").signed().send().await.ok();
    for address in addresses {
        let url = format!("http://{address}/metrics");
        promtool(&["check", "metrics"], &fetch(&url).await.text());
        parse_strictly(address).await;
    }
}

/// Panels and rules, and what Prometheus made of the rules.
#[tokio::test]
async fn prometheus_evaluates_every_expression() {
    let (stack, _backend) = Stack::recording().await;
    let prometheus = Prometheus::start(&[stack.addresses().management], &[]).await;
    until("a scrape", || async {
        prometheus.value("sum(up)").await.filter(|up| *up == 1.0)
    })
    .await;
    let panels = dashboard().0.into_iter().flat_map(|panel| panel.queries);
    let rules = rules();
    let expressions = panels.map(|query| query.filled_in());
    let expressions: Vec<_> = expressions
        .chain(rules.iter().map(|rule| rule.expression.clone()))
        .collect();
    assert!(expressions.len() > 80, "{}", expressions.len());
    let mut wrong = Vec::new();
    for expression in &expressions {
        wrong.extend(prometheus.query(expression).await.err());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // A wrong one is reported.
    assert!(prometheus.query("sum by (a) rate(b)").await.is_err());

    let healthy = until("an evaluation of each rule", || async {
        let groups = prometheus.data("rules").await;
        let all: Vec<_> = groups["groups"]
            .as_array()?
            .iter()
            .flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default())
            .collect();
        let is_known = all.iter().all(|rule| rule["health"] != "unknown");
        is_known.then_some(all)
    })
    .await;
    assert_eq!(healthy.len(), rules.len());
    for rule in healthy {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
}

/// Prometheus asks for OpenMetrics, so this reads that format with its strict parser.
#[tokio::test]
async fn prometheus_scrapes_the_process_and_its_build() {
    let (stack, _backend) = Stack::recording().await;
    let prometheus = Prometheus::start(&[stack.addresses().management], &[]).await;
    let release = Program::Gateway.release();
    let build = format!(
        "signpost_build_info{{program=\"signpost\", version=\"{release}\", job=\"signpost-gateway\"}} == 1"
    );
    // Any scrape may take too long on a busy machine.
    for expression in [
        &*build,
        "sum(up) == 1",
        "process_resident_memory_bytes > 1e6",
    ] {
        until(expression, || prometheus.value(expression)).await;
    }
    until("a scrape without an error", || async {
        let targets = prometheus.data("targets").await;
        (targets["activeTargets"][0]["lastError"] == "").then_some(())
    })
    .await;
}

/// Requests of each client of each kind.
const REQUESTS: usize = 40;
const CLIENTS: usize = 4;

/// What one client sends: each kind as often, in turn. Returns how many answers had each status.
async fn send_all(client: SignedClient) -> [usize; 3] {
    let mut counts = [0; 3];
    for _ in 0..REQUESTS {
        let good = client.get("/x").signed().version("v2").send().await;
        let forged = client.get("/x").sign_given("0").send().await;
        let old = client.get("/x").signed().later_by_ms(-600_000).send().await;
        counts[0] += usize::from(good.status == 200);
        counts[1] += usize::from(forged.status == 403);
        counts[2] += usize::from(old.status == 403);
    }
    counts
}

/// Begins logins, and asks for the user without one. Returns how many answers had the right status.
async fn send_to_login_service(client: SignedClient) -> [usize; 2] {
    let mut counts = [0; 2];
    for _ in 0..REQUESTS {
        let begun = client.post("/login").signed().send().await;
        let refused = client.get("/user").signed().send().await;
        counts[0] += usize::from(begun.status == 200);
        counts[1] += usize::from(refused.status == 401);
    }
    counts
}

/// A gateway in front of a recording backend, and a login program behind another gateway.
#[tokio::test(flavor = "multi_thread")]
async fn prometheus_counts_what_the_clients_counted() {
    let (stack, _backend) = Stack::recording().await;
    let (builder, login_services) = with_metrics(Stack::builder(), &[Program::V1]);
    let logins = builder.start().await;
    let prometheus = Prometheus::start(&[stack.addresses().management], &login_services).await;
    let logging_in = tokio::spawn(send_to_login_service(logins.client()));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| tokio::spawn(send_all(stack.client())))
        .collect();
    let mut counted = [0; 3];
    for client in clients {
        let of_client = client.await.unwrap();
        counted = std::array::from_fn(|kind| counted[kind] + of_client[kind]);
    }
    assert_eq!(counted, [CLIENTS * REQUESTS; 3]);
    assert_eq!(logging_in.await.unwrap(), [REQUESTS; 2]);
    let [good, forged, old] = counted.map(|count| count as f64);
    let each = REQUESTS as f64;
    // A request is counted after its response, and scraped later still.
    for (expression, expected) in [
        ("sum(signpost_requests_total)", good + forged + old),
        (
            r#"sum(signpost_requests_total{version="v2", version_source="header", status_class="2xx", problem_code=""})"#,
            good,
        ),
        (
            r#"sum(signpost_requests_total{status_class="4xx", problem_code="sign_mismatch"})"#,
            forged,
        ),
        (
            r#"sum(signpost_requests_total{problem_code="time_out_of_window"})"#,
            old,
        ),
        (
            r#"sum(signpost_request_duration_seconds_count{version="v2"})"#,
            good,
        ),
        (
            r#"sum(signpost_request_duration_seconds_bucket{version="v2", le="+Inf"})"#,
            good,
        ),
        ("sum(signpost_backend_duration_seconds_count)", good),
        ("sum(signpost_verification_failures_total)", forged + old),
        (r#"up{job="signpost-login"}"#, 1.0),
        (
            r#"sum(signpost_login_requests_total{version="v1", endpoint="/login", status_class="2xx"})"#,
            each,
        ),
        (
            r#"sum(signpost_login_requests_total{version="v1", endpoint="/user", status_class="4xx"})"#,
            each,
        ),
    ] {
        until(&format!("{expression} to be {expected}"), || async {
            let value = prometheus.value(expression).await.unwrap_or_default();
            assert!(value <= expected, "{expression}: {value}");
            (value == expected).then_some(())
        })
        .await;
    }
}
