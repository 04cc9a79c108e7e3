//! Opening and migrating a SQLite file, and calling it from async code without blocking a worker.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::Path,
    sync::Arc,
    time::Duration,
};

use rusqlite::Connection;
use rustix::{fs::StatVfs, io::Errno, process::geteuid};

pub(crate) use self::pool::Pooled;
use self::pool::{Connect, Pool};
use crate::{
    OpenError, StoreError,
    schema::{SIGNPOST, Schema},
    statistics::{Statistics, StoreStatistics},
};

pub mod backup;
pub mod changes;
mod log_mark;
mod migrate;
mod pool;
mod queue;
mod statements;
mod writer;

/// An open, migrated SQLite file. Clones are cheap and share it.
#[derive(Clone, Debug)]
pub struct SqliteDatabase {
    pool: Arc<Pool>,
}

impl SqliteDatabase {
    /// Timeout of a call: 5 s in total for all that it waits for. These are the writer's turn, a connection, and the
    /// write lock that another process may hold. Work that has begun is not interrupted.
    ///
    /// Longer than the longest write of another process, shorter than the timeout of a client that waits for a
    /// response.
    pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);

    /// Limit on concurrent calls.
    pub(crate) const MAX_CALLS: usize = pool::CONNECTIONS;

    /// Opens the file and applies the migrations. Creates file and folder if they are missing.
    ///
    /// Several processes may open it at once: one migrates, the others wait.
    ///
    /// # Errors
    ///
    /// The folder cannot be created, the file cannot be opened or is not a database, or a migration fails.
    pub fn open(path: &Path, program: &str) -> Result<Self, OpenError> {
        Self::open_with(path, Self::CALL_TIMEOUT, program)
    }

    /// Applies the missing migrations of a version's tables.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub(crate) fn migrate(&self, schema: &Schema<'_>, program: &str) -> Result<(), OpenError> {
        let path = &self.pool.path;
        let _lock = take_startup_lock(path)?;
        let mut pooled = open_file(path, Self::CALL_TIMEOUT, pool::connect)?;
        migrate_file(path, &mut pooled, schema, program)
    }

    /// Opens an existing file to read it; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub(crate) fn open_read_only(path: &Path) -> Result<Option<Self>, OpenError> {
        refuse_if_lost(path)?;
        if !path.try_exists().map_err(|cause| no_folder(path, cause))? {
            return Ok(None);
        }
        let has_log = log_mark::log_bytes(path) > 0;
        let pooled = open_file(path, Self::CALL_TIMEOUT, pool::connect_read_only)?;
        refuse_if_incomplete(path, &pooled, has_log)?;
        let pool = Pool::new(path.to_owned(), Self::CALL_TIMEOUT, pooled);
        Ok(Some(Self {
            pool: Arc::new(pool),
        }))
    }

    pub(crate) fn open_with(
        path: &Path,
        timeout: Duration,
        program: &str,
    ) -> Result<Self, OpenError> {
        create_folder(path)?;
        // If several processes start at once, only one switches the new file to WAL and migrates it.
        let _lock = take_startup_lock(path)?;
        refuse_if_lost(path)?;
        create_if_missing(path).map_err(|cause| no_folder(path, cause))?;
        // Before this process opens the file, which can create a log itself.
        let has_log = log_mark::log_bytes(path) > 0;
        let is_marked = has_log && main_file_has_mark(path);
        let mut pooled = open_file(path, timeout, pool::connect)?;
        let cannot_open = |cause| cannot_open(path, cause);
        if refuse_if_incomplete(path, &pooled, has_log)? {
            // A process was killed during a checkpoint.
            log_mark::mark_complete(&pooled.connection).map_err(cannot_open)?;
        }
        migrate_file(path, &mut pooled, &SIGNPOST, program)?;
        if !is_marked {
            // This is the first process, or the first was killed: from now on a copy of the file alone is incomplete.
            log_mark::checkpoint(&pooled.connection).map_err(cannot_open)?;
        }
        Ok(Self {
            pool: Arc::new(Pool::new(path.to_owned(), timeout, pooled)),
        })
    }

    /// Runs `work` with a connection, on a blocking thread.
    ///
    /// If the future is dropped before `work` has begun, `work` is not run; otherwise it runs to its end. Its thread
    /// and connection count as in use until then.
    ///
    /// # Errors
    ///
    /// The database returns an error, or stays busy for [`Self::CALL_TIMEOUT`].
    pub async fn call<T: Send + 'static, E: Into<StoreError>>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = |connection: &mut Connection| work(connection).map_err(Into::into);
        self.pool.read(work).await
    }

    /// Whether the tables are there, and their file can be written and grow. Writes nothing.
    pub(crate) async fn probe(&self, tables: &'static str) -> Result<(), StoreError> {
        let path = self.pool.path.clone();
        self.call(move |connection| {
            connection.query_row(tables, [], |_| Ok(()))?;
            // Not by a test write: it would wait for the write lock, and wake the change feed of every process.
            let access = rustix::fs::access(&path, rustix::fs::Access::WRITE_OK);
            let reason = match access.and_then(|()| rustix::fs::statvfs(&path)) {
                Err(Errno::ROFS | Errno::ACCESS | Errno::PERM) => "the database is read-only",
                Ok(disk) if is_full(&disk) => "the disk of the database is full",
                _ => return Ok(()),
            };
            Err(StoreError::NotWritable(reason.into()))
        })
        .await
    }

    /// Runs `work` on this thread.
    #[cfg(test)]
    fn call_blocking<T, E: Into<StoreError>>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        self.pool
            .run_blocking(|connection| work(connection).map_err(Into::into))
    }

    /// Runs `work` in a transaction that holds the write lock from its start, and commits if `work` succeeds. Writes that wait
    /// at the same time share a transaction; each is rolled back alone.
    ///
    /// `work` begins after all waits, when the write lock is granted (`BEGIN IMMEDIATE`). So a clock that is read
    /// inside `work` returns the time of the transaction. Read before the call, it may be [`Self::CALL_TIMEOUT`]
    /// earlier.
    ///
    /// # Errors
    ///
    /// As [`Self::call`]; then `work` is rolled back.
    pub async fn write<T: Send + 'static, E: Into<StoreError>>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = |connection: &Connection| work(connection).map_err(Into::into);
        self.pool.write(work).await
    }

    /// Opens a connection outside the pool.
    ///
    /// # Errors
    ///
    /// The file can no longer be opened.
    pub(crate) fn dedicated_connection(&self) -> rusqlite::Result<Pooled> {
        Pooled::connect(&self.pool.path, Self::CALL_TIMEOUT, pool::connect)
    }

    /// Counts of calls, connections and changes.
    pub(crate) fn statistics(&self) -> StoreStatistics {
        self.pool.statistics.read(self.pool.connections())
    }

    /// Where the change feed counts.
    pub(crate) fn counters(&self) -> &Statistics {
        &self.pool.statistics
    }

    /// Whether a connection has the file open that is at the database's path now.
    pub(crate) fn is_current(&self, pooled: &Pooled) -> bool {
        pooled.is_current(&self.pool.path)
    }
}

