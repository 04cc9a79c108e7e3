//! A client's connection: the socket, the bytes read ahead, and a timer.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, timeout},
};

use crate::{
    request::{client::Disconnected, drain::ClosingWatch},
    wire::io::{PartsWriter, SendLimits, SendPace, Stream, Timer, USUAL_READ, poll_receive},
};

/// Limit of bytes read ahead while a request is served; further ones stay in the socket.
const MAX_AHEAD: usize = 64 * 1024;
/// Lingering close: the gateway reads up to 2 s and 32 MiB after a response that closes the connection, and
/// keeps none of it. A client that sends a large body without a look at responses would lose its response otherwise.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_LINGER_BYTES: usize = 32 * 1024 * 1024;

/// A client's connection.
pub struct ClientConnection<S> {
    stream: S,
    ahead: Vec<u8>,
    timer: Timer,
    send_limits: SendLimits,
    pace: SendPace,
}

/// The result of waiting for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveOutcome {
    /// Bytes arrived.
    Received,
    /// The client disconnected, or the connection failed.
    Ended,
    /// The deadline passed, or a stop closes idle connections.
    TimedOut,
}

impl<S: Stream> ClientConnection<S> {
    /// Wraps a new connection. `send_limits`: the limits of its responses.
    pub fn new(stream: S, send_limits: SendLimits) -> Self {
        Self {
            stream,
            ahead: Vec::new(),
            timer: Timer::default(),
            send_limits,
            pace: SendPace::default(),
        }
    }

    /// Sets the limits of the next response.
    pub(crate) const fn set_send_limits(&mut self, limits: SendLimits) {
        self.send_limits = limits;
    }

    /// The bytes read ahead.
    #[must_use]
    pub fn ahead(&self) -> &[u8] {
        &self.ahead
    }

    /// Takes the first `length` bytes that were read ahead.
    pub fn take(&mut self, length: usize) -> Vec<u8> {
        // The head keeps the buffer in which it arrived. Only what follows it is copied: usually nothing.
        let rest = self.ahead.split_off(length);
        std::mem::replace(&mut self.ahead, rest)
    }

    /// Drops the first `length` bytes that were read ahead. An empty buffer is freed: idle connections hold none.
    pub fn skip(&mut self, length: usize) {
        self.ahead.drain(..length);
        if self.ahead.is_empty() {
            self.ahead = Vec::new();
        }
    }

    /// Waits for more bytes, until `deadline`.
    pub async fn receive(&mut self, deadline: Instant) -> ReceiveOutcome {
        poll_fn(|context| match self.poll_receive(context) {
            Poll::Pending => self
                .timer
                .poll_in_flight(context, deadline)
                .map(|()| ReceiveOutcome::TimedOut),
            received => received,
        })
        .await
    }

    /// Waits for more bytes. At least `expected` will arrive.
    pub(crate) async fn receive_large(
        &mut self,
        expected: usize,
        deadline: Instant,
    ) -> ReceiveOutcome {
        if expected <= USUAL_READ {
            return self.receive(deadline).await;
        }
        // Into its place: over the stack, a large form would take many reads.
        self.ahead.reserve(expected);
        let Self {
            stream,
            ahead,
            timer,
            ..
        } = self;
        let mut reading = std::pin::pin!(stream.read_buf(ahead));
        poll_fn(|context| match reading.as_mut().poll(context) {
            Poll::Ready(received) => Poll::Ready(outcome(&received)),
            Poll::Pending => timer
                .poll_in_flight(context, deadline)
                .map(|()| ReceiveOutcome::TimedOut),
        })
        .await
    }

    /// Waits for the first bytes of a request until `deadline`, or until a stop closes idle connections. Bytes that have
    /// already arrived take precedence.
    pub(crate) async fn receive_next(
        &mut self,
        mut deadline: Instant,
        closing: &mut ClosingWatch<'_>,
    ) -> ReceiveOutcome {
        let mut is_closing = false;
        poll_fn(|context| {
            let received = self.poll_receive(context);
            if received.is_ready() {
                return received;
            }
            if !is_closing && let Poll::Ready(idle_delay) = closing.poll(context) {
                is_closing = true;
                deadline = deadline.min(Instant::now() + idle_delay);
            }
            self.timer
                .poll(context, deadline)
                .map(|()| ReceiveOutcome::TimedOut)
        })
        .await
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<ReceiveOutcome> {
        poll_receive(&mut self.stream, context, &mut self.ahead).map(|received| outcome(&received))
    }

    /// Ready once the client has disconnected. Bytes that arrive meanwhile are read ahead for the next request.
    pub(crate) fn poll_disconnected(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // Beyond this nothing is read: pipelined requests would fill the memory. The client's end is then noticed only
        // by a write or a deadline.
        while self.ahead.len() < MAX_AHEAD {
            let received = ready!(poll_receive(&mut self.stream, context, &mut self.ahead));
            if outcome(&received) == ReceiveOutcome::Ended {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Ready once `deadline` has passed.
    pub(crate) fn poll_deadline(
        &mut self,
        context: &mut Context<'_>,
        deadline: Instant,
    ) -> Poll<()> {
        self.timer.poll_in_flight(context, deadline)
    }

    /// Sends all parts in order.
    ///
    /// # Errors
    ///
    /// The client disconnected, or takes the response too slowly.
    pub async fn send<const PARTS: usize>(
        &mut self,
        parts: [&[u8]; PARTS],
    ) -> Result<(), Disconnected> {
        let mut writer = PartsWriter::new(parts);
        poll_fn(|context| {
            loop {
                match writer.poll_write(&mut self.stream, context) {
                    Poll::Ready(Ok(bytes)) => {
                        self.pace.take(bytes, self.send_limits);
                        if bytes == 0 {
                            return Poll::Ready(Ok(()));
                        }
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Disconnected)),
                    Poll::Pending => {
                        let deadline = self.pace.deadline(self.send_limits);
                        return self
                            .timer
                            .poll_in_flight(context, deadline)
                            .map(|()| Err(Disconnected));
                    }
                }
            }
        })
        .await
    }

    /// Closes a connection after the client's last request. If more bytes arrived, the close lingers.
    pub async fn close(mut self) {
        self.shut_down().await;
        let arrived = poll_fn(|context| {
            Poll::Ready(poll_receive(&mut self.stream, context, &mut self.ahead))
        });
        if let Poll::Ready(Ok(1..)) = arrived.await {
            self.linger().await;
        }
    }

    /// Closes a connection while the client may still be sending: always lingers.
    pub(crate) async fn close_lingering(mut self) {
        self.shut_down().await;
        self.linger().await;
    }

    /// Reads on for a while: a close with unread bytes would reset the connection, and the client might lose its
    /// response.
    async fn linger(&mut self) {
        let mut lingered = 0;
        let linger = async {
            let deadline = Instant::now() + LINGER_TIMEOUT;
            while lingered < MAX_LINGER_BYTES
                && self.receive(deadline).await == ReceiveOutcome::Received
            {
                lingered += self.ahead.len();
                self.ahead.clear();
            }
        };
        linger.await;
    }

    async fn shut_down(&mut self) {
        // A failed or slow shutdown is ignored.
        let _ = timeout(LINGER_TIMEOUT, self.stream.shutdown()).await;
    }
}

fn outcome(received: &io::Result<usize>) -> ReceiveOutcome {
    match received {
        Ok(1..) => ReceiveOutcome::Received,
        Ok(0) | Err(_) => ReceiveOutcome::Ended,
    }
}

/// Prints no content, which includes credentials.
impl<S> std::fmt::Debug for ClientConnection<S> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ClientConnection(…)")
    }
}
