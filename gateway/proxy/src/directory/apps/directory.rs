//! Looks up a request's application: the single one, or a cached one of the store. CONTRACT 4.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use signpost_kit::{
    cache::{CacheStatus, FeedCache, FeedCacheSettings, LookupError, UnknownKeys},
    clock::{Clock, SystemClock},
};
use signpost_protocol::{app::AppIdent, sign::AppKey};
use signpost_store::{Change, Topic};

use super::{App, AppStore, AppStoreError, seal::SealError, unread::Unread};

/// Looks up applications. Clones share the cache.
#[derive(Clone)]
pub enum AppDirectory {
    /// One application for all requests.
    Single(Arc<App>),
    /// Many applications, by ident.
    Multi(Arc<CachedApps>),
}

impl AppDirectory {
    /// Frees the cache if `replacement` has another one.
    pub fn retire(&self, replacement: &Self) {
        if let (Self::Multi(old), Self::Multi(new)) = (self, replacement)
            && !Arc::ptr_eq(old, new)
        {
            // Requests in flight keep the old cache alive. Its entries need not wait for the last of them.
            old.clear();
        }
    }

    /// The state of the cache; `None` without one.
    #[must_use]
    pub(crate) fn cache_status(&self) -> Option<CacheStatus> {
        match self {
            Self::Single(_) => None,
            Self::Multi(apps) => Some(apps.cache.status()),
        }
    }

    /// Cached applications are used for this long after the store's change feed was lost.
    pub fn set_stale(&self, stale: Duration) {
        if let Self::Multi(apps) = self {
            apps.cache.set_stale(stale);
        }
    }

    /// How long cached applications are used if the store does not answer; `None` with a single one, which needs no store.
    #[must_use]
    pub fn time_without_store(&self) -> Option<Duration> {
        match self {
            Self::Single(_) => None,
            Self::Multi(apps) => Some(apps.cache.time_without_store()),
        }
    }

    /// A directory of one application.
    #[must_use]
    pub fn single(key: AppKey) -> Self {
        Self::Single(Arc::new(App::single(key)))
    }
}

/// Lifetime of a cached application: it is refreshed even if the change feed reported no change.
const LIFETIME: Duration = Duration::from_secs(5 * 60);

/// A cache in front of a store. It also caches unknown idents, since a client with a wrong one keeps sending it.
pub struct CachedApps {
    store: Arc<dyn AppStore>,
    pub(super) cache: FeedCache<AppIdent, Arc<App>, AppStoreError>,
    pub(super) all: Arc<AllCaches>,
}

/// The caches in front of one store: the current one, and after a resize the old one while requests still use it.
#[derive(Default)]
pub(super) struct AllCaches {
    caches: Mutex<Vec<Weak<CachedApps>>>,
    /// What changes have removed from them.
    pub(super) unread: Unread,
}

impl AllCaches {
    /// The one that requests use now: the last.
    pub(super) fn current(&self) -> Option<Arc<CachedApps>> {
        self.lock().iter().rev().find_map(Weak::upgrade)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<CachedApps>>> {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_change(&self, change: &Change) {
        self.lock().retain(|apps| {
            let apps = apps.upgrade();
            if let Some(apps) = &apps {
                // The empty key of an import and a newer release's keys are not idents: then all entries are invalidated.
                apps.cache
                    .on_change(change, |key| Some([AppIdent::try_from(key).ok()?]));
            }
            apps.is_some()
        });
        // Afterwards: what is read before would not be cached.
        self.unread.on_change(change);
    }
}

impl CachedApps {
    /// Creates an empty cache of at most `entries` applications.
    #[must_use]
    pub fn new(store: Arc<dyn AppStore>, entries: u64) -> Arc<Self> {
        Self::with_clock(store, entries, Arc::new(SystemClock))
    }

    fn with_clock(store: Arc<dyn AppStore>, entries: u64, clock: Arc<dyn Clock>) -> Arc<Self> {
        let settings = FeedCacheSettings {
            topic: Topic::Application,
            entries,
            lifetime: LIFETIME,
            unknown_keys: UnknownKeys::Cached,
        };
        let apps = Arc::new(Self {
            store,
            cache: FeedCache::new(settings, clock),
            all: Arc::default(),
        });
        apps.all.lock().push(Arc::downgrade(&apps));
        apps
    }

    /// A cache of this size in front of the same store: this one, or a copy that gets the same notifications. Blocks
    /// while entries are copied.
    #[must_use]
    pub fn resized(self: &Arc<Self>, entries: u64) -> Arc<Self> {
        if entries == self.cache.entries() {
            return Arc::clone(self);
        }
        // The lock keeps changes from being applied during the copy.
        let mut all = self.all.lock();
        all.retain(|apps| apps.strong_count() > 0);
        let resized = Arc::new(Self {
            store: Arc::clone(&self.store),
            cache: self.cache.resized(entries),
            all: Arc::clone(&self.all),
        });
        all.push(Arc::downgrade(&resized));
        // A larger cache may have places for all applications now: the loader has to count and read them.
        self.all.unread.add_all();
        resized
    }

    /// Looks up an application.
    ///
    /// # Errors
    ///
    /// No usable entry is cached, and the store is unavailable or the record is malformed.
    pub async fn find(&self, ident: AppIdent) -> Result<Option<Arc<App>>, Arc<AppStoreError>> {
        let from_store = async { Ok(self.store.find(ident).await?.map(Arc::new)) };
        self.cache.find(ident, from_store).await
    }

    /// Frees the entries: another cache has replaced this one.
    pub fn clear(&self) {
        self.cache.clear();
    }

    /// The change feed's subscriber for all caches of the store. It invalidates changed entries, and tracks whether the
    /// feed works.
    pub(crate) fn subscriber(&self) -> impl Fn(&Change) + Send + Sync + use<> {
        let all = Arc::clone(&self.all);
        move |change| all.on_change(change)
    }
}

impl LookupError for AppStoreError {
    fn is_unavailable(&self) -> bool {
        match self {
            Self::Store(error) => error.is_unavailable(),
            // This gateway does not know a master key that the others know. What it has cached is still right.
            Self::Seal(error) => matches!(error, SealError::OtherMasterKey(_)),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
