//! The store of applications on a server: the table `applications`. Every write is one statement.
//!
//! Connections are shared by all workers, each driven by the worker that made it. A worker hands over to whatever is
//! ready at every wait and never blocks, so that a call waits for another worker no longer than it does for its own.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_protocol::{
    app::AppIdent,
    sign::{SignProfile, SignTime},
};
use signpost_store::{
    PostgresDatabase, StoreError, Topic,
    postgres::{Parameters, changes::telling},
};
use tokio_postgres::Row;

use super::{
    App, AppState,
    record::{RECORD, Record, Records, SUMMARY, SummaryRow, millis, stored},
    seal::Sealer,
    store::{AppStore, AppStoreError, AppSummary, NewApp, Rotated, Rotation},
};

/// Whoever asks whether the store answers wants to know now.
const CHECK: Duration = Duration::from_secs(1);

/// Applications that are listed by one statement: far fewer than the shortest time for one allows.
const PAGE: i64 = 10_000;

/// Applications in Postgres.
#[derive(Clone, Debug)]
pub struct PostgresAppStore {
    database: PostgresDatabase,
    records: Arc<Records>,
    statements: Arc<Statements>,
}

impl PostgresAppStore {
    /// A store over an open database. `gateway_profile` is for applications without one of their own.
    #[must_use]
    pub fn new(database: PostgresDatabase, sealer: Sealer, gateway_profile: SignProfile) -> Self {
        Self {
            statements: Arc::new(Statements::of(&database)),
            records: Arc::new(Records::new(sealer, gateway_profile)),
            database,
        }
    }

    /// An application's key as it is sealed, if there is any: what a master key proves itself by.
    ///
    /// # Errors
    ///
    /// The database's own.
    pub async fn any_sealed_key(
        database: &PostgresDatabase,
    ) -> Result<Option<(AppIdent, Vec<u8>)>, StoreError> {
        let query = "SELECT ident, key_sealed FROM applications ORDER BY id DESC LIMIT 1";
        let found = database.session().await?.query_opt(query, &[]).await?;
        let Some(row) = found else { return Ok(None) };
        let (ident, key): (String, _) = (row.try_get(0)?, row.try_get(1)?);
        Ok(ident.parse().ok().map(|ident| (ident, key)))
    }

    /// Whether a row was changed; then every process is told.
    async fn change(&self, sql: &str, values: Parameters<'_>) -> Result<bool, AppStoreError> {
        let changed = self.database.session().await?.execute(sql, values).await?;
        Ok(changed > 0)
    }

    async fn row(&self, sql: &str, ident: AppIdent) -> Result<Option<Row>, StoreError> {
        let session = self.database.session().await?;
        session.query_opt(sql, &[&ident.as_str()]).await
    }

    /// Why the key was not changed.
    async fn not_rotated(&self, ident: AppIdent, now: SignTime) -> Result<Rotated, AppStoreError> {
        let Some(row) = self.row(&self.statements.overlap, ident).await? else {
            return Ok(Rotated::Unknown);
        };
        let until: Option<i64> = row.try_get(0).map_err(StoreError::from)?;
        // None: whoever else rotates has ended the overlap since.
        let until = until.map_or(now.as_millis(), millis);
        Ok(Rotated::Overlapping { until })
    }
}

#[async_trait]
impl AppStore for PostgresAppStore {
    async fn find(&self, ident: AppIdent) -> Result<Option<App>, AppStoreError> {
        let Some(row) = self.row(&self.statements.find, ident).await? else {
            return Ok(None);
        };
        let record = record(&row).map_err(StoreError::from)?;
        self.records.open(ident, record).map(Some)
    }

