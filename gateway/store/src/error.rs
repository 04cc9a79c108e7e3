//! Errors of opening and calling the database.

use std::{borrow::Cow, error::Error, fmt, io, path::PathBuf};

use tokio_postgres::error::SqlState;

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder, the file or its lock file cannot be created: no permission, or something else is at that path.
    #[error("cannot create {}", path.display())]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// Why the system could not create it.
        #[source]
        cause: io::Error,
    },
    /// The file cannot be opened: no permission, or it is not a database.
    #[error("cannot open the database {}", path.display())]
    File {
        /// Path of the database.
        path: PathBuf,
        /// SQLite's error.
        #[source]
        cause: rusqlite::Error,
    },
    /// The file is a copy of a database in use, without its write-ahead log: what was written last is missing.
    #[error(
        "{path} is a copy of a database in use without its {path}-wal: what was written last is missing, perhaps \
         everything. Put that file beside it, or restore a whole backup: signpost store restore FILE",
        path = .0.display()
    )]
    Incomplete(PathBuf),
    /// The file is missing or empty, but its write-ahead log is not.
    #[error(
        "{path} is missing or empty, but its {path}-wal is not: something has removed the database. Put it back beside \
         that file, or restore a backup: signpost store restore FILE",
        path = .0.display()
    )]
    Lost(PathBuf),
    /// The server cannot be used: it is down, the user or database does not exist, or its certificate is not valid.
    #[error("cannot open the database {server}")]
    Server {
        /// The address, without user and password.
        server: String,
        /// The error of the server or of the connection.
        #[source]
        cause: StoreError,
    },
    /// The root certificates to verify the server cannot be read, or are missing.
    #[error("no root certificates to verify the database server: {0}")]
    Certificates(String),
    /// A migration failed, or a later release has migrated the database.
    #[error("cannot use the database {database}")]
    Schema {
        /// Path of the SQLite file, or the Postgres server.
        database: String,
        /// Why the schema cannot be used.
        #[source]
        cause: Box<SchemaError>,
    },
}

