//! Credentials: each proves a user's login to one application until it expires or is revoked.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use signpost_kit::{
    cache::{CacheStatus, FeedCache, FeedCacheSettings, UnknownKeys},
    clock::{Clock, Timestamp, millis},
};
use signpost_protocol::app::AppId;
pub(crate) use signpost_protocol::credential::{Credential, CredentialHash, LoginHash};
pub(crate) use signpost_store::tables::credentials::CredentialClaims;
use signpost_store::{
    Change, Changed, FromRow, Row, Store, StoreError, Topic,
    tables::credentials::{self, OF_HASH, VALID_UNTIL},
    values,
};

use super::accounts::AccountId;
use crate::{
    config::Lifetimes,
    secret::{LENGTH, Secret, random},
};

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
/// the renewed one may be in flight. Until then the new one cannot be renewed. CONTRACT 8.
///
/// Until the sweep after the overlap, some two minutes in all, whoever reads the row and has the renewed credential can
/// compute the new one; during the overlap a renewal returns it to them anyway.
const RENEWAL_OVERLAP: Duration = Duration::from_secs(60);

/// Retention of revoked credentials: longer than any token can issue the same credential again.
const REVOKED_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// A credential to be stored.
#[derive(Clone, Debug)]
pub(crate) struct NewCredential {
    /// The hash under which it is stored.
    pub(crate) hash: CredentialHash,
    /// What it has in common with all credentials of the login.
    pub(crate) login: LoginHash,
    /// What it proves.
    pub(crate) logged_in: CredentialClaims,
    /// When the login was completed.
    pub(crate) created_at: Timestamp,
}

/// A renewal of a credential.
#[derive(Clone, Copy)]
pub(crate) struct Renewal {
    /// The hash of the credential that is renewed.
    pub(crate) renewed: CredentialHash,
    /// The hash of the new one.
    pub(crate) new: CredentialHash,
    /// Derives the new one from the renewed one.
    pub(crate) salt: [u8; LENGTH],
    /// When the new one expires, unless the login becomes too old before.
    pub(crate) expires_at: Timestamp,
    /// The age of a login up to which a renewal prolongs it.
    pub(crate) max_age: Duration,
}

/// What a valid credential is to the renewals of its login.
pub(crate) enum RenewalState {
    /// The present one. The last renewal's overlap ends at this time; then it can be renewed.
    Present(Option<Timestamp>),
    /// The renewed one: the salt of the present one, and when that expires.
    Renewed([u8; LENGTH], Timestamp),
}

impl FromRow for RenewalState {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(match row.get::<Option<_>>("salt")? {
            Some(salt) => Self::Renewed(salt, row.get("expires_at")?),
            None => Self::Present(row.get("previous_until")?),
        })
    }
}

/// The result of a renewal.
pub(crate) enum Renewed {
    /// The new credential, and when it expires.
    To(Credential, Timestamp),
    /// The credential is younger than [`RENEWAL_OVERLAP`], and can be renewed after this time.
    TooSoon(Duration),
}

/// A login that was revoked.
pub(crate) struct RevokedLogin {
    account: AccountId,
    /// Its present credential, and the one before.
    hashes: (CredentialHash, Option<CredentialHash>),
}

impl FromRow for RevokedLogin {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let previous = row.get::<Option<_>>("previous_hash")?;
        Ok(Self {
            account: AccountId::new(row.get("account_id")?),
            hashes: (
                CredentialHash::from_bytes(row.get("hash")?),
                previous.map(CredentialHash::from_bytes),
            ),
        })
    }
}

/// The stored credentials.
#[async_trait]
pub(crate) trait CredentialStore: Send + Sync {
    /// Inserts a login's first credential. If the login has one already, nothing changes: a renewed one stays renewed, a
    /// revoked one revoked.
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

