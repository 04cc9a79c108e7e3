//! Tables of a Postgres database.

use anyhow::Context;
use tokio::runtime::{self, Runtime};
use tokio_postgres::{Client, NoTls, types::ToSql};

use super::{NewApplication, PROVIDER, Tables, times};

/// Rows in each statement.
const BATCH: usize = 20_000;

/// Inserts thousands of rows with each statement.
pub struct PostgresTables {
    runtime: Runtime,
    client: Client,
}

impl PostgresTables {
    /// Connects to a migrated database.
    ///
    /// # Errors
    ///
    /// When the connection fails.
    pub fn open(address: &str) -> anyhow::Result<Self> {
        // The worker thread drives the connection while this thread creates the next rows.
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
        let insert = "INSERT INTO accounts (provider, username, created_at) \
                      SELECT $1, username, $2 FROM unnest($3::text[]) AS username";
        while let Some(batch) = next_batch(usernames) {
            self.execute(insert, &[&PROVIDER, &now, &batch])?;
        }
        Ok(())
    }

    fn insert_credentials(&mut self, credentials: Vec<(String, Vec<u8>)>) -> anyhow::Result<()> {
        let (now, end) = times();
        let (usernames, hashes): (Vec<_>, Vec<_>) = credentials.into_iter().unzip();
        let insert = "INSERT INTO credentials (hash, login_hash, account_id, application_id, created_at, expires_at) \
                      SELECT hash, hash, id, 0, $1, $2 FROM unnest($3::text[], $4::bytea[]) AS new (username, hash) \
                      JOIN accounts USING (username) WHERE provider = $5";
        self.execute(insert, &[&now, &end, &usernames, &hashes, &PROVIDER])
    }

    fn insert_applications(
        &mut self,
        applications: &mut dyn Iterator<Item = anyhow::Result<NewApplication>>,
    ) -> anyhow::Result<()> {
        let (now, _) = times();
        let insert = "INSERT INTO applications (ident, name, state, created_at, key_sealed, return_to_origins) \
                      SELECT ident, 'capacity', 'active', $1, key_sealed, '[]' \
                      FROM unnest($2::text[], $3::bytea[]) AS new (ident, key_sealed)";
        while let Some(batch) = next_batch(applications) {
            let batch: Vec<NewApplication> = batch.into_iter().collect::<anyhow::Result<_>>()?;
            let (idents, keys): (Vec<_>, Vec<_>) = batch
                .into_iter()
                .map(|application| (application.ident, application.key_sealed))
                .unzip();
            self.execute(insert, &[&now, &idents, &keys])?;
        }
        Ok(())
    }

    fn run_maintenance(&mut self) -> anyhow::Result<()> {
        for statement in ["VACUUM ANALYZE", "CHECKPOINT"] {
            self.runtime
                .block_on(self.client.batch_execute(statement))?;
        }
        Ok(())
    }
}

/// The rows of the next statement; `None` when no row is left.
fn next_batch<T>(all: &mut dyn Iterator<Item = T>) -> Option<Vec<T>> {
    let some: Vec<T> = all.take(BATCH).collect();
    (!some.is_empty()).then_some(some)
}
