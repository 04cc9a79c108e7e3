//! Accounts in SQLite.

use async_trait::async_trait;
use rusqlite::params;
use signpost_kit::clock::Timestamp;
use signpost_store::{SqliteDatabase, StoreError};

use super::{
    Account, AccountStore, Username,
    row::{COLUMNS, account_from_row},
};
use crate::config::{ProviderKind, ProviderName};

/// Accounts in a SQLite file.
#[derive(Debug)]
pub struct SqliteAccounts(SqliteDatabase);

impl SqliteAccounts {
    /// Over an open database.
    #[must_use]
    pub fn new(database: SqliteDatabase) -> Self {
        Self(database)
    }
}

#[async_trait]
impl AccountStore for SqliteAccounts {
    async fn find_or_create(
        &self,
        provider: &ProviderName,
        kind: &ProviderKind,
        username: &Username,
        now: Timestamp,
    ) -> Result<(Account, bool), StoreError> {
        let values = (
            provider.to_string(),
            kind.name.clone(),
            username.as_str().to_owned(),
            now.as_millis(),
        );
        self.0
            .write(move |transaction| {
                let (provider, kind, username, now) = values;
                // One statement finds or creates. DO UPDATE, unlike DO NOTHING, returns an existing row too. The row is
                // new if its id is larger than every id before; the transaction holds the write lock.
                let last: i64 = transaction
                    .prepare_cached("SELECT coalesce(max(id), 0) FROM accounts")?
                    .query_row([], |row| row.get(0))?;
                let find_or_create = format!(
                    "INSERT INTO accounts (provider, kind, username, created_at) VALUES (?1, ?2, ?3, ?4) \
                     ON CONFLICT (provider, username) DO UPDATE SET kind = excluded.kind RETURNING {COLUMNS}"
                );
                let account = transaction
                    .prepare_cached(&find_or_create)?
                    .query_row(params![provider, kind, username, now], |row| account_from_row(row))?;
                let is_new = account.id.get() > last;
                Ok((account, is_new))
            })
            .await
    }
}
