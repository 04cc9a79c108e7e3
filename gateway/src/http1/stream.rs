//! A client's connection: the socket, what was read ahead of it, and its timer.

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
    client::Gone,
    drain::ClosingWatch,
    io::{PartsWriter, Stream, Timer, USUAL_READ, poll_receive},
};

/// Limit of what is read of following requests while one is served; the rest stays in the socket.
const MAX_AHEAD: usize = 64 * 1024;
/// Lingering close: for this long, and for this many bytes, the gateway reads on after an answer that closes the connection.
const LINGER: Duration = Duration::from_secs(2);
const MAX_LINGERING: usize = 1024 * 1024;

/// A client's connection.
pub struct ClientConnection<S> {
    stream: S,
    ahead: Vec<u8>,
    timer: Timer,
    send_timeout: Duration,
}

/// What came of waiting for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Bytes arrived.
    Received,
    /// The client has closed, the connection failed, or idle connections are to be closed.
    Ended,
    /// The deadline passed.
    TimedOut,
}

impl<S: Stream> ClientConnection<S> {
    /// A connection of which nothing was read. Its client may take nothing of an answer for `send_timeout`.
    pub fn new(stream: S, send_timeout: Duration) -> Self {
        Self {
            stream,
            ahead: Vec::new(),
            timer: Timer::default(),
            send_timeout,
        }
    }

    /// From now on, the client may take nothing of an answer for `timeout`.
    pub(crate) const fn set_send_timeout(&mut self, timeout: Duration) {
        self.send_timeout = timeout;
    }

    /// What was read and not used yet.
    #[must_use]
    pub fn ahead(&self) -> &[u8] {
        &self.ahead
    }

    /// Uses the first `length` bytes of it.
    pub fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.ahead.split_off(length);
        std::mem::replace(&mut self.ahead, rest)
    }

    /// Drops the first `length` bytes of it. An idle connection holds no buffer.
    pub(crate) fn skip(&mut self, length: usize) {
        self.ahead.drain(..length);
        if self.ahead.is_empty() {
            self.ahead = Vec::new();
        }
    }

    /// Waits for more bytes, until `deadline`.
    pub async fn receive(&mut self, deadline: Instant) -> Waited {
        poll_fn(|context| self.poll_receive(context, deadline)).await
    }

    /// Waits for more bytes, of which `expected` are sure to come.
    pub(crate) async fn receive_large(&mut self, expected: usize, deadline: Instant) -> Waited {
        if expected <= USUAL_READ {
            return self.receive(deadline).await;
        }
        self.ahead.reserve(expected);
        let Self {
            stream,
            ahead,
            timer,
            ..
        } = self;
        let mut read = std::pin::pin!(stream.read_buf(ahead));
        poll_fn(|context| match read.as_mut().poll(context) {
            Poll::Ready(read) => Poll::Ready(outcome(&read)),
            Poll::Pending => timer.poll(context, deadline).map(|()| Waited::TimedOut),
        })
        .await
    }

    /// Waits for the first bytes of a request, until `deadline`, or for `grace` once idle connections are to be closed. Bytes
    /// that have arrived come first.
    pub(crate) async fn receive_next(
        &mut self,
        deadline: Instant,
        closing: &mut ClosingWatch<'_>,
        grace: Duration,
    ) -> Waited {
        let mut end_of_grace = None;
        poll_fn(|context| match self.poll_receive(context, deadline) {
            Poll::Pending if closing.poll(context).is_ready() => {
                let end = *end_of_grace.get_or_insert_with(|| Instant::now() + grace);
                self.timer.poll(context, end).map(|()| Waited::Ended)
            }
            waited => waited,
        })
        .await
    }

    fn poll_receive(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<Waited> {
        match poll_receive(&mut self.stream, context, &mut self.ahead) {
            Poll::Ready(received) => Poll::Ready(outcome(&received)),
            Poll::Pending => self
                .timer
                .poll(context, deadline)
                .map(|()| Waited::TimedOut),
        }
    }

    /// Ready once the client has left. What arrives meanwhile is kept for the next request.
    pub(crate) fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.ahead.len() < MAX_AHEAD {
            let received = ready!(poll_receive(&mut self.stream, context, &mut self.ahead));
            if outcome(&received) == Waited::Ended {
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
        self.timer.poll(context, deadline)
    }

    /// Sends all parts, one behind the other.
    ///
    /// # Errors
    ///
    /// The client left, or took nothing for too long.
    pub(crate) async fn send<const PARTS: usize>(
        &mut self,
        parts: [&[u8]; PARTS],
    ) -> Result<(), Gone> {
        let mut writer = PartsWriter::new(parts);
        let mut deadline = None;
        poll_fn(|context| {
            loop {
                match writer.poll_write(&mut self.stream, context) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Ok(())),
                    Poll::Ready(Ok(_)) => deadline = None,
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Gone)),
                    Poll::Pending => {
                        let deadline =
                            *deadline.get_or_insert_with(|| Instant::now() + self.send_timeout);
                        return self.timer.poll(context, deadline).map(|()| Err(Gone));
                    }
                }
            }
        })
        .await
    }

    /// Closes a connection on which the client says that nothing more comes. If something does, it lingers.
    pub(crate) async fn close(mut self) {
        self.shut_down().await;
        let arrived = poll_fn(|context| {
            Poll::Ready(poll_receive(&mut self.stream, context, &mut self.ahead))
        });
        if let Poll::Ready(Ok(1..)) = arrived.await {
            self.linger().await;
        }
    }

    /// Closes a connection on which the client may still be sending.
    pub(crate) async fn close_lingering(mut self) {
        self.shut_down().await;
        self.linger().await;
    }

    /// Reads on for a while: a close with unread bytes would reset the connection, and the client might lose its answer.
    async fn linger(&mut self) {
        let mut read = 0;
        let linger = async {
            let deadline = Instant::now() + LINGER;
            while read < MAX_LINGERING && self.receive(deadline).await == Waited::Received {
                read += self.ahead.len();
                self.ahead.clear();
            }
        };
        linger.await;
    }

    async fn shut_down(&mut self) {
        // A failed or slow shutdown is ignored.
        let _ = timeout(LINGER, self.stream.shutdown()).await;
    }
}

fn outcome(received: &io::Result<usize>) -> Waited {
    match received {
        Ok(1..) => Waited::Received,
        Ok(0) | Err(_) => Waited::Ended,
    }
}

/// Silent: what was read holds credentials.
impl<S> std::fmt::Debug for ClientConnection<S> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ClientConnection(…)")
    }
}
