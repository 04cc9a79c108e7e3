//! Credentials in Postgres.

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_store::{
    PostgresDatabase, StoreError, Topic,
    postgres::{changes, row_count},
};

use super::{
    CredentialClaims, CredentialHash, CredentialStore, NewCredential, REVOKED_RETENTION,
    row::{COLUMNS, logged_in_from_row},
};

/// Credentials in a Postgres database.
#[derive(Debug)]
pub(crate) struct PostgresCredentials {
    database: PostgresDatabase,
    find: String,
    revoke: String,
}

impl PostgresCredentials {
    /// Over an open database.
    #[must_use]
    pub(crate) fn new(database: PostgresDatabase) -> Self {
        let revoke = "UPDATE credentials SET revoked_at = $2 WHERE hash = $1 AND revoked_at IS NULL \
                      RETURNING hash AS key";
        Self {
            find: format!(
                "SELECT {COLUMNS} FROM credentials JOIN accounts ON accounts.id = account_id \
                 WHERE hash = $1 AND revoked_at IS NULL AND expires_at > $2"
            ),
            revoke: changes::with_notification(&database, Topic::Credential, revoke),
            database,
        }
    }
}

#[async_trait]
impl CredentialStore for PostgresCredentials {
    async fn insert(&self, credential: NewCredential) -> Result<(), StoreError> {
        let session = self.database.session().await?;
        let NewCredential {
            hash,
            logged_in,
            created_at,
        } = credential;
        session.execute(
            "INSERT INTO credentials (hash, account_id, application_id, created_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (hash) DO NOTHING",
            &[
                &hash.as_bytes().as_slice(),
                &logged_in.account.id.get(),
                &logged_in.application.get(),
                &created_at.as_millis(),
                &logged_in.expires_at.as_millis(),
            ],
        ).await?;
        Ok(())
    }

    async fn find(
        &self,
        hash: &CredentialHash,
        now: Timestamp,
    ) -> Result<Option<CredentialClaims>, StoreError> {
        let session = self.database.session().await?;
        let hash = hash.as_bytes().as_slice();
        let row = session
            .query_opt(&self.find, &[&hash, &now.as_millis()])
            .await?;
        row.as_ref().map(logged_in_from_row).transpose()
    }

    async fn revoke(&self, hash: &CredentialHash, now: Timestamp) -> Result<(), StoreError> {
        let session = self.database.session().await?;
        let hash = hash.as_bytes().as_slice();
        session
            .execute(&self.revoke, &[&hash, &now.as_millis()])
            .await
            .map(drop)
    }

    async fn sweep(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        // ORDER BY makes the server read the indexes. The limit is a literal, not a parameter: the plan of a prepared
        // statement cannot depend on values, and without a known limit the DELETE would scan the table.
        let sql = format!(
            "DELETE FROM credentials WHERE hash IN (SELECT hash FROM ( \
                 (SELECT hash FROM credentials WHERE expires_at <= $1 ORDER BY expires_at LIMIT {limit}) \
                 UNION \
                 (SELECT hash FROM credentials WHERE revoked_at <= $2 ORDER BY revoked_at LIMIT {limit}) \
             ) AS ended LIMIT {limit})"
        );
        let revoked_before = now.minus(REVOKED_RETENTION);
        let session = self.database.session().await?;
        let swept = session
            .execute(&sql, &[&now.as_millis(), &revoked_before.as_millis()])
            .await?;
        Ok(row_count(swept))
    }
}
