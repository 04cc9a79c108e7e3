//! Valid configurations, and every problem of invalid ones.

use std::{fs, path::PathBuf};

use signpost_kit::config::keys::testing::assert_explained;

use super::*;

mod management;
mod store;

pub(crate) use crate::testing::{MINIMAL, load, versions};

/// The `[sign]` section, for tests of the phases.
pub(crate) fn sign_config(section: &str) -> SignConfig {
    load(&format!("{MINIMAL}[sign]\n{section}\n")).unwrap().sign
}

/// The limits, for tests of the phases.
pub(crate) fn limits(section: &str) -> Limits {
    load(&format!("{MINIMAL}{section}\n")).unwrap().limits
}

pub(crate) fn problems(toml: &str) -> String {
    load(toml).unwrap_err().to_string()
}

#[test]
fn a_minimal_file_has_the_contracts_defaults() {
    let config = load(MINIMAL).unwrap();
    assert_eq!(config.listeners[0].address.to_string(), "127.0.0.1:8080");
    assert_eq!(
        config.management.settings.listen.to_string(),
        "127.0.0.1:8081"
    );
    assert_eq!(config.public_url.to_string(), "http://127.0.0.1:8080");
    assert_eq!(
        config.store.address,
        "sqlite:data/signpost.db".parse().unwrap()
    );
    assert_eq!(config.sign.window.duration().as_secs(), 60);
    assert_eq!(
        config.sign.always_signed,
        [sign::AlwaysSigned {
            method: crate::request::Method::Post,
            path: "/login".parse().unwrap()
        }]
    );
    assert_eq!(config.limits.head.bytes, 32 * 1024);
    assert_eq!(config.limits.body, 64 * 1024);
    assert_eq!(config.timeouts.head.as_secs(), 10);
    assert_eq!(config.shutdown, ShutdownSettings::default());
}

#[test]
fn the_shutdown_settings_are_read() {
    let stop = "[shutdown]\ndrain_delay_seconds = 5\ngrace_seconds = 20\n";
    let config = load(&format!("{MINIMAL}{stop}")).unwrap();
    assert_eq!(config.shutdown.drain_delay.as_secs(), 5);
    assert_eq!(config.shutdown.grace.as_secs(), 20);
    let wrong = "[shutdown]\ndrain_delay_seconds = 301\ngrace_seconds = 0\n";
    let report = problems(&format!("{MINIMAL}{wrong}"));
    assert!(
        report.contains("shutdown.drain_delay_seconds: found 301"),
        "{report}"
    );
    assert!(
        report.contains("shutdown.grace_seconds: found 0"),
        "{report}"
    );
}

#[test]
fn a_grace_period_shorter_than_the_wait_for_a_backend_is_warned_of() {
    let warns = |toml: &str| {
        let warnings = load(&format!("{MINIMAL}{toml}")).unwrap().warnings();
        warnings.iter().any(|one| one.contains("grace_seconds"))
    };
    for fine in ["", "[shutdown]\ngrace_seconds = 62\n"] {
        assert!(!warns(fine), "{fine}");
    }
    for short in [
        "[shutdown]\ngrace_seconds = 61\n",
        "[timeouts]\nresponse_seconds = 64\n",
    ] {
        assert!(warns(short), "{short}");
    }
}

#[test]
fn unsigned_requests_are_limited_unless_disabled() {
    let rate = |section: &str| {
        let rate = limits(section).unsigned;
        rate.map(|rate| (rate.per_second.get(), rate.burst.get()))
    };
    assert_eq!(rate(""), Some((20, 500)));
    assert_eq!(rate("[limits.unsigned]\nper_second = 5"), Some((5, 500)));
    assert_eq!(rate("[limits.unsigned]\nper_second = 0"), None);
    let report = problems(&format!(
        "{MINIMAL}[limits.unsigned]\nper_second = -1\nburst = 0\nper_minute = 1\n"
    ));
    for key in ["per_second: found -1", "burst: found 0"] {
        let expected = format!("limits.unsigned.{key}");
        assert!(report.contains(&expected), "{expected} in:\n{report}");
    }
    let expected = "limits.unsigned.per_minute: unknown key; allowed: per_second";
    assert!(report.contains(expected), "{report}");
}

