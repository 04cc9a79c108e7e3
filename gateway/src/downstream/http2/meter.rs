//! Counts the frames that bring no request forward, against a budget that grows with responses and time; and keeps what a
//! connection's stream and its loop share.
//!
//! The `h2` crate bounds their memory, but not their number: a client could send PINGs, SETTINGS, `WINDOW_UPDATE`,
//! PRIORITYs or unknown frames without end, or requests that it resets at once (CVE-2023-44487), or that it makes the
//! gateway reset (CVE-2025-8671). If the budget is used up, the connection takes no new streams, and ends with
//! `ENHANCE_YOUR_CALM` once those in flight were served.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    mem::MaybeUninit,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use h2::Reason;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

use super::{
    bounds::{
        ANSWER_CREDIT, BUDGET, BUDGET_PER_SECOND, BYTES_PER_CREDIT, MAX_LINGER_BYTES, MAX_STREAMS,
        MAX_WAITING_HEADS, PIECE_CREDIT, PROXY_REQUEST, PROXY_STREAM,
    },
    frames::{Frames, Output},
    head::{StreamFault, StreamHead},
};
use crate::{
    request::HeadLimits,
    wire::io::{Stream, USUAL_READ},
};

/// The state of a connection that its stream and its exchanges share. One task uses all of it, so updates need no
/// atomic read-modify-write.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    spent: AtomicU64,
    /// Requests that were answered.
    answered: AtomicU64,
    /// What is added to the budget of a trusted proxy.
    allowance: AtomicU64,
    /// Whether no new streams are taken.
    is_closing: AtomicBool,
    /// Whether a read stopped for the budget.
    is_paused: AtomicBool,
    received: Mutex<Received>,
    written: AtomicU64,
    is_blocked: AtomicBool,
    is_shutting_down: AtomicBool,
}

/// What was received and is not taken up yet.
#[derive(Debug, Default)]
struct Received {
    /// The heads of new streams, in their order: at most as many as streams can be open.
    heads: VecDeque<(u32, StreamHead)>,
    /// The head that is being received.
    unfinished: Option<UnfinishedHead>,
    /// Whether it did not arrive in time.
    is_late: bool,
    /// The error that ends the connection.
    failure: Option<Reason>,
}

/// A head of which a part has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnfinishedHead {
    /// When it was found to be incomplete for the first time.
    pub since: Instant,
    /// Bytes received since then.
    pub received: usize,
}

impl Meter {
    /// Whether the budget is used up.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over_by(0)
    }

    /// Whether a closing connection has used up another budget: the requests in flight get no more time.
    fn is_exhausted(&self) -> bool {
        self.is_over_by(BUDGET)
    }

    fn is_over_by(&self, more: u64) -> bool {
        self.spent.load(Relaxed) > BUDGET + self.allowance.load(Relaxed) + more
    }

    /// Sets what is added to the budget of a trusted proxy, which carries the requests of many clients.
    pub(crate) fn allow_proxy(&self, in_flight: usize) {
        let answered = self.answered.load(Relaxed);
        let allowance = PROXY_STREAM * in_flight as u64 + PROXY_REQUEST * answered;
        self.allowance.store(allowance, Relaxed);
    }

    /// Takes no new streams from now on.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Relaxed);
    }

    /// Whether no new streams are taken.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Relaxed)
    }

    /// Whether a read stopped for the budget since the last call. No waker of it is registered.
    pub(crate) fn take_pause(&self) -> bool {
        self.is_paused.swap(false, Relaxed)
    }

    fn received(&self) -> MutexGuard<'_, Received> {
        // Not poisoned: no code panics while it holds the lock.
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the heads that wait although no stream does: the `h2` crate has refused theirs. Returns whether that makes
    /// room, so that the stream must be read again.
    pub(super) fn drop_heads(&self) -> bool {
        let heads = std::mem::take(&mut self.received().heads);
        heads.len() >= MAX_WAITING_HEADS
    }

    /// Whether so many heads wait that no more are read for now.
    fn has_enough_heads(&self) -> bool {
        self.received().heads.len() >= MAX_WAITING_HEADS
    }

    /// Stores the head of a new stream.
    pub(super) fn receive(&self, stream: u32, head: StreamHead) {
        let heads = &mut self.received().heads;
        // One read brings more only if the `h2` crate refuses streams, or others were reset: then the loop refuses them.
        if heads.len() < MAX_STREAMS as usize {
            heads.push_back((stream, head));
        }
    }

    /// The head of a stream; `None` if there were too many.
    pub(super) fn take_head(&self, stream: u32) -> Option<StreamHead> {
        let heads = &mut self.received().heads;
        while let Some((id, _)) = heads.front()
            && *id <= stream
        {
            let (id, head) = heads.pop_front()?;
            // The `h2` crate has refused the older ones.
            if id == stream {
                return Some(head);
            }
        }
        None
    }

    /// Notes whether a head is incomplete, of which the last read had this many bytes.
    pub(super) fn note_head(&self, read: Option<usize>) {
        let mut received = self.received();
        received.unfinished = read.map(|read| {
            let before = received.unfinished.unwrap_or_else(|| UnfinishedHead {
                since: Instant::now(),
                received: 0,
            });
            UnfinishedHead {
                received: before.received + read,
                ..before
            }
        });
    }

    /// The head that is being received.
    pub(crate) fn unfinished_head(&self) -> Option<UnfinishedHead> {
        self.received().unfinished
    }

    /// Rejects the head that is being received: it did not arrive in time.
    pub(crate) fn expire_head(&self) {
        let mut received = self.received();
        received.unfinished = None;
        received.is_late = true;
    }

    fn take_lateness(&self) -> bool {
        std::mem::take(&mut self.received().is_late)
    }

    /// Ends the connection with an error.
    pub(super) fn fail(&self, reason: Reason) {
        self.received().failure.get_or_insert(reason);
    }

    /// The error that ends the connection.
    pub(crate) fn failure(&self) -> Option<Reason> {
        self.received().failure
    }

    /// Returns a part of the budget.
    pub(crate) fn credit(&self, credit: u64) {
        let spent = self.spent.load(Relaxed);
        self.spent.store(spent.saturating_sub(credit), Relaxed);
    }

    /// Counts an answered request.
    pub(crate) fn credit_response(&self) {
        self.answered
            .store(self.answered.load(Relaxed) + 1, Relaxed);
        self.credit(ANSWER_CREDIT);
    }

    /// Counts a piece of a response.
    pub(crate) fn credit_piece(&self, length: usize) {
        self.credit(PIECE_CREDIT + length as u64 / BYTES_PER_CREDIT);
    }

    /// Returns the budget that the time since `last` allows.
    pub(crate) fn refill(&self, last: &mut Instant) {
        let now = Instant::now();
        let elapsed = now.duration_since(*last).as_millis();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        *last = now;
        self.credit(elapsed.saturating_mul(BUDGET_PER_SECOND) / 1000);
    }

    /// The bytes written so far, if the client does not accept more now.
    pub(crate) fn blocked_at(&self) -> Option<u64> {
        let is_blocked = self.is_blocked.load(Relaxed);
        is_blocked.then(|| self.written.load(Relaxed))
    }

    /// Whether the sending direction was closed, or is about to be.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.is_shutting_down.load(Relaxed)
    }

    /// Counts a frame.
    pub(super) fn spend(&self, cost: u64) {
        let spent = self.spent.load(Relaxed);
        self.spent.store(spent.saturating_add(cost), Relaxed);
    }

    fn note_write(&self, wrote: &Poll<io::Result<usize>>) {
        self.is_blocked.store(wrote.is_pending(), Relaxed);
        if let Poll::Ready(Ok(length)) = wrote {
            let written = self.written.load(Relaxed);
            self.written
                .store(written.wrapping_add(*length as u64), Relaxed);
        }
    }
}

