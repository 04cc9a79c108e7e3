//! TLS from the gateway to its backends.

use std::{fs, net::SocketAddr};

use end_to_end::{
    certificates::{Authority, Certificate},
    port::free_address,
    program::{Program, output_text},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    response::Response,
    stack::{Stack, StackBuilder},
    waiting::until,
};
use rcgen::date_time_ymd;
use rustls::version::{TLS12, TLS13};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// The authority of a test.
fn authority() -> Authority {
    Authority::new("Internal authority")
}

/// A backend with a certificate of `authority` for its address.
async fn backend(authority: &Authority) -> RecordingBackend {
    let certificate = authority.issue(&["127.0.0.1"]);
    RecordingBackend::start_with_tls(certificate.server_config(None)).await
}

/// No pause of the machine exceeds it. It includes the handshake.
const PATIENT: &str = "timeouts.connect_seconds = 30";

/// A gateway in front of one TLS backend, which trusts `$FOLDER/ca.pem`. `keys` are further keys of the version.
fn gateway(backend: &RecordingBackend, keys: &str) -> StackBuilder {
    let stack = Stack::builder().in_front_of(backend);
    let stack = stack.gateway(PATIENT);
    stack.gateway(&https(backend.address(), keys))
}

fn https(address: SocketAddr, keys: &str) -> String {
    format!(
        "versions.v1.backend = 'https://{address}'\nversions.v1.tls.ca = '$FOLDER/ca.pem'\n{keys}"
    )
}

/// Starts a stack whose folder has these files.
async fn start(stack: StackBuilder, files: &[(&str, &str)]) -> Stack {
    let with_file = |stack: StackBuilder, (name, content): &(&str, &str)| stack.file(name, content);
    files.iter().fold(stack, with_file).start().await
}

