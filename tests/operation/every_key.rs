//! Every key of every example is changed while the program runs, and the reload names it.

use std::{collections::BTreeMap, net::SocketAddr};

use end_to_end::{
    certificates::Authority,
    examples::{example, keys as example_keys},
    folder::Folder,
    port::free_address,
    program::{Program, Running},
    signed_client::http_client,
    versions::versions,
    waiting::until,
};

const KEY: &str = "4283fefc63f0cd0e873a0000c6d07ef7";

/// Keys of all examples that a reload applies.
const SHARED_KEYS: &[(&str, &str)] = &[
    ("stale_seconds", "301"),
    ("shutdown.drain_delay_seconds", "1"),
    ("shutdown.grace_seconds", "11"),
    ("log.format", "'json'"),
    ("tracing.endpoint", "'https://c.example/v1/traces'"),
    ("tracing.sampled_per_million", "1"),
    ("tracing.authorization", "'hush'"),
    ("tracing.ca", "'ca.pem'"),
    ("outgoing.proxy", "'http://10.0.0.2:3128'"),
    ("outgoing.no_proxy", "['.example']"),
    ("log.output", "'./other.log'"),
    ("log.access_sample", "100"),
];

/// Keys of the gateway's examples that a reload applies, each with another valid value.
const GATEWAY_KEYS: &[(&str, &str)] = &[
    ("listen", "'$FREE'"),
    ("prefix", "'Other'"),
    ("public_url", "'https://api.example'"),
    ("gateway_secret", "'file:other.key'"),
    ("trusted_proxies", "['10.0.0.0/8']"),
    ("watch", "true"),
    ("default_version", "'v2'"),
    ("default_canary.version", "'v2'"),
    ("default_canary.percent", "6"),
    ("default_canary.sticky_by", "'app'"),
    ("unknown", "'default'"),
    ("versions.v1.backend", "'127.0.0.1:2'"),
    (
        "versions.v1.backends",
        "['127.0.0.1:2', { address = '127.0.0.1:3', weight = 2 }]",
    ),
    ("versions.v1.balance", "'least-connections'"),
    ("versions.v1.gateway_secret", "'file:other.key'"),
    ("versions.v1.unsigned", "'reject'"),
    ("versions.v1.account", "'optional'"),
    ("versions.v1.pass_authorization", "false"),
    ("versions.v1.pass_profile", "true"),
    ("versions.v1.methods", "['GET']"),
    ("versions.v1.bodies", "'json'"),
    ("versions.v1.max_body", "1024"),
    ("versions.v1.strip_sign", "true"),
    ("versions.v1.response_seconds", "61"),
    ("versions.v1.stream_seconds", "61"),
    ("versions.v1.path_prefix", "'/v9'"),
    ("versions.v1.hosts", "['a.example']"),
    ("versions.v1.idle_seconds", "3"),
    ("versions.v1.deprecated", "'2026-10-01'"),
    ("versions.v1.sunset", "'2027-04-01'"),
    ("versions.v1.after_sunset", "'gone'"),
    ("versions.v1.link", "'https://acme.example/v3'"),
    ("versions.v1.brownouts", "['2026-12-02T10:00:00Z/PT2H']"),
    (
        "versions.v1.endpoints",
        "[{ paths = ['/x'], sunset = '2027-01-01' }]",
    ),
    (
        "versions.v1.unproven",
        "[{ request = 'GET /x', reason = 'tested' }]",
    ),
    ("versions.v1.health.active", "false"),
    ("versions.v1.health.path", "'/up'"),
    ("versions.v1.health.interval_seconds", "3"),
    ("versions.v1.health.timeout_seconds", "2"),
    ("versions.v1.health.unhealthy_after", "4"),
    ("versions.v1.health.out_seconds", "3"),
    ("versions.v1.tls.server_name", "'login.internal'"),
    ("versions.v1.tls.ca", "'ca.pem'"),
    ("versions.v1.tls.certificate", "'ca.pem'"),
    ("versions.v1.tls.key", "'ca.key'"),
    ("versions.v1.headers.response.set", "['X-A: 2']"),
    ("versions.v1.headers.response.add", "['X-B: 2']"),
    ("versions.v1.headers.response.remove", "['X-C']"),
    ("versions.v1.bridge", "'v2'"),
    (
        "versions.v1.changes",
        "[{ name = 'a', paths = ['/a'], response = [{ remove = '$.a' }] }]",
    ),
    ("versions.v1.shadow.to", "'v3'"),
    ("versions.v1.shadow.percent", "0.5"),
    ("versions.v1.shadow.noise_percent", "1"),
    ("versions.v1.shadow.paths", "['/other']"),
    ("versions.v1.shadow.post_paths", "['/other']"),
    ("versions.v1.shadow.ignore", "['$.a']"),
    ("versions.v1.shadow.headers", "['location']"),
    ("versions.v1.shadow.backend", "'127.0.0.1:2'"),
    (
        "versions.v1.shadow.backends",
        "['127.0.0.1:2', { address = '127.0.0.1:3', weight = 2 }]",
    ),
    ("versions.v1.shadow.balance", "'least-connections'"),
    ("versions.v1.shadow.gateway_secret", "'file:other.key'"),
    ("versions.v1.shadow.account", "'optional'"),
    ("versions.v1.shadow.pass_authorization", "true"),
    ("versions.v1.shadow.pass_profile", "true"),
    ("versions.v1.shadow.idle_seconds", "3"),
    ("versions.v1.shadow.health.active", "false"),
    ("versions.v1.shadow.health.path", "'/up'"),
    ("versions.v1.shadow.health.interval_seconds", "3"),
    ("versions.v1.shadow.health.timeout_seconds", "2"),
    ("versions.v1.shadow.health.unhealthy_after", "4"),
    ("versions.v1.shadow.health.out_seconds", "3"),
    ("versions.v1.shadow.tls.server_name", "'login.internal'"),
    ("versions.v1.shadow.tls.ca", "'ca.pem'"),
    ("versions.v1.shadow.tls.certificate", "'ca.pem'"),
    ("versions.v1.shadow.tls.key", "'ca.key'"),
    ("versions.v1.paths", "'as_sent'"),
    ("versions.v1.sticky_by", "'app'"),
    (
        "versions.v1.canaries",
        "[{ name = 'next', percent = 5, backend = '127.0.0.1:2' }]",
    ),
    (
        "versions.v1.routes",
        "[{ path = '/orders/**', backend = '127.0.0.1:2' }]",
    ),
    (
        "routes",
        "[{ path = '/stock/', versions = ['v2'], backend = '127.0.0.1:2' }]",
    ),
    ("versions.v2.backend", "'127.0.0.1:2'"),
    ("application.key", "'file:other.key'"),
    ("applications.cache_entries", "7"),
    ("applications.audit_days", "400"),
    ("sign.preset", "'decoded'"),
    ("sign.values", "'decoded'"),
    ("sign.layout", "'concat'"),
    ("sign.empty", "'drop'"),
    ("sign.leave_out", "['sign_type']"),
    ("sign.cover", "'request'"),
    ("sign.algorithm", "'hmac-sha256'"),
    ("sign.carrier", "'both'"),
    ("sign.replay", "'reject'"),
    ("sign.window_seconds", "61"),
    ("sign.replay_entries", "100"),
    ("sign.replay_scope", "'all'"),
    ("sign.replay_fallback", "'gateway'"),
    ("sign.unsigned", "'reject'"),
    ("sign.always_signed", "['GET /x/**']"),
    ("sign.callback_paths", "['/back']"),
    ("sign.browser_paths", "['/page']"),
    ("sign.allow_weak_key", "true"),
    ("sign.show_canonical", "false"),
    ("headers.authorization", "'Other-Authorization'"),
    ("headers.app", "'Other-App'"),
    ("headers.language", "'Other-Language'"),
    ("headers.version", "'Other-Version'"),
    ("headers.response.set", "['X-A: 2']"),
    ("headers.response.add", "['X-B: 2']"),
    ("headers.response.remove", "['X-C']"),
    ("cors.origins", "['https://app.example']"),
    ("cors.credentials", "true"),
    ("cors.expose_headers", "['X-More']"),
    ("cors.allow_headers", "['X-More']"),
    ("limits.head_bytes", "4096"),
    ("limits.headers", "50"),
    ("limits.query_bytes", "1024"),
    ("limits.body_bytes", "1024"),
    ("limits.params", "17"),
    ("limits.unsigned.per_second", "21"),
    ("limits.unsigned.burst", "501"),
    ("spool.folder", "'/tmp'"),
    ("spool.bytes", "33554432"),
    ("rate_limits.shared", "true"),
    ("rate_limits.application.per_second", "101"),
    ("rate_limits.application.burst", "201"),
    ("rate_limits.address.per_second", "51"),
    ("rate_limits.address.burst", "201"),
    (
        "rate_limits.paths",
        "[{ path = '/login', per_second = 5, burst = 20 }]",
    ),
    ("connections.max", "40000"),
    ("connections.per_address", "900"),
    ("connections.requests", "9000"),
    ("connections.min_bytes_per_second", "101"),
    ("connections.handshakes_per_second", "51"),
    ("timeouts.head_seconds", "11"),
    ("timeouts.body_seconds", "11"),
    ("timeouts.idle_seconds", "61"),
    ("timeouts.connect_seconds", "3"),
    ("timeouts.forward_seconds", "11"),
    ("timeouts.response_seconds", "61"),
    ("timeouts.send_seconds", "61"),
    ("metrics.applications", "21"),
    ("log.filter", "'warn,signpost=debug'"),
];

