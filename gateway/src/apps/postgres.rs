//! The store of applications on a server: the table `applications`. Every write is one statement.
//!
//! Connections are shared by all workers, each driven by the worker that made it. A worker hands over to whatever is
//! ready at every wait and never blocks, so that a call waits for another worker no longer than it does for its own.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_protocol::{app::AppIdent, version::Version};
use signpost_kit::clock::Timestamp;
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
        NewRecord, RECORD, Records, STORED_KEYS, SUMMARY, UpdateRecord, newest_from_row,
        record_from_row, rotating_from_row, stored_keys_from_row, summary_from_row,
        unknown_default_from_row,
    },
    reseal::{Resealed, reseal},
    seal::{Sealer, Slot},
    store::{
        AppStore, AppStoreError, AppSummary, AppUpdate, ImportOutcome, NewApp, Rotated, Rotation,
        UnknownDefault,
    },
};

/// How long a statement may run that writes many applications at once: 100,000 take about 2 s on an ordinary machine,
/// and only operators wait for it.
pub(crate) const BULK_STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// How often a rotation starts over because somebody else rotated the same application in between.
const MAX_ROTATION_ATTEMPTS: usize = 8;

/// Applications that are listed by one statement: far fewer than the shortest time for one allows.
const PAGE: i64 = 10_000;

/// Applications in Postgres.
#[derive(Clone, Debug)]
pub(crate) struct PostgresAppStore {
    database: PostgresDatabase,
    records: Arc<Records>,
    statements: Arc<Statements>,
}

impl PostgresAppStore {
    /// A store over an open database.
    #[must_use]
    pub(crate) fn new(database: PostgresDatabase, sealer: Sealer) -> Self {
        Self {
            statements: Arc::new(Statements::of(&database)),
            records: Arc::new(Records::new(sealer)),
            database,
        }
    }