/// Starts a gateway that trusts `trusted`, and returns its response to a GET. The log must name the address and `why`.
async fn failure(
    backend: &RecordingBackend,
    trusted: &Authority,
    keys: &str,
    why: &str,
) -> Response {
    let stack = start(gateway(backend, keys), &[("ca.pem", trusted.pem())]).await;
    let response = stack.client().get("/x").send().await;
    let log = stack.log_with(Program::Gateway, why).await;
    let address = backend.address().to_string();
    let names_all = |line: &str| {
        [why, "TLS", &address]
            .iter()
            .all(|word| line.contains(word))
    };
    assert!(log.lines().any(names_all), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    response
}

#[tokio::test]
async fn an_address_with_http_has_no_tls() {
    let backend = RecordingBackend::start().await;
    let address = format!("versions.v1.backend = 'http://{}'", backend.address());
    let stack = Stack::builder().in_front_of(&backend).gateway(&address);
    stack.start().await.client().get("/x").send().await.ok();
    assert_eq!(backend.requests().len(), 1);
}

#[tokio::test]
async fn requests_and_responses_pass_through_tls() {
    let authority = authority();
    let backend = backend(&authority).await;
    let stack = start(gateway(&backend, ""), &[("ca.pem", authority.pem())]).await;
    let client = stack.client();
    for _ in 0..3 {
        client.get("/x").param("a", "1").send().await.ok();
        let form = client.post("/y").param("long", &"x".repeat(60_000));
        form.send().await.ok();
    }
    // Large responses, and answers that end with the connection.
    let body = "y".repeat(3_000_000);
    backend.behave(Behaviour {
        body: body.clone().into_bytes(),
        ..Behaviour::default()
    });
    assert_eq!(client.get("/z").send().await.text(), body);
    backend.behave(Behaviour::verbatim("HTTP/1.1 200 OK\r\n\r\nuntil the end"));
    assert_eq!(client.get("/z").send().await.text(), "until the end");
    assert_eq!(backend.requests().len(), 8);
    // The idle connection is reused. Each thread has a pool of its own.
    assert!(backend.connections() <= 8, "{}", backend.connections());
    let request = backend.request_number(1).await;
    assert_eq!(request.values("x-forwarded-proto"), ["http"]);
}

#[tokio::test]
async fn idle_tls_connections_are_reused_and_later_ones_resume_the_session() {
    let authority = authority();
    let backend = backend(&authority).await;
    let stack = gateway(&backend, "threads = 1");
    let stack = start(stack, &[("ca.pem", authority.pem())]).await;
    let client = stack.client();
    for _ in 0..20 {
        client.get("/x").send().await.ok();
    }
    assert_eq!((backend.connections(), backend.resumptions()), (1, 0));
    backend.behave(Behaviour::responding(Delivery::ThenClose));
    for _ in 0..3 {
        client.get("/x").send().await.ok();
    }
    assert_eq!((backend.connections(), backend.resumptions()), (3, 2));
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_rejected() {
    let backend = backend(&authority()).await;
    // An authority of the same name, and one of another name.
    for other in [authority(), Authority::new("Another authority")] {
        let response = failure(&backend, &other, "", "unknown authority").await;
        response.problem(502, "backend_unreachable");
    }
    assert!(backend.recorded().is_empty());
}

#[tokio::test]
async fn a_certificate_for_another_name_is_rejected_unless_the_name_is_configured() {
    let authority = authority();
    let certificate = authority.issue(&["login.internal"]);
    let backend = RecordingBackend::start_with_tls(certificate.server_config(None)).await;
    let response = failure(&backend, &authority, "", "is not for 127.0.0.1").await;
    response.problem(502, "backend_unreachable");
    assert!(backend.recorded().is_empty());
    let keys = "versions.v1.tls.server_name = 'login.internal'";
    let stack = start(gateway(&backend, keys), &[("ca.pem", authority.pem())]).await;
    stack.client().get("/x").send().await.ok();
}

#[tokio::test]
async fn an_expired_certificate_is_rejected() {
    let authority = authority();
    let expired = authority.issue_with(&["127.0.0.1"], |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    let backend = RecordingBackend::start_with_tls(expired.server_config(None)).await;
    let response = failure(&backend, &authority, "", "has expired").await;
    response.problem(502, "backend_unreachable");
    let future = authority.issue_with(&["127.0.0.1"], |params| {
        params.not_before = date_time_ymd(2200, 1, 1);
        params.not_after = date_time_ymd(2201, 1, 1);
    });
    let backend = RecordingBackend::start_with_tls(future.server_config(None)).await;
    let response = failure(&backend, &authority, "", "is not valid yet").await;
    response.problem(502, "backend_unreachable");
}

#[tokio::test]
async fn a_backend_that_speaks_plain_http_is_not_taken_for_one_with_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let _server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut received = [0; 4096];
            let length = stream.read(&mut received).await.unwrap();
            assert!(!received[..length].windows(4).any(|part| part == b"HTTP"));
            let response = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(response).await.unwrap();
        }
    });
    let stack = Stack::builder()
        .in_front_of_address(address)
        .gateway(PATIENT)
        .gateway(&https(address, ""));
    let stack = start(stack, &[("ca.pem", authority().pem())]).await;
    let response = stack.client().get("/x").send().await;
    response.problem(502, "backend_unreachable");
    let log = stack.log_with(Program::Gateway, "does not speak TLS").await;
    assert!(log.contains(&address.to_string()), "{log}");
}

#[tokio::test]
async fn a_silent_backend_costs_the_connect_timeout() {
    // The kernel accepts connections; nobody answers them.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let stack = Stack::builder().in_front_of_address(address);
    let stack = stack.gateway(&https(address, "timeouts.connect_seconds = 1"));
    let stack = start(stack, &[("ca.pem", authority().pem())]).await;
    let started = std::time::Instant::now();
    let response = stack.client().get("/x").send().await;
    response.problem(502, "backend_unreachable");
    let elapsed = started.elapsed();
    assert!((1..20).contains(&elapsed.as_secs()), "{elapsed:?}");
    let log = stack.log_with(Program::Gateway, "the handshake timed out");
    assert!(log.await.contains("TLS"));
}

#[tokio::test]
async fn a_backend_can_require_the_gateways_certificate() {
    let (authority, clients) = (authority(), Authority::new("Clients"));
    let certificate = authority.issue(&["127.0.0.1"]);
    let tls = certificate.server_config(Some(&clients));
    let backend = RecordingBackend::start_with_tls(tls).await;
    let own = clients.issue(&["gateway"]);
    let stack = gateway(&backend, "");
    let files = [
        ("ca.pem", authority.pem()),
        ("gateway.pem", &own.certificate),
        ("gateway.key", &own.key),
    ];
    let stack = start(stack, &files).await;
    let client = stack.client();
    for call in [client.get("/x"), client.post("/x").param("a", "1")] {
        call.send().await.problem(502, "backend_unreachable");
    }
    assert!(backend.recorded().is_empty());
    stack.configure(
        Program::Gateway,
        &own_certificate(stack.folder().to_str().unwrap()),
    );
    let reloaded = output_text(&stack.reload(Program::Gateway));
    assert!(
        reloaded.contains("versions.v1.tls.key: added"),
        "{reloaded}"
    );
    for call in [client.get("/x"), client.post("/x").param("a", "1")] {
        call.send().await.ok();
    }
    let log = stack.log(Program::Gateway);
    assert!(!log.contains("PRIVATE KEY") && !reloaded.contains("PRIVATE KEY"));
}

