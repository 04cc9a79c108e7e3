//! The management listener of a program: `/healthz`, `/readyz` and `/metrics`, in plain text, and what the program adds.
//! `conf/guides/operate.md`.
//!
//! It has its own thread and reserved file descriptors, so that it answers under any client load.

use std::{
    fmt, io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    sync::{Arc, mpsc},
    thread,
};

use anyhow::Context;
use axum::{Router, body::Body, extract::ConnectInfo, response::IntoResponse};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, uri::Authority};
use hyper::body::Incoming;
use rustls::ServerConfig;
use tokio::{net::TcpStream, sync::watch};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::either::Either;
use tower::ServiceExt;

use crate::{
    config::shared_keys::Hosts,
    metrics::Metrics,
    server::{
        descriptors::Descriptors,
        listener::{self, HttpSettings, HttpTimeouts},
        shutdown::Phase,
    },
};

/// Limit of connections: orchestrators, load balancers and monitors open a few each. At most half of the descriptor
/// reserve, which the store and the backends need, too.
const MAX_CONNECTIONS: usize = 256;

/// One network has at most this part of them.
const NETWORK_SHARE: usize = 4;

/// What a program reports of itself.
pub trait Readiness: Send + Sync + 'static {
    /// The response to `/readyz`, made by [`text`].
    fn readiness(&self) -> impl Future<Output = Response<String>> + Send;

    /// The timeouts of connections under the current configuration.
    fn timeouts(&self) -> HttpTimeouts;
}

/// A management listener to start.
#[derive(Debug)]
pub struct Management<R> {
    /// The names under which it answers.
    pub hosts: Hosts,
    /// What `/readyz` shows.
    pub readiness: R,
    /// What `/metrics` shows.
    pub metrics: Metrics,
    /// TLS; `None`: plain.
    pub tls: Option<ManagementTls>,
    /// What serves all other paths. It gets the client's address as [`ConnectInfo`].
    pub other: Option<Router>,
}

/// TLS of a management listener.
pub struct ManagementTls {
    /// The settings of the next connection.
    pub server: Box<dyn Fn() -> Arc<ServerConfig> + Send + Sync>,
    /// Whether a client without a certificate gets health checks only: orchestrators have none.
    pub needs_certificate: bool,
}

impl fmt::Debug for ManagementTls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ManagementTls")
    }
}

/// The client of a connection.
#[derive(Clone, Copy)]
struct ManagementClient {
    address: SocketAddr,
    /// Whether it lacks a certificate that it needs.
    is_unknown: bool,
}

impl ManagementTls {
    async fn accept(
        &self,
        stream: TcpStream,
        address: SocketAddr,
    ) -> io::Result<(TlsStream<TcpStream>, ManagementClient)> {
        let stream = TlsAcceptor::from((self.server)()).accept(stream).await?;
        let has_certificate = stream.get_ref().1.peer_certificates().is_some();
        let client = ManagementClient {
            address,
            is_unknown: self.needs_certificate && !has_certificate,
        };
        Ok((stream, client))
    }
}

