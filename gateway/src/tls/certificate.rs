//! A certificate with its key, as read from files.

use std::{
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    Error, InconsistentKeys,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use signpost_kit::{
    clock::Timestamp,
    config::{ReadFile, read_regular},
};
use x509_cert::{
    Certificate,
    der::Decode,
    ext::pkix::{SubjectAltName, name::GeneralName},
};
use zeroize::Zeroizing;

/// The files of a certificate, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateFiles {
    /// The certificate, then the intermediate ones.
    pub certificate: PathBuf,
    /// Its private key: PKCS #8, PKCS #1 or SEC 1, without a passphrase.
    pub key: PathBuf,
}

/// A certificate that was read, with its key.
#[derive(Clone)]
pub(crate) struct LoadedCertificate {
    /// The file that it was read from.
    pub file: PathBuf,
    /// The host names that it is valid for, in lower case; some begin with `*.`.
    pub names: Vec<String>,
    /// When it expires.
    pub expires: Timestamp,
    /// The chain and the key.
    pub key: Arc<CertifiedKey>,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    /// A file is missing, or cannot be read.
    #[error("\"{}\", which cannot be read ({cause})", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The file has no certificate, or a malformed one.
    #[error("\"{}\", which has no valid certificate in PEM", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file has no key without a passphrase.
    #[error("\"{}\", which has no private key in PEM, or one with a passphrase", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The kind of key is not supported.
    #[error("\"{}\", whose kind of key is not supported", path.display())]
    KeyUnsupported {
        /// The file.
        path: PathBuf,
    },
    /// The key belongs to another certificate.
    #[error("\"{}\", which is the key of another certificate", path.display())]
    OtherKey {
        /// The key's file.
        path: PathBuf,
    },
}

impl CertificateError {
    /// Whether the key's file is at fault, not the certificate's.
    pub(crate) fn is_about_key(&self, files: &CertificateFiles) -> bool {
        match self {
            Self::Unreadable { path, .. } => *path == files.key,
            Self::NoCertificate { .. } => false,
            Self::NoKey { .. } | Self::KeyUnsupported { .. } | Self::OtherKey { .. } => true,
        }
    }
}

impl CertificateFiles {
    /// Reads both files, and records them in `read`. Blocks.
    ///
    /// # Errors
    ///
    /// A file cannot be read, has another content, or the key belongs to another certificate.
    pub(crate) fn load(
        &self,
        provider: &CryptoProvider,
        read: &mut Vec<ReadFile>,
    ) -> Result<LoadedCertificate, CertificateError> {
        let pem = read_file(&self.certificate, read)?;
        let chain = certificates(&self.certificate, &pem)?;
        let key_pem = read_file(&self.key, read)?;
        let key = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|_| CertificateError::NoKey {
            path: self.key.clone(),
        })?;
        let no_certificate = || CertificateError::NoCertificate {
            path: self.certificate.clone(),
        };
        let leaf = chain.first().ok_or_else(no_certificate)?;
        let leaf = Certificate::from_der(leaf).map_err(|_| no_certificate())?;
        let key = CertifiedKey::from_der(chain, key, provider);
        let key = key.map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => CertificateError::OtherKey {
                path: self.key.clone(),
            },
            Error::InvalidCertificate(_) => no_certificate(),
            _ => CertificateError::KeyUnsupported {
                path: self.key.clone(),
            },
        })?;
        let expires = leaf.tbs_certificate.validity.not_after.to_unix_duration();
        let expires = i64::try_from(expires.as_millis()).unwrap_or(i64::MAX);
        Ok(LoadedCertificate {
            file: self.certificate.clone(),
            names: names(&leaf),
            expires: Timestamp::from_millis(expires),
            key: Arc::new(key),
        })
    }
}

/// How long before its end a certificate is warned of.
const WARNED_DAYS: u64 = 30;
const DAY: u64 = 24 * 60 * 60;

impl LoadedCertificate {
    /// Whole days until the certificate expires; `None` if it has expired.
    pub(crate) fn days_left(&self, now: Timestamp) -> Option<u64> {
        (self.expires > now).then(|| self.expires.since(now).as_secs() / DAY)
    }

    /// What to say about a certificate that expires within 30 days, or has expired.
    pub(crate) fn expiry_warning(&self, now: Timestamp) -> Option<String> {
        let file = self.file.display();
        let names = self.names.join(", ");
        match self.days_left(now) {
            None => Some(format!("the certificate in {file} ({names}) has expired")),
            Some(days @ 0..=WARNED_DAYS) => Some(format!(
                "the certificate in {file} ({names}) expires in {days} days"
            )),
            Some(_) => None,
        }
    }
}

/// Reads a file and records it in `read`.
pub(super) fn read_file(
    path: &Path,
    read: &mut Vec<ReadFile>,
) -> Result<Zeroizing<Vec<u8>>, CertificateError> {
    let content = read_regular(path);
    read.push(ReadFile::new(
        path,
        content.as_ref().ok().map(|content| &content[..]),
    ));
    content.map_err(|cause| CertificateError::Unreadable {
        path: path.to_owned(),
        cause,
    })
}

/// The certificates in a PEM file: at least one.
pub(super) fn certificates(
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    all.ok()
        .filter(|all| !all.is_empty())
        .ok_or_else(|| CertificateError::NoCertificate {
            path: path.to_owned(),
        })
}

/// The host names and addresses of a certificate (RFC 5280 section 4.2.1.6).
fn names(certificate: &Certificate) -> Vec<String> {
    let alternatives = certificate.tbs_certificate.get::<SubjectAltName>();
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
