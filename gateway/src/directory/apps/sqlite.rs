//! The store of applications in SQLite: the table `applications`.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Transaction, named_params, params};
use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppIdent, version::Version};
use signpost_store::{SqliteDatabase, Topic, sqlite::changes};

use super::{
    App, AppState,
    directory::ALL_APPLICATIONS,
    record::{
        APP_COLUMNS, AppCodec, AppRowUpdate, NewAppRow, SUMMARY_COLUMNS, app_from_row,
        newest_key_from_row, rotation_state_from_row, summary_from_row, unknown_default_from_row,
    },
    seal::{Sealer, Slot},
    store::{
        AppStore, AppStoreError, AppSummary, AppUpdate, ImportOutcome, NewApp, Rotation,
        RotationOutcome, UnusableDefault,
    },
};

/// Applications in SQLite.
#[derive(Clone, Debug)]
pub(crate) struct SqliteAppStore {
    database: SqliteDatabase,
    codec: Arc<AppCodec>,
}

impl SqliteAppStore {
    /// A store over an open database.
    #[must_use]
    pub(crate) fn new(database: SqliteDatabase, sealer: Sealer) -> Self {
        Self {
            database,
            codec: Arc::new(AppCodec::new(sealer)),
        }
    }

    /// The sealed key of the newest application, if any; the master key is checked with it.
    ///
    /// # Errors
    ///
    /// The database fails.
    pub(crate) fn newest_sealed_key(
        connection: &Connection,
    ) -> rusqlite::Result<Option<(AppIdent, Vec<u8>)>> {
        let query = "SELECT ident, key_sealed FROM applications ORDER BY id DESC LIMIT 1";
        let found = connection.query_row(query, [], |row| newest_key_from_row(row));
        Ok(found.optional()?.flatten())
    }

    /// At most `limit` applications whose default version is not in `known`, oldest first.
    pub(super) fn unusable_defaults_in(
        connection: &Connection,
        known: &[Version],
        limit: u32,
    ) -> rusqlite::Result<Vec<UnusableDefault>> {
        let known: Vec<&str> = known.iter().map(Version::as_str).collect();
        let known = serde_json::to_string(&known).expect("a list of texts always serializes");
        connection
            .prepare(
                "SELECT ident, default_version FROM applications WHERE default_version IS NOT NULL \
                 AND default_version NOT IN (SELECT value FROM json_each(?1)) ORDER BY id LIMIT ?2",
            )?
            .query_map(params![known, limit], |row| unknown_default_from_row(row))?
            .collect()
    }

    /// Writes in one transaction, and notifies every process if a row changed. Returns whether one did.
    async fn change<F>(&self, ident: AppIdent, write: F) -> Result<bool, AppStoreError>
    where
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<usize> + Send + 'static,
    {
        let changed = self.database.write(move |transaction| {
            let rows = write(transaction)?;
            if rows > 0 {
                changes::record(transaction, Topic::Application, ident.as_str().as_bytes())?;
            }
            Ok(rows > 0)
        });
        Ok(changed.await?)
    }
}

