//! TLS for clients: certificates by server name, client certificates, session resumption. rustls on ring, TLS 1.2 and
//! 1.3.
//!
//! What was loaded is replaced as a whole, when the configuration is reloaded or a file has changed. A connection keeps
//! what it began with. If new files are invalid, the old ones stay.

pub(crate) mod backend;
mod certificate;
mod client_certificates;
mod client_session;
mod server_names;

pub(crate) use self::certificate::LoadedCertificate;
pub(crate) use self::{
    certificate::{CertificateError, CertificateFiles, Validity},
    client_certificates::{ClientAuth, UnusableSubject},
};

use std::{
    fmt, io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;
use http::HeaderValue;
use rustls::{
    ProtocolVersion, ServerConfig, ServerConnection,
    crypto::ring,
    server::{NoServerSessionStorage, ProducesTickets, danger::ClientCertVerifier},
};
use signpost_kit::{clock::Timestamp, config::ReadFile};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use self::{
    certificate::{CertificateFault, certificates, read_file},
    client_certificates::{subject, verifier},
    client_session::ClientSession,
    server_names::ServerNames,
};
use crate::wire::io::Stream;

/// Application protocols by ALPN (RFC 7301).
pub(crate) const ALPN_HTTP_2: &[u8] = b"h2";
/// As above.
pub(crate) const ALPN_HTTP_1_1: &[u8] = b"http/1.1";

/// The files and rules of a listener's TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// The certificates: at least one. The first is for clients that ask for no name, or an unknown one.
    pub certificates: Vec<CertificateFiles>,
    /// The authorities of client certificates (PEM), and whether a client needs one.
    pub clients: Option<(PathBuf, ClientAuth)>,
    /// Application protocols, the preferred one first.
    pub protocols: Vec<&'static [u8]>,
}

/// What was read from the files.
#[derive(Clone)]
pub struct LoadedTls {
    /// The certificates, in their order.
    pub certificates: Vec<LoadedCertificate>,
    /// The files that were read.
    pub files: Vec<ReadFile>,
    /// The settings of a connection. If clients have certificates, each connection has a copy: [`Self::server`].
    server: Arc<ServerConfig>,
    /// What checks the certificates of clients.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// What a session ticket vouches for: whether and by whom clients are authenticated.
    clients: Option<(ReadFile, ClientAuth)>,
}

