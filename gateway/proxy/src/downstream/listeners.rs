//! The clients' listeners: they accept connections, and read what comes before HTTP: the PROXY header and the TLS
//! handshake.
//!
//! Each worker thread has a socket for each listener. A connection stays on the thread that accepted it.

mod not_established;
mod pause;
pub(crate) mod proxy_protocol;

use std::{
    io::Cursor,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use rustix::net::sockopt::set_socket_linger;
use signpost_kit::{
    log::once_a_minute::OnceAMinute,
    server::{backlog, descriptors::Descriptors},
};
use tokio::{
    io::{self, AsyncReadExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};

use self::{
    not_established::{NotEstablished, is_probe},
    pause::AcceptPause,
    proxy_protocol::{ProxyHeader, read_header},
};
use crate::{
    config::{ConnectionLimits, ListenerSettings, Protocols},
    downstream::{
        http1,
        http2::{self, Preface, is_preface},
        sockets::ListeningSockets,
    },
    limits::connections::{OpenConnection, RefusalCause},
    phases::origin::is_in,
    request::{client::ConnectionInfo, drain::Drain},
    serve::{Gateway, Listener, State},
    tls::{ALPN_HTTP_2, client_subject, tls_version},
    wire::io::Stream,
};

/// The version of TLS in the access log, if the balancer has ended it: the PROXY header need not say which it was.
const TLS_OF_BALANCER: &str = "balancer";

/// Serves the connections of all listeners.
pub struct Clients {
    current: Arc<ArcSwap<Gateway>>,
    pause: AcceptPause,
    /// For each [`RefusalCause`].
    failures: [OnceAMinute; RefusalCause::ALL.len()],
    sockets: Arc<ListeningSockets>,
    drain: Arc<Drain>,
}

/// A socket that a worker thread accepts from.
pub struct WorkerSocket {
    /// The socket.
    pub socket: std::net::TcpListener,
    /// Its listener, by the configuration that opened it.
    pub listener: Arc<Listener>,
    /// Its sender is dropped when the listener is closed.
    pub open: watch::Receiver<()>,
}

/// A connection that was accepted.
struct AcceptedConnection {
    stream: TcpStream,
    client: ConnectionInfo,
    open: OpenConnection,
    /// Whether it begins with a PROXY header.
    has_proxy_header: bool,
}

impl Clients {
    /// Serves with the current configuration. `sockets` close with the listeners.
    #[must_use]
    pub fn new(
        current: &Arc<ArcSwap<Gateway>>,
        descriptors: Descriptors,
        sockets: Arc<ListeningSockets>,
    ) -> Self {
        Self {
            current: Arc::clone(current),
            pause: AcceptPause::new(descriptors),
            failures: Default::default(),
            sockets,
            drain: Arc::clone(&current.load().state.drain),
        }
    }

    /// Accepts connections until a reload closes the listener, or a stop closes all.
    pub async fn accept(self: Arc<Self>, socket: WorkerSocket) {
        // A stop waits for the connections of the backlog, too.
        let _accepting = self.drain.begin_connection();
        let WorkerSocket {
            socket,
            listener: mut settings,
            mut open,
        } = socket;
        let listener = match TcpListener::from_std(socket) {
            Ok(listener) => listener,
            Err(cause) => return tracing::error!(%cause, "a listener cannot be used"),
        };
        let closing = async {
            tokio::select! {
                () = self.drain.closing() => {}
                _ = open.changed() => {}
            }
        };
        tokio::pin!(closing);
        loop {
            // `biased`: a flood of connections must not keep a stop waiting.
            let accepted = tokio::select! {
                biased;
                () = &mut closing => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    // It is accepted, and its client may have sent a request: a stop that begins now serves it, too.
                    let is_closing = tokio::select! {
                        biased;
                        () = self.pause.wait_for_room() => false,
                        () = &mut closing => true,
                    };
                    self.begin(stream, peer, &mut settings);
                    if is_closing {
                        break;
                    }
                }
                Err(cause) => self.pause.failed(&cause).await,
            }
        }
        // The other descriptor of each socket, too: the kernel would queue connections that nothing accepts.
        if self.drain.is_closing() {
            self.sockets.close();
        }
        // For their clients, the connections in the backlog are established.
        for (stream, peer) in backlog::take(listener) {
            self.begin(stream, peer, &mut settings);
        }
    }

    /// Begins to serve a connection, or refuses it. `settings` are the listener's last ones; if the configuration no longer
    /// has it, they stay.
    fn begin(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr, settings: &mut Arc<Listener>) {
        let gateway = self.current.load();
        // The loop outlives reloads, and so do connections in the backlog.
        if let Some(current) = gateway.policy.listener(settings.address)
            && !Arc::ptr_eq(current, settings)
        {
            *settings = Arc::clone(current);
        }
        let address = peer.ip().to_canonical();
        let has_proxy_header = is_in(&settings.proxy_protocol, address);
        let limits = &gateway.policy.bounds.connections;
        settings.count_accepted();
        let open = gateway.state.open_connections.begin(limits);
        // A proxy's connections carry the requests of many clients.
        let is_proxy =
            has_proxy_header || is_in(&gateway.policy.rules.admission.trusted_proxies, address);
        let open = if is_proxy {
            open
        } else {
            open.and_then(|open| count_client(open, address, limits, settings))
        };
        let Some(open) = open else {
            return refuse(stream);
        };
        let client = ConnectionInfo {
            listener: Some(settings.id),
            redirects_to_https: settings.redirects_to_https,
            ..ConnectionInfo::plain(address)
        };
        // Nothing to negotiate: the connection needs no task before its own.
        if settings.is_plain_http_1() {
            return self.serve_http_1(stream, client, open);
        }
        let accepted = AcceptedConnection {
            stream,
            client,
            open,
            has_proxy_header,
        };
        let clients = Arc::clone(self);
        let (settings, state) = (Arc::clone(settings), Arc::clone(&gateway.state));
        let limit = gateway.policy.bounds.timeouts.head;
        // A stop waits for it, as for a request.
        let beginning = self.drain.begin_connection();
        tokio::spawn(async move {
            let _beginning = beginning;
            clients.negotiate(accepted, &settings, &state, limit).await;
        });
    }

    /// Reads what comes before HTTP, within `limit`. Ends with a new task for the connection, since this one has room
    /// for a handshake, which an established connection does not need.
    async fn negotiate(
        self: Arc<Self>,
        accepted: AcceptedConnection,
        settings: &ListenerSettings,
        state: &State,
        limit: Duration,
    ) {
        let peer = accepted.client.address;
        let _negotiating = state.open_connections.begin_negotiation();
        let established = timeout(limit, self.establish(accepted, settings));
        let result = established.await.unwrap_or(Err(NotEstablished::TimedOut));
        let Err(cause) = result else {
            return;
        };
        if is_probe(&cause) {
            return;
        }
        let refusal = cause.as_refusal();
        state.open_connections.counts.refused.count(refusal);
        if let Some(connections) = self.failures[refusal as usize].count(Instant::now()) {
            tracing::info!(
                connections, peer.addr = %peer, %cause,
                "connections ended before their first request"
            );
        }
    }

    async fn establish(
        self: &Arc<Self>,
        accepted: AcceptedConnection,
        settings: &ListenerSettings,
    ) -> Result<(), NotEstablished> {
        let AcceptedConnection {
            mut stream,
            mut client,
            mut open,
            has_proxy_header,
        } = accepted;
        if has_proxy_header {
            let header = read_header(&mut stream).await?;
            let Some(counted) = self.take_header(&header, &mut client, open, settings) else {
                // No error: the limit has counted and logged the connection.
                refuse(stream);
                return Ok(());
            };
            open = counted;
        }
        let Some(tls) = &settings.tls else {
            match settings.protocols {
                Protocols::Http1 => self.serve_http_1(stream, client, open),
                Protocols::Http2 => self.serve_http_2(stream, client, open),
                Protocols::Both => self.serve_either(stream, client, open),
            }
            return Ok(());
        };
        let stream = tls.accept(stream).await?;
        let (_, connection) = stream.get_ref();
        client.is_tls = true;
        client.hsts = settings.hsts.clone();
        client.tls_version = tls_version(connection);
        client.certificate_subject = client_subject(connection)?.map(Arc::new);
        match (connection.alpn_protocol(), settings.protocols) {
            (Some(ALPN_HTTP_2), _) => self.serve_http_2(stream, client, open),
            (None, Protocols::Http2) => return Err(NotEstablished::NoProtocol),
            _ => self.serve_http_1(stream, client, open),
        }
        Ok(())
    }

    /// Takes what a PROXY header says of the client, and counts the connection for it; `None` if it has too many.
    fn take_header(
        &self,
        header: &ProxyHeader,
        client: &mut ConnectionInfo,
        open: OpenConnection,
        settings: &ListenerSettings,
    ) -> Option<OpenConnection> {
        client.is_tls = header.is_tls;
        client.tls_version = header.is_tls.then_some(TLS_OF_BALANCER);
        // The balancer has ended TLS: for the client, the connection is encrypted.
        client.redirects_to_https &= !header.is_tls;
        // Otherwise the balancer speaks for itself, for example to check the gateway.
        let Some(address) = header.client else {
            return Some(open);
        };
        client.address = address.to_canonical();
        let gateway = self.current.load();
        // Only now is the client known, so only now can its connections be counted.
        match is_in(
            &gateway.policy.rules.admission.trusted_proxies,
            client.address,
        ) {
            true => Some(open),
            false => count_client(
                open,
                client.address,
                &gateway.policy.bounds.connections,
                settings,
            ),
        }
    }

    fn serve_http_1<S: Stream + 'static>(
        self: &Arc<Self>,
        stream: S,
        client: ConnectionInfo,
        open: OpenConnection,
    ) {
        let clients = Arc::clone(self);
        let (client, beginning) = (Box::new(client), self.drain.begin_connection());
        tokio::spawn(Box::pin(async move {
            let _open = open;
            let current = &clients.current;
            http1::connection::serve_connection(current, stream, client, beginning).await;
        }));
    }

    fn serve_http_2<S: Stream + 'static>(
        self: &Arc<Self>,
        stream: S,
        client: ConnectionInfo,
        open: OpenConnection,
    ) {
        let clients = Arc::clone(self);
        let (client, beginning) = (Box::new(client), self.drain.begin_connection());
        tokio::spawn(Box::pin(async move {
            let (current, streams) = (&clients.current, open.streams());
            http2::connection::serve_connection(current, stream, client, streams, beginning).await;
            drop(open);
        }));
    }

    /// Serves HTTP/2 if the connection begins with its preface (RFC 9113 section 3.3), otherwise HTTP/1.
    fn serve_either(
        self: &Arc<Self>,
        mut stream: TcpStream,
        client: ConnectionInfo,
        open: OpenConnection,
    ) {
        let clients = Arc::clone(self);
        let beginning = self.drain.begin_connection();
        tokio::spawn(async move {
            let _beginning = beginning;
            let gateway = clients.current.load_full();
            let closing = async {
                let drain = &gateway.state.drain;
                drain.closing().await;
                tokio::time::sleep(drain.idle_delay()).await;
            };
            let begun = tokio::select! {
                begun = timeout(gateway.policy.bounds.timeouts.head, read_preface(&mut stream)) => begun,
                () = closing => return,
            };
            let Ok(Ok((prefix, is_http_2))) = begun else {
                return;
            };
            let (reader, writer) = stream.into_split();
            // The server of the chosen HTTP version reads the prefix again.
            let stream = io::join(Cursor::new(prefix).chain(reader), writer);
            if is_http_2 {
                clients.serve_http_2(stream, client, open);
            } else {
                clients.serve_http_1(stream, client, open);
            }
        });
    }
}

/// Reads until it is certain whether the connection begins with the preface of HTTP/2. Returns what was read.
async fn read_preface(stream: &mut TcpStream) -> io::Result<(Vec<u8>, bool)> {
    let mut prefix = Vec::new();
    loop {
        match is_preface(&prefix) {
            Preface::Yes => return Ok((prefix, true)),
            Preface::No => return Ok((prefix, false)),
            Preface::Maybe => {
                if stream.read_buf(&mut prefix).await? == 0 {
                    return Ok((prefix, false));
                }
            }
        }
    }
}

/// Counts a connection for its client, by what is open and by the rate of handshakes; `None` if that is too much.
fn count_client(
    open: OpenConnection,
    client: IpAddr,
    limits: &ConnectionLimits,
    settings: &ListenerSettings,
) -> Option<OpenConnection> {
    let open = open.of(client, limits)?;
    match settings.tls {
        Some(_) => open.handshake(client, limits),
        None => Some(open),
    }
}

/// Closes a connection with a reset: nothing of it stays, here or in the kernel.
fn refuse(stream: TcpStream) {
    // If the option cannot be set, the connection is closed with a FIN.
    let _ = set_socket_linger(&stream, Some(Duration::ZERO));
}
