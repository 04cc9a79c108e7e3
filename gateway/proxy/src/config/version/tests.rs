//! Valid backends of a version, and every invalid form.

use std::time::Duration;

use http::uri::PathAndQuery;

use super::*;

mod bridges;
mod parts;
mod requests;
mod tls;

use crate::config::tests::{MINIMAL, load, problems, versions};

/// A file with this table as its only version.
fn file(version: &str) -> String {
    MINIMAL.replace("backend = '127.0.0.1:7001'", version)
}

fn upstream(version: &str) -> Upstream {
    let versions = versions(&format!("[versions.v1]\n{version}\n"));
    versions.default().own().upstream.clone()
}

fn balancing(version: &str) -> Upstream {
    let upstream = upstream(version);
    assert!(upstream.fixed.is_none(), "{version} has only {upstream:?}");
    upstream
}

#[test]
fn one_address_needs_no_choice() {
    for version in [
        "backend = '127.0.0.1:7001'",
        "backends = ['127.0.0.1:7001']",
        "backends = [{ address = '127.0.0.1:7001', weight = 9 }]\nbalance = 'hash-client'",
        "backend = '127.0.0.1:7001'\nhealth = { active = false }",
    ] {
        let found = upstream(version);
        assert!(
            found
                .fixed
                .is_some_and(|endpoint| endpoint.address.port() == 7001),
            "{version}"
        );
    }
}

#[test]
fn several_addresses_are_balanced_and_checked() {
    let found = balancing(
        "backends = ['127.0.0.1:7001', { address = 'login-b:7001', weight = 2 }, { address = '[::1]:7001' }]",
    );
    let shown: Vec<_> = found
        .addresses
        .iter()
        .map(|address| (address.host_port.to_string(), address.weight))
        .collect();
    let expected = [
        ("127.0.0.1:7001", 1),
        ("login-b:7001", 2),
        ("[::1]:7001", 1),
    ];
    assert_eq!(
        shown,
        expected.map(|(host_port, weight)| (host_port.to_owned(), weight))
    );
    assert_eq!(found.balance, Balance::RoundRobin);
    assert_eq!(found.out, Duration::from_secs(2));
    assert_eq!(found.idle_seconds, 90);
    let checks = HealthChecks {
        path: PathAndQuery::from_static("/healthz"),
        interval: Duration::from_secs(2),
        timeout: Duration::from_secs(1),
        unhealthy_after: 3,
    };
    assert_eq!(found.checks, Some(checks));
}

#[test]
fn checks_are_on_for_several_addresses_and_wherever_they_are_configured() {
    for (version, is_checked) in [
        ("backend = 'login:7001'", true),
        ("backends = ['login:7001']", true),
        ("backend = 'login:7001'\nhealth = { active = false }", false),
        (
            "backend = '127.0.0.1:7001'\nhealth = { path = '/up' }",
            true,
        ),
        (
            "backends = ['127.0.0.1:1', '127.0.0.1:2']\nhealth = { active = false }",
            false,
        ),
        (
            "backends = ['127.0.0.1:1', '127.0.0.1:2']\nhealth = { out_seconds = 9 }",
            true,
        ),
    ] {
        assert_eq!(balancing(version).checks.is_some(), is_checked, "{version}");
    }
}

#[test]
fn every_key_is_read() {
    let found = balancing(
        "backends = ['127.0.0.1:1', '127.0.0.1:2']\nbalance = 'least-connections'\nidle_seconds = 4\n\
         [versions.v1.health]\npath = '/up?deep=1'\ninterval_seconds = 7\ntimeout_seconds = 3\n\
         unhealthy_after = 5\nout_seconds = 6\n",
    );
    assert_eq!(found.balance, Balance::LeastConnections);
    assert_eq!(found.out, Duration::from_secs(6));
    assert_eq!(found.idle_seconds, 4);
    let checks = HealthChecks {
        path: PathAndQuery::from_static("/up?deep=1"),
        interval: Duration::from_secs(7),
        timeout: Duration::from_secs(3),
        unhealthy_after: 5,
    };
    assert_eq!(found.checks, Some(checks));
}

