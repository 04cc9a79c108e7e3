//! Read-only checks of a store, for `signpost check`: whether the master key fits, and which default versions are
//! unknown or retired. Neither the database nor the key is created or migrated.

use std::path::Path;

use anyhow::Context;
use rusqlite::{Connection, OpenFlags};
use signpost_kit::clock::{Clock, SystemClock};
use signpost_protocol::{app::AppIdent, version::Version};
use signpost_store::{PostgresDatabase, Store, StoreAddress, StoreError, StoreSettings};
use tokio_postgres::error::SqlState;

use super::{
    administration::MAX_NAMED_DEFAULTS, postgres::PostgresAppStore, seal::Sealer,
    sqlite::SqliteAppStore, store::UnusableDefault,
};
use crate::config::{Config, MultiApplications};

/// The result of the checks.
#[derive(Debug)]
pub(crate) enum InspectionOutcome {
    /// The store cannot be read now, so nothing was checked.
    Unreachable(anyhow::Error),
    /// The store does not exist yet; the first start creates it.
    Missing,
    /// The store was read, and the master key fits its newest key, if any.
    Checked {
        /// Applications whose default version is not configured, or retired.
        unusable_defaults: Vec<UnusableDefault>,
    },
}

/// The parts of a store that are checked.
#[derive(Default)]
struct Contents {
    newest: Option<(AppIdent, Vec<u8>)>,
    unusable_defaults: Vec<UnusableDefault>,
}

/// Checks the configured store.
///
/// # Errors
///
/// The master key cannot be read, or is not the one that sealed the stored keys: the gateway would not start.
pub(crate) async fn inspect(
    config: &Config,
    multi: &MultiApplications,
) -> anyhow::Result<InspectionOutcome> {
    let known = config.versions.names_in_service(SystemClock.now());
    let contents = match &config.store.address {
        StoreAddress::Sqlite(path) => sqlite_contents(path, &known),
        StoreAddress::Postgres(address) => {
            match PostgresDatabase::open_without_migrating(address, &config.store.postgres).await {
                Ok(database) => postgres_contents(&database, &known).await.map(Some),
                Err(error) => Err(error.into()),
            }
        }
    };
    let contents = match contents {
        Ok(contents) => contents,
        Err(error) => {
            Sealer::existing(&multi.master_key, false)?;
            return Ok(InspectionOutcome::Unreachable(error));
        }
    };
    let is_missing = contents.is_none();
    let Contents {
        newest,
        unusable_defaults,
    } = contents.unwrap_or_default();
    let sealer = Sealer::existing(&multi.master_key, newest.is_some())?;
    if let (Some(sealer), Some((ident, key))) = (sealer, newest) {
        sealer.check(ident, &key)?;
    }
    if is_missing {
        return Ok(InspectionOutcome::Missing);
    }
    Ok(InspectionOutcome::Checked { unusable_defaults })
}

/// Applications of an open store whose default version is not in `known`.
pub(super) async fn unusable_defaults(
    settings: &StoreSettings,
    store: &Store,
    known: &[Version],
) -> anyhow::Result<Vec<UnusableDefault>> {
    let limit = MAX_NAMED_DEFAULTS + 1;
    match (store, &settings.address) {
        (Store::Sqlite(database), _) => {
            let known = known.to_vec();
            let found = database.call(move |connection| {
                SqliteAppStore::unusable_defaults_in(connection, &known, limit)
            });
            Ok(found.await?)
        }
        // A separate pool, closed after this call: a pooled connection would end with this runtime while requests use
        // it.
        (Store::Postgres(_), StoreAddress::Postgres(address)) => {
            let database =
                PostgresDatabase::open_without_migrating(address, &settings.postgres).await?;
            Ok(PostgresAppStore::unusable_defaults_in(&database, known, limit).await?)
        }
        (Store::Postgres(_), StoreAddress::Sqlite(_)) => Ok(Vec::new()),
    }
}

fn sqlite_contents(path: &Path, known: &[Version]) -> anyhow::Result<Option<Contents>> {
    if !path.try_exists()? {
        return Ok(None);
    }
    let connection = read_only(path)?;
    let query = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'applications'";
    let tables: u32 = connection.query_row(query, [], |row| row.get(0))?;
    if tables == 0 {
        return Ok(None);
    }
    Ok(Some(Contents {
        newest: SqliteAppStore::newest_sealed_key(&connection)?,
        unusable_defaults: SqliteAppStore::unusable_defaults_in(
            &connection,
            known,
            MAX_NAMED_DEFAULTS + 1,
        )?,
    }))
}

/// Opens a database file read-only. If no other process has it open, SQLite would create two files beside it, which the
/// file's owner might be unable to open later. Then the file is opened as immutable.
fn read_only(path: &Path) -> anyhow::Result<Connection> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let is_in_use = Path::new(&log).try_exists()?;
    let path = std::path::absolute(path)?;
    let mut address = url::Url::from_file_path(&path)
        .ok()
        .context("the database's path is not absolute")?;
    if !is_in_use {
        address.set_query(Some("immutable=1"));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    Ok(Connection::open_with_flags(address.as_str(), flags)?)
}

async fn postgres_contents(
    database: &PostgresDatabase,
    known: &[Version],
) -> anyhow::Result<Contents> {
    let newest = match PostgresAppStore::newest_sealed_key(database).await {
        Err(StoreError::Postgres(error))
            if error.sql_state() == Some(&SqlState::UNDEFINED_TABLE) =>
        {
            // No gateway was ever started with this database.
            return Ok(Contents::default());
        }
        newest => newest?,
    };
    let limit = MAX_NAMED_DEFAULTS + 1;
    Ok(Contents {
        newest,
        unusable_defaults: PostgresAppStore::unusable_defaults_in(database, known, limit).await?,
    })
}
