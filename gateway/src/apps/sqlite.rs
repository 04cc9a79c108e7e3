//! The embedded store of applications: the table `applications`.

use std::sync::Arc;

use async_trait::async_trait;
use gateway_protocol::{
    app::{AppId, AppIdent},
    sign::{SignProfile, SignTime},
};
use rusqlite::{OptionalExtension, Row, Transaction, named_params, params};
use signpost_store::{Database, Topic, changes};

use super::{
    App, AppState, PreviousKey,
    seal::Sealer,
    store::{AppStore, AppStoreError, AppSummary, NewApp, Rotated, Rotation},
};

/// Applications in SQLite.
#[derive(Clone, Debug)]
pub struct SqliteAppStore {
    database: Database,
    sealer: Arc<Sealer>,
    gateway_profile: SignProfile,
}

impl SqliteAppStore {
    /// A store over an open database. `gateway_profile` is for applications without one of their own.
    #[must_use]
    pub fn new(database: Database, sealer: Sealer, gateway_profile: SignProfile) -> Self {
        Self {
            database,
            sealer: Arc::new(sealer),
            gateway_profile,
        }
    }

    /// An application's key as it is sealed, if there is any: what a master key proves itself by.
    ///
    /// # Errors
    ///
    /// The database's own.
    pub fn any_sealed_key(database: &Database) -> rusqlite::Result<Option<(AppIdent, Vec<u8>)>> {
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

    fn open(&self, ident: AppIdent, record: Record) -> Result<App, AppStoreError> {
        let profile = match record.sign_profile {
            Some(json) => {
                serde_json::from_str(&json).map_err(|_| AppStoreError::Malformed("sign_profile"))?
            }
            None => self.gateway_profile.clone(),
        };
        let previous_key = match (record.previous_sealed, record.previous_until) {
            (Some(sealed), Some(until)) => Some(PreviousKey {
                key: self.sealer.open(&sealed, ident)?,
                until: SignTime::from_millis(until),
            }),
            _ => None,
        };
        let default_version = record.default_version.map(|name| name.parse());
        Ok(App {
            id: AppId::new(record.id),
            ident: Some(ident),
            state: record.state,
            key: self.sealer.open(&record.key_sealed, ident)?,
            previous_key,
            profile,
            default_version: default_version
                .transpose()
                .map_err(|_| AppStoreError::Malformed("default_version"))?,
        })
    }
}

#[async_trait]
impl AppStore for SqliteAppStore {
    async fn find(&self, ident: AppIdent) -> Result<Option<App>, AppStoreError> {
        let record = self.database.call(move |connection| {
            connection
                .prepare_cached(
                    "SELECT id, state, key_sealed, previous_sealed, previous_until, sign_profile, \
                     default_version FROM applications WHERE ident = ?1",
                )?
                .query_row([ident.as_str()], Record::from_row)
                .optional()
        });
        record
            .await?
            .map(|record| self.open(ident, record))
            .transpose()
    }

    async fn create(&self, app: NewApp) -> Result<(), AppStoreError> {
        let key_sealed = self.sealer.seal(&app.key, app.ident)?;
        let profile = app.profile.map(|profile| {
            serde_json::to_string(&profile).expect("words and a list of words always serialize")
        });
        let origins = serde_json::to_string(&app.return_to_origins)
            .expect("a list of texts always serializes");
        self.change(app.ident, move |transaction| {
            transaction.execute(
                "INSERT INTO applications (ident, name, state, created_at, key_sealed, \
                 sign_profile, return_to_origins, default_version) \
                 VALUES (:ident, :name, 'active', :created_at, :key_sealed, :sign_profile, \
                 :return_to_origins, :default_version)",
                named_params! {
                    ":ident": app.ident.as_str(),
                    ":name": app.name,
                    ":created_at": app.created_at.as_millis(),
                    ":key_sealed": key_sealed,
                    ":sign_profile": profile,
                    ":return_to_origins": origins,
                    ":default_version": app.default_version.map(|version| version.to_string()),
                },
            )
        })
        .await
        .map(drop)
    }

    async fn summary(&self, ident: AppIdent) -> Result<Option<AppSummary>, AppStoreError> {
        let summary = self.database.call(move |connection| {
            connection
                .prepare(&format!("{SUMMARY} WHERE ident = ?1"))?
                .query_row([ident.as_str()], summary_from_row)
                .optional()
        });
        Ok(summary.await?)
    }

    async fn list(&self) -> Result<Vec<AppSummary>, AppStoreError> {
        let all = self.database.call(|connection| {
            connection
                .prepare(&format!("{SUMMARY} ORDER BY id"))?
                .query_map([], summary_from_row)?
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
        let sealed = self.sealer.seal(&key, ident)?;
        let overlap = u64::try_from(overlap.as_millis()).unwrap_or(u64::MAX);
        let until = now.as_millis().saturating_add(overlap);
        let running = self.database.write(move |transaction| {
            let running: Option<Option<u64>> = transaction
                .prepare("SELECT previous_until FROM applications WHERE ident = ?1")?
                .query_row([ident.as_str()], |row| row.get(0))
                .optional()?;
            let Some(running) = running else {
                return Ok(Rotated::Unknown);
            };
            match running.filter(|running| *running >= now.as_millis()) {
                Some(until) if !ends_running_overlap => return Ok(Rotated::Overlapping { until }),
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
        Ok(running.await?)
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

const SUMMARY: &str = "SELECT ident, name, state, created_at, sign_profile, return_to_origins, \
                       default_version, previous_until FROM applications";

struct Record {
    id: i64,
    state: AppState,
    key_sealed: Vec<u8>,
    previous_sealed: Option<Vec<u8>>,
    previous_until: Option<u64>,
    sign_profile: Option<String>,
    default_version: Option<String>,
}

impl Record {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let is_active = row.get_ref(1)?.as_str()? == AppState::Active.as_str();
        Ok(Self {
            id: row.get(0)?,
            state: if is_active {
                AppState::Active
            } else {
                AppState::Disabled
            },
            key_sealed: row.get(2)?,
            previous_sealed: row.get(3)?,
            previous_until: row.get(4)?,
            sign_profile: row.get(5)?,
            default_version: row.get(6)?,
        })
    }
}

fn summary_from_row(row: &Row<'_>) -> rusqlite::Result<AppSummary> {
    let profile: Option<String> = row.get(4)?;
    let origins: String = row.get(5)?;
    Ok(AppSummary {
        ident: row.get(0)?,
        name: row.get(1)?,
        state: row.get(2)?,
        created_at: row.get(3)?,
        sign_profile: profile.and_then(|json| serde_json::from_str(&json).ok()),
        return_to: serde_json::from_str(&origins).unwrap_or_default(),
        default_version: row.get(6)?,
        previous_key_until: row.get(7)?,
    })
}
