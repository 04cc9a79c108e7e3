//! Backup and restore of a `SQLite` file.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags};
use rustix::process::{Flock, FlockOffsetType, FlockType, Pid, fcntl_getlk};
use tempfile::NamedTempFile;

use super::{
    SqliteDatabase, create_folder, folder_of,
    log_mark::{beside, log_bytes, log_of, mark_complete, needs_log},
    migrate,
    pool::connect_read_only,
    take_startup_lock,
};
use crate::{OpenError, Store, error::SchemaError, schema::SIGNPOST};

/// The byte of the `-shm` file that every connection has locked in WAL mode: `UNIX_SHM_DMS` of `SQLite`'s `os_unix.c`.
const IN_USE: u64 = 128;

/// Writes a copy of the database `from` to the new file `to`, for its owner alone, while programs use the database. It is
/// a state in which the database was, checked, and on disk when this returns. Blocks.
///
/// # Errors
///
/// `to` exists or cannot be written, or the database cannot be read or is damaged.
pub fn backup(from: &Path, to: &Path) -> Result<(), BackupError> {
    if to.try_exists().map_err(|cause| unwritable(to, cause))? {
        return Err(BackupError::Exists(to.to_owned()));
    }
    let copy = copy_beside(from, to)?;
    // Renamed once it is checked and on disk: a file with this name is always a whole backup.
    let persisted = copy.persist_noclobber(to);
    persisted.map_err(|error| unwritable(to, error.error))?;
    sync(folder_of(to))
}

/// A checked copy of a backup beside a database that no process uses, ready to replace it. While it exists, no program
/// starts with that database.
#[derive(Debug)]
pub struct Restore {
    path: PathBuf,
    copy: NamedTempFile,
    _lock: File,
}

impl Restore {
    /// Copies and checks the backup `from`, which shall replace the database at `path`. Blocks.
    ///
    /// # Errors
    ///
    /// A process has the database open; or the backup is missing, damaged, incomplete, or not of this program.
    pub fn prepare(path: &Path, from: &Path) -> Result<Self, BackupError> {
        create_folder(path)?;
        let lock = take_startup_lock(path)?;
        refuse_if_used(path)?;
        let copy = copy_beside(from, path)?;
        let has_tables = Connection::open(copy.path())
            .map_err(|cause| damaged(from, cause))
            .and_then(|connection| {
                let checked = migrate::check(&connection, &SIGNPOST);
                checked.map_err(|cause| BackupError::Schema {
                    path: from.to_owned(),
                    cause: Box::new(cause),
                })
            })?;
        if !has_tables {
            return Err(BackupError::NotOurs(from.to_owned()));
        }
        like_the_old_one(copy.as_file(), path, &lock).map_err(|cause| unwritable(path, cause))?;
        Ok(Self {
            path: path.to_owned(),
            copy,
            _lock: lock,
        })
    }

    /// The copy, to read it.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub fn store(&self) -> Result<Option<Store>, OpenError> {
        Ok(SqliteDatabase::open_read_only(self.copy.path())?.map(Store::Sqlite))
    }

    /// Replaces the database. Returns where the replaced one is, with its log: beside it, with `suffix`.
    ///
    /// # Errors
    ///
    /// A process has the database open, or a file cannot be written.
    pub fn install(self, suffix: &str) -> Result<Option<PathBuf>, BackupError> {
        let path = &*self.path;
        refuse_if_used(path)?;
        let kept = beside(path, suffix);
        let replace = || {
            let had_one = path.try_exists()?;
            if had_one {
                // A name more, so that there is a database at every moment.
                fs::hard_link(path, &kept)?;
            }
            // The old log must not be applied to the new file. If the machine crashes here, the old one has its mark.
            rename_if_exists(&log_of(path), &log_of(&kept))?;
            rename_if_exists(&beside(path, "-shm"), &beside(&kept, "-shm"))?;
            // On disk before the new file has the name: after a crash, the old log must not be beside it.
            File::open(folder_of(path))?.sync_all()?;
            self.copy.persist(path).map_err(|error| error.error)?;
            Ok(had_one)
        };
        let had_one = replace().map_err(|cause| unwritable(path, cause))?;
        sync(folder_of(path))?;
        Ok(had_one.then_some(kept))
    }
}

