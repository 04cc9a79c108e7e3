//! Statements for both databases, in SQLite: one transaction for each call that writes.

use std::time::{Duration, Instant};

use rusqlite::{Connection, Statement, Transaction};

use super::{SqliteDatabase, changes};
use crate::{
    Changed, FromRow, Row, StoreError, Value,
    batch::{Batch, GIVEN},
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
        let write = move |all: &Transaction<'_>| {
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
        changed: Changed,
        (sql, key): (&str, &str),
        values: impl FnOnce(Duration) -> Vec<Value> + Send + 'static,
    ) -> Result<usize, StoreError> {
        let sql = in_dialect(&format!("{sql} RETURNING {key} AS key"));
        let called_at = Instant::now();
        let change = move |all: &Transaction<'_>| {
            // The write lock is held now.
            let values = values(called_at.elapsed());
            let mut statement = all.prepare_cached(&sql)?;
            bind(&mut statement, &values)?;
            let keys = statement.raw_query();
            let keys = keys.mapped(|row| Ok(row.get_ref("key")?.as_bytes()?.to_vec()));
            let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
            record_each(all, changed, &keys)
        };
        self.write(change).await
    }

    pub(crate) async fn write_batch<T: FromRow>(&self, batch: Batch) -> Result<Vec<T>, StoreError> {
        self.write(move |all| run_batch(all, &batch)).await
    }

    pub(crate) async fn change_many(
        &self,
        changed: Changed,
        batch: Batch,
    ) -> Result<usize, StoreError> {
        let write = move |all: &Transaction<'_>| {
            let number = run_batch::<()>(all, &batch)?.len();
            if number > 0 {
                if let Some(topic) = changed.topic() {
                    changes::record(all, topic, b"")?;
                }
                if let Some(audit) = changed.into_audit() {
                    run_batch::<()>(all, &audit.into_batch())?;
                }
            }
            Ok::<_, StoreError>(number)
        };
        self.write(write).await
    }

    pub(crate) async fn change_each(
        &self,
        changed: Changed,
        batch: Batch,
    ) -> Result<usize, StoreError> {
        let write = move |all: &Transaction<'_>| {
            let keys = run_batch::<Key>(all, &batch)?;
            let keys: Vec<_> = keys.into_iter().map(|Key(key)| key).collect();
            record_each(all, changed, &keys)
        };
        self.write(write).await
    }

    pub(crate) async fn write_once(
        &self,
        (guard, values): (&str, Vec<Value>),
        batches: Vec<Batch>,
    ) -> Result<(), StoreError> {
        let guard = in_dialect(guard);
        let write = move |all: &Transaction<'_>| {
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

/// The key of a changed row. Of several blobs, SQLite makes a text.
struct Key(Vec<u8>);

impl FromRow for Key {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        match row {
            Row::Sqlite(row) => {
                let bytes = row.get_ref("key")?.as_bytes();
                Ok(Self(bytes.map_err(rusqlite::Error::from)?.to_vec()))
            }
            Row::Postgres(row) => Ok(Self(row.try_get("key")?)),
        }
    }
}

/// Records the keys of changed rows, and what the audit says of them. Returns their number.
fn record_each(
    all: &Transaction<'_>,
    changed: Changed,
    keys: &[Vec<u8>],
) -> Result<usize, StoreError> {
    if let Some(topic) = changed.topic() {
        for keys in keys.chunks(topic.keys_in_entry()) {
            changes::record(all, topic, &keys.concat())?;
        }
    }
    if let (false, Some(audit)) = (keys.is_empty(), changed.into_audit()) {
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
    let columns = batch.columns.iter().enumerate();
    let columns: Vec<_> = columns
        .map(|(index, (name, _))| format!("?{} AS {name}", index + 1))
        .collect();
    let given = format!("(SELECT {}) AS given", columns.join(", "));
    let sql = batch.sql.replace(GIVEN, &given);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut all = Vec::new();
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
