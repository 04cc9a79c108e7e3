//! Valid configurations, and the problems of invalid ones.

use std::{path::Path, time::Duration};

use signpost_kit::{limits::Rate, server::shutdown::ShutdownSettings};

use super::*;
use crate::testing::config_text_with_provider;

mod examples;
mod providers;

fn good() -> String {
    let provider = config_text_with_provider("https://provider.example", "");
    format!("prefix = \"Acme\"\n{provider}")
}

/// A version without keys of its own.
fn none(_: &mut Section<'_>) -> Read<()> {
    Ok(())
}

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(Path::new("v1.toml"), text, none).map(|loaded| loaded.config.0)
}

/// Returns the keys of all problems, and the whole message.
fn problems(text: &str) -> (Vec<String>, String) {
    let error = parse(text).unwrap_err();
    let keys = error.keys().into_iter().map(str::to_owned);
    (keys.collect(), error.to_string())
}

#[test]
fn a_provider_is_enough_and_the_defaults_are_the_contracts() {
    let config = parse(&good()).unwrap();
    assert_eq!(config.headers.app.as_str(), "acme-x-app");
    assert_eq!(
        config.public_url.callback().as_str(),
        "http://127.0.0.1:8080/login"
    );
    assert_eq!(config.lifetimes.login, Duration::from_secs(600));
    assert_eq!(config.lifetimes.claim, Duration::from_secs(120));
    assert_eq!(config.lifetimes.ticket, Duration::from_secs(60));
    assert_eq!(
        config.lifetimes.credential,
        Duration::from_secs(30 * 24 * 3600)
    );
    assert!(config.polling.confirm);
    assert_eq!(config.limits.connections, 8192);
    assert_eq!(config.limits.callbacks, Rate::new(20, 200).unwrap());
    assert_eq!(config.timeouts.connection.head.as_secs(), 10);
    assert_eq!(config.timeouts.connection.idle.as_secs(), 120);
    assert_eq!(config.timeouts.body.as_secs(), 10);
    assert_eq!(config.shutdown, ShutdownSettings::default());
    assert_eq!(config.log.access_sample, 1);
    assert_eq!(
        config.threads,
        std::thread::available_parallelism().unwrap().get()
    );
    let provider = &config.providers.all[0];
    let settings = oauth(provider);
    assert_eq!(settings.issuer, "https://provider.example");
    assert_eq!(
        settings.user_url.as_str(),
        "https://provider.example/2.0/user"
    );
    assert!(provider.sends_redirect_uri && provider.pkce && provider.scopes.is_empty());
    assert_eq!(config.providers.default.as_ref(), Some(&provider.name));
}

#[test]
fn all_problems_are_reported_at_once_by_key() {
    let text = format!(
        "prefix = \"1x\"\nlisten = \"nowhere\"\nstore = \"mysql:x\"\nworker_threads = 2\nnonsense = 1\n\
         public_url = \"https://x/path\"\n[login]\nlogin_ttl_seconds = 0\nclaim_ttl = 5\n\
         [polling]\nconfirm = \"yes\"\n[log]\nformat = \"xml\"\nlevel = \"loud\"\n\
         [application]\nreturn_to = [\"app.example\"]\n[headers]\napp = \"a b\"\n{}",
        config_text_with_provider("nothing", "colour = \"red\"")
    );
    let (mut keys, message) = problems(&text);
    keys.sort();
    let expected = [
        "application.return_to",
        "headers.app",
        "listen",
        "log.format",
        "log.level",
        "login.claim_ttl",
        "login.login_ttl_seconds",
        "nonsense",
        "polling.confirm",
        "prefix",
        "providers.sandbox.colour",
        "providers.sandbox.url",
        "public_url",
        "store",
        "worker_threads",
    ];
    assert_eq!(keys, expected, "{message}");
    assert!(
        message
            .contains("login.login_ttl_seconds: found 0; allowed: a whole number from 1 to 3600"),
        "{message}"
    );
    assert!(
        message.contains("login.claim_ttl: unknown key; allowed: same_network, login_ttl_seconds"),
        "{message}"
    );
}

#[test]
fn every_line_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("v1.toml");
    std::fs::write(&file, "prefix = \"1\"\nlisten = \"2\"\n").unwrap();
    let message = Config::load(&file, none).unwrap_err().to_string();
    let file = file.display();
    let lines = [
        format!("{file}: providers: missing; "),
        format!("{file}:1: prefix: found \"1\"; "),
        format!("{file}:2: listen: found \"2\"; "),
    ];
    assert_eq!(message.lines().count(), lines.len(), "{message}");
    for (line, expected) in message.lines().zip(lines) {
        assert!(line.starts_with(&expected), "{message}");
    }
    let missing = Config::load(Path::new("/nowhere/v1.toml"), none)
        .unwrap_err()
        .to_string();
    assert!(
        missing.starts_with("/nowhere/v1.toml: cannot be read: No such file"),
        "{missing}"
    );
}

