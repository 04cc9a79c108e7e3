//! Counts the frames that bring no request forward, against a budget that grows with answers and time.
//!
//! The `h2` crate bounds their memory, but not their number: a client could send PINGs, SETTINGS, `WINDOW_UPDATE`,
//! PRIORITYs or unknown frames without end, or requests that it resets at once (CVE-2023-44487), or that it makes the
//! gateway reset (CVE-2025-8671). If the budget is used up, the connection ends with `ENHANCE_YOUR_CALM`.

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

use super::{
    PREFACE,
    bounds::{
        BUDGET, BUDGET_PER_SECOND, BYTES_PER_CREDIT, MAX_LINGER_BYTES, PIECE_COST, PIECE_CREDIT,
        REQUEST_COST,
    },
};
use crate::io::{Stream, USUAL_READ};

/// The state of a connection that its stream and its exchanges share. One task uses all of it, so updates need no
/// atomic read-modify-write.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    spent: AtomicU64,
    written: AtomicU64,
    is_blocked: AtomicBool,
    is_shutting_down: AtomicBool,
}

impl Meter {
    /// Whether the budget is used up.
    pub(crate) fn is_over(&self) -> bool {
        self.spent.load(Relaxed) > BUDGET
    }

    /// Counts an answered request, or a piece of an answer.
    pub(crate) fn credit(&self, credit: u64) {
        let spent = self.spent.load(Relaxed);
        self.spent.store(spent.saturating_sub(credit), Relaxed);
    }

    /// Counts a piece of an answer.
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

    fn spend(&self, cost: u64) {
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

/// Finds the heads of frames in the client's bytes. RFC 9113 section 4.1.
#[derive(Debug)]
struct FrameScanner {
    /// Bytes until the next head.
    left: usize,
    head: [u8; FRAME_HEAD],
    /// The bytes of `head` that have arrived.
    filled: usize,
}

/// Length of a frame's head.
const FRAME_HEAD: usize = 9;

impl Default for FrameScanner {
    fn default() -> Self {
        Self {
            left: PREFACE.len(),
            head: [0; FRAME_HEAD],
            filled: 0,
        }
    }
}

impl FrameScanner {
    /// Returns the cost of the frames that begin in `bytes`.
    fn scan(&mut self, mut bytes: &[u8]) -> u64 {
        let mut cost = 0;
        loop {
            let skipped = self.left.min(bytes.len());
            self.left -= skipped;
            bytes = &bytes[skipped..];
            if bytes.is_empty() {
                return cost;
            }
            let taken = (FRAME_HEAD - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == FRAME_HEAD {
                let [a, b, c, kind, ..] = self.head;
                self.left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                self.filled = 0;
                cost += frame_cost(kind, self.left);
            }
        }
    }
}

/// The cost of a frame. Those of requests have a fixed one, since other limits apply to their bytes.
const fn frame_cost(kind: u8, length: usize) -> u64 {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const CONTINUATION: u8 = 9;
    match kind {
        HEADERS => REQUEST_COST,
        DATA | CONTINUATION => PIECE_COST,
        _ => (FRAME_HEAD + length) as u64,
    }
}

/// A client's stream with a meter. It reads no more once the budget is used up.
pub(crate) struct MeteredStream<S> {
    stream: S,
    meter: Arc<Meter>,
    frames: FrameScanner,
    is_shut_down: bool,
    /// Bytes read after the shutdown.
    lingered: usize,
}

impl<S: Stream> MeteredStream<S> {
    /// Creates the metered form of a stream on which nothing was read.
    pub(crate) fn new(stream: S, meter: Arc<Meter>) -> Self {
        Self {
            stream,
            meter,
            frames: FrameScanner::default(),
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
        if self.meter.is_over() {
            // The connection loop notices it, and continues or ends the connection.
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let cost = self.frames.scan(&buffer.filled()[before..]);
        self.meter.spend(cost);
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
