//! A client's connection: what of it was read and not used yet, and the socket behind.
//!
//! Heads and forms are read through it. While pingora serves a request it is the stream that pingora sees:
//! one that has nothing more to read, since the request is whole, but tells when the client goes away; what
//! comes meanwhile is kept for the next request. So pingora needs no opinion on where a body ends or on
//! pipelining. And into the head of the answer that pingora writes go the lines that the gateway announces:
//! that costs a tenth of what it costs to put them into pingora's header maps.

use std::{
    future::poll_fn,
    io,
    mem::MaybeUninit,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use async_trait::async_trait;
use bytes::{Buf, Bytes, BytesMut};
use memchr::memmem;
use pingora::{
    protocols::{
        GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
        Stream, TimingDigest, UniqueID, UniqueIDType, raw_connect::ProxyDigest,
    },
    time::fast_timeout::fast_timeout as timeout,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::stall::Stall;

/// As much is read at once: the head of nearly every request, and its form.
const USUAL_READ: usize = 8 * 1024;
/// More than this of following requests is left in the socket until their turn comes.
const MOST_AHEAD: usize = 64 * 1024;
/// So long, and so many bytes, a client is heard out after an answer that closes the connection.
const LINGER: Duration = Duration::from_secs(2);
const MOST_LINGERING: usize = 1024 * 1024;

/// A client's connection.
pub struct Client {
    stream: Stream,
    ahead: BytesMut,
    announcement: Announcement,
    stall: Stall,
}

/// The lines that the head of an answer gets behind its status line.
enum Announcement {
    /// There are none, or they are written.
    Done,
    /// The status line comes first.
    Waiting(Bytes),
    /// The next bytes that the client gets.
    Next(Bytes),
}

impl Client {
    /// A connection that nothing was read of; its client may take nothing of an answer for as long as `patience`.
    #[must_use]
    pub fn new(stream: Stream, patience: Duration) -> Self {
        Self {
            stream,
            ahead: BytesMut::new(),
            announcement: Announcement::Done,
            stall: Stall::new(patience),
        }
    }

    /// Puts `lines` behind the status line of the next answer, which somebody else writes.
    pub fn announce(&mut self, lines: Vec<u8>) {
        self.announcement = Announcement::Waiting(lines.into());
    }

    /// The address of its other end, if the system tells.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        let digest = self.stream.get_socket_digest()?;
        let address = digest.peer_addr()?.as_inet()?;
        Some(SocketAddr::ip(address))
    }

    /// What was read and not used yet.
    #[must_use]
    pub fn ahead(&self) -> &[u8] {
        &self.ahead
    }

    /// Uses so many bytes of it.
    pub fn take(&mut self, length: usize) -> Bytes {
        self.ahead.split_to(length).freeze()
    }

    /// Uses so many bytes of it, without looking.
    pub fn skip(&mut self, length: usize) {
        self.ahead.advance(length);
        if self.ahead.is_empty() {
            // An idle connection holds no buffer.
            self.ahead = BytesMut::new();
        }
    }

    /// Waits for more; `false` when the client has closed, or the connection broke.
    pub async fn receive(&mut self) -> bool {
        matches!(poll_fn(|context| self.poll_receive(context)).await, Ok(length) if length > 0)
    }

    /// Waits for more, of which `expected` bytes are sure to come; otherwise as [`receive`](Self::receive).
    pub async fn receive_large(&mut self, expected: usize) -> bool {
        if expected <= USUAL_READ {
            return self.receive().await;
        }
        self.ahead.reserve(expected);
        matches!(self.stream.read_buf(&mut self.ahead).await, Ok(length) if length > 0)
    }

    /// Reads by way of the stack, so that a connection that waits needs no memory for what may come.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut space = [MaybeUninit::uninit(); USUAL_READ];
        let mut piece = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut piece))?;
        self.ahead.extend_from_slice(piece.filled());
        Poll::Ready(Ok(piece.filled().len()))
    }

    /// Sends all of `bytes`.
    ///
    /// # Errors
    ///
    /// The client is gone.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes).await?;
        self.flush().await
    }

    /// Closes a connection on which nothing more is expected.
    pub async fn close(mut self: Box<Self>) {
        Shutdown::shutdown(&mut *self.stream).await;
    }

    /// Closes a connection on which the client may still be sending: a close with unread bytes would reset
    /// it, and the client might lose the answer that says why.
    pub async fn close_heard_out(mut self: Box<Self>) {
        Shutdown::shutdown(&mut *self.stream).await;
        let hear_out = async {
            let mut heard = 0;
            while heard < MOST_LINGERING && self.receive().await {
                heard += self.ahead.len();
                self.ahead.clear();
            }
        };
        // Whoever still sends after that had time to read.
        let _ = timeout(LINGER, hear_out).await;
    }

    /// Writes what is to be announced, when its turn has come; tells how many of `bytes` may follow. The
    /// head of an answer is written in one piece, so its status line is not cut.
    fn poll_announce(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.announcement {
            Announcement::Done => {}
            Announcement::Waiting(_) => {
                let line_end = memmem::find(bytes, b"\r\n");
                return Poll::Ready(Ok(line_end.map_or(bytes.len(), |line_end| line_end + 2)));
            }
            Announcement::Next(lines) => {
                while !lines.is_empty() {
                    let written = ready!(Pin::new(&mut self.stream).poll_write(context, lines))?;
                    if written == 0 {
                        return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                    }
                    lines.advance(written);
                }
                self.announcement = Announcement::Done;
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_announced(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let most = ready!(self.poll_announce(context, bytes))?;
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, &bytes[..most]))?;
        if let Announcement::Waiting(lines) = &mut self.announcement
            && bytes[..written].ends_with(b"\r\n")
        {
            self.announcement = Announcement::Next(std::mem::take(lines));
        }
        Poll::Ready(Ok(written))
    }

    /// Behind a request: watches for the client's going, and keeps what comes for later.
    fn poll_behind(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.ahead.len() < MOST_AHEAD {
            if ready!(self.poll_receive(context))? == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        Poll::Pending
    }
}

impl AsyncRead for Client {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_behind(context)
    }
}

impl AsyncWrite for Client {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.poll_write_announced(context, bytes);
        self.stall.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = if matches!(self.announcement, Announcement::Done) {
            Pin::new(&mut self.stream).poll_write_vectored(context, slices)
        } else {
            let first = slices.iter().find(|slice| !slice.is_empty());
            self.poll_write_announced(context, first.map_or(&[], |slice| slice))
        };
        self.stall.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.stall.watch(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[async_trait]
impl Shutdown for Client {
    async fn shutdown(&mut self) {
        Shutdown::shutdown(&mut *self.stream).await;
    }
}

impl UniqueID for Client {
    fn id(&self) -> UniqueIDType {
        self.stream.id()
    }
}

impl Ssl for Client {
    fn get_ssl_digest(&self) -> Option<Arc<pingora::protocols::tls::SslDigest>> {
        self.stream.get_ssl_digest()
    }
}

impl GetTimingDigest for Client {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_timing_digest()
    }
}

impl GetProxyDigest for Client {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.get_proxy_digest()
    }
}

impl GetSocketDigest for Client {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_socket_digest()
    }
}

impl Peek for Client {}

/// Silent: what was read holds credentials.
impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Client(…)")
    }
}
