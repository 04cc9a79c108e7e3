//! A connection to a backend, with or without TLS; and whether its responses have echoed the ids of their requests.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::{Context, Poll},
};

use pingora::protocols::{Stream as TcpStream, l4::ext::set_recv_buf};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::{backend_head::BackendHead, failure::BackendFailure};

/// Usual receive buffer, in bytes; Linux counts twice. A client that reads nothing can keep it full, and without a limit
/// Linux lets it grow to 6 MiB or more.
const RECEIVE_BUFFER: usize = 64 * 1024;
/// Usual limit of a read, in bytes.
pub(super) const PIECE: usize = 64 * 1024;

/// Receive buffer for large responses, whose clients take them. With the usual one, they cost up to a quarter more.
const LARGE_RECEIVE_BUFFER: usize = 512 * 1024;
/// Limit of a read from that buffer.
pub(super) const LARGE_PIECE: usize = 256 * 1024;
/// Bytes of a response that the client's connection, with its send buffer, must have taken before the buffers become
/// large.
const USUAL_RESPONSE: u64 = 64 * 1024;
/// Limit of connections with large buffers: 320 MiB in all. Responses on further ones cost more, and arrive as well.
const MAX_LARGE: usize = 256;

/// The connections with large buffers.
static LARGE: LargeBuffers = LargeBuffers(AtomicUsize::new(0));

/// A connection to a backend. Plain ones cost a load and a branch more than the stream itself.
///
/// Boxed, to keep the futures of requests small.
pub(crate) struct BackendStream(Box<Established>);

struct Established {
    transport: Transport,
    ids: ResponseIds,
    /// Kept to the connection's end: a reused one needs no further system call.
    large: Option<LargeBuffer<'static>>,
}

enum Transport {
    Plain(TcpStream),
    /// Boxed again: most connections are plain ones, and need no such space.
    Tls(Box<TlsStream<TcpStream>>),
}

/// Counts connections with large buffers.
struct LargeBuffers(AtomicUsize);

/// One of them, until this is dropped.
struct LargeBuffer<'l>(&'l LargeBuffers);

impl LargeBuffers {
    fn begin(&self) -> Option<LargeBuffer<'_>> {
        let buffer = LargeBuffer(self);
        // Beyond the limit, the drop takes it back.
        (self.0.fetch_add(1, Relaxed) < MAX_LARGE).then_some(buffer)
    }
}

impl Drop for LargeBuffer<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// Limits the receive buffer of a new connection.
///
/// Not before it is established: then Linux would never let its window grow beyond that buffer.
pub(super) fn limit_receive_buffer(stream: &TcpStream) {
    // If the option cannot be set, Linux chooses the size.
    let _ = set_recv_buf(stream.id(), RECEIVE_BUFFER);
}

/// Whose ids the responses of a connection have in `X-Request-Id`, by the first one that has it.
#[derive(Clone, Copy)]
enum ResponseIds {
    Unknown,
    /// Those of their requests.
    Echoed,
    /// The backend's own.
    Own,
}

impl BackendStream {
    /// A connection with plain HTTP.
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self::new(Transport::Plain(stream))
    }

    /// A connection through TLS, whose handshake is complete.
    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self::new(Transport::Tls(Box::new(stream)))
    }

    fn new(transport: Transport) -> Self {
        Self(Box::new(Established {
            transport,
            ids: ResponseIds::Unknown,
            large: None,
        }))
    }

    /// Checks that a response belongs to the request of this id: a backend that answers a request twice shifts all later
    /// answers of the connection. CONTRACT 9.
    ///
    /// # Errors
    ///
    /// It has another id, although the connection's responses echo the ids of their requests.
    pub(super) fn check_id(
        &mut self,
        response: &BackendHead,
        bytes: &[u8],
        id: &[u8],
    ) -> Result<(), BackendFailure> {
        // The header is optional for backends.
        if !response.has_request_id {
            return Ok(());
        }
        match (self.0.ids, response.echoes(bytes, id)) {
            (ResponseIds::Echoed, false) => {
                return Err(BackendFailure::Malformed(
                    "it has another request's X-Request-Id",
                ));
            }
            (ResponseIds::Unknown, true) => self.0.ids = ResponseIds::Echoed,
            (ResponseIds::Unknown, false) => self.0.ids = ResponseIds::Own,
            (ResponseIds::Own, _) | (ResponseIds::Echoed, true) => {}
        }
        Ok(())
    }

    /// Limit of the next read of a response, after the client has taken `passed` bytes. Enlarges the receive buffer if
    /// the response is large.
    pub(super) fn piece_limit(&mut self, passed: u64) -> usize {
        let Established {
            transport, large, ..
        } = &mut *self.0;
        if large.is_none() && passed >= USUAL_RESPONSE {
            *large = LARGE.begin();
            if large.is_some() {
                // Ignored: with the usual buffer, the response arrives in smaller pieces.
                let _ = set_recv_buf(transport.tcp().id(), LARGE_RECEIVE_BUFFER);
            }
        }
        match large {
            None => PIECE,
            Some(_) => LARGE_PIECE,
        }
    }
}

impl Transport {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }
}

impl AsyncRead for BackendStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Transport::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for BackendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Transport::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Transport::Tls(stream) => Pin::new(stream).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0.transport {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(context),
            Transport::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Transport::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_are_limited_and_given_back() {
        let all = LargeBuffers(AtomicUsize::new(0));
        let mut open: Vec<_> = (0..MAX_LARGE + 9).filter_map(|_| all.begin()).collect();
        assert_eq!(open.len(), MAX_LARGE);
        assert!(all.begin().is_none());
        open.pop();
        assert!(all.begin().is_some());
        drop(open);
        assert_eq!(all.0.load(Relaxed), 0);
    }
}
