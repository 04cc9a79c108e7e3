//! `tls.hsts`: `Strict-Transport-Security`. RFC 6797.

use end_to_end::{
    http2_client::Http2Client,
    port::free_address,
    raw_connection::{RawConnection, RawResponse, request},
    recording_backend::Behaviour,
};

use super::TlsStack;

const HSTS: &str = "max-age=31536000; includeSubDomains";
const BACKENDS: &str =
    "HTTP/1.1 200 OK\r\nStrict-Transport-Security: max-age=1\r\nContent-Length: 2\r\n\r\nok";

fn found(response: &RawResponse) -> Vec<&str> {
    let fields = response
        .head
        .lines()
        .filter_map(|line| line.split_once(": "));
    let named = fields.filter(|(name, _)| name.eq_ignore_ascii_case("strict-transport-security"));
    named.map(|(_, value)| value).collect()
}

#[tokio::test]
async fn hsts_is_on_every_response_over_tls_and_on_no_other() {
    let (plain, redirecting) = (free_address(), free_address());
    let further = format!(
        "tls.hsts = '{HSTS}'\n[[listen]]\naddress = '{plain}'\nproxy_protocol = ['127.0.0.1']\n\
         [[listen]]\naddress = '{redirecting}'\nredirect_to_https = true\n"
    );
    let tls = TlsStack::start(&further).await;
    tls.backend.behave(Behaviour::verbatim(BACKENDS));
    let mut connection = tls.connect("api.example.com").await.unwrap();
    for (target, status) in [("/x", 200), ("/x?a=1", 403)] {
        connection.send(&request("GET", target, &[], b"")).await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.status, status);
        assert_eq!(found(&response), [HSTS], "{target}");
    }
    let address = tls.stack.addresses().gateway;
    let client = tls.authority.client(&["h2"], None);
    let client = Http2Client::try_open_tls(address, "api.example.com", client).await;
    let call = tls.stack.client();
    let response = client.unwrap().send(&call.get("/x")).await.unwrap();
    let values = response.fields.get_all("strict-transport-security");
    assert_eq!(values.iter().collect::<Vec<_>>(), [HSTS]);
    // A redirect over plain HTTP must not have it.
    let mut connection = RawConnection::open(redirecting).await;
    connection.send(&request("GET", "/x", &[], b"")).await;
    let response = connection.response().await.unwrap();
    assert_eq!(response.status, 308);
    assert!(found(&response).is_empty(), "{}", response.head);
    // A balancer ends TLS here: only it can say what holds for its names. The backend's own passes.
    let mut connection = RawConnection::open(plain).await;
    connection
        .send(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n")
        .await;
    for (target, expected) in [("/x", &["max-age=1"][..]), ("/x?a=1", &[])] {
        connection.send(&request("GET", target, &[], b"")).await;
        let response = connection.response().await.unwrap();
        assert_eq!(found(&response), expected, "{target}");
    }
}
