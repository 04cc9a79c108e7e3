//! The command `metrics`: it describes what the programs serve, and the dashboard and the rules use nothing else. #15

mod label_values;

use std::collections::{BTreeMap, BTreeSet};

use end_to_end::{
    certificates::Authority,
    logins::{credential, log_in_by_polling, log_in_by_redirect},
    metrics::Scrape,
    observe::{Documented, dashboard, documented, documented_by, promql::uses, read, rules},
    port::free_address,
    program::Program,
    stack::Stack,
};

/// Labels that Prometheus adds to each series.
const OF_PROMETHEUS: [&str; 2] = ["job", "instance"];

/// What differs between the metrics that a program describes and those that it serves.
fn differences(scrape: &Scrape, program: Program) -> Vec<String> {
    let documented = documented_by(program);
    assert!(documented.len() > 20, "{documented:#?}");
    let mut found = Vec::new();
    for (name, kind) in scrape.families() {
        match documented.iter().find(|metric| metric.name == *name) {
            // A version's own.
            None if name.starts_with("signpost_own_") => {}
            None => found.push(format!("{name} is served, but not documented")),
            Some(metric) if metric.kind != *kind => {
                found.push(format!(
                    "{name} is documented as {}, but a {kind}",
                    metric.kind
                ));
            }
            Some(_) => {}
        }
    }
    for metric in &documented {
        if !scrape.families().contains_key(&metric.name) {
            found.push(format!("{} is documented, but not served", metric.name));
        }
        found.extend(label_differences(scrape, metric));
    }
    found
}

fn label_differences(scrape: &Scrape, metric: &Documented) -> BTreeSet<String> {
    let is_histogram = metric.kind == "histogram";
    let suffixes: &[&str] = if is_histogram {
        &["_bucket", "_sum", "_count"]
    } else {
        &[""]
    };
    let mut found = BTreeSet::new();
    for suffix in suffixes {
        let name = format!("{}{suffix}", metric.name);
        let mut expected = metric.labels.clone();
        if *suffix == "_bucket" {
            expected.insert("le".to_owned());
        }
        for sample in scrape.samples(&name, &[]) {
            let labels: BTreeSet<_> = sample.labels.keys().cloned().collect();
            if labels != expected {
                found.insert(format!("{name} has the labels {labels:?}"));
            }
            for (label, value) in &sample.labels {
                if !label_values::is_possible(&metric.name, label, value) {
                    found.insert(format!("{name} has {value:?} as {label}"));
                }
            }
        }
    }
    found
}

/// The name of a metric, of one of its series.
fn unsuffixed(series: &str) -> &str {
    let mut suffixes = ["_bucket", "_sum", "_count"].into_iter();
    suffixes
        .find_map(|suffix| series.strip_suffix(suffix))
        .unwrap_or(series)
}

/// A gateway with as many kinds of samples as possible: many applications, routes, TLS, rate limits, an account.
#[tokio::test]
async fn the_gateway_serves_what_it_describes() {
    let certificate = Authority::new("Test authority").issue(&["api.example.com"]);
    let toml = format!(
        "listen = [
           {{ address = '$LISTEN' }},
           {{ address = '{}', tls.certificates = [{{ certificate = '$FOLDER/api.pem', key = '$FOLDER/api.key' }}] }},
         ]
         [rate_limits.application]
         per_second = 10000
         burst = 10000
         [sign]
         replay = 'reject'
         [versions.v1]
         routes = [{{ path = '/routed/', backend = '$V2' }}]
         [versions.v1.health]
         path = '/healthz'",
        free_address()
    );
    let stack = Stack::builder()
        .multi()
        .file("api.pem", &certificate.certificate)
        .file("api.key", &certificate.key)
        .gateway(&toml)
        .start()
        .await;
    let application = stack.create_application("Test", &[]);
    let client = stack.client_of(&application);
    let login = log_in_by_polling(&client, "ada").await;
    let call = client.get("/user").authorization(credential(&login));
    call.send().await.ok();
    client.get("/routed/x").signed().send().await;
    let forged = client.get("/user").sign_given("0").send().await;
    forged.problem(403, "sign_mismatch");
    let scrape = Scrape::of(stack.addresses().management).await;
    let differences = differences(&scrape, Program::Gateway);
    assert!(differences.is_empty(), "{differences:#?}");
}

#[tokio::test]
async fn the_login_service_serves_what_it_describes() {
    for programs in [&[Program::V1, Program::V2][..], &[Program::All]] {
        let addresses: Vec<_> = programs.iter().map(|_| free_address()).collect();
        let mut builder = Stack::builder();
        if programs == [Program::All] {
            builder = builder.internal_forwarding();
        }
        for (program, address) in programs.iter().zip(&addresses) {
            let toml = format!("[management]\nlisten = '{address}'");
            builder = builder.program(*program, &toml);
        }
        let stack = builder.start().await;
        let client = stack.client();
        log_in_by_polling(&client, "ada").await;
        log_in_by_redirect(&client, "grace").await;
        for (program, address) in programs.iter().zip(&addresses) {
            let differences = differences(&Scrape::of(*address).await, *program);
            assert!(differences.is_empty(), "{program}: {differences:#?}");
        }
    }
}

