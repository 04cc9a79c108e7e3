//! Tables in a SQLite file.

use std::path::Path;

use rusqlite::{Connection, params};

use super::{NewApplication, PROVIDER, Tables, times};

/// Inserts each kind of row in one transaction.
#[derive(Debug)]
pub struct SqliteTables(Connection);

impl SqliteTables {
    /// Opens a migrated file.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn open(file: &Path) -> anyhow::Result<Self> {
        Ok(Self(Connection::open(file)?))
    }
}

impl Tables for SqliteTables {
    fn insert_accounts(
        &mut self,
        usernames: &mut dyn Iterator<Item = String>,
    ) -> anyhow::Result<()> {
        let (now, _) = times();
        let transaction = self.0.transaction()?;
        let mut statement = transaction
            .prepare("INSERT INTO accounts (provider, username, created_at) VALUES (?1, ?2, ?3)")?;
        for username in usernames {
            statement.execute(params![PROVIDER, username, now])?;
        }
        drop(statement);
        Ok(transaction.commit()?)
    }

    fn insert_credentials(&mut self, credentials: Vec<(String, Vec<u8>)>) -> anyhow::Result<()> {
        let (now, end) = times();
        let transaction = self.0.transaction()?;
        let mut statement = transaction.prepare(
            "INSERT INTO credentials (hash, login_hash, account_id, application_id, created_at, expires_at) \
             SELECT ?1, ?1, id, 0, ?2, ?3 FROM accounts WHERE provider = ?4 AND username = ?5",
        )?;
        for (username, hash) in credentials {
            statement.execute(params![hash, now, end, PROVIDER, username])?;
        }
        drop(statement);
        Ok(transaction.commit()?)
    }

    fn insert_applications(
        &mut self,
        applications: &mut dyn Iterator<Item = anyhow::Result<NewApplication>>,
    ) -> anyhow::Result<()> {
        let (now, _) = times();
        let transaction = self.0.transaction()?;
        let mut statement = transaction.prepare(
            "INSERT INTO applications (ident, name, state, created_at, key_sealed, return_to_origins) \
             VALUES (?1, 'capacity', 'active', ?2, ?3, '[]')",
        )?;
        for application in applications {
            let application = application?;
            statement.execute(params![application.ident, now, application.key_sealed])?;
        }
        drop(statement);
        Ok(transaction.commit()?)
    }

    fn run_maintenance(&mut self) -> anyhow::Result<()> {
        Ok(self.0.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?)
    }
}
