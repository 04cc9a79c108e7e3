//! The management listener with TLS: client certificates, health checks, replaced certificates.

use std::{
    io,
    time::{Duration, UNIX_EPOCH},
};

use end_to_end::{
    certificates::{Authority, Certificate},
    clock::now_ms,
    folder::Folder,
    program::{Program, output_text},
    raw_connection::{RawConnection, RawResponse, request},
    stack::Stack,
    waiting::until,
};
use tokio::net::TcpStream;

/// More than the listener serves at a time.
const SILENT: usize = 400;

struct Management {
    stack: Stack,
    authority: Authority,
    files: Folder,
}

impl Management {
    /// A gateway whose management listener has a certificate for `gateway-a`. `further` are keys of `[management.tls]`;
    /// `$FILES/ca.pem` is its authority.
    async fn start(further: &str) -> Self {
        let (stack, _) = Stack::recording().await;
        let (authority, files) = (Authority::new("Operators"), Folder::create());
        files.write("ca.pem", authority.pem());
        let tls = "[management]\nhosts = ['gateway.example']\n[management.tls]\n\
                   certificates = [{ certificate = '$FILES/a.pem', key = '$FILES/a.key' }]\n";
        let keys = [tls, further].concat();
        let keys = keys.replace("$FILES", &files.path().display().to_string());
        stack.configure(Program::Gateway, &keys);
        let mut management = Self {
            stack,
            authority,
            files,
        };
        management.write(&management.authority.issue(&["gateway-a"]));
        management.stack.restart_without_waiting(Program::Gateway);
        until("the gateway to be ready", || async {
            let ready = management.get("/readyz", None).await.ok()?;
            (ready.status == 200).then_some(())
        })
        .await;
        management
    }

    fn write(&self, certificate: &Certificate) {
        self.files.write("a.key", &certificate.key);
        self.files.write("a.pem", &certificate.certificate);
    }

    async fn connect(&self, client: Option<&Certificate>) -> io::Result<RawConnection> {
        let stream = TcpStream::connect(self.stack.addresses().management).await?;
        let tls = self.authority.client(&["http/1.1"], client);
        RawConnection::begin_tls(stream, "gateway-a", tls).await
    }

    async fn get(&self, path: &str, client: Option<&Certificate>) -> io::Result<RawResponse> {
        let mut connection = self.connect(client).await?;
        connection.send(&request("GET", path, &[], b"")).await;
        let response = connection.response().await;
        response.ok_or_else(|| io::Error::other("no response"))
    }

    async fn status(&self, path: &str, client: Option<&Certificate>) -> u16 {
        self.get(path, client).await.unwrap().status
    }
}

#[tokio::test]
async fn all_but_health_checks_need_a_client_certificate() {
    let management = Management::start("client_ca = '$FILES/ca.pem'\n").await;
    let operator = management.authority.issue(&["an-operator"]);
    for (path, without, with) in [
        ("/healthz", 200, 200),
        ("/readyz", 200, 200),
        ("/metrics", 403, 200),
        ("/api/v1/apps", 403, 404),
        ("/", 403, 404),
    ] {
        assert_eq!(management.status(path, None).await, without, "{path}");
        let with_certificate = management.status(path, Some(&operator)).await;
        assert_eq!(with_certificate, with, "{path}");
    }
    // Each request of a connection is checked.
    let mut connection = management.connect(None).await.unwrap();
    for (path, status) in [("/healthz", 200), ("/metrics", 403), ("/readyz", 200)] {
        connection.send(&request("GET", path, &[], b"")).await;
        assert_eq!(connection.response().await.unwrap().status, status);
    }
    let stranger = Authority::new("Operators").issue(&["an-operator"]);
    assert!(management.get("/healthz", Some(&stranger)).await.is_err());
    // A certificate does not make another Host allowed.
    let mut connection = management.connect(Some(&operator)).await.unwrap();
    let rebound = b"GET /metrics HTTP/1.1\r\nHost: attacker.example\r\n\r\n";
    connection.send(rebound).await;
    assert_eq!(connection.response().await.unwrap().status, 421);
    let health = management.stack.command(&["health"]);
    assert!(health.status.success() && output_text(&health) == "ready\n");
}

#[tokio::test]
async fn an_optional_client_certificate_is_not_needed() {
    let keys = "client_ca = '$FILES/ca.pem'\nclient_auth = 'optional'\n";
    let management = Management::start(keys).await;
    assert_eq!(management.status("/metrics", None).await, 200);
    let stranger = Authority::new("Operators").issue(&["an-operator"]);
    assert!(management.get("/metrics", Some(&stranger)).await.is_err());
}

#[tokio::test]
async fn nothing_is_served_without_tls() {
    let management = Management::start("").await;
    let address = management.stack.addresses().management;
    let mut plain = RawConnection::open(address).await;
    plain.send(&request("GET", "/healthz", &[], b"")).await;
    assert!(plain.response().await.is_none());
}

#[tokio::test]
async fn slow_handshakes_make_room() {
    let management = Management::start("").await;
    let address = management.stack.addresses().management;
    // Nothing, or the beginning of a ClientHello.
    for said in [&b""[..], b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"] {
        let mut slow = Vec::new();
        for _ in 0..SILENT {
            let stream = TcpStream::connect(address).await.unwrap();
            let _ = stream.try_write(said);
            slow.push(stream);
        }
        for path in ["/healthz", "/readyz", "/metrics"] {
            assert_eq!(management.status(path, None).await, 200, "{path}");
        }
        assert!(management.stack.command(&["health"]).status.success());
        drop(slow);
    }
}

#[tokio::test]
async fn a_replaced_certificate_is_used_and_its_end_reported() {
    let management = Management::start("").await;
    let now = UNIX_EPOCH + Duration::from_millis(u64::try_from(now_ms()).unwrap());
    let next = management.authority.issue_with(&["gateway-a"], |params| {
        params.not_before = (now - Duration::from_secs(60 * 60 * 24 * 60)).into();
        params.not_after = (now + Duration::from_secs(60 * 60 * 30)).into();
    });
    management.write(&next);
    until("the new certificate", || async {
        let ready = management.get("/readyz", None).await.ok()?;
        let text = String::from_utf8_lossy(&ready.body).into_owned();
        text.contains("(gateway-a) expires in 29 hours")
            .then_some(())
    })
    .await;
    let metrics = management.get("/metrics", None).await.unwrap();
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    let listener = management.stack.addresses().management;
    let read = format!("signpost_tls_files_last_reload_successful{{listener=\"{listener}\"}} 1");
    assert!(metrics.contains(&read), "{metrics}");
    let checked = output_text(&management.stack.command(&["check"]));
    assert!(checked.contains("expires in 29 hours"), "{checked}");
    // An invalid file changes nothing.
    management.files.write("a.key", "no key");
    let log = "TLS files not reloaded";
    management.stack.log_with(Program::Gateway, log).await;
    assert_eq!(management.status("/healthz", None).await, 200);
}