impl<R: Readiness> Management<R> {
    /// Starts a thread that serves until the process ends. During a graceful shutdown it goes on, so that monitors can
    /// observe it, unless `phases` closes it: these are the phases of the listener alone. Another process then serves at its
    /// address, and what this one has accepted gets 200 from `/readyz`.
    ///
    /// # Errors
    ///
    /// The process cannot get another descriptor or thread.
    pub fn start(
        self,
        listener: TcpListener,
        descriptors: Descriptors,
        phases: watch::Receiver<Phase>,
    ) -> anyhow::Result<()> {
        let half = usize::try_from(descriptors.reserve() / 2).unwrap_or(MAX_CONNECTIONS);
        let max_connections = MAX_CONNECTIONS.min(half);
        listener
            .set_nonblocking(true)
            .context("cannot start management")?;
        let (sender, started) = mpsc::sync_channel(1);
        // The runtime is made within the thread: on an error it would be dropped here, at which tokio panics in
        // asynchronous code.
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            match runtime {
                Ok(runtime) => {
                    // The caller waits for it.
                    let _ = sender.send(Ok(()));
                    runtime.block_on(self.serve(listener, max_connections, phases));
                }
                Err(error) => drop(sender.send(Err(error))),
            }
        };
        thread::Builder::new()
            .name("management".to_owned())
            .spawn(serve)
            .context("cannot start management")?;
        let started = started.recv().context("cannot start management")?;
        started.context("cannot start management")
    }

    async fn serve(
        self,
        listener: TcpListener,
        max_connections: usize,
        phases: watch::Receiver<Phase>,
    ) {
        let listener = match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(cause) => return tracing::error!(%cause, "management cannot listen"),
        };
        let management = Arc::new(self);
        let of_settings = Arc::clone(&management);
        let settings = move || {
            let timeouts = of_settings.readiness.timeouts();
            HttpSettings {
                name: "management",
                max_connections,
                max_of_network: max_connections.div_ceil(NETWORK_SHARE),
                timeouts,
                // It closes only while another process serves, so nothing hurries.
                settle: timeouts.head,
            }
        };
        let (own_phase, of_connections) = (phases.clone(), Arc::clone(&management));
        let establish = move |stream, address| {
            let management = Arc::clone(&of_connections);
            async move {
                let client = ManagementClient {
                    address,
                    is_unknown: false,
                };
                match &management.tls {
                    None => Ok((Either::Left(stream), client)),
                    Some(tls) => {
                        let (stream, client) = tls.accept(stream, address).await?;
                        Ok((Either::Right(stream), client))
                    }
                }
            }
        };
        let response = move |request: Request<Incoming>, client: ManagementClient| {
            let (management, phase) = (Arc::clone(&management), own_phase.clone());
            async move { management.response(request, client, &phase).await }
        };
        listener::serve(listener, settings, phases, establish, response).await;
    }

    async fn response(
        &self,
        request: Request<Incoming>,
        client: ManagementClient,
        phase: &watch::Receiver<Phase>,
    ) -> Response<Body> {
        let (path, headers) = (request.uri().path(), request.headers());
        // A target in absolute form names a host, too, and counts more: RFC 9112 section 3.2.2.
        let target = request.uri().authority();
        if !self.hosts.allow(headers) || target.is_some_and(|target| !self.hosts.have(target)) {
            let text = "this Host is not allowed: call an IP address or localhost, or name it in management.hosts\n";
            return self::text(StatusCode::MISDIRECTED_REQUEST, text).map(Body::from);
        }
        // Not in the handshake: an orchestrator without a certificate must reach the health checks.
        if client.is_unknown && !matches!(path, "/healthz" | "/readyz") {
            let text = "a client certificate is required\n";
            return self::text(StatusCode::FORBIDDEN, text).map(Body::from);
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let response = match (reads, path) {
            // Asks for no state: an orchestrator restarts a program that fails here, which repairs no store.
            (true, "/healthz") => text(StatusCode::OK, "alive\n"),
            (true, "/readyz") => {
                let readiness = self.readiness.readiness().await;
                // Looked at last: readiness waits for the store, and the other process can take over meanwhile.
                match *phase.borrow() >= Phase::Closing {
                    true => text(StatusCode::OK, "ready\n"),
                    false => readiness,
                }
            }
            (true, "/metrics") => self.metrics.response(headers),
            (false, "/healthz" | "/readyz" | "/metrics") => {
                let allowed = "this path accepts only GET, HEAD\n";
                let mut response = text(StatusCode::METHOD_NOT_ALLOWED, allowed);
                let methods = HeaderValue::from_static("GET, HEAD");
                response.headers_mut().insert(header::ALLOW, methods);
                response
            }
            _ => match &self.other {
                Some(other) => return call(other.clone(), request, client.address).await,
                None => text(
                    StatusCode::NOT_FOUND,
                    "not found; available: /healthz, /readyz, /metrics\n",
                ),
            },
        };
        response.map(Body::from)
    }
}

impl Hosts {
    /// Whether a request may be answered. Without `Host` it may: browsers always send one, simple health checks do not.
    fn allow(&self, headers: &HeaderMap) -> bool {
        let given = headers.get_all(header::HOST).into_iter();
        given
            .map(|host| Authority::try_from(host.as_bytes()))
            // If there are several, each must be allowed: which of them the browser has set is unknown.
            .all(|authority| authority.is_ok_and(|authority| self.have(&authority)))
    }

