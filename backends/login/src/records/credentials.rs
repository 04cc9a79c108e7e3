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
use signpost_store::{
    Change, Store, StoreError, Topic,
    tables::credentials::{self, OF_HASH, VALID_UNTIL},
    values,
};

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

/// A renewed credential is valid for this much longer: the client may not have received the new one, and requests with
/// the renewed one may be in flight. CONTRACT 8.
const RENEWAL_OVERLAP: Duration = Duration::from_secs(60);

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

/// A renewal of a credential.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renewal {
    /// The hash of the credential that is renewed.
    pub(crate) renewed: CredentialHash,
    /// The hash of the new one.
    pub(crate) new: CredentialHash,
    /// When the new one expires.
    pub(crate) expires_at: Timestamp,
}

/// The stored credentials.
#[async_trait]
pub(crate) trait CredentialStore: Send + Sync {
    /// Inserts a credential. If it exists, or did before a renewal, nothing changes; in particular, a revoked one stays
    /// revoked.
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

    /// Renews a credential, and notifies every process; `false` if it is unknown, revoked or expired.
    ///
    /// Afterwards the login has two valid credentials: the renewed one for [`RENEWAL_OVERLAP`] since it was renewed first,
    /// and the new one. Each other one ends, also if the renewed one was renewed before.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn renew(&self, renewal: Renewal, now: Timestamp) -> Result<bool, StoreError>;

    /// Revokes a credential with what it was renewed to or from, and notifies every process.
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
        let insert = "INSERT INTO credentials (hash, issued_hash, account_id, application_id, created_at, expires_at) \
                      VALUES ($1, $1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
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

    async fn renew(&self, renewal: Renewal, now: Timestamp) -> Result<bool, StoreError> {
        // One row, so that concurrent renewals wait for each other, and the last one decides.
        let renew = format!(
            "UPDATE credentials SET \
                 ended_hash = CASE WHEN hash = $1 THEN previous_hash ELSE hash END, \
                 previous_until = CASE WHEN {VALID_UNTIL} < $4 THEN {VALID_UNTIL} ELSE $4 END, \
                 previous_hash = $1, hash = $2, issued_hash = coalesce(issued_hash, hash), expires_at = $5 \
             WHERE {OF_HASH} AND {VALID_UNTIL} > $3"
        );
        let values = values![
            renewal.renewed.as_bytes(),
            renewal.new.as_bytes(),
            now,
            now.plus(RENEWAL_OVERLAP),
            renewal.expires_at,
        ];
        let changed = "previous_hash || coalesce(ended_hash, '')";
        let renewed = self.change(Topic::Credential, (&renew, changed), values);
        Ok(renewed.await? > 0)
    }

