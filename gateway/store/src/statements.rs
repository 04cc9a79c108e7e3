//! Statements that both databases understand. What differs between them is in `sqlite` and `postgres`.
//!
//! Parameters are `$1`, `$2`, …; a number may appear several times.

use std::time::Duration;

use crate::{
    Batch, Changed, FromRow, Store, StoreError, Value, audit::Audit, store::either, value::GIVEN,
};

/// All fail if the store is unavailable, or a row holds a value that no release writes.
#[expect(clippy::missing_errors_doc, reason = "above, for all of them")]
impl Store {
    /// The rows of a query.
    pub async fn rows<T: FromRow>(
        &self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Vec<T>, StoreError> {
        either!(self, database => database.rows(sql, values).await)
    }

    /// The first row of a query.
    pub async fn row<T: FromRow>(
        &self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Executes a statement that writes; the number of rows that it changed.
    pub async fn execute(&self, sql: &str, values: Vec<Value>) -> Result<usize, StoreError> {
        either!(self, database => database.execute(sql, values).await)
    }

    /// Deletes rows of a table, which `key` identifies, at most `max` of them; returns their number. `old` says which, with
    /// parameters: a text with a time in it would be another prepared statement at each turn.
    pub async fn delete_some(
        &self,
        (table, key): (&str, &str),
        (old, values): (&str, Vec<Value>),
        max: usize,
    ) -> Result<usize, StoreError> {
        let sql = self.deletion((table, key), old, max);
        self.execute(&sql, values).await
    }

    /// The statement of [`Self::delete_some`].
    pub(crate) fn deletion(&self, (table, key): (&str, &str), old: &str, max: usize) -> String {
        // The limit is a literal, so that the plan can use an index.
        let some = format!("FROM {table} WHERE {old} LIMIT {max}");
        match self {
            Self::Sqlite(_) => {
                format!("DELETE FROM {table} WHERE ({key}) IN (SELECT {key} {some})")
            }
            // By the place of each row: by its key, Postgres reads the whole table, to join the two. Another gateway may delete
            // or write the same rows: waiting for it could become a deadlock.
            Self::Postgres(_) => format!(
                "DELETE FROM {table} WHERE ctid = ANY (ARRAY (SELECT ctid {some} FOR UPDATE SKIP LOCKED))"
            ),
        }
    }

    /// Executes a statement that writes and returns rows.
    pub async fn write<T: FromRow>(
        &self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Vec<T>, StoreError> {
        self.write_in_order(&[sql], sql, values).await
    }

    /// Writes in one transaction: Postgres executes one statement, SQLite several. Returns the rows of the first one.
    /// If it returns none, SQLite's other statements are not executed.
    pub async fn write_in_order<T: FromRow>(
        &self,
        sqlite: &[&str],
        postgres: &str,
        values: Vec<Value>,
    ) -> Result<Vec<T>, StoreError> {
        match self {
            Self::Sqlite(database) => database.write_in_order(sqlite, values).await,
            Self::Postgres(database) => database.rows(postgres, values).await,
        }
    }

    /// Executes a statement that writes, and notifies every process of the rows that it changed: `key` is an expression
    /// for their keys. Returns their number.
    pub async fn change(
        &self,
        changed: Changed,
        (sql, key): (&str, &str),
        values: Vec<Value>,
    ) -> Result<usize, StoreError> {
        self.change_at(changed, (sql, key), |_| values).await
    }

    /// As [`Self::change`]. The values are computed after all waits, with the time that these have taken.
    pub async fn change_at(
        &self,
        changed: Changed,
        statement: (&str, &str),
        values: impl FnOnce(Duration) -> Vec<Value> + Send + 'static,
    ) -> Result<usize, StoreError> {
        let records = changed.into_records();
        let line = records.1.as_ref().map(Audit::log_line);
        let number = either!(self, database => database.change(records, statement, values).await)?;
        log_if(number, line);
        Ok(number)
    }

    /// Writes all rows, or none, and returns what the statement returns.
    pub async fn write_batch<T: FromRow>(&self, batch: Batch) -> Result<Vec<T>, StoreError> {
        either!(self, database => database.write_batch(batch).await)
    }

    /// Writes all rows, or none, and notifies every process of the rows that it changed: of each by `key`, many of them by
    /// one entry of the feed where the [`Topic`](crate::Topic) allows that; or of all at once, without a key: anything of the
    /// topic may have changed. Returns their number.
    pub async fn change_batch(
        &self,
        changed: Changed,
        batch: Batch,
        key: Option<&str>,
    ) -> Result<usize, StoreError> {
        let records = changed.into_records();
        let line = records.1.as_ref().map(Audit::log_line);
        let number = either!(self, database => database.change_batch(records, batch, key).await)?;
        log_if(number, line);
        Ok(number)
    }

    /// Writes all batches, or none of them: none if `guard` changes no row.
    pub async fn write_once(
        &self,
        guard: (&str, Vec<Value>),
        batches: Vec<Batch>,
    ) -> Result<(), StoreError> {
        either!(self, database => database.write_once(guard, batches).await)
    }

    /// The text of a statement in which the databases differ.
    #[must_use]
    pub fn dialect<'s>(&self, sqlite: &'s str, postgres: &'s str) -> &'s str {
        match self {
            Self::Sqlite(_) => sqlite,
            Self::Postgres(_) => postgres,
        }
    }

    /// The given rows of a [`Batch`] for the `UPDATE` of rows of `table` by `key`. These are locked in the order of their
    /// keys first: an `UPDATE` itself has no order.
    pub(crate) fn given_for_update(&self, table: &str, key: &str, given_key: &str) -> String {
        // SQLite has one writer at a time.
        let lock = self.dialect("", " FOR NO KEY UPDATE");
        format!(
            "(SELECT given.* FROM {table}, {GIVEN} WHERE {key} = {given_key} ORDER BY {key}{lock}) AS given"
        )
    }
}

fn log_if(changed: usize, line: Option<impl FnOnce()>) {
    // After the commit, and only if a row has changed: the log must not claim what did not happen.
    if let (1.., Some(line)) = (changed, line) {
        line();
    }
}
