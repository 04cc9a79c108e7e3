//! TLS to backends: schemes, files, and every problem.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::{file, load, problems, upstream};
use crate::tls::backend::Endpoint;

/// A folder with a certificate that is its own authority, its key, and another key.
struct Files(TempDir);

impl Files {
    fn create() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let params = CertificateParams::new(vec!["login.internal".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        folder.write("ca.pem", &certificate.pem());
        folder.write("gateway.key", &key.serialize_pem());
        folder.write("other.key", &other.serialize_pem());
        folder.write("text", "hush");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(self.path(name), private).unwrap();
    }

    /// A version's table, in which `@` stands for this folder.
    fn version(&self, text: &str) -> String {
        text.replace('@', &format!("{}/", self.0.path().display()))
    }

    fn endpoint(&self, text: &str) -> Endpoint {
        let upstream = upstream(&self.version(text));
        upstream.fixed.unwrap_or_else(|| Endpoint {
            address: "127.0.0.1:1".parse().unwrap(),
            tls: upstream.addresses[0].tls.clone(),
        })
    }

    fn problems(&self, text: &str) -> String {
        problems(&file(&self.version(text)))
    }
}

#[test]
fn the_scheme_decides_on_tls() {
    let files = Files::create();
    for (version, has_tls) in [
        ("backend = '127.0.0.1:1'", false),
        ("backend = 'http://127.0.0.1:1'", false),
        ("backends = ['http://127.0.0.1:1', 'login:2']", false),
        ("backend = 'https://127.0.0.1:1'\ntls.ca = '@ca.pem'", true),
        (
            "backends = ['https://login:1', { address = 'https://login:2', weight = 2 }]\ntls.ca = '@ca.pem'",
            true,
        ),
    ] {
        let found = upstream(&files.version(version));
        assert_eq!(found.has_tls(), has_tls, "{version}");
    }
    let with = upstream("backend = 'http://127.0.0.1:1'");
    assert_eq!(with, upstream("backend = '127.0.0.1:1'"));
}

#[test]
fn connections_are_shared_only_with_the_same_settings() {
    let files = Files::create();
    let one = files.endpoint("backend = 'https://127.0.0.1:1'\ntls.ca = '@ca.pem'");
    let same = files.endpoint(
        "backend = 'https://127.0.0.1:1'\ntls.ca = '@ca.pem'\ntls.server_name = '127.0.0.1'",
    );
    assert_eq!(one, same);
    for other in [
        "backend = '127.0.0.1:1'",
        "backend = 'https://127.0.0.1:2'\ntls.ca = '@ca.pem'",
        "backend = 'https://127.0.0.1:1'\ntls.ca = '@ca.pem'\ntls.server_name = 'login'",
        "backend = 'https://login:1'\ntls.ca = '@ca.pem'",
        "backend = 'https://127.0.0.1:1'\ntls.ca = '@ca.pem'\ntls.certificate = '@ca.pem'\ntls.key = '@gateway.key'",
    ] {
        assert_ne!(one, files.endpoint(other), "{other}");
    }
    // Another authority in the same file.
    files.write(
        "ca.pem",
        &fs::read_to_string(Files::create().path("ca.pem")).unwrap(),
    );
    let changed = files.endpoint("backend = 'https://127.0.0.1:1'\ntls.ca = '@ca.pem'");
    assert_ne!(one, changed);
}

#[test]
fn every_problem_names_the_key_and_the_file() {
    let files = Files::create();
    let https = "backend = 'https://login:1'\n";
    for (keys, found) in [
        (
            "tls.ca = '@missing.pem'",
            "versions.v1.tls.ca: found @missing.pem, which cannot be read",
        ),
        (
            "tls.ca = '@'",
            "which cannot be read (it is not a regular file)",
        ),
        (
            "tls.ca = '@text'",
            "versions.v1.tls.ca: found @text, which has no certificate in PEM",
        ),
        (
            "tls.ca = '@gateway.key'",
            "@gateway.key, which has no certificate in PEM",
        ),
        (
            "tls.ca = '@ca.pem'\ntls.certificate = '@ca.pem'",
            "versions.v1.tls.key: missing",
        ),
        (
            "tls.ca = '@ca.pem'\ntls.key = '@gateway.key'",
            "versions.v1.tls.certificate: missing",
        ),
        (
            "tls.ca = '@ca.pem'\ntls.certificate = '@ca.pem'\ntls.key = '@other.key'",
            "versions.v1.tls.key: found the key of another certificate",
        ),
        (
            "tls.ca = '@ca.pem'\ntls.certificate = '@ca.pem'\ntls.key = '@text'",
            "versions.v1.tls.key: found @text, which has no private key in PEM",
        ),
        (
            "tls.ca = '@ca.pem'\ntls.certificate = '@text'\ntls.key = '@gateway.key'",
            "versions.v1.tls.certificate: found @text, which has no certificate in PEM",
        ),
        (
            "tls.ca = '@ca.pem'\ntls.server_name = 'a b'",
            "versions.v1.tls.server_name: found",
        ),
        (
            "tls.ca = ''",
            "versions.v1.tls.ca: found a string; allowed: a file path",
        ),
        (
            "tls.verify = false",
            "unknown key; allowed: server_name, ca, certificate, key",
        ),
    ] {
        let report = files.problems(&format!("{https}{keys}"));
        assert!(report.contains(&files.version(found)), "{keys}\n{report}");
        assert!(
            !report.contains("hush") && !report.contains("PRIVATE"),
            "{report}"
        );
    }
    let report = files.problems("backend = 'login:1'\ntls.ca = '@ca.pem'");
    assert!(
        report.contains("versions.v1.tls: found a table; allowed: tls only beside"),
        "{report}"
    );
    let report = files.problems("backends = ['https://login:1', 'login:2']\ntls.ca = '@ca.pem'");
    assert!(
        report.contains("addresses with and without TLS"),
        "{report}"
    );
    for address in [
        "https://login",
        "https://login:1/",
        "https://",
        "ftp://login:1",
        "https://https://login:1",
    ] {
        let report = files.problems(&format!("backend = '{address}'"));
        assert!(
            report.contains("versions.v1.backend: found"),
            "{address}: {report}"
        );
    }
}

#[test]
fn a_key_that_others_may_read_is_warned_of() {
    let files = Files::create();
    let version = "backend = 'https://127.0.0.1:1'\ntls.ca = '@ca.pem'\ntls.certificate = '@ca.pem'\ntls.key = '@gateway.key'";
    let warnings = || load(&file(&files.version(version))).unwrap().warnings();
    let is_warned = || warnings().iter().any(|line| line.contains("gateway.key"));
    assert!(!is_warned());
    fs::set_permissions(files.path("gateway.key"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(is_warned(), "{:?}", warnings());
}

#[test]
fn a_secret_in_clear_text_is_warned_of() {
    let files = Files::create();
    let secret = "gateway_secret = '4283fefc63f0cd0e873a0000c6d07ef7'\n";
    for (version, is_warned) in [
        ("backend = '127.0.0.1:1'", false),
        ("backend = '192.0.2.1:1'", true),
        ("backend = 'https://192.0.2.1:1'\ntls.ca = '@ca.pem'", false),
    ] {
        let file = format!("{secret}{}", file(&files.version(version)));
        let warnings = load(&file).unwrap().warnings();
        let is_clear = |line: &String| line.contains("clear text");
        assert_eq!(warnings.iter().any(is_clear), is_warned, "{version}");
    }
}

#[test]
fn settings_print_no_key() {
    let files = Files::create();
    let version = "backend = 'https://127.0.0.1:1'\ntls.ca = '@ca.pem'\ntls.certificate = '@ca.pem'\ntls.key = '@gateway.key'";
    let upstream = upstream(&files.version(version));
    for shown in [
        format!("{:?}", upstream.fixed),
        format!("{:?}", upstream.addresses),
    ] {
        assert!(
            shown.contains("TlsPeer(127.0.0.1)") && shown.len() < 200,
            "{shown}"
        );
    }
}
