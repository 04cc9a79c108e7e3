//! An output of the log: a bounded queue of lines, and the thread that writes them.

use std::{
    cell::Cell,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use parking_lot::{Condvar, Mutex};

use super::{
    DroppedLines, LogKind,
    sink::{Lines, Sink},
};
use crate::config::shared_keys::LogOutput;

/// Limit on queued bytes of an output; the batch being written may have the same size. Some 2,000 access lines: what a
/// busy gateway logs while its reader pauses for 0.1 s. A reader that stalls for good costs 1 MiB.
pub const MAX_QUEUED_BYTES: usize = 512 * 1024;

/// Interval of reports of dropped lines, so that a flood of lines does not become one of reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Memory that an empty buffer keeps allocated.
const RETAINED_BYTES: usize = 64 * 1024;

/// What is wrong with an output, and what is allowed, for messages.
pub(in crate::log) const CANNOT_OPEN: &str = "cannot be opened for writing";
pub(in crate::log) const USABLE: &str =
    "\"stdout\", or a file that this program may create or append to";

thread_local! {
    /// Whether this thread's lines are exempt from the limit: a writer logs at most a line or two for each batch, about
    /// dropped lines and failures.
    static IS_WRITER: Cell<bool> = const { Cell::new(false) };
}

/// The sending side of an output. When it is dropped, the thread writes what is queued, and ends.
#[derive(Debug)]
pub(crate) struct Output {
    destination: LogOutput,
    queue: Arc<Queue>,
}

#[derive(Debug)]
struct Queue {
    state: Mutex<QueueState>,
    /// Wakes the writer thread.
    work: Condvar,
    /// Wakes callers that wait for a flush.
    flushed: Condvar,
    dropped: DroppedLines,
}

#[derive(Debug, Default)]
struct QueueState {
    batch: Batch,
    /// Dropped lines that were not reported yet.
    unreported: u64,
    /// The time of the last report.
    reported_at: Option<Instant>,
    /// Callers that wait for a flush.
    flushing: usize,
    /// Whether the last write failed: a report would be lost, too.
    is_failing: bool,
    /// Whether the writer waits for `work`. If it does not, it need not be woken, which saves a system call per line.
    is_idle: bool,
    /// Whether no line can follow.
    is_closed: bool,
}

/// Lines for the writer.
#[derive(Debug, Default)]
struct Batch {
    /// Whole lines.
    lines: Vec<u8>,
    /// The kind of each line.
    kinds: Vec<LogKind>,
    /// The file is opened again after this number of bytes and lines. A later request to reopen replaces an earlier one
    /// that is still queued: then both rotations are over, and the lines between them belong to the old file.
    reopen_after: Option<(usize, usize)>,
}

impl Batch {
    const fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.reopen_after.is_none()
    }

    /// The lines before the file is opened again, and those after.
    fn split(&self) -> (Lines<'_>, Lines<'_>) {
        let end = (self.lines.len(), self.kinds.len());
        let (bytes, lines) = self.reopen_after.unwrap_or(end);
        let (bytes, bytes_after) = self.lines.split_at(bytes);
        let (kinds, kinds_after) = self.kinds.split_at(lines);
        let after = Lines {
            bytes: bytes_after,
            kinds: kinds_after,
        };
        (Lines { bytes, kinds }, after)
    }

    fn clear(&mut self) {
        self.lines.clear();
        self.lines.shrink_to(RETAINED_BYTES);
        self.kinds.clear();
        self.kinds.shrink_to(RETAINED_BYTES);
        self.reopen_after = None;
    }
}

impl Output {
    /// Opens a destination, and starts its thread.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or the process cannot get another descriptor or thread.
    pub(super) fn open(
        destination: &LogOutput,
        dropped: &DroppedLines,
    ) -> anyhow::Result<Arc<Self>> {
        let sink = Sink::open(destination).with_context(|| {
            format!("log.output: {destination} {CANNOT_OPEN}: allowed is {USABLE}")
        })?;
        Self::start(destination.clone(), sink, dropped.clone())
            .context("log.output: cannot start the thread that writes it")
    }

    pub(super) fn start(
        destination: LogOutput,
        sink: Sink,
        dropped: DroppedLines,
    ) -> std::io::Result<Arc<Self>> {
        let queue = Arc::new(Queue {
            state: Mutex::default(),
            work: Condvar::new(),
            flushed: Condvar::new(),
            dropped,
        });
        let of_writer = Arc::clone(&queue);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all_lines(&of_writer, sink))?;
        Ok(Arc::new(Self { destination, queue }))
    }

    pub(in crate::log) const fn destination(&self) -> &LogOutput {
        &self.destination
    }

    /// Queues a line, or drops and counts it. It must end with its only line feed.
    pub(crate) fn push(&self, kind: LogKind, line: &[u8]) {
        let mut state = self.queue.state.lock();
        if state.batch.lines.len() + line.len() > MAX_QUEUED_BYTES && !IS_WRITER.get() {
            state.unreported += 1;
            self.queue.dropped.add(kind, 1);
        } else {
            state.batch.lines.extend_from_slice(line);
            state.batch.kinds.push(kind);
        }
        self.queue.wake(&state);
    }

    /// Opens the file again after the lines queued so far.
    pub(super) fn reopen(&self) {
        let mut state = self.queue.state.lock();
        let batch = &mut state.batch;
        batch.reopen_after = Some((batch.lines.len(), batch.kinds.len()));
        self.queue.wake(&state);
    }

    /// Waits until all queued lines are written, until the deadline at most.
    pub(super) fn flush(&self, deadline: Instant) {
        let mut state = self.queue.state.lock();
        state.flushing += 1;
        // It may wait for the time of a report.
        self.queue.wake(&state);
        while !state.is_flushed() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.queue.flushed.wait_for(&mut state, left);
        }
        state.flushing -= 1;
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        state.is_closed = true;
        self.queue.wake(&state);
    }
}