#[test]
fn every_example_loads() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conf");
    // The operator creates the key's file.
    for name in ["gateway.toml", "gateway-bridge.toml"] {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let text = text.replace(
            "\"file:data/app.key\"",
            "\"4283fefc63f0cd0e873a0000c6d07ef7\"",
        );
        load(&text).unwrap();
    }
    load(&fs::read_to_string(folder.join("gateway-multi.toml")).unwrap()).unwrap();
}

#[test]
fn readers_and_examples_have_the_same_keys_and_defaults() {
    assert_explained(&Config::keys(|_| false), &EXAMPLES);
}

#[test]
fn every_problem_is_reported_with_key_found_and_allowed() {
    let report = problems(
        "prefix = '1x'\nlisten = 'here'\nlisten_to = 1\nthreads = -1\nunknown = 'maybe'\n\
         [application]\nkey = 'env:SIGNPOST_NO_SUCH_VARIABLE'\n[sign]\npreset = 'other'\nwindow_seconds = 301\n\
         always_signed = ['PUT /x']\nleave_out = ['time']\n[limits]\nbody_bytes = 65537\n[versions.v2]\nbackend = 'localhost'\n[log]\nformat = 'xml'\n",
    );
    for (key, found) in [
        ("prefix", "'1x'"),
        ("listen", "'here'"),
        ("threads", "-1"),
        ("unknown", "'maybe'"),
        ("application.key", "env:SIGNPOST_NO_SUCH_VARIABLE"),
        ("sign.preset", "'other'"),
        ("limits.body_bytes", "65537"),
        ("versions.v2.backend", "'localhost'"),
        ("log.format", "'xml'"),
    ] {
        let is_reported = report.lines().any(|line| {
            line.contains(&format!(": {key}: found {found}")) && line.contains("allowed: ")
        });
        assert!(is_reported, "{key} {found} in:\n{report}");
    }
    assert!(
        report.contains(".toml:3: listen_to: unknown key; did you mean listen?"),
        "{report}"
    );
}

#[test]
fn a_secret_is_never_reported() {
    let report = problems(&MINIMAL.replace(
        "key = '4283fefc63f0cd0e873a0000c6d07ef7'",
        "key = 'hush hush'\nkye = 'hush2'",
    ));
    assert!(
        report.contains("application.key") && report.contains("application.kye"),
        "{report}"
    );
    assert!(!report.contains("hush"), "{report}");
}

#[test]
fn values_that_may_contain_a_password_are_not_reported() {
    let report = problems(
        "prefix = 'Acme'\nstore = 'postgres://signpost:hunter2@db'\npublic_url = 'http://u:hunter2@h'\n\
         application = 'hunter2hunter2'\n[versions.v1]\nbackend = '127.0.0.1:1'\n",
    );
    for key in ["store", "public_url", "application"] {
        assert!(
            report.contains(&format!(": {key}: found")),
            "{key} in {report}"
        );
    }
    assert!(!report.contains("hunter2"), "{report}");
}

#[test]
fn a_header_cannot_have_a_reserved_name() {
    for bad in ["X-Gateway-App-Id", "Host", "Acme-X-Version", "a b"] {
        let report = problems(&format!("{MINIMAL}[headers]\napp = '{bad}'\n"));
        assert!(report.contains(": headers."), "{report}");
    }
}

#[test]
fn the_listeners_must_have_different_addresses() {
    let report = problems(&format!(
        "listen = '127.0.0.1:9'\n{MINIMAL}[management]\nlisten = '127.0.0.1:9'\n"
    ));
    assert!(
        report.contains("management.listen: found 127.0.0.1:9"),
        "{report}"
    );
}

#[test]
fn a_backend_without_a_port_is_reported_once() {
    let report = problems(&MINIMAL.replace("127.0.0.1:7001", "localhost"));
    assert!(
        report.contains(
            "versions.v1.backend: found 'localhost', which has no port; allowed: an IP address"
        ),
        "{report}"
    );
    assert_eq!(report.lines().count(), 1, "{report}");
}

#[test]
fn a_weak_key_is_rejected_unless_allowed() {
    let weak = MINIMAL.replace("4283fefc63f0cd0e873a0000c6d07ef7", "secret");
    assert!(problems(&weak).contains("application.key: found a weak key"));
    let allowed = format!("{weak}[sign]\nallow_weak_key = true\n");
    assert!(
        load(&allowed)
            .unwrap()
            .warnings()
            .iter()
            .any(|warning| warning.contains("allow_weak_key"))
    );
}

