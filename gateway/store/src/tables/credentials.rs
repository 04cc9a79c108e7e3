//! Credentials: each proves a user's login to one application until it expires or is revoked. The login service writes
//! them.

use signpost_protocol::{app::AppId, credential::CredentialHash};

use super::accounts::{Account, JOINED};
use crate::{FromRow, Row, Store, StoreError, Timestamp, values};

/// What a credential proves.
#[derive(Clone, Debug)]
pub struct CredentialClaims<A = Account> {
    /// The user's account.
    pub account: A,
    /// The application that the user logged in to, and the only one that can use the credential.
    pub application: AppId,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl FromRow for CredentialClaims {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            account: Account::from_row(row)?,
            application: row.get("application_id")?,
            expires_at: row.get("expires_at")?,
        })
    }
}

/// Returns what a credential proves; `None` if it is unknown, revoked or expired.
///
/// # Errors
///
/// The store is unavailable.
pub async fn find(
    store: &Store,
    hash: &CredentialHash,
    now: Timestamp,
) -> Result<Option<CredentialClaims>, StoreError> {
    let find = format!(
        "SELECT application_id, expires_at, {JOINED} FROM credentials JOIN accounts ON accounts.id = account_id \
         WHERE hash = $1 AND revoked_at IS NULL AND expires_at > $2"
    );
    store.row(&find, values![hash.as_bytes(), now]).await
}
