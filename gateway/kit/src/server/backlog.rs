//! The last connections of a listening socket that is about to be closed.
//!
//! When it is closed, the kernel resets the connections that no process has accepted. Their clients saw them
//! established, and may have sent a request, which is then lost: a proxy does not retry a POST that it has sent.

use std::{iter, net::SocketAddr, os::fd::AsFd, time::Duration};

use socket2::{SockFilter, SockRef};
use tokio::net::TcpStream;

/// Time to accept the last connections after [`hold`]: several round trips within a data centre.
pub const LAST_ACCEPTS: Duration = Duration::from_millis(100);
/// Limit of established connections that wait to be accepted, as far as `net.core.somaxconn` allows.
pub const BACKLOG: u16 = 4096;

/// Lets the kernel drop packets that begin a connection (RFC 9293: SYN without ACK). Handshakes that have begun are
/// completed. A client sends its packet again after a second; then the socket is closed, so that it is refused, and a proxy
/// goes to another address.
///
/// It affects all processes that share the socket, until they close it. If the system does not allow it, connections are
/// lost as described above.
pub fn hold(listener: &impl AsFd) {
    // Classic BPF on the TCP header. Byte 13 has the flags: ACK is 0x10, SYN 0x02.
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let attached = SockRef::from(listener).attach_filter(&[
        SockFilter::new(LOAD_BYTE, 0, 0, 13),
        SockFilter::new(AND, 0, 0, 0x12),
        // Only a SYN alone is dropped: the ACK of a handshake that has begun must pass, or its connection is lost.
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, 0x02),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ]);
    if let Err(cause) = attached {
        // Only `debug`: a sandbox may forbid filters, and the stop goes on at a small risk.
        tracing::debug!(%cause, "cannot hold new connections");
    }
}

/// The connections that wait to be accepted. The socket is closed behind them.
pub fn take(
    listener: tokio::net::TcpListener,
) -> impl Iterator<Item = (TcpStream, SocketAddr)> + Send {
    // Not by tokio's own accept: a task's budget would end it after some, and it misses what the runtime has not noticed.
    let listener = listener.into_std().ok();
    let accepted = iter::from_fn(move || listener.as_ref()?.accept().ok());
    // Bounded: where the filter is not allowed, new connections arrive meanwhile, and a flood would never end.
    accepted.take(BACKLOG.into()).filter_map(|(stream, peer)| {
        // Linux does not hand `O_NONBLOCK` down from the listening socket, and tokio expects it.
        stream.set_nonblocking(true).ok()?;
        Some((TcpStream::from_std(stream).ok()?, peer))
    })
}

#[cfg(test)]
mod tests {
    use std::{io, net::TcpStream, thread};

    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    #[tokio::test]
    async fn every_connection_of_the_backlog_is_taken_at_once() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(BACKLOG.into()).unwrap();
        let address = listener.local_addr().unwrap();
        let clients = (0..300).map(|_| TcpStream::connect(address).unwrap());
        let clients: Vec<_> = clients.collect();
        assert_eq!(take(listener).count(), clients.len());
    }

    #[tokio::test]
    async fn a_connection_to_a_held_socket_is_refused_once_it_is_closed() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let before = TcpStream::connect(address).unwrap();
        hold(&listener);
        let short = Duration::from_millis(50);
        let held = TcpStream::connect_timeout(&address, short).unwrap_err();
        assert_eq!(held.kind(), io::ErrorKind::TimedOut);
        let client = thread::spawn(move || TcpStream::connect(address));
        tokio::time::sleep(short).await;
        assert!(!client.is_finished());
        let taken: Vec<_> = take(listener).map(|(_, peer)| peer).collect();
        assert_eq!(taken, [before.local_addr().unwrap()]);
        let refused = client.join().unwrap().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