#[async_trait]
impl AppStore for SqliteAppStore {
    async fn find(&self, ident: AppIdent) -> Result<Option<App>, AppStoreError> {
        let record = self.database.call(move |connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {APP_COLUMNS} FROM applications WHERE ident = ?1"
                ))?
                .query_row([ident.as_str()], |row| app_from_row(row))
                .optional()
        });
        record
            .await?
            .map(|record| self.codec.open(ident, record))
            .transpose()
    }

    async fn create(&self, app: NewApp) -> Result<(), AppStoreError> {
        let record = self.codec.new_row(app)?;
        self.change(record.ident, move |transaction| {
            insert(transaction, &record).map(|()| 1)
        })
        .await
        .map(drop)
    }

    async fn import(&self, apps: Vec<NewApp>) -> Result<ImportOutcome, AppStoreError> {
        let records: Result<Vec<_>, _> = apps
            .into_iter()
            .map(|app| self.codec.new_row(app))
            .collect();
        let records = records?;
        let imported = self.database.write(move |transaction| {
            let taken = taken(transaction, records.iter().map(|record| record.ident))?;
            if !taken.is_empty() {
                return Ok(ImportOutcome::Taken(taken));
            }
            for record in &records {
                insert(transaction, record)?;
            }
            if !records.is_empty() {
                changes::record(transaction, Topic::Application, ALL_APPLICATIONS)?;
            }
            Ok(ImportOutcome::Done)
        });
        Ok(imported.await?)
    }

    async fn taken(&self, idents: Vec<AppIdent>) -> Result<Vec<AppIdent>, AppStoreError> {
        let taken = self
            .database
            .call(move |connection| taken(connection, idents));
        Ok(taken.await?)
    }

    async fn update(&self, update: AppUpdate) -> Result<bool, AppStoreError> {
        let ident = update.ident;
        let record = AppRowUpdate::new(update)?;
        let [per_second, burst] = record.rate_columns();
        self.change(ident, move |transaction| {
            transaction.execute(
                "UPDATE applications SET name = coalesce(?2, name), \
                 return_to_origins = coalesce(?3, return_to_origins), \
                 sign_profile = CASE WHEN ?4 THEN ?5 ELSE sign_profile END, \
                 default_version = CASE WHEN ?6 THEN ?7 ELSE default_version END, \
                 rate_per_second = CASE WHEN ?8 THEN ?9 ELSE rate_per_second END, \
                 rate_burst = CASE WHEN ?8 THEN ?10 ELSE rate_burst END WHERE ident = ?1",
                params![
                    ident.as_str(),
                    record.name,
                    record.return_to_origins,
                    record.sign_profile.is_change(),
                    record.sign_profile.value(),
                    record.default_version.is_change(),
                    record.default_version.value(),
                    record.rate_limit.is_change(),
                    per_second,
                    burst,
                ],
            )
        })
        .await
    }

    async fn delete_previous_keys(&self, ended_before: Timestamp) -> Result<u64, AppStoreError> {
        let deleted = self.database.write(move |transaction| {
            transaction.execute(
                "UPDATE applications SET previous_sealed = NULL, previous_until = NULL \
                 WHERE previous_until < ?1",
                [ended_before.as_millis()],
            )
        });
        Ok(deleted.await? as u64)
    }

    async fn summary(&self, ident: AppIdent) -> Result<Option<AppSummary>, AppStoreError> {
        let summary = self.database.call(move |connection| {
            connection
                .prepare(&format!(
                    "SELECT {SUMMARY_COLUMNS} FROM applications WHERE ident = ?1"
                ))?
                .query_row([ident.as_str()], |row| summary_from_row(row))
                .optional()
        });
        Ok(summary.await?)
    }

    async fn list(&self) -> Result<Vec<AppSummary>, AppStoreError> {
        let all = self.database.call(|connection| {
            connection
                .prepare(&format!(
                    "SELECT {SUMMARY_COLUMNS} FROM applications ORDER BY id"
                ))?
                .query_map([], |row| summary_from_row(row))?
                .collect()
        });
        Ok(all.await?)
    }

    async fn rotate(&self, rotation: Rotation) -> Result<RotationOutcome, AppStoreError> {
        let Rotation {
            ident,
            key,
            overlap,
            ends_running_overlap,
            now,
        } = rotation;
        let sealed = self.codec.seal(&key, ident, Slot::Current)?;
        let codec = Arc::clone(&self.codec);
        let until = now.plus(overlap).as_millis();
        let rotated = self.database.write(move |transaction| {
            let found = transaction
                .prepare("SELECT previous_until, key_sealed FROM applications WHERE ident = ?1")?
                .query_row([ident.as_str()], |row| rotation_state_from_row(row))
                .optional()?;
            let Some((running, current)) = found else {
                return Ok(Ok(RotationOutcome::Unknown));
            };
            match running.filter(|running| *running >= now.as_millis()) {
                Some(until) if !ends_running_overlap => {
                    let until = Timestamp::from_millis(until);
                    return Ok(Ok(RotationOutcome::Overlapping { until }));
                }
                _ => {}
            }
            let previous = match codec.seal_as_previous(&current, ident, until) {
                Ok(previous) => previous,
                Err(error) => return Ok(Err(error)),
            };
            transaction.execute(
                "UPDATE applications SET previous_sealed = ?2, previous_until = ?3, \
                 key_sealed = ?4 WHERE ident = ?1",
                params![ident.as_str(), previous, until, sealed],
            )?;
            changes::record(transaction, Topic::Application, ident.as_str().as_bytes())?;
            Ok(Ok(RotationOutcome::Done))
        });
        Ok(rotated.await??)
    }

    async fn set_state(&self, ident: AppIdent, state: AppState) -> Result<bool, AppStoreError> {
        self.change(ident, move |transaction| {
            transaction.execute(
                "UPDATE applications SET state = ?2 WHERE ident = ?1",
                params![ident.as_str(), state.as_str()],
            )
        })
        .await
    }

    async fn delete(&self, ident: AppIdent) -> Result<bool, AppStoreError> {
        self.change(ident, move |transaction| {
            transaction.execute(
                "DELETE FROM applications WHERE ident = ?1",
                [ident.as_str()],
            )
        })
        .await
    }
}

fn insert(transaction: &Transaction<'_>, record: &NewAppRow) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO applications (ident, name, state, created_at, key_sealed, \
         sign_profile, return_to_origins, default_version) \
         VALUES (:ident, :name, 'active', :created_at, :key_sealed, :sign_profile, \
         :return_to_origins, :default_version)",
    )?;
    let inserted = insert.execute(named_params! {
        ":ident": record.ident.as_str(),
        ":name": record.name,
        ":created_at": record.created_at,
        ":key_sealed": record.key_sealed,
        ":sign_profile": record.sign_profile,
        ":return_to_origins": record.return_to_origins,
        ":default_version": record.default_version,
    });
    inserted.map(drop)
}

fn taken(
    connection: &Connection,
    idents: impl IntoIterator<Item = AppIdent>,
) -> rusqlite::Result<Vec<AppIdent>> {
    let mut find = connection.prepare_cached("SELECT 1 FROM applications WHERE ident = ?1")?;
    let mut taken = Vec::new();
    for ident in idents {
        if find.exists([ident.as_str()])? {
            taken.push(ident);
        }
    }
    Ok(taken)
}
