//! Client certificates: which are accepted, and the subject that the backend gets.

use std::sync::Arc;

use http::HeaderValue;
use rustls::{
    RootCertStore,
    crypto::CryptoProvider,
    pki_types::CertificateDer,
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use x509_cert::{Certificate, der::Decode};

/// Limit of a subject, in bytes as written. A connection whose certificate has a longer one is closed.
const MAX_SUBJECT: usize = 1024;

/// Whether a client must have a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// A client without a certificate is served; a certificate must be valid.
    Optional,
    /// A client without a valid certificate is rejected.
    Required,
    /// As [`Self::Optional`] in the handshake; each request decides whether it needs a certificate.
    ByRequest,
}

/// The certificate of a client has no subject that fits into a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client certificate's subject is malformed or too long")]
pub(crate) struct UnusableSubject;

/// Accepts client certificates of `authorities`; `None` if one of them is malformed.
pub(super) fn verifier(
    authorities: Vec<CertificateDer<'static>>,
    auth: ClientAuth,
    provider: &Arc<CryptoProvider>,
) -> Option<Arc<dyn ClientCertVerifier>> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        // Not skipped: clients of that authority would be rejected, and nothing would say why.
        roots.add(authority).ok()?;
    }
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let builder = match auth {
        ClientAuth::Optional | ClientAuth::ByRequest => builder.allow_unauthenticated(),
        ClientAuth::Required => builder,
    };
    builder.build().ok()
}

/// The subject of a verified certificate as RFC 4514 writes it. Bytes that are not printable ASCII are written as `\XX`,
/// which that RFC allows everywhere.
///
/// # Errors
///
/// It is malformed or too long.
pub(super) fn subject(certificate: &CertificateDer<'_>) -> Result<HeaderValue, UnusableSubject> {
    let certificate = Certificate::from_der(certificate).map_err(|_| UnusableSubject)?;
    // Many names have letters beyond ASCII, so they are escaped instead of rejected. A raw line break would begin
    // another header at the backend.
    let written = escaped(&certificate.tbs_certificate().subject().to_string());
    if written.len() > MAX_SUBJECT {
        return Err(UnusableSubject);
    }
    HeaderValue::try_from(written).map_err(|_| UnusableSubject)
}

fn escaped(subject: &str) -> String {
    let mut written = String::with_capacity(subject.len());
    for byte in subject.bytes() {
        match byte {
            b' '..=b'~' => written.push(byte.into()),
            _ => {
                written.push('\\');
                written.push_str(&hex::encode_upper([byte]));
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_printable() {
        assert_eq!(escaped("CN=api,O=Acme Ltd"), "CN=api,O=Acme Ltd");
        assert_eq!(
            escaped("CN=J\u{f6}rg\r\nX: 1\0"),
            "CN=J\\C3\\B6rg\\0D\\0AX: 1\\00"
        );
    }
}
