//! Certificates that are replaced, wrong, or expire, while the gateway runs.

use std::time::{Duration, UNIX_EPOCH};

use end_to_end::{
    certificates::Certificate,
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

async fn until_presented(tls: &TlsStack, certificate: &Certificate) {
    let expected = CertificateDer::from_pem_slice(certificate.certificate.as_bytes()).unwrap();
    until("the new certificate", || async {
        (presented(tls).await == expected.to_vec()).then_some(())
    })
    .await;
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
    write(&tls.files, "api", &next);
    until_presented(&tls, &next).await;
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
    // Lifetime and rest in hours. As an ACME client renews them, nothing is reported: this one at a third, and one of six days
    // at a half.
    for (lifetime, left) in [(64 * 24, 20 * 24), (160, 70)] {
        let fine = issue(&tls, lifetime, left);
        write(&tls.files, "api", &fine);
        until_presented(&tls, &fine).await;
        assert_eq!(fetch(&readyz).await.text(), "ready\n");
    }
    for (lifetime, left, text) in [
        (64 * 24, 15 * 24, "expires in 14 days"),
        (160, 30, "expires in 29 hours"),
        (160, 1, "expires in less than an hour"),
        (160, -1, "has expired"),
    ] {
        write(&tls.files, "api", &issue(&tls, lifetime, left));
        until(text, || async {
            let ready = fetch(&readyz).await;
            assert_eq!(ready.status, 200);
            let body = ready.text();
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
    // None of those that were fine.
    let log = tls.stack.log(Program::Gateway);
    assert_eq!(log.matches("the certificate in").count(), 4, "{log}");
}

/// Issue 44, row 13.
#[tokio::test]
async fn a_chain_is_whole_and_in_order_or_reported() {
    let tls = TlsStack::start("").await;
    let intermediate = tls.authority.issue_authority("Intermediate");
    let api = intermediate.issue(&["api.example.com"]);
    tls.files.write("api.key", &api.key);
    let (leaf, above, root) = (&*api.certificate, intermediate.pem(), tls.authority.pem());
    let text = "subject=CN = api\n---\n";
    for (chain, words) in [
        (format!("{leaf}{above}"), ""),
        (format!("{leaf}{above}{root}"), ""),
        (format!("{text}{leaf}\r\n{text}{above}{}", api.key), ""),
        (
            leaf.to_owned(),
            "lacks the certificate of its issuer, CN=Intermediate",
        ),
        (
            format!("{leaf}{root}"),
            "lacks the certificate of its issuer",
        ),
        (format!("{leaf}{root}{above}"), "is in the wrong order"),
        (
            format!("{}{above}", leaf.trim_end()),
            "which needs a line of its own",
        ),
        (
            format!("{leaf}{}", &above[..above.len() / 2]),
            "is not valid PEM: line ",
        ),
        (format!("{above}{leaf}"), "than the first of its file"),
    ] {
        tls.files.write("api.pem", &chain);
        let checked = tls.stack.command(&["check"]);
        let printed = output_text(&checked);
        let is_refused = words.contains("PEM") || words.contains("own") || words.contains("first");
        assert_eq!(checked.status.success(), !is_refused, "{words}: {printed}");
        assert!(printed.contains(words), "{words}: {printed}");
        let is_reported = printed.contains("the chain in");
        assert_eq!(is_reported, !is_refused && !words.is_empty(), "{printed}");
        if is_refused {
            assert!(
                printed.contains("listen[0].tls.certificates[0]"),
                "{printed}"
            );
            assert!(printed.contains("api."), "{printed}");
        }
    }
    // Both are served.
    tls.files.write("api.pem", &format!("{leaf}{above}"));
    until_presented(&tls, &api).await;
}

/// A certificate that is valid for this many hours, and has this many left.
fn issue(tls: &TlsStack, lifetime: i64, left: i64) -> Certificate {
    let now = UNIX_EPOCH + Duration::from_millis(u64::try_from(now_ms()).unwrap());
    let from_now = |hours: i64| {
        let time = Duration::from_secs(hours.unsigned_abs() * 60 * 60);
        let at = if hours < 0 { now - time } else { now + time };
        at.into()
    };
    tls.authority.issue_with(&["api.example.com"], |params| {
        params.not_before = from_now(left - lifetime);
        params.not_after = from_now(left);
    })
}