#[test]
fn every_problem_is_reported() {
    for (version, key, found) in [
        ("backend = 7001", "backend", "a whole number"),
        ("backend = ['127.0.0.1:1']", "backend", "a list"),
        ("backend = '127.0.0.1:0'", "backend", "'127.0.0.1:0'"),
        ("backends = '127.0.0.1:1'", "backends", "a string"),
        ("backends = []", "backends", "a list"),
        (
            "backends = ['127.0.0.1']",
            "backends[0]",
            "'127.0.0.1', which has no port",
        ),
        ("backend = 'login'", "backend", "'login', which has no port"),
        (
            "backends = ['a:1', '0.0.0.0:7001']",
            "backends[1]",
            "'0.0.0.0:7001', which is not the address of one host",
        ),
        (
            "backend = '224.0.0.1:80'",
            "backend",
            "'224.0.0.1:80', which is not the address of one host",
        ),
        (
            "backend = '127.0.0.1:8080'",
            "backend",
            "'127.0.0.1:8080', where the gateway itself listens",
        ),
        (
            "backends = ['127.0.0.1:8081', 'a:1']",
            "backends[0]",
            "'127.0.0.1:8081', where the gateway itself listens",
        ),
        (
            "backends = ['127.0.0.1:1', 2]",
            "backends[1]",
            "a whole number",
        ),
        (
            "backends = [{ address = 'a:1', weight = 0 }]",
            "backends[0].weight",
            "0",
        ),
        (
            "backends = [{ address = 'a:1', weight = 101 }]",
            "backends[0].weight",
            "101",
        ),
        (
            "backends = [{ address = 'a:1', weight = 1.5 }]",
            "backends[0].weight",
            "a number with a fraction",
        ),
        (
            "backends = ['a:1', 'b:1', 'A:1']",
            "backends[2]",
            "\"a:1\" twice",
        ),
        (
            "backend = 'a:1'\nbackends = ['b:1']",
            "backends",
            "both backend and backends",
        ),
        ("backend = 'a:1'\nbalance = 'random'", "balance", "'random'"),
        ("backend = 'a:1'\nidle_seconds = 0", "idle_seconds", "0"),
        (
            "backend = 'a:1'\nidle_seconds = 3601",
            "idle_seconds",
            "3601",
        ),
        (
            "backend = 'a:1'\nhealth = { path = 'up' }",
            "health.path",
            "'up'",
        ),
        (
            "backend = 'a:1'\nhealth = { path = '/a b' }",
            "health.path",
            "'/a b'",
        ),
        (
            "backend = 'a:1'\nhealth = { path = '/a`b' }",
            "health.path",
            "'/a`b'",
        ),
        (
            "backend = 'a:1'\nhealth = { path = '/a#b' }",
            "health.path",
            "'/a#b'",
        ),
        (
            "backend = 'a:1'\nhealth = { interval_seconds = 0 }",
            "health.interval_seconds",
            "0",
        ),
        (
            "backend = 'a:1'\nhealth = { timeout_seconds = 61 }",
            "health.timeout_seconds",
            "61",
        ),
        (
            "backend = 'a:1'\nhealth = { unhealthy_after = 0 }",
            "health.unhealthy_after",
            "0",
        ),
        (
            "backend = 'a:1'\nhealth = { out_seconds = 0 }",
            "health.out_seconds",
            "0",
        ),
        (
            "backend = 'a:1'\nhealth = { active = 1 }",
            "health.active",
            "a whole number",
        ),
    ] {
        let report = problems(&file(version));
        let expected = format!(": versions.v1.{key}: found {found}; allowed: ");
        assert!(report.contains(&expected), "{expected} in {report}");
        assert_eq!(report.lines().count(), 1, "{report}");
    }
    for (version, expected) in [
        ("", "backend: missing; allowed: an IP address"),
        (
            "backends = [{ weight = 2 }]",
            "backends[0].address: missing; allowed: an IP address",
        ),
        (
            "backends = [{ adress = 'a:1' }]",
            "backends[0].adress: unknown key; did you mean address?",
        ),
        (
            "backend = 'a:1'\nhealth = { port = 1 }",
            "health.port: unknown key; ",
        ),
    ] {
        let report = problems(&file(version));
        let expected = format!(": versions.v1.{expected}");
        assert!(report.contains(&expected), "{expected} in {report}");
        assert_eq!(report.lines().count(), 1, "{report}");
    }
}

