//! Connections to backends: pingora's, but a request goes out as the gateway wrote it, and in one piece.
//!
//! pingora knows of a request's headers what it needs itself. The others are put behind the request line as the
//! head goes by: two header maps fewer to fill, copy and write cost less than all of verification.
//!
//! And pingora sends a head as soon as it is written. The form that belongs to it is there already, so that would
//! be two packets instead of one: a system call and a wake-up of the backend for nothing, and 40 ms of waiting with
//! a backend that delays its acknowledgements.

use std::{
    any::Any,
    fmt, io,
    pin::Pin,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use async_trait::async_trait;
use memchr::memmem::{self, Finder};
use pingora::{
    Error, ErrorType,
    connectors::{
        TransportConnector,
        http::custom::{Connection, Connector},
    },
    http::ResponseHeader,
    protocols::{
        ALPN, Digest, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown,
        SocketDigest, Ssl, Stream, TimingDigest, UniqueID, UniqueIDType, raw_connect::ProxyDigest,
        tls::CustomALPN,
    },
    upstreams::peer::Peer,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{
    drain::{Drain, GiveUp},
    stall::Stall,
};

/// What a peer must say it speaks for pingora to connect through a [`BackendConnector`]. It is HTTP/1.1; nobody
/// but pingora sees this.
#[must_use]
pub fn protocol() -> ALPN {
    ALPN::Custom(CustomALPN::new(b"signpost".to_vec()))
}

/// What went wrong with a connection, in few words. Not in the error's own: its context may hold a request's target,
/// or an answer's bytes.
#[must_use]
pub fn in_short(error: &Error) -> String {
    let root = error.root_cause();
    match error.etype() {
        ErrorType::HTTPStatus(status) => format!("answered {status}"),
        kind if root.is::<Error>() => kind.as_str().to_owned(),
        kind => format!("{} ({root})", kind.as_str()),
    }
}

/// Connects to backends. Connections that are free are kept, and found again, by pingora.
pub struct BackendConnector {
    /// pingora's.
    pub connector: TransportConnector,
    /// A backend may take nothing of a request for so long.
    pub patience: Duration,
    /// Tells when the grace of a stop is almost over.
    pub drain: Arc<Drain>,
}

#[async_trait]
impl Connector for BackendConnector {
    type Session = ();

    async fn get_http_session<P: Peer + Send + Sync + 'static>(
        &self,
        peer: &P,
    ) -> pingora::Result<(Connection<()>, bool)> {
        let stream = self.connector.new_stream(peer).await?;
        let connection = BackendConnection::new(stream, self.patience, &self.drain)?;
        Ok((Connection::Stream(Box::new(connection)), false))
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

/// What is particular to a connection's request: the lines that its head gets, set by whoever is about to write
/// that head; and whether anything of an answer has come.
#[derive(Default)]
pub struct Sending {
    lines: Mutex<Vec<u8>>,
    is_answered: AtomicBool,
}

impl Sending {
    /// That of the connection that `digest` is of.
    #[must_use]
    pub fn of(digest: &Digest) -> Option<&Arc<Self>> {
        let data = digest.proxy_digest.as_ref()?.user_data.as_ref()?;
        data.downcast_ref()
    }

    /// Begins a request, with the lines that `write` writes.
    pub fn begin(&self, write: impl FnOnce(&mut Vec<u8>)) {
        self.is_answered.store(false, Ordering::Relaxed);
        let mut lines = self.lines();
        lines.clear();
        write(&mut lines);
    }

    /// Whether a byte of the answer has come.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Relaxed)
    }

    fn lines(&self) -> MutexGuard<'_, Vec<u8>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Silent: lines hold credentials.
impl fmt::Debug for Sending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sending(…)")
    }
}

/// A connection to a backend.
struct BackendConnection {
    stream: Stream,
    sending: Arc<Sending>,
    /// What gets the lines to the connection through pingora.
    digest: Arc<ProxyDigest>,
    /// A head that is not sent yet, and how much of it is.
    head: Vec<u8>,
    sent: usize,
    awaits_form: bool,
    stall: Stall,
    give_up: GiveUp,
}

impl BackendConnection {
    fn new(stream: Stream, patience: Duration, drain: &Arc<Drain>) -> pingora::Result<Self> {
        let sending = Arc::new(Sending::default());
        let data: Box<dyn Any + Send + Sync> = Box::new(Arc::clone(&sending));
        let no_answer = Box::new(ResponseHeader::build_no_case(200, Some(0))?);
        Ok(Self {
            stream,
            sending,
            digest: Arc::new(ProxyDigest::new(no_answer, Some(data))),
            head: Vec::new(),
            sent: 0,
            awaits_form: false,
            stall: Stall::new(patience),
            give_up: GiveUp::new(Arc::clone(drain)),
        })
    }

    /// Takes a head in, if `bytes` are one: with its lines, and not to be sent before the form that it announces.
    /// A head is written in one piece.
    fn take_head(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let mut lines = self.sending.lines();
        if lines.is_empty() {
            return Ok(false);
        }
        let line_end = memmem::find(bytes, b"\r\n");
        // The last head still waits for its form: this one would become that.
        let Some(line_end) = line_end.filter(|_| self.head.is_empty()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (request_line, rest) = bytes.split_at(line_end + 2);
        for part in [request_line, &lines, rest] {
            self.head.extend_from_slice(part);
        }
        lines.clear();
        self.awaits_form = announces_form(bytes);
        Ok(true)
    }

    /// Sends what is left of the head, and `form` behind it; tells how much of `form` went.
    fn poll_send(&mut self, context: &mut Context<'_>, form: &[u8]) -> Poll<io::Result<usize>> {
        while self.sent < self.head.len() {
            let left = &self.head[self.sent..];
            let both = [io::IoSlice::new(left), io::IoSlice::new(form)];
            let stream = Pin::new(&mut self.stream);
            let written = ready!(stream.poll_write_vectored(context, &both))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_head = written.min(left.len());
            self.sent += of_head;
            if written > of_head {
                self.forget_head();
                return Poll::Ready(Ok(written - of_head));
            }
        }
        self.forget_head();
        if form.is_empty() {
            return Poll::Ready(Ok(0));
        }
        Pin::new(&mut self.stream).poll_write(context, form)
    }

    fn forget_head(&mut self) {
        self.head.clear();
        self.sent = 0;
    }
}

/// Whether a whole head announces a form. Heads come with the names of HTTP's own headers as RFC 9110 spells them.
fn announces_form(head: &[u8]) -> bool {
    static LENGTH: LazyLock<Finder<'static>> =
        LazyLock::new(|| Finder::new(b"\r\nContent-Length: "));
    head.starts_with(b"POST ")
        && LENGTH
            .find(head)
            .and_then(|start| head.get(start + LENGTH.needle().len()))
            .is_some_and(|digit| matches!(digit, b'1'..=b'9'))
}

impl AsyncWrite for BackendConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.take_head(bytes)? {
            return Poll::Ready(Ok(bytes.len()));
        }
        self.awaits_form = false;
        let sent = self.poll_send(context, bytes);
        self.stall.watch(context, sent)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.awaits_form {
            // It comes next, and is flushed, too.
            return Poll::Ready(Ok(()));
        }
        let flushed = match self.poll_send(context, b"") {
            Poll::Ready(Ok(_)) => Pin::new(&mut self.stream).poll_flush(context),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        };
        self.stall.watch(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl AsyncRead for BackendConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_pending() && !self.sending.is_answered() {
            return self.give_up.watch(context, read);
        }
        ready!(read)?;
        if buffer.filled().len() > before {
            self.sending.is_answered.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

#[async_trait]
impl Shutdown for BackendConnection {
    async fn shutdown(&mut self) {
        Shutdown::shutdown(&mut *self.stream).await;
    }
}

impl UniqueID for BackendConnection {
    fn id(&self) -> UniqueIDType {
        self.stream.id()
    }
}

impl Ssl for BackendConnection {
    fn get_ssl_digest(&self) -> Option<Arc<pingora::protocols::tls::SslDigest>> {
        self.stream.get_ssl_digest()
    }
}

impl GetTimingDigest for BackendConnection {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_timing_digest()
    }
}

impl GetProxyDigest for BackendConnection {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        Some(Arc::clone(&self.digest))
    }
}

impl GetSocketDigest for BackendConnection {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_socket_digest()
    }
}

impl Peek for BackendConnection {}

/// Silent: heads hold credentials.
impl fmt::Debug for BackendConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("BackendConnection(…)")
    }
}
