//! What can go wrong between a program and its database.

use std::{error::Error, fmt, io, path::PathBuf};

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its folder, or the lock beside the file, cannot be made: no permission, or a file stands in its place.
    #[error("{} cannot be made", path.display())]
    Folder {
        /// The folder, or the lock.
        path: PathBuf,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// The file cannot be opened: no permission, or it is no database.
    #[error("the database {} cannot be opened", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        cause: rusqlite::Error,
    },
    /// A server does not let itself be used: it is away, it knows no such user or database, its certificate does
    /// not verify.
    #[error("the database {server} cannot be opened")]
    Server {
        /// Where, without user and password.
        server: String,
        /// What it says, or the way to it.
        #[source]
        cause: StoreError,
    },
    /// The certificates to verify a server by cannot be read, or are none.
    #[error("no certificates to verify the database's server by: {0}")]
    Certificates(String),
    /// A migration failed, or the database was migrated by a newer release.
    #[error("the database {database} cannot be migrated")]
    Migration {
        /// The file or server.
        database: String,
        /// What the migration says.
        #[source]
        cause: refinery::Error,
    },
}

/// Why a call to the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No connection came free in time: too many calls, a disk that hangs, or a server that is away.
    #[error("no database connection came free in time")]
    Busy,
    /// A statement had no answer in time; it may have been carried out.
    #[error("the database did not answer in time")]
    TimedOut,
    /// The connection to the server has ended.
    #[error("the connection to the database has ended")]
    Disconnected,
    /// The call was cut off: it panicked, or the process is ending.
    #[error("the database call was cut off")]
    Interrupted,
    /// SQLite answered with an error: locked for too long, disk full, file gone.
    #[error("the database answered with an error")]
    Sqlite(#[from] rusqlite::Error),
    /// Postgres, or the way to it, failed.
    #[error("the database answered with an error")]
    Postgres(#[source] PostgresError),
    /// A row holds something that no release wrote.
    #[error("the database holds an unknown value in {0}")]
    Malformed(&'static str),
}

impl StoreError {
    /// The error with its cause, in a line.
    pub(crate) fn in_short(&self) -> String {
        match self {
            Self::Postgres(cause) => cause.to_string(),
            other => other.to_string(),
        }
    }
}

/// What Postgres says, without the values that its details repeat.
pub struct PostgresError(tokio_postgres::Error);

impl PostgresError {
    /// The SQLSTATE, if the server said anything.
    #[must_use]
    pub fn sql_state(&self) -> Option<&tokio_postgres::error::SqlState> {
        self.0.code()
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(PostgresError(error))
    }
}

impl fmt::Display for PostgresError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(said) = self.0.as_db_error() {
            return write!(
                formatter,
                "{} (SQLSTATE {})",
                said.message(),
                said.code().code()
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

/// As `Display`: what the server says in detail may hold what was stored.
impl fmt::Debug for PostgresError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PostgresError({self})")
    }
}

impl Error for PostgresError {}