#[test]
fn all_problems_of_a_list_of_addresses_are_reported_at_once() {
    let report = problems(&file("backends = ['a:1', 'bad', 'https://b:1', 'a:1']"));
    for problem in [
        "backends[1]: found 'bad', which has no port",
        "backends[3]: found \"a:1\" twice",
        "backends: found addresses with and without TLS",
    ] {
        assert!(report.contains(problem), "{problem}: {report}");
    }
}

#[test]
fn hash_app_with_one_application_is_warned_of() {
    let warnings = |balance: &str| {
        let version = format!("backends = ['127.0.0.1:1', '127.0.0.1:2']\nbalance = '{balance}'");
        load(&file(&version)).unwrap().warnings().join("\n")
    };
    assert!(warnings("hash-app").contains("hash-app"));
    assert!(!warnings("hash-client").contains("hash-app"));
}

#[test]
fn a_gateway_on_the_unspecified_address_also_listens_on_loopback() {
    let everywhere = |backend: &str| {
        format!(
            "listen = '0.0.0.0:8080'\n{}",
            file(&format!("backend = '{backend}'"))
        )
    };
    for backend in ["127.0.0.1:8080", "[::1]:8080", "127.0.0.2:8080"] {
        let report = problems(&everywhere(backend));
        assert!(
            report.contains("where the gateway itself listens"),
            "{report}"
        );
    }
    // Another machine's gateway, or another port of this one.
    for backend in ["10.0.0.1:8080", "127.0.0.1:7001"] {
        load(&everywhere(backend)).unwrap();
    }
}

#[test]
fn keys_without_effect_are_warned_of() {
    for (version, key) in [
        (
            "backend = '127.0.0.1:1'\nbalance = 'hash-client'",
            "balance",
        ),
        (
            "backend = '127.0.0.1:1'\nbalance = 'hash-client'\nhealth = {}",
            "balance",
        ),
        (
            "backend = '127.0.0.1:1'\nhealth = { out_seconds = 5 }",
            "health.out_seconds",
        ),
        (
            "backend = '127.0.0.1:1'\nhealth = { active = false, path = '/up' }",
            "health",
        ),
        (
            "backends = ['a:1', 'b:1']\nhealth = { active = false, interval_seconds = 5 }",
            "health",
        ),
    ] {
        let warnings = load(&file(version)).unwrap().warnings().join("\n");
        let expected = format!("versions.v1.{key} has no effect: ");
        assert_eq!(warnings.matches(&expected).count(), 1, "{warnings}");
    }
    for version in [
        "backend = '127.0.0.1:1'",
        "backend = '127.0.0.1:1'\nhealth = { path = '/up' }",
        "backend = 'a:1'\nbalance = 'hash-client'\nhealth = { out_seconds = 5 }",
        "backends = ['a:1', 'b:1']\nhealth = { active = false, out_seconds = 5 }",
    ] {
        let warnings = load(&file(version)).unwrap().warnings().join("\n");
        assert!(!warnings.contains("has no effect"), "{warnings}");
    }
}

#[test]
fn a_name_may_belong_to_another_machine() {
    for (version, is_remote) in [
        ("backend = 'localhost:1'", false),
        ("backend = 'login:1'", true),
        ("backends = ['127.0.0.1:1', '[::1]:1']", false),
        ("backends = ['127.0.0.1:1', '10.0.0.1:1']", true),
    ] {
        assert_eq!(upstream(version).is_remote(), is_remote, "{version}");
    }
}