/// Whether there is no room for some pages. Some kinds of file systems do not say how large they are.
fn is_full(disk: &StatVfs) -> bool {
    // Only root may use the blocks that the file system reserves.
    let free = match geteuid().is_root() {
        true => disk.f_bfree,
        false => disk.f_bavail,
    };
    disk.f_blocks > 0 && free.saturating_mul(disk.f_frsize) < 64 * 1024
}

fn open_file(path: &Path, timeout: Duration, connect: Connect) -> Result<Pooled, OpenError> {
    Pooled::connect(path, timeout, connect).map_err(|cause| cannot_open(path, cause))
}

fn cannot_open(path: &Path, cause: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    OpenError::File { path, cause }
}

/// `SQLite` would delete the log beside a missing or empty database, perhaps the last copy of the newest rows.
fn refuse_if_lost(path: &Path) -> Result<(), OpenError> {
    let is_empty = match fs::metadata(path) {
        Ok(file) => file.len() == 0,
        Err(cause) => cause.kind() == io::ErrorKind::NotFound,
    };
    if is_empty && log_mark::log_bytes(path) > 0 {
        return Err(OpenError::Lost(path.to_owned()));
    }
    Ok(())
}

/// Whether the main file alone has the mark; its log is not read.
fn main_file_has_mark(path: &Path) -> bool {
    let main_file = pool::open_to_read(path, true);
    main_file.is_ok_and(|main_file| log_mark::needs_log(&main_file).unwrap_or(false))
}

