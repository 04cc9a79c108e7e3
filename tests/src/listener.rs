//! The listener of a server that runs within a test.

use std::net::SocketAddr;

use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

/// Accepts connections, and serves each in a task of its own. When dropped, it closes its port and all connections.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    accepting: JoinHandle<()>,
}

impl Listener {
    /// Serves the connections of a socket.
    pub(crate) fn start<F: Future<Output = ()> + Send + 'static>(
        socket: TcpListener,
        mut serve: impl FnMut(TcpStream) -> F + Send + 'static,
    ) -> Self {
        let address = socket.local_addr().expect("a listener has an address");
        let (end, mut ended) = oneshot::channel();
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    _ = &mut ended => break,
                    Some(_) = connections.join_next() => {}
                    accepted = socket.accept() => match accepted {
                        Ok((stream, _)) => drop(connections.spawn(serve(stream))),
                        Err(_) => break,
                    },
                }
            }
            drop(socket);
            connections.shutdown().await;
        });
        Self {
            address,
            end: Some(end),
            accepting,
        }
    }

    /// The address it listens on.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port and all connections, and waits until that is done.
    pub(crate) async fn end(&mut self) {
        drop(self.end.take());
        // It fails only by a panic, which has been printed.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
