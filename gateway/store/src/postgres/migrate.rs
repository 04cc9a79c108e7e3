//! Migrations on a server, by one process at a time.

use std::time::Duration;

use tokio_postgres::{Client, Transaction};

use super::{
    connect::{is_in_use, is_unavailable, within},
    statements::read,
};
use crate::{
    FromRow, OpenError, StoreError,
    error::SchemaError,
    schema::{Applied, Migration, RAISE_NEEDS, Schema},
};

/// Number of the advisory lock: the bytes of "signpost", so that no other program uses it.
const LOCK: i64 = 0x7369_676e_706f_7374;
/// Attempts without advisory locks (one process migrates; the attempts of the others fail, and they retry), and while a
/// table is in use for longer than [`SESSION`] allows.
const ATTEMPTS: u32 = 20;
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// No timeout, except for waiting for a table's lock: other programs' statements queue behind that wait.
const SESSION: &str = "SET statement_timeout = 0; SET lock_timeout = '1s'";

const HISTORY: &str = "CREATE TABLE IF NOT EXISTS migrations (
    owner       TEXT        NOT NULL,
    number      BIGINT      NOT NULL,
    name        TEXT        NOT NULL,
    sqlite      TEXT        NOT NULL,
    postgres    TEXT        NOT NULL,
    oldest      BIGINT      NOT NULL,
    program     TEXT        NOT NULL,
    applied_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (owner, number)
)";

/// Asked first: a program may have no right to create tables once they exist.
const HAS_HISTORY: &str = "SELECT to_regclass('migrations') IS NOT NULL";

const APPLIED: &str = "SELECT name, postgres AS statements, oldest, program FROM migrations \
                       WHERE owner = $1 ORDER BY number";

const COLUMNS: &str = "SELECT CAST(table_name AS text) AS table_name, CAST(column_name AS text) AS name, \
                       CAST(data_type AS text) AS definition FROM information_schema.columns \
                       WHERE table_schema = current_schema()";

/// A column or constraint has its table's name, as the statement that changed it has.
const OBJECTS: &str = "SELECT CAST(table_name AS text) AS table_name, CAST(table_name AS text) AS name, \
                       column_name || ' ' || data_type || ' ' || is_nullable || ' ' || coalesce(column_default, '') \
                       AS definition FROM information_schema.columns WHERE table_schema = current_schema() \
                       UNION ALL SELECT CAST(tablename AS text), CAST(indexname AS text), indexdef FROM pg_indexes \
                       WHERE schemaname = current_schema() \
                       UNION ALL SELECT CAST(event_object_table AS text), CAST(trigger_name AS text), \
                       CAST(action_statement AS text) FROM information_schema.triggers \
                       WHERE trigger_schema = current_schema() \
                       UNION ALL SELECT CAST(routine_name AS text), CAST(routine_name AS text), \
                       coalesce(routine_definition, '') FROM information_schema.routines \
                       WHERE routine_schema = current_schema() \
                       UNION ALL SELECT CAST(table_name AS text), CAST(table_name AS text), \
                       CAST(constraint_name AS text) FROM information_schema.table_constraints \
                       WHERE constraint_schema = current_schema() ORDER BY 1, 2, 3";

/// Applies the missing migrations, all or none. `limit` is the timeout of each statement that waits for no migration.
pub(super) async fn migrate(
    client: &mut Client,
    server: &str,
    schema: &Schema<'_>,
    program: &str,
    limit: Duration,
) -> Result<(), OpenError> {
    let refused = |cause| OpenError::Server {
        server: server.to_owned(),
        cause,
    };
    let set = within(limit, client.batch_execute(SESSION)).await;
    set.map_err(refused)?;
    let is_locked = match lock(client, limit).await {
        Ok(()) => true,
        Err(StoreError::Postgres(cause)) if is_unavailable(cause.sql_state()) => false,
        Err(error) => return Err(refused(error)),
    };
    let migrated = try_migrate(client, schema, program, is_locked, limit).await;
    if is_locked {
        let unlocked = client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]);
        within(limit, unlocked).await.map_err(refused)?;
    }
    migrated.map_err(|cause| OpenError::Schema {
        database: server.to_owned(),
        cause: Box::new(cause),
    })
}

