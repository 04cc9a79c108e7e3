//! A connection to a backend, with or without TLS; and whether its answers have echoed the ids of their requests.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use pingora::protocols::Stream as TcpStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::{answer_head::AnswerHead, failure::Failure};

/// A connection to a backend. Plain ones cost a branch more than the stream itself.
pub(crate) struct BackendStream {
    transport: Transport,
    ids: AnswerIds,
}

enum Transport {
    Plain(TcpStream),
    /// Boxed, to keep the futures of plain requests small.
    Tls(Box<TlsStream<TcpStream>>),
}

/// Whose ids the answers of a connection have in `X-Request-Id`, by the first one that has it.
#[derive(Clone, Copy)]
enum AnswerIds {
    Unknown,
    /// Those of their requests.
    Echoed,
    /// The backend's own.
    Own,
}

impl BackendStream {
    /// A connection with plain HTTP.
    pub(super) const fn plain(stream: TcpStream) -> Self {
        Self::new(Transport::Plain(stream))
    }

    /// A connection through TLS, whose handshake is complete.
    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self::new(Transport::Tls(Box::new(stream)))
    }

    const fn new(transport: Transport) -> Self {
        Self {
            transport,
            ids: AnswerIds::Unknown,
        }
    }

    /// Checks that an answer belongs to the request of this id: a backend that answers a request twice shifts all later
    /// answers of the connection. CONTRACT 9.
    ///
    /// # Errors
    ///
    /// It has another id, although the connection's answers echo those of their requests.
    pub(super) fn check_id(
        &mut self,
        answer: &AnswerHead,
        bytes: &[u8],
        id: &[u8],
    ) -> Result<(), Failure> {
        if !answer.has_request_id {
            return Ok(());
        }
        match (self.ids, answer.echoes(bytes, id)) {
            (AnswerIds::Echoed, false) => {
                return Err(Failure::Malformed("it has another request's X-Request-Id"));
            }
            (AnswerIds::Unknown, true) => self.ids = AnswerIds::Echoed,
            (AnswerIds::Unknown, false) => self.ids = AnswerIds::Own,
            (AnswerIds::Own, _) | (AnswerIds::Echoed, true) => {}
        }
        Ok(())
    }
}

impl AsyncRead for BackendStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
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
        match &mut self.get_mut().transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Transport::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Transport::Tls(stream) => Pin::new(stream).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(context),
            Transport::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Transport::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
