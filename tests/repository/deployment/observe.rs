//! Profile `observe` of docker-compose.yml. Its files fit the services. Neither Grafana nor the collector runs here.

use std::collections::BTreeSet;

use end_to_end::versions::versions;
use serde_json::Value;
use toml::Table;

use super::read;

/// The values of `key:` in a file, without quotes.
fn values<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    let lines = text.lines().map(str::trim);
    lines
        .filter_map(|line| line.trim_start_matches("- ").strip_prefix(key))
        .map(|value| value.trim().trim_matches('"'))
        .collect()
}

#[test]
fn prometheus_has_every_gateway_and_backend_as_a_target() {
    let file = read("conf/observe/prometheus.yml");
    let (gateways, backends) = file.split_once("job_name: signpost-login").unwrap();
    let targets = |job| -> BTreeSet<String> {
        let lists = values(job, "targets:").into_iter();
        lists
            .flat_map(|list| serde_json::from_str::<Vec<String>>(list).unwrap())
            .collect()
    };
    let both = |name: &str, port: u16| ["a", "b"].map(|one| format!("{name}-{one}:{port}"));
    assert_eq!(targets(gateways), both("gateway", 8081).into());
    let versions = versions().into_iter();
    let expected = versions
        .flat_map(|version| both(version.name, 9100))
        .collect();
    assert_eq!(targets(backends), expected);
}

#[test]
fn the_programs_open_their_management_listener_to_prometheus() {
    let backends = versions().into_iter().map(|version| (version.name, 9100));
    for (name, port) in backends.chain([("gateway", 8081)]) {
        let text = read(&format!("conf/compose/{name}.toml"));
        let table: Table = text.parse().unwrap();
        let management = table.get("management").and_then(toml::Value::as_table);
        let management = management.unwrap_or_else(|| panic!("{name}: no [management]"));
        let listen = format!("0.0.0.0:{port}");
        assert_eq!(management["listen"].as_str(), Some(&*listen), "{name}");
        assert_eq!(management["insecure"].as_bool(), Some(true), "{name}");
        let hosts = management["hosts"].clone().try_into::<Vec<String>>();
        assert_eq!(
            hosts.unwrap(),
            ["a", "b"].map(|one| format!("{name}-{one}"))
        );
    }
}

#[test]
fn every_file_is_mounted_where_it_is_read() {
    let compose = read("docker-compose.yml");
    let dashboards = read("conf/observe/grafana/dashboards.yml");
    let folder = values(&dashboards, "options:")[0];
    let folder = folder
        .trim_matches(['{', '}', ' '])
        .strip_prefix("path: ")
        .unwrap();
    for (name, target) in [
        ("prometheus", "/etc/prometheus/prometheus.yml".to_owned()),
        ("alerts", "/etc/prometheus/alerts.yml".to_owned()),
        ("dashboard", format!("{folder}/signpost.json")),
        (
            "grafana_datasource",
            "/etc/grafana/provisioning/datasources/signpost.yml".to_owned(),
        ),
        (
            "grafana_dashboards",
            "/etc/grafana/provisioning/dashboards/signpost.yml".to_owned(),
        ),
        ("collector", "/etc/otelcol/config.yaml".to_owned()),
    ] {
        let mount = format!("- {{ source: {name}, target: {target} }}");
        assert!(compose.contains(&mount), "{mount}");
    }
    let files = compose
        .split("{ file: conf/observe/")
        .skip(1)
        .map(|rest| rest.split(" }").next().unwrap());
    let files: Vec<_> = files.collect();
    assert_eq!(files.len(), 6);
    for file in files {
        assert!(!read(&format!("conf/observe/{file}")).is_empty());
    }
    let config = "--config=/etc/otelcol/config.yaml";
    assert!(
        compose.contains(config)
            && compose.contains("--config.file=/etc/prometheus/prometheus.yml")
    );
}

#[test]
fn grafana_finds_prometheus_and_the_dashboard_any_source_of_data() {
    let source = read("conf/observe/grafana/datasource.yml");
    assert_eq!(values(&source, "url:"), ["http://prometheus:9090"]);
    let prometheus = read("conf/observe/prometheus.yml");
    let interval = values(&prometheus, "scrape_interval:")[0];
    assert!(source.contains(&format!("timeInterval: {interval} ")));

    let dashboard: Value = serde_json::from_str(&read("conf/observe/dashboard.json")).unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert!(
        variables
            .iter()
            .any(|one| one["name"] == "datasource" && one["type"] == "datasource")
    );
    for panel in dashboard["panels"].as_array().unwrap() {
        if panel["type"] != "row" {
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
        }
    }
    let ids: BTreeSet<_> = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|panel| panel["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids.len(), dashboard["panels"].as_array().unwrap().len());
}

#[test]
fn the_collector_receives_where_the_programs_send() {
    let collector = read("conf/observe/collector.yml");
    assert!(collector.contains("http: { endpoint: \"0.0.0.0:4318\" }"));
    let files = versions().into_iter().map(|version| version.name);
    for name in files.chain(["gateway"]) {
        let text = read(&format!("conf/compose/{name}.toml"));
        let endpoint = "# [tracing]\n# endpoint = \"http://otel-collector:4318/v1/traces\"\n";
        assert!(text.contains(endpoint), "{name}");
    }
}
