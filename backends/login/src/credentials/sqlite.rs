//! Credentials in SQLite.

use std::time::Duration;

use async_trait::async_trait;
use gateway_protocol::app::AppId;
use rusqlite::{OptionalExtension, params};
use signpost_store::{Database, StoreError, Topic, changes};

use super::{CredentialHash, CredentialStore, LoggedIn, NewCredential};
use crate::{accounts, clock::Timestamp, store_values::time};

/// A revoked credential is kept for longer than any polling login's token could ask for it again.
const REVOKED_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Credentials in a SQLite file.
#[derive(Debug)]
pub struct SqliteCredentials(Database);

impl SqliteCredentials {
    /// Over an open database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl CredentialStore for SqliteCredentials {
    async fn keep(&self, credential: NewCredential) -> Result<(), StoreError> {
        self.0
            .write(move |transaction| {
                let NewCredential { hash, logged_in, created_at } = credential;
                transaction
                    .prepare_cached(
                        "INSERT INTO credentials (hash, account_id, application_id, created_at, expires_at) \
                         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (hash) DO NOTHING",
                    )?
                    .execute(params![
                        hash.as_bytes(),
                        logged_in.account.id.get(),
                        logged_in.application.get(),
                        created_at.as_millis(),
                        logged_in.expires_at.as_millis(),
                    ])?;
                Ok(())
            })
            .await
    }

    async fn find(
        &self,
        hash: &CredentialHash,
        now: Timestamp,
    ) -> Result<Option<LoggedIn>, StoreError> {
        let hash = *hash;
        self.0
            .call(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT application_id, expires_at, \
                                account_id, username, kind, accounts.created_at AS account_created_at \
                         FROM credentials JOIN accounts ON accounts.id = account_id \
                         WHERE hash = ?1 AND revoked_at IS NULL AND expires_at > ?2",
                    )?
                    .query_row(params![hash.as_bytes(), now.as_millis()], |row| {
                        Ok(LoggedIn {
                            account: accounts::from_row(row)?,
                            application: AppId::new(row.get("application_id")?),
                            expires_at: time(row, "expires_at")?,
                        })
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
                    .execute(params![now.as_millis(), now.minus(REVOKED_KEPT).as_millis(), limit])
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::{
        credentials::{Credential, Credentials},
        testing::TestStore,
    };

    const APP: AppId = AppId::new(3);

    async fn new_credential(
        store: &TestStore,
        credential: &Credential,
        now: Timestamp,
    ) -> NewCredential {
        let logged_in = LoggedIn {
            account: store.account("person").await,
            application: APP,
            expires_at: now.plus(Duration::from_secs(60)),
        };
        NewCredential {
            hash: credential.hash(),
            logged_in,
            created_at: now,
        }
    }

    #[tokio::test]
    async fn a_credential_is_one_applications_and_ends() {
        let store = TestStore::new();
        let credentials = Credentials::new(Arc::new(SqliteCredentials::new(store.database())));
        let (credential, now) = (Credential::generate(), Timestamp::from_millis(1_000_000));
        assert!(
            credentials
                .check(&credential, APP, now)
                .await
                .unwrap()
                .is_none()
        );
        credentials
            .keep(new_credential(&store, &credential, now).await)
            .await
            .unwrap();
        let found = credentials
            .check(&credential, APP, now)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(found.account.username.as_str(), "person");
        assert!(
            credentials
                .check(&credential, AppId::new(4), now)
                .await
                .unwrap()
                .is_none()
        );
        let later = now.plus(Duration::from_secs(60));
        assert!(
            credentials
                .check(&credential, APP, later)
                .await
                .unwrap()
                .is_none()
        );
    }

    #[tokio::test]
    async fn a_revoked_credential_is_void_and_keeping_it_again_does_not_bring_it_back() {
        let store = TestStore::new();
        let credentials = Credentials::new(Arc::new(SqliteCredentials::new(store.database())));
        let (credential, now) = (Credential::generate(), Timestamp::from_millis(1_000_000));
        let new = new_credential(&store, &credential, now).await;
        credentials.keep(new.clone()).await.unwrap();
        assert!(
            credentials
                .check(&credential, APP, now)
                .await
                .unwrap()
                .is_some()
        );
        credentials.revoke(&credential, now).await.unwrap();
        assert!(
            credentials
                .check(&credential, APP, now)
                .await
                .unwrap()
                .is_none()
        );
        credentials.keep(new).await.unwrap();
        assert!(
            credentials
                .check(&credential, APP, now)
                .await
                .unwrap()
                .is_none()
        );
    }

    #[tokio::test]
    async fn what_nobody_can_use_is_swept() {
        let store = TestStore::new();
        let sqlite = SqliteCredentials::new(store.database());
        let now = Timestamp::from_millis(1_000_000);
        for _ in 0..3 {
            sqlite
                .keep(new_credential(&store, &Credential::generate(), now).await)
                .await
                .unwrap();
        }
        assert_eq!(sqlite.sweep(now, 10).await.unwrap(), 0);
        let later = now.plus(Duration::from_secs(60));
        assert_eq!(sqlite.sweep(later, 2).await.unwrap(), 2);
        assert_eq!(sqlite.sweep(later, 2).await.unwrap(), 1);
    }
}
