//! Credentials: each proves a user's login to one application until it expires or is revoked.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use signpost_kit::{
    cache::{CacheStatus, FeedCache, FeedCacheSettings, UnknownKeys},
    clock::{Clock, Timestamp},
};
use signpost_protocol::app::AppId;
pub(crate) use signpost_protocol::credential::{Credential, CredentialHash};
pub(crate) use signpost_store::tables::credentials::CredentialClaims;
use signpost_store::{Change, Store, StoreError, Topic, tables::credentials, values};

use crate::secret::{Secret, random};

/// Generates a random credential.
pub(crate) fn random_credential() -> Credential {
    Credential::from_bytes(random())
}

/// The credential of this secret.
pub(crate) fn credential_from(secret: &Secret) -> Credential {
    Credential::from_bytes(*secret.as_bytes())
}

/// Some 300 bytes each, a few MiB in all, for the users who are active now. Unknown credentials are not cached: forged
/// ones differ each time.
const CACHE: FeedCacheSettings = FeedCacheSettings {
    topic: Topic::Credential,
    entries: 20_000,
    lifetime: Duration::from_secs(5 * 60),
    unknown_keys: UnknownKeys::LookedUp,
};

/// Retention of revoked credentials: longer than any token can issue the same credential again.
const REVOKED_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// A credential to be stored.
#[derive(Clone, Debug)]
pub(crate) struct NewCredential {
    /// The hash under which it is stored.
    pub(crate) hash: CredentialHash,
    /// What it proves.
    pub(crate) logged_in: CredentialClaims,
    /// When the login was completed.
    pub(crate) created_at: Timestamp,
}

/// The stored credentials.
#[async_trait]
pub(crate) trait CredentialStore: Send + Sync {
    /// Inserts a credential. If it exists, nothing changes; in particular, a revoked one stays revoked.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn insert(&self, credential: NewCredential) -> Result<(), StoreError>;

    /// Returns what a credential proves; `None` if it is unknown, revoked or expired.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn find(
        &self,
        hash: &CredentialHash,
        now: Timestamp,
    ) -> Result<Option<CredentialClaims>, StoreError>;

    /// Revokes a credential, and notifies every process.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn revoke(&self, hash: &CredentialHash, now: Timestamp) -> Result<(), StoreError>;

    /// Deletes up to `limit` expired or long revoked credentials, and returns how many.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn sweep(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

#[async_trait]
impl CredentialStore for Store {
    async fn insert(&self, credential: NewCredential) -> Result<(), StoreError> {
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
        self.execute(insert, values).await.map(drop)
    }

    async fn find(
        &self,
        hash: &CredentialHash,
        now: Timestamp,
    ) -> Result<Option<CredentialClaims>, StoreError> {
        credentials::find(self, hash, now).await
    }

    async fn revoke(&self, hash: &CredentialHash, now: Timestamp) -> Result<(), StoreError> {
        let revoke =
            "UPDATE credentials SET revoked_at = $2 WHERE hash = $1 AND revoked_at IS NULL";
        let values = values![hash.as_bytes(), now];
        let revoked = self.change(Topic::Credential, (revoke, "hash"), values);
        revoked.await.map(drop)
    }

    async fn sweep(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
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
        self.execute(&sweep, values).await
    }
}

/// A read-through cache of the stored credentials.
pub(crate) struct Credentials {
    pub(crate) store: Arc<dyn CredentialStore>,
    cache: FeedCache<CredentialHash, Arc<CredentialClaims>, StoreError>,
}

impl Credentials {
    /// Creates an empty cache in front of `store`.
    pub(crate) fn new(store: Arc<dyn CredentialStore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            cache: FeedCache::new(CACHE, clock),
        }
    }

    /// Returns what `credential` proves; `None` if it is not valid for `application` at `now`.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub(crate) async fn check(
        &self,
        credential: &Credential,
        application: AppId,
        now: Timestamp,
    ) -> Result<Option<Arc<CredentialClaims>>, Arc<StoreError>> {
        let hash = credential.hash();
        let read = async { Ok(self.store.find(&hash, now).await?.map(Arc::new)) };
        let found = self.cache.find(hash, read).await?;
        Ok(found.filter(|found| found.application == application && found.expires_at > now))
    }

    /// Revokes a credential: here at once, in other processes through the change feed. CONTRACT 8: within 1 s.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub(crate) async fn revoke(
        &self,
        credential: &Credential,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.store.revoke(&credential.hash(), now).await?;
        self.cache.invalidate(credential.hash());
        Ok(())
    }

    /// Cached values are used for this long after the change feed was lost.
    pub(crate) fn set_stale(&self, stale: Duration) {
        self.cache.set_stale(stale);
    }

    /// The state of the cache.
    pub(crate) fn cache_status(&self) -> CacheStatus {
        self.cache.status()
    }

    /// Invalidates the cache entries that `change` concerns.
    pub(crate) fn on_change(&self, change: &Change) {
        self.cache.on_change(change, |key| {
            key.try_into().ok().map(CredentialHash::from_bytes)
        });
    }
}

