//! Certificates for tests: an authority, and what it issues, as PEM.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use rustls::{
    ClientConfig, DEFAULT_VERSIONS, RootCertStore, ServerConfig, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use sha2::{Digest, Sha256};

/// The SHA-256 fingerprint of a certificate's public key, in Base64, as Chromium takes it.
///
/// # Panics
///
/// When the key is malformed.
#[must_use]
pub fn public_key_fingerprint(certificate: &Certificate) -> String {
    let key = KeyPair::from_pem(&certificate.key).expect("it is a key");
    STANDARD.encode(Sha256::digest(key.subject_public_key_info()))
}

/// A certificate authority of one test.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate with its key.
#[derive(Clone)]
pub struct Certificate {
    /// The certificate, as PEM.
    pub certificate: String,
    /// Its key, as PEM.
    pub key: String,
}

impl Certificate {
    /// The configuration of a TLS server with this certificate. If `clients` is given, clients need a certificate of that
    /// authority.
    ///
    /// # Panics
    ///
    /// When the certificate cannot be used.
    #[must_use]
    pub fn server_config(&self, clients: Option<&Authority>) -> ServerConfig {
        self.server_config_for(DEFAULT_VERSIONS, clients)
    }

    /// As [`Self::server_config`], with these versions of TLS alone.
    ///
    /// # Panics
    ///
    /// When the certificate cannot be used.
    #[must_use]
    pub fn server_config_for(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        clients: Option<&Authority>,
    ) -> ServerConfig {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .expect("the provider supports TLS 1.2 and 1.3");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(
                    Arc::new(authority.roots()),
                    provider,
                );
                builder.with_client_cert_verifier(verifier.build().expect("there is a root"))
            }
        };
        let chain = CertificateDer::from_pem_slice(self.certificate.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes());
        builder
            .with_single_cert(
                vec![chain.expect("it is PEM")],
                key.expect("it has a private key"),
            )
            .expect("the key belongs to the certificate")
    }
}

impl Authority {
    /// Creates an authority with this common name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let params = Self::params(name);
        let key = KeyPair::generate().expect("a key can be generated");
        let certificate = params.self_signed(&key).expect("the parameters are valid");
        Self {
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// An authority below this one.
    ///
    /// # Panics
    ///
    /// Never: its parameters are valid.
    #[must_use]
    pub fn issue_authority(&self, name: &str) -> Self {
        let params = Self::params(name);
        let key = KeyPair::generate().expect("a key can be generated");
        let certificate = params.signed_by(&key, &self.issuer);
        Self {
            pem: certificate.expect("the parameters are valid").pem(),
            issuer: Issuer::new(params, key),
        }
    }

    fn params(name: &str) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params
    }

    /// The authority's own certificate, as PEM.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Settings of a TLS client that trusts only this authority. It offers these protocols by ALPN, and its certificate
    /// if it has one.
    ///
    /// # Panics
    ///
    /// When the certificate is malformed.
    #[must_use]
    pub fn client(
        &self,
        protocols: &[&str],
        certificate: Option<&Certificate>,
    ) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring supports TLS 1.2 and 1.3")
            .with_root_certificates(self.roots());
        let mut config = match certificate {
            None => builder.with_no_client_auth(),
            Some(Certificate { certificate, key }) => {
                let chain = CertificateDer::from_pem_slice(certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
                builder
                    .with_client_auth_cert(vec![chain.expect("it is PEM")], key.expect("it is PEM"))
                    .expect("the key belongs to the certificate")
            }
        };
        config.alpn_protocols = protocols
            .iter()
            .map(|one| one.as_bytes().to_vec())
            .collect();
        Arc::new(config)
    }

    /// Trust in this authority alone.
    ///
    /// # Panics
    ///
    /// Never: its own certificate is valid.
    #[must_use]
    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(self.pem.as_bytes());
        let certificate = certificate.expect("it is PEM");
        roots.add(certificate).expect("it is a certificate");
        roots
    }

    /// Issues a certificate for these names, host names or addresses. The first is its common name. It is for servers
    /// and clients.
    #[must_use]
    pub fn issue(&self, names: &[&str]) -> Certificate {
        self.issue_with(names, |_| {})
    }

    /// As [`Self::issue`]; `change` changes the certificate's parameters, for example when it expires.
    #[must_use]
    pub fn issue_with(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Certificate {
        let owned: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(owned).expect("the names are valid");
        params.distinguished_name.push(DnType::CommonName, names[0]);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        change(&mut params);
        let key = KeyPair::generate().expect("a key can be generated");
        let certificate = params
            .signed_by(&key, &self.issuer)
            .expect("the parameters are valid");
        Certificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}
