//! Handshakes: names, versions, resumption, and what is not TLS.

use std::{process::Command, time::Instant};

use end_to_end::{
    certificates::Authority,
    folder::Folder,
    metrics::Scrape,
    port::free_address,
    program::{Program, output_text},
    raw_connection::{RawConnection, request},
    recording_backend::RecordingBackend,
    stack::Stack,
    waiting::until,
};
use rustls::{HandshakeKind, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::{TlsStack, assert_serves, certificates, listen, write};

#[tokio::test]
async fn each_name_gets_its_certificate() {
    let authority = Authority::new("Test authority");
    let files = Folder::create();
    write(&files, "api", &authority.issue(&["api.example.com"]));
    write(
        &files,
        "any",
        &authority.issue(&["*.example.com", "example.com"]),
    );
    write(&files, "org", &authority.issue(&["example.org"]));
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .gateway(&listen(&certificates(&files, &["api", "any", "org"]), ""))
        .in_front_of(&backend)
        .start()
        .await;
    let tls = authority.client(&["http/1.1"], None);
    for (name, is_served) in [
        ("api.example.com", true),
        ("other.example.com", true),
        ("example.com", true),
        ("example.org", true),
        // The client rejects the default certificate, which has another name.
        ("a.b.example.com", false),
        ("unknown.example", false),
    ] {
        let stream = TcpStream::connect(stack.addresses().gateway).await.unwrap();
        let connection = RawConnection::begin_tls(stream, name, tls.clone()).await;
        assert_eq!(connection.is_ok(), is_served, "{name}");
        if let Ok(mut connection) = connection {
            assert_serves(&mut connection).await;
        }
    }
}

#[tokio::test]
async fn a_backend_learns_that_the_client_used_https() {
    let tls = TlsStack::start("").await;
    let mut connection = tls.connect("api.example.com").await.unwrap();
    let forged = ["X-Forwarded-Proto: http"];
    connection.send(&request("GET", "/x", &forged, b"")).await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    let received = tls.backend.request_number(1).await;
    assert_eq!(received.values("x-forwarded-proto"), ["https"]);
    let line = "tls.version=\"TLSv1.3\" http.status_code=200";
    tls.stack.log_with(Program::Gateway, line).await;
}

#[tokio::test]
async fn hostile_handshakes_leave_few_log_lines() {
    let tls = TlsStack::start("").await;
    let gateway = tls.stack.addresses().gateway;
    let before = tls.stack.log(Program::Gateway).lines().count();
    // No TLS; an alert; a record of TLS 1.0 that is no handshake; the beginning of a ClientHello.
    let hostile: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &[21, 3, 3, 0, 2, 2, 40],
        &[22, 3, 1, 0, 4, 1, 0, 0, 0],
        &[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
    ];
    for number in 0..200 {
        let mut stream = TcpStream::connect(gateway).await.unwrap();
        // The gateway may have closed it before.
        let _ = stream.write_all(hostile[number % hostile.len()]).await;
        let _ = stream.shutdown().await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    let mut connection = tls.connect("api.example.com").await.unwrap();
    assert_serves(&mut connection).await;
    let log = tls.stack.log(Program::Gateway);
    let written = log.lines().count() - before;
    assert!(written < 20, "{written} lines:\n{log}");
}

#[tokio::test]
async fn the_second_handshake_resumes_the_session() {
    let tls = TlsStack::start("").await;
    let config = tls.authority.client(&["http/1.1"], None);
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let stream = TcpStream::connect(tls.stack.addresses().gateway)
            .await
            .unwrap();
        let name = ServerName::try_from("api.example.com").unwrap();
        let connector = TlsConnector::from(config.clone());
        let mut stream = connector.connect(name, stream).await.unwrap();
        kinds.push(stream.get_ref().1.handshake_kind());
        // The tickets arrive with the first response.
        let get = request("GET", "/x", &["Connection: close"], b"");
        stream.write_all(&get).await.unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).await.unwrap();
    }
    assert_eq!(
        kinds,
        [Some(HandshakeKind::Full), Some(HandshakeKind::Resumed)]
    );
}