/// Waits for the lock without a timeout: another process may migrate large tables.
async fn lock(client: &Client, limit: Duration) -> Result<(), StoreError> {
    // Tried first, so that the log can say what the start waits for.
    let tried = client.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]);
    if within(limit, tried).await?.try_get(0)? {
        return Ok(());
    }
    tracing::info!("another process is migrating the database: waiting for it to finish");
    client
        .batch_execute(&format!(
            "SET lock_timeout = 0; SELECT pg_advisory_lock({LOCK}); {SESSION}"
        ))
        .await?;
    Ok(())
}

async fn try_migrate(
    client: &mut Client,
    schema: &Schema<'_>,
    program: &str,
    is_locked: bool,
    limit: Duration,
) -> Result<(), SchemaError> {
    let mut attempts = 1..ATTEMPTS;
    loop {
        let error = match migrate_once(client, schema, program, limit).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let may_succeed_later = match &error {
            // A server that hangs: further attempts would hold up the start for minutes.
            SchemaError::Store(StoreError::TimedOut) => false,
            SchemaError::Failed { cause, .. } | SchemaError::Store(cause) => {
                !is_locked || is_in_use(cause)
            }
            // What another process has committed meanwhile looks like this one's.
            SchemaError::NotOwn { .. } => !is_locked,
            _ => false,
        };
        if !may_succeed_later || attempts.next().is_none() {
            return Err(error);
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

async fn migrate_once(
    client: &mut Client,
    schema: &Schema<'_>,
    program: &str,
    limit: Duration,
) -> Result<(), SchemaError> {
    let transaction = within(limit, client.transaction()).await?;
    let applied = within(limit, applied(&transaction, schema.owner)).await?;
    let missing = schema.missing(&applied, |own| own.postgres)?;
    if missing.is_empty() {
        if schema.raises_needs(&applied) {
            let needs = i64::try_from(schema.oldest).unwrap_or(i64::MAX);
            let raised = transaction
                .execute(RAISE_NEEDS, &[&schema.owner, &needs])
                .await;
            raised.map_err(StoreError::from)?;
            transaction.commit().await.map_err(StoreError::from)?;
        }
        return Ok(());
    }
    let before = rows(&transaction, OBJECTS).await?;
    for (migration, number) in missing.iter().zip(applied.len() + 1..) {
        let done = apply(&transaction, schema, migration, number, program).await;
        done.map_err(|cause| SchemaError::failed(schema.owner, migration.name, cause))?;
    }
    let (after, columns) = (
        rows(&transaction, OBJECTS).await?,
        rows(&transaction, COLUMNS).await?,
    );
    schema.check(before, after, &columns)?;
    Ok(transaction.commit().await.map_err(StoreError::from)?)
}

async fn applied(all: &Transaction<'_>, owner: &str) -> Result<Vec<Applied>, StoreError> {
    let exists = all.query_one(HAS_HISTORY, &[]).await?;
    if !exists.try_get::<_, bool>(0)? {
        all.batch_execute(HISTORY).await?;
    }
    read(&all.query(APPLIED, &[&owner]).await?)
}

async fn apply(
    all: &Transaction<'_>,
    schema: &Schema<'_>,
    migration: &Migration<'_>,
    number: usize,
    program: &str,
) -> Result<(), tokio_postgres::Error> {
    all.batch_execute(migration.postgres).await?;
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let oldest = i64::try_from(schema.oldest).unwrap_or(i64::MAX);
    all.execute(
        "INSERT INTO migrations (owner, number, name, sqlite, postgres, oldest, program) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            &schema.owner,
            &number,
            &migration.name,
            &migration.sqlite,
            &migration.postgres,
            &oldest,
            &program,
        ],
    )
    .await
    .map(drop)
}

async fn rows<T: FromRow>(all: &Transaction<'_>, query: &str) -> Result<Vec<T>, StoreError> {
    read(&all.query(query, &[]).await?)
}
