//! Accounts in Postgres.

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_store::{PostgresDatabase, StoreError, postgres::Session};

use super::{
    Account, AccountStore, Username,
    row::{COLUMNS, account_from_row},
};
use crate::config::{ProviderKind, ProviderName};

/// Accounts in a Postgres.
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
            // Somebody else's, begun and not committed, is waited for: so exactly one of many is new.
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

    /// The account, with the kind that its provider has in the configuration now.
    async fn of_kind(
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
        // Most people have been here before; for them nothing is written.
        if let Some(account) = self.find(session, provider, username).await? {
            return Ok((self.of_kind(session, account, kind).await?, false));
        }
        if let Some(account) = self.create(session, provider, kind, username, now).await? {
            return Ok((account, true));
        }
        // Somebody was faster, and accounts are never deleted.
        let found = self.find(session, provider, username).await?;
        let account = found.ok_or(StoreError::Malformed("username"))?;
        Ok((self.of_kind(session, account, kind).await?, false))
    }
}
