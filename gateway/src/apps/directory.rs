//! How a request finds its application: the one there is, or a record of the store, remembered. CONTRACT 4.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use gateway_protocol::{
    app::{AppId, AppIdent},
    sign::AppKey,
};
use moka::sync::Cache;
use signpost_store::{Change, Topic};

use super::{
    App, AppState,
    freshness::{Freshness, Verdict},
    in_flight::{Found, InFlight},
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

/// Records of a store, the lately asked for in memory, unknown idents among them.
///
/// A record that changes is forgotten, so that what is remembered is right as long as changes are heard of. It is read
/// again all the same when it is older than five minutes; where the store does not answer then, it goes on serving, up
/// to five minutes after the last time that changes were heard of.
pub struct CachedApps {
    store: Arc<dyn AppStore>,
    cache: Cache<AppIdent, Remembered>,
    in_flight: InFlight,
    freshness: Freshness,
    /// Counts changes of applications, so that a record read before one is not remembered after it.
    changes: AtomicU64,
    timer: Timer,
}

/// A record as it was read, or that there is none.
#[derive(Clone)]
struct Remembered {
    app: Option<Arc<App>>,
    read_at: Duration,
}

/// Tells the time since some start.
type Timer = Box<dyn Fn() -> Duration + Send + Sync>;

impl CachedApps {
    /// An empty memory of at most so many entries.
    #[must_use]
    pub fn new(store: Arc<dyn AppStore>, entries: u64) -> Self {
        let start = Instant::now();
        Self::with_timer(store, entries, Box::new(move || start.elapsed()))
    }

    fn with_timer(store: Arc<dyn AppStore>, entries: u64, timer: Timer) -> Self {
        Self {
            store,
            cache: Cache::builder().max_capacity(entries).build(),
            in_flight: InFlight::default(),
            freshness: Freshness::new(),
            changes: AtomicU64::new(0),
            timer,
        }
    }

    /// The application of that ident.
    ///
    /// # Errors
    ///
    /// It is not remembered, or too much may have changed unheard since it was; and the store is away.
    pub async fn find(&self, ident: AppIdent) -> Result<Option<Arc<App>>, Arc<AppStoreError>> {
        if let Some(remembered) = self.cache.get(&ident) {
            match self.freshness.judge(remembered.read_at, (self.timer)()) {
                Verdict::Serves => return Ok(remembered.app),
                Verdict::ReadAgain => return self.find_again(ident, remembered).await,
                Verdict::Over => {}
            }
        }
        self.in_flight.find(ident, self.look_up(ident)).await
    }

    /// What is remembered serves whoever comes while the store is being asked, and if it does not answer.
    async fn find_again(&self, ident: AppIdent, remembered: Remembered) -> Found {
        let look_up = self.look_up(ident);
        match self.in_flight.find_first(ident, look_up).await {
            None => Ok(remembered.app),
            Some(Err(error)) => self.in_place_of(ident, error),
            Some(found) => found,
        }
    }

    /// What serves in place of a record that could not be read again. It may have changed meanwhile.
    fn in_place_of(&self, ident: AppIdent, error: Arc<AppStoreError>) -> Found {
        if !matches!(*error, AppStoreError::Store(_)) {
            // The store answered, with a record that cannot be used: so the old one is over.
            self.cache.invalidate(&ident);
            return Err(error);
        }
        let now = (self.timer)();
        self.freshness.pause(now);
        let remembered = self.cache.get(&ident);
        remembered
            .filter(|_| !self.freshness.is_over(now))
            .map(|remembered| remembered.app)
            .ok_or(error)
    }

    async fn look_up(&self, ident: AppIdent) -> Found {
        // Before it is read: it may change right afterwards.
        let read_at = (self.timer)();
        let changes_before = self.changes.load(Ordering::Acquire);
        let app = self.store.find(ident).await?.map(Arc::new);
        let remembered = Remembered {
            app: app.clone(),
            read_at,
        };
        self.cache.insert(ident, remembered);
        if self.changes.load(Ordering::Acquire) != changes_before {
            // It may have changed since it was read: then whoever comes next reads it again.
            self.cache.invalidate(&ident);
        }
        Ok(app)
    }

    /// Forgets what changed, and notes whether changes are heard of.
    pub fn on_change(&self, change: &Change) {
        match change {
            Change::Item {
                topic: Topic::Application,
                key,
            } => {
                self.changes.fetch_add(1, Ordering::AcqRel);
                match AppIdent::try_from(&key[..]) {
                    Ok(ident) => {
                        self.cache.invalidate(&ident);
                        self.in_flight.forget(ident);
                    }
                    // `ALL_APPLICATIONS`, or what only a newer release knows.
                    Err(_) => self.forget_all(),
                }
            }
            Change::Item {
                topic: Topic::Login | Topic::Credential,
                ..
            } => {}
            Change::Lost => self.freshness.lose((self.timer)()),
            Change::Everything => {
                self.changes.fetch_add(1, Ordering::AcqRel);
                self.forget_all();
                // Last: what was remembered is not to serve once more.
                self.freshness.regain();
            }
        }
    }

    fn forget_all(&self) {
        self.cache.invalidate_all();
        self.in_flight.forget_all();
    }
}

#[cfg(test)]
mod tests;
