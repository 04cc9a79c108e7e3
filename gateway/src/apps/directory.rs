//! How a request finds its application: the one there is, or a record of the store, remembered. CONTRACT 4.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gateway_protocol::{
    app::{AppId, AppIdent},
    sign::{AppKey, SignProfile},
};
use moka::sync::Cache;
use signpost_store::{Change, Topic};

use super::{
    App, AppState,
    store::{AppStore, AppStoreError},
};

/// A record that is remembered serves so long, whatever happens to the store. CONTRACT 4.
const LONGEST_MEMORY: Duration = Duration::from_secs(5 * 60);

/// Where applications are looked up.
pub enum AppDirectory {
    /// One for all requests.
    Single(Arc<App>),
    /// By ident.
    Multi(Arc<CachedApps>),
}

impl AppDirectory {
    /// The one application of a configuration.
    #[must_use]
    pub fn single(key: AppKey, profile: SignProfile) -> Self {
        Self::Single(Arc::new(App {
            id: AppId::SINGLE,
            ident: None,
            state: AppState::Active,
            key,
            previous_key: None,
            profile,
            default_version: None,
        }))
    }
}

/// Records of a store, the lately asked for in memory, unknown idents among them.
pub struct CachedApps {
    store: Arc<dyn AppStore>,
    cache: Cache<AppIdent, Option<Arc<App>>>,
    /// Counts changes, so that a record read before one is not remembered after it.
    changes: AtomicU64,
}

impl CachedApps {
    /// An empty memory of at most so many entries.
    #[must_use]
    pub fn new(store: Arc<dyn AppStore>, entries: u64) -> Self {
        let cache = Cache::builder()
            .max_capacity(entries)
            .time_to_live(LONGEST_MEMORY)
            .build();
        Self {
            store,
            cache,
            changes: AtomicU64::new(0),
        }
    }

    /// The application of that ident.
    ///
    /// # Errors
    ///
    /// It is not remembered, and the store is away.
    pub async fn find(&self, ident: AppIdent) -> Result<Option<Arc<App>>, AppStoreError> {
        if let Some(remembered) = self.cache.get(&ident) {
            return Ok(remembered);
        }
        let changes_before = self.changes.load(Ordering::Acquire);
        let app = self.store.find(ident).await?.map(Arc::new);
        self.cache.insert(ident, app.clone());
        if self.changes.load(Ordering::Acquire) != changes_before {
            // It may have changed since it was read: then whoever comes next reads it again.
            self.cache.invalidate(&ident);
        }
        Ok(app)
    }

    /// Forgets what changed.
    pub fn on_change(&self, change: &Change) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        match change {
            Change::Item {
                topic: Topic::Application,
                key,
            } => {
                if let Ok(ident) = AppIdent::try_from(&key[..]) {
                    self.cache.invalidate(&ident);
                }
            }
            Change::Item {
                topic: Topic::Login | Topic::Credential,
                ..
            } => {}
            Change::Everything => self.cache.invalidate_all(),
        }
    }

    /// Whether the store answers.
    ///
    /// # Errors
    ///
    /// It does not.
    pub async fn check(&self) -> Result<(), AppStoreError> {
        self.store.check().await
    }
}