impl OpenError {
    /// Whether the server is down or overloaded, so that it can be opened later.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Server { cause, .. } => cause.is_transient(),
            Self::Schema { cause, .. } => match &**cause {
                SchemaError::Store(cause) | SchemaError::Failed { cause, .. } => {
                    cause.is_transient()
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// The error in one line, with its cause.
    pub(crate) fn in_short(&self) -> String {
        match self {
            Self::Server { cause, .. } => cause.in_short(),
            Self::Schema { cause, .. } => cause.to_string(),
            other => other.to_string(),
        }
    }
}

/// Why the tables cannot be used or migrated.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// A later release has migrated the store, and this program cannot work with the result.
    #[error(
        "{program} has migrated the store to {last} of {owner}. Programs need at least V{needed} of {owner} now; this one \
         ends with V{known}. Start a release of this program that is as new, or restore the backup"
    )]
    TooOld {
        /// Whose tables: `signpost`, or a version.
        owner: String,
        /// The last migration that was applied.
        last: String,
        /// The program that applied it.
        program: String,
        /// The number of the migration that programs need.
        needed: u64,
        /// The number of the last one that this program has.
        known: usize,
    },
    /// A migration was applied in another form than this program has.
    #[error(
        "{name} of {owner} was changed after {program} had applied it. Restore its statements, and add a migration instead"
    )]
    Changed {
        /// Whose tables.
        owner: String,
        /// The migration that differs.
        name: String,
        /// The program that applied it.
        program: String,
    },
    /// A version's migration creates or changes what is not its own.
    #[error(
        "a migration creates, changes or drops {name} (of {table}), which does not begin with {prefix}: nothing was \
         migrated"
    )]
    NotOwn {
        /// The table, index or other object.
        name: String,
        /// The object's table.
        table: String,
        /// What all names must begin with.
        prefix: String,
    },
    /// A version's migration has a column that cannot be copied to the other database.
    #[error(
        "{column} is {found}: nothing was migrated. Allowed: INTEGER, TEXT and BLOB in STRICT tables of SQLite; bigint, \
         boolean, text and bytea in Postgres"
    )]
    Type {
        /// Table and column.
        column: String,
        /// The column's type in the database.
        found: String,
    },
    /// A version's migration has a name that the databases would write differently.
    #[error("{name}: nothing was migrated. Allowed in names of tables and columns: a-z, 0-9 and _")]
    Name {
        /// Table and column.
        name: String,
    },
    /// A migration has left rows that refer to missing ones.
    #[error("rows of {table} would refer to rows that do not exist: nothing was migrated")]
    References {
        /// The table whose rows refer to missing rows.
        table: String,
    },
    /// A statement of a migration failed.
    #[error("{name} of {owner} failed: nothing was migrated")]
    Failed {
        /// Whose tables.
        owner: String,
        /// The migration with the statement.
        name: String,
        /// The database's error.
        #[source]
        cause: StoreError,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SchemaError {
    /// A statement of this owner's migration failed.
    pub(crate) fn failed(owner: &str, migration: &str, cause: impl Into<StoreError>) -> Self {
        Self::Failed {
            owner: owner.to_owned(),
            name: migration.to_owned(),
            cause: cause.into(),
        }
    }
}

/// Why a call to the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Timeout while waiting for a connection: too many calls, a disk that hangs, or a server that is down.
    #[error("timed out waiting for a database connection")]
    Busy,
    /// Timeout of a statement; it may have been executed.
    #[error("the database did not answer in time")]
    TimedOut,
    /// The connection to the server was closed.
    #[error("the connection to the database was closed")]
    Disconnected,
    /// The call was interrupted: it panicked, or the process is ending.
    #[error("the database call was interrupted")]
    Interrupted,
    /// SQLite returned an error: locked for too long, disk full, file missing.
    #[error("database error")]
    Sqlite(#[from] rusqlite::Error),
    /// Postgres, or the connection to it, failed.
    #[error("database error")]
    Postgres(#[source] PostgresError),
    /// The database can be read, but not written.
    #[error("{0}")]
    NotWritable(Cow<'static, str>),
    /// The encoding of a Postgres database, which lacks most letters, or checks none.
    #[error("its encoding is {0}, not UTF8: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0")]
    Encoding(String),
    /// A column holds a value that no release writes.
    #[error("the database holds an unknown value in {0}")]
    Malformed(&'static str),
}

/// Whether this is [`StoreError::Encoding`]: no program can use the database, now or later.
#[must_use]
pub fn is_encoding(root_cause: &(dyn Error + 'static)) -> bool {
    matches!(root_cause.downcast_ref(), Some(StoreError::Encoding(_)))
}

impl StoreError {
    /// Whether a row with this key exists already.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE};
        match self {
            Self::Sqlite(rusqlite::Error::SqliteFailure(cause, _)) => {
                [SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE]
                    .contains(&cause.extended_code)
            }
            Self::Postgres(cause) => cause.sql_state() == Some(&SqlState::UNIQUE_VIOLATION),
            _ => false,
        }
    }

    /// Whether the server is down, overloaded, starting, stopping or read-only: SQLSTATE classes 08, 53 and 57, and 25006. An
    /// error of another kind will not go by itself.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy | Self::TimedOut | Self::Disconnected | Self::NotWritable(_) => true,
            // Without a SQLSTATE the connection itself has failed.
            Self::Postgres(cause) => cause.sql_state().is_none_or(|state| {
                let classes = ["08", "25006", "53", "57"];
                classes.iter().any(|class| state.code().starts_with(class))
            }),
            _ => false,
        }
    }

    /// Whether another connection may find a server that takes writes: this one is read-only (SQLSTATE 25006), or stops or
    /// starts (57P01 to 57P03).
    pub(crate) fn is_of_connection(&self) -> bool {
        let Self::Postgres(cause) = self else {
            return false;
        };
        let state = cause.sql_state().map_or("", SqlState::code);
        ["25006", "57P01", "57P02", "57P03"].contains(&state)
    }

    /// The error in one line; of a database its cause.
    #[must_use]
    pub fn in_short(&self) -> String {
        match self {
            Self::Sqlite(cause) => cause.to_string(),
            Self::Postgres(cause) => cause.to_string(),
            other => other.to_string(),
        }
    }
}

/// An error of Postgres, without its details: they repeat stored values.
pub struct PostgresError(tokio_postgres::Error);

impl PostgresError {
    /// The SQLSTATE, if the server sent one.
    #[must_use]
    pub fn sql_state(&self) -> Option<&SqlState> {
        self.0.code()
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        // Of the driver, which tried all hosts for `target_session_attrs=read-write`.
        let cause = error.source().map(ToString::to_string);
        if cause.as_deref() == Some("database does not allow writes") {
            return Self::NotWritable("no host of the database takes writes".into());
        }
        Self::Postgres(PostgresError(error))
    }
}

impl fmt::Display for PostgresError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = self.0.as_db_error() {
            return write!(
                formatter,
                "{} (SQLSTATE {})",
                error.message(),
                error.code().code()
            );
        }
        write!(formatter, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(next) = cause {
            write!(formatter, ": {next}")?;
            cause = next.source();
        }
        Ok(())
    }
}

/// As `Display`: the details of the server's error may contain stored values.
impl fmt::Debug for PostgresError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PostgresError({self})")
    }
}

impl Error for PostgresError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_fails_during_the_migrations_is_unavailable_and_an_unknown_schema_is_not() {
        let schema = |cause: SchemaError| OpenError::Schema {
            database: "a".to_owned(),
            cause: Box::new(cause),
        };
        let failed = SchemaError::failed("signpost", "V1", StoreError::Disconnected);
        for transient in [StoreError::TimedOut.into(), failed] {
            assert!(schema(transient).is_unavailable());
        }
        let table = "a".to_owned();
        for lasting in [
            SchemaError::References { table },
            StoreError::Malformed("a").into(),
        ] {
            assert!(!schema(lasting).is_unavailable());
        }
    }
}