#[test]
fn invalid_toml_is_reported_by_line_and_without_its_text() {
    let (_, message) = problems("prefix = \"Acme\"\nclient_secret = hunter2\n");
    assert!(message.contains("v1.toml:2: not TOML"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn a_secret_is_read_from_its_source() {
    let with = |source: &str| good().replace("\"secret\"", &format!("{source:?}"));
    let secret = |text: &str| {
        parse(text).unwrap().providers.all[0]
            .client_secret
            .expose()
            .to_owned()
    };
    assert_eq!(secret(&with("literal")), "literal");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    let in_file = with(&format!("file:{}", file.display()));
    for written in ["from a file", "from a file\n", "from a file\r\n"] {
        std::fs::write(&file, written).unwrap();
        assert_eq!(secret(&in_file), "from a file", "{written:?}");
    }
    for odd in [" \n", "\t from a file \r\n\n"] {
        std::fs::write(&file, odd).unwrap();
        assert_eq!(problems(&in_file).0, ["providers.sandbox.client_secret"]);
    }
    // Issue 44, row 14: a secret with an oddity is refused, from each source.
    assert_eq!(
        problems(&with(" literal ")).0,
        ["providers.sandbox.client_secret"]
    );
    assert_eq!(secret(&with("env:CARGO_PKG_NAME")), "login");
    for missing in ["env:NO_SUCH_VARIABLE", "file:/no/such/file", ""] {
        let (keys, message) = problems(&with(missing));
        assert_eq!(keys, ["providers.sandbox.client_secret"], "{message}");
    }
}

#[test]
fn secrets_are_not_printed() {
    let config = parse(&good().replace("\"secret\"", "\"hunter2\"")).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
    let (_, message) = problems(&good().replace("\"secret\"", "[\"hunter2\"]"));
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn beyond_loopback_the_gateways_secret_is_required() {
    let (keys, message) = problems(&format!("listen = \"0.0.0.0:7001\"\n{}", good()));
    assert_eq!(keys, ["gateway_secret"], "{message}");
}

#[test]
fn management_is_off_unless_it_has_an_address_that_strangers_cannot_reach() {
    let with = |keys: &str| format!("{}[management]\n{keys}", good());
    let address = |keys: &str| parse(&with(keys)).unwrap().management.map(|one| one.listen);
    assert_eq!(parse(&good()).unwrap().management, None);
    assert_eq!(address("insecure = true"), None);
    let loopback = "listen = \"127.0.0.1:7021\"\n";
    assert_eq!(address(loopback), Some("127.0.0.1:7021".parse().unwrap()));
    let open = "listen = \"0.0.0.0:9100\"\n";
    let (keys, message) = problems(&with(open));
    assert_eq!(keys, ["management.listen"], "{message}");
    let insecure = format!("{open}insecure = true");
    assert_eq!(address(&insecure), Some("0.0.0.0:9100".parse().unwrap()));
    for wrong in [
        "listen = \"localhost\"",
        "listen = 1",
        "listen = \"127.0.0.1:7001\"",
    ] {
        let (keys, message) = problems(&with(wrong));
        assert_eq!(keys, ["management.listen"], "{message}");
    }
    let running = parse(&with(loopback)).unwrap();
    let next = parse(&good()).unwrap().with_restart_keys_of(&running);
    assert_eq!(next.management, running.management);
}

#[test]
fn the_prefix_has_no_default() {
    let (keys, _) = problems(&good().replace("prefix", "# prefix"));
    assert_eq!(keys, ["prefix"]);
}

#[test]
fn a_convention_header_cannot_have_a_reserved_name() {
    let (keys, message) = problems(&format!("{}[headers]\nversion = \"Host\"\n", good()));
    assert_eq!(keys, ["headers.version"], "{message}");
}

#[test]
fn the_stores_address_is_not_printed_since_it_may_contain_a_password() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("address");
    let in_file = format!("file:{}", file.display());
    for (address, allowed) in [
        ("postgres://u:hunter2@h/d?sslmode=allow", "sslmode=disable"),
        (
            "postgres://u:hunter2@h",
            "postgres://USER@HOST:PORT/DATABASE",
        ),
        ("mysql://u:hunter2@h/d", "sqlite:PATH"),
        ("hunter2", "sqlite:PATH"),
    ] {
        std::fs::write(&file, address).unwrap();
        for store in [address, &in_file] {
            let (keys, message) = problems(&format!("store = {store:?}\n{}", good()));
            assert_eq!(keys, ["store"], "{message}");
            assert!(message.contains(allowed), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
            assert_eq!(message.contains(&in_file), store == in_file, "{message}");
        }
    }
}

#[test]
fn the_store_is_an_address_or_a_reference_to_one() {
    let store = |text: &str| {
        let config = parse(&format!("{text}\n{}", good())).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
        config.store.clone()
    };
    let default = store("").address;
    assert_eq!(default.to_string(), "sqlite:data/signpost.db");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("address");
    std::fs::write(&file, "postgres://u:hunter2@db.example/signpost\n").unwrap();
    let kept_elsewhere = store(&format!("store = \"file:{}\"", file.display())).address;
    assert_eq!(
        kept_elsewhere.to_string(),
        "postgres://db.example:5432/signpost"
    );
    let in_two_places =
        store("store = \"postgres://u@db.example/signpost\"\npostgres.password = \"hunter2\"");
    assert_eq!(in_two_places.address, kept_elsewhere);
}

#[test]
fn settings_of_postgres_have_defaults_and_ranges() {
    let postgres = |text: &str| {
        let config = parse(&format!("{}[postgres]\n{text}", good())).unwrap();
        config.store.postgres.clone()
    };
    let of = |settings: &signpost_store::PostgresSettings| {
        let times = [settings.wait, settings.statement];
        (settings.pool_size, times.map(|time| time.as_secs()))
    };
    let default = postgres("");
    assert_eq!(of(&default), (10, [2, 3]));
    assert_eq!(default.root_certificate, None);
    let other = postgres(
        "pool_size = 3\nwait_seconds = 5\nstatement_seconds = 6\nroot_certificate = \"ca.pem\"",
    );
    assert_eq!(of(&other), (3, [5, 6]));
    assert_eq!(other.root_certificate.as_deref(), Some(Path::new("ca.pem")));
    let bad = "pool_size = 0\nwait_seconds = 0\nstatement_seconds = \"1\"\n\
               password = \"env:NO_SUCH_VARIABLE\"\nuser = \"u\"\n";
    let (mut keys, message) = problems(&format!("{}[postgres]\n{bad}", good()));
    keys.sort();
    let expected = [
        "postgres.password",
        "postgres.pool_size",
        "postgres.statement_seconds",
        "postgres.user",
        "postgres.wait_seconds",
    ];
    assert_eq!(keys, expected, "{message}");
}

fn oauth(provider: &ProviderConfig) -> &OAuthSettings {
    match &provider.protocol {
        Protocol::OAuth(settings) => settings,
        Protocol::OpenId { .. } => panic!("{} is an OpenID provider", provider.name),
    }
}

#[test]
fn limits_and_timeouts_have_ranges() {
    let text = format!(
        "{}[limits]\nconnections = 0\n[timeouts]\nhead_seconds = 0\nbody_seconds = 3601\nidle_seconds = 0\n\
         [shutdown]\ndrain_delay_seconds = -1\ngrace_seconds = 0\n",
        good()
    );
    let (keys, message) = problems(&text);
    let expected = [
        "limits.connections",
        "timeouts.head_seconds",
        "timeouts.body_seconds",
        "timeouts.idle_seconds",
        "shutdown.drain_delay_seconds",
        "shutdown.grace_seconds",
    ];
    assert_eq!(keys, expected, "{message}");
}

#[test]
fn an_applications_name_has_only_visible_characters() {
    let with_name = |name: &str| parse(&format!("{}\n[application]\nname = \"{name}\"\n", good()));
    let name = |name| with_name(name).unwrap().application.name.clone();
    assert_eq!(name(" 한국어 가게 (2) "), "한국어 가게 (2)");
    for bad in [" ", "a\\u202Eb", "a\\u0007b", "a\\u2028b", &"x".repeat(101)] {
        assert!(with_name(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_public_url_is_only_an_origin() {
    for good in [
        "http://127.0.0.1:8080",
        "https://login.example/",
        "http://[::1]:80",
    ] {
        assert!(good.parse::<PublicUrl>().is_ok(), "{good}");
    }
    for bad in [
        "",
        "login.example",
        "ftp://x",
        "https://x/path",
        "https://x/?q",
        "https://x/#f",
        "https://a@x/",
    ] {
        assert!(bad.parse::<PublicUrl>().is_err(), "{bad}");
    }
}

#[test]
fn the_callback_is_the_login_path() {
    let url: PublicUrl = "https://login.example:8443".parse().unwrap();
    assert_eq!(url.callback().as_str(), "https://login.example:8443/login");
}
