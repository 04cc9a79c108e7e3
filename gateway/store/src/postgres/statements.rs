//! Statements for both databases, in Postgres: each call that writes is one statement.

use std::time::{Duration, Instant};

use tokio_postgres::types::ToSql;

use super::{
    PostgresDatabase,
    changes::{with_bulk_notification, with_notification},
    row_count,
    session::Session,
};
use crate::{
    Batch, FromRow, Row, StoreError, Value,
    audit::Audit,
    changes::{NO_KEY, Records},
    value::GIVEN,
};

impl PostgresDatabase {
    pub(crate) async fn rows<T: FromRow>(
        &self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self
            .session()
            .await?
            .query(sql, &parameters(&values))
            .await?;
        read(&rows)
    }

    pub(crate) async fn execute(&self, sql: &str, values: Vec<Value>) -> Result<usize, StoreError> {
        let session = self.session().await?;
        Ok(row_count(session.execute(sql, &parameters(&values)).await?))
    }

    pub(crate) async fn change(
        &self,
        records: Records,
        (sql, key): (&str, &str),
        values: impl FnOnce(Duration) -> Vec<Value> + Send + 'static,
    ) -> Result<usize, StoreError> {
        let called_at = Instant::now();
        let session = self.session().await?;
        let values = values(called_at.elapsed());
        self.record(&session, records, (sql, Some(key)), &values)
            .await
    }

    pub(crate) async fn write_batch<T: FromRow>(&self, batch: Batch) -> Result<Vec<T>, StoreError> {
        let (sql, columns) = in_columns(&batch, 0, "");
        let session = self.session().await?;
        read(&session.query(&sql, &parameters(&columns)).await?)
    }

    pub(crate) async fn change_batch(
        &self,
        records: Records,
        batch: Batch,
        key: Option<&str>,
    ) -> Result<usize, StoreError> {
        let (sql, columns) = in_columns(&batch, 0, "");
        let session = self.session().await?;
        self.record(&session, records, (&sql, key), &columns).await
    }

    /// Executes a statement together with what the feed and the audit have of its rows, and returns their number.
    async fn record<T: ToSql + Sync>(
        &self,
        session: &Session,
        (topic, audit): Records,
        (sql, key): (&str, Option<&str>),
        values: &[T],
    ) -> Result<usize, StoreError> {
        // A text is cast to its bytes, unless it has a backslash; keys have none.
        let write = format!(
            "{sql} RETURNING CAST({} AS bytea) AS key",
            key.unwrap_or(NO_KEY)
        );
        let (audited, audit) = audited(audit, values.len());
        let sql = match (topic, key) {
            (Some(topic), Some(_)) => with_notification(self, topic, &write, &audited),
            (Some(topic), None) => with_bulk_notification(self, topic, &write, &audited),
            (None, _) => {
                format!("WITH changed AS ({write}){audited} SELECT count(*) FROM changed")
            }
        };
        let mut all = parameters(values);
        all.extend(parameters(&audit));
        let counts: Vec<(i64,)> = read(&session.query(&sql, &all).await?)?;
        self.counters().server_takes_writes();
        let number: i64 = counts.into_iter().map(|(number,)| number).sum();
        Ok(usize::try_from(number).unwrap_or(0))
    }

    /// The guard's row is locked first, so that a repetition waits for the first attempt, and adds nothing if that was
    /// committed.
    pub(crate) async fn write_once(
        &self,
        (guard, values): (&str, Vec<Value>),
        batches: Vec<Batch>,
    ) -> Result<(), StoreError> {
        let mut sql = format!("WITH guard AS ({guard} RETURNING 1 AS one)");
        let mut columns = Vec::new();
        for (index, batch) in batches.iter().enumerate() {
            // Joined with `guard`: without its row, nothing is added.
            let (statement, of_batch) = in_columns(batch, values.len() + columns.len(), ", guard");
            sql.push_str(&format!(", batch{index} AS ({statement})"));
            columns.extend(of_batch);
        }
        sql.push_str(" SELECT count(*) FROM guard");
        let mut all = parameters(&values);
        all.extend(parameters(&columns));
        self.session().await?.execute(&sql, &all).await.map(drop)
    }
}

pub(super) fn read<T: FromRow>(rows: &[tokio_postgres::Row]) -> Result<Vec<T>, StoreError> {
    let rows = rows.iter();
    rows.map(|row| T::from_row(&Row::Postgres(row))).collect()
}

/// The part of a statement that adds the audit's rows, if `changed` has rows; its parameters are numbered after `before`.
fn audited(audit: Option<Audit>, before: usize) -> (String, Vec<Vec<Value>>) {
    let Some(audit) = audit else {
        return Default::default();
    };
    let only = " WHERE EXISTS (SELECT 1 FROM changed)";
    let (insert, columns) = in_columns(&audit.into_batch(), before, only);
    (format!(", audited AS ({insert})"), columns)
}

fn parameters<T: ToSql + Sync>(values: &[T]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as _).collect()
}

/// The statement over arrays, and its parameters: an array for each column, numbered after `before`.
fn in_columns(batch: &Batch, before: usize, and: &str) -> (String, Vec<Vec<Value>>) {
    let mut columns: Vec<Vec<Value>> = vec![Vec::new(); batch.columns().count()];
    for row in &batch.rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value.clone());
        }
    }
    // One array per column: one text, and one prepared statement, serves any number of rows.
    let (names, kinds): (Vec<_>, Vec<_>) = batch.columns().unzip();
    let arrays: Vec<_> = (kinds.iter().zip(before + 1..))
        .map(|(kind, number)| format!("${number}::{kind}[]"))
        .collect();
    let given = format!(
        "unnest({}) AS given ({}){and}",
        arrays.join(", "),
        names.join(", ")
    );
    (batch.sql.replace(GIVEN, &given), columns)
}
