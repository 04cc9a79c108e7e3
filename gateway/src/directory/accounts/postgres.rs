//! Credentials and accounts in Postgres.

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_protocol::credential::CredentialHash;
use signpost_store::{PostgresDatabase, StoreError};

use super::{COLUMNS, CredentialClaims, claims_from_row, store::AccountStore};

/// Credentials and accounts in a Postgres database.
#[derive(Debug)]
pub(super) struct PostgresAccounts {
    database: PostgresDatabase,
    find: String,
}

impl PostgresAccounts {
    /// Over an open database.
    pub(super) fn new(database: PostgresDatabase) -> Self {
        Self {
            database,
            find: format!(
                "SELECT {COLUMNS} FROM credentials JOIN accounts ON accounts.id = account_id \
                 WHERE hash = $1 AND revoked_at IS NULL AND expires_at > $2"
            ),
        }
    }
}

#[async_trait]
impl AccountStore for PostgresAccounts {
    async fn find(
        &self,
        hash: CredentialHash,
        now: Timestamp,
    ) -> Result<Option<CredentialClaims>, StoreError> {
        let session = self.database.session().await?;
        let hash = hash.as_bytes().as_slice();
        let row = session
            .query_opt(&self.find, &[&hash, &now.as_millis()])
            .await?;
        row.as_ref().map(claims_from_row).transpose()
    }
}
