//! Certificates that are replaced, wrong, or expire, while the gateway runs.

use std::time::{Duration, UNIX_EPOCH};

use end_to_end::{
    clock::now_ms,
    metrics::Scrape,
    program::{Program, output_text},
    signed_client::fetch,
    waiting::until,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use tokio::net::TcpStream;

use super::{TlsStack, assert_serves, write};

/// The certificate that the gateway presents now.
async fn presented(tls: &TlsStack) -> Vec<u8> {
    let stream = TcpStream::connect(tls.stack.addresses().gateway)
        .await
        .unwrap();
    let connector = tokio_rustls::TlsConnector::from(tls.authority.client(&[], None));
    let name = "api.example.com".try_into().unwrap();
    let stream = connector.connect(name, stream).await.unwrap();
    let (_, connection) = stream.get_ref();
    connection.peer_certificates().unwrap()[0].to_vec()
}

/// Whether the gateway could read its TLS files when they last changed: 1 or 0.
async fn files_read(tls: &TlsStack) -> f64 {
    let addresses = tls.stack.addresses();
    let listener = addresses.gateway.to_string();
    let scrape = Scrape::of(addresses.management).await;
    let name = "signpost_tls_files_last_reload_successful";
    scrape.value(name, &[("listener", &listener)]).unwrap()
}

#[tokio::test]
async fn a_replaced_certificate_is_used_and_no_connection_is_dropped() {
    let tls = TlsStack::start("").await;
    let mut open = tls.connect("api.example.com").await.unwrap();
    assert_serves(&mut open).await;
    let next = tls.authority.issue(&["api.example.com"]);
    let expected = CertificateDer::from_pem_slice(next.certificate.as_bytes()).unwrap();
    assert_ne!(presented(&tls).await, expected.to_vec());
    write(&tls.files, "api", &next);
    until("the new certificate", || async {
        (presented(&tls).await == expected.to_vec()).then_some(())
    })
    .await;
    assert_serves(&mut open).await;
    tls.stack
        .log_with(Program::Gateway, "TLS files reloaded")
        .await;
}

#[tokio::test]
async fn with_a_wrong_key_the_old_certificate_stays() {
    let tls = TlsStack::start("").await;
    let before = presented(&tls).await;
    assert_eq!(files_read(&tls).await, 1.0);
    let other = tls.authority.issue(&["api.example.com"]);
    tls.files.write("api.key", &other.key);
    let log = tls
        .stack
        .log_with(Program::Gateway, "TLS files not reloaded")
        .await;
    assert!(
        log.contains("which is the key of another certificate"),
        "{log}"
    );
    assert_eq!(presented(&tls).await, before);
    assert_eq!(files_read(&tls).await, 0.0);
    // A reload of the configuration names the key, and changes nothing.
    let output = tls.stack.command(&["reload"]);
    assert!(!output.status.success());
    let text = output_text(&output);
    assert!(
        text.contains("listen[0].tls.certificates[0].key: found"),
        "{text}"
    );
    assert!(!text.contains("PRIVATE KEY"), "{text}");
    assert_eq!(presented(&tls).await, before);
    // Once the certificate follows, both are used.
    tls.files.write("api.pem", &other.certificate);
    until("the new certificate", || async {
        (presented(&tls).await != before).then_some(())
    })
    .await;
    assert_eq!(files_read(&tls).await, 1.0);
}

#[tokio::test]
async fn a_certificate_that_expires_is_reported() {
    let tls = TlsStack::start("").await;
    let readyz = format!("http://{}/readyz", tls.stack.addresses().management);
    let ready = fetch(&readyz).await;
    assert_eq!(String::from_utf8_lossy(&ready.body), "ready\n");
    for (year, text) in [(1, "expires in"), (-1, "has expired")] {
        let now = u64::try_from(now_ms()).unwrap();
        let soon = UNIX_EPOCH + Duration::from_millis(now);
        let days = Duration::from_secs(3 * 24 * 60 * 60);
        let end = if year > 0 { soon + days } else { soon - days };
        let expiring = tls
            .authority
            .issue_with(&["api.example.com"], |params| params.not_after = end.into());
        write(&tls.files, "api", &expiring);
        until(text, || async {
            let ready = fetch(&readyz).await;
            assert_eq!(ready.status, 200);
            let body = String::from_utf8_lossy(&ready.body).into_owned();
            (body.starts_with("ready, but") && body.contains(text)).then_some(())
        })
        .await;
        tls.stack.log_with(Program::Gateway, text).await;
        let checked = output_text(&tls.stack.command(&["check"]));
        assert!(
            checked.contains("(api.example.com)") && checked.contains(text),
            "{checked}"
        );
    }
}
