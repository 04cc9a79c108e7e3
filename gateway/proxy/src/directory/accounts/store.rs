//! The stored credentials. The login service writes them, the gateway reads them.

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_protocol::credential::CredentialHash;
use signpost_store::{Store, StoreError, tables::credentials};

use super::CredentialClaims;

/// The stored credentials, with their accounts.
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// Returns what a credential proves; `None` if it is unknown, revoked or expired.
    ///
    /// # Errors
    ///
    /// The store is unavailable, or the record is malformed.
    async fn find(
        &self,
        hash: CredentialHash,
        now: Timestamp,
    ) -> Result<Option<CredentialClaims>, StoreError>;
}

#[async_trait]
impl AccountStore for Store {
    async fn find(
        &self,
        hash: CredentialHash,
        now: Timestamp,
    ) -> Result<Option<CredentialClaims>, StoreError> {
        let claims = credentials::find(self, &hash, now).await?;
        Ok(claims.map(|claims| CredentialClaims {
            account: claims.account.into(),
            application: claims.application,
            expires_at: claims.expires_at,
        }))
    }
}