impl Queue {
    fn wake(&self, state: &QueueState) {
        if state.is_idle {
            self.work.notify_one();
        }
    }

    /// Waits for lines, for dropped ones to report, or for the file to be opened again, and swaps what is queued for the
    /// empty `batch`. `false` if nothing is queued, and nothing can follow.
    fn take(&self, batch: &mut Batch) -> bool {
        let mut state = self.state.lock();
        while !state.has_work() {
            state.is_idle = true;
            self.flushed.notify_all();
            if state.is_closed {
                return false;
            }
            if state.has_unreported() {
                let left = state.until_report();
                self.work.wait_for(&mut state, left);
            } else {
                self.work.wait(&mut state);
            }
        }
        state.is_idle = false;
        // Swapped, not copied: the lock is held for a moment, and both buffers keep their memory.
        std::mem::swap(&mut state.batch, batch);
        true
    }

    /// Counts the lines that a write has lost. Returns the number of dropped lines to report now.
    fn written(&self, lost: &[LogKind], is_failing: bool) -> u64 {
        for kind in lost {
            self.dropped.add(*kind, 1);
        }
        let mut state = self.state.lock();
        state.unreported += lost.len() as u64;
        state.is_failing = is_failing;
        if !state.must_report() {
            return 0;
        }
        state.reported_at = Some(Instant::now());
        std::mem::take(&mut state.unreported)
    }
}

impl QueueState {
    fn has_work(&self) -> bool {
        !self.batch.is_empty() || self.must_report()
    }

    /// Whether there are dropped lines that can be reported.
    const fn has_unreported(&self) -> bool {
        self.unreported > 0 && !self.is_failing
    }

    /// Whether dropped lines are reported now: when the time has come, or with the last line of an output or a flush.
    fn must_report(&self) -> bool {
        let is_last = self.batch.is_empty() && (self.is_closed || self.flushing > 0);
        self.has_unreported() && (is_last || self.until_report().is_zero())
    }

    fn until_report(&self) -> Duration {
        let since = self.reported_at.map(|reported_at| reported_at.elapsed());
        since.map_or(Duration::ZERO, |since| {
            REPORT_INTERVAL.saturating_sub(since)
        })
    }

    const fn is_flushed(&self) -> bool {
        self.is_idle && self.batch.is_empty() && !self.has_unreported()
    }
}

/// The writer thread. It ends with its output, or with the process.
fn write_all_lines(queue: &Queue, mut sink: Sink) {
    IS_WRITER.set(true);
    let mut batch = Batch::default();
    let mut cause = None;
    while queue.take(&mut batch) {
        let (before, after) = batch.split();
        let mut lost = sink.write(before).to_vec();
        if batch.reopen_after.is_some() {
            lost.extend(sink.reopen());
            lost.extend(sink.write(after));
        }
        batch.clear();
        cause = sink.failure().map(str::to_owned).or(cause);
        // After the write, which made room for this line.
        let dropped_lines = queue.written(&lost, sink.failure().is_some());
        if dropped_lines > 0 {
            tracing::warn!(
                dropped_lines,
                cause = cause.take(),
                "log lines were dropped: the reader of the log was too slow or stalled, or the disk was full"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue {
        Queue {
            state: Mutex::default(),
            work: Condvar::new(),
            flushed: Condvar::new(),
            dropped: DroppedLines::default(),
        }
    }

    fn lose(queue: &Queue, lines: usize) -> u64 {
        queue.written(&vec![LogKind::Error; lines], false)
    }

    #[test]
    fn dropped_lines_are_reported_once_in_an_interval_and_none_is_left_out() {
        let queue = queue();
        let begun = Instant::now();
        let mut reports = vec![lose(&queue, 1)];
        assert_eq!(reports, [1]);
        for _ in 0..10_000 {
            reports.push(lose(&queue, 1));
        }
        // Without lines, the writer waits for the time of the next report.
        let mut batch = Batch::default();
        while reports.iter().sum::<u64>() < 10_001 {
            assert!(queue.take(&mut batch));
            reports.push(queue.written(&[], false));
        }
        let made = reports.iter().filter(|lines| **lines > 0).count() as u64;
        assert!(made >= 2 && begun.elapsed() >= REPORT_INTERVAL);
        assert!(made <= 1 + begun.elapsed().as_secs(), "{reports:?}");
        assert_eq!(queue.dropped.value(LogKind::Error), 10_001);
    }

    #[test]
    fn a_flush_or_an_end_does_not_wait_for_the_time_of_a_report() {
        for is_closed in [false, true] {
            let queue = queue();
            // No later report is due by its time.
            lose(&queue, 1);
            queue.state.lock().reported_at = Some(Instant::now() + 60 * REPORT_INTERVAL);
            assert_eq!(lose(&queue, 2), 0);
            let mut state = queue.state.lock();
            (state.is_closed, state.flushing) = (is_closed, usize::from(!is_closed));
            drop(state);
            assert!(queue.take(&mut Batch::default()));
            assert_eq!(lose(&queue, 3), 5);
            if is_closed {
                assert!(!queue.take(&mut Batch::default()));
            }
        }
    }

    #[test]
    fn a_failing_output_reports_nothing_until_it_works_again() {
        let queue = queue();
        let lost = [LogKind::Error, LogKind::Access, LogKind::Error];
        assert_eq!(queue.written(&lost, true), 0);
        assert!(!queue.state.lock().has_work());
        assert_eq!(queue.written(&[], false), 3);
    }
}
