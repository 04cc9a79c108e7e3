//! Migrations on a server, by one process at a time.
//!
//! No statement is prepared: behind a pooler, one that is still open at the end of the transaction would stay with the
//! connection.

use std::time::Duration;

use tokio_postgres::{Client, Transaction, error::SqlState, types::Type};

use super::{
    connect::{is_in_use, within},
    statements::read,
};
use crate::{
    FromRow, OpenError, StoreError,
    error::SchemaError,
    schema::{Applied, Migration, RAISE_NEEDS, Schema},
};

/// Attempts while a table is in use for longer than [`LIMITS`] allows.
const ATTEMPTS: u32 = 20;
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// No timeout, except for waiting for a table's lock: other programs' statements queue behind that wait. For the transaction
/// only: a pooler may give its connection to others.
const LIMITS: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '1s'; \
                      SET LOCAL idle_in_transaction_session_timeout = '10s'";

/// The lease of the process that migrates: a row of its transaction. The same row of another process waits until that
/// transaction ends, also because its process or connection died. Unlike advisory locks, this needs nothing of the
/// connection, which a pooler may give to others, and holds on engines without such locks.
pub(super) const LEASE: &str = "INSERT INTO migrations (owner, number, name, sqlite, postgres, oldest, program) \
                     VALUES ('lease', 0, '', '', '', 0, '')";
/// The row is never committed, but it still makes others wait.
const END_LEASE: &str = "DELETE FROM migrations WHERE owner = 'lease'";

pub(super) const HISTORY: &str = "CREATE TABLE IF NOT EXISTS migrations (
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
    let (mut attempts, mut is_waiting) = (1..ATTEMPTS, false);
    loop {
        match migrate_once(client, schema, program, limit).await {
            Ok(Done::Migrated) => return Ok(()),
            // However long: another process may migrate large tables.
            Ok(Done::Leased) if !std::mem::replace(&mut is_waiting, true) => {
                tracing::info!(
                    "another process is migrating the database: waiting for it to finish"
                );
            }
            Ok(Done::Leased) => {}
            Err(SchemaError::Store(cause)) if is_created(&cause) && attempts.next().is_some() => {}
            Err(SchemaError::Failed { cause, .. } | SchemaError::Store(cause))
                if is_in_use(&cause) && attempts.next().is_some() => {}
            Err(cause) => {
                return Err(OpenError::Schema {
                    database: server.to_owned(),
                    cause: Box::new(cause),
                });
            }
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Whether another process has created the table of migrations in this moment: `IF NOT EXISTS` reads before it writes.
pub(super) fn is_created(cause: &StoreError) -> bool {
    let created = [&SqlState::DUPLICATE_TABLE, &SqlState::DUPLICATE_OBJECT];
    matches!(cause, StoreError::Postgres(cause) if cause.sql_state().is_some_and(|state| created.contains(&state)))
}

/// How an attempt ended.
enum Done {
    /// Nothing is missing any more.
    Migrated,
    /// Another process has the lease.
    Leased,
}

async fn migrate_once(
    client: &mut Client,
    schema: &Schema<'_>,
    program: &str,
    limit: Duration,
) -> Result<Done, SchemaError> {
    let transaction = within(limit, client.transaction()).await?;
    within(limit, transaction.batch_execute(LIMITS)).await?;
    // Without the lease: a role that may create and write nothing can still use what is complete.
    let exists = within(limit, transaction.query_typed_one(HAS_HISTORY, &[])).await?;
    if exists.try_get(0).map_err(StoreError::from)? {
        let applied = within(limit, applied(&transaction, schema.owner)).await?;
        let is_complete = schema.missing(&applied, |own| own.postgres)?.is_empty();
        if is_complete && !schema.raises_needs(&applied) {
            return Ok(Done::Migrated);
        }
    }
    let leased = within(
        limit,
        transaction.batch_execute(&format!("{HISTORY}; {LEASE}")),
    )
    .await;
    match leased {
        Err(error) if is_in_use(&error) || error.is_duplicate() => return Ok(Done::Leased),
        leased => leased?,
    }
    let applied = within(limit, applied(&transaction, schema.owner)).await?;
    apply_missing(&transaction, schema, &applied, program).await?;
    transaction
        .batch_execute(END_LEASE)
        .await
        .map_err(StoreError::from)?;
    transaction.commit().await.map_err(StoreError::from)?;
    Ok(Done::Migrated)
}

async fn apply_missing(
    transaction: &Transaction<'_>,
    schema: &Schema<'_>,
    applied: &[Applied],
    program: &str,
) -> Result<(), SchemaError> {
    let missing = schema.missing(applied, |own| own.postgres)?;
    if missing.is_empty() {
        if schema.raises_needs(applied) {
            let needs = i64::try_from(schema.oldest).unwrap_or(i64::MAX);
            let raised = transaction
                .execute_typed(
                    RAISE_NEEDS,
                    &[(&schema.owner, Type::TEXT), (&needs, Type::INT8)],
                )
                .await;
            raised.map_err(StoreError::from)?;
        }
        return Ok(());
    }
    let before = rows(transaction, OBJECTS).await?;
    for (migration, number) in missing.iter().zip(applied.len() + 1..) {
        let done = apply(transaction, schema, migration, number, program).await;
        done.map_err(|cause| SchemaError::failed(schema.owner, migration.name, cause))?;
    }
    let (after, columns) = (
        rows(transaction, OBJECTS).await?,
        rows(transaction, COLUMNS).await?,
    );
    schema.check(before, after, &columns)
}

async fn applied(all: &Transaction<'_>, owner: &str) -> Result<Vec<Applied>, StoreError> {
    read(&all.query_typed(APPLIED, &[(&owner, Type::TEXT)]).await?)
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
    all.execute_typed(
        "INSERT INTO migrations (owner, number, name, sqlite, postgres, oldest, program) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            (&schema.owner, Type::TEXT),
            (&number, Type::INT8),
            (&migration.name, Type::TEXT),
            (&migration.sqlite, Type::TEXT),
            (&migration.postgres, Type::TEXT),
            (&oldest, Type::INT8),
            (&program, Type::TEXT),
        ],
    )
    .await
    .map(drop)
}

async fn rows<T: FromRow>(all: &Transaction<'_>, query: &str) -> Result<Vec<T>, StoreError> {
    read(&all.query_typed(query, &[]).await?)
}
