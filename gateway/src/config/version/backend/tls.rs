//! TLS to a version's backend: whom the gateway trusts, and its own certificate. CONTRACT 9.

use std::sync::Arc;

use rustls::{
    Error as TlsError, InconsistentKeys, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use signpost_kit::config::{Invalid, NamedFile, Read, Section};

use super::address::{BackendAddress, HostPort, WrittenAddress};
use crate::tls::backend::{ClientCertificate, TlsSettings};

const SERVER_NAME: &str = "server_name";
const CA: &str = "ca";
const CERTIFICATE: &str = "certificate";
const KEY: &str = "key";

const ALLOWED_NAME: &str = "the host name or IP address in the backend's certificate";
const ALLOWED_CERTIFICATES: &str = "a PEM file with at least one certificate";
const ALLOWED_KEY: &str = "a PEM file with the private key of tls.certificate";

/// The `tls` table of a version whose addresses are https.
struct TlsKeys {
    /// In place of the host of each address.
    server_name: Option<ServerName<'static>>,
    settings: TlsSettings,
}

/// The files of the `tls` table.
struct TlsFiles {
    ca: Option<NamedFile>,
    certificate: Option<NamedFile>,
    key: Option<NamedFile>,
}

/// Reads the `tls` table of a version, and adds TLS to its addresses if they are https.
pub(super) fn with_tls(
    section: &mut Section<'_>,
    addresses: Read<Vec<WrittenAddress>>,
) -> Read<Vec<BackendAddress>> {
    let has_table = section.has("tls");
    let is_https = |addresses: &Vec<WrittenAddress>| addresses.iter().any(|one| one.is_https);
    let is_https = addresses.as_ref().is_ok_and(is_https);
    let keys = section.section("tls", |tls| TlsKeys::read(tls, is_https));
    let addresses = addresses?;
    if has_table && !is_https {
        let allowed = "tls only beside addresses that begin with https://";
        return Err(section.problem("tls", "a table", allowed));
    }
    let keys = keys?;
    let with_tls = |address: WrittenAddress| {
        let peer = |keys: &TlsKeys| {
            let name = keys.server_name.clone();
            let name = name.map_or_else(|| host_name(section, &address.host_port), Ok);
            name.map(|name| Arc::new(keys.settings.peer(name)))
        };
        Ok(BackendAddress {
            tls: keys.as_ref().map(peer).transpose()?,
            host_port: address.host_port,
            weight: address.weight,
        })
    };
    addresses.into_iter().map(with_tls).collect()
}

impl TlsKeys {
    /// Reads the table; `None` if the addresses have no TLS.
    fn read(section: &mut Section<'_>, is_https: bool) -> Read<Option<Self>> {
        let server_name = section.optional_by(SERVER_NAME, ALLOWED_NAME, server_name);
        let files = TlsFiles::read(section);
        if !is_https {
            return files.map(|_| None);
        }
        let files = files?;
        if let Some(key) = &files.key {
            section.note_secret(KEY, Some(&key.path));
        }
        let authorities = authorities(section, files.ca.as_ref());
        let certificate = client_certificate(section, &files);
        let settings = TlsSettings::new(authorities?, certificate?);
        let settings = settings.map_err(|error| unusable_certificate(section, &error));
        Ok(Some(Self {
            server_name: server_name?,
            settings: settings?,
        }))
    }
}

impl TlsFiles {
    fn read(section: &mut Section<'_>) -> Read<Self> {
        let ca = section.file(CA);
        let certificate = section.file(CERTIFICATE);
        let key = section.file(KEY);
        let has = |section: &Section<'_>, key| section.has(key);
        if has(section, CERTIFICATE) && !has(section, KEY) {
            return Err(section.missing(KEY, ALLOWED_KEY));
        }
        if has(section, KEY) && !has(section, CERTIFICATE) {
            return Err(section.missing(CERTIFICATE, ALLOWED_CERTIFICATES));
        }
        Ok(Self {
            ca: ca?,
            certificate: certificate?,
            key: key?,
        })
    }
}

/// The authorities in a file; by default, those of the system.
fn authorities(section: &Section<'_>, file: Option<&NamedFile>) -> Read<RootCertStore> {
    let mut authorities = RootCertStore::empty();
    let Some(file) = file else {
        let found = rustls_native_certs::load_native_certs().certs;
        authorities.add_parsable_certificates(found);
        if authorities.is_empty() {
            let allowed = "a file, since this system has no certificates of authorities";
            return Err(section.missing(CA, allowed));
        }
        return Ok(authorities);
    };
    for certificate in certificates(section, CA, file)? {
        authorities.add(certificate).map_err(|error| {
            let found = format!("{}, with an invalid certificate ({error})", shown(file));
            section.problem(CA, &found, ALLOWED_CERTIFICATES)
        })?;
    }
    Ok(authorities)
}

/// The certificate by which the gateway identifies itself to the backend.
fn client_certificate(section: &Section<'_>, files: &TlsFiles) -> Read<Option<ClientCertificate>> {
    let (Some(chain), Some(key)) = (&files.certificate, &files.key) else {
        return Ok(None);
    };
    let chain = certificates(section, CERTIFICATE, chain);
    let key = PrivateKeyDer::from_pem_slice(&key.content).map_err(|_| {
        // Not the error itself: it may quote the file.
        let found = format!("{}, which has no private key in PEM", shown(key));
        section.problem(KEY, &found, ALLOWED_KEY)
    });
    let (chain, key) = (chain?, key?);
    Ok(Some(ClientCertificate { chain, key }))
}

/// The certificates in a file: at least one.
fn certificates(
    section: &Section<'_>,
    key: &str,
    file: &NamedFile,
) -> Read<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&file.content).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => {
            let found = format!("{}, which has no certificate in PEM", shown(file));
            Err(section.problem(key, &found, ALLOWED_CERTIFICATES))
        }
        Err(_) => {
            let found = format!("{}, which is not valid PEM", shown(file));
            Err(section.problem(key, &found, ALLOWED_CERTIFICATES))
        }
    }
}

fn unusable_certificate(section: &Section<'_>, error: &TlsError) -> Invalid {
    match error {
        TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            section.problem(KEY, "the key of another certificate", ALLOWED_KEY)
        }
        error => {
            let found = format!("a certificate or key that cannot be used ({error})");
            section.problem(CERTIFICATE, &found, ALLOWED_CERTIFICATES)
        }
    }
}

fn shown(file: &NamedFile) -> String {
    file.path.display().to_string()
}

/// The name in the certificate of a backend, by its address.
fn host_name(section: &Section<'_>, host_port: &HostPort) -> Read<ServerName<'static>> {
    let name = match host_port {
        HostPort::Address(address) => Some(ServerName::from(address.ip())),
        HostPort::Name(host, _) => server_name(host),
    };
    name.ok_or_else(|| section.missing("tls.server_name", ALLOWED_NAME))
}

/// Parses a host name or an IP address. A dot at the end of a name is not in a certificate.
fn server_name(text: &str) -> Option<ServerName<'static>> {
    let text = text.strip_suffix('.').unwrap_or(text);
    ServerName::try_from(text.to_ascii_lowercase()).ok()
}
