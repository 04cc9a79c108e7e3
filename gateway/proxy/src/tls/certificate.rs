//! A certificate with its key, as read from files.

use std::{
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustls::{
    Error, InconsistentKeys, crypto::CryptoProvider, pki_types::CertificateDer, sign::CertifiedKey,
};
use signpost_kit::{
    clock::Timestamp,
    config::{ReadFile, read_regular},
};
use signpost_store::pem::{self, PemError};
use x509_cert::{
    Certificate,
    der::Decode,
    ext::pkix::{SubjectAltName, name::GeneralName},
    time::Time,
};
use zeroize::Zeroizing;

/// The files of a certificate, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, then the intermediate ones.
    pub certificate: PathBuf,
    /// Its private key: PKCS #8, PKCS #1 or SEC 1, without a passphrase.
    pub key: PathBuf,
}

/// A certificate that was read, with its key.
#[derive(Clone)]
pub struct LoadedCertificate {
    /// The file that it was read from.
    pub file: PathBuf,
    /// The host names that it is valid for, in lower case; some begin with `*.`.
    pub names: Vec<String>,
    /// When it is valid.
    pub validity: Validity,
    /// What is odd about its chain.
    pub chain_warning: Option<String>,
    /// The chain and the key.
    pub key: Arc<CertifiedKey>,
}

/// When a certificate is valid. Ordered by its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Validity {
    /// When it expires.
    pub expires: Timestamp,
    /// When it begins to be valid.
    pub begins: Timestamp,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("\"{}\", {fault}", path.display())]
pub struct CertificateError {
    /// The file.
    path: PathBuf,
    /// What is wrong with it.
    fault: CertificateFault,
}

/// What is wrong with a file of a certificate. Follows the file's name in a message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateFault {
    /// It is missing, or cannot be read.
    #[error("which cannot be read ({0})")]
    Unreadable(std::io::Error),
    /// It is not understood, or has nothing that is needed.
    #[error("{0}")]
    Pem(PemError),
    /// A certificate is malformed.
    #[error("which has a malformed certificate")]
    Malformed,
    /// The kind of key is not supported.
    #[error("whose kind of key is not supported")]
    KeyUnsupported,
    /// The key belongs to another certificate.
    #[error("which is the key of another certificate than the first of its file")]
    OtherKey,
}

impl CertificateFault {
    /// The error of this file.
    pub(super) fn of(self, path: &Path) -> CertificateError {
        CertificateError {
            path: path.to_owned(),
            fault: self,
        }
    }
}

impl CertificateError {
    /// Whether the key's file is at fault, not the certificate's.
    pub(crate) fn is_about_key(&self, files: &CertificateFiles) -> bool {
        self.path == files.key && !matches!(self.fault, CertificateFault::Malformed)
    }
}

impl CertificateFiles {
    /// Reads both files, and records them in `files`. Blocks.
    ///
    /// # Errors
    ///
    /// A file cannot be read, has another content, or the key belongs to another certificate.
    pub fn load(
        &self,
        provider: &CryptoProvider,
        files: &mut Vec<ReadFile>,
    ) -> Result<LoadedCertificate, CertificateError> {
        let pem = read_file(&self.certificate, files)?;
        let chain = certificates(&self.certificate, &pem)?;
        let key_pem = read_file(&self.key, files)?;
        let key = pem::private_key(&key_pem);
        let key = key.map_err(|error| CertificateFault::Pem(error).of(&self.key))?;
        let malformed = || CertificateFault::Malformed.of(&self.certificate);
        // rustls sends intermediate certificates unread: parsed here, a malformed one fails at the load, not at the
        // clients.
        let parsed = chain
            .iter()
            .map(|certificate| Certificate::from_der(certificate));
        let parsed = parsed.collect::<Result<Vec<_>, _>>();
        let parsed = parsed.map_err(|_| malformed())?;
        let leaf = parsed.first().ok_or_else(malformed)?;
        let key = CertifiedKey::from_der(chain, key, provider);
        let key = key.map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                CertificateFault::OtherKey.of(&self.key)
            }
            Error::InvalidCertificate(_) => malformed(),
            _ => CertificateFault::KeyUnsupported.of(&self.key),
        })?;
        let validity = leaf.tbs_certificate().validity();
        Ok(LoadedCertificate {
            file: self.certificate.clone(),
            names: names(leaf),
            chain_warning: chain_warning(&parsed),
            validity: Validity {
                expires: timestamp(validity.not_after),
                begins: timestamp(validity.not_before),
            },
            key: Arc::new(key),
        })
    }
}

