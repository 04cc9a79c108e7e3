//! The certificate of contestants that speak TLS, and the load's side of a handshake.
//!
//! The contestants keep their defaults. The load offers one cipher suite and one key exchange, so all use the same.

use std::{fmt, fs, path::Path, sync::Arc};

use end_to_end::certificates::{Authority, Certificate};
use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    crypto::{
        CryptoProvider,
        ring::{self, cipher_suite::TLS13_AES_128_GCM_SHA256, kx_group::X25519},
    },
    pki_types::{CertificateDer, ServerName, pem::PemObject},
    version::TLS13,
};

/// Name of the file with the certificate, in a contestant's folder.
pub const CERTIFICATE_FILE: &str = "server.pem";

/// Name of the file with the certificate's key. `HAProxy` looks for the certificate's file name with `.key` appended.
pub const CERTIFICATE_KEY_FILE: &str = "server.pem.key";

/// The server name of all requests, and of the certificate.
pub const SERVER_NAME: &str = "api.example.com";

/// One ECDSA P-256 certificate, issued for this run, and the authority that the load trusts.
pub struct Tls {
    certificate: Certificate,
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

/// Whether a client resumes sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sessions {
    /// Never: each handshake is a full one.
    New,
    /// Whenever it has one from an earlier connection.
    Resumed,
}

impl Tls {
    /// Issues the certificate.
    ///
    /// # Errors
    ///
    /// When the authority's certificate is not a valid root.
    pub fn generate() -> anyhow::Result<Self> {
        let authority = Authority::new("Signpost bench");
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes())?)?;
        Ok(Self {
            certificate: authority.issue(&[SERVER_NAME]),
            roots: Arc::new(roots),
            provider: Arc::new(CryptoProvider {
                cipher_suites: vec![TLS13_AES_128_GCM_SHA256],
                kx_groups: vec![X25519],
                ..ring::default_provider()
            }),
        })
    }

    /// The certificate and its key, as PEM.
    pub const fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Writes the certificate and its key into a contestant's folder.
    ///
    /// # Errors
    ///
    /// When they cannot be written.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        fs::write(folder.join(CERTIFICATE_FILE), &self.certificate.certificate)?;
        fs::write(folder.join(CERTIFICATE_KEY_FILE), &self.certificate.key)?;
        Ok(())
    }

    /// The configuration of a client that offers this protocol by ALPN. It shares no sessions with other clients.
    ///
    /// # Errors
    ///
    /// When the provider has no cipher suite of TLS 1.3.
    pub fn client(&self, protocol: &str, sessions: Sessions) -> anyhow::Result<ClientConfig> {
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(Arc::clone(&self.roots))
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        config.resumption = match sessions {
            Sessions::New => Resumption::disabled(),
            Sessions::Resumed => own_sessions(),
        };
        Ok(config)
    }
}

/// Without the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// A client's store of sessions: of one server.
pub fn own_sessions() -> Resumption {
    Resumption::in_memory_sessions(1)
}

/// The server name as a handshake needs it.
pub fn server_name() -> ServerName<'static> {
    ServerName::try_from(SERVER_NAME).expect("SERVER_NAME is a valid host name")
}
