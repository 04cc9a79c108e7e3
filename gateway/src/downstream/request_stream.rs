//! The stream that pingora reads one request from: it ends where the request ends.
//!
//! What comes behind the request is kept for the next one. So pingora needs no opinion on where a body
//! ends or on pipelining, and still notices when the client goes away.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use async_trait::async_trait;
use bytes::BytesMut;
use pingora::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream,
    TimingDigest, UniqueID, UniqueIDType, raw_connect::ProxyDigest,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::{chunked::ChunkScanner, head::Framing};

/// More than this of following requests is left in the socket until their turn comes.
const MOST_SURPLUS: usize = 64 * 1024;
/// So long, and so many bytes, a client is heard out after an answer that closes the connection.
const LINGER: Duration = Duration::from_secs(2);
const MOST_LINGERING: usize = 1024 * 1024;

/// One request's part of a connection.
#[derive(Debug)]
pub struct RequestStream {
    inner: Stream,
    left: Left,
    surplus: BytesMut,
}

/// What is left of the request's body to read.
#[derive(Debug)]
enum Left {
    Bytes(u64),
    Chunks(ChunkScanner),
}

impl RequestStream {
    /// A request whose head was read, with what came behind it. Gives what of that is its body, too.
    ///
    /// # Errors
    ///
    /// What came is no chunked body; the connection is given back for the answer.
    pub fn new(
        inner: Stream,
        framing: Framing,
        mut behind_head: BytesMut,
    ) -> Result<(Self, BytesMut), Stream> {
        let (left, here) = match framing {
            Framing::None => (Left::Bytes(0), 0),
            Framing::Length(length) => {
                let here = usize::try_from(length)
                    .unwrap_or(usize::MAX)
                    .min(behind_head.len());
                (Left::Bytes(length - here as u64), here)
            }
            Framing::Chunked => {
                let mut scanner = ChunkScanner::new();
                let Ok(here) = scanner.feed(&behind_head) else {
                    return Err(inner);
                };
                (Left::Chunks(scanner), here)
            }
        };
        let surplus = behind_head.split_off(here);
        Ok((
            Self {
                inner,
                left,
                surplus,
            },
            behind_head,
        ))
    }

    /// The connection again, with what came of the next request.
    #[must_use]
    pub fn into_parts(self) -> (Stream, BytesMut) {
        (self.inner, self.surplus)
    }

    fn is_read(&self) -> bool {
        match &self.left {
            Left::Bytes(left) => *left == 0,
            Left::Chunks(scanner) => scanner.is_done(),
        }
    }

    /// Behind the request: watches for the client's going, and keeps what comes for later.
    fn poll_behind(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut space = [0; 512];
        while self.surplus.len() < MOST_SURPLUS {
            let mut piece = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.surplus.extend_from_slice(piece.filled());
        }
        Poll::Pending
    }
}

impl AsyncRead for RequestStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.is_read() {
            return this.poll_behind(context);
        }
        let most = match &this.left {
            Left::Bytes(left) => usize::try_from(*left).unwrap_or(usize::MAX),
            Left::Chunks(_) => usize::MAX,
        };
        let space = buffer.initialize_unfilled_to(most.min(buffer.remaining()));
        let mut piece = ReadBuf::new(space);
        ready!(Pin::new(&mut this.inner).poll_read(context, &mut piece))?;
        let came = piece.filled();
        let here = match &mut this.left {
            Left::Bytes(left) => {
                *left -= came.len() as u64;
                came.len()
            }
            Left::Chunks(scanner) => scanner
                .feed(came)
                .map_err(|malformed| io::Error::new(io::ErrorKind::InvalidData, malformed))?,
        };
        this.surplus.extend_from_slice(&came[here..]);
        buffer.advance(here);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for RequestStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[async_trait]
impl Shutdown for RequestStream {
    async fn shutdown(&mut self) {
        if self.is_read() {
            self.inner.shutdown().await;
        } else {
            shut_down_heard_out(&mut self.inner).await;
        }
    }
}

/// Closes a connection on which the client may still be sending: a close with unread bytes would reset
/// it, and the client might lose the answer that says why.
pub async fn shut_down_heard_out(stream: &mut Stream) {
    stream.shutdown().await;
    let hear_out = async {
        let mut space = [0; 4096];
        let mut heard = 0;
        while heard < MOST_LINGERING {
            match stream.read(&mut space).await {
                Ok(0) | Err(_) => break,
                Ok(length) => heard += length,
            }
        }
    };
    // Whoever still sends after that had time to read.
    let _ = tokio::time::timeout(LINGER, hear_out).await;
}

impl UniqueID for RequestStream {
    fn id(&self) -> UniqueIDType {
        self.inner.id()
    }
}

impl Ssl for RequestStream {
    fn get_ssl_digest(&self) -> Option<Arc<pingora::protocols::tls::SslDigest>> {
        self.inner.get_ssl_digest()
    }
}

impl GetTimingDigest for RequestStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.inner.get_timing_digest()
    }
}

impl GetProxyDigest for RequestStream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.inner.get_proxy_digest()
    }
}

impl GetSocketDigest for RequestStream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.inner.get_socket_digest()
    }
}

impl Peek for RequestStream {}
