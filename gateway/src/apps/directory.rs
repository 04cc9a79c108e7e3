//! How a request finds its application: the one there is, or a cached record of the store. CONTRACT 4.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use gateway_protocol::{
    app::{AppId, AppIdent},
    sign::AppKey,
};
use signpost_kit::{
    clock::{Clock, SystemClock},
    feed_cache::{FeedCache, FeedCacheSettings, LookUpError, Unknown},
};
use signpost_store::{Change, Topic};

use super::{
    App, AppState,
    store::{AppStore, AppStoreError},
};

/// The key of a change that concerns all applications: an import tells of itself once, however many it brings.
pub(super) const ALL_APPLICATIONS: &[u8] = b"";

/// Where applications are looked up. Clones share what is cached.
#[derive(Clone)]
pub enum AppDirectory {
    /// One for all requests.
    Single(Arc<App>),
    /// By ident.
    Multi(Arc<CachedApps>),
}

impl AppDirectory {
    /// Gives the memory back, if `by` has taken its place.
    pub fn retire(&self, by: &Self) {
        if let (Self::Multi(old), Self::Multi(new)) = (self, by)
            && !Arc::ptr_eq(old, new)
        {
            old.clear();
        }
    }

    /// The one application of a configuration.
    #[must_use]
    pub fn single(key: AppKey) -> Self {
        Self::Single(Arc::new(App {
            id: AppId::SINGLE,
            ident: None,
            state: AppState::Active,
            key,
            previous_key: None,
            profile: None,
            default_version: None,
        }))
    }
}

/// A record that is older is read again, though its change would have been heard of. CONTRACT 4.
const LIFETIME: Duration = Duration::from_secs(5 * 60);

/// Records of a store, cached; unknown idents, too, since a client with a wrong one asks again and again.
pub struct CachedApps {
    store: Arc<dyn AppStore>,
    cache: FeedCache<AppIdent, Arc<App>, AppStoreError>,
    all: Arc<AllCaches>,
}

/// The caches in front of one store: one, and after a change of its size also the old one, as long as a request uses it.
#[derive(Default)]
struct AllCaches(Mutex<Vec<Weak<CachedApps>>>);

impl AllCaches {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<CachedApps>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_change(&self, change: &Change) {
        self.lock().retain(|apps| {
            let apps = apps.upgrade();
            if let Some(apps) = &apps {
                // `ALL_APPLICATIONS` is no ident, nor is what only a newer release knows: then all are invalidated.
                apps.cache
                    .on_change(change, |key| AppIdent::try_from(key).ok());
            }
            apps.is_some()
        });
    }
}

impl CachedApps {
    /// An empty cache of at most so many entries.
    #[must_use]
    pub fn new(store: Arc<dyn AppStore>, entries: u64) -> Arc<Self> {
        Self::with_clock(store, entries, Arc::new(SystemClock))
    }

    fn with_clock(store: Arc<dyn AppStore>, entries: u64, clock: Arc<dyn Clock>) -> Arc<Self> {
        let settings = FeedCacheSettings {
            topic: Topic::Application,
            entries,
            lifetime: LIFETIME,
            unknown: Unknown::Cached,
        };
        let apps = Arc::new(Self {
            store,
            cache: FeedCache::new(settings, clock),
            all: Arc::default(),
        });
        apps.all.lock().push(Arc::downgrade(&apps));
        apps
    }

    /// A cache of this size in front of the same store: this one, or another one with its values that hears of the same
    /// changes. Blocks while values are copied.
    #[must_use]
    pub(crate) fn of_size(self: &Arc<Self>, entries: u64) -> Arc<Self> {
        if entries == self.cache.entries() {
            return Arc::clone(self);
        }
        // No change is heard of meanwhile.
        let mut all = self.all.lock();
        all.retain(|apps| apps.strong_count() > 0);
        let resized = Arc::new(Self {
            store: Arc::clone(&self.store),
            cache: self.cache.resized(entries),
            all: Arc::clone(&self.all),
        });
        all.push(Arc::downgrade(&resized));
        resized
    }

    /// The application of that ident.
    ///
    /// # Errors
    ///
    /// Nothing is cached that may serve, and the store does not answer.
    pub async fn find(&self, ident: AppIdent) -> Result<Option<Arc<App>>, Arc<AppStoreError>> {
        let read = async { Ok(self.store.find(ident).await?.map(Arc::new)) };
        self.cache.find(ident, read).await
    }

    /// Gives the memory back: another cache has taken its place.
    pub(crate) fn clear(&self) {
        self.cache.clear();
    }

    /// What is to be told of changes, as long as there is a cache in front of the store: it invalidates what changed, and
    /// notes whether changes are heard.
    pub(crate) fn subscriber(&self) -> impl Fn(&Change) + Send + Sync + use<> {
        let all = Arc::clone(&self.all);
        move |change| all.on_change(change)
    }
}

impl LookUpError for AppStoreError {
    fn is_unavailable(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_unavailable())
    }
}

#[cfg(test)]
mod tests;