#[tokio::test]
async fn versions_before_1_2_are_rejected() {
    let tls = TlsStack::start("").await;
    let address = tls.stack.addresses().gateway.to_string();
    let authority = tls.files.path().join("ca.pem");
    for (version, works) in [("-tls1_3", true), ("-tls1_2", true), ("-tls1_1", false)] {
        let output = Command::new("openssl")
            .args([
                "s_client",
                "-connect",
                &address,
                version,
                "-verify_return_error",
            ])
            .args(["-servername", "api.example.com", "-CAfile"])
            .arg(&authority)
            // Otherwise openssl itself refuses to offer 1.1.
            .args(["-cipher", "DEFAULT@SECLEVEL=0"])
            .stdin(std::process::Stdio::null())
            .output()
            .expect("openssl is installed");
        let text = output_text(&output);
        assert_eq!(output.status.success(), works, "{version}: {text}");
    }
}

#[tokio::test]
async fn curl_is_served_by_http_1_1() {
    let tls = TlsStack::start("").await;
    let port = tls.stack.addresses().gateway.port();
    let mut curl = tokio::process::Command::new("curl");
    curl.args(["--silent", "--show-error", "--http1.1", "--cacert"])
        .arg(tls.files.path().join("ca.pem"))
        .args(["--resolve", &format!("api.example.com:{port}:127.0.0.1")])
        .arg(format!("https://api.example.com:{port}/x"));
    let output = curl.output().await.expect("curl is installed");
    assert_eq!(output_text(&output), "{\"recorded\":true}");
}

const HTTP_2: &str = "protocols = ['http/1.1', 'h2']";

#[tokio::test]
async fn curl_is_served_by_http_2() {
    let tls = TlsStack::start(HTTP_2).await;
    let port = tls.stack.addresses().gateway.port();
    let (target, form) = tls.stack.client().post("/x").param("a", "ü&=").parts();
    let mut curl = tokio::process::Command::new("curl");
    curl.args(["--silent", "--show-error", "--http2", "--cacert"])
        .arg(tls.files.path().join("ca.pem"))
        .args(["--resolve", &format!("api.example.com:{port}:127.0.0.1")])
        .args(["--data-raw", &form, "--write-out", " %{http_version}"])
        .arg(format!("https://api.example.com:{port}{target}"));
    let output = curl.output().await.expect("curl is installed");
    assert_eq!(output_text(&output), "{\"recorded\":true} 2");
    let received = tls.backend.request_number(1).await;
    assert_eq!(received.body, form.as_bytes());
}

#[tokio::test]
async fn a_thousand_requests_of_h2load_are_served() {
    let tls = TlsStack::start(HTTP_2).await;
    let mut h2load = tokio::process::Command::new("h2load");
    h2load
        .args(["-n", "1000", "-c", "4", "-m", "20"])
        .arg(format!("https://{}/x", tls.stack.addresses().gateway));
    let output = h2load.output().await;
    let output = output.expect("h2load is installed: run scripts/prerequisites test");
    let text = output_text(&output);
    assert!(text.contains("Application protocol: h2"), "{text}");
    assert!(
        text.contains("1000 succeeded, 0 failed, 0 errored, 0 timeout"),
        "{text}"
    );
    assert!(text.contains("status codes: 1000 2xx"), "{text}");
    assert_eq!(tls.backend.requests().len(), 1000);
}

#[tokio::test]
async fn what_is_not_tls_is_closed() {
    let tls = TlsStack::start("").await;
    let mut plain = tls.stack.raw().await;
    plain.send(&request("GET", "/x", &[], b"")).await;
    // An alert, but no HTTP response.
    assert!(
        plain
            .has_activity_within(std::time::Duration::from_secs(20))
            .await
    );
    assert!(!plain.unread().starts_with(b"HTTP"));
    assert!(tls.backend.requests().is_empty());
    tls.stack
        .log_with(Program::Gateway, "ended before their first request")
        .await;
}

#[tokio::test]
async fn a_handshake_has_a_timeout() {
    let tls = TlsStack::start("[timeouts]\nhead_seconds = 1").await;
    let mut silent = tls.stack.raw().await;
    assert!(silent.is_closed().await);
    let mut partial = tls.stack.raw().await;
    partial.send(b"\x16\x03\x01").await;
    assert!(partial.is_closed().await);
}

