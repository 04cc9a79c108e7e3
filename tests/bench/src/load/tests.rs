//! Tests of the loads over TLS, against a server of their own.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::NoServerSessionStorage,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{self, Runtime},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{Load, Until};
use crate::{case::Case, keys::Keys, requests::Requests};

const BODY: &str = "a small answer";

/// A server that answers every request, over HTTP/1.1 or HTTP/2 as ALPN says.
struct Server {
    address: SocketAddr,
    keys: Keys,
    _runtime: Runtime,
}

impl Server {
    /// Starts it. `change` changes its side of TLS.
    fn start(status: u16, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let keys = Keys::generate().unwrap();
        let certificate = keys.tls.certificate();
        let chain = CertificateDer::from_pem_slice(certificate.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        change(&mut config);
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that goes away in the middle is no failure of the server.
                    if let Ok(stream) = acceptor.accept(socket).await {
                        match stream.get_ref().1.alpn_protocol() {
                            Some(b"h2") => serve_http2(stream, status).await,
                            _ => serve_http1(stream, status).await,
                        };
                    }
                });
            }
        });
        Self {
            address,
            keys,
            _runtime: runtime,
        }
    }

    fn requests(&self, case: Case) -> Requests {
        Requests::new(case, 0, &self.keys).unwrap()
    }
}

async fn serve_http1(mut stream: TlsStream<TcpStream>, status: u16) -> Option<()> {
    let mut received = Vec::new();
    loop {
        if stream.read_buf(&mut received).await.ok()? == 0 {
            return None;
        }
        if !received.ends_with(b"\r\n\r\n") {
            continue;
        }
        let closes = received.windows(5).any(|word| word == b"close");
        let connection = if closes { "close" } else { "keep-alive" };
        let length = BODY.len();
        let response = format!(
            "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: {connection}\r\n\r\n{BODY}"
        );
        stream.write_all(response.as_bytes()).await.ok()?;
        if closes {
            stream.shutdown().await.ok()?;
            return Some(());
        }
        received.clear();
    }
}

async fn serve_http2(stream: TlsStream<TcpStream>, status: u16) -> Option<()> {
    let mut connection = h2::server::handshake(stream).await.ok()?;
    while let Some(request) = connection.accept().await {
        let (_, mut respond) = request.ok()?;
        let mut response = http::Response::new(());
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
        let mut body = respond.send_response(response, false).ok()?;
        body.send_data(Bytes::from_static(BODY.as_bytes()), true)
            .ok()?;
    }
    Some(())
}

#[test]
fn every_transport_over_tls_serves_all_loops() {
    let server = Server::start(200, |_| {});
    for case in [Case::W8, Case::W9, Case::W10, Case::W11, Case::W12] {
        let requests = server.requests(case);
        let mut load = Load::new(server.address, 3, &requests).unwrap();
        load.each_once(2).unwrap();
        let served = load.closed(Until::Requests(100)).unwrap();
        assert_eq!(served.requests, 100, "{case}");
        let time = Duration::from_millis(50);
        let served = load.closed(Until::Time(time)).unwrap();
        assert!(served.requests > 0 && served.elapsed >= time, "{case}");
        assert_eq!(load.open(50, 1000).unwrap().len(), 50, "{case}");
    }
}

#[test]
fn an_unexpected_status_fails_the_load() {
    let server = Server::start(503, |_| {});
    for case in [Case::W8, Case::W10] {
        let requests = server.requests(case);
        let mut load = Load::new(server.address, 1, &requests).unwrap();
        let failed = load.closed(Until::Requests(1)).unwrap_err();
        assert!(format!("{failed:#}").contains("status 503"), "{failed:#}");
    }
}

#[test]
fn a_full_handshake_is_no_resumed_one() {
    let server = Server::start(200, |config| {
        config.session_storage = Arc::new(NoServerSessionStorage {});
    });
    let requests = server.requests(Case::W12);
    let mut load = Load::new(server.address, 1, &requests).unwrap();
    // The first connection has no session to resume.
    load.closed(Until::Requests(1)).unwrap();
    let failed = load.closed(Until::Requests(1)).unwrap_err();
    let text = format!("{failed:#}");
    assert!(
        text.contains("found Some(Full); expected Resumed"),
        "{text}"
    );
}

#[test]
fn an_untrusted_certificate_fails_the_load() {
    let server = Server::start(200, |_| {});
    let other = Keys::generate().unwrap();
    for case in [Case::W8, Case::W10] {
        let requests = Requests::new(case, 0, &other).unwrap();
        let mut load = Load::new(server.address, 1, &requests).unwrap();
        let failed = load.closed(Until::Requests(1)).unwrap_err();
        let text = format!("{failed:#}");
        assert!(text.contains("invalid peer certificate"), "{text}");
    }
}

#[test]
fn without_h2_the_load_over_http2_fails() {
    let server = Server::start(200, |config| config.alpn_protocols.clear());
    let requests = server.requests(Case::W10);
    let mut load = Load::new(server.address, 1, &requests).unwrap();
    let failed = load.closed(Until::Requests(1)).unwrap_err();
    assert!(
        format!("{failed:#}").contains("does not choose h2"),
        "{failed:#}"
    );
}
