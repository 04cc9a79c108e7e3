//! Opening and migrating a SQLite file, and calling it from async code without blocking a worker.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{OpenError, StoreError};

/// As many calls run at once; readers do not wait for each other in WAL mode, writers do anyway.
const CONNECTIONS: usize = 4;
/// How long one process waits for another's write lock, and a call for a free connection.
const PATIENCE: Duration = Duration::from_secs(5);

pub mod changes;

mod embedded {
    refinery::embed_migrations!("migrations/sqlite");
}

/// An open SQLite file, migrated. Cheap to clone; every clone is the same database.
#[derive(Clone, Debug)]
pub struct SqliteDatabase {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    idle: Mutex<Vec<Pooled>>,
    permits: Semaphore,
    /// One writer of this process at a time, in order of arrival. SQLite has no queue: whoever finds the
    /// lock taken tries again after a while, and of many some would never be in time.
    writer: Semaphore,
}

impl SqliteDatabase {
    /// Opens the file, making it and its folder where they are missing, and applies the migrations.
    ///
    /// Safe to do from several processes at once: one migrates, the others wait for it.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, the file cannot be opened or is no database, or a migration fails.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let path = path.to_owned();
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(|cause| OpenError::Folder {
                    path: folder.to_owned(),
                    cause,
                })?;
        }
        // Of several processes that start at once, one switches the new file to WAL and migrates it.
        let _lock = lock_beside(&path)?;
        make_unless_there(&path).map_err(|cause| OpenError::Folder {
            path: path.clone(),
            cause,
        })?;
        let mut pooled = Pooled::connect(&path).map_err(|cause| OpenError::File {
            path: path.clone(),
            cause,
        })?;
        embedded::migrations::runner()
            .set_grouped(true)
            .run(&mut pooled.connection)
            .map_err(|cause| OpenError::Migration {
                database: path.display().to_string(),
                cause,
            })?;
        let shared = Shared {
            path,
            idle: Mutex::new(vec![pooled]),
            permits: Semaphore::new(CONNECTIONS),
            writer: Semaphore::new(1),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Runs `work` with a connection, on a thread that may block.
    ///
    /// # Errors
    ///
    /// The database answers with an error, or is too busy for five seconds.
    pub async fn call<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let _permit = in_time(&self.shared.permits).await?;
        let shared = Arc::clone(&self.shared);
        let run = move || Ok(shared.with_connection(work)?);
        tokio::task::spawn_blocking(run)
            .await
            .map_err(|_| StoreError::Interrupted)?
    }

    /// Runs `work` right here, for the start of a program: blocks.
    ///
    /// # Errors
    ///
    /// The database's own.
    pub fn call_now<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.shared.with_connection(work)
    }

    /// Runs `work` in one transaction that holds the write lock from its start and commits when
    /// `work` succeeds.
    ///
    /// # Errors
    ///
    /// As [`Self::call`]; then nothing of `work` has happened.
    pub async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let _turn = in_time(&self.shared.writer).await?;
        self.call(move |connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let outcome = work(&transaction)?;
            transaction.commit()?;
            Ok(outcome)
        })
        .await
    }

    /// A connection of the caller's own, outside the pool.
    ///
    /// # Errors
    ///
    /// The file cannot be opened any more.
    pub(crate) fn dedicated_connection(&self) -> rusqlite::Result<Pooled> {
        Pooled::connect(&self.shared.path)
    }

    /// Whether a connection has the file open that stands at the database's path now.
    pub(crate) fn is_current(&self, pooled: &Pooled) -> bool {
        FileIdentity::of(&self.shared.path).is_ok_and(|now| now == pooled.file)
    }
}

async fn in_time(turns: &Semaphore) -> Result<SemaphorePermit<'_>, StoreError> {
    let turn = tokio::time::timeout(PATIENCE, turns.acquire()).await;
    Ok(turn
        .map_err(|_| StoreError::Busy)?
        .expect("the semaphore is never closed: nothing calls close"))
}

impl Shared {
    fn with_connection<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let mut pooled = self.take()?;
        let outcome = work(&mut pooled.connection);
        self.idle().push(pooled);
        outcome
    }

    /// One that has the file open which is there now: a file that was moved away, or replaced from a backup,
    /// would take every write in silence.
    fn take(&self) -> rusqlite::Result<Pooled> {
        let now = FileIdentity::of(&self.path).map_err(|_| away())?;
        let mut idle = self.idle();
        idle.retain(|pooled| pooled.file == now);
        let pooled = idle.pop();
        drop(idle);
        pooled.map_or_else(|| Pooled::connect(&self.path), Ok)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Pooled>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection, and the file that it has open.
#[derive(Debug)]
pub(crate) struct Pooled {
    pub(crate) connection: Connection,
    file: FileIdentity,
}

impl Pooled {
    fn connect(path: &Path) -> rusqlite::Result<Self> {
        let file = FileIdentity::of(path).map_err(|_| away())?;
        let connection = connect(path)?;
        Ok(Self { connection, file })
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

fn away() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    rusqlite::Error::SqliteFailure(code, Some("the database's file is gone".to_owned()))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // Never created here: `open` has made the file, and one that is missing later must not come back empty.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    // With WAL, NORMAL loses no committed write when a process dies, only when the machine does;
    // FULL is what a store of accounts wants.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
         PRAGMA cache_size = -1024;",
    )?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// For files that only their owner reads: accounts are personal. SQLite gives its other files the same mode.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Makes the file, and never opens one that is there: closing it again would drop the locks that SQLite
/// holds on it anywhere else in the process.
fn make_unless_there(path: &Path) -> io::Result<()> {
    match private().create_new(true).open(path) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => Err(cause),
        _ => Ok(()),
    }
}

/// Takes a lock that other processes wait for, on a file of its own: SQLite drops the locks it holds on
/// the database when anybody else in the process closes that file. Released when the file is dropped.
fn lock_beside(path: &Path) -> Result<File, OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let path = PathBuf::from(name);
    let lock = || {
        let file = private().create(true).truncate(false).open(&path)?;
        file.lock()?;
        Ok(file)
    };
    lock().map_err(|cause| OpenError::Folder { path, cause })
}

#[cfg(test)]
pub(crate) mod tests;
