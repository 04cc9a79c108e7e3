//! Configurations that are right, and every problem of those that are not.

use std::{fs, path::PathBuf};

use signpost_kit::config::uncommented;

use super::*;

mod store;

pub(crate) const MINIMAL: &str = "prefix = 'Acme'\n[application]\nkey = '4283fefc63f0cd0e873a0000c6d07ef7'\n[versions.v1]\nbackend = '127.0.0.1:7001'\n";

/// Parses a whole configuration.
pub(crate) fn load(toml: &str) -> Result<Config, ConfigError> {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("signpost-config-{}-{count}.toml", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    fs::write(&path, toml).unwrap();
    let config = Config::load(&path);
    fs::remove_file(&path).unwrap();
    config
}

/// The `[sign]` section, for tests of the phases.
pub(crate) fn sign_config(section: &str) -> SignConfig {
    load(&format!("{MINIMAL}[sign]\n{section}\n")).unwrap().sign
}

/// The limits, for tests of the phases.
pub(crate) fn limits(section: &str) -> Limits {
    load(&format!("{MINIMAL}{section}\n")).unwrap().limits
}

/// The versions, for tests of the phases.
pub(crate) fn versions(toml: &str) -> Versions {
    let start = MINIMAL.replace("[application]\nkey = '4283fefc63f0cd0e873a0000c6d07ef7'\n[versions.v1]\nbackend = '127.0.0.1:7001'\n", "");
    load(&format!(
        "{start}{toml}\n[application]\nkey = '4283fefc63f0cd0e873a0000c6d07ef7'\n"
    ))
    .unwrap()
    .versions
}

pub(crate) fn problems(toml: &str) -> String {
    load(toml).unwrap_err().to_string()
}

#[test]
fn a_minimal_file_has_the_contracts_defaults() {
    let config = load(MINIMAL).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.management.to_string(), "127.0.0.1:8081");
    assert_eq!(config.public_url.to_string(), "http://127.0.0.1:8080");
    assert_eq!(
        config.store.address,
        "sqlite:data/signpost.db".parse().unwrap()
    );
    assert_eq!(config.sign.window.duration().as_secs(), 60);
    assert_eq!(
        config.sign.always_signed,
        [AlwaysSigned {
            method: "POST".into(),
            path: "/login".into()
        }]
    );
    assert_eq!(config.limits.head.bytes, 32 * 1024);
    assert_eq!(config.limits.body, 64 * 1024);
    assert_eq!(config.timeouts.head.as_secs(), 10);
    assert_eq!(config.shutdown, ShutdownSettings::default());
}

#[test]
fn a_stop_takes_as_long_as_the_file_says() {
    let stop = "[shutdown]\ndrain_delay_seconds = 5\ngrace_seconds = 20\n";
    let config = load(&format!("{MINIMAL}{stop}")).unwrap();
    assert_eq!(config.shutdown.drain_delay.as_secs(), 5);
    assert_eq!(config.shutdown.grace.as_secs(), 20);
    let wrong = "[shutdown]\ndrain_delay_seconds = 301\ngrace_seconds = 0\n";
    let told = problems(&format!("{MINIMAL}{wrong}"));
    assert!(
        told.contains("shutdown.drain_delay_seconds: found 301"),
        "{told}"
    );
    assert!(told.contains("shutdown.grace_seconds: found 0"), "{told}");
}

#[test]
fn unsigned_requests_are_limited_unless_that_is_switched_off() {
    let rate = |section: &str| {
        limits(section).unsigned.map(|limits| {
            [limits.network, limits.site].map(|rate| (rate.per_second.get(), rate.burst.get()))
        })
    };
    assert_eq!(rate(""), Some([(20, 500), (80, 2000)]));
    assert_eq!(
        rate("[limits.unsigned]\nper_second = 5\nipv6_48_burst = 501"),
        Some([(5, 500), (20, 501)])
    );
    assert_eq!(rate("[limits.unsigned]\nenabled = false"), None);
    let told = problems(&format!(
        "{MINIMAL}[limits.unsigned]\nper_second = 0\nburst = 100\nipv6_48_burst = 99\nper_minute = 1\n"
    ));
    for (key, found) in [("per_second", "0"), ("ipv6_48_burst", "99")] {
        let expected = format!("limits.unsigned.{key}: found {found}");
        assert!(told.contains(&expected), "{expected} in:\n{told}");
    }
    let expected = "limits.unsigned.per_minute: unknown key; allowed: enabled, per_second";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn every_example_loads() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../conf");
    // The key's file is made by whoever runs it.
    let text = fs::read_to_string(folder.join("gateway.toml")).unwrap();
    let text = text.replace(
        "\"file:data/app.key\"",
        "\"4283fefc63f0cd0e873a0000c6d07ef7\"",
    );
    load(&text).unwrap();
    load(&fs::read_to_string(folder.join("gateway-multi.toml")).unwrap()).unwrap();
}

