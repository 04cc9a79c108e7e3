//! Credentials: each proves a user's login to one application until it expires or is revoked. The login service writes
//! them.

use std::time::Duration;

use signpost_protocol::{app::AppId, credential::CredentialHash};

use super::accounts::{Account, JOINED};
use crate::{FromRow, Row, Store, StoreError, Timestamp, Topic, values};

/// Retention of revoked credentials: longer than any token can issue the same credential again.
const REVOKED_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

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

/// A credential to be stored.
#[derive(Clone, Debug)]
pub struct NewCredential {
    /// The hash under which it is stored.
    pub hash: CredentialHash,
    /// What it proves.
    pub logged_in: CredentialClaims,
    /// When the login was completed.
    pub created_at: Timestamp,
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

/// Inserts a credential. If it exists, nothing changes; in particular, a revoked one stays revoked.
///
/// # Errors
///
/// The store is unavailable.
pub async fn insert(store: &Store, credential: NewCredential) -> Result<(), StoreError> {
    let insert = "INSERT INTO credentials (hash, account_id, application_id, created_at, expires_at) \
                  VALUES ($1, $2, $3, $4, $5) ON CONFLICT (hash) DO NOTHING";
    let logged_in = credential.logged_in;
    let values = values![
        credential.hash.as_bytes(),
        logged_in.account.id.get(),
        logged_in.application.get(),
        credential.created_at,
        logged_in.expires_at,
    ];
    store.execute(insert, values).await.map(drop)
}

/// Revokes a credential, and notifies every process.
///
/// # Errors
///
/// The store is unavailable.
pub async fn revoke(
    store: &Store,
    hash: &CredentialHash,
    now: Timestamp,
) -> Result<(), StoreError> {
    let revoke = "UPDATE credentials SET revoked_at = $2 WHERE hash = $1 AND revoked_at IS NULL";
    let values = values![hash.as_bytes(), now];
    store
        .change(Topic::Credential, (revoke, "hash"), values)
        .await
        .map(drop)
}

/// Deletes up to `limit` expired or long revoked credentials, and returns how many.
///
/// # Errors
///
/// The store is unavailable.
pub async fn sweep(store: &Store, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
    // ORDER BY makes the server read the indexes. The limit is a literal, not a parameter: the plan of a prepared
    // statement cannot depend on values, and without a known limit the DELETE would scan the table.
    let ended = |column: &str, parameter: u8| {
        format!(
            "SELECT hash FROM (SELECT hash FROM credentials WHERE {column} <= ${parameter} \
             ORDER BY {column} LIMIT {limit}) AS {column}_ended"
        )
    };
    let sweep = format!(
        "DELETE FROM credentials WHERE hash IN ({} UNION {} LIMIT {limit})",
        ended("expires_at", 1),
        ended("revoked_at", 2)
    );
    let values = values![now, now.minus(REVOKED_RETENTION)];
    store.execute(&sweep, values).await
}