#[cfg(test)]
mod both_stores {
    use signpost_kit::clock::SystemClock;

    use super::*;
    use crate::testing::TestStore;

    const APP: AppId = AppId::new(3);

    async fn new_credential(
        store: &TestStore,
        credential: &Credential,
        now: Timestamp,
    ) -> NewCredential {
        let logged_in = CredentialClaims {
            account: store.account("user").await,
            application: APP,
            expires_at: now.plus(Duration::from_secs(60)),
        };
        NewCredential {
            hash: credential.hash(),
            logged_in,
            created_at: now,
        }
    }

    async fn is_valid(
        credentials: &Credentials,
        credential: &Credential,
        application: AppId,
        now: Timestamp,
    ) -> bool {
        let found = credentials.check(credential, application, now).await;
        found.unwrap().is_some()
    }

    #[tokio::test]
    async fn a_credential_is_valid_for_one_application_until_it_expires() {
        let store = TestStore::new().await;
        let credentials = Credentials::new(store.stores().credentials, Arc::new(SystemClock));
        let (credential, now) = (random_credential(), Timestamp::from_millis(1_000_000));
        assert!(!is_valid(&credentials, &credential, APP, now).await);
        let new = new_credential(&store, &credential, now).await;
        credentials.store.insert(new).await.unwrap();
        let found = credentials
            .check(&credential, APP, now)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(found.account.username.as_str(), "user");
        assert!(!is_valid(&credentials, &credential, AppId::new(4), now).await);
        let later = now.plus(Duration::from_secs(60));
        assert!(!is_valid(&credentials, &credential, APP, later).await);
    }

    #[tokio::test]
    async fn a_revoked_credential_is_invalid_even_if_it_is_inserted_again() {
        let store = TestStore::new().await;
        let credentials = Credentials::new(store.stores().credentials, Arc::new(SystemClock));
        let (credential, now) = (random_credential(), Timestamp::from_millis(1_000_000));
        let new = new_credential(&store, &credential, now).await;
        credentials.store.insert(new.clone()).await.unwrap();
        assert!(is_valid(&credentials, &credential, APP, now).await);
        credentials.revoke(&credential, now).await.unwrap();
        assert!(!is_valid(&credentials, &credential, APP, now).await);
        credentials.store.insert(new).await.unwrap();
        assert!(!is_valid(&credentials, &credential, APP, now).await);
    }

    #[tokio::test]
    async fn expired_credentials_are_swept() {
        let store = TestStore::new().await;
        let credentials = store.stores().credentials;
        let now = Timestamp::from_millis(1_000_000);
        for _ in 0..3 {
            credentials
                .insert(new_credential(&store, &random_credential(), now).await)
                .await
                .unwrap();
        }
        assert_eq!(credentials.sweep(now, 10).await.unwrap(), 0);
        let later = now.plus(Duration::from_secs(60));
        assert_eq!(credentials.sweep(later, 2).await.unwrap(), 2);
        assert_eq!(credentials.sweep(later, 2).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_revoked_credential_is_swept_after_a_day() {
        let store = TestStore::new().await;
        let credentials = store.stores().credentials;
        let (credential, now) = (random_credential(), Timestamp::from_millis(1_000_000));
        let mut new = new_credential(&store, &credential, now).await;
        new.logged_in.expires_at = now.plus(Duration::from_secs(7 * 24 * 60 * 60));
        credentials.insert(new).await.unwrap();
        credentials.revoke(&credential.hash(), now).await.unwrap();
        let day = Duration::from_secs(24 * 60 * 60);
        let almost = now.plus(day - Duration::from_millis(1));
        assert_eq!(credentials.sweep(almost, 10).await.unwrap(), 0);
        assert_eq!(credentials.sweep(now.plus(day), 10).await.unwrap(), 1);
    }
}