    /// Whether it is one of the names or an address, with or without a port, and nothing else: `user@localhost` also has
    /// that host.
    fn have(&self, authority: &Authority) -> bool {
        let host = authority.host();
        let is_port =
            |port: &str| port.len() <= 5 && port.bytes().all(|digit| digit.is_ascii_digit());
        let is_end = |rest: &str| rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        let is_address = host.parse::<Ipv4Addr>().is_ok()
            || host.trim_matches(['[', ']']).parse::<Ipv6Addr>().is_ok();
        let is_known = is_address || self.names().any(|name| host.eq_ignore_ascii_case(name));
        is_known && authority.as_str().strip_prefix(host).is_some_and(is_end)
    }
}

async fn call(router: Router, request: Request<Incoming>, client: SocketAddr) -> Response<Body> {
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(client));
    router.oneshot(request).await.into_response()
}

/// A response in plain text.
pub fn text(status: StatusCode, body: impl Into<String>) -> Response<String> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, plain);
    // A cache in between would show monitors a state that has passed.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        time::Duration,
    };

    use super::*;

    /// Begins to stop while `/readyz` is answered.
    struct Stops {
        phases: watch::Sender<Phase>,
        /// Whether another process takes over first.
        is_handed_over: bool,
    }

    impl Readiness for Stops {
        async fn readiness(&self) -> Response<String> {
            if self.is_handed_over {
                self.phases.send_replace(Phase::Closing);
            }
            text(StatusCode::SERVICE_UNAVAILABLE, "stopping\n")
        }

        fn timeouts(&self) -> HttpTimeouts {
            let long = Duration::from_secs(60);
            HttpTimeouts {
                head: long,
                idle: long,
                send: long,
            }
        }
    }

    #[test]
    fn a_check_during_which_another_process_takes_over_is_answered_for_that_process() {
        for (is_handed_over, expected) in [(true, "200 OK"), (false, "503 Service Unavailable")] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (sender, phases) = watch::channel(Phase::Serving);
            let management = Management {
                hosts: Hosts([].into()),
                readiness: Stops {
                    phases: sender,
                    is_handed_over,
                },
                metrics: Metrics::default(),
                tls: None,
                other: None,
            };
            let descriptors = Descriptors::raise_limit();
            management.start(listener, descriptors, phases).unwrap();
            let request = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            client.write_all(request).unwrap();
            let mut response = String::new();
            client.read_to_string(&mut response).unwrap();
            let (status, _) = response.split_once("\r\n").unwrap();
            assert_eq!(status, format!("HTTP/1.1 {expected}"));
        }
    }

    fn allows(hosts: &[&str]) -> bool {
        let names = ["gateway-a", "Signpost.example"].map(str::to_owned);
        let given = hosts
            .iter()
            .map(|host| (header::HOST, HeaderValue::from_str(host).unwrap()));
        Hosts(names.into()).allow(&given.collect())
    }

    #[test]
    fn addresses_localhost_and_configured_names_are_allowed() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:8081",
            "localhost:",
            "10.1.2.3:1",
            "[::1]",
            "[2001:db8::1]:8081",
            "localhost",
            "LocalHost:8081",
            "gateway-a:8081",
            "GATEWAY-A",
            "signpost.example",
        ] {
            assert!(allows(&[host]), "{host}");
        }
        assert!(allows(&[]));
        assert!(allows(&["localhost", "gateway-a"]));
    }

    #[test]
    fn any_other_host_is_rejected() {
        for host in [
            "",
            "attacker.example",
            "attacker.example:8081",
            "localhost.attacker.example",
            "127.0.0.1.attacker.example",
            "gateway-a.attacker.example",
            "2130706433",
            "0x7f000001",
            "127.1",
            "localhost:x y",
            "x@localhost",
            "@localhost",
            "x&ticket=y@localhost:8081",
            "u:p@127.0.0.1",
            "localhost@gateway-a",
            "localhost:&ticket=y",
            "localhost:8081&ticket=y",
            "localhost:+80",
            "localhost:123456",
            "localhost/x",
            "localhost?x",
            "localhost#x",
            "localhost\\x",
            "localhost x",
            "[::1]x",
            "[::1",
            "[[::1]]",
            "[127.0.0.1]",
            "\u{e9}.example",
        ] {
            assert!(!allows(&[host]), "{host}");
        }
        assert!(!allows(&["localhost", "attacker.example"]));
    }
}
