//! Connecting: TLS according to `sslmode`, and timeouts on both sides.

use std::{
    fs,
    future::{pending, poll_fn},
    path::Path,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use deadpool_postgres::Connect;
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::JoinHandle,
    time::timeout,
};
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, Notification, Socket,
    config::{Host, TargetSessionAttrs},
    error::SqlState,
    tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{OpenError, PostgresAddress, PostgresSettings, StoreError, pem};

/// TCP keepalive: probes are sent to a server that has been silent for this long.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// The server ends an open transaction that is idle for this long, because its process died or lost the connection.
const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);

/// How to reach the servers of an address.
#[derive(Clone)]
pub(super) struct Servers {
    /// A configuration for each host: the driver would not try the next one if a server accepts the connection and does
    /// not answer.
    hosts: Arc<[Config]>,
    /// The host to begin with: the one that was reached last.
    first: Arc<AtomicUsize>,
    tls: MakeRustlsConnect,
    /// Timeout of each host. They share the configured one, so that the last host is still tried.
    limit: Duration,
}

type Connected = (
    Client,
    Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>,
);

impl Servers {
    pub(super) fn new(
        address: &PostgresAddress,
        settings: &PostgresSettings,
    ) -> Result<Self, OpenError> {
        let count = address.config().get_hosts().len();
        let limit = settings.wait / u32::try_from(count).unwrap_or(1).max(1);
        let hosts = (0..count).map(|index| host(address.config(), index, settings, limit));
        Ok(Self {
            hosts: hosts.collect(),
            first: Arc::default(),
            tls: tls(address, settings)?,
            limit,
        })
    }

    async fn connect_any(&self) -> Result<Connected, tokio_postgres::Error> {
        let (first, count) = (self.first.load(Ordering::Relaxed), self.hosts.len());
        let mut failed = None;
        for index in (first..first + count).map(|index| index % count) {
            match timeout(self.limit, self.hosts[index].connect(self.tls.clone())).await {
                Ok(Ok(connected)) => {
                    self.first.store(index, Ordering::Relaxed);
                    return Ok(connected);
                }
                Ok(Err(error)) => failed = Some(error),
                Err(_) => {}
            }
        }
        match failed {
            Some(error) => Err(error),
            // The caller's timeout has come.
            None => pending().await,
        }
    }
}

impl Connect for Servers {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<
        Box<
            dyn Future<Output = Result<(Client, JoinHandle<()>), tokio_postgres::Error>>
                + Send
                + '_,
        >,
    > {
        Box::pin(async {
            let (client, connection) = self.connect_any().await?;
            // Calls of the client return its error.
            Ok((client, tokio::spawn(async move { drop(connection.await) })))
        })
    }
}

/// The driver's configuration of one of the hosts, with timeouts.
fn host(all: &Config, index: usize, settings: &PostgresSettings, limit: Duration) -> Config {
    let mut config = Config::new();
    let is_single = all.get_hosts().len() == 1;
    match &all.get_hosts()[index] {
        Host::Tcp(name) => config.host(name),
        Host::Unix(path) => config.host_path(path),
    };
    if let Some(address) = all.get_hostaddrs().get(index) {
        config.hostaddr(*address);
    }
    let ports = all.get_ports();
    if let Some(port) = ports.get(index).or(ports.first()) {
        config.port(*port);
    }
    if let Some(user) = all.get_user() {
        config.user(user);
    }
    if let Some(password) = all.get_password() {
        config.password(password);
    }
    if let Some(database) = all.get_dbname() {
        config.dbname(database);
    }
    if let Some(options) = all.get_options() {
        config.options(options);
    }
    let attributes = match all.get_target_session_attrs() {
        // Of several hosts all but one take no writes.
        TargetSessionAttrs::Any if !is_single => TargetSessionAttrs::ReadWrite,
        attributes => attributes,
    };
    config
        .application_name(all.get_application_name().unwrap_or("signpost"))
        .ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .channel_binding(all.get_channel_binding())
        .load_balance_hosts(all.get_load_balance_hosts())
        .target_session_attrs(attributes)
        .connect_timeout(limit)
        .keepalives_idle(KEEPALIVE)
        .keepalives_interval(KEEPALIVE / 2)
        .keepalives_retries(2)
        // Linux sends no keepalives while sent data is not acknowledged.
        .tcp_user_timeout(settings.statement + KEEPALIVE);
    config
}

/// First statements of each connection: the server cancels by itself what the caller gives up.
///
/// A prepared statement keeps its plan. One that was made while its table was empty would read the whole table ever after, so
/// plans use an index where there is one. What the server does not know is left out.
pub(super) fn limits(settings: &PostgresSettings) -> String {
    format!(
        "SET statement_timeout = {}; SET idle_in_transaction_session_timeout = {}; \
         SELECT set_config(name, 'off', false) FROM pg_settings WHERE name IN ('enable_seqscan', 'jit')",
        settings.statement.as_millis(),
        IDLE_IN_TRANSACTION_TIMEOUT.as_millis()
    )
}

/// Notifications from the server. The channel closes with the connection.
pub(crate) type Notifications = UnboundedReceiver<Notification>;

