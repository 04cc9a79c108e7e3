//! TLS to a version's backend: whom the gateway trusts, and its own certificate. CONTRACT 9.

use std::sync::Arc;

use rustls::{
    Error as TlsError, InconsistentKeys, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use signpost_kit::config::{Invalid, NamedFile, Read, Section};
use signpost_store::pem;

use super::address::{BackendAddress, HostPort, WrittenAddresses};
use crate::tls::backend::{ClientCertificate, TlsSettings};

const SERVER_NAME: &str = "server_name";
const CA: &str = "ca";
const CERTIFICATE: &str = "certificate";
const KEY: &str = "key";

const ALLOWED_NAME: &str = "the host name or IP address in the backend's certificate";
const ALLOWED_CERTIFICATES: &str = "a PEM file with at least one certificate";
const ALLOWED_KEY: &str = "a PEM file with the private key of tls.certificate";

/// Reads the `tls` table of a version, and adds TLS to its addresses if they are https.
pub(super) fn with_tls(
    section: &mut Section<'_>,
    addresses: Read<WrittenAddresses>,
) -> Read<Vec<BackendAddress>> {
    let are_https = addresses.as_ref().is_ok_and(|written| written.are_https);
    let tls = section.section("tls", |tls| {
        let name = tls.optional_by(SERVER_NAME, ALLOWED_NAME, server_name);
        let settings = settings(tls, are_https);
        Ok((name?, settings?))
    });
    let mut addresses = addresses?.all;
    if section.has("tls") && !are_https {
        let allowed = "tls only beside addresses that begin with https://";
        return Err(section.problem("tls", "a table", allowed));
    }
    if let (name, Some(settings)) = tls? {
        for address in &mut addresses {
            let name = match &name {
                Some(name) => name.clone(),
                None => host_name(section, &address.host_port)?,
            };
            address.tls = Some(Arc::new(settings.peer(name)));
        }
    }
    Ok(addresses)
}

/// Reads the files of the table; `None` if the addresses have no TLS.
fn settings(section: &mut Section<'_>, are_https: bool) -> Read<Option<TlsSettings>> {
    // All three before the first problem ends this: a key that is not read counts as unknown.
    let files = [CA, CERTIFICATE, KEY].map(|key| section.file(key));
    match (section.has(CERTIFICATE), section.has(KEY)) {
        (true, false) => return Err(section.missing(KEY, ALLOWED_KEY)),
        (false, true) => return Err(section.missing(CERTIFICATE, ALLOWED_CERTIFICATES)),
        _ => {}
    }
    let [ca, certificate, key] = files;
    let (ca, certificate) = (ca?, certificate?.zip(key?));
    if !are_https {
        return Ok(None);
    }
    let authorities = authorities(section, ca.as_ref());
    let certificate = certificate.map(|(chain, key)| client_certificate(section, &chain, &key));
    let settings = TlsSettings::new(authorities?, certificate.transpose()?);
    let settings = settings.map_err(|error| unusable_certificate(section, &error));
    settings.map(Some)
}

/// The authorities in a file; by default, the system's authorities.
fn authorities(section: &Section<'_>, file: Option<&NamedFile>) -> Read<RootCertStore> {
    let mut authorities = RootCertStore::empty();
    let Some(file) = file else {
        // The system's list is not the operator's to correct, so what rustls cannot read of it is skipped. In the
        // operator's own file it is a problem.
        let system = rustls_native_certs::load_native_certs().certs;
        authorities.add_parsable_certificates(system);
        if authorities.is_empty() {
            let allowed = "a file, since this system has no certificates of authorities";
            return Err(section.missing(CA, allowed));
        }
        return Ok(authorities);
    };
    for certificate in certificates(section, CA, file)? {
        authorities.add(certificate).map_err(|error| {
            let fault = format!("{}, with an invalid certificate ({error})", shown(file));
            section.problem(CA, &fault, ALLOWED_CERTIFICATES)
        })?;
    }
    Ok(authorities)
}

/// The certificate by which the gateway identifies itself to the backend.
fn client_certificate(
    section: &Section<'_>,
    chain: &NamedFile,
    key: &NamedFile,
) -> Read<ClientCertificate> {
    section.note_secret(KEY, Some(&key.path));
    let chain = certificates(section, CERTIFICATE, chain);
    let key = pem::private_key(&key.content).map_err(|error| {
        let fault = format!("{}, {error}", shown(key));
        section.problem(KEY, &fault, ALLOWED_KEY)
    });
    let (chain, key) = (chain?, key?);
    Ok(ClientCertificate { chain, key })
}

/// The certificates in a file: at least one.
fn certificates(
    section: &Section<'_>,
    key: &str,
    file: &NamedFile,
) -> Read<Vec<CertificateDer<'static>>> {
    pem::certificates(&file.content).map_err(|error| {
        let fault = format!("{}, {error}", shown(file));
        section.problem(key, &fault, ALLOWED_CERTIFICATES)
    })
}

fn unusable_certificate(section: &Section<'_>, error: &TlsError) -> Invalid {
    match error {
        TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            section.problem(KEY, "the key of another certificate", ALLOWED_KEY)
        }
        error => {
            let fault = format!("a certificate or key that cannot be used ({error})");
            section.problem(CERTIFICATE, &fault, ALLOWED_CERTIFICATES)
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
