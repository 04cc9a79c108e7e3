//! Credentials: each proves a user's login to one application until it expires or is revoked. The login service writes
//! them.

use signpost_protocol::{app::AppId, credential::CredentialHash};

use super::accounts::{Account, JOINED};
use crate::{FromRow, Row, Store, StoreError, Timestamp, values};

/// What a credential proves.
#[derive(Clone, Debug)]
pub struct CredentialClaims<A = Account> {
    /// The account of the user who logged in.
    pub account: A,
    /// The application that the user logged in to, and the only one that can use the credential.
    pub application: AppId,
    /// When it expires; of a renewed one, when its overlap ends.
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

/// Until when the credential `$1` of a row is valid: a renewed one ends after a short overlap.
pub const VALID_UNTIL: &str = "CASE WHEN hash = $1 THEN expires_at ELSE previous_until END";

/// The rows in which `$1` is the credential, or the renewed one. Each has an index.
pub const OF_HASH: &str = "(hash = $1 OR previous_hash = $1) AND revoked_at IS NULL";

/// The credentials that a [change](crate::Topic::Credential) concerns; `None` if its key is malformed.
#[must_use]
pub fn changed(key: &[u8]) -> Option<Vec<CredentialHash>> {
    let (hashes, rest) = key.as_chunks();
    let is_whole = rest.is_empty() && !hashes.is_empty();
    is_whole.then(|| {
        hashes
            .iter()
            .copied()
            .map(CredentialHash::from_bytes)
            .collect()
    })
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
    // In `WHERE`, the alias `expires_at` would be the column of the table, so the expression is repeated.
    let find = format!(
        "SELECT application_id, {VALID_UNTIL} AS expires_at, {JOINED} \
         FROM credentials JOIN accounts ON accounts.id = account_id WHERE {OF_HASH} AND {VALID_UNTIL} > $2"
    );
    store.row(&find, values![hash.as_bytes(), now]).await
}
