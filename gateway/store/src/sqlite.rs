//! Opening and migrating a SQLite file, and calling it from async code without blocking a worker.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rusqlite::{Connection, Transaction, TransactionBehavior};

pub(crate) use self::pool::Pooled;
use self::pool::{Access, Pool};
use crate::{OpenError, StoreError};

pub mod changes;
mod pool;

mod embedded {
    refinery::embed_migrations!("migrations/sqlite");
}

/// An open SQLite file, migrated. Cheap to clone; every clone is the same database.
#[derive(Clone, Debug)]
pub struct SqliteDatabase {
    pool: Arc<Pool>,
}

impl SqliteDatabase {
    /// The deadline of a call, 5 s from its beginning, for all that it waits for: a writer's turn, a free connection,
    /// and the write lock that another process may hold. Work that has all of these is not cut off: what it takes then
    /// is up to the disk.
    ///
    /// Longer than the longest write of another process, shorter than the timeout of a client that waits for its answer.
    pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);

    /// Opens the file, making it and its folder where they are missing, and applies the migrations.
    ///
    /// Safe to do from several processes at once: one migrates, the others wait for it.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, the file cannot be opened or is no database, or a migration fails.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_with_timeout(path, Self::CALL_TIMEOUT)
    }

    fn open_with_timeout(path: &Path, timeout: Duration) -> Result<Self, OpenError> {
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
        let mut pooled = Pooled::connect(&path, timeout).map_err(|cause| OpenError::File {
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
        Ok(Self {
            pool: Arc::new(Pool::new(path, timeout, pooled)),
        })
    }

    /// Runs `work` with a connection, on a thread that may block.
    ///
    /// If the future is dropped before `work` has begun, `work` is not run; afterwards it runs to its end. Either way
    /// its thread and connection count as in use until they are free.
    ///
    /// # Errors
    ///
    /// The database answers with an error, or is too busy up to [`Self::CALL_TIMEOUT`].
    pub async fn call<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.pool.run(Access::Read, work).await
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
        self.pool.run_now(work)
    }

    /// Runs `work` in one transaction that holds the write lock from its start and commits when
    /// `work` succeeds.
    ///
    /// `work` begins after all waits, when the write lock is granted (`BEGIN IMMEDIATE`): a clock read inside `work`
    /// tells the time at which the transaction happens, up to the commit itself. A clock read before the call can be
    /// [`Self::CALL_TIMEOUT`] earlier.
    ///
    /// # Errors
    ///
    /// As [`Self::call`]; then nothing of `work` has happened.
    pub async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let transact = |connection: &mut Connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let outcome = work(&transaction)?;
            transaction.commit()?;
            Ok(outcome)
        };
        self.pool.run(Access::Write, transact).await
    }

    /// A connection of the caller's own, outside the pool.
    ///
    /// # Errors
    ///
    /// The file cannot be opened any more.
    pub(crate) fn dedicated_connection(&self) -> rusqlite::Result<Pooled> {
        Pooled::connect(self.pool.path(), Self::CALL_TIMEOUT)
    }

    /// Whether a connection has the file open that stands at the database's path now.
    pub(crate) fn is_current(&self, pooled: &Pooled) -> bool {
        pooled.is_current(self.pool.path())
    }
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
