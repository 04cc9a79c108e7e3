//! The listening sockets of this process.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The listening sockets of this process, to hand them over. Closed when a stop closes the listeners: otherwise new
/// connections would wait in a socket that nothing accepts from.
#[derive(Debug, Default)]
pub(crate) struct ListeningSockets(Mutex<Vec<(SocketAddr, TcpListener)>>);

impl ListeningSockets {
    /// Remembers a socket.
    ///
    /// # Errors
    ///
    /// The process is out of file descriptors.
    pub(crate) fn add(&self, address: SocketAddr, socket: &TcpListener) -> io::Result<()> {
        let socket = socket.try_clone()?;
        self.lock().push((address, socket));
        Ok(())
    }

    /// Closes all.
    pub(crate) fn close(&self) {
        self.lock().clear();
    }

    /// The sockets, each with its address.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<(SocketAddr, TcpListener)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
