//! Headers of the PROXY protocol.

use std::os::{fd::OwnedFd, unix::net::UnixStream as Pair};

use signpost_proxy::measured::read_header;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    runtime::{Builder, Runtime},
    task::yield_now,
};

use crate::naive::proxy::{self as naive, Header};

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_io().build().expect("a runtime starts");
}

/// Compares the header that `input` begins with, and what is left of the connection, received at once and in pieces.
///
/// # Panics
///
/// When two results differ.
pub fn proxy(input: &[u8]) -> bool {
    let expected = naive::read(input);
    // All is sent before the end is read: more does not fit into a socket.
    let input = &input[..input.len().min(8 * 1024)];
    for pieces in [1, 2, 20] {
        let piece = input.len().div_ceil(pieces).max(1);
        let (found, rest) = RUNTIME.with(|runtime| runtime.block_on(read(input, piece)));
        assert_eq!(found, expected, "in pieces of {piece}");
        if let Some(header) = &found {
            assert_eq!(
                rest,
                input[header.length..],
                "what follows, in pieces of {piece}"
            );
        }
    }
    expected.is_some()
}

async fn read(input: &[u8], piece: usize) -> (Option<Header>, Vec<u8>) {
    let (balancer, gateway) = Pair::pair().expect("a pair of sockets");
    for socket in [&balancer, &gateway] {
        socket.set_nonblocking(true).expect("the socket is open");
    }
    let mut balancer = UnixStream::from_std(balancer).expect("the runtime runs");
    // For its reader, a socket of this pair is like one of TCP. It needs no port.
    let gateway = std::net::TcpStream::from(OwnedFd::from(gateway));
    let mut gateway = TcpStream::from_std(gateway).expect("the runtime runs");
    let send = async {
        for bytes in input.chunks(piece) {
            balancer
                .write_all(bytes)
                .await
                .expect("the socket has room");
            yield_now().await;
        }
        drop(balancer);
    };
    let receive = async {
        let header = read_header(&mut gateway).await.ok();
        let mut rest = Vec::new();
        gateway
            .read_to_end(&mut rest)
            .await
            .expect("the socket is open");
        (header, rest)
    };
    let ((), (header, rest)) = tokio::join!(send, receive);
    let header = header.map(|header| Header {
        client: header.client,
        is_tls: header.is_tls,
        length: input.len() - rest.len(),
    });
    (header, rest)
}