    /// Returns what a credential is to the renewals of its login; `None` if it is unknown, revoked or expired.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn find_renewal(
        &self,
        hash: &CredentialHash,
        now: Timestamp,
    ) -> Result<Option<RenewalState>, StoreError>;

    /// Renews a credential, and notifies every process. Nothing changes unless it is the present one of a valid login
    /// whose last renewal has ended its overlap.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn renew(&self, renewal: Renewal, now: Timestamp) -> Result<(), StoreError>;

    /// Revokes all credentials of a login, and notifies every process; `None` if the login is not valid, or another
    /// application's.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn revoke(
        &self,
        login: &LoginHash,
        application: AppId,
        now: Timestamp,
    ) -> Result<Option<RevokedLogin>, StoreError>;

    /// Deletes up to `limit` expired or long revoked credentials, removes the salts of as many renewals whose overlap is
    /// over, and returns the larger number.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn sweep(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

#[async_trait]
impl CredentialStore for Store {
    async fn insert(&self, credential: NewCredential) -> Result<(), StoreError> {
        let insert = "INSERT INTO credentials (hash, login_hash, account_id, application_id, created_at, expires_at) \
                      VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
        let logged_in = credential.logged_in;
        let values = values![
            credential.hash.as_bytes(),
            credential.login.as_bytes(),
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

    async fn find_renewal(
        &self,
        hash: &CredentialHash,
        now: Timestamp,
    ) -> Result<Option<RenewalState>, StoreError> {
        let find = format!(
            "SELECT CASE WHEN hash = $1 THEN NULL ELSE renewal_salt END AS salt, previous_until, expires_at \
             FROM credentials WHERE {OF_HASH} AND {VALID_UNTIL} > $2"
        );
        self.row(&find, values![hash.as_bytes(), now]).await
    }

    async fn renew(&self, renewal: Renewal, now: Timestamp) -> Result<(), StoreError> {
        // One row, so that concurrent renewals wait for each other, and the first one decides.
        let renew = "UPDATE credentials SET hash = $2, renewal_salt = $3, previous_hash = hash, \
                 previous_until = CASE WHEN expires_at < $5 THEN expires_at ELSE $5 END, \
                 expires_at = CASE WHEN $6 < expires_at OR $6 < created_at + $7 THEN $6 \
                     WHEN created_at + $7 > expires_at THEN created_at + $7 ELSE expires_at END \
             WHERE hash = $1 AND revoked_at IS NULL AND expires_at > $4 \
                 AND (previous_until IS NULL OR previous_until <= $4)";
        let values = values![
            renewal.renewed.as_bytes(),
            renewal.new.as_bytes(),
            &renewal.salt,
            now,
            now.plus(RENEWAL_OVERLAP),
            renewal.expires_at,
            millis(renewal.max_age),
        ];
        let renewed = self.change(Changed::Credential, (renew, "previous_hash"), values);
        renewed.await.map(drop)
    }

    async fn revoke(
        &self,
        login: &LoginHash,
        application: AppId,
        now: Timestamp,
    ) -> Result<Option<RevokedLogin>, StoreError> {
        let valid =
            "login_hash = $1 AND application_id = $2 AND revoked_at IS NULL AND expires_at > $3";
        let values = || values![login.as_bytes(), application.get(), now];
        // Anyone can send unknown credentials: these must not wait for the write lock, or take it.
        let find = format!("SELECT account_id FROM credentials WHERE {valid}");
        let found: Option<(i64,)> = self.row(&find, values()).await?;
        let revoke = format!("UPDATE credentials SET revoked_at = $3 WHERE {valid}");
        let changed = (&*revoke, "hash || coalesce(previous_hash, '')");
        if found.is_none() || self.change(Changed::Credential, changed, values()).await? == 0 {
            return Ok(None);
        }
        // No renewal changes them any more.
        let find = "SELECT hash, previous_hash, account_id FROM credentials WHERE login_hash = $1";
        self.row(find, values![login.as_bytes()]).await
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
        let deleted = self.execute(&sweep, values).await?;
        // A renewal in between begins a new overlap.
        let forget = format!(
            "UPDATE credentials SET previous_hash = NULL, previous_until = NULL, renewal_salt = NULL \
             WHERE hash IN ({}) AND previous_until <= $1",
            ended("previous_until", 1)
        );
        let forgotten = self.execute(&forget, values![now]).await?;
        Ok(deleted.max(forgotten))
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

    /// Renews a credential; `None` if it is not valid any more. A repetition writes nothing, and has the same result.
    /// The renewed credential's end changes here at once, in other processes through the change feed.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub(crate) async fn renew(
        &self,
        credential: &Credential,
        lifetimes: &Lifetimes,
        now: Timestamp,
    ) -> Result<Option<Renewed>, StoreError> {
        let hash = credential.hash();
        let mut state = self.store.find_renewal(&hash, now).await?;
        if let Some(RenewalState::Present(until)) = state
            && until.is_none_or(|until| until <= now)
        {
            let salt = random();
            let renewal = Renewal {
                renewed: hash,
                new: credential.renewed(&salt).hash(),
                salt,
                expires_at: now.plus(lifetimes.credential),
                max_age: lifetimes.renewal,
            };
            self.store.renew(renewal, now).await?;
            self.cache.invalidate(hash);
            // Of several concurrent renewals, the store has the first one's.
            state = self.store.find_renewal(&hash, now).await?;
        }
        Ok(state.map(|state| match state {
            RenewalState::Renewed(salt, expires_at) => {
                Renewed::To(credential.renewed(&salt), expires_at)
            }
            RenewalState::Present(until) => {
                Renewed::TooSoon(until.map_or(Duration::ZERO, |until| until.since(now)))
            }
        }))
    }

    /// Revokes all credentials of the login that `credential` belongs to, even if it was renewed long ago: here at once,
    /// in other processes through the change feed. CONTRACT 8: within 1 s. Returns the account; `None` if no login of
    /// `application` is valid with it.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub(crate) async fn revoke(
        &self,
        credential: &Credential,
        application: AppId,
        now: Timestamp,
    ) -> Result<Option<AccountId>, StoreError> {
        let login = credential.login_hash();
        let Some(revoked) = self.store.revoke(&login, application, now).await? else {
            return Ok(None);
        };
        let (hash, previous) = revoked.hashes;
        for ended in [Some(hash), previous].into_iter().flatten() {
            self.cache.invalidate(ended);
        }
        Ok(Some(revoked.account))
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
            login: credential.login_hash(),
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
        let revoked = credentials.revoke(&credential, APP, now).await.unwrap();
        assert_eq!(revoked, Some(new.logged_in.account.id));
        assert!(!is_valid(&credentials, &credential, APP, now).await);
        credentials.store.insert(new).await.unwrap();
        assert!(!is_valid(&credentials, &credential, APP, now).await);
    }

    const HOUR: Duration = Duration::from_secs(60 * 60);

    /// Credentials of a process, with one in it that expires after an hour.
    async fn with_one(store: &TestStore) -> (Credentials, Credential, NewCredential, Timestamp) {
        let credentials = Credentials::new(store.stores().credentials, Arc::new(SystemClock));
        let (first, now) = (random_credential(), Timestamp::from_millis(1_000_000));
        let mut new = new_credential(store, &first, now).await;
        new.logged_in.expires_at = now.plus(HOUR);
        credentials.store.insert(new.clone()).await.unwrap();
        (credentials, first, new, now)
    }

    /// Renews a credential for an hour, of a login that may become three hours old.
    async fn renew(
        credentials: &Credentials,
        credential: &Credential,
        now: Timestamp,
    ) -> Option<Renewed> {
        let lifetimes = Lifetimes {
            login: HOUR,
            claim: HOUR,
            ticket: HOUR,
            credential: HOUR,
            renewal: 3 * HOUR,
            event: None,
        };
        let renewed = credentials.renew(credential, &lifetimes, now).await;
        renewed.unwrap()
    }

    /// As `renew`, with success.
    async fn renewed(
        credentials: &Credentials,
        credential: &Credential,
        now: Timestamp,
    ) -> (Credential, Timestamp) {
        match renew(credentials, credential, now).await {
            Some(Renewed::To(credential, expires_at)) => (credential, expires_at),
            Some(Renewed::TooSoon(wait)) => panic!("renewed too soon by {wait:?}"),
            None => panic!("not valid"),
        }
    }

    #[tokio::test]
    async fn a_renewed_credential_ends_after_the_overlap() {
        let store = TestStore::new().await;
        let (credentials, first, new, now) = with_one(&store).await;
        // It is cached now.
        assert!(is_valid(&credentials, &first, APP, now).await);
        let begin = now.plus(Duration::from_secs(1));
        let (second, expires_at) = renewed(&credentials, &first, begin).await;
        assert_eq!(expires_at, begin.plus(HOUR));
        let found = credentials.check(&second, APP, begin).await.unwrap();
        let found = found.unwrap();
        assert_eq!(found.expires_at, expires_at);
        assert_eq!(found.account.id, new.logged_in.account.id);
        let over = begin.plus(RENEWAL_OVERLAP);
        let almost = over.minus(Duration::from_millis(1));
        // A repetition has the same result, and changes nothing.
        let (again, same) = renewed(&credentials, &first, almost).await;
        assert_eq!((again.hash(), same), (second.hash(), expires_at));
        assert!(is_valid(&credentials, &first, APP, almost).await);
        assert!(!is_valid(&credentials, &first, APP, over).await);
        assert!(!is_valid(&credentials, &second, AppId::new(4), over).await);
        assert!(renew(&credentials, &first, over).await.is_none());
        // The token of a polling login asks for the first one again.
        credentials.store.insert(new).await.unwrap();
        assert!(!is_valid(&credentials, &first, APP, over).await);
        assert!(is_valid(&credentials, &second, APP, over).await);
        assert_eq!(store.count("credentials").await, 1);
    }

    #[tokio::test]
    async fn who_reads_the_store_after_the_overlap_cannot_compute_the_present_credential() {
        let store = TestStore::new().await;
        let (credentials, first, _, now) = with_one(&store).await;
        let (second, _) = renewed(&credentials, &first, now).await;
        let salt = async || {
            let read = "SELECT renewal_salt FROM credentials WHERE renewal_salt IS NOT NULL";
            let found: Option<([u8; LENGTH],)> = store.store().row(read, values![]).await.unwrap();
            found.map(|(salt,)| salt)
        };
        let over = now.plus(RENEWAL_OVERLAP);
        let almost = over.minus(Duration::from_millis(1));
        assert_eq!(credentials.store.sweep(almost, 10).await.unwrap(), 0);
        let (again, _) = renewed(&credentials, &first, almost).await;
        assert_eq!(again.hash(), second.hash());
        let computed = first.renewed(&salt().await.unwrap());
        assert_eq!(computed.hash(), second.hash());
        assert_eq!(credentials.store.sweep(over, 10).await.unwrap(), 1);
        assert_eq!(salt().await, None);
        assert_eq!(credentials.store.sweep(over, 10).await.unwrap(), 0);
        assert!(renew(&credentials, &first, over).await.is_none());
        let (third, _) = renewed(&credentials, &second, over).await;
        assert!(is_valid(&credentials, &third, APP, over).await);
    }

    #[tokio::test]
    async fn a_credential_is_not_renewed_during_the_overlap_of_the_last_renewal() {
        let store = TestStore::new().await;
        let (credentials, first, _, now) = with_one(&store).await;
        let (second, _) = renewed(&credentials, &first, now).await;
        let later = now.plus(Duration::from_secs(20));
        let soon = renew(&credentials, &second, later).await;
        let Some(Renewed::TooSoon(wait)) = soon else {
            panic!("renewed again");
        };
        assert_eq!(wait, Duration::from_secs(40));
        let over = now.plus(RENEWAL_OVERLAP);
        let (third, _) = renewed(&credentials, &second, over).await;
        for (credential, expected) in [(&first, false), (&second, true), (&third, true)] {
            assert_eq!(
                is_valid(&credentials, credential, APP, over).await,
                expected
            );
        }
        assert_eq!(store.count("changes").await, 2);
    }

    #[tokio::test]
    async fn renewals_end_with_the_age_of_the_login() {
        let store = TestStore::new().await;
        let (credentials, mut credential, new, now) = with_one(&store).await;
        let end = now.plus(3 * HOUR);
        for minutes in [59, 110, 150, 170] {
            let at = now.plus(Duration::from_secs(60 * minutes));
            let expected = at.plus(HOUR).min(end);
            let (next, expires_at) = renewed(&credentials, &credential, at).await;
            assert_eq!(expires_at, expected, "after {minutes} minutes");
            credential = next;
        }
        assert!(!is_valid(&credentials, &credential, APP, end).await);
        assert!(renew(&credentials, &credential, end).await.is_none());
        let revoked = credentials.revoke(&credential, APP, end).await.unwrap();
        assert!(revoked.is_none());
        credentials.store.insert(new).await.unwrap();
        assert_eq!(store.count("credentials").await, 1);
    }

    #[tokio::test]
    async fn a_logout_with_any_credential_of_a_login_ends_all_at_once() {
        for out in 0..4 {
            let store = TestStore::new().await;
            let (credentials, first, _, mut now) = with_one(&store).await;
            let mut chain = vec![first];
            for index in 0..3 {
                now = now.plus(RENEWAL_OVERLAP);
                let (next, _) = renewed(&credentials, &chain[index], now).await;
                chain.push(next);
            }
            // The last two are cached.
            for (index, credential) in chain.iter().enumerate() {
                let expected = index >= 2;
                assert_eq!(is_valid(&credentials, credential, APP, now).await, expected);
            }
            let revoke = async |application| {
                let revoked = credentials.revoke(&chain[out], application, now).await;
                revoked.unwrap().is_some()
            };
            assert!(!revoke(AppId::new(4)).await);
            assert!(revoke(APP).await);
            assert!(!revoke(APP).await, "it has ended");
            for credential in &chain {
                assert!(!is_valid(&credentials, credential, APP, now).await);
                assert!(renew(&credentials, credential, now).await.is_none());
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_logout_during_a_renewal_ends_the_new_credential() {
        let store = TestStore::new().await;
        let other = store.of_another_process().await.credentials;
        let other = Arc::new(Credentials::new(other, Arc::new(SystemClock)));
        for _ in 0..20 {
            let (credentials, first, _, now) = with_one(&store).await;
            let task = {
                let (other, first) = (Arc::clone(&other), first.clone());
                tokio::spawn(async move { renew(&other, &first, now).await })
            };
            let revoked = credentials.revoke(&first, APP, now).await;
            assert!(revoked.unwrap().is_some());
            if let Some(Renewed::To(second, _)) = task.await.unwrap() {
                let found = credentials.store.find(&second.hash(), now).await;
                assert!(found.unwrap().is_none());
            }
            let found = credentials.store.find(&first.hash(), now).await;
            assert!(found.unwrap().is_none());
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn fifty_concurrent_renewals_have_one_result_and_write_once() {
        let store = TestStore::new().await;
        let (one, first, new, now) = with_one(&store).await;
        let other = store.of_another_process().await.credentials;
        let processes = [one, Credentials::new(other, Arc::new(SystemClock))].map(Arc::new);
        let tasks: Vec<_> = (0..50)
            .map(|index| {
                let (process, new) = (Arc::clone(&processes[index % 2]), new.clone());
                let first = first.clone();
                tokio::spawn(async move {
                    // `/check` asks for the first one meanwhile.
                    process.store.insert(new).await.unwrap();
                    renewed(&process, &first, now).await.0.hash()
                })
            })
            .collect();
        let mut hashes = Vec::new();
        for task in tasks {
            hashes.push(task.await.unwrap());
        }
        assert!(hashes.iter().all(|hash| *hash == hashes[0]));
        let found = processes[0].store.find(&hashes[0], now).await;
        assert!(found.unwrap().is_some());
        assert_eq!(store.count("credentials").await, 1);
        assert_eq!(store.count("changes").await, 1);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn other_processes_learn_when_a_renewed_credential_ends() {
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
        assert!(is_valid(&elsewhere, &first, APP, now).await);
        renewed(&credentials, &first, now).await;
        let over = now.plus(RENEWAL_OVERLAP);
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while is_valid(&elsewhere, &first, APP, over).await {
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
        let login = credential.login_hash();
        credentials.revoke(&login, APP, now).await.unwrap();
        let day = Duration::from_secs(24 * 60 * 60);
        let almost = now.plus(day - Duration::from_millis(1));
        assert_eq!(credentials.sweep(almost, 10).await.unwrap(), 0);
        assert_eq!(credentials.sweep(now.plus(day), 10).await.unwrap(), 1);
    }
}
