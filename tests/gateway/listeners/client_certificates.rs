//! Client certificates, required and optional, and their subject at the backend.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, UNIX_EPOCH},
};

use end_to_end::{
    certificates::{Authority, Certificate},
    clock::now_ms,
    program::Program,
    raw_connection::{RawConnection, request},
    waiting::until_within,
};
use rustls::{
    ClientConfig, HandshakeKind, SignatureScheme, SupportedProtocolVersion,
    client::ResolvesClientCert,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use tokio::net::TcpStream;

use super::{TlsStack, assert_serves};

const SUBJECT: &str = "x-gateway-client-cert-subject";

#[tokio::test]
async fn a_required_certificate_is_checked_and_its_subject_passed_on() {
    let tls = TlsStack::start("tls.client_ca = '$FILES/ca.pem'").await;
    let client = tls.authority.issue_with(&["device-7.example"], |params| {
        params.distinguished_name.push(
            rcgen::DnType::OrganizationName,
            "Acme, \u{f6}rtlich\r\nX: 1",
        );
    });
    let mut connection = tls
        .connect_as("api.example.com", Some(&client))
        .await
        .unwrap();
    let forged = ["X-Gateway-Client-Cert-Subject: CN=admin"];
    connection.send(&request("GET", "/x", &forged, b"")).await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    let received = tls.backend.request_number(1).await;
    let subjects = received.values(SUBJECT);
    assert_eq!(subjects.len(), 1, "{subjects:?}");
    assert!(subjects[0].contains("CN=device-7.example"), "{subjects:?}");
    assert!(
        subjects[0].contains("\\C3\\B6rtlich\\0d\\0aX: 1"),
        "{subjects:?}"
    );
    // Without a certificate, and with one of another authority.
    let stranger = Authority::new("Another").issue(&["device-7.example"]);
    for client in [None, Some(&stranger)] {
        // With TLS 1.3 the client learns of the rejection after its handshake.
        if let Ok(mut connection) = tls.connect_as("api.example.com", client).await {
            connection.send(&request("GET", "/x", &[], b"")).await;
            assert!(connection.is_closed().await);
        }
    }
    assert_eq!(tls.backend.requests().len(), 1);
}

#[tokio::test]
async fn with_an_optional_certificate_clients_without_one_are_served() {
    let keys = "tls.client_ca = '$FILES/ca.pem'\ntls.client_auth = 'optional'";
    let tls = TlsStack::start(keys).await;
    let mut connection = tls.connect("api.example.com").await.unwrap();
    let forged = ["X-Gateway-Client-Cert-Subject: CN=admin"];
    connection.send(&request("GET", "/x", &forged, b"")).await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    let received = tls.backend.request_number(1).await;
    assert!(received.values(SUBJECT).is_empty());
    let stranger = Authority::new("Another").issue(&["device-7.example"]);
    if let Ok(mut connection) = tls.connect_as("api.example.com", Some(&stranger)).await {
        connection.send(&request("GET", "/x", &[], b"")).await;
        assert!(connection.is_closed().await);
    }
    let known = tls.authority.issue(&["device-8.example"]);
    let mut connection = tls
        .connect_as("api.example.com", Some(&known))
        .await
        .unwrap();
    assert_serves(&mut connection).await;
    let received = tls.backend.request_number(2).await;
    assert_eq!(received.values(SUBJECT), ["CN=device-8.example"]);
}

/// A session that began without a certificate must not be resumed where one is needed.
#[tokio::test]
async fn a_ticket_does_not_outlive_a_change_of_the_clients() {
    let tls = TlsStack::start("").await;
    let config = tls.authority.client(&["http/1.1"], None);
    let open = async || {
        let address = tls.stack.addresses().gateway;
        let stream = TcpStream::connect(address).await.unwrap();
        RawConnection::begin_tls(stream, "api.example.com", config.clone()).await
    };
    assert_serves(&mut open().await.unwrap()).await;
    let file = tls.stack.folder().join("signpost.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let authority = tls.files.path().join("ca.pem");
    let certificates = "[[listen.tls.certificates]]";
    let clients = format!("[listen.tls]\nclient_ca = '{}'\n\n", authority.display());
    let with_clients = text.replacen(certificates, &(clients + certificates), 1);
    assert_ne!(text, with_clients, "{text}");
    std::fs::write(&file, with_clients).unwrap();
    assert!(tls.stack.command(&["reload"]).status.success());
    if let Ok(mut connection) = open().await {
        connection.send(&request("GET", "/x", &[], b"")).await;
        assert!(connection.is_closed().await);
    }
    assert_eq!(tls.backend.requests().len(), 1);
}

/// How long the certificate of a device is valid: long enough for two handshakes on a busy machine.
const VALIDITY: Duration = Duration::from_secs(25);

/// A client that resumes its sessions, and may renew its certificate meanwhile.
struct Device {
    config: Arc<ClientConfig>,
    certificate: Arc<DeviceCertificate>,
}

#[derive(Debug)]
struct DeviceCertificate(Mutex<Arc<CertifiedKey>>);

impl ResolvesClientCert for DeviceCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.lock().unwrap()))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl DeviceCertificate {
    fn read(certificate: &Certificate) -> Arc<CertifiedKey> {
        let chain = CertificateDer::from_pem_slice(certificate.certificate.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes());
        let provider = ring::default_provider();
        let key = CertifiedKey::from_der(vec![chain.unwrap()], key.unwrap(), &provider);
        Arc::new(key.unwrap())
    }
}

