//! A log that never blocks the thread that logs.
//!
//! The output has a bounded queue and a thread that writes. If a reader stalls or a disk hangs, only that thread waits. If
//! the queue is full or a write fails, lines are dropped and counted, and the count is logged as soon as lines can be
//! written again.
//!
//! | module | subject |
//! | --- | --- |
//! | `output` | an output: its queue and its thread |
//! | `sink` | standard output or a file: writes, torn lines, reopening |

mod output;
mod sink;

use std::{
    fmt, panic,
    sync::{
        Arc,
        mpsc::{self, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::RwLock;

pub use self::output::MAX_QUEUED_BYTES;
pub(crate) use self::output::Output;
pub(super) use self::{
    output::{CANNOT_OPEN, USABLE},
    sink::check,
};
use crate::{
    config::shared_keys::Log,
    metrics::{Scrape, cells::LabelCounters},
};

/// Interval of attempts to queue a marker.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Timeout for writing the last lines of the process. A reader that takes nothing for that long is stalled.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

crate::label_enum! {
    /// The two kinds of lines: the label `log`.
    pub enum LogKind {
        /// Everything but access lines.
        Error = "error",
        /// Access lines.
        Access = "access",
    }
}

crate::families! {
    DROPPED = "signpost_log_lines_dropped_total", Counter, ["log"],
        "Log lines that were lost: the reader or disk was too slow or full. log is access for access lines, error \
         for all others.";
}

crate::counted_label!(LogKind);

/// The dropped lines of both kinds.
pub type DroppedLines = Arc<LabelCounters<LogKind>>;

/// Writes the family of the dropped lines.
///
/// # Errors
///
/// Only errors of `scrape`.
pub fn write_dropped(scrape: &mut Scrape<'_>, dropped: &DroppedLines) -> fmt::Result {
    scrape.label_counters(DROPPED, dropped)
}

/// The output of the log. Clones share it.
#[derive(Clone, Debug)]
pub struct LogWriter(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    output: RwLock<Arc<Output>>,
    dropped: DroppedLines,
}

impl LogWriter {
    /// Opens the output, and starts its thread.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or the process cannot get another descriptor or thread. The error names key and path.
    pub fn open(log: &Log) -> anyhow::Result<Self> {
        let dropped = DroppedLines::default();
        let output = RwLock::new(Output::open(&log.output, &dropped)?);
        Ok(Self(Arc::new(Shared { output, dropped })))
    }

    /// The output for another configuration; nothing changes yet. Blocks.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub(crate) fn prepare(&self, log: &Log) -> anyhow::Result<Arc<Output>> {
        let current = self.output();
        if *current.destination() == log.output {
            // The same file is not opened twice: two threads would write to it, and mix parts of lines.
            return Ok(current);
        }
        Output::open(&log.output, &self.0.dropped)
    }

    /// Uses another output, from the next line on. Waits for the lines of the old one, for half a second at most; if it is
    /// stalled, its thread goes on when it can.
    pub(crate) fn replace(&self, output: Arc<Output>) {
        let mut current = self.0.output.write();
        let old = std::mem::replace(&mut *current, output);
        let is_kept = Arc::ptr_eq(&old, &current);
        // Before the wait: other threads already log to the new output.
        drop(current);
        if !is_kept {
            // The thread of a reload has more to do.
            old.flush(Instant::now() + FLUSH_TIMEOUT / 4);
        }
    }

    /// Where lines go.
    pub(crate) fn output(&self) -> Arc<Output> {
        Arc::clone(&self.0.output.read())
    }

    /// The counters of dropped lines.
    #[must_use]
    pub fn dropped_lines(&self) -> DroppedLines {
        self.0.dropped.clone()
    }

    /// Opens the file again: a line logged from now on is in the file that has the configured path then. Lines logged
    /// before go to the old file. Does not wait.
    pub fn reopen(&self) {
        self.output().reopen();
    }

    /// Waits until all queued lines are written, for [`FLUSH_TIMEOUT`] at most.
    pub fn flush(&self) {
        self.output().flush(Instant::now() + FLUSH_TIMEOUT);
    }

    /// As [`Self::flush`], for a test that reads the lines: on a busy machine, the thread may need longer.
    #[cfg(test)]
    pub(crate) fn flush_patiently(&self) {
        self.output().flush(Instant::now() + 15 * FLUSH_TIMEOUT);
    }
}

/// Waits until a thread has handled what was queued before, for at most `timeout`; blocks meanwhile. `queue` queues its
/// argument as a marker, on which the thread sends when it reaches it, and returns `false` if the queue is full.
pub(crate) fn flush_queue(timeout: Duration, mut queue: impl FnMut(SyncSender<()>) -> bool) {
    let (marker, reached) = sync_channel(1);
    let deadline = Instant::now() + timeout;
    while !queue(marker.clone()) {
        if Instant::now() > deadline {
            return;
        }
        thread::sleep(RETRY_INTERVAL);
    }
    // If the thread has ended, nothing holds the marker.
    drop(marker);
    let _ = reached.recv_timeout(deadline.saturating_duration_since(Instant::now()));
}

/// Sends panics to the log: std's own hook writes to standard error, and blocks if that does.
pub fn log_panics() {
    panic::set_hook(Box::new(|panicked| {
        let panic = panicked
            .payload_as_str()
            .unwrap_or("a value that is not a string");
        let place = panicked.location().map(ToString::to_string);
        let backtrace = std::backtrace::Backtrace::capture();
        let is_captured = backtrace.status() == std::backtrace::BacktraceStatus::Captured;
        let backtrace = is_captured.then(|| tracing::field::display(&backtrace));
        let thread = thread::current();
        tracing::error!(
            thread = thread.name(),
            place,
            backtrace,
            panic,
            "a thread panicked"
        );
    }));
}

/// Writes the last message of a process to standard error, waiting for [`FLUSH_TIMEOUT`] at most.
#[expect(
    clippy::print_stderr,
    reason = "there may be no log yet, and standard error is what a failed start shows"
)]
pub fn write_final_line(message: String) {
    let (sender, written) = mpsc::channel();
    let started = thread::Builder::new().spawn(move || {
        eprintln!("{message}");
        // The receiver may have timed out.
        let _ = sender.send(());
    });
    if started.is_ok() {
        // On timeout the reader of standard error is stalled.
        let _ = written.recv_timeout(FLUSH_TIMEOUT);
    }
}

#[cfg(test)]
mod tests;
