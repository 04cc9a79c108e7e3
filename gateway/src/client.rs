//! The client's side of one request, whichever HTTP version it speaks: what the gateway asks of it.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::Instant;

use crate::{rejection::Rejection, request::BodyLength, syntax::field::NameAndValue};

/// The client's side of one request.
///
/// An answer is begun, then sent in pieces, then finished. If it is not finished, it is broken off, and the client sees that
/// it is not whole.
pub trait Client: Send {
    /// Reads the request's body, whole, after a `100 Continue` if the client waits for one; called once.
    ///
    /// # Errors
    ///
    /// Too slow, too large, malformed, or a client that left.
    fn read_body(
        &mut self,
        expects_continue: bool,
        limits: BodyLimits,
    ) -> impl Future<Output = Result<Vec<u8>, Rejection>> + Send;

    /// Ready once the client has left. Not to be polled again then.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Ready once `deadline` has passed.
    fn poll_deadline(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()>;

    /// Whether any byte of an answer was sent.
    fn is_answered(&self) -> bool;

    /// Begins an answer. Its head goes out with the first piece; until then, another answer may take its place.
    fn begin<'f>(&mut self, head: ResponseHead<'_>, fields: impl Iterator<Item = NameAndValue<'f>>);

    /// Sends a piece of the body.
    ///
    /// # Errors
    ///
    /// The client left, or took nothing for too long.
    fn send(&mut self, piece: &[u8]) -> impl Future<Output = Result<(), Gone>> + Send;

    /// Sends the last piece of the body, which may be empty, and ends the answer.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    fn finish(&mut self, last_piece: &[u8]) -> impl Future<Output = Result<(), Gone>> + Send;
}

/// Limits of a request's body.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// Bytes, once decoded.
    pub(crate) bytes: usize,
    /// Timeout for all of it.
    pub(crate) timeout: Duration,
}

/// The first line of an answer, and how long its body is.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// The status: 200 to 599.
    pub(crate) status: u16,
    /// The reason phrase; may be empty.
    pub(crate) reason: &'a [u8],
    /// `None` for an answer that can have no body; `Known(0)` for one that has none.
    pub(crate) body: BodyLength,
}

/// The client left, or took nothing of an answer for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;