#[tokio::test]
async fn a_plain_listener_redirects_to_https() {
    let authority = Authority::new("Test authority");
    let files = Folder::create();
    write(&files, "api", &authority.issue(&["api.example.com"]));
    let backend = RecordingBackend::start().await;
    let plain = free_address();
    let redirecting = format!("[[listen]]\naddress = '{plain}'\nredirect_to_https = true\n");
    let stack = Stack::builder()
        .gateway(&(listen(&certificates(&files, &["api"]), "") + "\n" + &redirecting))
        .gateway("public_url = 'https://api.example.com:8443'")
        .in_front_of(&backend)
        .start()
        .await;
    let mut connection = RawConnection::open(plain).await;
    for target in ["/a%20b?x=1&time=2", "/login?state=v1.x&code=y"] {
        let headers = ["Cookie: a=b", "Content-Length: 0"];
        connection
            .send(&request("GET", target, &headers, b""))
            .await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.status, 308);
        let location = format!("https://gateway.example:8443{target}");
        assert_eq!(response.header("location"), Some(&*location));
        assert!(response.header("x-request-id").is_some());
    }
    // What has crossed the network in clear must be noticed, whether it is valid or not.
    let form = [
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 3",
    ];
    for (method, target, headers) in [
        ("GET", "/a?x=1&sign=2", &[][..]),
        ("GET", "/a?%73ign", &[]),
        ("GET", "/a", &["acme-x-authorization: x"]),
        ("GET", "/a", &["acme-x-sign: x"]),
        ("GET", "/a", &["Authorization: Basic eDp5"]),
        ("POST", "/login", &["Content-Length: 0"]),
        ("POST", "/login", &form),
        ("PUT", "/a", &[]),
    ] {
        let headers = [headers, &["Connection: close"]].concat();
        let mut connection = RawConnection::open(plain).await;
        connection
            .send(&request(method, target, &headers, b""))
            .await;
        let response = connection.responses_until_close().await.pop().unwrap();
        assert_eq!(response.status, 403, "{method} {target}");
        assert_eq!(response.header("location"), None);
        assert_eq!(response.code().as_deref(), Some("https_required"));
    }
    // A malformed request is not redirected.
    connection.send(&request("GET", "/%", &[], b"")).await;
    assert_eq!(connection.response().await.unwrap().status, 400);
    until("the access log", || async {
        stack.log(Program::Gateway).contains("308").then_some(())
    })
    .await;
    assert!(backend.requests().is_empty());
}

#[tokio::test]
async fn what_came_by_https_is_not_redirected_again() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .gateway(
            "public_url = 'https://api.example.com'\ntrusted_proxies = ['127.0.0.1', '10.0.0.0/8']",
        )
        .gateway("[[listen]]\naddress = '$LISTEN'\nredirect_to_https = true\n")
        .in_front_of(&backend)
        .start()
        .await;
    for (lines, status) in [
        (&[][..], 308),
        (&["X-Forwarded-Proto: http"], 308),
        (&["X-Forwarded-Proto: HTTP,"], 308),
        (&["X-Forwarded-Proto: https"], 200),
        (&["x-forwarded-proto: HTTPS"], 200),
        (&["X-Forwarded-Proto: https,http"], 200),
        (
            &["X-Forwarded-Proto: https", "X-Forwarded-Proto: http"],
            200,
        ),
        (&["X-Forwarded-Proto: wss"], 200),
        (&["X-Forwarded-Proto: on"], 200),
        // What the client may have written does not count.
        (
            &[
                "X-Forwarded-Proto: https, http",
                "X-Forwarded-For: 192.0.2.1",
            ],
            308,
        ),
        (
            &[
                "X-Forwarded-Proto: https, http",
                "X-Forwarded-For: 192.0.2.1, 10.0.0.1",
            ],
            200,
        ),
    ] {
        let mut connection = stack.raw().await;
        connection.send(&request("GET", "/x", lines, b"")).await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.status, status, "{lines:?}");
    }
    let arrived = backend.requests();
    let schemes = arrived
        .iter()
        .map(|request| request.value("x-forwarded-proto"));
    assert_eq!(schemes.collect::<Vec<_>>(), [Some("https"); 7]);
}

