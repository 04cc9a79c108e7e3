//! Reads, writes and timers of connections, for clients and backends alike.

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    num::NonZeroU32,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

/// Size of a read, in bytes: enough for nearly every head, with a small body.
pub(crate) const USUAL_READ: usize = 8 * 1024;

/// Time before the smallest rate applies: enough for a lost packet and its retransmissions.
const RATE_GRACE: Duration = Duration::from_secs(5);

/// How often a request in flight checks whether a stop cuts it off.
const WAKE_INTERVAL: Duration = Duration::from_millis(500);

/// When the rest of a head or body must have arrived, if `received` bytes are there: within `timeout` in all, and at
/// `min_rate` bytes per second or more.
pub(crate) fn arrival_deadline(
    started: Instant,
    timeout: Duration,
    received: usize,
    min_rate: NonZeroU32,
) -> Instant {
    // Each byte that arrives moves the deadline, so a client that stalls is cut off long before `timeout`. One that
    // trickles on at the smallest rate still ends with `timeout`.
    let millis = (received as u64).saturating_mul(1000) / u64::from(min_rate.get());
    started + timeout.min(RATE_GRACE + Duration::from_millis(millis))
}

/// How a client must take a response: some bytes within `timeout`, and all of them at `min_rate` or more, apart from that
/// time. Only waits for the client count, not those for the backend.
#[derive(Clone, Copy, Debug)]
pub struct SendLimits {
    /// Timeout of a wait; also the time by which all waits may exceed what the smallest rate needs.
    pub timeout: Duration,
    /// Smallest rate, in bytes per second.
    pub min_rate: NonZeroU32,
}

/// How long a client has made the gateway wait.
///
/// Bytes pay for waits before them, not for later ones: what the kernel's buffers take at once would otherwise allow
/// hours.
#[derive(Debug, Default)]
pub(crate) struct SendPace {
    /// The waits that no bytes have paid for.
    waited: Duration,
    /// When the current wait began.
    since: Option<Instant>,
}

impl SendPace {
    /// When the current wait, which may begin with this call, must have ended.
    pub(crate) fn deadline(&mut self, limits: SendLimits) -> Instant {
        // The first poll begins the wait. Later polls of the same wait, for example the wake-ups for a stop, prolong
        // nothing.
        let since = *self.since.get_or_insert_with(Instant::now);
        since + limits.timeout.saturating_sub(self.waited)
    }

    /// The client has taken bytes.
    pub(crate) fn take(&mut self, bytes: usize, limits: SendLimits) {
        // Most writes fit into the kernel's buffer and never waited: they cost no look at the clock.
        if let Some(since) = self.since.take() {
            self.waited += since.elapsed();
        }
        if !self.waited.is_zero() {
            let millis = (bytes as u64).saturating_mul(1000) / u64::from(limits.min_rate.get());
            self.waited = self.waited.saturating_sub(Duration::from_millis(millis));
        }
    }
}

/// A connection's stream.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Reads up to [`USUAL_READ`] bytes and appends them to `buffer`. Returns 0 at the end of the stream.
///
/// It reads into a buffer on the stack, so that a waiting connection holds none.
///
/// # Errors
///
/// The connection failed.
pub(crate) fn poll_receive(
    stream: &mut impl Stream,
    context: &mut Context<'_>,
    buffer: &mut Vec<u8>,
) -> Poll<io::Result<usize>> {
    // Not zeroed: each poll would write 8 KiB, also if nothing has arrived.
    let mut space = [MaybeUninit::uninit(); USUAL_READ];
    let mut piece = ReadBuf::uninit(&mut space);
    ready!(Pin::new(stream).poll_read(context, &mut piece))?;
    buffer.extend_from_slice(piece.filled());
    Poll::Ready(Ok(piece.filled().len()))
}

/// Writes a message of several parts with as few writes as possible.
pub(crate) struct PartsWriter<'p, const PARTS: usize> {
    parts: [&'p [u8]; PARTS],
}

impl<'p, const PARTS: usize> PartsWriter<'p, PARTS> {
    /// Creates a writer for `parts`.
    #[must_use]
    pub(crate) const fn new(parts: [&'p [u8]; PARTS]) -> Self {
        Self { parts }
    }

    /// Writes once and returns the number of bytes written; 0 once everything is written and flushed.
    ///
    /// # Errors
    ///
    /// The connection failed.
    pub(crate) fn poll_write(
        &mut self,
        stream: &mut impl Stream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(stream);
        let mut left = self.parts.iter().filter(|part| !part.is_empty());
        let written = match (left.next(), left.next()) {
            // TLS keeps records that the socket did not take: without the flush, the end of a message could wait there.
            (None, _) => return stream.poll_flush(context).map_ok(|()| 0),
            (Some(only), None) => ready!(stream.poll_write(context, only))?,
            _ => {
                let slices = self.parts.map(IoSlice::new);
                ready!(stream.poll_write_vectored(context, &slices))?
            }
        };
        // To callers 0 means that everything is written. So a stream that takes nothing has to be an error here.
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.advance(written);
        Poll::Ready(Ok(written))
    }

    fn advance(&mut self, mut written: usize) {
        for part in &mut self.parts {
            let of_part = written.min(part.len());
            *part = &part[of_part..];
            written -= of_part;
        }
    }
}

/// A timer for deadlines that rarely pass.
///
/// A later deadline does not reset it: the timer fires at the earlier time, checks the clock, and only then is set to
/// the new deadline. So thousands of requests on a connection cost one timer every few seconds.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    /// Ready once `deadline` has passed.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        // Only an earlier deadline must be set at once. The timer notices a later one when it fires.
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        loop {
            ready!(sleep.as_mut().poll(context));
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            // The loop polls the timer again: only a poll registers the task, which would otherwise sleep past its
            // deadline.
            sleep.as_mut().reset(deadline);
        }
    }

    /// As [`Self::poll`], for a request in flight: also wakes the task every 500 ms, so that it notices when a stop cuts it
    /// off.
    pub(crate) fn poll_in_flight(
        &mut self,
        context: &mut Context<'_>,
        deadline: Instant,
    ) -> Poll<()> {
        let now = Instant::now();
        // Checked here, since the timer below may be set to an earlier wake-up, whose end says nothing of the deadline.
        if now >= deadline {
            return Poll::Ready(());
        }
        let next = deadline.min(now + WAKE_INTERVAL);
        // One that is due earlier stays: so a request usually resets no timer.
        if self.poll(context, next).is_ready() {
            // The timer has fired and wakes nobody any more: the task has to run again, to look at the stop and to set
            // it anew.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests;
