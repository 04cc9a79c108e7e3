//! Statements for both databases, in SQLite: one transaction for each call that writes.

use std::time::{Duration, Instant};

use rusqlite::{Connection, Statement};

use super::{SqliteDatabase, changes};
use crate::{
    Batch, FromRow, Row, StoreError, Value,
    changes::{NO_KEY, Records},
    value::GIVEN,
};

impl SqliteDatabase {
    pub(crate) async fn rows<T: FromRow>(
        &self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Vec<T>, StoreError> {
        let sql = in_dialect(sql);
        self.call(move |connection| run(connection, &sql, &values))
            .await
    }

    pub(crate) async fn write_in_order<T: FromRow>(
        &self,
        statements: &[&str],
        values: Vec<Value>,
    ) -> Result<Vec<T>, StoreError> {
        let statements: Vec<_> = statements.iter().map(|sql| in_dialect(sql)).collect();
        let write = move |all: &Connection| {
            let (first, others) = statements.split_first().expect("there is a statement");
            let rows = run(all, first, &values)?;
            if !rows.is_empty() {
                for statement in others {
                    execute(all, statement, &values)?;
                }
            }
            Ok::<_, StoreError>(rows)
        };
        self.write(write).await
    }

    pub(crate) async fn execute(&self, sql: &str, values: Vec<Value>) -> Result<usize, StoreError> {
        let sql = in_dialect(sql);
        self.write(move |all| execute(all, &sql, &values)).await
    }

    pub(crate) async fn change(
        &self,
        records: Records,
        (sql, key): (&str, &str),
        values: impl FnOnce(Duration) -> Vec<Value> + Send + 'static,
    ) -> Result<usize, StoreError> {
        let sql = in_dialect(&returning(sql, key));
        let called_at = Instant::now();
        let change = move |all: &Connection| {
            // The write lock is held now.
            let values = values(called_at.elapsed());
            let keys = run(all, &sql, &values)?;
            record(all, records, keys, true)
        };
        self.write(change).await
    }

    pub(crate) async fn write_batch<T: FromRow>(&self, batch: Batch) -> Result<Vec<T>, StoreError> {
        self.write(move |all| run_batch(all, &batch)).await
    }

    pub(crate) async fn change_batch(
        &self,
        records: Records,
        mut batch: Batch,
        key: Option<&str>,
    ) -> Result<usize, StoreError> {
        batch.sql = returning(&batch.sql, key.unwrap_or(NO_KEY));
        let names_each = key.is_some();
        let write = move |all: &Connection| {
            let keys = run_batch(all, &batch)?;
            record(all, records, keys, names_each)
        };
        self.write(write).await
    }

    pub(crate) async fn write_once(
        &self,
        (guard, values): (&str, Vec<Value>),
        batches: Vec<Batch>,
    ) -> Result<(), StoreError> {
        let guard = in_dialect(guard);
        let write = move |all: &Connection| {
            if execute(all, &guard, &values)? > 0 {
                for batch in &batches {
                    run_batch::<()>(all, batch)?;
                }
            }
            Ok::<_, StoreError>(())
        };
        self.write(write).await
    }
}

/// The statement returns the keys of the rows that it changes. SQLite makes a text of several blobs.
fn returning(sql: &str, key: &str) -> String {
    format!("{sql} RETURNING CAST({key} AS BLOB)")
}

/// Writes what the feed and the audit have of changed rows, and returns their number. The feed has each key, or one entry
/// without a key.
fn record(
    all: &Connection,
    (topic, audit): Records,
    keys: Vec<(Vec<u8>,)>,
    names_each: bool,
) -> Result<usize, StoreError> {
    if keys.is_empty() {
        return Ok(0);
    }
    let keys: Vec<_> = keys.into_iter().map(|(key,)| key).collect();
    if let Some(topic) = topic {
        let keys_in_entry = if names_each {
            topic.keys_in_entry()
        } else {
            // All of them are empty.
            keys.len()
        };
        for keys in keys.chunks(keys_in_entry) {
            changes::record(all, topic, &keys.concat())?;
        }
    }
    if let Some(audit) = audit {
        run_batch::<()>(all, &audit.into_batch())?;
    }
    Ok(keys.len())
}

pub(super) fn run<T: FromRow>(
    connection: &Connection,
    sql: &str,
    values: &[Value],
) -> Result<Vec<T>, StoreError> {
    let mut all = Vec::new();
    let mut statement = connection.prepare_cached(sql)?;
    run_prepared(&mut statement, values, &mut all)?;
    Ok(all)
}

fn run_prepared<T: FromRow>(
    statement: &mut Statement<'_>,
    values: &[Value],
    all: &mut Vec<T>,
) -> Result<(), StoreError> {
    bind(statement, values)?;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        all.push(T::from_row(&Row::Sqlite(row))?);
    }
    Ok(())
}

fn execute(connection: &Connection, sql: &str, values: &[Value]) -> Result<usize, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    bind(&mut statement, values)?;
    Ok(statement.raw_execute()?)
}

/// Runs the statement for each row, which is its only given one.
fn run_batch<T: FromRow>(connection: &Connection, batch: &Batch) -> Result<Vec<T>, StoreError> {
    let columns = batch.columns().zip(1..);
    let columns: Vec<_> = columns
        .map(|((name, _), number)| format!("?{number} AS {name}"))
        .collect();
    let given = format!("(SELECT {}) AS given", columns.join(", "));
    let sql = batch.sql.replace(GIVEN, &given);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut all = Vec::new();
    // SQLite has no arrays, and no round trips that they would save.
    for row in &batch.rows {
        run_prepared(&mut statement, row, &mut all)?;
    }
    Ok(all)
}

/// Binds the values that the statement has parameters for: of several statements, each may need some only.
fn bind(statement: &mut Statement<'_>, values: &[Value]) -> rusqlite::Result<()> {
    for (index, value) in (1..=statement.parameter_count()).zip(values) {
        statement.raw_bind_parameter(index, value)?;
    }
    Ok(())
}

/// Numbered parameters: SQLite would number `$1` by its first appearance.
pub(super) fn in_dialect(sql: &str) -> String {
    sql.replace('$', "?")
}
