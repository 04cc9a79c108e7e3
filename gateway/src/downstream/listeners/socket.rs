//! Listening sockets: one for each listener and thread (`SO_REUSEPORT`).

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, listen, socket_with,
    sockopt::{
        set_socket_reuseaddr, set_socket_reuseport, set_socket_send_buffer_size, set_tcp_nodelay,
    },
};

/// Limit of established connections that wait to be accepted, as far as `net.core.somaxconn` allows.
pub(super) const BACKLOG: i32 = 4096;

/// Send buffer of a client connection, in bytes; Linux doubles it for its own bookkeeping.
///
/// Without a limit the kernel's buffer grows to 4 MiB, and a client that does not read pins all of it. 256 KiB hold
/// nearly every response, and still allow 2.5 MB/s at a round-trip time of 100 ms.
const SEND_BUFFER: usize = 256 * 1024;

/// Creates a socket for `address`, which listens after [`start_listening`]. Several may listen on the same one: the
/// kernel gives each new connection to one of them.
///
/// # Errors
///
/// Another program listens there, or the system does not allow it.
pub(crate) fn bound_socket(address: SocketAddr) -> io::Result<TcpListener> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    set_socket_reuseaddr(&socket, true)?;
    set_socket_reuseport(&socket, true)?;
    // Linux gives accepted connections the options of their listening socket.
    set_socket_send_buffer_size(&socket, SEND_BUFFER)?;
    set_tcp_nodelay(&socket, true)?;
    bind(&socket, &address)?;
    Ok(socket.into())
}

/// Lets the kernel accept connections for a socket. From here on they wait for this process.
///
/// # Errors
///
/// The system does not allow it.
pub(crate) fn start_listening(socket: &TcpListener) -> io::Result<()> {
    Ok(listen(socket, BACKLOG)?)
}