impl Device {
    fn new(
        tls: &TlsStack,
        version: &'static SupportedProtocolVersion,
        certificate: &Certificate,
    ) -> Self {
        let certificate = DeviceCertificate(Mutex::new(DeviceCertificate::read(certificate)));
        let certificate = Arc::new(certificate);
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(tls.authority.roots())
            .with_client_cert_resolver(Arc::clone(&certificate) as _);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self {
            config: Arc::new(config),
            certificate,
        }
    }

    fn renew(&self, certificate: &Certificate) {
        *self.certificate.0.lock().unwrap() = DeviceCertificate::read(certificate);
    }

    /// Connects and sends a request. Returns the kind of the handshake; `None` if the gateway has closed the connection.
    async fn call(&self, tls: &TlsStack) -> Option<HandshakeKind> {
        let address = tls.stack.addresses().gateway;
        let stream = TcpStream::connect(address).await.unwrap();
        let config = Arc::clone(&self.config);
        let connection = RawConnection::begin_tls(stream, "api.example.com", config).await;
        let mut connection = connection.ok()?;
        connection.send(&request("GET", "/x", &[], b"")).await;
        let response = connection.response().await?;
        assert_eq!(response.status, 200);
        connection.handshake_kind()
    }
}

/// Issue 22, row 4: a ticket stood for the certificate for as long as it was renewed.
#[tokio::test]
async fn a_session_ends_with_the_certificate_of_its_client() {
    for keys in ["", "\ntls.client_auth = 'optional'"] {
        let tls = TlsStack::start(&format!("tls.client_ca = '$FILES/ca.pem'{keys}")).await;
        let end_ms = now_ms() + i64::try_from(VALIDITY.as_millis()).unwrap();
        let end = UNIX_EPOCH + Duration::from_millis(end_ms.try_into().unwrap());
        let short = tls.authority.issue_with(&["device-7.example"], |params| {
            params.not_after = end.into()
        });
        let devices = [&TLS12, &TLS13].map(|version| Device::new(&tls, version, &short));
        for device in &devices {
            assert_eq!(device.call(&tls).await, Some(HandshakeKind::Full));
            assert_eq!(device.call(&tls).await, Some(HandshakeKind::Resumed));
        }
        assert!(now_ms() < end_ms, "the machine is too slow for this test");
        let served = tls.backend.requests().len();
        for received in tls.backend.requests() {
            assert_eq!(received.values(SUBJECT), ["CN=device-7.example"]);
        }
        // A certificate is valid to the end of its last second.
        let whole = Duration::from_secs(60);
        until_within(whole, "the certificate to expire", || async {
            (now_ms() > end_ms + 1000).then_some(())
        })
        .await;
        let renewed = tls.authority.issue(&["device-7.example"]);
        for device in &devices {
            assert_eq!(device.call(&tls).await, None);
            assert_eq!(tls.backend.requests().len(), served);
        }
        let refused = "TLS handshake failed: invalid peer certificate";
        tls.stack.log_with(Program::Gateway, refused).await;
        // The session that has ended does not keep the new certificate out.
        for device in &devices {
            device.renew(&renewed);
            assert_eq!(device.call(&tls).await, Some(HandshakeKind::Full));
            assert_eq!(device.call(&tls).await, Some(HandshakeKind::Resumed));
        }
    }
}