#[tokio::test]
async fn a_backend_may_speak_only_one_version_of_tls() {
    let (authority, clients) = (authority(), Authority::new("Clients"));
    let certificate = authority.issue(&["127.0.0.1"]);
    for version in [&TLS12, &TLS13] {
        let tls = certificate.server_config_for(&[version], None);
        let backend = RecordingBackend::start_with_tls(tls).await;
        let stack = start(gateway(&backend, ""), &[("ca.pem", authority.pem())]).await;
        stack.client().get("/x").send().await.ok();
    }
    // Unlike TLS 1.3, TLS 1.2 rejects a missing certificate within the handshake.
    let tls = certificate.server_config_for(&[&TLS12], Some(&clients));
    let backend = RecordingBackend::start_with_tls(tls).await;
    let response = failure(&backend, &authority, "", "rejected the handshake").await;
    response.problem(502, "backend_unreachable");
}

fn own_certificate(folder: &str) -> String {
    format!(
        "versions.v1.tls.certificate = '{folder}/gateway.pem'\nversions.v1.tls.key = '{folder}/gateway.key'"
    )
}

#[tokio::test]
async fn a_reload_to_another_authority_reuses_no_connection() {
    let (authority, other) = (authority(), Authority::new("Another authority"));
    let backend = backend(&authority).await;
    let stack = gateway(&backend, "threads = 1");
    let stack = start(stack, &[("ca.pem", authority.pem())]).await;
    let client = stack.client();
    client.get("/x").send().await.ok();
    // The same path, another content.
    fs::write(stack.folder().join("ca.pem"), other.pem()).unwrap();
    let reloaded = output_text(&stack.reload(Program::Gateway));
    assert!(
        reloaded.contains("versions.v1.tls.ca: changed"),
        "{reloaded}"
    );
    let response = client.get("/x").send().await;
    response.problem(502, "backend_unreachable");
    assert_eq!(backend.requests().len(), 1);
    // Back again: the settings are the same as at first.
    fs::write(stack.folder().join("ca.pem"), authority.pem()).unwrap();
    assert!(stack.reload(Program::Gateway).status.success());
    client.get("/x").send().await.ok();
    // An invalid file changes nothing.
    fs::write(stack.folder().join("ca.pem"), "no certificate").unwrap();
    let refused = stack.reload(Program::Gateway);
    let text = output_text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.contains("versions.v1.tls.ca: found"), "{text}");
    client.get("/x").send().await.ok();
}

