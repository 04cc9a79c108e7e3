//! Store addresses and their sources. Problems never quote an address.

use std::{fs, path::PathBuf};

use crate::config::{Applications, Config, MasterKey, tests::load};

const SINGLE: &str = "prefix = 'Acme'\n[application]\nkey = '4283fefc63f0cd0e873a0000c6d07ef7'\n\
                      [versions.v1]\nbackend = '127.0.0.1:7001'\n";
const MULTI: &str = "prefix = 'Acme'\n[applications]\n[versions.v1]\nbackend = '127.0.0.1:7001'\n";

fn with(store: &str) -> String {
    format!("{store}\n{SINGLE}")
}

fn problems(toml: &str) -> String {
    load(toml).unwrap_err().to_string()
}

fn store(config: &Config) -> String {
    config.store.address.to_string()
}

/// A file with an address, deleted on drop.
struct AddressFile(PathBuf);

impl AddressFile {
    fn holding(address: &str) -> Self {
        let name = format!("signpost-address-{}-{}", address.len(), std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, address).unwrap();
        Self(path)
    }

    fn setting(&self) -> String {
        format!("store = 'file:{}'", self.0.display())
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn an_address_is_given_directly_or_in_a_file() {
    let config = load(&with("store = 'postgres://u:hush@db/signpost'")).unwrap();
    assert_eq!(store(&config), "postgres://db:5432/signpost");
    assert!(!format!("{config:?}").contains("hush"));
    let file = AddressFile::holding("postgres://u:hush@db:7/signpost\n");
    let config = load(&with(&file.setting())).unwrap();
    assert_eq!(store(&config), "postgres://db:7/signpost");
}

#[test]
fn a_password_can_be_given_separately() {
    let toml =
        format!("store = 'postgres://u@db/signpost'\n{SINGLE}[postgres]\npassword = 'hush'\n");
    let config = load(&toml).unwrap();
    let expected = "postgres://u:hush@db/signpost".parse().unwrap();
    assert_eq!(config.store.address, expected);
    assert!(!format!("{config:?}").contains("hush"));
}

#[test]
fn an_invalid_address_is_reported_without_quoting_it() {
    let file = AddressFile::holding("postgres://u:hush@db");
    for (setting, found) in [
        (
            "store = 'postgres://u:hush@db'",
            "an invalid postgres address",
        ),
        ("store = 'postgres:hush'", "an invalid postgres address"),
        ("store = 'hush'", "an address of another kind"),
        (
            "store = 'postgres://u:P@hush@h/hush'",
            "an invalid postgres address",
        ),
        (
            "store = 'postgres://u:hush@h/d?nonsense=hush'",
            "an unknown or invalid \"nonsense\" in the address",
        ),
        (
            "store = 'sqlite://data/x.db'",
            "\"sqlite:\" without a path, or",
        ),
        ("store = 'sqlite:'", "\"sqlite:\" without a path"),
        (
            "store = 'env:SIGNPOST_NO_SUCH_VARIABLE'",
            "env:SIGNPOST_NO_SUCH_VARIABLE, but",
        ),
        (&*file.setting(), "an invalid postgres address, in file:"),
    ] {
        let report = problems(&with(setting));
        assert!(
            report.contains(&format!(".toml:1: store: found {found}")),
            "{report}"
        );
        assert!(
            report.contains("allowed: ") && !report.contains("hush"),
            "{report}"
        );
        assert_eq!(report.lines().count(), 1, "{report}");
    }
}

#[test]
fn for_a_value_of_a_wrong_type_only_the_type_is_reported() {
    for (store, kind) in [
        ("{ url = 'postgres:hush' }", "a table"),
        ("['postgres://u:hush@db/d']", "a list"),
        ("[{ password = 'hush' }]", "a list"),
        ("4711", "a whole number"),
    ] {
        let report = problems(&with(&format!("store = {store}")));
        assert!(report.contains(&format!(".toml:1: store: found {kind};")));
        assert!(
            !report.contains("hush") && !report.contains("4711"),
            "{report}"
        );
    }
    for key in [
        "pool_size",
        "wait_seconds",
        "statement_seconds",
        "root_certificate",
        "password",
    ] {
        for value in ["{ a = 'hush' }", "['hush']", "'hush'", "1979-05-27"] {
            let is_text = matches!(key, "root_certificate" | "password");
            if is_text && value == "'hush'" {
                continue;
            }
            let report = problems(&format!("{SINGLE}[postgres]\n{key} = {value}\n"));
            assert!(
                report.contains(&format!("postgres.{key}: found ")),
                "{report}"
            );
            assert!(
                !report.contains("hush") && !report.contains("1979"),
                "{report}"
            );
        }
    }
    let report = problems(&with("postgres = 'hush'"));
    assert!(
        report.contains("postgres: found a string; allowed: a table"),
        "{report}"
    );
    assert!(!report.contains("hush"), "{report}");
}

#[test]
fn the_postgres_settings_are_read_and_validated() {
    let config = load(SINGLE).unwrap();
    assert_eq!(config.store.postgres.pool_size, 10);
    assert_eq!(config.store.postgres.statement.as_secs(), 3);
    let toml = format!(
        "{SINGLE}[postgres]\npool_size = 3\nwait_seconds = 5\n\
         statement_seconds = 6\nroot_certificate = 'ca.pem'\n"
    );
    let postgres = load(&toml).unwrap().store.postgres;
    let seconds = [postgres.wait, postgres.statement].map(|time| time.as_secs());
    assert_eq!((postgres.pool_size, seconds), (3, [5, 6]));
    assert_eq!(postgres.root_certificate, Some("ca.pem".into()));
    let report = problems(&format!(
        "{SINGLE}[postgres]\npool_size = 0\nwait_seconds = 61\nroot_certificate = 1\npasword = 'hush'\n"
    ));
    for problem in [
        "postgres.pool_size: found 0; allowed: a whole number from 1 to 1000",
        "postgres.wait_seconds: found 61; allowed: a whole number from 1 to 60",
        "postgres.root_certificate: found a whole number; allowed: a file path",
        "postgres.pasword: unknown key; did you mean password?",
    ] {
        assert!(report.contains(problem), "{problem} in {report}");
    }
    assert!(!report.contains("hush"), "{report}");
}

#[test]
fn gateways_that_share_a_server_share_a_master_key() {
    let beside = load(MULTI).unwrap();
    let Applications::Multi(multi) = &beside.applications else {
        panic!("many applications")
    };
    assert!(
        matches!(&multi.master_key, MasterKey::File(path) if path.ends_with("data/signpost.key"))
    );
    let shared = format!("store = 'postgres://u@db/signpost'\n{MULTI}");
    let report = problems(&shared);
    assert!(
        report.contains("applications.master_key: missing; allowed: \"env:NAME\" or"),
        "{report}"
    );
    let given = shared.replace(
        "[applications]",
        "[applications]\nmaster_key = 'file:m.key'",
    );
    let Applications::Multi(multi) = load(&given).unwrap().applications else {
        panic!("many applications")
    };
    assert!(
        matches!(&multi.master_key, MasterKey::SharedFile(path) if path.ends_with("m.key")),
        "each gateway would create its own"
    );
    // One problem, not two: whether a key is needed depends on the store.
    let report = problems(&format!("store = 'postgres:x'\n{MULTI}"));
    assert_eq!(report.lines().count(), 1, "{report}");
}

#[test]
fn a_previous_master_key_is_a_key_in_a_file_or_variable() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display();
    let table = |source: &str| format!("[applications]\nprevious_master_key = '{source}'");
    let with = |source: &str| MULTI.replace("[applications]", &table(source));
    for (content, source, problem) in [
        (
            "",
            "ab".repeat(32),
            "the key itself; allowed: 64 hex digits in",
        ),
        (
            "abc",
            format!("file:{path}"),
            "a text of another form; allowed: 64 hex digits in",
        ),
        ("", "file:/no/such.key".to_owned(), "/no/such.key"),
    ] {
        fs::write(file.path(), content).unwrap();
        let report = problems(&with(&source));
        let start = "applications.previous_master_key: found ";
        assert!(
            report.contains(start) && report.contains(problem),
            "{report}"
        );
        assert!(!report.contains("abab"), "{report}");
    }
    fs::write(file.path(), "ab".repeat(32)).unwrap();
    assert!(load(&with(&format!("file:{path}"))).is_ok());
}

#[test]
fn a_server_whose_identity_is_not_verified_is_warned_of() {
    let warnings = |store: &str| load(&with(store)).unwrap().warnings().join("\n");
    let weak = "store = 'postgres://u@db.example/d?sslmode=prefer'";
    assert!(warnings(weak).contains("verify-full"));
    for good in [
        "postgres://u@db.example/d",
        "postgres://u@db.example/d?sslmode=verify-full",
        "postgres://u@localhost/d",
    ] {
        assert!(!warnings(&format!("store = '{good}'")).contains("store:"));
    }
}