/// Keys of the gateway's examples that need a new process.
const GATEWAY_RESTART_KEYS: &[(&str, &str)] = &[
    ("management.listen", "'127.0.0.1:10'"),
    ("management.insecure", "true"),
    ("management.hosts", "['gateway-a']"),
    (
        "management.tls.certificates",
        "[{ certificate = 'ca.pem', key = 'ca.key' }]",
    ),
    ("management.tls.client_ca", "'ca.pem'"),
    ("management.tls.client_auth", "'optional'"),
    ("management.console.application", "'other'"),
    ("management.console.provider", "'other'"),
    ("management.console.accounts.ada.provider", "'other'"),
    ("management.console.accounts.ada.username", "'other'"),
    ("management.console.accounts.ada.role", "'viewer'"),
    ("threads", "3"),
    ("store", "'sqlite:other.db'"),
    ("postgres.password", "'hush'"),
    ("postgres.pool_size", "11"),
    ("postgres.wait_seconds", "3"),
    ("postgres.statement_seconds", "4"),
    ("postgres.root_certificate", "'other.pem'"),
    ("applications.master_key", "'file:other.key'"),
    ("applications.previous_master_key", "'file:other.key'"),
    ("applications.snapshot", "'other.snapshot'"),
];

/// Keys of the backends' examples that a reload applies.
const BACKEND_KEYS: &[(&str, &str)] = &[
    ("prefix", "'Other'"),
    ("public_url", "'https://login.example'"),
    ("gateway_secret", "'file:other.key'"),
    ("gateway_secret_next", "'file:next.key'"),
    ("without_gateway", "true"),
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
    ("login.renewal_ttl_seconds", "1"),
    ("login.same_network", "'require'"),
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
    ("events.retention_days", "0"),
    ("log.filter", "'warn,login=debug'"),
    ("providers.sandbox.kind", "'gitlab'"),
    ("providers.sandbox.url", "'http://127.0.0.1:7101'"),
    ("providers.sandbox.client_id", "'other'"),
    ("providers.sandbox.client_secret", "'hush'"),
    ("providers.sandbox.client_auth", "'post'"),
    ("providers.sandbox.scopes", "['account']"),
    ("providers.sandbox.authorize_url", "'/other'"),
    ("providers.sandbox.token_url", "'/other'"),
    ("providers.sandbox.user_url", "'/other'"),
    ("providers.sandbox.issuer", "'other'"),
    ("providers.sandbox.pkce", "false"),
    ("providers.sandbox.redirect_uri", "false"),
    ("providers.sandbox.own_callback", "true"),
    ("providers.sandbox.prompt", "'login'"),
    ("providers.sandbox.pass_on", "['login_hint']"),
    ("providers.sandbox.allow_sandbox", "true"),
    ("providers.sandbox.label.en", "'Other'"),
    ("providers.sandbox.label.zh-CN", "'Other'"),
    ("providers.sandbox.label.zh-TW", "'Other'"),
    ("providers.sandbox.label.ja", "'Other'"),
    ("providers.sandbox.label.ko", "'Other'"),
    ("providers.other.kind", "'gitlab'"),
    ("providers.other.authorize_url", "'https://a.example'"),
    ("providers.other.token_url", "'https://a.example'"),
    ("providers.other.user_url", "'https://a.example'"),
    ("providers.other.client_id", "'other'"),
    ("providers.other.client_secret", "'hush'"),
    ("providers.other.id_field", "'other'"),
    ("providers.other.display_name_field", "'other'"),
];

