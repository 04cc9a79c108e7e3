//! New connections to backends.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use pingora::{
    Error, ErrorType,
    connectors::TransportConnector,
    protocols::{Stream as TcpStream, TcpKeepalive, l4::socket},
    upstreams::peer::HttpPeer,
};
use tokio::time::{Instant, timeout_at};

use super::{
    failure::BackendFailure,
    stream::{BackendStream, limit_receive_buffer},
};
use crate::tls::backend::{Endpoint, TlsPeer};

/// Establishes connections to backends.
pub(crate) struct Connector {
    transport: Arc<TransportConnector>,
    /// The options of every connection; the address is set for each.
    peer: HttpPeer,
    /// For a whole connection, TLS handshake included.
    timeout: Duration,
}

impl Connector {
    /// Creates a connector; `timeout` is for establishing a connection.
    #[must_use]
    pub(crate) fn new(timeout: Duration) -> Self {
        let mut peer = HttpPeer::new((Ipv4Addr::UNSPECIFIED, 0), false, String::new());
        peer.options.total_connection_timeout = Some(timeout);
        // Finds pooled connections whose backend disappeared without a FIN, for example with its machine: the pool
        // itself sends nothing.
        peer.options.tcp_keepalive = Some(TcpKeepalive {
            idle: Duration::from_secs(60),
            interval: Duration::from_secs(5),
            count: 5,
            #[cfg(target_os = "linux")]
            user_timeout: Duration::ZERO,
        });
        Self {
            transport: Arc::new(TransportConnector::new(None)),
            peer,
            timeout,
        }
    }

    /// Returns the same connector with another timeout.
    #[must_use]
    pub(crate) fn with_timeout(&self, timeout: Duration) -> Self {
        let mut peer = self.peer.clone();
        peer.options.total_connection_timeout = Some(timeout);
        Self {
            transport: Arc::clone(&self.transport),
            peer,
            timeout,
        }
    }

    /// Establishes a connection to `endpoint`, with the TLS handshake if it has TLS.
    ///
    /// # Errors
    ///
    /// The connection cannot be established, or the handshake fails.
    pub(crate) async fn connect(
        &self,
        endpoint: &Endpoint,
    ) -> Result<BackendStream, BackendFailure> {
        let Some(tls) = &endpoint.tls else {
            let connected = self.connect_tcp(endpoint.address).await;
            return connected.map(BackendStream::plain);
        };
        // One deadline for both: the handshake gets what connecting has left.
        let deadline = Instant::now() + self.timeout;
        let stream = self.connect_tcp(endpoint.address).await?;
        handshake(tls, stream, deadline).await
    }

    async fn connect_tcp(&self, address: SocketAddr) -> Result<TcpStream, BackendFailure> {
        let mut peer = self.peer.clone();
        // pingora connects to this field. A new peer for each connection would need all options set again.
        peer._address = socket::SocketAddr::Inet(address);
        let connected = self.transport.new_stream(&peer).await;
        let connected = connected.inspect(limit_receive_buffer);
        connected.map_err(|error| BackendFailure::NotConnected {
            is_backend_fault: is_backend_fault(error.etype()),
            is_tls: false,
            why: error_summary(&error),
        })
    }
}

/// A failed handshake counts as a connection that could not be established: nothing of the request was sent.
async fn handshake(
    tls: &TlsPeer,
    stream: TcpStream,
    deadline: Instant,
) -> Result<BackendStream, BackendFailure> {
    let connected = timeout_at(deadline, tls.handshake(stream)).await;
    let timed_out = |_| Err("TLS: the handshake timed out".to_owned());
    match connected.unwrap_or_else(timed_out) {
        Ok(stream) => Ok(BackendStream::tls(stream)),
        Err(why) => Err(BackendFailure::NotConnected {
            is_backend_fault: true,
            is_tls: true,
            why,
        }),
    }
}

/// Whether the backend refused the connection, could not be reached or did not respond. Otherwise the cause is on this
/// machine.
const fn is_backend_fault(kind: &ErrorType) -> bool {
    // Only these eject the address: a gateway without free ports or descriptors must not take its backends for dead.
    matches!(
        kind,
        ErrorType::ConnectTimedout
            | ErrorType::ConnectRefused
            | ErrorType::ConnectNoRoute
            | ErrorType::ConnectError
    )
}

/// A short text for a connection's error. Not the error's own text: its context may hold bytes of a response.
fn error_summary(error: &Error) -> String {
    let root = error.root_cause();
    match error.etype() {
        kind if root.is::<Error>() => kind.as_str().to_owned(),
        kind => format!("{} ({root})", kind.as_str()),
    }
}
