//! Accounts in Postgres.

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_store::{PostgresDatabase, StoreError, postgres::Session};

use super::{
    Account, AccountStore, Username,
    row::{COLUMNS, account_from_row},
};
use crate::config::{ProviderKind, ProviderName};

/// Accounts in a Postgres database.
#[derive(Debug)]
pub struct PostgresAccounts {
    database: PostgresDatabase,
    find: String,
    create: String,
    change_kind: String,
}

impl PostgresAccounts {
    /// Over an open database.
    #[must_use]
    pub fn new(database: PostgresDatabase) -> Self {
        Self {
            database,
            find: format!("SELECT {COLUMNS} FROM accounts WHERE provider = $1 AND username = $2"),
            // ON CONFLICT waits for a concurrent insert, so exactly one of several callers gets the new row.
            create: format!(
                "INSERT INTO accounts (provider, username, kind, created_at) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (provider, username) DO NOTHING RETURNING {COLUMNS}"
            ),
            change_kind: format!("UPDATE accounts SET kind = $2 WHERE id = $1 RETURNING {COLUMNS}"),
        }
    }

    async fn find(
        &self,
        session: &Session,
        provider: &ProviderName,
        username: &Username,
    ) -> Result<Option<Account>, StoreError> {
        let row = session
            .query_opt(&self.find, &[&provider.as_str(), &username.as_str()])
            .await?;
        row.as_ref().map(account_from_row).transpose()
    }

    async fn create(
        &self,
        session: &Session,
        provider: &ProviderName,
        kind: &ProviderKind,
        username: &Username,
        now: Timestamp,
    ) -> Result<Option<Account>, StoreError> {
        let row = session
            .query_opt(
                &self.create,
                &[
                    &provider.as_str(),
                    &username.as_str(),
                    &kind.name,
                    &now.as_millis(),
                ],
            )
            .await?;
        row.as_ref().map(account_from_row).transpose()
    }

    /// Updates the account's kind if the configuration of its provider has changed.
    async fn with_kind(
        &self,
        session: &Session,
        account: Account,
        kind: &ProviderKind,
    ) -> Result<Account, StoreError> {
        if account.kind == kind.name {
            return Ok(account);
        }
        let row = session
            .query_one(&self.change_kind, &[&account.id.get(), &kind.name])
            .await?;
        account_from_row(&row)
    }
}

#[async_trait]
impl AccountStore for PostgresAccounts {
    async fn find_or_create(
        &self,
        provider: &ProviderName,
        kind: &ProviderKind,
        username: &Username,
        now: Timestamp,
    ) -> Result<(Account, bool), StoreError> {
        let session = &self.database.session().await?;
        // Read first: most users already have an account, and need no write.
        if let Some(account) = self.find(session, provider, username).await? {
            return Ok((self.with_kind(session, account, kind).await?, false));
        }
        if let Some(account) = self.create(session, provider, kind, username, now).await? {
            return Ok((account, true));
        }
        // A concurrent login created the account. Accounts are never deleted, so it is found.
        let found = self.find(session, provider, username).await?;
        let account = found.ok_or(StoreError::Malformed("username"))?;
        Ok((self.with_kind(session, account, kind).await?, false))
    }
}
