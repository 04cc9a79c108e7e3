//! The embedded store of applications: the table `applications`.

use std::sync::Arc;

use async_trait::async_trait;
use gateway_protocol::{app::AppIdent, sign::SignProfile};
use rusqlite::{OptionalExtension, Row, Transaction, named_params, params};
use signpost_store::{SqliteDatabase, Topic, sqlite::changes};

use super::{
    App, AppState,
    record::{RECORD, Record, Records, SUMMARY, SummaryRow, millis, stored},
    seal::Sealer,
    store::{AppStore, AppStoreError, AppSummary, NewApp, Rotated, Rotation},
};

/// Applications in SQLite.
#[derive(Clone, Debug)]
pub struct SqliteAppStore {
    database: SqliteDatabase,
    records: Arc<Records>,
}

impl SqliteAppStore {
    /// A store over an open database. `gateway_profile` is for applications without one of their own.
    #[must_use]
    pub fn new(database: SqliteDatabase, sealer: Sealer, gateway_profile: SignProfile) -> Self {
        Self {
            database,
            records: Arc::new(Records::new(sealer, gateway_profile)),
        }
    }

    /// An application's key as it is sealed, if there is any: what a master key proves itself by.
    ///
    /// # Errors
    ///
    /// The database's own.
    pub fn any_sealed_key(
        database: &SqliteDatabase,
    ) -> rusqlite::Result<Option<(AppIdent, Vec<u8>)>> {
        database.call_now(|connection| {
            let query = "SELECT ident, key_sealed FROM applications ORDER BY id DESC LIMIT 1";
            let found = connection.query_row(query, [], |row| {
                let ident: String = row.get(0)?;
                Ok((ident.parse().ok(), row.get(1)?))
            });
            Ok(found
                .optional()?
                .and_then(|(ident, key)| Some((ident?, key))))
        })
    }

    /// Writes in one transaction, and tells every process that the application changed if a row did.
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
                    "SELECT {RECORD} FROM applications WHERE ident = ?1"
                ))?
                .query_row([ident.as_str()], record)
                .optional()
        });
        record
            .await?
            .map(|record| self.records.open(ident, record))
            .transpose()
    }

    async fn create(&self, app: NewApp) -> Result<(), AppStoreError> {
        let record = self.records.new_record(app)?;
        self.change(record.ident, move |transaction| {
            transaction.execute(
                "INSERT INTO applications (ident, name, state, created_at, key_sealed, \
                 sign_profile, return_to_origins, default_version) \
                 VALUES (:ident, :name, 'active', :created_at, :key_sealed, :sign_profile, \
                 :return_to_origins, :default_version)",
                named_params! {
                    ":ident": record.ident.as_str(),
                    ":name": record.name,
                    ":created_at": record.created_at,
                    ":key_sealed": record.key_sealed,
                    ":sign_profile": record.sign_profile,
                    ":return_to_origins": record.return_to_origins,
                    ":default_version": record.default_version,
                },
            )
        })
        .await
        .map(drop)
    }

    async fn summary(&self, ident: AppIdent) -> Result<Option<AppSummary>, AppStoreError> {
        let summary = self.database.call(move |connection| {
            connection
                .prepare(&format!(
                    "SELECT {SUMMARY} FROM applications WHERE ident = ?1"
                ))?
                .query_row([ident.as_str()], summary)
                .optional()
        });
        Ok(summary.await?)
    }

    async fn list(&self) -> Result<Vec<AppSummary>, AppStoreError> {
        let all = self.database.call(|connection| {
            connection
                .prepare(&format!("SELECT {SUMMARY} FROM applications ORDER BY id"))?
                .query_map([], summary)?
                .collect()
        });
        Ok(all.await?)
    }

    async fn rotate(&self, rotation: Rotation) -> Result<Rotated, AppStoreError> {
        let Rotation {
            ident,
            key,
            overlap,
            ends_running_overlap,
            now,
        } = rotation;
        let sealed = self.records.seal(&key, ident)?;
        let overlap = i64::try_from(overlap.as_millis()).unwrap_or(i64::MAX);
        let until = stored(now).saturating_add(overlap);
        let rotated = self.database.write(move |transaction| {
            let running: Option<Option<i64>> = transaction
                .prepare("SELECT previous_until FROM applications WHERE ident = ?1")?
                .query_row([ident.as_str()], |row| row.get(0))
                .optional()?;
            let Some(running) = running else {
                return Ok(Rotated::Unknown);
            };
            match running.filter(|running| *running >= stored(now)) {
                Some(until) if !ends_running_overlap => {
                    let until = millis(until);
                    return Ok(Rotated::Overlapping { until });
                }
                _ => {}
            }
            transaction.execute(
                "UPDATE applications SET previous_sealed = key_sealed, previous_until = ?2, \
                 key_sealed = ?3 WHERE ident = ?1",
                params![ident.as_str(), until, sealed],
            )?;
            changes::record(transaction, Topic::Application, ident.as_str().as_bytes())?;
            Ok(Rotated::Done)
        });
        Ok(rotated.await?)
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

    async fn check(&self) -> Result<(), AppStoreError> {
        let query = "SELECT count(*) FROM (SELECT 1 FROM applications LIMIT 1)";
        self.database
            .call(move |connection| connection.query_row(query, [], |_| Ok(())))
            .await?;
        Ok(())
    }
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record {
        id: row.get(0)?,
        state: row.get(1)?,
        key_sealed: row.get(2)?,
        previous_sealed: row.get(3)?,
        previous_until: row.get(4)?,
        sign_profile: row.get(5)?,
        default_version: row.get(6)?,
    })
}

fn summary(row: &Row<'_>) -> rusqlite::Result<AppSummary> {
    let row = SummaryRow {
        ident: row.get(0)?,
        name: row.get(1)?,
        state: row.get(2)?,
        created_at: row.get(3)?,
        sign_profile: row.get(4)?,
        return_to_origins: row.get(5)?,
        default_version: row.get(6)?,
        previous_until: row.get(7)?,
    };
    Ok(row.into())
}
