//! The connection pool of one SQLite file, and the limits on calls.
//!
//! A call may be dropped at any moment, while its blocking thread continues. So the permit belongs to the work: it is released
//! when its connection is back in the pool, not when the caller leaves.

use std::{
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use url::Url;

use super::{
    log_mark::{NextCheckpoint, log_of},
    queue::Queue,
};
use crate::{
    StoreError,
    statistics::{PoolStatistics, Statistics},
};

/// Limit on connections, each with a blocking thread while it is in use; one of them is the writer's. In WAL mode readers do not
/// wait for each other; writers always do.
pub(super) const CONNECTIONS: usize = 4;

#[derive(Debug)]
pub(super) struct Pool {
    pub(super) path: PathBuf,
    /// Timeout for all waits of a call together.
    timeout: Duration,
    connect: Connect,
    idle: Mutex<Vec<Pooled>>,
    /// Of the readers.
    permits: Arc<Semaphore>,
    pub(super) queue: Queue,
    /// Each waiting reader has a clone.
    waiting: Arc<()>,
    pub(super) statistics: Statistics,
    pub(super) next_checkpoint: NextCheckpoint,
}

impl Pool {
    pub(super) fn new(path: PathBuf, timeout: Duration, first: Pooled) -> Self {
        Self {
            path,
            timeout,
            connect: first.connect,
            idle: Mutex::new(vec![first]),
            permits: Arc::new(Semaphore::new(CONNECTIONS - 1)),
            queue: Queue::default(),
            waiting: Arc::default(),
            statistics: Statistics::default(),
            next_checkpoint: NextCheckpoint::default(),
        }
    }

    /// Runs `work` on a blocking thread. If the caller is dropped before it begins, `work` is not run.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.counted(|deadline| self.read_until(deadline, work))
            .await
    }

    /// Runs `work` in a transaction on the writer's thread, which other writes may share.
    pub(super) async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.counted(|deadline| self.write_until(deadline, work))
            .await
    }

    async fn counted<T, C: Future<Output = Result<T, StoreError>>>(
        &self,
        call: impl FnOnce(Instant) -> C,
    ) -> Result<T, StoreError> {
        let begun_at = Instant::now();
        let outcome = call(begun_at + self.timeout).await;
        self.statistics
            .count_call(begun_at.elapsed(), outcome.is_ok());
        outcome
    }

    async fn read_until<T: Send + 'static>(
        self: &Arc<Self>,
        deadline: Instant,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let waiting = Arc::clone(&self.waiting);
        let permit = acquire(&self.permits, deadline).await?;
        drop(waiting);
        let (sender, outcome) = oneshot::channel();
        let pool = Arc::clone(self);
        // No await between the permit and here: if the caller is dropped, the permit stays with the work.
        tokio::task::spawn_blocking(move || {
            // The blocking threads may all be busy: time has passed since the permit.
            let outcome = if sender.is_closed() {
                Err(StoreError::Interrupted)
            } else if Instant::now() >= deadline {
                Err(StoreError::Busy)
            } else {
                pool.with_connection(deadline, work)
            };
            // Before the outcome: the caller's next call must find it free.
            drop(permit);
            // Fails if the caller was dropped.
            let _ = sender.send(outcome);
        });
        // If `work` panics, the sender is dropped without an outcome.
        outcome.await.map_err(|_| StoreError::Interrupted)?
    }

    /// Runs `work` on this thread, without a permit.
    #[cfg(test)]
    pub(super) fn run_blocking<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with_connection(Instant::now() + self.timeout, work)
    }

    /// Runs `work`; SQLite's own wait for a lock ends at the deadline.
    pub(super) fn with_connection<T>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut pooled = self.take(deadline)?;
        let left = deadline.saturating_duration_since(Instant::now());
        pooled.connection.busy_timeout(left)?;
        let outcome = work(&mut pooled.connection);
        self.put_back(pooled);
        outcome
    }

    /// Takes or opens a connection to the file that is at the path now. A connection to a file that was moved or
    /// replaced from a backup would lose every write silently.
    fn take(&self, deadline: Instant) -> rusqlite::Result<Pooled> {
        let now = FileIdentity::read(&self.path).map_err(|_| missing_file())?;
        let mut idle = self.idle();
        // Closed here, not when they are put back: idle ones would keep a deleted file's space.
        idle.retain(|pooled| pooled.file == now);
        let pooled = idle.pop();
        drop(idle);
        let connect = || {
            let left = deadline.saturating_duration_since(Instant::now());
            Pooled::connect(&self.path, left, self.connect)
        };
        pooled.map_or_else(connect, Ok)
    }

    /// Returns the connection to the pool. Closes it if the pool is full, or if its transaction could not be ended.
    fn put_back(&self, pooled: Pooled) {
        let mut idle = self.idle();
        let surplus = if idle.len() < CONNECTIONS && pooled.connection.is_autocommit() {
            idle.push(pooled);
            None
        } else {
            Some(pooled)
        };
        // Not under the lock: closing may write a checkpoint.
        drop(idle);
        drop(surplus);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Pooled>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_use(&self) -> usize {
        let reading = (CONNECTIONS - 1).saturating_sub(self.permits.available_permits());
        reading + usize::from(self.queue.has_leader())
    }

    /// The connections at this moment.
    pub(super) fn connections(&self) -> PoolStatistics {
        PoolStatistics {
            idle: self.idle().len(),
            in_use: self.in_use(),
            waiting: Arc::strong_count(&self.waiting) - 1 + self.queue.len(),
        }
    }

    #[cfg(test)]
    pub(super) fn idle_connections(&self) -> usize {
        self.idle().len()
    }

    #[cfg(test)]
    pub(super) fn is_at_rest(&self) -> bool {
        self.in_use() == 0
    }
}