/// Keys of the backends' examples that need a new process.
const BACKEND_RESTART_KEYS: &[(&str, &str)] = &[
    ("listen", "'127.0.0.1:7999'"),
    ("store", "'sqlite:other.db'"),
    ("threads", "3"),
    ("management.listen", "'127.0.0.1:10'"),
    ("management.insecure", "true"),
    ("management.hosts", "['gateway-a']"),
    ("postgres.password", "'hush'"),
    ("postgres.pool_size", "11"),
    ("postgres.wait_seconds", "3"),
    ("postgres.statement_seconds", "4"),
    ("postgres.root_certificate", "'other.pem'"),
];

/// A program that runs with an example, and other values for its keys.
struct Case {
    program: Program,
    example: &'static str,
    arguments: &'static [&'static str],
    /// Lines after the example's keys.
    further: &'static str,
    reloaded: &'static [(&'static str, &'static str)],
    restart: &'static [(&'static str, &'static str)],
}

const GATEWAYS: [Case; 2] = [
    Case {
        program: Program::Gateway,
        example: "gateway.toml",
        arguments: &["run"],
        further: "",
        reloaded: GATEWAY_KEYS,
        restart: GATEWAY_RESTART_KEYS,
    },
    Case {
        program: Program::Gateway,
        example: "gateway-multi.toml",
        arguments: &["run"],
        further: "[management.api]\n",
        reloaded: GATEWAY_KEYS,
        restart: GATEWAY_RESTART_KEYS,
    },
];

