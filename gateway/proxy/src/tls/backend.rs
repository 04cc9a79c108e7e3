//! TLS to backends: which certificates the gateway trusts, and how it reports a failed handshake. CONTRACT 9.
//!
//! The certificate is always verified, by rustls: its chain, its dates, and its name.

use std::{fmt, io, net::SocketAddr, sync::Arc};

use ::ring::digest::{Context as Digest, SHA256};
use rustls::{
    CertificateError, ClientConfig, Error as TlsError, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// The only protocol that the gateway offers by ALPN.
const ALPN: &[u8] = b"http/1.1";

/// TLS to backends of one name, by the settings of one version.
pub struct TlsPeer {
    id: TlsId,
    name: ServerName<'static>,
    client: Arc<ClientConfig>,
}

/// A hash of all settings of a [`TlsPeer`]: peers with the same id trust the same servers, and show the same certificate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TlsId([u8; 32]);

/// The settings that all peers of a version share.
#[derive(Clone)]
pub(crate) struct TlsSettings {
    id: TlsId,
    client: Arc<ClientConfig>,
}

/// A certificate chain with its key, by which the gateway identifies itself.
pub(crate) struct ClientCertificate {
    /// The chain; the gateway's own certificate is the first.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key of the first.
    pub key: PrivateKeyDer<'static>,
}

/// Where a request is sent: an address, and TLS if the backend has it. Connections are shared only between equal ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address.
    pub address: SocketAddr,
    /// TLS; `None` for plain HTTP.
    pub tls: Option<Arc<TlsPeer>>,
}

impl TlsSettings {
    /// Creates settings that trust `authorities`.
    ///
    /// # Errors
    ///
    /// The client certificate cannot be used, for example because the key is another one's.
    pub(crate) fn new(
        authorities: RootCertStore,
        certificate: Option<ClientCertificate>,
    ) -> Result<Self, TlsError> {
        let id = TlsId::of_settings(&authorities, certificate.as_ref());
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(authorities);
        let mut client = match certificate {
            Some(ClientCertificate { chain, key }) => builder.with_client_auth_cert(chain, key)?,
            None => builder.with_no_client_auth(),
        };
        client.alpn_protocols = vec![ALPN.to_vec()];
        let client = Arc::new(client);
        Ok(Self { id, client })
    }

    /// The peer whose certificate must be for `name`.
    #[must_use]
    pub(crate) fn peer(&self, name: ServerName<'static>) -> TlsPeer {
        let mut hash = new_digest();
        hash.update(&self.id.0);
        // The only part without a fixed length is the last, so it needs no length in front.
        hash.update(name.to_str().as_bytes());
        TlsPeer {
            id: TlsId::from_hash(hash),
            name,
            // Shared by all peers of a version: rustls keeps the sessions to resume in it, by name.
            client: Arc::clone(&self.client),
        }
    }
}

impl TlsPeer {
    /// Performs the handshake. The caller limits its time.
    ///
    /// # Errors
    ///
    /// The backend does not speak TLS, its certificate is not valid, or it rejects the gateway. The text says why.
    pub async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> Result<TlsStream<S>, String> {
        let connector = TlsConnector::from(Arc::clone(&self.client));
        let connected = connector.connect(self.name.clone(), stream).await;
        connected.map_err(|error| format!("TLS: {}", self.reason(&error)))
    }

    /// Why a handshake failed, in an operator's words.
    fn reason(&self, error: &io::Error) -> String {
        let inner = error.get_ref();
        match inner.and_then(|inner| inner.downcast_ref::<TlsError>()) {
            Some(TlsError::InvalidCertificate(invalid)) => self.certificate_reason(invalid),
            Some(TlsError::AlertReceived(alert)) => {
                format!("the backend rejected the handshake ({alert:?})")
            }
            // Usually the port of plain HTTP, whose first bytes are no record of TLS.
            Some(TlsError::InvalidMessage(_)) => "the backend does not speak TLS".to_owned(),
            Some(other) => other.to_string(),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                "the backend closed the connection during the handshake".to_owned()
            }
            None => error.to_string(),
        }
    }

    fn certificate_reason(&self, invalid: &CertificateError) -> String {
        use CertificateError as Why;
        match invalid {
            Why::Expired | Why::ExpiredContext { .. } => {
                "the backend's certificate has expired".to_owned()
            }
            Why::NotValidYet | Why::NotValidYetContext { .. } => {
                "the backend's certificate is not valid yet".to_owned()
            }
            // The verifier finds an authority by its name. A private one that was created anew often has the name of
            // the old one.
            Why::BadSignature => {
                "the backend's certificate is of an unknown authority with the name of a known one"
                    .to_owned()
            }
            Why::UnknownIssuer => "the backend's certificate is of an unknown authority".to_owned(),
            Why::NotValidForName | Why::NotValidForNameContext { .. } => {
                format!(
                    "the backend's certificate is not for {}",
                    self.name.to_str()
                )
            }
            other => format!("the backend's certificate is invalid: {other}"),
        }
    }
}

impl TlsId {
    fn of_settings(authorities: &RootCertStore, certificate: Option<&ClientCertificate>) -> Self {
        let mut hash = new_digest();
        // Every part is preceded by its length: otherwise two lists of parts could have the same hash.
        let mut add = |part: &[u8]| {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        add(&(authorities.len() as u64).to_be_bytes());
        // All that the verifier knows of an authority.
        for authority in &authorities.roots {
            add(&authority.subject);
            add(&authority.subject_public_key_info);
            add(authority.name_constraints.as_deref().unwrap_or_default());
        }
        if let Some(ClientCertificate { chain, key }) = certificate {
            for certificate in chain {
                add(certificate);
            }
            add(key.secret_der());
        }
        Self::from_hash(hash)
    }

    fn from_hash(hash: Digest) -> Self {
        let mut id = [0; 32];
        id.copy_from_slice(hash.finish().as_ref());
        Self(id)
    }
}

fn new_digest() -> Digest {
    Digest::new(&SHA256)
}

impl Endpoint {
    /// An address that speaks plain HTTP.
    #[cfg(test)]
    pub const fn plain(address: SocketAddr) -> Self {
        Self { address, tls: None }
    }

    /// What equal endpoints have in common. Comparing it costs much less than hashing it would.
    pub(crate) fn id(&self) -> EndpointId {
        (self.address, self.tls.as_ref().map(|tls| tls.id))
    }
}

/// The identity of an [`Endpoint`].
pub(crate) type EndpointId = (SocketAddr, Option<TlsId>);

impl PartialEq for TlsPeer {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for TlsPeer {}

/// Prints the name alone: the settings have a key.
impl fmt::Debug for TlsPeer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TlsPeer({})", self.name.to_str())
    }
}
