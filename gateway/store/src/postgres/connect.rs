//! Connecting: TLS as `sslmode` says, and limits for whatever the server does for us.

use std::{future::poll_fn, path::Path, sync::Arc, time::Duration};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::{AsyncMessage, Client, Config, Notification};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{OpenError, PostgresAddress, PostgresSettings, StoreError};

/// A server that has been silent for so long is asked by TCP whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// A transaction that nobody goes on with, since its process has died or was cut off, ends after so long.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(10);

/// The address, with time limits.
pub(super) fn config(address: &PostgresAddress, settings: &PostgresSettings) -> Config {
    let mut config = address.config().clone();
    // Each of several hosts has its share, so that the last is not left out because of the first.
    let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(1).max(1);
    config
        .connect_timeout(settings.connect / hosts)
        .keepalives_idle(KEEPALIVE)
        .keepalives_interval(KEEPALIVE / 2)
        .keepalives_retries(2)
        .tcp_user_timeout(settings.statement + KEEPALIVE);
    if config.get_application_name().is_none() {
        config.application_name("signpost");
    }
    config
}

/// What each connection is told first: the server gives up by itself what we have given up.
pub(super) fn limits(settings: &PostgresSettings) -> String {
    format!(
        "SET statement_timeout = {}; SET idle_in_transaction_session_timeout = {}",
        settings.statement.as_millis(),
        IDLE_IN_TRANSACTION.as_millis()
    )
}

/// What the server tells unasked. Ends when the connection does.
pub(crate) type Notifications = UnboundedReceiver<Notification>;

/// A connection outside the pool, with the limits that pooled ones have. It is driven by a task of the runtime that
/// this is called on, and ends with its client.
pub(super) async fn connect(
    config: &Config,
    tls: &MakeRustlsConnect,
    settings: &PostgresSettings,
) -> Result<(Client, Notifications), StoreError> {
    let connecting = async {
        let (client, mut connection) = config.connect(tls.clone()).await?;
        let (sender, notifications) = unbounded_channel();
        tokio::spawn(async move {
            // An error ends it as well; whoever uses the client is told.
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notification(notification) = message {
                    // Nobody may be listening.
                    let _ = sender.send(notification);
                }
            }
        });
        client.batch_execute(&limits(settings)).await?;
        Ok((client, notifications))
    };
    tokio::time::timeout(settings.connect, connecting)
        .await
        .map_err(|_| StoreError::Busy)?
}

/// TLS for whatever `sslmode` the address says; whether it is used at all is in its configuration.
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
            .with_root_certificates(roots(settings.root_certificate.as_deref())?)
            .with_no_client_auth()
    } else {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer(provider)))
            .with_no_client_auth()
    };
    Ok(MakeRustlsConnect::new(config))
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, OpenError> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return match roots.is_empty() {
            true => Err(OpenError::Certificates(
                "this system has none; name a file as root_certificate".to_owned(),
            )),
            false => Ok(roots),
        };
    };
    let unusable = |cause: &dyn std::fmt::Display| {
        OpenError::Certificates(format!("{} ({cause})", file.display()))
    };
    for certificate in CertificateDer::pem_file_iter(file).map_err(|cause| unusable(&cause))? {
        let certificate = certificate.map_err(|cause| unusable(&cause))?;
        roots.add(certificate).map_err(|cause| unusable(&cause))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"it holds no certificate"));
    }
    Ok(roots)
}

/// libpq's `require`: encrypted, and whoever answers is believed.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
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
