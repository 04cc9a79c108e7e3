//! Migrating an installation from SQLite to Postgres: copies all rows of all tables in one transaction, also of the
//! versions' own tables. These are created by the migrations that the source has stored.
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

use self::{source::Source, target::Target};
use crate::{OpenError, PostgresAddress, PostgresDatabase, PostgresSettings, StoreError};

/// Tables to copy, in an order in which no row precedes one that it refers to.
const TABLES: [&str; 17] = [
    "applications",
    "audit",
    "tokens",
    "idempotency",
    "drains",
    "accounts",
    "login_keys",
    "logins",
    "credentials",
    "events",
    "usage_start",
    "usage_counts",
    "usage_clients",
    "usage_paths",
    "shadow_tallies",
    "shadow_starts",
    "replay_mark",
];

/// Tables that the target has anew: no process has cached anything of it yet (`changes`), the rows are only seconds old
/// (`rate_limits`), gateways notice that they are missing (`replay_signatures`), each gateway has a new id at its next
/// start (`gateways`, `usage_writers`), or the target's own migrations are in it.
const NOT_COPIED: [&str; 7] = [
    "changes",
    "gateways",
    "migrations",
    "rate_limits",
    "rejections",
    "replay_signatures",
    "usage_writers",
];

/// What was copied, and what was not.
#[derive(Debug)]
pub struct Copied {
    /// The tables, in the order of the copy.
    pub tables: Vec<CopiedTable>,
    /// Tables that belong neither to Signpost nor to a version.
    pub left_out: Vec<String>,
}

/// A copied table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    /// Name in both databases.
    pub name: String,
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
    program: &str,
    mut on_table: impl FnMut(&CopiedTable),
) -> Result<Copied, CopyError> {
    // Before anything else: once it is locked, no program writes to it behind the copy.
    let source = Source::open(from, program)?;
    let database = PostgresDatabase::open(to, settings, program).await?;
    let mut names: Vec<String> = TABLES.map(str::to_owned).into();
    let mut newer = None;
    for schema in source.schemas()? {
        if schema.is_newer() {
            newer = Some(schema.program.clone());
        }
        target::migrate(&database, &schema, program).await?;
        names.extend(source.tables_of(&schema)?);
    }
    let mut left_out = source.tables()?;
    left_out.retain(|name| !names.contains(name) && !NOT_COPIED.contains(&name.as_str()));
    if let (Some(program), false) = (newer, left_out.is_empty()) {
        let tables = left_out;
        return Err(CopyError::Newer { program, tables });
    }
    // Not from the pool: the statements of its connections have a timeout, which a large table exceeds.
    let mut client = target::connect(&database).await?;
    let target = Target::begin(&mut client, &names).await?;
    let mut tables = Vec::new();
    for name in &names {
        let copied = copy_table(&source, &target, name).await?;
        on_table(&copied);
        tables.push(copied);
    }
    target.commit().await?;
    Ok(Copied { tables, left_out })
}

async fn copy_table(
    source: &Source,
    target: &Target<'_>,
    name: &str,
) -> Result<CopiedTable, CopyError> {
    let columns = source.columns(name)?;
    let (written, replaced) = target.write(source, name, &columns).await?;
    target.continue_ids(source, name, &columns).await?;
    // In the transaction of the copy: a difference ends it before anything is committed.
    let (expected, rows) = (source.count(name)?, target.count(name).await?);
    if rows != expected || written != expected {
        return Err(CopyError::Miscounted {
            table: name.to_owned(),
            expected,
            rows,
        });
    }
    Ok(CopiedTable {
        name: name.to_owned(),
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
        /// Configured path of the source.
        path: PathBuf,
    },
    /// Either database cannot be opened or migrated.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The source cannot be locked or read: another process holds the write lock, or the disk fails.
    #[error("cannot read the source")]
    Source(#[source] StoreError),
    /// The target, or the connection to it, failed.
    #[error("cannot write to the target")]
    Target(#[source] StoreError),
    /// The target is not empty.
    #[error("the target is not empty: it has rows in {}. Copy into a new database", tables.join(", "))]
    NotEmpty {
        /// The tables that have rows.
        tables: Vec<String>,
    },
    /// A later release has migrated the source, and this one may not know all of its tables.
    #[error(
        "{program} has migrated the source further than this program knows, which knows nothing of {}. Copy with the \
         release that has migrated it", tables.join(", ")
    )]
    Newer {
        /// The program that has.
        program: String,
        /// The tables that are unknown here.
        tables: Vec<String>,
    },
    /// Another process writes to the target.
    #[error("the target is in use by another copy or by running programs. Stop them first")]
    InUse,
    /// A text that Postgres cannot store, in a column where characters must not be replaced.
    #[error(
        "{table}.{column} has a string that holds U+0000 or is not UTF-8, which Postgres cannot store"
    )]
    Unfit {
        /// The column's table.
        table: String,
        /// The column that must keep each character.
        column: String,
    },
    /// A bug: the row counts differ.
    #[error("{table} has {expected} rows in the source, but {rows} in the target")]
    Miscounted {
        /// The table whose counts differ.
        table: String,
        /// Rows in the source.
        expected: u64,
        /// Rows in the target.
        rows: u64,
    },
}

impl From<rusqlite::Error> for CopyError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Source(error.into())
    }
}

impl From<tokio_postgres::Error> for CopyError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Target(error.into())
    }
}