    async fn create(&self, app: NewApp) -> Result<(), AppStoreError> {
        let record = self.records.new_record(app)?;
        let values: Parameters<'_> = &[
            &record.ident.as_str(),
            &record.name,
            &record.created_at,
            &record.key_sealed,
            &record.sign_profile,
            &record.return_to_origins,
            &record.default_version,
        ];
        self.change(&self.statements.create, values).await.map(drop)
    }

    async fn summary(&self, ident: AppIdent) -> Result<Option<AppSummary>, AppStoreError> {
        let row = self.row(&self.statements.summary, ident).await?;
        let read = row.as_ref().map(summary).transpose();
        Ok(read.map_err(StoreError::from)?)
    }

    async fn list(&self) -> Result<Vec<AppSummary>, AppStoreError> {
        let session = self.database.session().await?;
        let mut all = Vec::new();
        let mut last_id = i64::MIN;
        loop {
            let rows = session
                .query(&self.statements.list, &[&last_id, &PAGE])
                .await?;
            let Some(last) = rows.last() else {
                return Ok(all);
            };
            last_id = last.try_get("id").map_err(StoreError::from)?;
            let page: Result<Vec<_>, _> = rows.iter().map(summary).collect();
            all.extend(page.map_err(StoreError::from)?);
        }
    }

    async fn rotate(&self, rotation: Rotation) -> Result<Rotated, AppStoreError> {
        let Rotation {
            ident,
            key,
            overlap,
            ends_running_overlap,
            now,
        } = rotation;
        let overlap = i64::try_from(overlap.as_millis()).unwrap_or(i64::MAX);
        let values: Parameters<'_> = &[
            &ident.as_str(),
            &stored(now).saturating_add(overlap),
            &self.records.seal(&key, ident)?,
            &stored(now),
            &ends_running_overlap,
        ];
        if self.change(&self.statements.rotate, values).await? {
            Ok(Rotated::Done)
        } else {
            self.not_rotated(ident, now).await
        }
    }

    async fn set_state(&self, ident: AppIdent, state: AppState) -> Result<bool, AppStoreError> {
        let values: Parameters<'_> = &[&ident.as_str(), &state.as_str()];
        self.change(&self.statements.set_state, values).await
    }

    async fn delete(&self, ident: AppIdent) -> Result<bool, AppStoreError> {
        self.change(&self.statements.delete, &[&ident.as_str()])
            .await
    }

    async fn check(&self) -> Result<(), AppStoreError> {
        let ask = async {
            let query = "SELECT count(*) FROM (SELECT 1 FROM applications LIMIT 1) AS one";
            let session = self.database.session().await?;
            session.query_one(query, &[]).await.map(drop)
        };
        let answer = tokio::time::timeout(CHECK, ask).await;
        Ok(answer.unwrap_or(Err(StoreError::TimedOut))?)
    }
}

/// The statements, whole: those that tell others of a change depend on the server.
#[derive(Debug)]
struct Statements {
    find: String,
    summary: String,
    list: String,
    overlap: String,
    create: String,
    rotate: String,
    set_state: String,
    delete: String,
}

impl Statements {
    fn of(database: &PostgresDatabase) -> Self {
        // The key that is told is the ident's bytes: letters and digits, which no cast reads otherwise.
        let telling = |write: &str| {
            let write = format!("{write} RETURNING ident::bytea AS key");
            telling(database, Topic::Application, &write)
        };
        Self {
            find: format!("SELECT {RECORD} FROM applications WHERE ident = $1"),
            summary: format!("SELECT {SUMMARY} FROM applications WHERE ident = $1"),
            list: format!(
                "SELECT {SUMMARY}, id FROM applications WHERE id > $1 ORDER BY id LIMIT $2"
            ),
            overlap: "SELECT previous_until FROM applications WHERE ident = $1".to_owned(),
            create: telling(
                "INSERT INTO applications (ident, name, state, created_at, key_sealed, sign_profile, \
                 return_to_origins, default_version) VALUES ($1, $2, 'active', $3, $4, $5, $6, $7)",
            ),
            rotate: telling(
                "UPDATE applications SET previous_sealed = key_sealed, previous_until = $2, key_sealed = $3 \
                 WHERE ident = $1 AND ($5 OR previous_until IS NULL OR previous_until < $4)",
            ),
            set_state: telling("UPDATE applications SET state = $2 WHERE ident = $1"),
            delete: telling("DELETE FROM applications WHERE ident = $1"),
        }
    }
}

fn record(row: &Row) -> Result<Record, tokio_postgres::Error> {
    Ok(Record {
        id: row.try_get(0)?,
        state: row.try_get(1)?,
        key_sealed: row.try_get(2)?,
        previous_sealed: row.try_get(3)?,
        previous_until: row.try_get(4)?,
        sign_profile: row.try_get(5)?,
        default_version: row.try_get(6)?,
    })
}

fn summary(row: &Row) -> Result<AppSummary, tokio_postgres::Error> {
    let row = SummaryRow {
        ident: row.try_get(0)?,
        name: row.try_get(1)?,
        state: row.try_get(2)?,
        created_at: row.try_get(3)?,
        sign_profile: row.try_get(4)?,
        return_to_origins: row.try_get(5)?,
        default_version: row.try_get(6)?,
        previous_until: row.try_get(7)?,
    };
    Ok(row.into())
}
