//! New connections to backends.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use pingora::{
    ErrorType,
    connectors::TransportConnector,
    protocols::{Stream, TcpKeepalive, l4::socket},
    upstreams::peer::HttpPeer,
};

use super::failure::Failure;
use crate::routing::error_summary;

/// Receive buffer of a backend connection, in bytes. Without a limit, Linux lets it grow to 6 MiB or more, and a client
/// that reads nothing could keep it full. With half this size, a large answer costs a quarter more.
const RECEIVE_BUFFER: usize = 512 * 1024;

/// Establishes connections to backends.
pub(crate) struct Connector {
    transport: Arc<TransportConnector>,
    /// The options of every connection; the address is set for each.
    peer: HttpPeer,
}

impl Connector {
    /// Creates a connector; `timeout` is for establishing a connection.
    #[must_use]
    pub(crate) fn new(timeout: Duration) -> Self {
        let mut peer = HttpPeer::new((Ipv4Addr::UNSPECIFIED, 0), false, String::new());
        peer.options.total_connection_timeout = Some(timeout);
        peer.options.tcp_recv_buf = Some(RECEIVE_BUFFER);
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
        }
    }

    /// Establishes a connection to `address`.
    ///
    /// # Errors
    ///
    /// The connection cannot be established.
    pub(crate) async fn connect(&self, address: SocketAddr) -> Result<Stream, Failure> {
        let mut peer = self.peer.clone();
        peer._address = socket::SocketAddr::Inet(address);
        let connected = self.transport.new_stream(&peer).await;
        connected.map_err(|error| Failure::NotConnected {
            is_backend_fault: is_backend_fault(error.etype()),
            why: error_summary(&error),
        })
    }
}

/// Whether the backend refused the connection, could not be reached or did not respond. Otherwise the cause is on this
/// machine.
const fn is_backend_fault(kind: &ErrorType) -> bool {
    matches!(
        kind,
        ErrorType::ConnectTimedout
            | ErrorType::ConnectRefused
            | ErrorType::ConnectNoRoute
            | ErrorType::ConnectError
    )
}