/// Every program of the login service, with the example that has every key.
fn backends() -> Vec<Case> {
    let versions = versions().into_iter().map(|one| one.program);
    versions.chain([Program::All]).map(backend).collect()
}

fn backend(program: Program) -> Case {
    Case {
        program,
        example: "v1.toml",
        arguments: &[],
        further: "",
        reloaded: BACKEND_KEYS,
        restart: BACKEND_RESTART_KEYS,
    }
}

impl Case {
    /// Keys that a reload applies, each with another valid value: those of the tables, and the backends of the versions
    /// after the second.
    fn reloaded(&self) -> Vec<(String, &'static str)> {
        let table = SHARED_KEYS.iter().chain(self.reloaded);
        let table = table.map(|(key, value)| ((*key).to_owned(), *value));
        let is_gateway = self.program == Program::Gateway;
        let further = versions().into_iter().skip(2).filter(|_| is_gateway);
        let further = further.map(|one| format!("versions.{}.backend", one.name));
        table
            .chain(further.map(|key| (key, "'127.0.0.1:2'")))
            .collect()
    }

    /// Keys that need a new process, each with another valid value.
    fn restart(&self) -> Vec<(String, &'static str)> {
        let table = self.restart.iter();
        table
            .map(|(key, value)| ((*key).to_owned(), *value))
            .collect()
    }

    /// A file of these keys. Dotted keys must precede the first table.
    fn file(&self, keys: &BTreeMap<String, String>) -> String {
        let lines = keys.iter().map(|(key, value)| format!("{key} = {value}\n"));
        lines.chain([self.further.to_owned()]).collect()
    }
}

/// The example's keys with free addresses, without those that need a variable or exclude another.
fn prepared(case: &Case, listen: SocketAddr, management: SocketAddr) -> BTreeMap<String, String> {
    let mut keys = example_keys(&example(case.example));
    keys.retain(|key, value| {
        let is_file = key == "tracing.ca";
        let is_tls = [TLS, SHADOW_TLS, MANAGEMENT_TLS]
            .iter()
            .any(|table| key.starts_with(table));
        let is_other =
            key.ends_with(".backends") || key == BRIDGE || key.starts_with(DEFAULT_CANARY);
        let is_alternative = is_other || is_tls || is_file;
        !value.starts_with("\"env:") && !is_alternative
    });
    keys.insert("listen".to_owned(), format!("'{listen}'"));
    keys.insert("store".to_owned(), "'sqlite:signpost.db'".to_owned());
    keys.insert("management.listen".to_owned(), format!("'{management}'"));
    if keys.contains_key("providers.other.kind") {
        let secret = "providers.other.client_secret".to_owned();
        keys.insert(secret, "'of the example'".to_owned());
    }
    if case.program == Program::Gateway && keys.contains_key("application.key") {
        keys.insert("application.key".to_owned(), "'file:app.key'".to_owned());
    }
    keys
}

