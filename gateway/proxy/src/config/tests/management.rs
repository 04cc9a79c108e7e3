//! The management listener: where it may listen, its TLS, and the API.

use std::fs;

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::{MINIMAL, load, problems};
use crate::config::{ConsoleAccount, Role};

const MULTI: &str = "prefix = 'Acme'\n[applications]\n[versions.v1]\nbackend = '127.0.0.1:7001'\n";

/// `[management.tls]` with a certificate that is its own authority. `further` follows `certificates`.
fn tls(files: &TempDir, further: &str) -> String {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["gateway-a".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let path = |name: &str| files.path().join(name).display().to_string();
    let (pem, private) = (path("a.pem"), path("a.key"));
    fs::write(&pem, certificate.pem()).unwrap();
    fs::write(&private, key.serialize_pem()).unwrap();
    let further = further.replace("$CA", &pem);
    format!(
        "[management.tls]\ncertificates = [{{ certificate = '{pem}', key = '{private}' }}]\n{further}\n"
    )
}

#[test]
fn management_must_listen_on_loopback_unless_insecure() {
    let open = format!("{MINIMAL}[management]\nlisten = '0.0.0.0:8081'\n");
    let allowed = "management.listen: found 0.0.0.0:8081; allowed: a loopback address, [management.tls], or insecure = true";
    assert!(problems(&open).contains(allowed));
    assert!(load(&format!("{open}insecure = true\n")).is_ok());
    for hosts in ["'a'", "['']", "['a:8081']", "['*']", "[1]"] {
        let wrong = format!("{MINIMAL}[management]\nhosts = {hosts}\n");
        assert!(problems(&wrong).contains("management.hosts"), "{hosts}");
    }
}

#[test]
fn with_tls_management_may_listen_anywhere() {
    let files = tempfile::tempdir().unwrap();
    let open = format!("{MINIMAL}[management]\nlisten = '0.0.0.0:8081'\n");
    for (further, by_request) in [
        ("", false),
        ("client_ca = '$CA'", true),
        ("client_ca = '$CA'\nclient_auth = 'required'", true),
        ("client_ca = '$CA'\nclient_auth = 'optional'", false),
    ] {
        let config = load(&[&open, &*tls(&files, further)].concat()).unwrap();
        let tls = config.management.tls.unwrap();
        assert_eq!(tls.needs_certificate_by_request(), by_request, "{further}");
    }
    let report = problems(&format!("{open}[management.tls]\n"));
    assert!(
        report.contains("management.tls.certificates: missing"),
        "{report}"
    );
    let report = problems(&[&open, &*tls(&files, "protocols = ['h2']")].concat());
    assert!(report.contains("management.tls.protocols"), "{report}");
}

#[test]
fn the_api_needs_the_store_and_beyond_loopback_tls() {
    let files = tempfile::tempdir().unwrap();
    let with = |listen: &str, tls: &str| {
        format!(
            "{MULTI}[management]\nlisten = '{listen}'\ninsecure = true\n{tls}[management.api]\n"
        )
    };
    assert!(!load(MULTI).unwrap().management.api);
    for (listen, tls) in [
        ("127.0.0.1:8081", String::new()),
        ("[::1]:8081", String::new()),
        ("0.0.0.0:8081", tls(&files, "")),
    ] {
        assert!(
            load(&with(listen, &tls)).unwrap().management.api,
            "{listen}"
        );
    }
    let report = problems(&with("0.0.0.0:8081", ""));
    assert!(
        report.contains("management.listen: found 0.0.0.0:8081; allowed: with [management.api]"),
        "{report}"
    );
    let report = problems(&format!("{MINIMAL}[management.api]\n"));
    assert!(report.contains("management.api: found"), "{report}");
    let report = problems(&format!("{MULTI}[management.api]\ntokens = 1\n"));
    assert!(report.contains("management.api.tokens"), "{report}");
    let both = load(&format!("{MULTI}[management.api]\n[management.console]\n"));
    assert!(both.unwrap().management.console.is_some());
    let report = problems(&format!("{MULTI}[management.console]\n"));
    let expected = "management.console: found a table; allowed: with [management.api] only";
    assert!(report.contains(expected), "{report}");
}

#[test]
fn who_may_sign_in_to_the_console_is_an_account_with_a_role() {
    let with = |keys: &str| format!("{MULTI}[management.api]\n[management.console]\n{keys}");
    let account = "[management.console.accounts.ada]\nprovider = 'bitbucket'\nusername = '{1}'\nrole = 'admin'\n";
    let config = load(&with(&format!("application = 'console'\n{account}"))).unwrap();
    let console = config.management.console.unwrap();
    assert_eq!(console.application.unwrap().as_str(), "console");
    let expected = ConsoleAccount {
        name: "ada".to_owned(),
        provider: "bitbucket".to_owned(),
        username: "{1}".to_owned(),
        role: Role::Admin,
    };
    assert_eq!(console.accounts, [expected]);
    for (keys, expected) in [
        (
            account.to_owned(),
            "management.console.application: missing",
        ),
        (
            format!(
                "application = 'c'\n{}",
                account.replace("'admin'", "'root'")
            ),
            "management.console.accounts.ada.role: found 'root'; allowed: \"viewer\"",
        ),
        (
            format!(
                "application = 'c'\n{account}{}",
                account.replace(".ada]", ".eve]")
            ),
            "management.console.accounts: found eve; allowed: each account once",
        ),
        (
            "application = 'c'\n[management.console.accounts.ada]\n".to_owned(),
            "management.console.accounts.ada.username: missing",
        ),
    ] {
        let report = problems(&with(&keys));
        assert!(report.contains(expected), "{report}");
    }
}

#[test]
fn a_console_on_the_host_of_the_clients_is_warned_of() {
    let files = tempfile::tempdir().unwrap();
    let console = "[management.api]\n[management.console]\n";
    let warns = |keys: &str, management: &str, console: &str| {
        let tls = tls(&files, "");
        let toml = format!("{keys}\n{MULTI}[management]\n{management}\n{tls}{console}");
        let warnings = load(&toml).unwrap().warnings();
        warnings.iter().any(|one| one.contains("share the host"))
    };
    for (keys, management) in [
        ("public_url = 'http://127.0.0.1:8080'", ""),
        ("public_url = 'http://localhost'", ""),
        (
            "public_url = 'https://Api.example'",
            "hosts = ['a', 'API.example']",
        ),
        ("public_url = 'http://[::1]:80'", "listen = '[::1]:8081'"),
        ("listen = '10.0.0.5:80'", "listen = '10.0.0.5:8081'"),
        (
            "listen = '0.0.0.0:80'\npublic_url = 'https://api.example'",
            "listen = '10.0.0.5:8081'",
        ),
        (
            "listen = '10.0.0.5:80'\npublic_url = 'https://api.example'",
            "listen = '0.0.0.0:8081'",
        ),
    ] {
        assert!(warns(keys, management, console), "{keys} {management}");
        assert!(
            !warns(keys, management, ""),
            "no cookies: {keys} {management}"
        );
    }
    // The clients' certificate is for gateway-a.
    let keys = "public_url = 'https://api.example'";
    let (pem, key) = (files.path().join("a.pem"), files.path().join("a.key"));
    let (pem, key) = (pem.display(), key.display());
    let listen = format!(
        "{console}[[listen]]\naddress = '127.0.0.1:8443'\n\
         tls.certificates = [{{ certificate = '{pem}', key = '{key}' }}]\n"
    );
    assert!(warns(keys, "hosts = ['b', 'Gateway-A']", &listen));
    assert!(!warns(keys, "hosts = ['b']", &listen));
    for (keys, management) in [
        ("listen = '10.0.0.5:80'", ""),
        (
            "listen = '127.0.0.1:8080'\npublic_url = 'https://api.example'",
            "",
        ),
        (
            "listen = '10.0.0.4:80'\npublic_url = 'https://api.example'",
            "listen = '10.0.0.5:8081'\nhosts = ['gateway-a']",
        ),
    ] {
        assert!(!warns(keys, management, console), "{keys} {management}");
    }
}
