//! A log that never blocks the thread that logs.
//!
//! Lines go into a bounded queue; one thread writes them. If the reader of the log stalls, only that thread waits. If
//! the queue is full, lines are dropped and counted, and the count is logged as soon as there is room again.
//!
//! The thread writes to a duplicate of the descriptor. std's own handle has a lock: a blocked write would hold it, and
//! block panics and the end of the process.

use std::{
    cell::Cell,
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    panic,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, poll};
use tracing_subscriber::fmt::MakeWriter;

/// Limit on queued bytes; the batch being written may have the same size. Some 2,000 access lines: what a busy gateway
/// logs while its reader pauses for 0.1 s. A reader that stalls for good costs 1 MiB.
pub const MAX_QUEUED_BYTES: usize = 512 * 1024;

/// Timeout for writing the last lines of the process. A reader that takes nothing for that long is stalled.
pub const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Memory that an empty buffer keeps allocated.
const RETAINED_BYTES: usize = 64 * 1024;

thread_local! {
    /// Whether this thread's lines are exempt from the limit. The writer's own line reports the dropped ones; there is
    /// at most one at a time.
    static IS_WRITER: Cell<bool> = const { Cell::new(false) };
}

/// A queue of log lines and the thread that writes them. Clones share both.
#[derive(Clone, Debug)]
pub struct LogWriter(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    /// Wakes the writer thread.
    work: Condvar,
    /// Wakes callers that wait for a flush.
    flushed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whole lines.
    lines: Vec<u8>,
    dropped: u64,
    /// Whether the writer waits for `work`. If it does not, it need not be woken, which saves a system call per line.
    is_idle: bool,
}

impl LogWriter {
    /// Starts a thread that writes to standard output.
    ///
    /// # Errors
    ///
    /// The process cannot get another descriptor or thread.
    pub fn to_stdout() -> io::Result<Self> {
        Self::start(io::stdout().as_fd().try_clone_to_owned()?)
    }

    fn start(descriptor: OwnedFd) -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let of_writer = Arc::clone(&queue);
        thread::Builder::new()
            .name("log-writer".to_owned())
            .spawn(move || write_all_lines(&of_writer, File::from(descriptor)))?;
        Ok(Self(queue))
    }

    /// Counts lines that were dropped before they reached the queue.
    pub fn count_dropped(&self, lines: u64) {
        let mut state = self.0.state();
        state.dropped += lines;
        self.0.wake(&state);
    }

    /// Waits until all queued lines are written, for [`FLUSH_TIMEOUT`] at most.
    pub fn flush(&self) {
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        let mut state = self.0.state();
        while !state.is_flushed() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.0.flushed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut state = self.state();
        if state.lines.len() + line.len() > MAX_QUEUED_BYTES && !IS_WRITER.get() {
            state.dropped += 1;
        } else {
            state.lines.extend_from_slice(line);
        }
        self.wake(&state);
    }

    fn wake(&self, state: &State) {
        if state.is_idle {
            self.work.notify_one();
        }
    }

    /// Waits for lines or for dropped ones to report, and swaps the lines for the empty `batch`.
    fn take(&self, batch: &mut Vec<u8>) {
        let mut state = self.state();
        while state.lines.is_empty() && state.dropped == 0 {
            state.is_idle = true;
            self.flushed.notify_all();
            state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.is_idle = false;
        std::mem::swap(&mut state.lines, batch);
    }

    fn take_dropped(&self) -> u64 {
        std::mem::take(&mut self.state().dropped)
    }
}

impl State {
    fn is_flushed(&self) -> bool {
        self.is_idle && self.lines.is_empty() && self.dropped == 0
    }
}

/// The writer thread. It ends with the process.
fn write_all_lines(queue: &Queue, mut output: File) {
    IS_WRITER.set(true);
    let mut batch = Vec::new();
    loop {
        queue.take(&mut batch);
        write_batch(&mut output, &batch);
        batch.clear();
        batch.shrink_to(RETAINED_BYTES);
        // After the write, which made room for this line.
        let dropped = queue.take_dropped();
        if dropped > 0 {
            tracing::warn!(
                dropped_lines = dropped,
                "{dropped} log lines were dropped: the reader of the log is too slow, or stalled"
            );
        }
    }
}

/// Writes a batch, and waits for a stalled reader. If the write fails, the batch is lost: it cannot go elsewhere.
fn write_batch(output: &mut File, mut batch: &[u8]) {
    while !batch.is_empty() {
        match output.write(batch) {
            Ok(0) => return,
            Ok(written) => batch = &batch[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Another process that shares the descriptor may have made it non-blocking.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let _ = poll(&mut [PollFd::new(output, PollFlags::OUT)], None);
            }
            Err(_) => return,
        }
    }
}

impl<'w> MakeWriter<'w> for LogWriter {
    type Writer = Line<'w>;

    fn make_writer(&'w self) -> Line<'w> {
        Line(&self.0)
    }
}

/// Writes a line to the queue. `tracing-subscriber` writes each in one piece.
#[derive(Debug)]
pub struct Line<'w>(&'w Queue);

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends panics to the log: std's own hook writes to standard error, and blocks if that does.
pub fn log_panics() {
    panic::set_hook(Box::new(|panicked| {
        let message = panicked
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
            "a thread panicked: {message}"
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
mod tests {
    use std::io::{PipeReader, Read};

    use super::*;

    fn writer() -> (LogWriter, PipeReader) {
        let (reader, output) = io::pipe().unwrap();
        (LogWriter::start(output.into()).unwrap(), reader)
    }

    /// Reads until `end` was read; more may follow it.
    fn read_until(reader: &mut PipeReader, end: &str) -> String {
        let (mut read, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
        while !String::from_utf8_lossy(&read).contains(end) {
            let length = reader.read(&mut piece).unwrap();
            read.extend_from_slice(&piece[..length]);
        }
        String::from_utf8(read).unwrap()
    }

    #[test]
    fn lines_are_written_in_order() {
        let (writer, mut reader) = writer();
        for number in 0..100 {
            writeln!(writer.make_writer(), "line {number}").unwrap();
        }
        writer.flush();
        let read = read_until(&mut reader, "line 99\n");
        let expected: String = (0..100).map(|number| format!("line {number}\n")).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn a_stalled_reader_blocks_no_thread_and_dropped_lines_are_counted() {
        let (writer, mut reader) = writer();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(writer.clone());
        // Set globally, since the writer thread logs, too.
        tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
        let line = "x".repeat(1023);
        for _ in 0..4 * MAX_QUEUED_BYTES / 1024 {
            let mut output = writer.make_writer();
            output.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
        let before = Instant::now();
        writer.flush();
        assert!(before.elapsed() < 4 * FLUSH_TIMEOUT);
        let read = read_until(&mut reader, "log lines were dropped");
        let kept = read.lines().filter(|read| *read == line).count();
        let dropped: usize = read
            .split_whitespace()
            .zip(read.split_whitespace().skip(1))
            .find_map(|(count, word)| (word == "log").then(|| count.parse().ok())?)
            .unwrap();
        // Other tests may log meanwhile.
        assert!(
            kept + dropped >= 4 * MAX_QUEUED_BYTES / 1024,
            "{kept} + {dropped}"
        );
        assert!(dropped >= MAX_QUEUED_BYTES / 1024, "{dropped}");
    }

    #[test]
    fn a_closed_reader_blocks_no_thread() {
        let (writer, reader) = writer();
        drop(reader);
        writeln!(writer.make_writer(), "lost").unwrap();
        writer.flush();
        assert!(writer.0.state().is_flushed());
    }
}
