//! Writes a request to a backend and reads the head of its response.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    backend_head::{BackendHead, ResponseScanner},
    failure::BackendFailure,
};
use crate::{
    limits::spool::{Piece, SpoolReader, SpooledBody},
    request::{Method, client::Client},
    wire::io::{PartsWriter, Stream, poll_receive},
};

/// Limit of interim responses (1xx) for each request.
pub(crate) const MAX_INTERIM: usize = 32;

/// Timeouts of an exchange with a backend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeTimeouts {
    /// Each wait until the backend accepts bytes of the request.
    pub send: Duration,
    /// The head of the response, and each interim response before it.
    pub receive: Duration,
}

/// A request to a backend; head and body are sent in one write, unless the body is in a file.
#[derive(Clone, Copy)]
pub struct BackendRequest<'r> {
    /// The head, with its closing empty line.
    pub head: &'r [u8],
    /// The body, if it is in memory.
    pub body: &'r [u8],
    /// The body, if it is in a file.
    pub(crate) spooled: Option<&'r Arc<SpooledBody>>,
    /// Its method.
    pub method: Method,
    /// Timeout for the head of the response, if it has one of its own.
    pub response: Option<Duration>,
}

/// The head of a response, and the bytes that arrived with it.
pub(crate) struct ReceivedHead {
    /// The offsets of its parts in `bytes`.
    pub head: BackendHead,
    /// The head's length in `bytes`; the beginning of the body follows.
    pub length: usize,
    /// The head, and what arrived of the body.
    pub bytes: Vec<u8>,
    /// Whether the connection can be reused after the body: the request was sent whole, and the response allows it.
    pub keeps_alive: bool,
    /// Whether no body follows, whatever the head announces: the request is a HEAD.
    pub is_head: bool,
}

/// An exchange that failed before the head of a response was complete.
#[derive(Debug)]
pub(crate) struct ExchangeFailure {
    /// The cause.
    pub failure: BackendFailure,
    /// Whether any byte of a response arrived.
    pub has_response: bool,
}

// Prints no content, which may include credentials.
signpost_protocol::hide_in_debug!(ReceivedHead);

/// Sends a request and reads the head of its response. Skips interim responses; a 101 is an error.
///
/// If the response arrives before the request was sent whole, it is used. If the client disconnects, the exchange ends.
///
/// # Errors
///
/// The connection ended, a timeout passed, the response is malformed, or the client disconnected.
pub(crate) async fn exchange<S: Stream, C: Client>(
    stream: &mut S,
    request: BackendRequest<'_>,
    client: &mut C,
    timeouts: ExchangeTimeouts,
) -> Result<ReceivedHead, ExchangeFailure> {
    let mut exchange = Exchange {
        stream,
        client,
        writer: PartsWriter::new([request.head, request.body]),
        // In a box: most requests have none.
        spooled: request
            .spooled
            .map(|body| Box::new(SpooledPart::new(SpoolReader::new(Arc::clone(body))))),
        sending: SendState::InFlight,
        received: Vec::new(),
        timeouts: ExchangeTimeouts {
            receive: request.response.unwrap_or(timeouts.receive),
            ..timeouts
        },
        has_response: false,
        deadline: None,
    };
    let is_head = request.method == Method::Head;
    let head = exchange.receive_head().await;
    match head {
        Ok((head, length)) => Ok(ReceivedHead {
            // A connection with only a part of a request on it can carry no other; nor can one on which a body may follow
            // that no response to HEAD has.
            keeps_alive: head.keeps_alive
                && matches!(exchange.sending, SendState::Done)
                && !(is_head && head.body.has_bytes()),
            is_head,
            head,
            length,
            bytes: exchange.received,
        }),
        Err(failure) => Err(ExchangeFailure {
            failure,
            has_response: exchange.has_response,
        }),
    }
}

struct Exchange<'e, S, C> {
    stream: &'e mut S,
    client: &'e mut C,
    writer: PartsWriter<'e, 2>,
    /// What follows the writer's parts.
    spooled: Option<Box<SpooledPart>>,
    sending: SendState,
    received: Vec<u8>,
    timeouts: ExchangeTimeouts,
    /// Whether any byte of a response arrived.
    has_response: bool,
    /// For the current wait: until the backend accepts bytes, or until the head of a response is complete.
    deadline: Option<Instant>,
}

