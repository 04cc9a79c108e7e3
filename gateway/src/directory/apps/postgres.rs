//! The store of applications in Postgres: the table `applications`. Every write is one statement.
//!
//! All workers share the connection pool. Each connection is driven by the runtime of the worker that opened it.
//! Workers never block, so using another worker's connection is as fast as using one's own.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppIdent, version::Version};
use signpost_store::{
    PostgresDatabase, StoreError, StoredRow, Topic,
    postgres::{
        Parameters,
        changes::{with_bulk_notification, with_notification},
    },
};
use tokio_postgres::{Row, error::SqlState};

use super::{
    App, AppState,
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

/// Timeout of a statement that writes many applications: 100,000 take about 2 s on an ordinary machine, and only
/// operators wait for it.
pub(crate) const BULK_STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Limit of a rotation's attempts: one fails if another process rotates the same application concurrently.
const MAX_ROTATION_ATTEMPTS: usize = 8;

/// Applications per statement of a listing: few enough for the shortest statement timeout.
const PAGE: i64 = 10_000;

/// Applications in Postgres.
#[derive(Clone, Debug)]
pub(crate) struct PostgresAppStore {
    database: PostgresDatabase,
    codec: Arc<AppCodec>,
    statements: Arc<Statements>,
}

impl PostgresAppStore {
    /// A store over an open database.
    #[must_use]
    pub(crate) fn new(database: PostgresDatabase, sealer: Sealer) -> Self {
        Self {
            statements: Arc::new(Statements::new(&database)),
            codec: Arc::new(AppCodec::new(sealer)),
            database,
        }
    }

    /// The sealed key of the newest application, if any; the master key is checked with it.
    ///
    /// # Errors
    ///
    /// The database fails.
    pub(crate) async fn newest_sealed_key(
        database: &PostgresDatabase,
    ) -> Result<Option<(AppIdent, Vec<u8>)>, StoreError> {
        let query = "SELECT ident, key_sealed FROM applications ORDER BY id DESC LIMIT 1";
        let found = database.session().await?.query_opt(query, &[]).await?;
        let newest = found.as_ref().map(newest_key_from_row).transpose()?;
        Ok(newest.flatten())
    }

    /// Runs a statement that notifies every process of a change. Returns whether it changed a row.
    async fn change(&self, sql: &str, values: Parameters<'_>) -> Result<bool, AppStoreError> {
        let changed = self.database.session().await?.execute(sql, values).await?;
        Ok(changed > 0)
    }

    async fn row(&self, sql: &str, ident: AppIdent) -> Result<Option<Row>, StoreError> {
        let session = self.database.session().await?;
        session.query_opt(sql, &[&ident.as_str()]).await
    }

    /// At most `limit` applications whose default version is not in `known`, oldest first.
    pub(super) async fn unusable_defaults_in(
        database: &PostgresDatabase,
        known: &[Version],
        limit: u32,
    ) -> Result<Vec<UnusableDefault>, StoreError> {
        let known: Vec<&str> = known.iter().map(Version::as_str).collect();
        let query = "SELECT ident, default_version FROM applications \
                     WHERE default_version IS NOT NULL AND default_version <> ALL ($1) ORDER BY id LIMIT $2";
        let session = database.session().await?;
        let rows = session.query(query, &[&known, &i64::from(limit)]).await?;
        rows.iter().map(unknown_default_from_row).collect()
    }

    async fn taken_among(&self, idents: &[&str]) -> Result<Vec<AppIdent>, AppStoreError> {
        let session = self.database.session().await?;
        let rows = session.query(TAKEN, &[&idents]).await?;
        let idents: Result<Vec<AppIdent>, _> = rows.iter().map(|row| row.parsed("ident")).collect();
        Ok(idents?)
    }
}

#[async_trait]
impl AppStore for PostgresAppStore {
    async fn find(&self, ident: AppIdent) -> Result<Option<App>, AppStoreError> {
        let Some(row) = self.row(&self.statements.find, ident).await? else {
            return Ok(None);
        };
        self.codec.open(ident, app_from_row(&row)?).map(Some)
    }

    async fn create(&self, app: NewApp) -> Result<(), AppStoreError> {
        let record = self.codec.new_row(app)?;
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

    async fn import(&self, apps: Vec<NewApp>) -> Result<ImportOutcome, AppStoreError> {
        let records: Result<Vec<_>, _> = apps
            .into_iter()
            .map(|app| self.codec.new_row(app))
            .collect();
        let columns = Columns::from_rows(records?);
        let idents: Vec<&str> = columns.idents.iter().map(AppIdent::as_str).collect();
        let taken = self.taken_among(&idents).await?;
        if !taken.is_empty() {
            return Ok(ImportOutcome::Taken(taken));
        }
        let values: Parameters<'_> = &[
            &idents,
            &columns.names,
            &columns.created_at,
            &columns.keys_sealed,
            &columns.sign_profiles,
            &columns.return_to_origins,
            &columns.default_versions,
        ];
        let session = self.database.session().await?;
        match session.execute(&self.statements.import, values).await {
            Ok(_) => Ok(ImportOutcome::Done),
            // Another process has just taken an ident: nothing was written.
            Err(StoreError::Postgres(error))
                if error.sql_state() == Some(&SqlState::UNIQUE_VIOLATION) =>
            {
                self.taken_among(&idents).await.map(ImportOutcome::Taken)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn taken(&self, idents: Vec<AppIdent>) -> Result<Vec<AppIdent>, AppStoreError> {
        let idents: Vec<&str> = idents.iter().map(AppIdent::as_str).collect();
        self.taken_among(&idents).await
    }

    async fn update(&self, update: AppUpdate) -> Result<bool, AppStoreError> {
        let ident = update.ident;
        let record = AppRowUpdate::new(update)?;
        let [per_second, burst] = record.rate_columns();
        let values: Parameters<'_> = &[
            &ident.as_str(),
            &record.name,
            &record.return_to_origins,
            &record.sign_profile.is_change(),
            &record.sign_profile.value(),
            &record.default_version.is_change(),
            &record.default_version.value(),
            &record.rate_limit.is_change(),
            &per_second,
            &burst,
        ];
        self.change(&self.statements.update, values).await
    }

    async fn delete_previous_keys(&self, ended_before: Timestamp) -> Result<u64, AppStoreError> {
        let delete = "UPDATE applications SET previous_sealed = NULL, previous_until = NULL \
                      WHERE previous_until < $1";
        let session = self.database.session().await?;
        Ok(session
            .execute(delete, &[&ended_before.as_millis()])
            .await?)
    }

    async fn summary(&self, ident: AppIdent) -> Result<Option<AppSummary>, AppStoreError> {
        let row = self.row(&self.statements.summary, ident).await?;
        Ok(row.as_ref().map(summary_from_row).transpose()?)
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
            last_id = last.number("id")?;
            let page: Result<Vec<_>, _> = rows.iter().map(summary_from_row).collect();
            all.extend(page?);
        }
    }

    async fn rotate(&self, rotation: Rotation) -> Result<RotationOutcome, AppStoreError> {
        let Rotation {
            ident,
            key,
            overlap,
            ends_running_overlap,
            now,
        } = rotation;
        let until = now.plus(overlap).as_millis();
        let sealed = self.codec.seal(&key, ident, Slot::Current)?;
        for _ in 0..MAX_ROTATION_ATTEMPTS {
            let Some(row) = self.row(&self.statements.rotation_state, ident).await? else {
                return Ok(RotationOutcome::Unknown);
            };
            let (running, current) = rotation_state_from_row(&row)?;
            match running.filter(|running| *running >= now.as_millis()) {
                Some(until) if !ends_running_overlap => {
                    let until = Timestamp::from_millis(until);
                    return Ok(RotationOutcome::Overlapping { until });
                }
                _ => {}
            }
            let previous = self.codec.seal_as_previous(&current, ident, until)?;
            let values: Parameters<'_> = &[&ident.as_str(), &previous, &until, &sealed, &current];
            // If no row changed, another process has rotated the key meanwhile: try again.
            if self.change(&self.statements.rotate, values).await? {
                return Ok(RotationOutcome::Done);
            }
        }
        Err(StoreError::Busy.into())
    }

    async fn set_state(&self, ident: AppIdent, state: AppState) -> Result<bool, AppStoreError> {
        let values: Parameters<'_> = &[&ident.as_str(), &state.as_str()];
        self.change(&self.statements.set_state, values).await
    }

    async fn delete(&self, ident: AppIdent) -> Result<bool, AppStoreError> {
        self.change(&self.statements.delete, &[&ident.as_str()])
            .await
    }
}

const INSERT: &str = "INSERT INTO applications (ident, name, state, created_at, key_sealed, sign_profile, \
                      return_to_origins, default_version)";

const TAKEN: &str = "SELECT ident FROM applications WHERE ident = ANY ($1)";

/// Rows as columns: the parameters of one bulk statement.
#[derive(Default)]
struct Columns {
    idents: Vec<AppIdent>,
    names: Vec<String>,
    created_at: Vec<i64>,
    keys_sealed: Vec<Vec<u8>>,
    sign_profiles: Vec<Option<String>>,
    return_to_origins: Vec<String>,
    default_versions: Vec<Option<String>>,
}

impl Columns {
    fn from_rows(rows: Vec<NewAppRow>) -> Self {
        let mut columns = Self::default();
        for row in rows {
            columns.idents.push(row.ident);
            columns.names.push(row.name);
            columns.created_at.push(row.created_at);
            columns.keys_sealed.push(row.key_sealed);
            columns.sign_profiles.push(row.sign_profile);
            columns.return_to_origins.push(row.return_to_origins);
            columns.default_versions.push(row.default_version);
        }
        columns
    }
}

/// The SQL statements. Those that notify other processes depend on the server.
#[derive(Debug)]
struct Statements {
    find: String,
    summary: String,
    list: String,
    rotation_state: String,
    create: String,
    import: String,
    update: String,
    rotate: String,
    set_state: String,
    delete: String,
}

impl Statements {
    fn new(database: &PostgresDatabase) -> Self {
        // The notification's key is the ident's bytes. The cast to bytea only treats backslashes specially; idents have
        // none.
        let with_notification = |write: &str| {
            let write = format!("{write} RETURNING ident::bytea AS key");
            with_notification(database, Topic::Application, &write)
        };
        Self {
            find: format!("SELECT {APP_COLUMNS} FROM applications WHERE ident = $1"),
            summary: format!("SELECT {SUMMARY_COLUMNS} FROM applications WHERE ident = $1"),
            list: format!(
                "SELECT {SUMMARY_COLUMNS}, id FROM applications WHERE id > $1 ORDER BY id LIMIT $2"
            ),
            rotation_state: "SELECT previous_until, key_sealed FROM applications WHERE ident = $1"
                .to_owned(),
            create: with_notification(&format!(
                "{INSERT} VALUES ($1, $2, 'active', $3, $4, $5, $6, $7)"
            )),
            import: with_bulk_notification(
                database,
                Topic::Application,
                &format!(
                    "{INSERT} SELECT ident, name, 'active', created_at, key_sealed, sign_profile, \
                     return_to_origins, default_version \
                     FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[], $5::text[], $6::text[], \
                     $7::text[]) AS given (ident, name, created_at, key_sealed, sign_profile, \
                     return_to_origins, default_version) RETURNING 1"
                ),
            ),
            update: with_notification(
                "UPDATE applications SET name = coalesce($2, name), \
                 return_to_origins = coalesce($3, return_to_origins), \
                 sign_profile = CASE WHEN $4 THEN $5 ELSE sign_profile END, \
                 default_version = CASE WHEN $6 THEN $7 ELSE default_version END, \
                 rate_per_second = CASE WHEN $8 THEN $9 ELSE rate_per_second END, \
                 rate_burst = CASE WHEN $8 THEN $10 ELSE rate_burst END WHERE ident = $1",
            ),
            rotate: with_notification(
                "UPDATE applications SET previous_sealed = $2, previous_until = $3, key_sealed = $4 \
                 WHERE ident = $1 AND key_sealed = $5",
            ),
            set_state: with_notification("UPDATE applications SET state = $2 WHERE ident = $1"),
            delete: with_notification("DELETE FROM applications WHERE ident = $1"),
        }
    }
}
