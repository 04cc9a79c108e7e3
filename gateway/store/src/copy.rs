//! Migrating an installation from SQLite to Postgres: copies all rows of all tables in one transaction.
//!
//! The source is locked against writes meanwhile. The target must be empty, and stays empty if the copy fails, so that
//! it can be repeated. Columns are read from the schema, so a column that a migration adds to both databases is copied,
//! too.

mod source;
mod target;
#[cfg(test)]
mod tests;
mod value;

use std::path::{Path, PathBuf};

pub use self::source::process_using;
use self::{source::Source, target::Target};
use crate::{OpenError, PostgresAddress, PostgresDatabase, PostgresSettings, StoreError};

/// Tables to copy, in an order in which no row precedes one that it refers to. Not `changes`: no process has cached
/// anything of the target yet. Nor `rate_limits`: its rows are only seconds old. Nor `usage_writers`: a copy begins
/// after the gateways have stopped, and each has a new id at its next start.
const TABLES: [&str; 9] = [
    "applications",
    "accounts",
    "login_keys",
    "logins",
    "credentials",
    "events",
    "usage_start",
    "usage_counts",
    "usage_clients",
];

/// A copied table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    /// Its name.
    pub name: &'static str,
    /// Number of rows, the same in both databases.
    pub rows: u64,
    /// Number of texts from clients in which U+0000 was replaced by U+FFFD: Postgres cannot store it.
    pub replaced: u64,
}

/// Copies all tables, and calls `on_table` after each. Nothing is committed before this function returns `Ok`.
///
/// Needs little memory, also for a large store. Blocks the thread while it reads the source.
///
/// # Errors
///
/// The source is missing, a database cannot be opened, the target is not empty or in use, a value cannot be stored
/// there, or either database fails. Then the target is unchanged, except for the schema.
pub async fn copy(
    from: &Path,
    to: &PostgresAddress,
    settings: &PostgresSettings,
    mut on_table: impl FnMut(CopiedTable),
) -> Result<Vec<CopiedTable>, CopyError> {
    let source = Source::open(from)?;
    let database = PostgresDatabase::open(to, settings).await?;
    let mut client = target::connect(&database).await?;
    let target = Target::begin(&mut client).await?;
    let mut all = Vec::new();
    for name in TABLES {
        let copied = copy_table(&source, &target, name).await?;
        on_table(copied);
        all.push(copied);
    }
    target.commit().await?;
    Ok(all)
}

async fn copy_table(
    source: &Source,
    target: &Target<'_>,
    name: &'static str,
) -> Result<CopiedTable, CopyError> {
    let columns = source.columns(name)?;
    let (written, replaced) = target.write(source, name, &columns).await?;
    if columns.iter().any(|column| column == target::ID) {
        target
            .continue_ids_after(name, source.last_id(name)?)
            .await?;
    }
    let (expected, rows) = (source.count(name)?, target.count(name).await?);
    if rows != expected || written != expected {
        return Err(CopyError::Miscounted {
            table: name,
            expected,
            rows,
        });
    }
    Ok(CopiedTable {
        name,
        rows,
        replaced,
    })
}

/// Why the copy failed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The source does not exist. It is not created: that would hide a wrong path.
    #[error("database {} not found", path.display())]
    NoSource {
        /// The path.
        path: PathBuf,
    },
    /// Either database cannot be opened or migrated.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The source cannot be locked or read: another process holds the write lock, or the disk fails.
    #[error("cannot read the source")]
    Source(#[from] rusqlite::Error),
    /// The target, or the connection to it, failed.
    #[error("cannot write to the target")]
    Target(#[source] StoreError),
    /// The target is not empty.
    #[error("the target is not empty: it has rows in {}. Copy into a new database", tables.join(", "))]
    NotEmpty {
        /// The tables that have rows.
        tables: Vec<&'static str>,
    },
    /// Another process writes to the target.
    #[error("the target is in use by another copy or by running programs. Stop them first")]
    InUse,
    /// A text that Postgres cannot store, in a column where characters must not be replaced.
    #[error(
        "{table}.{column} has a string that holds U+0000 or is not UTF-8, which Postgres cannot store"
    )]
    Unfit {
        /// The table.
        table: &'static str,
        /// Its column.
        column: String,
    },
    /// A bug: the row counts differ.
    #[error("{table} has {expected} rows in the source, but {rows} in the target")]
    Miscounted {
        /// The table.
        table: &'static str,
        /// Rows in the source.
        expected: u64,
        /// Rows in the target.
        rows: u64,
    },
}

impl From<tokio_postgres::Error> for CopyError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Target(error.into())
    }
}
