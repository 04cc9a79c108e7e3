//! The gateway's listeners: TLS, the PROXY protocol, redirects to https, ACME challenges, limits of connections. #13

mod acme;
mod client_certificates;
mod connection_limits;
mod hsts;
mod proxy_protocol;
mod tls;
mod tls_files;

use end_to_end::{
    certificates::{Authority, Certificate},
    folder::Folder,
    raw_connection::{RawConnection, request},
    recording_backend::RecordingBackend,
    stack::Stack,
};
use tokio::net::TcpStream;

/// A gateway with a TLS listener, in front of a recording backend.
struct TlsStack {
    stack: Stack,
    backend: RecordingBackend,
    authority: Authority,
    files: Folder,
}

impl TlsStack {
    /// Starts it with one certificate for `api.example.com`. `$FILES` in `further`, keys of its listener, is the folder
    /// of the certificates: `api.pem`, `api.key`, and `ca.pem`, the authority.
    async fn start(further: &str) -> Self {
        let authority = Authority::new("Test authority");
        let api = authority.issue(&["api.example.com"]);
        let files = Folder::create();
        write(&files, "api", &api);
        files.write("ca.pem", authority.pem());
        let backend = RecordingBackend::start().await;
        let further = further.replace("$FILES", &files.path().display().to_string());
        let stack = Stack::builder()
            .gateway(&listen(&certificates(&files, &["api"]), &further))
            .in_front_of(&backend)
            .start()
            .await;
        Self {
            stack,
            backend,
            authority,
            files,
        }
    }

    /// Connects, and expects the server to be `name`.
    async fn connect(&self, name: &str) -> std::io::Result<RawConnection> {
        self.connect_as(name, None).await
    }

    /// Connects with a client certificate.
    async fn connect_as(
        &self,
        name: &str,
        client: Option<&Certificate>,
    ) -> std::io::Result<RawConnection> {
        let stream = TcpStream::connect(self.stack.addresses().gateway).await?;
        RawConnection::begin_tls(stream, name, self.authority.client(&["http/1.1"], client)).await
    }
}

/// A `[[listen]]` table at the gateway's address, with this `tls.certificates`.
fn listen(certificates: &str, further: &str) -> String {
    format!("[[listen]]\naddress = '$LISTEN'\ntls.certificates = [{certificates}]\n{further}")
}

/// Items of `tls.certificates`.
fn certificates(files: &Folder, names: &[&str]) -> String {
    let folder = files.path().display();
    let item = |name: &&str| {
        format!("{{ certificate = '{folder}/{name}.pem', key = '{folder}/{name}.key' }}")
    };
    names.iter().map(item).collect::<Vec<_>>().join(", ")
}

/// Writes both files of a certificate.
fn write(files: &Folder, name: &str, certificate: &Certificate) {
    files.write(&format!("{name}.key"), &certificate.key);
    files.write(&format!("{name}.pem"), &certificate.certificate);
}

/// Sends a GET, and expects 200.
async fn assert_serves(connection: &mut RawConnection) {
    connection.send(&request("GET", "/x", &[], b"")).await;
    let response = connection.response().await.expect("it is answered");
    assert_eq!(response.status, 200);
}