/// Bytes for the `h2` crate: into its buffer, and what that does not take, for the next read.
struct Passed<'p, 'b> {
    buffer: &'p mut ReadBuf<'b>,
    rest: &'p mut Vec<u8>,
}

impl Output for Passed<'_, '_> {
    fn put(&mut self, bytes: &[u8]) {
        let fits = if self.rest.is_empty() {
            bytes.len().min(self.buffer.remaining())
        } else {
            0
        };
        self.buffer.put_slice(&bytes[..fits]);
        self.rest.extend_from_slice(&bytes[fits..]);
    }
}

/// A client's stream with a meter. It reads no more once the budget is used up, unless the connection is closing.
pub(crate) struct MeteredStream<S> {
    stream: S,
    meter: Arc<Meter>,
    frames: Frames,
    /// What the `h2` crate had no room for.
    rest: Vec<u8>,
    is_shut_down: bool,
    /// Bytes read while closing, and after the shutdown.
    lingered: usize,
}

impl<S: Stream> MeteredStream<S> {
    /// Creates the metered form of a stream on which nothing was read.
    pub(crate) fn new(stream: S, meter: Arc<Meter>, limits: &HeadLimits) -> Self {
        Self {
            stream,
            meter,
            frames: Frames::new(limits),
            rest: Vec::new(),
            is_shut_down: false,
            lingered: 0,
        }
    }
}

impl<S: Stream> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self {
            stream,
            meter,
            frames,
            rest,
            lingered,
            ..
        } = &mut *self;
        if !rest.is_empty() {
            let length = rest.len().min(buffer.remaining());
            buffer.put_slice(&rest[..length]);
            rest.drain(..length);
            if rest.is_empty() {
                *rest = Vec::new();
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        while buffer.filled().len() == before {
            if meter.take_lateness() {
                frames.abandon(StreamFault::Late, meter, &mut Passed { buffer, rest });
                continue;
            }
            let may_read = if meter.is_closing() {
                *lingered < MAX_LINGER_BYTES
            } else {
                !meter.is_over()
            };
            if !may_read {
                meter.is_paused.store(true, Relaxed);
            }
            if !may_read || meter.failure().is_some() || meter.has_enough_heads() {
                // The connection loop notices it, and continues or ends the connection.
                return Poll::Pending;
            }
            let mut space = [MaybeUninit::uninit(); USUAL_READ];
            let mut piece = ReadBuf::uninit(&mut space);
            ready!(Pin::new(&mut *stream).poll_read(context, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            let passed = frames.take(piece.filled(), meter, &mut Passed { buffer, rest });
            if meter.is_closing() {
                *lingered += piece.filled().len() - passed;
                if *lingered >= MAX_LINGER_BYTES || meter.is_exhausted() {
                    meter.fail(Reason::ENHANCE_YOUR_CALM);
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: Stream> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.meter.note_write(&wrote);
        wrote
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.meter.note_write(&wrote);
        wrote
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.meter.is_blocked.store(flushed.is_pending(), Relaxed);
        flushed
    }

    /// Closes the sending direction, and then reads on for a while: a close with unread bytes would reset the
    /// connection, and the client might lose a GOAWAY or a response.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.meter.is_shutting_down.store(true, Relaxed);
        if !self.is_shut_down {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.is_shut_down = true;
        }
        while self.lingered < MAX_LINGER_BYTES {
            let mut space = [MaybeUninit::uninit(); USUAL_READ];
            let mut piece = ReadBuf::uninit(&mut space);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut piece)) {
                Ok(()) if !piece.filled().is_empty() => self.lingered += piece.filled().len(),
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
