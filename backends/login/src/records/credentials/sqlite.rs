//! Credentials in SQLite.

use async_trait::async_trait;
use rusqlite::{OptionalExtension, Transaction, params};
use signpost_kit::clock::Timestamp;
use signpost_store::{SqliteDatabase, StoreError, Topic, sqlite::changes};

use super::{
    CredentialClaims, CredentialHash, CredentialStore, NewCredential, REVOKED_RETENTION,
    row::{COLUMNS, logged_in_from_row},
};

/// Credentials in a SQLite file.
#[derive(Debug)]
pub(crate) struct SqliteCredentials(SqliteDatabase);

impl SqliteCredentials {
    /// Over an open database.
    #[must_use]
    pub(crate) fn new(database: SqliteDatabase) -> Self {
        Self(database)
    }

    /// As [`CredentialStore::insert`], as part of a transaction.
    pub(crate) fn insert_in(
        transaction: &Transaction<'_>,
        credential: &NewCredential,
    ) -> rusqlite::Result<()> {
        let logged_in = &credential.logged_in;
        transaction
            .prepare_cached(
                "INSERT INTO credentials (hash, account_id, application_id, created_at, expires_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (hash) DO NOTHING",
            )?
            .execute(params![
                credential.hash.as_bytes(),
                logged_in.account.id.get(),
                logged_in.application.get(),
                credential.created_at.as_millis(),
                logged_in.expires_at.as_millis(),
            ])
            .map(drop)
    }
}

#[async_trait]
impl CredentialStore for SqliteCredentials {
    async fn insert(&self, credential: NewCredential) -> Result<(), StoreError> {
        self.0
            .write(move |transaction| Self::insert_in(transaction, &credential))
            .await
    }

    async fn find(
        &self,
        hash: &CredentialHash,
        now: Timestamp,
    ) -> Result<Option<CredentialClaims>, StoreError> {
        let hash = *hash;
        self.0
            .call(move |connection| {
                let query = format!(
                    "SELECT {COLUMNS} FROM credentials JOIN accounts ON accounts.id = account_id \
                     WHERE hash = ?1 AND revoked_at IS NULL AND expires_at > ?2"
                );
                connection
                    .prepare_cached(&query)?
                    .query_row(params![hash.as_bytes(), now.as_millis()], |row| {
                        logged_in_from_row(row)
                    })
                    .optional()
            })
            .await
    }

    async fn revoke(&self, hash: &CredentialHash, now: Timestamp) -> Result<(), StoreError> {
        let hash = *hash;
        self.0
            .write(move |transaction| {
                transaction
                    .prepare_cached("UPDATE credentials SET revoked_at = ?2 WHERE hash = ?1 AND revoked_at IS NULL")?
                    .execute(params![hash.as_bytes(), now.as_millis()])?;
                changes::record(transaction, Topic::Credential, hash.as_bytes())
            })
            .await
    }

    async fn sweep(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.0
            .write(move |transaction| {
                transaction
                    .prepare_cached(
                        "DELETE FROM credentials WHERE hash IN ( \
                             SELECT hash FROM credentials WHERE expires_at <= ?1 OR revoked_at <= ?2 LIMIT ?3)",
                    )?
                    .execute(params![now.as_millis(), now.minus(REVOKED_RETENTION).as_millis(), limit])
            })
            .await
    }
}
