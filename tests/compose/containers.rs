//! The containers, by Docker Compose's own command.

use std::process::{Command, Stdio};

use end_to_end::{documents::root, program::output_text};
use serde_json::Value;

/// Runs `docker compose` with the settings of the environment, and returns what it prints.
pub(super) fn compose(arguments: &[&str]) -> String {
    let output = Command::new("docker")
        .arg("compose")
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = output_text(&output);
    assert!(output.status.success(), "{arguments:?}: {printed}");
    printed
}

/// Replaces containers by new ones, and waits until they are healthy.
pub(super) fn recreate(services: &[&str]) {
    let always = [
        "up",
        "--detach",
        "--no-build",
        "--no-deps",
        "--force-recreate",
        "--wait",
    ];
    compose(&[&always, services].concat());
}

/// All services, each with the exit code of its container.
pub(super) fn states() -> Vec<(String, i64)> {
    let printed = compose(&["ps", "--all", "--format", "json"]);
    let lines = printed.lines().filter(|line| line.starts_with('{'));
    let states = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    states
        .map(|state| {
            let service = state["Service"].as_str().unwrap().to_owned();
            (service, state["ExitCode"].as_i64().unwrap())
        })
        .collect()
}

/// The services of the file, also those that cannot run here.
pub(super) fn services() -> Vec<String> {
    let services = compose(&["config", "--services"]);
    services.lines().map(str::to_owned).collect()
}

/// The containers that Prometheus scrapes with success, by its own account, in order.
pub(super) fn scraped() -> Vec<String> {
    let url = "http://127.0.0.1:9090/api/v1/query?query=up%20%3D%3D%201";
    let command = ["exec", "-T", "prometheus", "wget", "-q", "-O", "-", url];
    let response: Value = serde_json::from_str(&compose(&command)).unwrap();
    let series = response["data"]["result"].as_array().unwrap();
    let hosts = series.iter().map(|one| {
        let instance = one["metric"]["instance"].as_str().unwrap();
        instance.split(':').next().unwrap().to_owned()
    });
    let mut hosts: Vec<_> = hosts.collect();
    hosts.sort();
    hosts
}

/// The versions that the stack serves.
pub(super) fn versions() -> Vec<String> {
    let services = services();
    let first = services.iter().filter_map(|name| name.strip_suffix("-a"));
    let mut versions: Vec<_> = first
        .filter(|name| name.starts_with('v'))
        .map(str::to_owned)
        .collect();
    versions.sort();
    versions
}
