//! The listening sockets of this process.

use std::{
    net::{SocketAddr, TcpListener},
    sync::{Mutex, MutexGuard, PoisonError},
};

use signpost_kit::server::backlog;
use tokio::sync::watch;

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
