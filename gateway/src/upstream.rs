//! Connections to backends: pingora's, but a form goes out in one piece with its head.
//!
//! pingora sends a head as soon as it is written. The form that belongs to it is there already, so that would be
//! two packets instead of one: a system call and a wake-up of the backend for nothing, and 40 ms of waiting with
//! a backend that delays its acknowledgements.

use std::{
    io,
    pin::Pin,
    sync::{Arc, LazyLock},
    task::{Context, Poll, ready},
    time::Duration,
};

use async_trait::async_trait;
use bytes::{Buf, BytesMut};
use memchr::memmem::Finder;
use pingora::{
    connectors::{
        TransportConnector,
        http::custom::{Connection, Connector},
    },
    protocols::{
        ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
        Stream, TimingDigest, UniqueID, UniqueIDType, raw_connect::ProxyDigest, tls::CustomALPN,
    },
    upstreams::peer::Peer,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a peer must say it speaks for pingora to connect through a [`BackendConnector`]. It is HTTP/1.1; nobody
/// but pingora sees this.
#[must_use]
pub fn protocol() -> ALPN {
    ALPN::Custom(CustomALPN::new(b"signpost".to_vec()))
}

/// Connects to backends. Connections that are free are kept, and found again, by pingora.
pub struct BackendConnector(pub TransportConnector);

#[async_trait]
impl Connector for BackendConnector {
    type Session = ();

    async fn get_http_session<P: Peer + Send + Sync + 'static>(
        &self,
        peer: &P,
    ) -> pingora::Result<(Connection<()>, bool)> {
        let stream = self.0.new_stream(peer).await?;
        let stream = Box::new(OnePiece {
            stream,
            head: BytesMut::new(),
        });
        Ok((Connection::Stream(stream), false))
    }

    async fn reused_http_session<P: Peer + Send + Sync + 'static>(&self, _peer: &P) -> Option<()> {
        None
    }

    async fn release_http_session<P: Peer + Send + Sync + 'static>(
        &self,
        (): (),
        _peer: &P,
        _idle_timeout: Option<Duration>,
    ) {
    }
}

/// A connection that holds a head back until the first bytes of its form are there.
#[derive(Debug)]
struct OnePiece {
    stream: Stream,
    /// The head that is held back.
    head: BytesMut,
}

/// Whether `bytes` are a whole head that announces a form. Heads are written in one piece, with the names of
/// HTTP's own headers as RFC 9110 spells them.
fn announces_form(bytes: &[u8]) -> bool {
    static LENGTH: LazyLock<Finder<'static>> =
        LazyLock::new(|| Finder::new(b"\r\nContent-Length: "));
    bytes.starts_with(b"POST ")
        && bytes.ends_with(b"\r\n\r\n")
        && LENGTH
            .find(bytes)
            .and_then(|start| bytes.get(start + LENGTH.needle().len()))
            .is_some_and(|digit| matches!(digit, b'1'..=b'9'))
}

impl AsyncWrite for OnePiece {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.head.is_empty() && announces_form(bytes) {
            this.head.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        while !this.head.is_empty() {
            let both = [io::IoSlice::new(&this.head), io::IoSlice::new(bytes)];
            let stream = Pin::new(&mut this.stream);
            let written = ready!(stream.poll_write_vectored(context, &both))?;
            let of_head = written.min(this.head.len());
            this.head.advance(of_head);
            if written == 0 || written > of_head {
                return Poll::Ready(Ok(written - of_head));
            }
        }
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.head.is_empty() {
            Pin::new(&mut self.stream).poll_flush(context)
        } else {
            // The form comes next; it is flushed, too.
            Poll::Ready(Ok(()))
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl AsyncRead for OnePiece {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

#[async_trait]
impl Shutdown for OnePiece {
    async fn shutdown(&mut self) {
        Shutdown::shutdown(&mut *self.stream).await;
    }
}

impl UniqueID for OnePiece {
    fn id(&self) -> UniqueIDType {
        self.stream.id()
    }
}

impl Ssl for OnePiece {
    fn get_ssl_digest(&self) -> Option<Arc<pingora::protocols::tls::SslDigest>> {
        self.stream.get_ssl_digest()
    }
}

impl GetTimingDigest for OnePiece {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_timing_digest()
    }
}

impl GetProxyDigest for OnePiece {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.get_proxy_digest()
    }
}

impl GetSocketDigest for OnePiece {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_socket_digest()
    }
}

impl Peek for OnePiece {}
