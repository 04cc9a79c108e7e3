//! ACME challenges by http: files that certbot's webroot way writes. RFC 8555 section 8.3.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Instant,
};

use end_to_end::{
    folder::Folder,
    metrics::Scrape,
    port::free_address,
    program::{Program, output_text},
    raw_connection::{RawConnection, RawResponse, request},
    recording_backend::RecordingBackend,
    stack::Stack,
    waiting::until,
};
use tokio::task::JoinSet;

const TOKEN: &str = "DGyRejmCefe7v4NfDGDKfA_-9";
const AUTHORIZATION: &str = "DGyRejmCefe7v4NfDGDKfA_-9.9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI";

/// A gateway whose listener has a webroot, and redirects everything else.
struct Acme {
    stack: Stack,
    backend: RecordingBackend,
    webroot: Folder,
}

impl Acme {
    async fn start(further: &str) -> Self {
        let (webroot, backend) = (Folder::create(), RecordingBackend::start().await);
        let stack = Stack::builder()
            .gateway(&listen(webroot.path()))
            .gateway(&format!(
                "public_url = 'https://api.example.com'\n{further}"
            ))
            .in_front_of(&backend)
            .start()
            .await;
        let acme = Self {
            stack,
            backend,
            webroot,
        };
        fs::create_dir_all(acme.challenges()).unwrap();
        acme
    }

    /// The folder that certbot creates.
    fn challenges(&self) -> PathBuf {
        self.webroot.path().join(".well-known/acme-challenge")
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.challenges().join(name), content).unwrap();
    }

    async fn send(&self, method: &str, name: &str) -> RawResponse {
        let mut connection = self.stack.raw().await;
        let target = format!("/.well-known/acme-challenge/{name}");
        connection.send(&request(method, &target, &[], b"")).await;
        connection.response().await.expect("it is answered")
    }
}

fn listen(webroot: &Path) -> String {
    let webroot = webroot.display();
    format!(
        "[[listen]]\naddress = '$LISTEN'\nredirect_to_https = true\nacme_webroot = '{webroot}'\n"
    )
}

