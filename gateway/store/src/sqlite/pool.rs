//! The connections to one SQLite file, and the limits on calls that use them.
//!
//! A call may be dropped at any moment, while the thread that works for it goes on. So the permit, and a writer's turn,
//! belong to the work: they are released when its connection is back in the pool, whatever its caller does.

use std::{
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::StoreError;

/// Calls that run at once, each with a connection and a blocking thread; also the maximum of idle connections. Readers
/// do not wait for each other in WAL mode, writers do anyway.
pub(super) const CONNECTIONS: usize = 4;

#[derive(Debug)]
pub(super) struct Pool {
    path: PathBuf,
    /// For all waits of one call.
    timeout: Duration,
    idle: Mutex<Vec<Pooled>>,
    permits: Arc<Semaphore>,
    /// One writer of this process at a time, in order of arrival. SQLite has no queue: a writer that finds the
    /// lock taken tries again after a while, and of many some would never be in time.
    writer: Arc<Semaphore>,
}

/// What a call does with the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// Only one at a time.
    Write,
}

impl Pool {
    pub(super) fn new(path: PathBuf, timeout: Duration, first: Pooled) -> Self {
        Self {
            path,
            timeout,
            idle: Mutex::new(vec![first]),
            permits: Arc::new(Semaphore::new(CONNECTIONS)),
            writer: Arc::new(Semaphore::new(1)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` on a blocking thread. If the caller leaves before that thread has begun, `work` is not run.
    pub(super) async fn run<T, F>(
        self: &Arc<Self>,
        access: Access,
        work: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let deadline = Instant::now() + self.timeout;
        let turn = match access {
            Access::Write => Some(acquire(&self.writer, deadline).await?),
            Access::Read => None,
        };
        let permit = acquire(&self.permits, deadline).await?;
        let (answer, receiver) = oneshot::channel();
        let pool = Arc::clone(self);
        // No await between the permit and here: whatever happens to the caller, the permit goes with the work.
        tokio::task::spawn_blocking(move || {
            let outcome = if answer.is_closed() {
                Err(StoreError::Interrupted)
            } else if Instant::now() >= deadline {
                Err(StoreError::Busy)
            } else {
                pool.with_connection(deadline, work).map_err(Into::into)
            };
            drop((permit, turn));
            // Fails if the caller has left.
            let _ = answer.send(outcome);
        });
        receiver.await.map_err(|_| StoreError::Interrupted)?
    }

    /// Runs `work` on this thread, without a permit.
    pub(super) fn run_now<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.with_connection(Instant::now() + self.timeout, work)
    }

    /// SQLite's own wait for a lock ends at the deadline.
    fn with_connection<T>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let mut pooled = self.take(deadline)?;
        let left = deadline.saturating_duration_since(Instant::now());
        pooled.connection.busy_timeout(left)?;
        let outcome = work(&mut pooled.connection);
        self.put_back(pooled);
        outcome
    }

    /// A connection that has the file open which is there now: a file that was moved away, or replaced from a backup,
    /// would take every write in silence.
    fn take(&self, deadline: Instant) -> rusqlite::Result<Pooled> {
        let now = FileIdentity::of(&self.path).map_err(|_| file_is_gone())?;
        let mut idle = self.idle();
        idle.retain(|pooled| pooled.file == now);
        let pooled = idle.pop();
        drop(idle);
        let connect = || {
            let left = deadline.saturating_duration_since(Instant::now());
            Pooled::connect(&self.path, left)
        };
        pooled.map_or_else(connect, Ok)
    }

    /// Closes the connection instead if there are enough, or if a transaction could not be ended.
    fn put_back(&self, pooled: Pooled) {
        let mut idle = self.idle();
        let surplus = if idle.len() < CONNECTIONS && pooled.connection.is_autocommit() {
            idle.push(pooled);
            None
        } else {
            Some(pooled)
        };
        // Closing may write a checkpoint: not under the lock.
        drop(idle);
        drop(surplus);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Pooled>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn idle_connections(&self) -> usize {
        self.idle().len()
    }

    #[cfg(test)]
    pub(super) fn is_writing(&self) -> bool {
        self.writer.available_permits() == 0
    }

    #[cfg(test)]
    pub(super) fn is_at_rest(&self) -> bool {
        !self.is_writing() && self.permits.available_permits() == CONNECTIONS
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

/// A connection, and the file that it has open.
#[derive(Debug)]
pub(crate) struct Pooled {
    pub(crate) connection: Connection,
    file: FileIdentity,
}

impl Pooled {
    pub(super) fn connect(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Self> {
        let file = FileIdentity::of(path).map_err(|_| file_is_gone())?;
        let connection = connect(path, busy_timeout)?;
        Ok(Self { connection, file })
    }

    /// Whether it has the file open that stands at this path now.
    pub(super) fn is_current(&self, path: &Path) -> bool {
        FileIdentity::of(path).is_ok_and(|now| now == self.file)
    }
}

/// Which file stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    fn of(path: &Path) -> io::Result<Self> {
        let file = std::fs::metadata(path)?;
        Ok(Self {
            device: file.dev(),
            inode: file.ino(),
        })
    }
}

fn file_is_gone() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    rusqlite::Error::SqliteFailure(code, Some("the database's file is gone".to_owned()))
}

fn connect(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    // Never created here: `open` has made the file, and one that is missing later must not come back empty.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    // With WAL, NORMAL loses no committed write when a process dies, only when the machine does;
    // FULL is what a store of accounts wants.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
         PRAGMA cache_size = -1024;",
    )?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}
