//! The examples in `conf/`: each loads, and shows the defaults. The end-to-end tests change each of their keys.

use std::{
    fs,
    path::{Path, PathBuf},
};

use signpost_kit::config::{Settings, keys::testing::assert_explained, uncommented};

use super::{super::*, none};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf")
}

/// The files of the versions, and the one of all versions in one process.
fn examples() -> Vec<String> {
    let files = fs::read_dir(folder()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let examples: Vec<_> = names
        .filter(|name| name.ends_with(".toml") && !name.starts_with("gateway"))
        .collect();
    assert!(examples.len() > 2, "{examples:?}");
    examples
}

fn example(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

/// Passes over the keys that a version has of its own: the version's tests read them.
fn any(root: &mut Section<'_>) -> Read<()> {
    root.find("own", "a table");
    Ok(())
}

fn settings(text: &str) -> Settings {
    let loaded = Config::parse(&PathBuf::from("example.toml"), text, any);
    loaded
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .settings
}

#[test]
fn every_example_loads_and_shows_the_defaults() {
    for name in examples() {
        let text = example(&name);
        let loaded = settings(&text);
        let put = |line| uncommented(line).unwrap_or(line);
        // A file that is read, and that the example does not have.
        let is_file = |line: &&str| line.starts_with("ca = ");
        let lines = text.lines().map(put).filter(|line| !is_file(line));
        let lines: Vec<_> = lines.collect();
        let whole = lines.join("\n").replace("\"env:", "\"");
        // The variable's name would be rejected as a weak secret.
        let whole = whole.replace(
            "SIGNPOST_GATEWAY_SECRET",
            "4283fefc63f0cd0e873a0000c6d07ef7",
        );
        let changed: Vec<_> = loaded.changes(&settings(&whole));
        let expected = [
            // These have no default, or the example shows another value.
            "default_provider",
            "gateway_secret",
            "headers.",
            "listen",
            "management.listen",
            "outgoing.proxy",
            "postgres.password",
            "postgres.root_certificate",
            "providers.other.",
            "providers.sandbox.",
            "tracing.authorization",
            "tracing.endpoint",
        ];
        for change in changed {
            let is_expected = expected.iter().any(|key| change.key.starts_with(key));
            assert!(is_expected, "{name}: {change}");
        }
    }
}

#[test]
fn readers_and_example_have_the_same_keys_and_defaults() {
    assert_explained(&Config::keys(none, &[]), &[EXAMPLE]);
}

#[test]
fn a_restart_is_needed_for_the_addresses_the_threads_and_the_store_only() {
    let settings = settings(&example("v1.toml"));
    assert!(settings.iter().count() > 30);
    for key in settings.iter().map(|setting| &*setting.key) {
        let expected = matches!(key, "listen" | "threads" | "store")
            || key.starts_with("management.")
            || key.starts_with("postgres.");
        assert_eq!(Config::needs_restart(key, &[key]), expected, "{key}");
    }
    for key in ["gateway_secret", "gateway_secret_next", "without_gateway"] {
        assert!(Config::needs_restart(key, &["listen", key]));
    }
    // It has no default, so it is no setting of the example.
    assert!(Config::needs_restart(
        "management.listen",
        &["management.listen"]
    ));
}

#[test]
fn a_reload_does_not_remove_the_secret_of_an_address_beyond_loopback() {
    let load = |text: &str| {
        let text = format!("{text}\n{}", example("all.toml"));
        Config::parse(Path::new("all.toml"), &text, any)
            .unwrap()
            .config
            .0
    };
    let secret = "gateway_secret = \"4283fefc63f0cd0e873a0000c6d07ef7\"";
    let open = load(&format!("listen = \"0.0.0.0:7001\"\n{secret}"));
    let next = load("listen = \"127.0.0.1:7001\"").with_restart_keys_of(&open);
    assert_eq!(next.listen, open.listen);
    assert!(matches!(next.gateway, Gateway::Secret(..)));
    let loopback = load(secret);
    let next = load("without_gateway = true").with_restart_keys_of(&loopback);
    assert!(matches!(next.gateway, Gateway::Absent));
}
