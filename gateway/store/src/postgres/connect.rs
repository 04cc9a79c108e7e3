//! Connecting: TLS according to `sslmode`, and timeouts on both sides.

use std::{fs, future::poll_fn, path::Path, sync::Arc, time::Duration};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::timeout,
};
use tokio_postgres::{AsyncMessage, Client, Config, Notification, error::SqlState};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{OpenError, PostgresAddress, PostgresSettings, StoreError, pem};

/// TCP keepalive: probes are sent to a server that has been silent for this long.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// The server ends an open transaction that is idle for this long, because its process died or lost the connection.
const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);

/// The driver's configuration: the address, with timeouts.
pub(super) fn config(address: &PostgresAddress, settings: &PostgresSettings) -> Config {
    let mut config = address.config().clone();
    // Several hosts share the timeout, so that the last one is still tried.
    let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(1).max(1);
    config
        .connect_timeout(settings.wait / hosts)
        .keepalives_idle(KEEPALIVE)
        .keepalives_interval(KEEPALIVE / 2)
        .keepalives_retries(2)
        // Linux sends no keepalives while sent data is not acknowledged.
        .tcp_user_timeout(settings.statement + KEEPALIVE);
    if config.get_application_name().is_none() {
        config.application_name("signpost");
    }
    config
}

/// First statements of each connection: the server cancels by itself what the caller gives up.
pub(super) fn limits(settings: &PostgresSettings) -> String {
    format!(
        "SET statement_timeout = {}; SET idle_in_transaction_session_timeout = {}",
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
    config: &Config,
    tls: &MakeRustlsConnect,
    settings: &PostgresSettings,
) -> Result<(Client, Notifications), StoreError> {
    let connecting = async {
        let (client, mut connection) = config.connect(tls.clone()).await?;
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

pub(super) fn is_in_use(cause: &StoreError) -> bool {
    matches!(cause, StoreError::Postgres(cause) if cause.sql_state() == Some(&SqlState::LOCK_NOT_AVAILABLE))
}