#[tokio::test]
async fn a_watched_gateway_reloads_a_changed_certificate() {
    let (authority, clients) = (authority(), Authority::new("Clients"));
    let certificate = authority.issue(&["127.0.0.1"]);
    let tls = certificate.server_config(Some(&clients));
    let backend = RecordingBackend::start_with_tls(tls).await;
    let folder_keys = own_certificate("$FOLDER");
    let stack = gateway(&backend, &format!("watch = true\n{folder_keys}"));
    let stranger = Authority::new("Strangers").issue(&["gateway"]);
    let files = [
        ("ca.pem", authority.pem()),
        ("gateway.pem", &stranger.certificate),
        ("gateway.key", &stranger.key),
    ];
    let stack = start(stack, &files).await;
    let client = stack.client();
    let response = client.get("/x").send().await;
    response.problem(502, "backend_unreachable");
    let own: Certificate = clients.issue(&["gateway"]);
    fs::write(stack.folder().join("gateway.key"), &own.key).unwrap();
    fs::write(stack.folder().join("gateway.pem"), &own.certificate).unwrap();
    until("the new certificate", || async {
        let response = client.get("/x").send().await;
        response.status.is_success().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_failed_handshake_is_retried_on_another_address() {
    let authority = authority();
    let good = backend(&authority).await;
    let wrong = backend(&Authority::new("Another authority")).await;
    let stack = Stack::builder()
        .in_front_of(&good)
        .without(Program::Gateway, "versions")
        .gateway(PATIENT)
        .gateway(&format!(
            "versions.v1.backends = ['https://{}', 'https://{}']\nversions.v1.tls.ca = '$FOLDER/ca.pem'\nversions.v1.health.active = false",
            wrong.address(),
            good.address()
        ));
    let stack = start(stack, &[("ca.pem", authority.pem())]).await;
    let client = stack.client();
    for number in 0..10 {
        client.get("/x").send().await.ok();
        let form = client.post("/x").param("number", &number.to_string());
        form.send().await.ok();
    }
    assert_eq!(good.requests().len(), 20);
    assert!(wrong.recorded().is_empty());
    let log = stack.log_with(Program::Gateway, "unknown authority").await;
    let line = log.lines().find(|line| line.contains("unknown authority"));
    let address = wrong.address().to_string();
    assert!(line.is_some_and(|line| line.contains(&address)), "{log}");
}

#[tokio::test]
async fn health_checks_use_the_same_settings() {
    let authority = authority();
    let good = backend(&authority).await;
    let wrong = backend(&Authority::new("Another authority")).await;
    let failing = backend(&authority).await;
    let unavailable = "HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n";
    failing.behave_when_checked(Behaviour::verbatim(unavailable));
    let addresses = [&good, &wrong, &failing].map(|one| format!("'https://{}'", one.address()));
    let stack = Stack::builder()
        .in_front_of(&good)
        .without(Program::Gateway, "versions")
        .gateway(PATIENT)
        .gateway(&format!(
            "versions.v1.backends = [{}]\nversions.v1.tls.ca = '$FOLDER/ca.pem'\n\
             versions.v1.health = {{ interval_seconds = 1, timeout_seconds = 20, unhealthy_after = 1 }}",
            addresses.join(", ")
        ));
    let stack = start(stack, &[("ca.pem", authority.pem())]).await;
    for (backend, why) in [(&wrong, "unknown authority"), (&failing, "answered 503")] {
        let address = backend.address();
        let line = format!(
            "fails its checks and is unhealthy backend=v1 version=v1 backend.addr={address}"
        );
        let log = stack.log_with(Program::Gateway, &line).await;
        let line = log.lines().find(|found| found.contains(&line)).unwrap();
        assert!(line.contains(why), "{line}");
    }
    until("a check of the good backend", || async {
        (good.checks() > 0).then_some(())
    })
    .await;
    let before = failing.requests().len();
    for _ in 0..6 {
        stack.client().get("/x").send().await.ok();
    }
    assert_eq!(failing.requests().len(), before);
    failing.behave_when_checked(Behaviour::default());
    let line = format!(
        "passes its checks again backend=v1 version=v1 backend.addr={}",
        failing.address()
    );
    stack.log_with(Program::Gateway, &line).await;
}

#[tokio::test]
async fn versions_with_different_settings_share_no_connection() {
    let authority = authority();
    let certificate = authority.issue(&["127.0.0.1", "login.internal"]);
    let backend = RecordingBackend::start_with_tls(certificate.server_config(None)).await;
    let address = backend.address();
    let stack = gateway(
        &backend,
        &format!(
            "threads = 1\nversions.v2.backend = 'https://{address}'\n\
             versions.v2.tls.ca = '$FOLDER/ca.pem'\nversions.v2.tls.server_name = 'login.internal'\n\
             versions.v3.backend = 'https://{address}'\nversions.v3.tls.ca = '$FOLDER/ca.pem'"
        ),
    );
    let stack = start(stack, &[("ca.pem", authority.pem())]).await;
    let client = stack.client();
    for (version, connections) in [("v1", 1), ("v2", 2), ("v1", 2), ("v3", 2), ("v2", 2)] {
        client.get("/x").version(version).send().await.ok();
        assert_eq!(backend.connections(), connections, "{version}");
    }
}

#[tokio::test]
async fn check_reports_unreadable_files_and_a_missing_backend_is_unreachable() {
    let address = free_address();
    let stack = Stack::builder().in_front_of_address(address);
    let stack = stack.gateway(&https(address, ""));
    let files = stack.write_files();
    let config = files.config(Program::Gateway);
    let checked = Program::Gateway.run(files.path(), &["check", "--config", &config]);
    let text = output_text(&checked);
    assert_eq!(checked.status.code(), Some(1), "{text}");
    assert!(text.contains("versions.v1.tls.ca: found"), "{text}");
    assert!(text.contains("ca.pem, which cannot be read"), "{text}");
    let stack = start(stack, &[("ca.pem", authority().pem())]).await;
    let response = stack.client().get("/x").send().await;
    response.problem(502, "backend_unreachable");
    assert!(!stack.log(Program::Gateway).contains("panicked"));
}