/// Keys that need a backend with https, and files.
const TLS: &str = "versions.v1.tls.";
const SHADOW_TLS: &str = "versions.v1.shadow.tls.";
/// It excludes a backend, and what belongs to one.
const BRIDGE: &str = "versions.v1.bridge";
const OF_BACKENDS: [&str; 10] = [
    "account",
    "backend",
    "balance",
    "gateway_secret",
    "idle_seconds",
    "pass_",
    "sticky_by",
    "canaries",
    "health.",
    "shadow.",
];
const DEFAULT_CANARY: &str = "default_canary.";
/// Keys that need files.
const MANAGEMENT_TLS: &str = "management.tls.";

/// The example with another value of one key.
fn changed(keys: &BTreeMap<String, String>, key: &str, value: &str) -> BTreeMap<String, String> {
    let mut keys = keys.clone();
    if key.starts_with(MANAGEMENT_TLS) {
        let tls = GATEWAY_RESTART_KEYS.iter();
        let tls = tls.filter(|(key, _)| key.starts_with(MANAGEMENT_TLS));
        keys.extend(tls.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    }
    keys.insert(key.to_owned(), value.to_owned());
    if let Some(table) = key.strip_suffix("backends") {
        keys.remove(&format!("{table}backend"));
    }
    if key == BRIDGE {
        keys.retain(|key, _| {
            let of_version = key.strip_prefix("versions.v1.").unwrap_or_default();
            !OF_BACKENDS
                .iter()
                .any(|start| of_version.starts_with(start))
        });
    }
    if key.starts_with(DEFAULT_CANARY) {
        // It has no defaults of a version and a share.
        keys.insert(format!("{DEFAULT_CANARY}version"), "'v2'".to_owned());
        keys.insert(format!("{DEFAULT_CANARY}percent"), "6".to_owned());
    }
    if key == "versions.v1.shadow.to" {
        keys.insert("versions.v3.backend".to_owned(), "'127.0.0.1:3'".to_owned());
    }
    if key == "providers.other.kind" {
        // Only the kind that it has needs them.
        keys.retain(|key, _| !key.starts_with("providers.other.") || !key.ends_with("_field"));
    }
    if key == "gateway_secret_next" {
        keys.insert("gateway_secret".to_owned(), "'file:other.key'".to_owned());
    }
    for table in [TLS, SHADOW_TLS] {
        if let Some(key) = key.strip_prefix(table) {
            let backend = table.replace("tls.", "backend");
            let mut set = |key: String, value: &str| keys.insert(key, value.to_owned());
            set(backend, "'https://127.0.0.1:1'");
            set(format!("{table}ca"), "'ca.pem'");
            if matches!(key, "certificate" | "key") {
                set(format!("{table}certificate"), "'ca.pem'");
                set(format!("{table}key"), "'ca.key'");
            }
        }
    }
    keys
}

async fn every_key_is_reloaded(case: &Case) {
    let folder = Folder::create();
    let (listen, management) = (free_address(), free_address());
    let keys = prepared(case, listen, management);
    folder.write("app.key", KEY);
    folder.write("other.key", &KEY.repeat(2));
    folder.write("next.key", &KEY.repeat(3));
    let certificate = Authority::new("An authority").issue(&["login.internal"]);
    folder.write("ca.pem", &certificate.certificate);
    folder.write("ca.key", &certificate.key);
    let config = folder.write("example.toml", &case.file(&keys));
    let config = config.display().to_string();
    let arguments: Vec<_> = case.arguments.iter().map(|one| (*one).to_owned()).collect();
    let arguments = [arguments, vec!["--config".to_owned(), config.clone()]].concat();
    let mut running = Running::start(case.program.into(), folder.path(), &arguments);
    let http = http_client();
    let health = match case.program {
        Program::Gateway => format!("http://{management}/healthz"),
        _ => format!("http://{listen}/healthz"),
    };
    until("the program to run", || async {
        let response = http.get(&health).send().await.ok()?;
        response.status().is_success().then_some(())
    })
    .await;
    let reload = |keys: &BTreeMap<String, String>| {
        folder.write("example.toml", &case.file(keys));
        let output = case
            .program
            .run(folder.path(), &["reload", "--config", &config]);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(output.status.code(), Some(0), "{text}");
        text
    };
    // A key that this example lacks is changed in another one.
    let explained = example_keys(&example(case.example));
    for (is_reloaded, (key, value)) in case
        .reloaded()
        .into_iter()
        .map(|pair| (true, pair))
        .chain(case.restart().into_iter().map(|pair| (false, pair)))
        .filter(|(_, (key, _))| explained.contains_key(key))
    {
        let value = value.replace("$FREE", &free_address().to_string());
        let printed = reload(&changed(&keys, &key, &value));
        let (reloaded, needing_restart) = printed
            .split_once(" applies these")
            .unwrap_or((&printed, ""));
        let part = if is_reloaded {
            reloaded
        } else {
            needing_restart
        };
        assert!(part.contains(&format!("\n  {key}: ")), "{key}:\n{printed}");
        assert!(
            !printed.contains("hush") && !printed.contains(KEY),
            "{printed}"
        );
        // Restores the example's value.
        let printed = reload(&keys);
        assert!(!printed.contains("applies these"), "{printed}");
        // A program that watches its file may have reloaded it already.
        assert!(
            key == "watch" || printed.contains("reloaded, nothing") != is_reloaded,
            "{printed}"
        );
    }
    assert!(running.exit_status().is_none());
    let log = running.log();
    assert!(!log.contains("hush") && !log.contains(KEY), "{log}");
}

/// Checks that the tables have every key of the examples, and that the examples explain every key of the tables.
fn assert_tables_match_examples(cases: &[Case]) {
    let mut explained = BTreeMap::new();
    for case in cases {
        let table = [case.reloaded(), case.restart()].concat();
        for (key, value) in example_keys(&example(case.example)) {
            assert!(
                table.iter().any(|(known, _)| *known == key),
                "{}: {key}",
                case.example
            );
            explained.insert(key, value);
        }
    }
    for (key, _) in cases
        .iter()
        .flat_map(|case| [case.reloaded(), case.restart()].concat())
    {
        assert!(explained.contains_key(&key), "no example explains {key}");
    }
}

#[test]
fn every_key_of_the_gateways_examples_has_another_value() {
    assert_tables_match_examples(&GATEWAYS);
}

#[tokio::test]
async fn every_key_of_the_gateways_example_is_reloaded() {
    every_key_is_reloaded(&GATEWAYS[0]).await;
}

#[tokio::test]
async fn every_key_of_the_gateways_example_for_many_applications_is_reloaded() {
    every_key_is_reloaded(&GATEWAYS[1]).await;
}

#[test]
fn every_key_of_the_backends_examples_has_another_value() {
    assert_tables_match_examples(&backends());
}

#[tokio::test]
async fn every_key_of_the_backends_example_is_reloaded_by_each_version() {
    for version in versions() {
        every_key_is_reloaded(&backend(version.program)).await;
    }
}

#[tokio::test]
async fn every_key_of_the_backends_example_is_reloaded_by_all_versions_in_one_process() {
    every_key_is_reloaded(&backend(Program::All)).await;
}

#[test]
fn the_command_keys_says_which_keys_a_reload_applies() {
    let folder = Folder::create();
    for case in GATEWAYS.into_iter().chain(backends()) {
        let output = case.program.run(folder.path(), &["keys", "--json"]);
        let keys: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        let reloaded = case.reloaded().into_iter().map(|(key, _)| (key, true));
        let restart = case.restart().into_iter().map(|(key, _)| (key, false));
        for (key, is_reloaded) in reloaded.chain(restart) {
            let mut parts: Vec<_> = key.split('.').collect();
            if matches!(parts[0], "versions" | "providers") {
                parts[1] = "NAME";
            }
            if parts.contains(&"accounts") {
                parts[3] = "NAME";
            }
            let name = parts.join(".");
            let found = keys.iter().find(|key| key["key"] == *name);
            assert_eq!(found.unwrap()["reload"], is_reloaded, "{key}");
        }
    }
}
