//! A mark in the main file's header by which a copy without its write-ahead log is recognized.
//!
//! The main file lacks what is only in the log (`-wal`). So the header of the main file says [`NEEDS_LOG`], and the log
//! begins with a later version of the header, which says [`COMPLETE`]: a copy of the main file alone has the mark, but
//! neither a database with its log nor one whose last connection was closed, since that writes the whole log into it. A
//! gateway that stops closes none: its log stays. Each checkpoint ends with a write; `SQLite` makes none by itself.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rusqlite::Connection;

/// Values of `user_version`, which nothing else uses.
const COMPLETE: i64 = 0;
const NEEDS_LOG: i64 = 1;

/// Size of the log from which a checkpoint is due: `SQLite`'s own default, 1,000 pages.
const CHECKPOINT_BYTES: u64 = 4 << 20;

/// The size from which the log of a database is due for its next checkpoint.
#[derive(Debug)]
pub(super) struct NextCheckpoint(AtomicU64);

impl Default for NextCheckpoint {
    fn default() -> Self {
        Self(AtomicU64::new(CHECKPOINT_BYTES))
    }
}

impl NextCheckpoint {
    /// Makes a checkpoint if the log has become long. Readers can keep it from being emptied: then the next one is due when
    /// the log has grown again.
    pub(super) fn make_if_due(&self, connection: &Connection, path: &Path) {
        if log_bytes(path) >= self.0.load(Ordering::Relaxed) {
            // What was written is safe without it.
            if let Err(cause) = checkpoint(connection) {
                tracing::warn!(%cause, "no checkpoint of the database: tried again later");
            }
            let next = log_bytes(path) + CHECKPOINT_BYTES;
            self.0.store(next, Ordering::Relaxed);
        }
    }
}

/// The path of the write-ahead log.
pub(super) fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// The path with a suffix.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Size of the log; 0 without one.
pub(super) fn log_bytes(path: &Path) -> u64 {
    fs::metadata(log_of(path)).map_or(0, |log| log.len())
}

/// Whether the database has the mark: without a log, it is an incomplete copy.
pub(super) fn needs_log(connection: &Connection) -> rusqlite::Result<bool> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(version == NEEDS_LOG)
}

/// Removes the mark from the latest version of the header.
pub(super) fn mark_complete(connection: &Connection) -> rusqlite::Result<()> {
    set(connection, COMPLETE)
}

/// Writes the log into the main file, as far as no reader needs it, and leaves the mark there.
pub(super) fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    set(connection, NEEDS_LOG)?;
    // PASSIVE waits for no reader, so that the writer's turn stays short.
    let written = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    // Also after a failure: the log itself is complete.
    set(connection, COMPLETE)?;
    written
}

fn set(connection: &Connection, version: i64) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("PRAGMA user_version = {version}"))
}
