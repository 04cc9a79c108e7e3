//! Tables of a Postgres database.

use anyhow::Context;
use tokio::runtime::{self, Runtime};
use tokio_postgres::{Client, NoTls, types::ToSql};

use super::{KIND, PROVIDER, Record, Tables, times};

/// Rows of a statement.
const AT_ONCE: usize = 20_000;

/// Writes thousands of rows by each statement.
pub struct PostgresTables {
    runtime: Runtime,
    client: Client,
}

impl PostgresTables {
    /// Of a database that is there.
    ///
    /// # Errors
    ///
    /// It cannot be connected to.
    pub fn open(address: &str) -> anyhow::Result<Self> {
        // The connection is served by the worker while this thread makes the next rows.
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("a runtime for the connection")?;
        let (client, connection) = runtime.block_on(tokio_postgres::connect(address, NoTls))?;
        runtime.spawn(connection);
        Ok(Self { runtime, client })
    }

    fn execute(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> anyhow::Result<()> {
        self.runtime.block_on(self.client.execute(sql, values))?;
        Ok(())
    }
}

impl Tables for PostgresTables {
    fn insert_accounts(
        &mut self,
        usernames: &mut dyn Iterator<Item = String>,
    ) -> anyhow::Result<()> {
        let (now, _) = times();
        let insert = "INSERT INTO accounts (provider, kind, username, created_at) \
                      SELECT $1, $2, username, $3 FROM unnest($4::text[]) AS username";
        while let Some(some) = next_some(usernames) {
            self.execute(insert, &[&PROVIDER, &KIND, &now, &some])?;
        }
        Ok(())
    }

    fn insert_credentials(&mut self, credentials: Vec<(String, Vec<u8>)>) -> anyhow::Result<()> {
        let (now, end) = times();
        let (usernames, hashes): (Vec<_>, Vec<_>) = credentials.into_iter().unzip();
        let insert = "INSERT INTO credentials (hash, account_id, application_id, created_at, expires_at) \
                      SELECT hash, id, 0, $1, $2 FROM unnest($3::text[], $4::bytea[]) AS new (username, hash) \
                      JOIN accounts USING (username) WHERE provider = $5";
        self.execute(insert, &[&now, &end, &usernames, &hashes, &PROVIDER])
    }

    fn insert_applications(
        &mut self,
        records: &mut dyn Iterator<Item = anyhow::Result<Record>>,
    ) -> anyhow::Result<()> {
        let (now, _) = times();
        let insert = "INSERT INTO applications (ident, name, state, created_at, key_sealed, return_to_origins) \
                      SELECT ident, 'capacity', 'active', $1, key_sealed, '[]' \
                      FROM unnest($2::text[], $3::bytea[]) AS new (ident, key_sealed)";
        while let Some(some) = next_some(records) {
            let some: Vec<Record> = some.into_iter().collect::<anyhow::Result<_>>()?;
            let (idents, keys): (Vec<_>, Vec<_>) = some
                .into_iter()
                .map(|record| (record.ident, record.key_sealed))
                .unzip();
            self.execute(insert, &[&now, &idents, &keys])?;
        }
        Ok(())
    }

    fn settle(&mut self) -> anyhow::Result<()> {
        for statement in ["VACUUM ANALYZE", "CHECKPOINT"] {
            self.runtime
                .block_on(self.client.batch_execute(statement))?;
        }
        Ok(())
    }
}

/// The next rows of a statement, until there are none left.
fn next_some<T>(all: &mut dyn Iterator<Item = T>) -> Option<Vec<T>> {
    let some: Vec<T> = all.take(AT_ONCE).collect();
    (!some.is_empty()).then_some(some)
}
