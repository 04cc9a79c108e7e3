//! Credentials: who is logged in, for which application, until when.

mod credential;
mod postgres;
mod row;
mod sqlite;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_protocol::app::AppId;
use signpost_kit::{
    clock::{Clock, Timestamp},
    feed_cache::{FeedCache, FeedCacheSettings, Unknown},
};
use signpost_store::{Change, StoreError, Topic};

pub use self::{
    credential::{Credential, CredentialHash},
    postgres::PostgresCredentials,
    sqlite::SqliteCredentials,
};
use crate::accounts::Account;

/// Some 300 bytes each: a few MiB of people who are active right now. That a credential is unknown is not cached: those
/// that are made up never come again.
const CACHE: FeedCacheSettings = FeedCacheSettings {
    topic: Topic::Credential,
    entries: 20_000,
    lifetime: Duration::from_secs(5 * 60),
    unknown: Unknown::LookedUp,
};

/// A revoked credential is kept for longer than any polling login's token could ask for it again.
const REVOKED_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// What a credential proves.
#[derive(Clone, Debug)]
pub struct LoggedIn {
    /// The person.
    pub account: Account,
    /// The application the person logged in to; the credential is no good elsewhere.
    pub application: AppId,
    /// When it ends by itself.
    pub expires_at: Timestamp,
}

/// A credential to be stored.
#[derive(Clone, Debug)]
pub struct NewCredential {
    /// What is stored of it.
    pub hash: CredentialHash,
    /// The person and the application.
    pub logged_in: LoggedIn,
    /// When the login was completed.
    pub created_at: Timestamp,
}

/// Where credentials are kept.
#[async_trait]
pub trait CredentialStore: Send + Sync {
    /// Stores a credential; if it is there already nothing changes, above all not that it was revoked.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    async fn keep(&self, credential: NewCredential) -> Result<(), StoreError>;

    /// What a credential proves, unless it is unknown, revoked or expired.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    async fn find(
        &self,
        hash: &CredentialHash,
        now: Timestamp,
    ) -> Result<Option<LoggedIn>, StoreError>;

    /// Ends a credential, and tells every process.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    async fn revoke(&self, hash: &CredentialHash, now: Timestamp) -> Result<(), StoreError>;

    /// Removes up to `limit` credentials that nobody can use any more, and says how many.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    async fn sweep(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

/// Credentials as requests ask for them: cached.
pub struct Credentials {
    store: Arc<dyn CredentialStore>,
    cache: FeedCache<CredentialHash, Arc<LoggedIn>, StoreError>,
}

impl Credentials {
    /// In front of `store`.
    pub fn new(store: Arc<dyn CredentialStore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            cache: FeedCache::new(CACHE, clock),
        }
    }

    /// What `credential` proves to `application` now.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    pub async fn check(
        &self,
        credential: &Credential,
        application: AppId,
        now: Timestamp,
    ) -> Result<Option<Arc<LoggedIn>>, Arc<StoreError>> {
        let hash = credential.hash();
        let read = async { Ok(self.store.find(&hash, now).await?.map(Arc::new)) };
        let found = self.cache.find(hash, read).await?;
        Ok(found.filter(|found| found.application == application && found.expires_at > now))
    }

    /// Stores a credential; the same one again changes nothing.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    pub async fn keep(&self, credential: NewCredential) -> Result<(), StoreError> {
        self.store.keep(credential).await
    }

    /// Ends a credential: here at once, in other processes by the change feed. CONTRACT 8: within 1 s.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    pub async fn revoke(&self, credential: &Credential, now: Timestamp) -> Result<(), StoreError> {
        self.store.revoke(&credential.hash(), now).await?;
        self.cache.invalidate(credential.hash());
        Ok(())
    }

    /// Another process, or this one, changed something.
    pub fn on_change(&self, change: &Change) {
        self.cache.on_change(change, |key| {
            key.try_into().ok().map(CredentialHash::from_bytes)
        });
    }

    /// As [`CredentialStore::sweep`].
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    pub async fn sweep(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.store.sweep(now, limit).await
    }
}

#[cfg(test)]
mod tests {
    use signpost_kit::clock::SystemClock;

    use super::*;
    use crate::testing::TestStore;

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
        let store = TestStore::new().await;
        let credentials = Credentials::new(store.stores().credentials, Arc::new(SystemClock));
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
        let store = TestStore::new().await;
        let credentials = Credentials::new(store.stores().credentials, Arc::new(SystemClock));
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
        let store = TestStore::new().await;
        let credentials = store.stores().credentials;
        let now = Timestamp::from_millis(1_000_000);
        for _ in 0..3 {
            credentials
                .keep(new_credential(&store, &Credential::generate(), now).await)
                .await
                .unwrap();
        }
        assert_eq!(credentials.sweep(now, 10).await.unwrap(), 0);
        let later = now.plus(Duration::from_secs(60));
        assert_eq!(credentials.sweep(later, 2).await.unwrap(), 2);
        assert_eq!(credentials.sweep(later, 2).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_revoked_one_is_kept_for_a_day() {
        let store = TestStore::new().await;
        let credentials = store.stores().credentials;
        let (credential, now) = (Credential::generate(), Timestamp::from_millis(1_000_000));
        let mut new = new_credential(&store, &credential, now).await;
        new.logged_in.expires_at = now.plus(Duration::from_secs(7 * 24 * 60 * 60));
        credentials.keep(new).await.unwrap();
        credentials.revoke(&credential.hash(), now).await.unwrap();
        let day = Duration::from_secs(24 * 60 * 60);
        let almost = now.plus(day - Duration::from_millis(1));
        assert_eq!(credentials.sweep(almost, 10).await.unwrap(), 0);
        assert_eq!(credentials.sweep(now.plus(day), 10).await.unwrap(), 1);
    }
}