#[test]
fn a_weak_gateway_secret_is_rejected_and_not_quoted() {
    let with = |secret: &str| format!("gateway_secret = '{secret}'\n{MINIMAL}");
    for weak in ["hush", "hunter2hunter2", "4283fefc63f0cd0e873a0000c6d07ef"] {
        let report = problems(&with(weak));
        assert!(
            report.contains("gateway_secret: found a weak secret"),
            "{report}"
        );
        assert!(!report.contains(weak), "{report}");
        // allow_weak_key is for existing clients' keys; the gateway secret can always be replaced.
        let report = problems(&format!("{}[sign]\nallow_weak_key = true\n", with(weak)));
        assert!(report.contains("gateway_secret"), "{report}");
    }
    let bell = "gateway_secret = \"4283fefc63f0cd0e873a0000c6d07ef7\\u0007\"\n";
    let report = problems(&format!("{bell}{MINIMAL}"));
    assert!(report.contains("a control character"), "{report}");
    let report = problems(&with("4283fefc63f0cd0e 873a0000c6d07ef7"));
    assert!(report.contains("not allowed in a header"), "{report}");
    load(&with("4283fefc63f0cd0e873a0000c6d07ef7")).unwrap();
}

#[test]
fn exactly_one_of_the_application_tables_is_required() {
    let neither = MINIMAL.replace(
        "[application]\nkey = '4283fefc63f0cd0e873a0000c6d07ef7'\n",
        "",
    );
    assert!(problems(&neither).contains("neither [application]"));
    assert!(problems(&format!("{MINIMAL}[applications]\n")).contains("both [application]"));
    assert!(matches!(
        load(&format!("{neither}[applications]\n"))
            .unwrap()
            .applications,
        Applications::Multi(_)
    ));
}

#[test]
fn the_default_version_must_have_a_backend() {
    let report = problems(&format!("default_version = 'v3'\n{MINIMAL}"));
    assert!(
        report.contains("default_version") && report.contains("allowed: v1"),
        "{report}"
    );
}

#[test]
fn weak_settings_are_warned_of() {
    let warnings = load(&format!("{MINIMAL}[sign]\npreset = 'top'\n"))
        .unwrap()
        .warnings()
        .join("\n");
    for word in ["md5", "decoded", "concat", "replay"] {
        assert!(warnings.contains(word), "{word} in {warnings}");
    }
    let alipay = load(&format!("{MINIMAL}[sign]\npreset = 'alipay'\n"));
    let warnings = alipay.unwrap().warnings().join("\n");
    for word in ["empty is drop", "leave_out names keys"] {
        assert!(warnings.contains(word), "{word} in {warnings}");
    }
    let strong = "[sign]\nunsigned = 'accept'\nalgorithm = 'hmac-sha256'\nreplay = 'reject'\n";
    assert_eq!(
        load(&format!("{MINIMAL}{strong}")).unwrap().warnings(),
        Vec::<String>::new()
    );
}

#[test]
fn single_settings_override_a_preset() {
    let profile = sign_config("preset = 'alipay'\ncover = 'request'").profile;
    assert_eq!(profile.leave_out, ["sign_type"]);
    assert_eq!(profile.cover, signpost_protocol::sign::SignCover::Request);
}

#[test]
fn the_applications_of_metrics_are_limited() {
    assert_eq!(load(MINIMAL).unwrap().counted_applications, 20);
    let metrics = |line: &str| format!("{MINIMAL}[metrics]\n{line}\n");
    let none = load(&metrics("applications = 0")).unwrap();
    assert_eq!(none.counted_applications, 0);
    for wrong in ["1001", "-1", "'many'"] {
        let report = problems(&metrics(&format!("applications = {wrong}")));
        assert!(report.contains("metrics.applications: found"), "{report}");
        assert!(report.contains("0 to 1000"), "{report}");
    }
}

#[test]
fn unreadable_and_invalid_files_are_reported() {
    let missing = Config::load("/nonexistent/gateway.toml".as_ref())
        .unwrap_err()
        .to_string();
    assert!(
        missing.contains("/nonexistent/gateway.toml: cannot be read"),
        "{missing}"
    );
    let broken = problems("prefix = 'Acme'\nlisten =\n");
    assert!(broken.contains(".toml:2: not TOML"), "{broken}");
}