/// A certificate is warned of when less than one of these parts of its lifetime is left: later than ACME clients renew it,
/// at a third, or at a half if it is valid for days only. `conf/guides/edge.md`.
const WARNED_PARTS: [u32; 3] = [4, 8, 16];
/// A longer lifetime counts as this one: otherwise a certificate of ten years would be warned of for two.
const MAX_LIFETIME: Duration = Duration::from_secs(120 * 24 * HOUR);
const HOUR: u64 = 60 * 60;

impl Validity {
    /// How urgent a renewal is: 4, 8 or 16 if less than that part of the lifetime is left, 0 if the certificate has expired.
    pub fn warned_part(&self, now: Timestamp) -> Option<u32> {
        if self.expires <= now {
            return Some(0);
        }
        let left = self.expires.since(now);
        let lifetime = self.expires.since(self.begins).min(MAX_LIFETIME);
        // The most urgent part first: it implies the others.
        let mut parts = WARNED_PARTS.into_iter().rev();
        parts.find(|part| left < lifetime / *part)
    }
}

impl LoadedCertificate {
    /// What to say of a chain that clients may refuse.
    pub(super) fn chain_warning(&self) -> Option<String> {
        let (file, names) = (self.file.display(), self.names.join(", "));
        let warning = self.chain_warning.as_ref();
        warning.map(|warning| format!("the chain in {file} ({names}) {warning}"))
    }

    /// What to say about a certificate that expires soon, or has expired.
    pub fn expiry_warning(&self, now: Timestamp) -> Option<String> {
        let file = self.file.display();
        let names = self.names.join(", ");
        let end = match self.validity.warned_part(now)? {
            0 => "has expired".to_owned(),
            _ => format!(
                "expires in {}",
                days_or_hours(self.validity.expires.since(now))
            ),
        };
        Some(format!("the certificate in {file} ({names}) {end}"))
    }
}

/// A time for people: whole days, or hours if it is less than two days.
fn days_or_hours(time: Duration) -> String {
    match time.as_secs() / HOUR {
        0 => "less than an hour".to_owned(),
        1 => "1 hour".to_owned(),
        hours @ 2..48 => format!("{hours} hours"),
        hours => format!("{} days", hours / 24),
    }
}

