//! Finds what a credential proves: in a cache, or in the store.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use signpost_kit::{
    cache::{CacheStatus, FeedCache, FeedCacheSettings, FreshValue, UnknownKeys},
    clock::{Clock, SystemClock, Timestamp},
};
use signpost_protocol::credential::{Credential, CredentialHash};
use signpost_store::{Change, Store, StoreError, Topic, tables::credentials};

use super::{AccountStore, CredentialClaims, lookups::Lookups, recent::Recent};

/// Some 500 bytes each, for the users who are active now. Unknown credentials are not cached: forged ones differ each
/// time, and would only evict the users' credentials.
const CACHE: FeedCacheSettings = FeedCacheSettings {
    topic: Topic::Credential,
    entries: 50_000,
    lifetime: Duration::from_secs(5 * 60),
    unknown_keys: UnknownKeys::LookedUp,
};

/// The result of a lookup, shared by all callers that waited for it.
pub(crate) type FoundClaims = Result<Option<Arc<CredentialClaims>>, Arc<StoreError>>;

/// A cache in front of the stored credentials.
pub struct AccountDirectory {
    store: Arc<dyn AccountStore>,
    cache: FeedCache<CredentialHash, Arc<CredentialClaims>, StoreError>,
    /// Created by the first request on a route with accounts.
    recent: OnceLock<Recent>,
    lookups: Lookups,
}

impl AccountDirectory {
    /// An empty cache in front of an open database.
    #[must_use]
    pub fn new(store: &Store) -> Self {
        Self::with_store(
            Arc::new(store.clone()),
            store.max_calls(),
            Arc::new(SystemClock),
        )
    }

    /// An empty cache in front of a store that allows this number of concurrent calls.
    #[must_use]
    pub fn with_store(
        store: Arc<dyn AccountStore>,
        max_calls: usize,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            store,
            cache: FeedCache::new(CACHE, clock),
            recent: OnceLock::new(),
            lookups: Lookups::new(max_calls),
        }
    }

    /// Returns what a credential proves, if that is cached and not stale. `sent` is the header's value.
    #[must_use]
    pub fn cached(&self, sent: &[u8]) -> Option<Arc<CredentialClaims>> {
        let recent = self.recent.get_or_init(Recent::new);
        let key = recent.key(sent);
        let is_fresh = |claims: &FreshValue<_>| self.cache.is_still_fresh(claims);
        if let Some(claims) = recent.find(key, is_fresh) {
            // The cache itself is not asked, so it counts no hit.
            self.cache.count_hit();
            return Some(claims);
        }
        let credential = Credential::try_from(sent).ok()?;
        let claims = self.cache.fresh(&credential.hash())?;
        let value = Arc::clone(&claims.value);
        recent.insert(key, claims);
        Some(value)
    }

    /// Returns what a client's credential proves; `None` if it is not valid. A cached one may have expired.
    ///
    /// # Errors
    ///
    /// Nothing usable is cached, and the store is unavailable, or has too many lookups to do.
    pub async fn find(&self, hash: CredentialHash, client: IpAddr, now: Timestamp) -> FoundClaims {
        let from_store = async {
            let turn = self.lookups.turn(client).await?;
            let store = Arc::clone(&self.store);
            // A task of its own: if the client leaves, its turn ends with the lookup. Otherwise clients that leave could
            // have more lookups in the store than there are turns.
            let lookup = tokio::spawn(async move {
                let claims = store.find(hash, now).await;
                // Named here, since the task owns only what its block uses.
                drop(turn);
                claims
            });
            let claims = lookup.await.map_err(|_| StoreError::Interrupted)?;
            Ok(claims?.map(Arc::new))
        };
        self.cache.find(hash, from_store).await
    }

    /// The state of the cache. A credential that was checked a moment ago counts as a hit.
    #[must_use]
    pub(crate) fn cache_status(&self) -> CacheStatus {
        self.cache.status()
    }

    /// Cached credentials are used for this long after the store's change feed was lost.
    pub fn set_stale(&self, stale: Duration) {
        self.cache.set_stale(stale);
    }

    /// How long cached credentials are used if the store does not answer; zero if there are none.
    #[must_use]
    pub fn time_without_store(&self) -> Duration {
        self.cache.time_without_store()
    }

    /// Invalidates the cached credentials that `change` concerns.
    pub(crate) fn on_change(&self, change: &Change) {
        self.cache.on_change(change, credentials::changed);
    }
}
