//! Moving an installation from SQLite to Postgres: every row of every table, in one transaction, or nothing.
//!
//! The source is kept from being written to meanwhile. The target must be empty, and whatever interrupts the copy
//! leaves it so: then it can be run again. What is copied is what the tables have: a column that a migration adds to
//! both databases goes along by itself.

mod source;
mod target;
#[cfg(test)]
mod tests;
mod value;

use std::path::{Path, PathBuf};

use self::{source::Source, target::Target};
use crate::{OpenError, PostgresAddress, PostgresDatabase, PostgresSettings, StoreError};

/// What is copied, in an order in which no row comes before one that it refers to. `changes` is not: nobody who reads
/// the target has seen what was there before.
const TABLES: [&str; 6] = [
    "applications",
    "accounts",
    "login_keys",
    "logins",
    "credentials",
    "events",
];

/// A table that was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    /// Its name.
    pub name: &'static str,
    /// Rows, the same number in both databases.
    pub rows: u64,
    /// Texts that clients sent with U+0000, which Postgres cannot hold: they have U+FFFD instead.
    pub replaced: u64,
}

/// Copies everything, and tells of each table that is done. Nothing of it is in the target unless all of it is: only
/// the return of this function says so.
///
/// Needs little memory, however much there is. Blocks the thread while it reads the source.
///
/// # Errors
///
/// There is no source, a database cannot be opened, the target is not empty or in use, a value cannot be stored there,
/// or either database fails. Then the target is as it was, but for the schema.
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
        target.number_behind(name, source.last_id(name)?).await?;
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

/// The process that has a SQLite file open, if there is one: what it writes after the copy would be lost. `Some(0)` is
/// one that cannot be seen from here, in another container say.
///
/// Call it before this process opens the file.
#[must_use]
pub fn process_using(file: &Path) -> Option<i32> {
    source::process_using(file)
}

/// Why nothing was copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The source's path is wrong: copying from a new database helps nobody.
    #[error("there is no database {}", path.display())]
    NoSource {
        /// The path.
        path: PathBuf,
    },
    /// Either database cannot be opened or migrated.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The source cannot be locked or read: somebody writes to it all the time, or the disk fails.
    #[error("the source cannot be read")]
    Source(#[from] rusqlite::Error),
    /// The target, or the way to it, failed.
    #[error("the target cannot be written")]
    Target(#[source] StoreError),
    /// The target has been used already.
    #[error("the target is not empty: it has rows in {}. Copy into a new database", tables.join(", "))]
    NotEmpty {
        /// Where there are rows.
        tables: Vec<&'static str>,
    },
    /// Somebody else writes to the target.
    #[error(
        "the target is in use: another copy is going on, or programs run on it. Stop them first"
    )]
    InUse,
    /// A text that Postgres cannot store, in a place where it cannot be replaced.
    #[error(
        "{table}.{column} has a text that holds U+0000 or is not UTF-8, which Postgres cannot store"
    )]
    Unfit {
        /// The table.
        table: &'static str,
        /// Its column.
        column: String,
    },
    /// A defect: rows were lost or added on the way.
    #[error("{table} has {expected} rows in the source, and {rows} arrived")]
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