#[test]
fn what_an_example_leaves_out_stands_where_it_can_be_put_in() {
    for name in ["gateway.toml", "gateway-multi.toml"] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../conf")
            .join(name);
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let mut table = None;
        let mut tried = 0;
        for (place, line) in lines.iter().enumerate() {
            match uncommented(line) {
                _ if line.starts_with('[') => table = None,
                Some(header) if header.starts_with('[') => table = Some(place),
                Some(_) => {
                    let put = |(other, line): (usize, &&str)| {
                        let is_meant = other == place || Some(other) == table;
                        uncommented(line)
                            .filter(|_| is_meant)
                            .unwrap_or(line)
                            .to_owned()
                    };
                    let with: Vec<String> = lines.iter().enumerate().map(put).collect();
                    let told = load(&with.join("\n")).err().map(|error| error.to_string());
                    let told = told.unwrap_or_default();
                    assert!(!told.contains("unknown key"), "{name}: {line}\n{told}");
                    tried += 1;
                }
                None => {}
            }
        }
        assert!(tried > 1, "{name}");
    }
}

#[test]
fn every_problem_is_told_with_key_found_and_allowed() {
    let told = problems(
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
        let is_told = told.lines().any(|line| {
            line.contains(&format!(": {key}: found {found}")) && line.contains("allowed: ")
        });
        assert!(is_told, "{key} {found} in:\n{told}");
    }
    assert!(
        told.contains(".toml:3: listen_to: unknown key; did you mean listen?"),
        "{told}"
    );
}

#[test]
fn a_secret_is_never_told() {
    let told = problems(&MINIMAL.replace(
        "key = '4283fefc63f0cd0e873a0000c6d07ef7'",
        "key = 'hush hush'\nkye = 'hush2'",
    ));
    assert!(
        told.contains("application.key") && told.contains("application.kye"),
        "{told}"
    );
    assert!(!told.contains("hush"), "{told}");
}

#[test]
fn what_may_hold_a_password_is_not_told() {
    let told = problems(
        "prefix = 'Acme'\nstore = 'postgres://signpost:hunter2@db'\npublic_url = 'http://u:hunter2@h'\n\
         application = 'hunter2hunter2'\n[versions.v1]\nbackend = '127.0.0.1:1'\n",
    );
    for key in ["store", "public_url", "application"] {
        assert!(told.contains(&format!(": {key}: found")), "{key} in {told}");
    }
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn a_header_cannot_take_a_name_that_means_something() {
    for bad in ["X-Gateway-App-Id", "Host", "Acme-X-Version", "a b"] {
        let told = problems(&format!("{MINIMAL}[headers]\napp = '{bad}'\n"));
        assert!(told.contains(": headers."), "{told}");
    }
}

#[test]
fn both_listeners_have_addresses_of_their_own() {
    let told = problems(&format!(
        "listen = '127.0.0.1:9'\n{MINIMAL}[management]\nlisten = '127.0.0.1:9'\n"
    ));
    assert!(
        told.contains("management.listen: found 127.0.0.1:9"),
        "{told}"
    );
}

#[test]
fn a_backend_has_a_port_and_its_problem_is_told_once() {
    let told = problems(&MINIMAL.replace("127.0.0.1:7001", "localhost"));
    assert!(
        told.contains(
            "versions.v1.backend: found 'localhost', which has no port; allowed: an IP address"
        ),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_weak_key_is_refused_unless_it_is_allowed() {
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
fn a_weak_gateway_secret_is_refused_and_not_told() {
    let with = |secret: &str| format!("gateway_secret = '{secret}'\n{MINIMAL}");
    for weak in ["hush", "hunter2hunter2", "4283fefc63f0cd0e873a0000c6d07ef"] {
        let told = problems(&with(weak));
        assert!(
            told.contains("gateway_secret: found a weak secret"),
            "{told}"
        );
        assert!(!told.contains(weak), "{told}");
        // What is of our own making has no reason to be weak, unlike keys that clients have already.
        let told = problems(&format!("{}[sign]\nallow_weak_key = true\n", with(weak)));
        assert!(told.contains("gateway_secret"), "{told}");
    }
    let bell = "gateway_secret = \"4283fefc63f0cd0e873a0000c6d07ef7\\u0007\"\n";
    let told = problems(&format!("{bell}{MINIMAL}"));
    assert!(told.contains("no header can have"), "{told}");
    load(&with("4283fefc63f0cd0e873a0000c6d07ef7")).unwrap();
}

#[test]
fn there_is_one_application_or_there_are_many() {
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
fn the_default_version_has_a_backend() {
    let told = problems(&format!("default_version = 'v3'\n{MINIMAL}"));
    assert!(
        told.contains("default_version") && told.contains("allowed: v1"),
        "{told}"
    );
}

#[test]
fn weak_choices_are_warned_of() {
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
    let strong = "[sign]\nalgorithm = 'hmac-sha256'\nreplay = 'reject'\n";
    assert_eq!(
        load(&format!("{MINIMAL}{strong}")).unwrap().warnings(),
        Vec::<String>::new()
    );
}

#[test]
fn single_settings_stand_beside_a_preset() {
    let profile = sign_config("preset = 'alipay'\ncover = 'request'").profile;
    assert_eq!(profile.leave_out, ["sign_type"]);
    assert_eq!(profile.cover, gateway_protocol::sign::SignCover::Request);
}

#[test]
fn management_stays_on_this_machine_unless_told_otherwise() {
    let open = format!("{MINIMAL}[management]\nlisten = '0.0.0.0:8081'\n");
    assert!(problems(&open).contains("management.listen"));
    assert!(load(&format!("{open}insecure = true\n")).is_ok());
}

#[test]
fn a_file_that_cannot_be_read_or_is_no_toml_says_so() {
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
