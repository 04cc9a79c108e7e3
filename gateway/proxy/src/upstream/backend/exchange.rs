//! Writes a request to a backend and reads the head of its response.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    backend_head::{BackendHead, ResponseScanner},
    failure::BackendFailure,
};
use crate::{
    request::client::Client,
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

/// A request to a backend; head and form are sent in one write.
#[derive(Clone, Copy)]
pub struct BackendRequest<'r> {
    /// The head, with its closing empty line.
    pub head: &'r [u8],
    /// The form; empty if the request has none.
    pub form: &'r [u8],
    /// Whether it is a GET.
    pub is_get: bool,
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
        writer: PartsWriter::new([request.head, request.form]),
        sending: SendState::InFlight,
        received: Vec::new(),
        timeouts,
        has_response: false,
        deadline: None,
    };
    let head = exchange.receive_head().await;
    match head {
        Ok((head, length)) => Ok(ReceivedHead {
            // A connection with only a part of a request on it can carry no other.
            keeps_alive: head.keeps_alive && matches!(exchange.sending, SendState::Done),
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
    sending: SendState,
    received: Vec<u8>,
    timeouts: ExchangeTimeouts,
    /// Whether any byte of a response arrived.
    has_response: bool,
    /// For the current wait: until the backend accepts bytes, or until the head of a response is complete.
    deadline: Option<Instant>,
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
            match self.writer.poll_write(self.stream, context) {
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
