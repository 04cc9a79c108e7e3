//! Counts the frames that bring no request forward, against a budget that grows with responses and time; and keeps what a
//! connection's stream and its loop share.
//!
//! The `h2` crate bounds their memory, but not their number: a client could send PINGs, SETTINGS, `WINDOW_UPDATE`,
//! PRIORITYs or unknown frames without end, or requests that it resets at once (CVE-2023-44487), or that it makes the
//! gateway reset (CVE-2025-8671). If the budget is used up, the connection takes no new streams, and ends with
//! `ENHANCE_YOUR_CALM` once those in flight were served.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::Poll,
};

use h2::Reason;
use tokio::time::Instant;

use super::{
    bounds::{
        ANSWER_CREDIT, BUDGET, BUDGET_PER_SECOND, BYTES_PER_CREDIT, MAX_LINGER_BYTES, MAX_STREAMS,
        MAX_WAITING_HEADS, PIECE_CREDIT, PROXY_REQUEST, PROXY_STREAM,
    },
    head::StreamHead,
};

/// The state of a connection that its stream and its exchanges share. One task uses all of it, so updates need no
/// atomic read-modify-write.
#[derive(Debug, Default)]
pub struct Meter {
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
    /// The header blocks of responses that the `h2` crate has not written yet, with their streams: one at most for each
    /// stream that is served, or whose last bytes wait for the socket.
    sent: Mutex<Vec<(u32, Vec<u8>)>>,
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

/// What the next read of the stream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextRead {
    /// It rejects the head that did not arrive in time.
    RejectLate,
    /// It reads.
    Read,
    /// It waits: the connection loop continues it, or ends the connection.
    Wait,
}

/// A head that has arrived in part.
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
    pub fn is_closing(&self) -> bool {
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

    fn sent(&self) -> MutexGuard<'_, Vec<(u32, Vec<u8>)>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the header block of a response, until the `h2` crate writes its frame.
    pub(super) fn send(&self, stream: u32, block: Vec<u8>) {
        self.sent().push((stream, block));
    }

    /// How many header blocks wait.
    pub(super) fn waiting_responses(&self) -> usize {
        self.sent().len()
    }

    /// The header block of a stream's response.
    pub(super) fn take_sent(&self, stream: u32) -> Option<Vec<u8>> {
        let mut sent = self.sent();
        let place = sent.iter().position(|(id, _)| *id == stream)?;
        let (_, block) = sent.swap_remove(place);
        if sent.is_empty() {
            // A connection that is idle keeps no room.
            *sent = Vec::new();
        }
        Some(block)
    }

    /// Drops the heads that wait although no stream does: the `h2` crate has refused theirs. Returns whether that makes
    /// room, so that the stream must be read again.
    pub(super) fn drop_heads(&self) -> bool {
        let heads = std::mem::take(&mut self.received().heads);
        heads.len() >= MAX_WAITING_HEADS
    }

    /// What the next read does, after this many bytes of a closing connection. One look at what the loop shares.
    pub(super) fn next_read(&self, lingered: usize) -> NextRead {
        let mut received = self.received();
        if std::mem::take(&mut received.is_late) {
            return NextRead::RejectLate;
        }
        let is_stopped = received.failure.is_some() || received.heads.len() >= MAX_WAITING_HEADS;
        drop(received);
        let has_budget = if self.is_closing() {
            lingered < MAX_LINGER_BYTES
        } else {
            !self.is_over()
        };
        if !has_budget {
            self.is_paused.store(true, Relaxed);
        }
        if has_budget && !is_stopped {
            NextRead::Read
        } else {
            NextRead::Wait
        }
    }

    /// Counts what a closing connection reads. It ends with an error if that, or its frames, become too many.
    pub(super) fn note_lingering(&self, lingered: usize) {
        // Another budget is used up: the requests in flight get no more time.
        if lingered >= MAX_LINGER_BYTES || self.is_over_by(BUDGET) {
            self.fail(Reason::ENHANCE_YOUR_CALM);
        }
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
    pub fn take_head(&self, stream: u32) -> Option<StreamHead> {
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

    /// Notes whether a head is incomplete; `length`: the bytes that the last read had of it.
    pub(super) fn note_head(&self, length: Option<usize>) {
        let mut received = self.received();
        received.unfinished = length.map(|length| {
            let before = received.unfinished.unwrap_or_else(|| UnfinishedHead {
                since: Instant::now(),
                received: 0,
            });
            UnfinishedHead {
                received: before.received + length,
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

    /// Ends the connection with an error.
    pub(super) fn fail(&self, reason: Reason) {
        self.received().failure.get_or_insert(reason);
    }

    /// The error that ends the connection.
    pub fn failure(&self) -> Option<Reason> {
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

    /// Notes that the sending direction is about to be closed.
    pub(super) fn begin_shutdown(&self) {
        self.is_shutting_down.store(true, Relaxed);
    }

    /// Notes whether the client accepts bytes.
    pub(super) fn note_flush(&self, flushed: &Poll<io::Result<()>>) {
        self.is_blocked.store(flushed.is_pending(), Relaxed);
    }

    /// Counts what was written.
    pub(super) fn note_write(&self, wrote: &Poll<io::Result<usize>>) {
        self.is_blocked.store(wrote.is_pending(), Relaxed);
        if let Poll::Ready(Ok(length)) = wrote {
            let written = self.written.load(Relaxed);
            self.written
                .store(written.wrapping_add(*length as u64), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
