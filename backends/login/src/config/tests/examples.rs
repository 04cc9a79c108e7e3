//! The examples in `conf/`: each loads, shows every key, and each key counts.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use signpost_kit::config::Settings;

use super::super::*;

const EXAMPLES: [&str; 3] = ["v1.toml", "v2.toml", "all.toml"];

/// For each key of the examples another value that is valid, too; for those that hold a secret, the secret itself.
const OTHER_VALUES: &[(&str, &str)] = &[
    ("prefix", "'Other'"),
    ("listen", "'127.0.0.1:7999'"),
    ("public_url", "'https://login.example'"),
    ("store", "'sqlite:other.db'"),
    ("gateway_secret", "'4283fefc63f0cd0e873a0000c6d07ef7'"),
    ("without_gateway", "true"),
    ("threads", "3"),
    ("watch", "true"),
    ("default_provider", "'other'"),
    ("headers.authorization", "'Other-Authorization'"),
    ("headers.app", "'Other-App'"),
    ("headers.language", "'Other-Language'"),
    ("headers.version", "'Other-Version'"),
    ("application.name", "'Other'"),
    ("application.return_to", "['https://app.example']"),
    ("login.login_ttl_seconds", "601"),
    ("login.claim_ttl_seconds", "121"),
    ("login.credential_ttl_seconds", "1"),
    ("polling.confirm", "false"),
    ("polling.interval_seconds", "3"),
    ("limits.starts_per_second", "101"),
    ("limits.starts_burst", "1001"),
    ("limits.callbacks_per_second", "3"),
    ("limits.callbacks_burst", "201"),
    ("limits.provider_calls", "257"),
    ("limits.connections", "8193"),
    ("timeouts.head_seconds", "11"),
    ("timeouts.body_seconds", "11"),
    ("timeouts.idle_seconds", "121"),
    ("shutdown.drain_delay_seconds", "1"),
    ("shutdown.grace_seconds", "11"),
    ("events.retention_days", "0"),
    ("postgres.password", "'hush'"),
    ("postgres.pool_size", "11"),
    ("postgres.connect_seconds", "3"),
    ("postgres.wait_seconds", "3"),
    ("postgres.statement_seconds", "4"),
    ("postgres.root_certificate", "'other.pem'"),
    ("log.format", "'json'"),
    ("log.filter", "'warn,login=debug'"),
    ("log.access", "false"),
    ("providers.sandbox.kind", "'other'"),
    ("providers.sandbox.auth_url", "'http://127.0.0.1:7101'"),
    ("providers.sandbox.api_url", "'http://127.0.0.1:7101'"),
    ("providers.sandbox.client_id", "'other'"),
    ("providers.sandbox.client_secret", "'other'"),
    ("providers.sandbox.redirect_uri", "false"),
    ("providers.sandbox.pkce", "true"),
    ("providers.sandbox.issuer", "'other'"),
    ("providers.sandbox.allow_sandbox", "true"),
    ("provider_kinds.gitea.authorize_path", "'/other'"),
    ("provider_kinds.gitea.token_path", "'/other'"),
    ("provider_kinds.gitea.user_path", "'/other'"),
    ("provider_kinds.gitea.id_field", "'other'"),
    ("provider_kinds.gitea.pkce", "false"),
];

/// Beside every example, for what a value above names.
const OTHERS: &str = "[provider_kinds.other]\nauthorize_path = '/a'\ntoken_path = '/t'\nuser_path = '/u'\nid_field = 'id'\n\
                      pkce = false\n[providers.other]\nkind = 'bitbucket'\nauth_url = 'http://127.0.0.1:1'\n\
                      api_url = 'http://127.0.0.1:1'\nclient_id = 'i'\nclient_secret = 's'\n";

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The line without its `# `, if a key or a table stands behind that.
fn put_in(line: &str) -> Option<&str> {
    let line = line.strip_prefix("# ")?;
    let (key, _) = line.split_once(" = ").unwrap_or(("", ""));
    let is_key = !key.is_empty() && key.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'));
    (is_key || line.starts_with('[')).then_some(line)
}

/// Each key of an example, dotted, with what the example says of it; commented-out ones too.
fn keys(text: &str) -> BTreeMap<String, String> {
    let mut table = String::new();
    let mut keys = BTreeMap::new();
    for line in text.lines() {
        let line = put_in(line).unwrap_or(line);
        if let Some(name) = line.strip_prefix('[') {
            table = format!("{}.", name.split(']').next().unwrap());
        } else if let Some((key, value)) = line.split_once(" = ").filter(|_| !line.starts_with('#'))
        {
            keys.insert(format!("{table}{key}"), value.to_owned());
        }
    }
    keys
}