/// A body in a file, on its way.
struct SpooledPart {
    reader: SpoolReader,
    /// The piece that is read.
    reading: Option<Piece>,
    /// The piece that is written, from `start` on.
    piece: Vec<u8>,
    start: usize,
}

impl SpooledPart {
    const fn new(reader: SpoolReader) -> Self {
        Self {
            reader,
            reading: None,
            piece: Vec::new(),
            start: 0,
        }
    }

    /// As [`PartsWriter::poll_write`].
    fn poll_write(
        &mut self,
        stream: &mut impl Stream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.start == self.piece.len() {
            if self.reading.is_none() {
                self.reading = self.reader.next_piece();
            }
            let Some(reading) = &mut self.reading else {
                return Pin::new(stream).poll_flush(context).map_ok(|()| 0);
            };
            self.piece = ready!(reading.as_mut().poll(context))?;
            (self.reading, self.start) = (None, 0);
        }
        let mut writer = PartsWriter::new([&self.piece[self.start..]]);
        let written = ready!(writer.poll_write(stream, context))?;
        self.start += written;
        Poll::Ready(Ok(written))
    }
}

enum SendState {
    InFlight,
    Done,
    /// The backend accepts no more bytes. It may have answered before.
    Failed(io::Error),
}

impl<S: Stream, C: Client> Exchange<'_, S, C> {
    /// Waits for the head of the response.
    async fn receive_head(&mut self) -> Result<(BackendHead, usize), BackendFailure> {
        let mut interim = 0;
        let mut scanner = ResponseScanner::default();
        loop {
            poll_fn(|context| self.poll_receive(context)).await?;
            self.has_response = true;
            while let Some(length) = scanner.scan(&self.received)? {
                let head = BackendHead::read(&self.received[..length])?;
                if !head.is_interim()? {
                    return Ok((head, length));
                }
                interim += 1;
                // Each interim response restarts the timeout, so only their number bounds the wait.
                if interim > MAX_INTERIM {
                    return Err(BackendFailure::Malformed("too many interim responses"));
                }
                self.received.drain(..length);
                scanner = ResponseScanner::default();
                self.deadline = None;
            }
        }
    }

    /// Sends what the backend accepts, until bytes of a response arrive.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BackendFailure>> {
        while matches!(self.sending, SendState::InFlight) {
            match self.poll_send(context) {
                Poll::Ready(Ok(0)) => (self.sending, self.deadline) = (SendState::Done, None),
                // Progress restarts the timeout: it bounds each wait, not the time of a large form.
                Poll::Ready(Ok(_)) => self.deadline = None,
                Poll::Ready(Err(error)) => {
                    (self.sending, self.deadline) = (SendState::Failed(error), None);
                }
                Poll::Pending => break,
            }
        }
        // Also while the request is still being sent, or after that failed: a backend may have answered before it read all.
        match poll_receive(self.stream, context, &mut self.received) {
            Poll::Ready(Ok(1..)) => return Poll::Ready(Ok(())),
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(self.ended())),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
            Poll::Pending => {}
        }
        // After the backend: a response that has arrived is used. While it is awaited, a client that left ends the
        // exchange.
        if self.client.poll_disconnected(context).is_ready() {
            return Poll::Ready(Err(BackendFailure::ClientDisconnected));
        }
        self.poll_timeout(context)
    }

    /// Writes once and returns the number of bytes written; 0 once the request is sent.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let written = ready!(self.writer.poll_write(self.stream, context))?;
        match &mut self.spooled {
            Some(spooled) if written == 0 => spooled.poll_write(self.stream, context),
            _ => Poll::Ready(Ok(written)),
        }
    }

    fn ended(&self) -> BackendFailure {
        match &self.sending {
            // The failed write is the cause; the closed connection is only its consequence.
            SendState::Failed(error) => BackendFailure::ended(&error.to_string()),
            SendState::InFlight | SendState::Done => {
                BackendFailure::ended("closed without a response")
            }
        }
    }

    fn poll_timeout(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BackendFailure>> {
        let timeout = match self.sending {
            SendState::InFlight => self.timeouts.send,
            SendState::Done | SendState::Failed(_) => self.timeouts.receive,
        };
        let deadline = *self
            .deadline
            .get_or_insert_with(|| Instant::now() + timeout);
        let expired = self.client.poll_deadline(context, deadline);
        expired.map(|()| Err(BackendFailure::TimedOut))
    }
}

#[cfg(test)]
mod tests;
