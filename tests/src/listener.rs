//! The listener of a server that runs within a test.

use std::{net::SocketAddr, sync::LazyLock};

use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

/// Runs the servers of all tests in a thread of its own: a test that waits for a command must not stop its backends, whose
/// health checks would fail.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    runtime.expect("a runtime can be built")
});

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
        let socket = socket.into_std().expect("a runtime can give a socket up");
        let accepting = RUNTIME.spawn(async move {
            let socket = TcpListener::from_std(socket).expect("a runtime can take a socket");
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

#[cfg(test)]
mod tests {
    use std::{io::Read, net};

    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::waiting::WAIT_TIMEOUT;

    #[tokio::test]
    async fn a_server_responds_while_its_test_blocks() {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listener = Listener::start(socket, async |mut stream| {
            stream.write_all(b"x").await.unwrap();
        });
        let mut stream = net::TcpStream::connect(listener.address()).unwrap();
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
        assert_eq!(stream.read(&mut [0; 2]).unwrap(), 1);
    }
}
