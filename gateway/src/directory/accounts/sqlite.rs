//! Credentials and accounts in SQLite.

use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
use signpost_kit::clock::Timestamp;
use signpost_protocol::credential::CredentialHash;
use signpost_store::{SqliteDatabase, StoreError};

use super::{COLUMNS, CredentialClaims, claims_from_row, store::AccountStore};

/// Credentials and accounts in a SQLite file.
#[derive(Debug)]
pub(super) struct SqliteAccounts(SqliteDatabase);

impl SqliteAccounts {
    /// Over an open database.
    pub(super) const fn new(database: SqliteDatabase) -> Self {
        Self(database)
    }
}

#[async_trait]
impl AccountStore for SqliteAccounts {
    async fn find(
        &self,
        hash: CredentialHash,
        now: Timestamp,
    ) -> Result<Option<CredentialClaims>, StoreError> {
        let find = self.0.call(move |connection| {
            let query = format!(
                "SELECT {COLUMNS} FROM credentials JOIN accounts ON accounts.id = account_id \
                 WHERE hash = ?1 AND revoked_at IS NULL AND expires_at > ?2"
            );
            let values = params![hash.as_bytes(), now.as_millis()];
            connection
                .prepare_cached(&query)?
                .query_row(values, |row| claims_from_row(row))
                .optional()
        });
        find.await
    }
}