/// A file of these keys.
fn file(keys: &BTreeMap<String, String>) -> String {
    // Dotted keys have to stand above the first table.
    let lines = keys.iter().map(|(key, value)| format!("{key} = {value}\n"));
    lines.chain([OTHERS.to_owned()]).collect()
}

fn settings(text: &str) -> Settings {
    let loaded = Config::parse(&PathBuf::from("example.toml"), text);
    loaded
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .settings
}

/// Secrets that the examples name are not there; without them, the key's line says the default.
fn without_secrets(mut keys: BTreeMap<String, String>) -> BTreeMap<String, String> {
    keys.retain(|_, value| !value.starts_with("\"env:"));
    keys
}

#[test]
fn every_example_loads_and_says_the_defaults() {
    for name in EXAMPLES {
        let text = example(name);
        let loaded = settings(&text);
        let put = |line| put_in(line).unwrap_or(line);
        let lines: Vec<_> = text.lines().map(put).collect();
        let whole = lines.join("\n").replace("\"env:", "\"");
        // A weak secret in the place of a variable's name.
        let whole = whole.replace(
            "SIGNPOST_GATEWAY_SECRET",
            "4283fefc63f0cd0e873a0000c6d07ef7",
        );
        let changed: Vec<_> = loaded.changes(&settings(&whole));
        let expected = [
            // They have no value that could be shown, or another one beside the key.
            "default_provider",
            "gateway_secret",
            "headers.",
            "postgres.password",
            "postgres.root_certificate",
            "provider_kinds.gitea.",
        ];
        for change in changed {
            let is_expected = expected.iter().any(|key| change.key.starts_with(key));
            assert!(is_expected, "{name}: {change}");
        }
    }
}

#[test]
fn every_key_of_every_example_can_be_changed_and_is_listed() {
    for name in EXAMPLES {
        let keys = without_secrets(keys(&example(name)));
        let before = settings(&file(&keys));
        for (key, value) in OTHER_VALUES {
            let mut other = keys.clone();
            other.insert((*key).to_owned(), (*value).to_owned());
            let changes = before.changes(&settings(&file(&other)));
            let is_listed = changes.iter().any(|change| change.key == *key);
            assert!(is_listed, "{name}: {key} is not in {changes:?}");
            for change in changes {
                assert!(!change.to_string().contains("hush"), "{change}");
            }
        }
    }
}

#[test]
fn the_table_has_every_key_of_every_example() {
    let table: Vec<_> = OTHER_VALUES.iter().map(|(key, _)| *key).collect();
    for name in EXAMPLES {
        for key in keys(&example(name)).keys() {
            assert!(table.contains(&key.as_str()), "{name}: {key}");
        }
    }
    let keys = keys(&example("v1.toml"));
    for key in table {
        assert!(keys.contains_key(key), "v1.toml does not explain {key}");
    }
}

#[test]
fn a_restart_is_needed_for_the_address_the_threads_and_the_store_only() {
    for (key, _) in OTHER_VALUES {
        let expected =
            matches!(*key, "listen" | "threads" | "store") || key.starts_with("postgres.");
        assert_eq!(Config::needs_restart(key, &[key]), expected, "{key}");
    }
    for key in ["gateway_secret", "without_gateway"] {
        assert!(Config::needs_restart(key, &["listen", key]));
    }
}

#[test]
fn an_address_beyond_loopback_never_loses_its_secret_by_a_reload() {
    let load = |text: &str| {
        let text = format!("{text}\n{}", example("all.toml"));
        Config::parse(Path::new("all.toml"), &text).unwrap().config
    };
    let secret = "gateway_secret = \"4283fefc63f0cd0e873a0000c6d07ef7\"";
    let open = load(&format!("listen = \"0.0.0.0:7001\"\n{secret}"));
    let next = load("listen = \"127.0.0.1:7001\"").in_place_of(&open);
    assert_eq!(next.listen(), open.listen());
    assert!(matches!(next.gateway(), Gateway::Secret(_)));
    let loopback = load(secret);
    let next = load("without_gateway = true").in_place_of(&loopback);
    assert!(matches!(next.gateway(), Gateway::Absent));
}