/// What is wrong with a listener's files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A certificate, by its number.
    #[error("{1}")]
    Certificate(usize, #[source] CertificateError),
    /// The authorities of client certificates.
    #[error("{0}")]
    Clients(#[source] CertificateError),
}

/// TLS of one listener.
pub struct Tls {
    settings: TlsSettings,
    loaded: ArcSwap<LoadedTls>,
    /// Whether the last reload of the files failed.
    is_rejected: AtomicBool,
}

impl LoadedTls {
    /// What to say about certificates that expire soon, or have expired, and about their chains.
    pub fn warnings(&self, now: Timestamp) -> Vec<String> {
        let warnings = self.certificates.iter();
        let warnings = warnings
            .flat_map(|certificate| [certificate.expiry_warning(now), certificate.chain_warning()]);
        warnings.flatten().collect()
    }

    /// Whether a certificate has this very name, in any letter case.
    pub fn has_name(&self, name: &str) -> bool {
        let mut names = self
            .certificates
            .iter()
            .flat_map(|certificate| &certificate.names);
        names.any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Reads the files. Blocks. `files` also has the files that were read if this fails.
    ///
    /// # Errors
    ///
    /// A file cannot be used.
    pub fn load(settings: &TlsSettings, files: &mut Vec<ReadFile>) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let mut loaded = Vec::with_capacity(settings.certificates.len());
        for (number, certificate) in settings.certificates.iter().enumerate() {
            let certificate = certificate.load(&provider, files);
            loaded.push(certificate.map_err(|error| TlsError::Certificate(number, error))?);
        }
        let (verifier, clients) = match &settings.clients {
            None => (None, None),
            Some((path, auth)) => {
                let pem = read_file(path, files).map_err(TlsError::Clients)?;
                let authorities = certificates(path, &pem).map_err(TlsError::Clients)?;
                let verifier = verifier(authorities, *auth, &provider)
                    .ok_or_else(|| TlsError::Clients(CertificateFault::Malformed.of(path)))?;
                (
                    Some(verifier),
                    // The content counts, not the path: if a file gets other authorities, sessions that the old ones
                    // vouched for must not be resumed.
                    Some((ReadFile::new(path, Some(&pem)), *auth)),
                )
            }
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("ring has cipher suites for TLS 1.2 and 1.3")
            .with_no_client_auth();
        let names = ServerNames::new(&loaded).expect("a listener with TLS has a certificate");
        let mut server = builder.with_cert_resolver(Arc::new(names));
        server.alpn_protocols = settings
            .protocols
            .iter()
            .map(|protocol| protocol.to_vec())
            .collect();
        // Sessions are in the clients' tickets: nothing is stored here. Early data stays off, since it can be replayed.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        if let Some(ticketer) = ticketer() {
            server.ticketer = ticketer;
        }
        Ok(Self {
            certificates: loaded,
            files: files.clone(),
            server: Arc::new(server),
            verifier,
            clients,
        })
    }

    /// The settings of a new connection.
    pub fn server(&self) -> Arc<ServerConfig> {
        let Some(verifier) = &self.verifier else {
            return Arc::clone(&self.server);
        };
        let shared = &self.server;
        // For each connection another one: it notes when the certificate of this client ends.
        let session = ClientSession::new(Arc::clone(verifier), Arc::clone(&shared.ticketer));
        let session = Arc::new(session);
        // rustls keeps verifier and ticketer in the settings, so state of a single connection needs settings of its
        // own.
        let mut server = ServerConfig::builder_with_provider(Arc::clone(shared.crypto_provider()))
            .with_safe_default_protocol_versions()
            .expect("the shared settings have the same")
            .with_client_cert_verifier(Arc::clone(&session) as _)
            .with_cert_resolver(Arc::clone(&shared.cert_resolver));
        server.alpn_protocols.clone_from(&shared.alpn_protocols);
        server.session_storage = Arc::clone(&shared.session_storage);
        server.ticketer = session;
        Arc::new(server)
    }

    /// Accepts the session tickets of `before`, unless other clients are accepted now: of the client's certificate, a
    /// resumed session checks the dates only.
    fn with_tickets_of(mut self, before: &Self) -> Self {
        if self.clients == before.clients {
            // New ticket keys would have all clients make a full handshake at once, at each renewal of a certificate.
            let mut server = (*self.server).clone();
            server.ticketer = Arc::clone(&before.server.ticketer);
            self.server = Arc::new(server);
        }
        self
    }
}

/// Encrypts session tickets with keys that change every few hours. `None` without random numbers: then no session is
/// resumed.
fn ticketer() -> Option<Arc<dyn ProducesTickets>> {
    ring::Ticketer::new().ok()
}

impl Tls {
    /// TLS by `settings`, with what was loaded for them.
    pub fn new(settings: TlsSettings, loaded: LoadedTls) -> Self {
        Self {
            settings,
            loaded: ArcSwap::from_pointee(loaded),
            is_rejected: AtomicBool::new(false),
        }
    }

    /// The same, and resumes the sessions of `before` as far as its clients are accepted.
    pub(crate) fn continuing(&self, before: &Self) -> Self {
        let loaded = LoadedTls::clone(&self.loaded.load());
        Self::new(
            self.settings.clone(),
            loaded.with_tickets_of(&before.loaded.load()),
        )
    }

    /// What is loaded now.
    pub fn loaded(&self) -> Arc<LoadedTls> {
        self.loaded.load_full()
    }

    /// Reads the files again. Blocks. The next handshake uses them; if they are invalid, the old ones stay.
    ///
    /// # Errors
    ///
    /// A file cannot be used.
    pub fn reload(&self) -> Result<(), TlsError> {
        let loaded = LoadedTls::load(&self.settings, &mut Vec::new());
        // Before the error returns: the metrics have to show that the old files are still in use.
        self.is_rejected.store(loaded.is_err(), Ordering::Relaxed);
        let loaded = loaded?.with_tickets_of(&self.loaded.load());
        self.loaded.store(Arc::new(loaded));
        Ok(())
    }

    /// Whether requests without a client certificate are rejected one by one.
    pub fn needs_certificate_by_request(&self) -> bool {
        matches!(self.settings.clients, Some((_, ClientAuth::ByRequest)))
    }

    /// Whether the files were rejected when they last changed: the old ones are in use.
    pub fn is_rejected(&self) -> bool {
        self.is_rejected.load(Ordering::Relaxed)
    }

    /// Performs the handshake with a client.
    ///
    /// # Errors
    ///
    /// The handshake failed.
    pub async fn accept<S: Stream>(&self, stream: S) -> io::Result<TlsStream<S>> {
        let server = self.loaded.load().server();
        TlsAcceptor::from(server).accept(stream).await
    }
}

/// The version of TLS, as nginx and OpenSSL name it.
pub(crate) fn tls_version(connection: &ServerConnection) -> Option<&'static str> {
    Some(match connection.protocol_version()? {
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        // The settings allow no other version.
        _ => "TLSv1.3",
    })
}

/// The subject of the client's certificate, if it has one.
///
/// # Errors
///
/// It does not fit into a header.
pub(crate) fn client_subject(
    connection: &ServerConnection,
) -> Result<Option<HeaderValue>, UnusableSubject> {
    // Also for a resumed session: rustls restores the chain from the ticket.
    let leaf = connection.peer_certificates().and_then(<[_]>::first);
    leaf.map(subject).transpose()
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Tls").field(&self.settings).finish()
    }
}
