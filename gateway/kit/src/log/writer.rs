//! A log that never blocks the thread that logs.
//!
//! Each output has a bounded queue and a thread that writes. If a reader stalls or a disk hangs, only that thread waits.
//! If the queue is full or a write fails, lines are dropped and counted, and the count is logged as soon as lines can be
//! written again.
//!
//! | module | subject |
//! | --- | --- |
//! | `output` | an output: its queue and its thread |
//! | `sink` | standard output or a file: writes, torn lines, reopening |

mod output;
mod sink;

use std::{
    panic,
    sync::{Arc, PoisonError, RwLock, mpsc},
    thread,
    time::{Duration, Instant},
};

pub use self::output::MAX_QUEUED_BYTES;
use self::output::Output;
use crate::{config::shared_keys::Log, metrics::cells::Counters};

/// Timeout for writing the last lines of the process. A reader that takes nothing for that long is stalled.
pub const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

crate::label_enum! {
    /// The two logs: the label `log`.
    pub enum LogKind {
        /// Everything but access lines.
        Error = "error",
        /// Access lines.
        Access = "access",
    }
}

/// Counts dropped lines of both logs. Clones share the counters.
#[derive(Clone, Debug)]
pub struct DroppedLines(Arc<Counters>);

impl Default for DroppedLines {
    fn default() -> Self {
        Self(Arc::new(Counters::new(LogKind::ALL.len())))
    }
}

impl DroppedLines {
    /// The lines of this log that were dropped so far.
    #[must_use]
    pub fn value(&self, kind: LogKind) -> u64 {
        self.0.value(kind as usize)
    }

    fn add(&self, kind: LogKind, lines: u64) {
        self.0.add(kind as usize, lines);
    }
}

/// The outputs of the log. Clones share them.
#[derive(Clone, Debug)]
pub struct LogWriter(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    outputs: RwLock<Outputs>,
    dropped: DroppedLines,
}

/// The outputs of both logs. An output ends when nothing refers to it and its lines are written.
#[derive(Clone, Debug)]
pub(crate) struct Outputs {
    error: Arc<Output>,
    /// `None` if access lines go to `error`.
    access: Option<Arc<Output>>,
}

impl Outputs {
    /// Opens the configured outputs, except those that `current` has already. Blocks.
    fn open(log: &Log, current: Option<&Self>, dropped: &DroppedLines) -> anyhow::Result<Self> {
        let is_open = |output: &&Arc<Output>, destination| output.destination() == destination;
        let error = current.map(|current| &current.error);
        let error = match error.filter(|error| is_open(error, &log.output)) {
            Some(error) => Arc::clone(error),
            None => Output::open(&log.output, LogKind::Error, dropped)?,
        };
        let apart = log
            .access_output
            .as_ref()
            .filter(|path| **path != log.output);
        let access = apart.map(|destination| {
            let access = current.and_then(|current| current.access.as_ref());
            match access.filter(|access| is_open(access, destination)) {
                Some(access) => Ok(Arc::clone(access)),
                None => Output::open(destination, LogKind::Access, dropped),
            }
        });
        Ok(Self {
            error,
            access: access.transpose()?,
        })
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Output>> {
        [&self.error].into_iter().chain(&self.access)
    }
}

impl LogWriter {
    /// Opens the outputs, and starts a thread for each.
    ///
    /// # Errors
    ///
    /// A file cannot be opened, or the process cannot get another descriptor or thread. The error names key and path.
    pub fn open(log: &Log) -> anyhow::Result<Self> {
        let dropped = DroppedLines::default();
        let outputs = RwLock::new(Outputs::open(log, None, &dropped)?);
        Ok(Self(Arc::new(Shared { outputs, dropped })))
    }

    /// The outputs for another configuration; nothing changes yet. Blocks.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub(crate) fn prepare(&self, log: &Log) -> anyhow::Result<Outputs> {
        Outputs::open(log, Some(&self.outputs()), &self.0.dropped)
    }

    /// Uses other outputs, from the next line on. Waits for the lines of the old ones, for [`FLUSH_TIMEOUT`] at most; if
    /// one is stalled, its thread goes on when it can.
    pub(crate) fn replace(&self, outputs: Outputs) {
        let mut current = self
            .0
            .outputs
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *current, outputs);
        drop(current);
        let now = self.outputs();
        let is_kept = |one: &Arc<Output>| now.all().any(|kept| Arc::ptr_eq(kept, one));
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        for ended in old.all().filter(|one| !is_kept(one)) {
            ended.flush(deadline);
        }
    }

    /// Where lines of this log go.
    pub(crate) fn output(&self, kind: LogKind) -> Arc<Output> {
        let outputs = self
            .0
            .outputs
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let apart = outputs.access.as_ref().filter(|_| kind == LogKind::Access);
        Arc::clone(apart.unwrap_or(&outputs.error))
    }

    fn outputs(&self) -> Outputs {
        let outputs = self.0.outputs.read();
        outputs.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts access lines that were dropped before they reached the queue.
    pub fn count_dropped(&self, lines: u64) {
        self.0.dropped.add(LogKind::Access, lines);
        self.output(LogKind::Access).report_dropped(lines);
    }

    /// The counters of dropped lines.
    #[must_use]
    pub fn dropped_lines(&self) -> DroppedLines {
        self.0.dropped.clone()
    }

    /// Opens the files again: a line logged from now on is in the file that has the configured path then. Lines logged
    /// before go to the old file. Does not wait.
    pub fn reopen(&self) {
        for output in self.outputs().all() {
            output.reopen();
        }
    }

    /// Waits until all queued lines are written, for [`FLUSH_TIMEOUT`] at most.
    pub fn flush(&self) {
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        for output in self.outputs().all() {
            output.flush(deadline);
        }
    }
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
            "a thread panicked: {{panic}}"
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
