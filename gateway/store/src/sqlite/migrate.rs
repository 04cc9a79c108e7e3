//! Migrations of a SQLite file, under the lock of starting processes.

use rusqlite::{Connection, TransactionBehavior};

use super::statements::{in_dialect, run};
use crate::{
    FromRow, StoreError, Value,
    error::SchemaError,
    schema::{Applied, Migration, RAISE_NEEDS, Schema},
    values,
};

const HISTORY: &str = "CREATE TABLE IF NOT EXISTS migrations (
    owner       TEXT    NOT NULL, -- 'signpost', or a version
    number      INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    sqlite      TEXT    NOT NULL, -- the statements, as the next one
    postgres    TEXT    NOT NULL, -- for `store copy`
    oldest      INTEGER NOT NULL, -- the migration that programs must have
    program     TEXT    NOT NULL,
    applied_at  INTEGER NOT NULL DEFAULT (unixepoch()), -- UTC seconds, the database's clock
    PRIMARY KEY (owner, number)
) STRICT";

const HAS_HISTORY: &str =
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'";

const APPLIED: &str = "SELECT name, sqlite AS statements, oldest, program FROM migrations \
                       WHERE owner = ?1 ORDER BY number";

const OBJECTS: &str = "SELECT tbl_name AS table_name, name, coalesce(sql, '') AS definition FROM sqlite_schema \
                       WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";

const COLUMNS: &str = "SELECT tables.name AS table_name, columns.name, \
                       CASE WHEN tables.strict THEN upper(columns.type) ELSE columns.type || ', not STRICT' END AS definition \
                       FROM pragma_table_list AS tables, pragma_table_info(tables.name) AS columns \
                       WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";

const BROKEN_REFERENCES: &str = "SELECT \"table\" FROM pragma_foreign_key_check LIMIT 1";

/// Applies the missing migrations in one transaction. The caller holds the lock of starting processes.
pub(super) fn migrate(
    connection: &mut Connection,
    schema: &Schema<'_>,
    program: &str,
) -> Result<(), SchemaError> {
    // Without the write lock: most starts find nothing to do, and other programs write meanwhile.
    let applied = applied(connection, schema.owner)?;
    let missing = schema.missing(&applied, |own| own.sqlite)?;
    if missing.is_empty() {
        if schema.raises_needs(&applied) {
            let raised =
                connection.execute(&in_dialect(RAISE_NEEDS), (schema.owner, schema.oldest));
            raised.map_err(StoreError::from)?;
        }
        return Ok(());
    }
    // Otherwise a table that is rebuilt, by dropping it, would delete the rows that refer to it.
    switch_references(connection, "OFF")?;
    let migrated = apply(connection, schema, missing, applied.len(), program);
    switch_references(connection, "ON")?;
    migrated
}

/// Whether the owner's tables are there, and this program can work with them.
pub(super) fn check(connection: &Connection, schema: &Schema<'_>) -> Result<bool, SchemaError> {
    if rows::<()>(connection, HAS_HISTORY, Vec::new())?.is_empty() {
        return Ok(false);
    }
    let applied = applied(connection, schema.owner)?;
    schema.missing(&applied, |own| own.sqlite)?;
    Ok(!applied.is_empty())
}

fn apply(
    connection: &mut Connection,
    schema: &Schema<'_>,
    missing: &[Migration<'_>],
    applied: usize,
    program: &str,
) -> Result<(), SchemaError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(StoreError::from)?;
    let objects = |query| rows(&transaction, query, Vec::new());
    let before = objects(OBJECTS)?;
    for (migration, number) in missing.iter().zip(applied + 1..) {
        let failed = |cause| SchemaError::failed(schema.owner, migration.name, cause);
        transaction
            .execute_batch(migration.sqlite)
            .map_err(failed)?;
        transaction
            .execute(
                "INSERT INTO migrations (owner, number, name, sqlite, postgres, oldest, program) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                (
                    schema.owner,
                    number,
                    migration.name,
                    migration.sqlite,
                    migration.postgres,
                    schema.oldest,
                    program,
                ),
            )
            .map_err(failed)?;
    }
    schema.check(before, objects(OBJECTS)?, &objects(COLUMNS)?)?;
    // Nothing has checked references until here, since `foreign_keys` is off.
    let broken = rows::<(String,)>(&transaction, BROKEN_REFERENCES, Vec::new())?;
    if let Some((table,)) = broken.into_iter().next() {
        return Err(SchemaError::References { table });
    }
    Ok(transaction.commit().map_err(StoreError::from)?)
}

/// Has no effect within a transaction.
fn switch_references(connection: &Connection, to: &str) -> Result<(), StoreError> {
    Ok(connection.execute_batch(&format!("PRAGMA foreign_keys = {to}"))?)
}

fn applied(connection: &Connection, owner: &str) -> Result<Vec<Applied>, StoreError> {
    if rows::<()>(connection, HAS_HISTORY, Vec::new())?.is_empty() {
        connection.execute_batch(HISTORY)?;
    }
    rows(connection, APPLIED, values![owner])
}

fn rows<T: FromRow>(
    connection: &Connection,
    query: &str,
    values: Vec<Value>,
) -> Result<Vec<T>, StoreError> {
    run(connection, query, &values)
}