#[tokio::test]
async fn a_challenge_is_served_and_everything_else_redirected() {
    let acme = Acme::start("").await;
    let response = acme.send("GET", TOKEN).await;
    assert_eq!(
        (response.status, response.code().as_deref()),
        (404, Some("not_found"))
    );
    acme.write(TOKEN, AUTHORIZATION);
    let response = acme.send("GET", TOKEN).await;
    assert_eq!(
        (response.status, &response.body[..]),
        (200, AUTHORIZATION.as_bytes())
    );
    assert_eq!(
        response.header("content-type"),
        Some("application/octet-stream")
    );
    assert!(response.header("x-request-id").is_some());
    for method in ["POST", "PUT"] {
        let mut connection = acme.stack.raw().await;
        let target = format!("/.well-known/acme-challenge/{TOKEN}");
        let headers = ["Content-Length: 0", "Connection: close"];
        connection
            .send(&request(method, &target, &headers, b""))
            .await;
        let response = connection.response().await.unwrap();
        let found = (response.status, response.header("allow"));
        assert_eq!(found, (405, Some("GET, HEAD")), "{method}");
        let text = String::from_utf8(response.body).unwrap();
        assert!(text.contains("This path accepts only GET, HEAD."), "{text}");
    }
    let mut connection = acme.stack.raw().await;
    let target = format!("/.well-known/acme-challenge/{TOKEN}");
    let head = request("HEAD", &target, &["Connection: close"], b"");
    connection.send(&head).await;
    // Of the body that it announces, nothing comes.
    assert!(connection.response().await.is_none());
    let head = String::from_utf8(connection.unread().to_vec()).unwrap();
    let length = format!("content-length: {}\r\n", AUTHORIZATION.len());
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.to_lowercase().contains(&length), "{head}");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    let mut connection = acme.stack.raw().await;
    connection
        .send(&request("GET", "/.well-known/x", &[], b""))
        .await;
    assert_eq!(connection.response().await.unwrap().status, 308);
    assert!(acme.backend.requests().is_empty());
    let line = format!("http.path=/.well-known/acme-challenge/{TOKEN}");
    let log = acme.stack.log_with(Program::Gateway, &line).await;
    assert!(log.contains(&line), "{log}");
    // A request is counted once its response is sent and its line is written.
    let management = acme.stack.addresses().management;
    until("exactly two successes to be counted", || async {
        let metrics = Scrape::of(management).await;
        let successes = metrics.sum("signpost_requests_total", &[("status_class", "2xx")]);
        (successes == 2.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn only_small_regular_files_with_the_name_of_a_token_are_served() {
    let acme = Acme::start("").await;
    let secret = acme.webroot.write("secret", "hush");
    acme.write("large", [b'x'; 4097]);
    acme.write("largest", [b'x'; 4096]);
    acme.write("dot.ted", "hush");
    symlink(&secret, acme.challenges().join("link")).unwrap();
    fs::create_dir(acme.challenges().join("folder")).unwrap();
    // A pipe without a writer would block.
    let pipe = acme.challenges().join("pipe");
    assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    let long = "t".repeat(129);
    for name in [
        "",
        "large",
        "link",
        "folder",
        "pipe",
        "dot.ted",
        "..",
        "../secret",
        "%2e%2e/secret",
        "..%2fsecret",
        "folder/",
        "a/b",
        "lar%67est",
        &long,
    ] {
        let response = acme.send("GET", name).await;
        let found = (response.status, response.code());
        assert_eq!(found, (404, Some("not_found".to_owned())), "{name}");
    }
    assert_eq!(acme.send("GET", "largest").await.body.len(), 4096);
    // What cannot be read is logged, what does not exist is not.
    let log = acme
        .stack
        .log_with(Program::Gateway, "a file of acme_webroot cannot be served")
        .await;
    assert!(!log.contains("hush"));
}

#[tokio::test]
async fn challenges_count_as_unsigned_requests() {
    let acme = Acme::start("[limits.unsigned]\nper_second = 1\nburst = 5").await;
    let (start, mut served) = (Instant::now(), 0);
    while acme.send("GET", TOKEN).await.status != 429 {
        served += 1;
        assert!(served <= 6 + start.elapsed().as_secs(), "{served}");
    }
    assert!(served >= 5, "{served}");
}

#[tokio::test]
async fn many_challenges_at_once_are_all_answered() {
    let acme = Acme::start("[limits.unsigned]\nper_second = 0").await;
    acme.write(TOKEN, AUTHORIZATION);
    let acme = Arc::new(acme);
    let ask = |_| {
        let acme = Arc::clone(&acme);
        async move { acme.send("GET", TOKEN).await.status }
    };
    let clients: JoinSet<_> = (0..200).map(ask).collect();
    assert_eq!(clients.join_all().await, [200; 200]);
}

#[tokio::test]
async fn only_a_listener_with_a_webroot_serves_challenges() {
    let acme = Acme::start("").await;
    acme.write(TOKEN, AUTHORIZATION);
    let (with, without) = (acme.stack.addresses().gateway, free_address());
    // Also one that a reload adds; and the webroot ends with it.
    let tables = format!(
        "[[listen]]\naddress = '{without}'\n{}",
        listen(acme.webroot.path()).replace("$LISTEN", &with.to_string())
    );
    acme.stack.configure(Program::Gateway, &tables);
    let output = acme.stack.reload(Program::Gateway);
    assert!(output.status.success(), "{}", output_text(&output));
    let ask = async |address| {
        let mut connection = RawConnection::open(address).await;
        let target = format!("/.well-known/acme-challenge/{TOKEN}");
        connection.send(&request("GET", &target, &[], b"")).await;
        connection.response().await.unwrap().status
    };
    assert_eq!(ask(with).await, 200);
    // An unsigned request without parameters, for the backend.
    assert_eq!(ask(without).await, 200);
    assert_eq!(acme.backend.requests().len(), 1);
}

#[tokio::test]
async fn a_webroot_needs_a_folder_and_a_listener_without_tls() {
    let acme = Acme::start("").await;
    let address = acme.stack.addresses().gateway;
    for (keys, expected) in [
        (
            "acme_webroot = '/nowhere'".to_owned(),
            "listen[0].acme_webroot: found \"/nowhere\"",
        ),
        (
            format!(
                "acme_webroot = '{}'\ntls.certificates = []",
                acme.webroot.path().display()
            ),
            "listen[0].acme_webroot",
        ),
    ] {
        let toml = format!("[[listen]]\naddress = '{address}'\n{keys}\n");
        acme.stack.configure(Program::Gateway, &toml);
        let output = acme.stack.check(Program::Gateway, &[]);
        let text = output_text(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}