/// Whether the database has the mark that it needs its log. Fails if it has the mark and the log is missing.
fn refuse_if_incomplete(path: &Path, pooled: &Pooled, has_log: bool) -> Result<bool, OpenError> {
    let needs_log = log_mark::needs_log(&pooled.connection);
    match needs_log.map_err(|cause| cannot_open(path, cause))? {
        true if !has_log => Err(OpenError::Incomplete(path.to_owned())),
        needs_log => Ok(needs_log),
    }
}

fn migrate_file(
    path: &Path,
    pooled: &mut Pooled,
    schema: &Schema<'_>,
    program: &str,
) -> Result<(), OpenError> {
    migrate::migrate(&mut pooled.connection, schema, program).map_err(|cause| OpenError::Schema {
        database: path.display().to_string(),
        cause: Box::new(cause),
    })
}

fn no_folder(path: &Path, cause: io::Error) -> OpenError {
    let path = path.to_owned();
    OpenError::Folder { path, cause }
}

fn create_folder(path: &Path) -> Result<(), OpenError> {
    let folder = folder_of(path);
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|cause| no_folder(folder, cause))
}

fn folder_of(path: &Path) -> &Path {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// A folder that hands its group down (setgid), and that the group may write.
const SHARED_FOLDER: u32 = 0o2020;

/// The mode of a new database: for its owner alone, since accounts are personal. In a shared folder also for the folder's
/// group: there, programs with users of their own share the database. SQLite gives its other files the same mode.
#[must_use]
pub fn mode_of_files(path: &Path) -> u32 {
    let folder = fs::metadata(folder_of(path)).map_or(0, |folder| folder.mode());
    if folder & SHARED_FOLDER == SHARED_FOLDER {
        0o660
    } else {
        0o600
    }
}

/// Creates a file if it is missing; `None` if it exists. An existing database is never opened here: closing it would release
/// the locks that SQLite holds on it elsewhere in the process (POSIX locks).
fn create_if_missing(path: &Path) -> io::Result<Option<File>> {
    let mode = mode_of_files(path);
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(mode).open(path) {
        Ok(file) => {
            // The umask does not count. What root creates is for the programs of the folder's owner.
            file.set_permissions(Permissions::from_mode(mode))?;
            if geteuid().is_root() {
                let folder = fs::metadata(folder_of(path))?;
                fchown(&file, Some(folder.uid()), Some(folder.gid()))?;
            }
            Ok(Some(file))
        }
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Takes the lock that serializes starting processes. Released when the file is dropped.
///
/// It is on a separate file: closing the database file anywhere in the process would release SQLite's own locks on it.
fn take_startup_lock(path: &Path) -> Result<File, OpenError> {
    let path = log_mark::beside(path, ".lock");
    let lock = || {
        let file = match create_if_missing(&path)? {
            Some(created) => created,
            None => OpenOptions::new().write(true).open(&path)?,
        };
        // Without a timeout: another process may be migrating large tables.
        file.lock()?;
        Ok(file)
    };
    lock().map_err(|cause| no_folder(&path, cause))
}

#[cfg(test)]
pub(crate) mod tests;
