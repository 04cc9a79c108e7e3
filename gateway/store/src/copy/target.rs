//! The Postgres database that is copied to: one transaction for everything.

use std::pin::pin;

use tokio_postgres::{
    Client, Transaction, binary_copy::BinaryCopyInWriter, error::SqlState, types::Type,
};

use super::{
    CopyError,
    source::{Source, quoted},
    value,
};
use crate::{PostgresDatabase, schema::StoredSchema, values};

/// A copy has no timeout, except for waiting for locks: the operator should learn soon that the target is in use.
const SESSION_SETTINGS: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; \
                       SET lock_timeout = '3s'";

/// Creates a version's tables, unless its program has done so.
pub(super) async fn migrate(
    database: &PostgresDatabase,
    schema: &StoredSchema,
    program: &str,
) -> Result<(), CopyError> {
    let applied = "SELECT count(*) FROM migrations WHERE owner = $1";
    let applied = database.rows::<(u64,)>(applied, values![schema.owner.as_str()]);
    let applied = applied.await.map_err(CopyError::Target)?.pop();
    if applied.is_none_or(|(applied,)| applied < schema.migrations.len() as u64) {
        let migrations = schema.migrations();
        let schema = schema.with(&migrations);
        database.migrate(&schema, program).await?;
    }
    Ok(())
}

/// Opens the connection for the copy.
pub(super) async fn connect(database: &PostgresDatabase) -> Result<Client, CopyError> {
    let connected = database.connect().await;
    let (client, _) = connected.map_err(CopyError::Target)?;
    client.batch_execute(SESSION_SETTINGS).await?;
    Ok(client)
}

/// The transaction of the copy. It is rolled back unless [`Self::commit`] succeeds, also if the process is killed.
pub(super) struct Target<'c> {
    transaction: Transaction<'c>,
}

impl<'c> Target<'c> {
    /// Locks the tables against other writers, for example another copy, and checks that they are empty.
    pub(super) async fn begin(client: &'c mut Client, names: &[String]) -> Result<Self, CopyError> {
        let transaction = client.transaction().await?;
        // Reads stay possible: `/readyz` of a program on the target still answers.
        let lock = format!("LOCK TABLE {} IN EXCLUSIVE MODE", names.join(", "));
        if let Err(error) = transaction.batch_execute(&lock).await {
            return Err(match error.code() {
                Some(&SqlState::LOCK_NOT_AVAILABLE) => CopyError::InUse,
                _ => error.into(),
            });
        }
        let mut tables = Vec::new();
        // A program that was started on the target has created a key, or begun to count. That alone does not count as used.
        let created = "DELETE FROM login_keys; DELETE FROM usage_start";
        transaction.batch_execute(created).await?;
        for table in names {
            let query = format!("SELECT EXISTS (SELECT 1 FROM {table})");
            if transaction.query_one(&query, &[]).await?.try_get(0)? {
                tables.push(table.clone());
            }
        }
        if tables.is_empty() {
            Ok(Self { transaction })
        } else {
            Err(CopyError::NotEmpty { tables })
        }
    }

    /// Writes a whole table. Returns the number of rows, and of texts with replaced characters.
    pub(super) async fn write(
        &self,
        source: &Source,
        table: &str,
        columns: &[String],
    ) -> Result<(u64, u64), CopyError> {
        let types = self.types(table, columns).await?;
        let names = quoted(columns);
        let copy = format!("COPY {table} ({names}) FROM STDIN (FORMAT binary)");
        let sink = self.transaction.copy_in(&copy).await?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
        let mut statement = source.rows(table, columns)?;
        let mut rows = statement.query([])?;
        let mut replaced = 0;
        while let Some(row) = rows.next()? {
            let mut values = Vec::with_capacity(columns.len());
            for (index, column) in columns.iter().enumerate() {
                let (value, is_replaced) = value::read(row.get_ref(index)?, table, column)?;
                replaced += u64::from(is_replaced);
                values.push(value);
            }
            writer.as_mut().write_raw(values).await?;
        }
        Ok((writer.finish().await?, replaced))
    }

    async fn types(&self, table: &str, columns: &[String]) -> Result<Vec<Type>, CopyError> {
        let query = format!("SELECT {} FROM {table} LIMIT 0", quoted(columns));
        let statement = self.transaction.prepare(&query).await?;
        let types = statement.columns().iter();
        Ok(types.map(|column| column.type_().clone()).collect())
    }

    /// Sets the sequences of the table's columns, so that the next numbers follow the source's last ones.
    pub(super) async fn continue_ids(
        &self,
        source: &Source,
        table: &str,
        columns: &[String],
    ) -> Result<(), CopyError> {
        for column in columns {
            let sequence = "SELECT pg_get_serial_sequence($1, $2)";
            let serial = self
                .transaction
                .query_one(sequence, &[&table, column])
                .await?;
            let Some(sequence) = serial.try_get::<_, Option<String>>(0)? else {
                continue;
            };
            let last = source.last(table, column)?;
            if last > 0 {
                // Not undone by a rollback. After a failed copy, numbers only continue higher.
                let set = "SELECT setval($1::text::regclass, $2)";
                self.transaction.query_one(set, &[&sequence, &last]).await?;
            }
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