/// The labels of every series that an expression may use: documented ones, Prometheus' own, and those computed ahead.
fn known() -> BTreeMap<String, BTreeSet<String>> {
    let mut known = BTreeMap::new();
    for metric in documented() {
        let mut labels = metric.labels;
        labels.extend(OF_PROMETHEUS.map(str::to_owned));
        if metric.kind == "histogram" {
            for suffix in ["_sum", "_count"] {
                known.insert(format!("{}{suffix}", metric.name), labels.clone());
            }
            labels.insert("le".to_owned());
            known.insert(format!("{}_bucket", metric.name), labels);
        } else {
            known.insert(metric.name, labels);
        }
    }
    let set = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect();
    known.insert("up".to_owned(), set(&OF_PROMETHEUS));
    known.insert("ALERTS".to_owned(), set(&["alertname", "alertstate"]));
    for rule in rules().into_iter().filter(|rule| !rule.is_alert) {
        // What it is computed by, at most.
        known.insert(rule.name, uses(&rule.expression).grouping);
    }
    known
}

/// What an expression uses that does not exist. `further` are labels that its legend or its texts name.
fn unknown(expression: &str, further: &[&str]) -> Vec<String> {
    let known = known();
    let uses = uses(expression);
    let mut found = label_values::impossible(expression);
    let mut all = BTreeSet::new();
    for (series, labels) in &uses.series {
        match known.get(series) {
            None => found.push(format!("{series} does not exist: {expression}")),
            Some(existing) => {
                let unknown = labels.difference(existing);
                found.extend(unknown.map(|label| format!("{series} has no label {label}")));
                all.extend(existing.clone());
            }
        }
    }
    // What `label_replace` makes.
    let mut made = expression.split(r#"", "$1""#).collect::<Vec<_>>();
    made.pop();
    all.extend(
        made.iter()
            .filter_map(|made| Some(made.rsplit_once('"')?.1.to_owned())),
    );
    let further = further.iter().map(|label| (*label).to_owned());
    let named: BTreeSet<_> = uses.grouping.iter().cloned().chain(further).collect();
    let unknown = named.difference(&all);
    found.extend(unknown.map(|label| format!("{label} is of no series in {expression}")));
    found
}

#[test]
fn the_dashboard_uses_only_documented_metrics() {
    let (panels, _) = dashboard();
    let mut found = Vec::new();
    for panel in &panels {
        for query in &panel.queries {
            let unknown = unknown(&query.expression, &query.legend_labels());
            found.extend(
                unknown
                    .into_iter()
                    .map(|what| format!("{}: {what}", panel.title)),
            );
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    // The variable of the dashboard.
    let variable = "label_values(signpost_build_info, instance)";
    assert!(read("dashboard.json").contains(variable));
    assert!(known().contains_key("signpost_build_info"));
    // What does not exist is found.
    assert_eq!(unknown("rate(signpost_gone_total[5m])", &[]).len(), 1);
    assert_eq!(
        unknown("sum by (gone) (signpost_http2_streams{lost=''})", &["no"]).len(),
        4
    );
}

#[test]
fn the_rules_use_only_documented_metrics() {
    let mut found = Vec::new();
    for rule in rules() {
        let unknown = unknown(&rule.expression, &rule.named_labels());
        found.extend(
            unknown
                .into_iter()
                .map(|what| format!("{}: {what}", rule.name)),
        );
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// What is documented is of use: each metric is on the dashboard.
#[test]
fn the_dashboard_shows_every_documented_metric() {
    let (panels, _) = dashboard();
    let queries = panels.iter().flat_map(|panel| &panel.queries);
    let mut shown: BTreeSet<_> = queries
        .flat_map(|query| uses(&query.expression).series.into_keys())
        .collect();
    for rule in rules().into_iter().filter(|rule| !rule.is_alert) {
        if shown.contains(&rule.name) {
            shown.extend(uses(&rule.expression).series.into_keys());
        }
    }
    let is_shown = |metric: &Documented| {
        let suffixes = ["", "_bucket", "_count", "_sum"];
        suffixes
            .iter()
            .any(|suffix| shown.contains(&format!("{}{suffix}", metric.name)))
    };
    let missing: Vec<_> = documented()
        .into_iter()
        .filter(|metric| !is_shown(metric))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn each_panel_has_title_unit_and_description() {
    let (panels, rows) = dashboard();
    assert!(
        panels.len() > 50 && rows.len() > 7,
        "{} {rows:?}",
        panels.len()
    );
    let mut titles = BTreeSet::new();
    for panel in &panels {
        assert!(titles.insert(&panel.title), "{} occurs twice", panel.title);
        for text in [&panel.title, &panel.description, &panel.unit] {
            assert!(!text.is_empty(), "{panel:?}");
        }
        assert!(!panel.queries.is_empty(), "{panel:?}");
    }
}

#[test]
fn each_alert_says_how_bad_it_is_and_what_to_do_and_is_tested() {
    let tests = read("alerts_test.yml");
    let alerts: Vec<_> = rules().into_iter().filter(|rule| rule.is_alert).collect();
    assert!(alerts.len() > 15, "{}", alerts.len());
    let mut names = BTreeSet::new();
    for alert in &alerts {
        assert!(names.insert(&alert.name), "{} occurs twice", alert.name);
        let is_sorted = ["warning", "critical"]
            .iter()
            .any(|severity| alert.text.contains(&format!("severity: {severity} }}")));
        assert!(is_sorted, "{alert:?}");
        for member in ["summary: ", "description: "] {
            assert!(alert.text.contains(member), "{}: {member}", alert.name);
        }
        let fires = format!("alertname=\"{}\"}}', value:", alert.name);
        assert!(tests.contains(&fires), "{} is not tested", alert.name);
    }
}
