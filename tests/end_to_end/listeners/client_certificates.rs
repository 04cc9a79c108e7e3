//! Client certificates, required and optional, and their subject at the backend.

use end_to_end::{
    certificates::Authority,
    raw_connection::{RawConnection, request},
};

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
    assert_eq!(connection.answer().await.unwrap().status, 200);
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
    assert_eq!(connection.answer().await.unwrap().status, 200);
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
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
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
