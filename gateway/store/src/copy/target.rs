//! The Postgres that is copied to: one transaction, from the look whether it is empty to the last number.

use std::pin::pin;

use tokio_postgres::{
    Client, Transaction, binary_copy::BinaryCopyInWriter, error::SqlState, types::Type,
};

use super::{CopyError, TABLES, source::Source, value::Value};
use crate::PostgresDatabase;

/// The column that the database itself numbers, where there is one.
pub(super) const ID: &str = "id";

/// A copy takes as long as it takes; who has the tables locked is told soon that they are.
const PATIENT: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; \
                       SET lock_timeout = '3s'";

/// A connection for the copy.
pub(super) async fn connect(database: &PostgresDatabase) -> Result<Client, CopyError> {
    let connected = database.connect().await;
    let (client, _) = connected.map_err(CopyError::Target)?;
    client.batch_execute(PATIENT).await?;
    Ok(client)
}

/// The transaction. Unless it is committed, nothing has happened; a process that is killed does not commit.
pub(super) struct Target<'c> {
    transaction: Transaction<'c>,
}

impl<'c> Target<'c> {
    /// Locks the tables against whoever else would write, another copy say, and looks whether they are empty.
    pub(super) async fn begin(client: &'c mut Client) -> Result<Self, CopyError> {
        let transaction = client.transaction().await?;
        let lock = format!("LOCK TABLE {} IN EXCLUSIVE MODE", TABLES.join(", "));
        if let Err(error) = transaction.batch_execute(&lock).await {
            return Err(match error.code() {
                Some(&SqlState::LOCK_NOT_AVAILABLE) => CopyError::InUse,
                _ => error.into(),
            });
        }
        let mut tables = Vec::new();
        // A program that was started on the target has made a key there: that alone is not in use yet.
        transaction.batch_execute("DELETE FROM login_keys").await?;
        for table in TABLES {
            let query = format!("SELECT EXISTS (SELECT 1 FROM {table})");
            if transaction.query_one(&query, &[]).await?.try_get(0)? {
                tables.push(table);
            }
        }
        if tables.is_empty() {
            Ok(Self { transaction })
        } else {
            Err(CopyError::NotEmpty { tables })
        }
    }

    /// Writes a whole table: how many rows, and how many of their texts were replaced.
    pub(super) async fn write(
        &self,
        source: &Source,
        table: &'static str,
        columns: &[String],
    ) -> Result<(u64, u64), CopyError> {
        let types = self.types(table, columns).await?;
        let names = columns.join(", ");
        let copy = format!("COPY {table} ({names}) FROM STDIN (FORMAT binary)");
        let sink = self.transaction.copy_in(&copy).await?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
        let mut statement = source.rows(table, columns)?;
        let mut rows = statement.query([])?;
        let mut replaced = 0;
        while let Some(row) = rows.next()? {
            let mut values = Vec::with_capacity(columns.len());
            for (place, column) in columns.iter().enumerate() {
                let value = Value::read(row.get_ref(place)?, table, column)?;
                replaced += u64::from(value.is_replaced());
                values.push(value);
            }
            writer.as_mut().write_raw(values).await?;
        }
        Ok((writer.finish().await?, replaced))
    }

    async fn types(&self, table: &str, columns: &[String]) -> Result<Vec<Type>, CopyError> {
        let query = format!("SELECT {} FROM {table} LIMIT 0", columns.join(", "));
        let statement = self.transaction.prepare(&query).await?;
        let types = statement.columns().iter();
        Ok(types.map(|column| column.type_().clone()).collect())
    }

    /// Lets the database number the table's next row behind `last`.
    pub(super) async fn number_behind(&self, table: &str, last: i64) -> Result<(), CopyError> {
        if last > 0 {
            let set = "SELECT setval(pg_get_serial_sequence($1, $2), $3)";
            self.transaction
                .query_one(set, &[&table, &ID, &last])
                .await?;
        }
        Ok(())
    }

    pub(super) async fn count(&self, table: &str) -> Result<u64, CopyError> {
        let query = format!("SELECT count(*) FROM {table}");
        let count: i64 = self.transaction.query_one(&query, &[]).await?.try_get(0)?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    pub(super) async fn commit(self) -> Result<(), CopyError> {
        Ok(self.transaction.commit().await?)
    }
}
