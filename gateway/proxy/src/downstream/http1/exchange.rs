//! One request on a client's connection: its body, its response, and whether the connection is kept alive.

use std::task::{Context, Poll};

use tokio::time::Instant;

use super::{
    body::{read_body, read_pieces},
    response::{Framing, Recipient, write_chunk_size, write_head, write_length},
    stream::ClientConnection,
};
use crate::{
    request::{
        BodyLength,
        client::{BodyLimits, BodySink, Client, Disconnected, Progress, ResponseHead},
        drain::Drain,
        rejection::Rejection,
    },
    wire::{io::Stream, syntax::field::NameAndValue},
};

/// Limit of a response that is buffered for an HTTP/1.0 client to determine its length, in bytes.
const MAX_HELD: usize = 256 * 1024;
/// The line end after a chunk's data.
const CHUNK_END: &[u8] = b"\r\n";
/// The line end after a chunk's data, and the last chunk.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";
/// The last chunk alone.
const ONLY_CHUNK: &[u8] = b"0\r\n\r\n";

/// One request on a client's connection.
pub struct Http1Exchange<'c, S> {
    connection: &'c mut ClientConnection<S>,
    drain: &'c Drain,
    recipient: Recipient,
    body: BodyLength,
    body_is_read: bool,
    is_last: bool,
    /// Whether the gateway decided to close the connection; the client may already be sending its next request.
    ends_early: bool,
    /// For HTTP/1.0: the beginning of a body whose length is not known yet.
    held: Vec<u8>,
    /// The response's head, or a chunk's size; it is sent with the next piece.
    out: Vec<u8>,
    framing: Framing,
    progress: Progress,
}

/// What happens to the connection after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterResponse {
    /// It serves the next request.
    KeepAlive,
    /// It closes; the client has sent everything.
    Close,
    /// It closes with a lingering close: the client may still be sending.
    CloseLingering,
    /// It closes at once: the client disconnected, or must notice that its response is incomplete.
    Abort,
}

impl<'c, S: Stream> Http1Exchange<'c, S> {
    /// Creates the exchange of a request whose head was read. `is_last`: the head ends the connection after this
    /// request.
    pub fn new(
        connection: &'c mut ClientConnection<S>,
        drain: &'c Drain,
        recipient: Recipient,
        body: BodyLength,
        is_last: bool,
    ) -> Self {
        Self {
            connection,
            drain,
            recipient,
            body,
            body_is_read: body == BodyLength::None,
            is_last,
            ends_early: false,
            held: Vec::new(),
            out: Vec::new(),
            framing: Framing::None,
            progress: Progress::Waiting,
        }
    }

    /// What happens to the connection after this request.
    #[must_use]
    pub fn next(&self) -> AfterResponse {
        match self.progress {
            Progress::Finished if !self.body_is_read || self.ends_early => {
                AfterResponse::CloseLingering
            }
            Progress::Finished if self.is_last => AfterResponse::Close,
            Progress::Finished => AfterResponse::KeepAlive,
            Progress::Waiting | Progress::Sending => AfterResponse::Abort,
        }
    }
}

impl<S: Stream> Http1Exchange<'_, S> {
    /// Sends a piece of the body, after the head or what else waits. A body without a length is held for HTTP/1.0.
    async fn write(&mut self, mut piece: &[u8], is_last: bool) -> Result<(), Disconnected> {
        if self.framing == Framing::Held {
            if is_last {
                write_length(&mut self.out, (self.held.len() + piece.len()) as u64);
            } else {
                self.held.extend_from_slice(piece);
                if self.held.len() <= MAX_HELD {
                    return Ok(());
                }
                // Too long to be held. HTTP/1.0 lets the end of the connection end the body; the piece is in `held` by
                // now.
                (self.framing, piece) = (Framing::UntilClose, b"");
            }
            self.out.extend_from_slice(b"\r\n");
        }
        let mut end = &b""[..];
        match self.framing {
            Framing::None => piece = b"",
            Framing::Chunked if !piece.is_empty() => {
                write_chunk_size(&mut self.out, piece.len());
                end = if is_last { LAST_CHUNK } else { CHUNK_END };
            }
            Framing::Chunked if is_last => end = ONLY_CHUNK,
            Framing::Chunked | Framing::Length | Framing::UntilClose | Framing::Held => {}
        }
        // Before the wait: if it is cut off, no error response may follow the bytes that were sent.
        self.progress = Progress::Sending;
        let held = std::mem::take(&mut self.held);
        let parts = [&self.out[..], &held, piece, end];
        self.connection.send(parts).await?;
        self.out.clear();
        Ok(())
    }
}

impl<S: Stream> Client for Http1Exchange<'_, S> {
    fn protocol(&self) -> &'static str {
        if self.recipient.is_http_1_0 {
            "HTTP/1.0"
        } else {
            "HTTP/1.1"
        }
    }

    async fn read_body(
        &mut self,
        expects_continue: bool,
        limits: BodyLimits,
    ) -> Result<Vec<u8>, Rejection> {
        // RFC 9110 section 10.1.1: an HTTP/1.0 client does not understand a 100.
        let expects_continue = expects_continue && !self.recipient.is_http_1_0;
        let body = read_body(self.connection, self.body, expects_continue, limits).await?;
        self.body_is_read = true;
        Ok(body)
    }

    async fn read_pieces(
        &mut self,
        expects_continue: bool,
        limits: BodyLimits,
        sink: &mut impl BodySink,
    ) -> Result<(), Rejection> {
        // As above.
        let expects_continue = expects_continue && !self.recipient.is_http_1_0;
        read_pieces(self.connection, self.body, expects_continue, limits, sink).await?;
        self.body_is_read = true;
        Ok(())
    }

    fn poll_disconnected(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.connection.poll_disconnected(context)
    }

    fn poll_deadline(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        self.connection.poll_deadline(context, deadline)
    }

    fn has_begun_response(&self) -> bool {
        self.progress != Progress::Waiting
    }

    fn begin<'f>(
        &mut self,
        head: ResponseHead<'_>,
        fields: impl Iterator<Item = NameAndValue<'f>>,
    ) {
        self.framing = self.recipient.framing(head.body);
        self.ends_early = !self.is_last && self.drain.is_draining();
        // What is left of an unread body would be parsed as the next request: request smuggling.
        self.is_last |= !self.body_is_read || self.ends_early;
        // Another response may have begun that no byte was sent of: an error takes its place.
        self.out.clear();
        self.held.clear();
        write_head(&mut self.out, head, fields, self.framing, !self.is_last);
    }

    async fn send(&mut self, piece: &[u8]) -> Result<(), Disconnected> {
        self.write(piece, false).await
    }

    async fn finish(&mut self, last_piece: &[u8]) -> Result<(), Disconnected> {
        self.write(last_piece, true).await?;
        self.progress = Progress::Finished;
        Ok(())
    }
}