    async fn revoke(&self, hash: &CredentialHash, now: Timestamp) -> Result<(), StoreError> {
        let revoke = format!("UPDATE credentials SET revoked_at = $2 WHERE {OF_HASH}");
        let values = values![hash.as_bytes(), now];
        let changed = "hash || coalesce(previous_hash, '')";
        let revoked = self.change(Topic::Credential, (&revoke, changed), values);
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

    /// Renews a credential; `None` if it is not valid any more. It changes here at once, in other processes, and with it
    /// what the renewal has ended, through the change feed.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub(crate) async fn renew(
        &self,
        credential: &Credential,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Credential>, StoreError> {
        let new = random_credential();
        let renewal = Renewal {
            renewed: credential.hash(),
            new: new.hash(),
            expires_at,
        };
        let is_renewed = self.store.renew(renewal, now).await?;
        self.cache.invalidate(renewal.renewed);
        Ok(is_renewed.then_some(new))
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
        self.cache.on_change(change, credentials::changed);
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

    /// Credentials of a process that a change feed serves, with one credential in it.
    async fn with_one(store: &TestStore) -> (Credentials, Credential, NewCredential, Timestamp) {
        let credentials = Credentials::new(store.stores().credentials, Arc::new(SystemClock));
        let (first, now) = (random_credential(), Timestamp::from_millis(1_000_000));
        let mut new = new_credential(store, &first, now).await;
        new.logged_in.expires_at = now.plus(Duration::from_secs(7200));
        credentials.store.insert(new.clone()).await.unwrap();
        (credentials, first, new, now)
    }

    #[tokio::test]
    async fn a_renewed_credential_ends_after_the_overlap() {
        let store = TestStore::new().await;
        let (credentials, first, new, now) = with_one(&store).await;
        // It is cached now.
        assert!(is_valid(&credentials, &first, APP, now).await);
        let expires_at = now.plus(Duration::from_secs(9999));
        let second = credentials.renew(&first, expires_at, now).await.unwrap();
        let second = second.unwrap();
        let found = credentials.check(&second, APP, now).await.unwrap().unwrap();
        assert_eq!(found.expires_at, expires_at);
        assert_eq!(found.account.id, new.logged_in.account.id);
        let almost = now.plus(RENEWAL_OVERLAP - Duration::from_millis(1));
        let over = now.plus(RENEWAL_OVERLAP);
        assert!(is_valid(&credentials, &first, APP, almost).await);
        assert!(!is_valid(&credentials, &first, APP, over).await);
        assert!(!is_valid(&credentials, &second, AppId::new(4), over).await);
        let late = credentials.renew(&first, expires_at, over).await.unwrap();
        assert!(late.is_none(), "the overlap is over");
        // The token of a polling login asks for the first one again.
        credentials.store.insert(new).await.unwrap();
        assert!(!is_valid(&credentials, &first, APP, over).await);
        assert!(is_valid(&credentials, &second, APP, over).await);
        assert_eq!(store.count("credentials").await, 1);
    }

    #[tokio::test]
    async fn a_repeated_renewal_ends_the_earlier_successor() {
        let store = TestStore::new().await;
        let (credentials, first, _, now) = with_one(&store).await;
        let renew = async |credential, now: Timestamp| {
            let expires_at = now.plus(Duration::from_secs(60 * 60));
            credentials
                .renew(credential, expires_at, now)
                .await
                .unwrap()
        };
        let lost = renew(&first, now).await.unwrap();
        let later = now.plus(Duration::from_secs(30));
        let second = renew(&first, later).await.unwrap();
        // The repetition has not prolonged the overlap.
        let over = now.plus(RENEWAL_OVERLAP);
        for (credential, at, expected) in [
            (&lost, later, false),
            (&second, later, true),
            (&first, later, true),
            (&first, over, false),
        ] {
            assert_eq!(is_valid(&credentials, credential, APP, at).await, expected);
        }
        // A chain: its beginning ends at once, so two are valid at any time.
        let third = renew(&second, later).await.unwrap();
        assert!(renew(&first, later).await.is_none());
        assert!(is_valid(&credentials, &second, APP, later).await);
        assert!(is_valid(&credentials, &third, APP, later).await);
        assert_eq!(store.count("credentials").await, 1);
    }

    #[tokio::test]
    async fn a_logout_ends_both_sides_of_a_renewal() {
        for with_renewed in [false, true] {
            let store = TestStore::new().await;
            let (credentials, first, _, now) = with_one(&store).await;
            let second = credentials
                .renew(&first, now.plus(RENEWAL_OVERLAP), now)
                .await;
            let second = second.unwrap().unwrap();
            let out = if with_renewed { &first } else { &second };
            credentials.revoke(out, now).await.unwrap();
            for credential in [&first, &second] {
                assert!(!is_valid(&credentials, credential, APP, now).await);
                let renewed = credentials
                    .renew(credential, now.plus(RENEWAL_OVERLAP), now)
                    .await;
                assert!(renewed.unwrap().is_none());
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn fifty_concurrent_renewals_leave_one_successor() {
        let store = TestStore::new().await;
        let (credentials, first, new, now) = with_one(&store).await;
        let handles = [
            store.stores().credentials,
            store.of_another_process().await.credentials,
        ];
        let tasks: Vec<_> = (0..50)
            .map(|index| {
                let (handle, new) = (handles[index % 2].clone(), new.clone());
                let renewal = Renewal {
                    renewed: first.hash(),
                    new: random_credential().hash(),
                    expires_at: now.plus(Duration::from_secs(60)),
                };
                tokio::spawn(async move {
                    // `/check` asks for the first one meanwhile.
                    handle.insert(new).await.unwrap();
                    let renewed = handle.renew(renewal, now).await.unwrap();
                    renewed.then_some(renewal.new)
                })
            })
            .collect();
        let mut valid = 0;
        let mut hashes = Vec::new();
        for task in tasks {
            hashes.push(task.await.unwrap().expect("within the overlap"));
        }
        for hash in hashes {
            valid += usize::from(credentials.store.find(&hash, now).await.unwrap().is_some());
        }
        assert_eq!((valid, store.count("credentials").await), (1, 1));
        assert!(is_valid(&credentials, &first, APP, now).await);
        assert!(!is_valid(&credentials, &first, APP, now.plus(RENEWAL_OVERLAP)).await);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn other_processes_learn_of_all_that_a_renewal_ends() {
        let store = TestStore::new().await;
        let (credentials, first, _, now) = with_one(&store).await;
        let elsewhere = Credentials::new(
            store.of_another_process().await.credentials,
            Arc::new(SystemClock),
        );
        let elsewhere = Arc::new(elsewhere);
        let watching = Arc::clone(&elsewhere);
        let watch = store.store().watch(Duration::default, move |change| {
            watching.on_change(&change);
        });
        let _watch = watch.unwrap();
        let expires_at = now.plus(Duration::from_secs(60 * 60));
        let renew = async || credentials.renew(&first, expires_at, now).await.unwrap();
        let ended = renew().await.unwrap();
        assert!(is_valid(&elsewhere, &first, APP, now).await);
        assert!(is_valid(&elsewhere, &ended, APP, now).await);
        renew().await.unwrap();
        let over = now.plus(RENEWAL_OVERLAP);
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while is_valid(&elsewhere, &ended, APP, now).await
            || is_valid(&elsewhere, &first, APP, over).await
        {
            assert!(std::time::Instant::now() < deadline, "still valid");
            tokio::task::yield_now().await;
        }
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
