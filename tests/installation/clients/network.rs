//! TLS with an authority and a certificate of one's own, and proxies.

use end_to_end::{
    certificates::Authority, folder::Folder, forward_proxy::ForwardProxy,
    recording_backend::RecordingBackend,
};
use serde_json::{Value, json};

use super::{Ability, can, driver::Driver};

async fn called(driver: &mut Driver) -> Value {
    let call = json!({ "method": "GET", "path": "/x", "pairs": [["a", "1"]] });
    driver.ask(json!({ "call": call })).await
}

pub(super) async fn uses_certificates_and_proxies(language: &'static str) {
    let mut driver = Driver::start(language);
    if can(language, Ability::EllipticCurves) {
        uses_certificates(&mut driver).await;
    }
    let server = RecordingBackend::start().await;
    let proxy = ForwardProxy::start(&[("gateway.test", server.address())], None).await;
    let proxy_url = format!("http://{}", proxy.address());
    let url = "http://gateway.test";
    driver.client_by(url, json!({ "proxy": proxy_url })).await;
    let called = called(&mut driver).await;
    assert_eq!(called["status"], 200, "{language}: {called}");
    let host = server.requests()[0].value("host").map(str::to_owned);
    assert_eq!(host.as_deref(), Some("gateway.test"), "{language}");
    assert!(!proxy.requests().is_empty(), "{language}");
}

async fn uses_certificates(driver: &mut Driver) {
    let language = driver.language;
    let (folder, authority) = (Folder::create(), Authority::new("An authority"));
    let [server, own] = ["localhost", "client"].map(|name| authority.issue(&[name]));
    let ca_file = folder.write("ca.pem", authority.pem());
    let backend = RecordingBackend::start_with_tls(server.server_config(Some(&authority))).await;
    let url = format!("https://localhost:{}", backend.address().port());
    let settings = json!({
        "ca_file": ca_file,
        "client_cert_file": folder.write("own.pem", &own.certificate),
        "client_key_file": folder.write("own.key", &own.key),
        "retries": 0,
    });
    driver.client_by(&url, settings.clone()).await;
    for _ in 0..5 {
        let called = called(driver).await;
        assert_eq!(called["status"], 200, "{language}: {called}");
    }
    if can(language, Ability::Connections) {
        assert_eq!(backend.connections(), 1, "{language}");
    }
    for missing in ["ca_file", "client_cert_file"] {
        let mut settings = settings.clone();
        let members = settings.as_object_mut().unwrap();
        members.remove(missing);
        if missing != "ca_file" {
            members.remove("client_key_file");
        }
        driver.client_by(&url, settings).await;
        let refused = called(driver).await;
        assert!(
            refused["transport"].is_string(),
            "{language}: {missing}: {refused}"
        );
    }
}