/// A checked copy of a database in a file with another name in the folder of `target`.
fn copy_beside(from: &Path, target: &Path) -> Result<NamedTempFile, BackupError> {
    if !from.is_file() {
        return Err(BackupError::Missing(from.to_owned()));
    }
    let unreadable = |cause| damaged(from, cause);
    // Without a log the file is read as immutable, so no program may start now.
    let has_log = log_bytes(from) > 0;
    let _lock = (!has_log && beside(from, ".lock").exists())
        .then(|| take_startup_lock(from))
        .transpose()?;
    let source = connect_read_only(from, SqliteDatabase::CALL_TIMEOUT).map_err(unreadable)?;
    if !has_log && needs_log(&source).map_err(unreadable)? {
        return Err(OpenError::Incomplete(from.to_owned()).into());
    }
    let copy = tempfile::Builder::new()
        .prefix(".signpost-copy.")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(folder_of(target))
        .map_err(|cause| unwritable(target, cause))?;
    // The file exists and is empty: the copy has its mode from the first byte.
    let path = copy.path().to_str();
    let path = path.ok_or_else(|| unwritable(target, io::ErrorKind::InvalidFilename.into()))?;
    source
        // Reads in one transaction: writers go on, and nothing that they commit meanwhile is half in the copy.
        .execute("VACUUM INTO ?1", [path])
        .map_err(unreadable)?;
    let check = |copy: &Connection| {
        mark_complete(copy)?;
        copy.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let result: String = Connection::open_with_flags(copy.path(), flags)
        .and_then(|copy| check(&copy))
        .map_err(unreadable)?;
    if result != "ok" {
        return Err(BackupError::Damaged {
            path: from.to_owned(),
            cause: result.into(),
        });
    }
    let synced = copy.as_file().sync_all();
    synced.map_err(|cause| unwritable(target, cause))?;
    Ok(copy)
}

/// Gives the file mode and owner of the database that it replaces. Without one, the lock's file is the model: it has
/// mode and owner of a new database.
fn like_the_old_one(file: &File, path: &Path, lock: &File) -> io::Result<()> {
    let old = fs::metadata(path).or_else(|_| lock.metadata())?;
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(Permissions::from_mode(old.mode() & 0o777))?;
    file.sync_all()
}

fn refuse_if_used(path: &Path) -> Result<(), BackupError> {
    match process_using(path).map_err(|cause| unwritable(path, cause))? {
        None => Ok(()),
        Some(process) => Err(BackupError::InUse {
            path: path.to_owned(),
            process,
        }),
    }
}

/// The id of a process that has a `SQLite` file open.
///
/// `Some(0)` is a process that is not visible from here, for example in another container. Call this before this
/// process opens the file.
///
/// # Errors
///
/// The file beside it that has the locks cannot be opened.
pub fn process_using(file: &Path) -> io::Result<Option<i32>> {
    // Testing for a write lock needs a file that is open for writing.
    let shared = File::options()
        .read(true)
        .write(true)
        .open(beside(file, "-shm"));
    let shared = match shared {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        shared => shared?,
    };
    let lock = Flock {
        start: IN_USE,
        length: 1,
        pid: None,
        typ: FlockType::WriteLock,
        offset_type: FlockOffsetType::Set,
    };
    let held = fcntl_getlk(&shared, &lock)?;
    Ok(held.map(|held| Pid::as_raw(held.pid)))
}

fn rename_if_exists(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed,
    }
}

/// A new name is only durable after the folder was synced, too.
fn sync(folder: &Path) -> Result<(), BackupError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|cause| unwritable(folder, cause))
}

fn unwritable(path: &Path, cause: io::Error) -> BackupError {
    let path = path.to_owned();
    BackupError::Unwritable { path, cause }
}

fn damaged(path: &Path, cause: rusqlite::Error) -> BackupError {
    BackupError::Damaged {
        path: path.to_owned(),
        cause: cause.into(),
    }
}

/// Why a backup or a restore failed. Neither has changed anything then.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file that shall be written exists.
    #[error("{} exists, and is not overwritten", .0.display())]
    Exists(PathBuf),
    /// The database or the backup does not exist.
    #[error("{} not found", .0.display())]
    Missing(PathBuf),
    /// A process has the database open.
    #[error(
        "{} is in use by process {process}: stop all gateways and backends first",
        path.display()
    )]
    InUse {
        /// Path of the database in use.
        path: PathBuf,
        /// The process; 0: it is not visible from here.
        process: i32,
    },
    /// It cannot be read: damaged, not a database, no permission.
    #[error("{} cannot be read, or is damaged", path.display())]
    Damaged {
        /// Path of the damaged file.
        path: PathBuf,
        /// Why SQLite could not read it.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It is a database of something else.
    #[error("{} is not a database of Signpost", .0.display())]
    NotOurs(PathBuf),
    /// Its tables cannot be used, for example tables of a later release.
    #[error("{} cannot be used", path.display())]
    Schema {
        /// Path of the backup.
        path: PathBuf,
        /// Why its schema cannot be used.
        #[source]
        cause: Box<SchemaError>,
    },
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// Why the system could not write it.
        #[source]
        cause: io::Error,
    },
}

#[cfg(test)]
mod tests;
