//! The store, as a version's own tables need it.

use anyhow::Context as _;
use signpost_kit::clock::Timestamp;
use signpost_store::{Batch, FromRow, Migration, Store, StoreError, Value, values};

/// The migrations of a version's own tables, in their order.
pub type Migrations = &'static [Migration<'static>];

/// Which of their rows are deleted.
pub type Sweeps = &'static [Sweep];

/// The store for a version's own tables, whose names begin with the version's: `v3_notes`. Both databases understand the statements, which have parameters `$1`, `$2`, …; where these differ, [`Self::dialect`] chooses.
///
/// All methods fail if the store is unavailable, or a row holds a value that its type does not have. `?` makes of that
/// 503 `store_unavailable`.
#[derive(Clone, Debug)]
pub struct OwnStore(Store);

#[expect(clippy::missing_errors_doc, reason = "above, for all of them")]
impl OwnStore {
    pub(crate) const fn new(store: Store) -> Self {
        Self(store)
    }

    /// The rows of a query.
    pub async fn rows<T: FromRow>(
        &self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Vec<T>, StoreError> {
        self.0.rows(sql, values).await
    }

    /// The first row of a query.
    pub async fn row<T: FromRow>(
        &self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Option<T>, StoreError> {
        self.0.row(sql, values).await
    }

    /// Executes a statement that writes; the number of rows that it changed.
    pub async fn execute(&self, sql: &str, values: Vec<Value>) -> Result<usize, StoreError> {
        self.0.execute(sql, values).await
    }

    /// Executes a statement that writes and returns rows.
    pub async fn write<T: FromRow>(
        &self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Vec<T>, StoreError> {
        self.0.write(sql, values).await
    }

    /// Writes what one statement of Postgres can, and several of SQLite, in one transaction. The rows of the first one;
    /// without a row, the others are not executed.
    pub async fn write_in_order<T: FromRow>(
        &self,
        sqlite: &[&str],
        postgres: &str,
        values: Vec<Value>,
    ) -> Result<Vec<T>, StoreError> {
        self.0.write_in_order(sqlite, postgres, values).await
    }

    /// Writes all rows, or none, and returns what the statement returns.
    pub async fn write_batch<T: FromRow>(&self, batch: Batch) -> Result<Vec<T>, StoreError> {
        self.0.write_batch(batch).await
    }

    /// The text of a statement in which the databases differ.
    #[must_use]
    pub fn dialect<'s>(&self, sqlite: &'s str, postgres: &'s str) -> &'s str {
        self.0.dialect(sqlite, postgres)
    }
}

/// Rows of a table that are deleted once their time has come, in small batches, once a minute.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    /// Name of the table.
    pub table: &'static str,
    /// Its primary key: a column, or several with commas.
    pub key: &'static str,
    /// The column with the time, in ms since the epoch, from which on a row can go; null: never. It needs an index.
    pub expires_at: &'static str,
}

impl Sweep {
    /// Checks that the table is the version's, and has these columns.
    ///
    /// # Errors
    ///
    /// It is not, or has not; or the store is unavailable.
    pub(crate) async fn check(&self, version: &str, store: &Store) -> anyhow::Result<()> {
        let (table, key, expires_at) = (self.table, self.key, self.expires_at);
        let is_own = table
            .strip_prefix(version)
            .is_some_and(|rest| rest.starts_with('_'));
        anyhow::ensure!(
            is_own,
            "sweep of {table}: not a table of its own; allowed: {version}_NAME"
        );
        // Reads no rows: the database only resolves the names.
        let columns = format!("SELECT {key}, {expires_at} FROM {table} LIMIT 0");
        let columns = store.rows::<()>(&columns, Vec::new()).await;
        columns
            .with_context(|| format!("sweep of {table} by {key} and {expires_at}"))
            .map(drop)
    }

    /// Deletes up to `limit` rows, and returns how many.
    pub(crate) async fn run(
        &self,
        store: &Store,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let (table, key, expires_at) = (self.table, self.key, self.expires_at);
        // The condition stands outside once more: in Postgres a row can be changed after the subquery has found it.
        let sweep = format!(
            "DELETE FROM {table} WHERE ({key}) IN \
                 (SELECT {key} FROM {table} WHERE {expires_at} <= $1 ORDER BY {expires_at} LIMIT {limit}) \
             AND {expires_at} <= $1"
        );
        store.execute(&sweep, values![now]).await
    }
}