/// Opens a connection outside the pool, with the timeouts of pooled ones.
///
/// A task of the current runtime drives it. It is closed when the client is dropped.
pub(super) async fn connect(
    servers: &Servers,
    settings: &PostgresSettings,
) -> Result<(Client, Notifications), StoreError> {
    let connecting = async {
        let (client, mut connection) = servers.connect_any().await?;
        let encoding = connection.parameter("server_encoding").unwrap_or("UTF8");
        if encoding != "UTF8" {
            return Err(StoreError::Encoding(encoding.to_owned()));
        }
        // Unbounded: a full channel would stop the task, and with it every call of this connection.
        let (sender, notifications) = unbounded_channel();
        tokio::spawn(async move {
            // An error ends the task, too; calls of the client then return it.
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notification(notification) = message {
                    // The receiver may have been dropped.
                    let _ = sender.send(notification);
                }
            }
        });
        client.batch_execute(&limits(settings)).await?;
        Ok((client, notifications))
    };
    // The driver's own timeout is for the TCP connection: TLS, authentication and the first statement need one, too.
    timeout(settings.wait, connecting)
        .await
        .map_err(|_| StoreError::Busy)?
}

/// The TLS connector for the `sslmode` of the address. Whether TLS is used at all is part of the driver's
/// configuration.
pub(super) fn tls(
    address: &PostgresAddress,
    settings: &PostgresSettings,
) -> Result<MakeRustlsConnect, OpenError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("ring has what the default versions need");
    let config = if address.verifies_server() {
        builder
            .with_root_certificates(root_certificates(settings.root_certificate.as_deref())?)
            .with_no_client_auth()
    } else {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(provider)))
            .with_no_client_auth()
    };
    Ok(MakeRustlsConnect::new(config))
}

fn root_certificates(file: Option<&Path>) -> Result<RootCertStore, OpenError> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        // A system may have some that rustls cannot read. They must not make the others useless.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return match roots.is_empty() {
            true => Err(OpenError::Certificates(
                "this system has none; set root_certificate".to_owned(),
            )),
            false => Ok(roots),
        };
    };
    let unusable = |cause: &dyn std::fmt::Display| {
        OpenError::Certificates(format!("{} ({cause})", file.display()))
    };
    let pem = fs::read(file).map_err(|cause| unusable(&cause))?;
    for certificate in pem::certificates(&pem).map_err(|cause| unusable(&cause))? {
        roots.add(certificate).map_err(|cause| unusable(&cause))?;
    }
    Ok(roots)
}

/// libpq's `require`: encrypted, but the certificate is not verified.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether the server does not have a function, or does not permit it.
pub(super) fn is_unavailable(state: Option<&SqlState>) -> bool {
    let states = [
        SqlState::UNDEFINED_FUNCTION,
        SqlState::INSUFFICIENT_PRIVILEGE,
        SqlState::FEATURE_NOT_SUPPORTED,
    ];
    state.is_some_and(|state| states.contains(state))
}

/// Whether the statement was rolled back, since it conflicts with others: 40001 and 40P01.
pub(super) fn is_conflict(state: Option<&SqlState>) -> bool {
    let states = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    state.is_some_and(|state| states.contains(state))
}

/// Whether prepared statements are those of another session, to which a pooler has given the connection: 26000 and 42P05.
pub(super) fn is_of_other_session(state: Option<&SqlState>) -> bool {
    let states = [
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::DUPLICATE_PSTATEMENT,
    ];
    state.is_some_and(|state| states.contains(state))
}

/// Whether a pooler gives each transaction another connection to the server. Then nothing can be used that belongs to a
/// connection: prepared statements, of which it may have those of another process, and `LISTEN`.
///
/// Without such a pooler, each of two connections always has its own process of the server.
pub(super) async fn is_pooled(one: &Client, other: &Client) -> Result<bool, StoreError> {
    let mut processes = [0; 2];
    // Neither a pooler that prefers the connection used last, nor one that takes turns, gives both the same ones here.
    for index in [0, 1, 1, 0, 0, 1, 1, 0] {
        let client = [one, other][index];
        let process = match client.query_typed_one("SELECT pg_backend_pid()", &[]).await {
            Ok(row) => row.try_get::<_, i32>(0)?,
            Err(error) if is_unavailable(error.code()) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        if process == processes[1 - index] || ![0, process].contains(&processes[index]) {
            return Ok(true);
        }
        processes[index] = process;
    }
    Ok(false)
}

/// A server that accepts connections may still not answer.
pub(super) async fn within<T, E: Into<StoreError>>(
    limit: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, StoreError> {
    let answered = timeout(limit, call).await;
    answered
        .map_err(|_| StoreError::TimedOut)?
        .map_err(Into::into)
}

/// As [`within`], and repeats a call that conflicted with others.
pub(super) async fn repeated<T, C: Future<Output = Result<T, StoreError>>>(
    limit: Duration,
    call: impl Fn() -> C,
) -> Result<T, StoreError> {
    let repeating = async {
        loop {
            match call().await {
                Err(error) if is_in_use(&error) => {}
                done => return done,
            }
        }
    };
    within(limit, repeating).await
}

/// Whether a repetition may succeed: a table is in use, or the statement conflicted with another one.
pub(super) fn is_in_use(cause: &StoreError) -> bool {
    let StoreError::Postgres(cause) = cause else {
        return false;
    };
    let state = cause.sql_state();
    state == Some(&SqlState::LOCK_NOT_AVAILABLE) || is_conflict(state)
}
