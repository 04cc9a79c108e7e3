//! Listening sockets, and which addresses exclude each other.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::fd::OwnedFd,
};

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, listen, socket_with,
    sockopt::{set_ipv6_v6only, set_socket_reuseaddr},
};

use super::backlog::BACKLOG;

/// Listens on an address.
///
/// # Errors
///
/// Another program listens there, or the system does not allow it.
pub fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = new_socket(address)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG.into())?;
    Ok(socket.into())
}

/// A socket for an address, without blocking, not yet bound. `[::]` is for IPv6 alone, whatever `net.ipv6.bindv6only` says.
///
/// # Errors
///
/// The system does not allow it.
pub fn new_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    // `CLOEXEC`: no child gets the socket by accident. An upgrade hands sockets over explicitly.
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    // Without it, a restart fails while connections of the last process are in TIME_WAIT.
    set_socket_reuseaddr(&socket, true)?;
    if family == AddressFamily::INET6 {
        // An IPv4 address in the form of IPv6 needs both.
        set_ipv6_v6only(&socket, address.ip().to_canonical().is_ipv6())?;
    }
    Ok(socket)
}

/// Whether sockets at these addresses would get the same connections, so that they cannot both listen. Each port 0 is
/// another one.
#[must_use]
pub fn overlap(address: SocketAddr, other: SocketAddr) -> bool {
    let (ip, other_ip) = (address.ip().to_canonical(), other.ip().to_canonical());
    // `0.0.0.0` takes the port on every IPv4 address, `[::]` on every IPv6 address and no IPv4 one (`new_socket`).
    let is_any = ip.is_unspecified() || other_ip.is_unspecified();
    let is_same = ip == other_ip || (is_any && ip.is_ipv4() == other_ip.is_ipv4());
    address.port() == other.port() && address.port() != 0 && is_same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_of_a_family_overlaps_with_each_at_the_same_port() {
        for (one, other, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("[::]:80", "[::1]:80", true),
            ("[::]:80", "[::]:80", true),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80", true),
            ("[::ffff:127.0.0.1]:80", "0.0.0.0:80", true),
            ("[::ffff:127.0.0.1]:80", "[::]:80", false),
            ("[::]:80", "0.0.0.0:80", false),
            ("[::]:80", "127.0.0.1:80", false),
            ("[::1]:80", "0.0.0.0:80", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("0.0.0.0:80", "0.0.0.0:81", false),
            ("0.0.0.0:0", "127.0.0.1:0", false),
            ("127.0.0.1:0", "127.0.0.1:0", false),
        ] {
            let (one, other) = (one.parse().unwrap(), other.parse().unwrap());
            assert_eq!(overlap(one, other), expected, "{one} {other}");
            assert_eq!(overlap(other, one), expected, "{other} {one}");
        }
    }

    /// Issue 44, row 15. The kernel says the same of each pair.
    #[test]
    fn both_families_can_listen_on_one_port() {
        // A port that is free of IPv6 may be taken of IPv4, by another process.
        let both = || {
            let first = listen_on("[::]:0".parse().unwrap()).unwrap();
            let port = first.local_addr().unwrap().port();
            let beside = listen_on(([0, 0, 0, 0], port).into()).ok()?;
            Some((first, port, beside))
        };
        let (_first, port, beside) = (0..20).find_map(|_| both()).unwrap();
        assert_eq!(beside.local_addr().unwrap().port(), port);
        for taken in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"] {
            let taken = format!("{taken}:{port}").parse().unwrap();
            let error = listen_on(taken).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{taken}");
        }
        drop(beside);
        let mapped = listen_on(format!("[::ffff:127.0.0.1]:{port}").parse().unwrap());
        assert!(mapped.is_ok(), "{mapped:?}");
    }
}
