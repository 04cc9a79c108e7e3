//! A bounded memory in front of the store: what is not remembered is read, what changed is dropped.
//!
//! Changes are told by a feed. While it is lost nobody says what changed, so what is remembered serves on for a while
//! at most, and all of it is dropped when the feed is back.

use std::{
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use moka::{policy::EvictionPolicy, sync::Cache};
use signpost_store::StoreError;

use signpost_kit::clock::Clock;

/// CONTRACT 4: how much longer what is remembered serves, with the store away.
const OUTLASTED: Duration = Duration::from_secs(5 * 60);
/// A read that failed is not tried again for the same value before that: one that hangs takes seconds.
const PAUSE: Duration = Duration::from_secs(1);

/// Remembers up to a number of values, each for a while.
///
/// A value that was read before a change and arrives after it is not remembered: moka alone would keep
/// it, and a credential that was just voided would stay valid.
pub(crate) struct ReadThrough<K, V> {
    cache: Cache<K, Entry<V>>,
    lifetime: Duration,
    clock: Arc<dyn Clock>,
    /// Held while the cache is written.
    feed: Mutex<Feed>,
}

#[derive(Clone)]
struct Entry<V> {
    value: V,
    /// From then on it is read again.
    fresh_until: Instant,
}

#[derive(Default)]
struct Feed {
    /// Counts changes.
    changes: u64,
    lost_at: Option<Instant>,
}

impl<K, V> ReadThrough<K, V>
where
    K: Copy + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Of up to `entries` values, each read again after `lifetime`.
    pub(crate) fn new(entries: u64, lifetime: Duration, clock: Arc<dyn Clock>) -> Self {
        let cache = Cache::builder()
            .max_capacity(entries)
            // Nothing leaves by age, since it may be needed while the store is away.
            .eviction_policy(EvictionPolicy::lru())
            .build();
        Self {
            cache,
            lifetime,
            clock,
            feed: Mutex::default(),
        }
    }

    /// What is remembered for `key`, or else what `read` finds; that nothing was found is not remembered.
    pub(crate) async fn find(
        &self,
        key: K,
        read: impl Future<Output = Result<Option<V>, StoreError>>,
    ) -> Result<Option<V>, StoreError> {
        if let Some(value) = self.fresh(&key) {
            return Ok(Some(value));
        }
        let changes_before = self.feed().changes;
        match read.await {
            Ok(found) => {
                self.remember(key, found.clone(), changes_before);
                Ok(found)
            }
            Err(error) => self.outlasting(key).map(Some).ok_or(error),
        }
    }

    /// Drops what is remembered for `key`.
    pub(crate) fn forget(&self, key: &K) {
        let mut feed = self.feed();
        feed.changes += 1;
        self.cache.invalidate(key);
    }

    /// Drops everything; from now on changes are heard of.
    pub(crate) fn forget_all(&self) {
        let mut feed = self.feed();
        feed.changes += 1;
        feed.lost_at = None;
        self.cache.invalidate_all();
    }

    /// From now on no change is heard of, until [`Self::forget_all`].
    pub(crate) fn lose_feed(&self) {
        self.feed().lost_at.get_or_insert(self.clock.instant());
    }

    fn fresh(&self, key: &K) -> Option<V> {
        let entry = self.cache.get(key)?;
        let now = self.clock.instant();
        let serves = now < entry.fresh_until && Self::is_trusted(&self.feed(), now);
        serves.then_some(entry.value)
    }

    /// Whether anything that is remembered may serve at all.
    fn is_trusted(feed: &Feed, now: Instant) -> bool {
        feed.lost_at
            .is_none_or(|lost_at| now.saturating_duration_since(lost_at) < OUTLASTED)
    }

    fn remember(&self, key: K, found: Option<V>, changes_before: u64) {
        let feed = self.feed();
        let Some(value) = found else {
            return self.cache.invalidate(&key);
        };
        if feed.changes == changes_before {
            let fresh_until = self.clock.instant() + self.lifetime;
            self.cache.insert(key, Entry { value, fresh_until });
        }
    }

    /// What serves although it could not be read again. Looked up only now: it may have changed meanwhile.
    fn outlasting(&self, key: K) -> Option<V> {
        let feed = self.feed();
        let now = self.clock.instant();
        if !Self::is_trusted(&feed, now) {
            return None;
        }
        let mut entry = self.cache.get(&key)?;
        entry.fresh_until = entry.fresh_until.max(now + PAUSE);
        self.cache.insert(key, entry.clone());
        Some(entry.value)
    }

    fn feed(&self) -> MutexGuard<'_, Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