fn timestamp(time: Time) -> Timestamp {
    let millis = time.to_unix_duration().as_millis();
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// Reads a file and records it in `files`.
pub(super) fn read_file(
    path: &Path,
    files: &mut Vec<ReadFile>,
) -> Result<Zeroizing<Vec<u8>>, CertificateError> {
    let content = read_regular(path);
    // Recorded even if it cannot be read: the watcher of files has to notice when it can.
    files.push(ReadFile::new(
        path,
        content.as_ref().ok().map(|content| &content[..]),
    ));
    content.map_err(|error| CertificateFault::Unreadable(error).of(path))
}

/// The certificates in a PEM file: at least one.
pub(super) fn certificates(
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    pem::certificates(pem).map_err(|error| CertificateFault::Pem(error).of(path))
}

/// What is odd about a chain: most clients have the roots only, and put the certificates of a server in no other order.
fn chain_warning(chain: &[Certificate]) -> Option<String> {
    // Names suffice for a warning. Clients verify the signatures.
    let is_issued = |issued: &Certificate, by: &Certificate| {
        issued.tbs_certificate().issuer() == by.tbs_certificate().subject()
    };
    let (leaf, others) = chain.split_first()?;
    let issuer = leaf.tbs_certificate().issuer();
    // A self-signed certificate has no issuer to append: clients that accept it have it already.
    if is_issued(leaf, leaf) {
        None
    } else if !others.iter().any(|other| is_issued(leaf, other)) {
        Some(format!(
            "lacks the certificate of its issuer, {issuer}: append it, unless clients have that one"
        ))
    } else if !chain.windows(2).all(|pair| is_issued(&pair[0], &pair[1])) {
        Some(
            "is in the wrong order: each certificate must stand before that of its issuer"
                .to_owned(),
        )
    } else {
        None
    }
}

/// The host names and addresses of a certificate (RFC 5280 section 4.2.1.6).
fn names(certificate: &Certificate) -> Vec<String> {
    // Not the common name: clients ignore it (RFC 9525 section 2).
    let alternatives = certificate
        .tbs_certificate()
        .get_extension::<SubjectAltName>();
    let alternatives = alternatives.ok().flatten().map(|(_, names)| names.0);
    let name = |name: GeneralName| match name {
        GeneralName::DnsName(name) => Some(name.as_str().to_ascii_lowercase()),
        GeneralName::IpAddress(bytes) => address(bytes.as_bytes()).map(|ip| ip.to_string()),
        _ => None,
    };
    alternatives
        .into_iter()
        .flatten()
        .filter_map(name)
        .collect()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let v6 = || <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| v6()).ok()
}

/// Prints no key.
impl fmt::Debug for LoadedCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LoadedCertificate({})", self.file.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * HOUR;

    /// What is warned of a certificate of this lifetime when this time is left.
    fn warned_part(lifetime: u64, left: u64) -> Option<u32> {
        let at = |seconds: u64| Timestamp::from_millis(i64::try_from(seconds).unwrap() * 1000);
        let validity = Validity {
            expires: at(lifetime),
            begins: at(0),
        };
        validity.warned_part(at(lifetime - left))
    }

    /// Certbot renews at a third, or at a half if a certificate is valid for less than ten days, twice a day.
    #[test]
    fn a_certificate_that_is_renewed_as_certbot_does_is_never_warned_of() {
        for (lifetime, renewed) in [
            (160 * HOUR, 80 * HOUR),
            (47 * DAY, 47 * DAY / 3),
            (64 * DAY, 64 * DAY / 3),
            (90 * DAY, 30 * DAY),
            (365 * DAY, 365 * DAY / 3),
        ] {
            let late = renewed - 3 * DAY / 2;
            assert_eq!(warned_part(lifetime, late), None, "{lifetime}");
            let end = lifetime.min(120 * DAY) / 20;
            assert_eq!(warned_part(lifetime, end), Some(16), "{lifetime}");
        }
    }

    #[test]
    fn warnings_follow_the_part_of_the_lifetime_that_is_left() {
        for (lifetime, left, expected) in [
            (64 * DAY, 16 * DAY, None),
            (64 * DAY, 16 * DAY - 1, Some(4)),
            (64 * DAY, 8 * DAY - 1, Some(8)),
            (64 * DAY, 4 * DAY - 1, Some(16)),
            (64 * DAY, 0, Some(0)),
            (160 * HOUR, 40 * HOUR, None),
            (160 * HOUR, 40 * HOUR - 1, Some(4)),
            // Longer lifetimes count as 120 days.
            (3650 * DAY, 30 * DAY, None),
            (3650 * DAY, 30 * DAY - 1, Some(4)),
            (0, 0, Some(0)),
        ] {
            assert_eq!(warned_part(lifetime, left), expected, "{lifetime} {left}");
        }
    }

    #[test]
    fn a_time_is_said_in_days_or_hours() {
        for (seconds, said) in [
            (0, "less than an hour"),
            (HOUR, "1 hour"),
            (2 * DAY - 1, "47 hours"),
            (2 * DAY, "2 days"),
            (30 * DAY - 1, "29 days"),
        ] {
            assert_eq!(days_or_hours(Duration::from_secs(seconds)), said);
        }
    }
}