async fn acquire(
    semaphore: &Arc<Semaphore>,
    deadline: Instant,
) -> Result<OwnedSemaphorePermit, StoreError> {
    let acquired = Arc::clone(semaphore).acquire_owned();
    let permit = tokio::time::timeout_at(deadline.into(), acquired).await;
    Ok(permit
        .map_err(|_| StoreError::Busy)?
        .expect("the semaphore is never closed: nothing calls close"))
}

/// A connection and the file that it has open.
#[derive(Debug)]
pub(crate) struct Pooled {
    pub(crate) connection: Connection,
    file: FileIdentity,
    connect: Connect,
}

impl Pooled {
    pub(super) fn connect(
        path: &Path,
        busy_timeout: Duration,
        connect: Connect,
    ) -> rusqlite::Result<Self> {
        // Before it is opened: if the file is replaced in between, the connection counts as outdated, not as current.
        let file = FileIdentity::read(path).map_err(|_| missing_file())?;
        Ok(Self {
            connection: connect(path, busy_timeout)?,
            file,
            connect,
        })
    }

    /// Whether it has the file open that is at this path now.
    pub(super) fn is_current(&self, path: &Path) -> bool {
        FileIdentity::read(path).is_ok_and(|now| now == self.file)
    }
}

/// Identifies the file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    fn read(path: &Path) -> io::Result<Self> {
        let file = std::fs::metadata(path)?;
        Ok(Self {
            device: file.dev(),
            inode: file.ino(),
        })
    }
}

pub(super) fn missing_file() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    rusqlite::Error::SqliteFailure(code, Some("the database file is missing".to_owned()))
}

/// Opens a connection, with this timeout of its wait for locks.
pub(super) type Connect = fn(&Path, Duration) -> rusqlite::Result<Connection>;

/// Opens a file read-only. If no other process has it open, SQLite would create two files beside it, which the file's
/// owner might be unable to open later. Then the file is opened as immutable.
pub(super) fn connect_read_only(
    path: &Path,
    busy_timeout: Duration,
) -> rusqlite::Result<Connection> {
    let connection = open_to_read(path, !log_of(path).exists())?;
    connection.busy_timeout(busy_timeout)?;
    Ok(connection)
}

/// Opens a file read-only; as immutable without its log, and without a lock.
pub(super) fn open_to_read(path: &Path, as_immutable: bool) -> rusqlite::Result<Connection> {
    let address = std::path::absolute(path).ok();
    let address = address.and_then(|path| Url::from_file_path(path).ok());
    let mut address = address.ok_or_else(missing_file)?;
    if as_immutable {
        address.set_query(Some("immutable=1"));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(address.as_str(), flags)
}

pub(super) fn connect(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    // Without the flag to create the file: `open` has created it. A file that is missing later must not reappear empty.
    // NO_MUTEX: one thread at a time uses a connection.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    // In WAL mode, NORMAL can lose committed writes when the machine crashes; FULL does not. `log_mark` makes checkpoints,
    // and needs the log's size.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
         PRAGMA cache_size = -1024; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 0;",
    )?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}