/// Whether this client, whom a PROXY header names, completes a handshake.
async fn begins(tls: &TlsStack, client: &str) -> bool {
    let mut stream = TcpStream::connect(tls.stack.addresses().gateway)
        .await
        .unwrap();
    let kind = if client.contains(':') { "TCP6" } else { "TCP4" };
    let header = format!("PROXY {kind} {client} {client} 1 2\r\n");
    stream.write_all(header.as_bytes()).await.unwrap();
    let client = tls.authority.client(&["http/1.1"], None);
    let begun = RawConnection::begin_tls(stream, "api.example.com", client).await;
    begun.is_ok()
}

#[tokio::test]
async fn handshakes_of_one_address_have_a_rate_that_others_do_not_feel() {
    let further = "proxy_protocol = ['127.0.0.1']\n[connections]\nhandshakes_per_second = 2\n";
    let tls = TlsStack::start(further).await;
    let flood = |client: &'static str| {
        let tls = &tls;
        async move {
            let start = Instant::now();
            let mut begun = 0;
            for _ in 0..100 {
                begun += u64::from(begins(tls, client).await);
            }
            (begun, start.elapsed().as_secs())
        }
    };
    let others = async {
        for number in 1..=40 {
            assert!(
                begins(&tls, &format!("198.51.100.{number}")).await,
                "{number}"
            );
        }
    };
    // At once ten times the rate of a second.
    let (first, second, ()) = tokio::join!(flood("192.0.2.1"), flood("2001:db8:0:1::1"), others);
    for (begun, seconds) in [first, second] {
        assert!(
            (20..=20 + 2 * (seconds + 1)).contains(&begun),
            "{begun} in {seconds} s"
        );
    }
    // A /48 has four times the rate.
    let (start, mut begun) = (Instant::now(), 0);
    for network in 2..12 {
        for _ in 0..10 {
            begun += u64::from(begins(&tls, &format!("2001:db8:0:{network}::1")).await);
        }
    }
    let max = 80 + 8 * (start.elapsed().as_secs() + 1);
    assert!((50..=max).contains(&begun), "{begun} of at most {max}");
    let log = tls
        .stack
        .log_with(Program::Gateway, "too many TLS handshakes")
        .await;
    // Once a minute.
    let lines = log.matches("too many TLS handshakes").count();
    assert!(lines < 10, "{log}");
    let networks = ["192.0.2.1/32", "2001:db8:0:1::/64"];
    let is_named = |network: &str| log.contains(&format!("client.network={network} "));
    assert!(networks.into_iter().any(is_named), "{log}");
    // A reload keeps what was used: no more is allowed at once.
    let since = until("a refusal", || async {
        let start = Instant::now();
        (!begins(&tls, "192.0.2.1").await).then_some(start)
    })
    .await;
    tls.stack
        .configure(Program::Gateway, "[connections]\nhandshakes_per_second = 1");
    assert!(tls.stack.reload(Program::Gateway).status.success());
    let mut again = 0;
    for _ in 0..10 {
        again += u64::from(begins(&tls, "192.0.2.1").await);
    }
    let max = 2 * (since.elapsed().as_secs() + 1);
    assert!(again <= max, "{again} of at most {max}");
    let name = "signpost_connections_refused_total";
    let scrape = Scrape::of(tls.stack.addresses().management).await;
    let refused = scrape.value(name, &[("cause", "handshake_rate")]);
    // Of two floods and the /48, of 100 each.
    let expected = 300 - first.0 - second.0 - begun;
    assert!(
        refused >= Some(expected as f64),
        "{refused:?} of {expected}"
    );
    // With time, and for those who are listed as proxies.
    until("the rate to allow a handshake", || async {
        begins(&tls, "192.0.2.1").await.then_some(())
    })
    .await;
    tls.stack
        .configure(Program::Gateway, "trusted_proxies = ['192.0.2.1']");
    assert!(tls.stack.reload(Program::Gateway).status.success());
    for _ in 0..20 {
        assert!(begins(&tls, "192.0.2.1").await);
    }
}
