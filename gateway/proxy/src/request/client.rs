//! The client's side: its connection, and one request on it, independent of the HTTP version.

use std::{
    net::IpAddr,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::HeaderValue;
use tokio::time::Instant;

use crate::{
    request::{BodyLength, rejection::Rejection},
    wire::syntax::field::NameAndValue,
};

/// What all requests of a client's connection share.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// The client's address: the connection's peer, or the address that a PROXY header names.
    pub address: IpAddr,
    /// The listener that accepted it; `None` only in tests.
    pub listener: Option<ListenerId>,
    /// Whether the connection is encrypted, at this gateway or at the balancer that sent the PROXY header.
    pub is_tls: bool,
    /// The version of TLS, for the access log; `None` without TLS.
    pub(crate) tls_version: Option<&'static str>,
    /// Whether its requests are redirected to https.
    pub(crate) redirects_to_https: bool,
    /// The value of `Strict-Transport-Security`, if the listener has it. Only on connections with TLS of the gateway.
    pub(crate) hsts: Option<Arc<HeaderValue>>,
    /// The subject of the client's certificate, for `X-Gateway-Client-Cert-Subject`; RFC 4514.
    pub(crate) certificate_subject: Option<Arc<HeaderValue>>,
}

/// A listener of this process, from its opening to its close. Smaller than its address: every connection has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerId(NonZeroU32);

impl ListenerId {
    /// Another one.
    pub fn next() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        // `Relaxed`: the number only has to differ. Other memory of the listener is handed over by a channel.
        let number = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        Self(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
    }
}

impl ConnectionInfo {
    /// A connection without TLS from `address`.
    #[must_use]
    pub const fn plain(address: IpAddr) -> Self {
        Self {
            address,
            listener: None,
            is_tls: false,
            tls_version: None,
            redirects_to_https: false,
            hsts: None,
            certificate_subject: None,
        }
    }
}

/// The client's side of one request.
///
/// A response is begun, sent in pieces and finished. One that is not finished is aborted, so that the client notices
/// that it is incomplete.
pub trait Client: Send {
    /// The protocol's name and version, for the access log.
    fn protocol(&self) -> &'static str;

    /// Reads the whole body of the request, after a `100 Continue` if the client expects one. Called once.
    ///
    /// # Errors
    ///
    /// The body is too slow, too large or malformed, or the client disconnected.
    fn read_body(
        &mut self,
        expects_continue: bool,
        limits: BodyLimits,
    ) -> impl Future<Output = Result<Vec<u8>, Rejection>> + Send;

    /// Reads the whole body piece by piece, as [`read_body`](Self::read_body). Called once, in its place.
    ///
    /// # Errors
    ///
    /// As there; or the sink's.
    fn read_pieces(
        &mut self,
        expects_continue: bool,
        limits: BodyLimits,
        sink: &mut impl BodySink,
    ) -> impl Future<Output = Result<(), Rejection>> + Send {
        async move {
            let body = self.read_body(expects_continue, limits).await?;
            sink.take(&body).await
        }
    }

    /// Ready once the client has disconnected; must not be polled again after that.
    fn poll_disconnected(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Ready once `deadline` has passed.
    fn poll_deadline(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()>;

    /// Whether any byte of a response was sent.
    fn has_begun_response(&self) -> bool;

    /// Begins a response. Its head is sent with the first piece; until then, another response may replace it.
    fn begin<'f>(&mut self, head: ResponseHead<'_>, fields: impl Iterator<Item = NameAndValue<'f>>);

    /// Sends a piece of the body.
    ///
    /// # Errors
    ///
    /// The client disconnected, or takes the response too slowly.
    fn send(&mut self, piece: &[u8]) -> impl Future<Output = Result<(), Disconnected>> + Send;

    /// Sends the last piece of the body, which may be empty, and finishes the response.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    fn finish(
        &mut self,
        last_piece: &[u8],
    ) -> impl Future<Output = Result<(), Disconnected>> + Send;
}

/// Bytes of a body that is no form, beyond which it does not stay in memory.
pub(crate) const PIECE: usize = 64 * 1024;

/// Takes the pieces of a body as they arrive.
pub trait BodySink: Send {
    /// Takes the next piece.
    ///
    /// # Errors
    ///
    /// It has no room.
    fn take(&mut self, piece: &[u8]) -> impl Future<Output = Result<(), Rejection>> + Send;
}

/// A body in memory, whose limit is the reader's.
impl BodySink for Vec<u8> {
    async fn take(&mut self, piece: &[u8]) -> Result<(), Rejection> {
        self.extend_from_slice(piece);
        Ok(())
    }
}

/// Limits of a request's body.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// Bytes, once decoded.
    pub bytes: usize,
    /// Timeout for the whole body.
    pub timeout: Duration,
    /// Smallest rate at which it must arrive, in bytes per second.
    pub min_rate: NonZeroU32,
}

/// The status line of a response, and the length of its body.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// The status: 200 to 599.
    pub status: u16,
    /// The reason phrase, which may be empty.
    pub reason: &'a [u8],
    /// `None` if the response cannot have a body; `Known(0)` if it could but has none.
    pub body: BodyLength,
}

/// How far a response has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Waiting,
    Sending,
    Finished,
}

/// The client disconnected, or took a response too slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnected;