    /// The newest application's key as it is sealed, if there is any: what a master key proves itself by.
    ///
    /// # Errors
    ///
    /// The database's own.
    pub(crate) async fn newest_sealed_key(
        database: &PostgresDatabase,
    ) -> Result<Option<(AppIdent, Vec<u8>)>, StoreError> {
        let query = "SELECT ident, key_sealed FROM applications ORDER BY id DESC LIMIT 1";
        let found = database.session().await?.query_opt(query, &[]).await?;
        let newest = found.as_ref().map(newest_from_row).transpose()?;
        Ok(newest.flatten())
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

    /// The same applications through another connection pool.
    pub(super) fn through(&self, database: PostgresDatabase) -> Self {
        Self {
            database,
            ..self.clone()
        }
    }

    /// Seals all keys anew that an older release sealed, in one statement. How many records there were; none where
    /// it was done before.
    ///
    /// # Errors
    ///
    /// The database's own, or the system has no random bytes.
    pub(super) async fn reseal(&self) -> Result<Option<usize>, AppStoreError> {
        let session = self.database.session().await?;
        let query = format!("SELECT {STORED_KEYS} FROM applications");
        let all: Result<Vec<_>, StoreError> = session
            .query(&query, &[])
            .await?
            .iter()
            .map(stored_keys_from_row)
            .collect();
        let Some(resealed) = reseal(self.records.sealer(), all?)? else {
            return Ok(None);
        };
        let column = |of: fn(&Resealed) -> &Vec<u8>| resealed.iter().map(of).collect::<Vec<_>>();
        let ids: Vec<i64> = resealed.iter().map(|keys| keys.id).collect();
        let (old, current) = (column(|keys| &keys.old), column(|keys| &keys.current));
        let previous: Vec<_> = resealed.iter().map(|keys| &keys.previous).collect();
        // Another gateway may do the same at the same time: then its keys stay.
        let update = "UPDATE applications SET key_sealed = fresh.key, previous_sealed = fresh.previous \
                      FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[]) \
                      AS fresh (id, old, key, previous) \
                      WHERE applications.id = fresh.id AND applications.key_sealed = fresh.old";
        let values: Parameters<'_> = &[&ids, &old, &current, &previous];
        session.execute(update, values).await?;
        Ok(Some(resealed.len()))
    }

    /// Applications whose default version is none of these, oldest first, at most so many.
    pub(super) async fn unknown_defaults_in(
        database: &PostgresDatabase,
        known: &[Version],
        limit: u32,
    ) -> Result<Vec<UnknownDefault>, StoreError> {
        let known: Vec<&str> = known.iter().map(Version::as_str).collect();
        let query = "SELECT ident, default_version FROM applications \
                     WHERE default_version IS NOT NULL AND default_version <> ALL ($1) ORDER BY id LIMIT $2";
        let session = database.session().await?;
        let rows = session.query(query, &[&known, &i64::from(limit)]).await?;
        rows.iter().map(unknown_default_from_row).collect()
    }

    async fn taken_of(&self, idents: &[&str]) -> Result<Vec<AppIdent>, AppStoreError> {
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
        self.records.open(ident, record_from_row(&row)?).map(Some)
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

    async fn import(&self, apps: Vec<NewApp>) -> Result<ImportOutcome, AppStoreError> {
        let records: Result<Vec<_>, _> = apps
            .into_iter()
            .map(|app| self.records.new_record(app))
            .collect();
        let columns = Columns::of(records?);
        let idents: Vec<&str> = columns.idents.iter().map(AppIdent::as_str).collect();
        let taken = self.taken_of(&idents).await?;
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
            // Somebody else has just taken an ident: nothing was written.
            Err(StoreError::Postgres(error))
                if error.sql_state() == Some(&SqlState::UNIQUE_VIOLATION) =>
            {
                self.taken_of(&idents).await.map(ImportOutcome::Taken)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn taken(&self, idents: Vec<AppIdent>) -> Result<Vec<AppIdent>, AppStoreError> {
        let idents: Vec<&str> = idents.iter().map(AppIdent::as_str).collect();
        self.taken_of(&idents).await
    }

    async fn update(&self, update: AppUpdate) -> Result<bool, AppStoreError> {
        let ident = update.ident;
        let record = UpdateRecord::of(update)?;
        let values: Parameters<'_> = &[
            &ident.as_str(),
            &record.name,
            &record.return_to_origins,
            &record.sign_profile.is_change(),
            &record.sign_profile.value(),
            &record.default_version.is_change(),
            &record.default_version.value(),
        ];
        self.change(&self.statements.update, values).await
    }

    async fn forget_previous(&self, ended_before: Timestamp) -> Result<u64, AppStoreError> {
        let forget = "UPDATE applications SET previous_sealed = NULL, previous_until = NULL \
                      WHERE previous_until < $1";
        let session = self.database.session().await?;
        Ok(session
            .execute(forget, &[&ended_before.as_millis()])
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

    async fn rotate(&self, rotation: Rotation) -> Result<Rotated, AppStoreError> {
        let Rotation {
            ident,
            key,
            overlap,
            ends_running_overlap,
            now,
        } = rotation;
        let until = now.plus(overlap).as_millis();
        let sealed = self.records.seal(&key, ident, Slot::Current)?;
        for _ in 0..MAX_ROTATION_ATTEMPTS {
            let Some(row) = self.row(&self.statements.rotating, ident).await? else {
                return Ok(Rotated::Unknown);
            };
            let (running, current) = rotating_from_row(&row)?;
            match running.filter(|running| *running >= now.as_millis()) {
                Some(until) if !ends_running_overlap => {
                    let until = Timestamp::from_millis(until);
                    return Ok(Rotated::Overlapping { until });
                }
                _ => {}
            }
            let previous = self.records.seal_as_previous(&current, ident, until)?;
            let values: Parameters<'_> = &[&ident.as_str(), &previous, &until, &sealed, &current];
            // Otherwise somebody else has rotated it meanwhile.
            if self.change(&self.statements.rotate, values).await? {
                return Ok(Rotated::Done);
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

/// Records column by column, as one statement takes them.
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
    fn of(records: Vec<NewRecord>) -> Self {
        let mut columns = Self::default();
        for record in records {
            columns.idents.push(record.ident);
            columns.names.push(record.name);
            columns.created_at.push(record.created_at);
            columns.keys_sealed.push(record.key_sealed);
            columns.sign_profiles.push(record.sign_profile);
            columns.return_to_origins.push(record.return_to_origins);
            columns.default_versions.push(record.default_version);
        }
        columns
    }
}

/// The statements, whole: those that tell others of a change depend on the server.
#[derive(Debug)]
struct Statements {
    find: String,
    summary: String,
    list: String,
    rotating: String,
    create: String,
    import: String,
    update: String,
    rotate: String,
    set_state: String,
    delete: String,
}

impl Statements {
    fn of(database: &PostgresDatabase) -> Self {
        // The key that is told is the ident's bytes: none of them is a backslash, which alone a cast reads otherwise.
        let with_notification = |write: &str| {
            let write = format!("{write} RETURNING ident::bytea AS key");
            with_notification(database, Topic::Application, &write)
        };
        Self {
            find: format!("SELECT {RECORD} FROM applications WHERE ident = $1"),
            summary: format!("SELECT {SUMMARY} FROM applications WHERE ident = $1"),
            list: format!(
                "SELECT {SUMMARY}, id FROM applications WHERE id > $1 ORDER BY id LIMIT $2"
            ),
            rotating: "SELECT previous_until, key_sealed FROM applications WHERE ident = $1"
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
                 default_version = CASE WHEN $6 THEN $7 ELSE default_version END WHERE ident = $1",
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
