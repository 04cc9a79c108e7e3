//! Listening sockets: one for each listener and thread (`SO_REUSEPORT`).

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::net::{
    bind, listen,
    sockopt::{set_socket_reuseport, set_socket_send_buffer_size, set_tcp_nodelay},
};
use signpost_kit::server::{
    backlog::{self, BACKLOG},
    socket::new_socket,
};
use tokio::sync::watch;

/// Send buffer of a client connection, in bytes; Linux doubles it for its own bookkeeping.
///
/// Without a limit the kernel's buffer grows to 4 MiB, and a client that does not read pins all of it. 256 KiB hold
/// nearly every response, and still allow 2.5 MB/s at a round-trip time of 100 ms.
const SEND_BUFFER: usize = 256 * 1024;

/// The listening sockets of this process, to hand them over and to close them. All are closed when a stop closes the
/// listeners: otherwise new connections would wait in a socket that nothing accepts from.
#[derive(Debug, Default)]
pub struct ListeningSockets(Mutex<Vec<OpenSockets>>);

/// The sockets at one address. What accepts from them stops when this is dropped.
#[derive(Debug)]
pub struct OpenSockets {
    /// Where they listen.
    pub address: SocketAddr,
    /// A second descriptor of each.
    pub sockets: Vec<TcpListener>,
    /// Its receivers notice when it is dropped.
    _open: watch::Sender<()>,
}

impl OpenSockets {
    /// Also returns what notices when they are closed.
    pub fn new(address: SocketAddr, sockets: Vec<TcpListener>) -> (Self, watch::Receiver<()>) {
        let (open, receiver) = watch::channel(());
        let sockets = Self {
            address,
            sockets,
            _open: open,
        };
        (sockets, receiver)
    }
}

impl ListeningSockets {
    /// Adds the sockets at an address.
    pub fn add(&self, sockets: OpenSockets) {
        self.lock().push(sockets);
    }

    /// Closes the sockets at all addresses but these. Returns what was closed.
    pub fn keep(&self, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        let mut sockets = self.lock();
        let closed = sockets.extract_if(.., |open| !addresses.contains(&open.address));
        closed.map(|open| open.address).collect()
    }

    /// Lets the kernel begin no more connections, as [`backlog::hold`], but to `management`: it serves until the process ends.
    pub fn hold(&self, management: SocketAddr) {
        let open = self.lock();
        let held = open.iter().filter(|sockets| sockets.address != management);
        for socket in held.flat_map(|held| &held.sockets) {
            backlog::hold(socket);
        }
    }

    /// Closes all.
    pub fn close(&self) {
        self.lock().clear();
    }

    /// The addresses.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.lock().iter().map(|open| open.address).collect()
    }

    /// All sockets.
    pub fn lock(&self) -> MutexGuard<'_, Vec<OpenSockets>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a socket for `address`, which listens after [`start_listening`]. Several may listen on the same one: the
/// kernel gives each new connection to one of them.
///
/// # Errors
///
/// Another program listens there, or the system does not allow it.
pub fn bound_socket(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = new_socket(address)?;
    set_socket_reuseport(&socket, true)?;
    // Linux gives accepted connections the options of their listening socket.
    set_socket_send_buffer_size(&socket, SEND_BUFFER)?;
    set_tcp_nodelay(&socket, true)?;
    bind(&socket, &address)?;
    Ok(socket.into())
}

/// Checks that nothing listens on `address`. The kernel accepts no connection meanwhile: it would be lost.
///
/// # Errors
///
/// As [`bound_socket`], and if another instance of this program listens there.
pub fn probe(address: SocketAddr) -> io::Result<()> {
    Ok(bind(&new_socket(address)?, &address)?)
}

/// Lets the kernel accept connections for a socket. From here on they wait for this process.
///
/// # Errors
///
/// The system does not allow it.
pub fn start_listening(socket: &TcpListener) -> io::Result<()> {
    Ok(listen(socket, BACKLOG.into())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_finds_a_listener_but_no_socket_that_is_only_bound() {
        let socket = bound_socket(([127, 0, 0, 1], 0).into()).unwrap();
        let address = socket.local_addr().unwrap();
        probe(address).unwrap();
        start_listening(&socket).unwrap();
        assert_eq!(probe(address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
