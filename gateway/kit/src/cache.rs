//! A bounded cache in front of the store, invalidated by its change feed. CONTRACT 4 and 8.
//!
//! The feed invalidates every value that changes, so a cached value is correct while the feed is connected. A stale
//! value is read again nevertheless; if the store does not answer, the stale value is used. While the feed is lost,
//! cached values are used for `stale_seconds`.
//!
//! When the feed returns, it may have missed changes. So each value is read again before it is used. If the store does not
//! answer, the cached value is used until `stale_seconds` after the first loss since it was read: a feed that is lost again
//! and again prolongs no value's time.

mod counts;
mod freshness;
mod in_flight;
mod values;

use std::{
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use signpost_store::{Change, StoreError, Topic};

pub(crate) use self::counts::FAMILIES;
pub use self::{
    counts::{CacheStatus, Lookup, write_caches},
    freshness::{BACK_OFF, DEFAULT_STALE, MAX_STALE},
};
use self::{
    freshness::{EntryState, Freshness, ReadAt},
    in_flight::InFlight,
    values::{Entry, Values},
};
use crate::{clock::Clock, metrics::cells::LabelCounters};

/// The result of a lookup: a value, none, or an error that all waiting callers share.
pub type LookupResult<V, E> = Result<Option<V>, Arc<E>>;

/// Settings of a [`FeedCache`].
#[derive(Clone, Copy, Debug)]
pub struct FeedCacheSettings {
    /// The kind of thing that is cached. Changes of other kinds are ignored.
    pub topic: Topic,
    /// Maximum number of values.
    pub entries: u64,
    /// Age from which a value is stale.
    pub lifetime: Duration,
    /// Whether the absence of a key is cached.
    pub unknown_keys: UnknownKeys,
}

/// How keys are handled that the store does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownKeys {
    /// Their absence is cached: for keys that clients repeat, and whose creation the feed announces.
    Cached,
    /// They are looked up each time.
    LookedUp,
}

/// The error of a failed lookup.
pub trait LookupError {
    /// Whether the store did not answer. Otherwise it returned an unusable value, and the cached one is invalidated.
    fn is_unavailable(&self) -> bool;
}

impl LookupError for StoreError {
    fn is_unavailable(&self) -> bool {
        !matches!(self, Self::Malformed(_))
    }
}

/// The cache. Values must be cheap to clone: usually an `Arc`.
///
/// A hit costs a read lock and two atomics. At most one lookup per key is in flight; all callers share its
/// result. A value that was read before a change and arrives after it is not cached.
pub struct FeedCache<K, V, E> {
    settings: FeedCacheSettings,
    cache: Values<K, V>,
    in_flight: InFlight<K, LookupResult<V, E>>,
    freshness: Freshness,
    /// Number of changes so far: a value read before a change must not be cached after it.
    changes: AtomicU64,
    /// Number of removals so far that were caused by a change: a [`FreshValue`] is only used if there was none since.
    removals: AtomicU64,
    /// Copies of another size continue them.
    lookups: Arc<LabelCounters<Lookup>>,
    clock: Arc<dyn Clock>,
    start: Instant,
}

/// A value that a caller may keep beside the cache, and use as long as [`FeedCache::is_still_fresh`] says so.
#[derive(Clone, Debug)]
pub struct FreshValue<V> {
    /// The cached value.
    pub value: V,
    read_at: ReadAt,
    /// Number of removals when it was taken from the cache.
    removals: u64,
}

/// A read of many values that has begun, for [`FeedCache::load`].
#[derive(Clone, Copy, Debug)]
pub struct Load {
    read_at: ReadAt,
    changes: u64,
}

impl<K, V, E> FeedCache<K, V, E>
where
    K: Copy + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: LookupError,
{
    /// Creates an empty cache.
    pub fn new(settings: FeedCacheSettings, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings,
            cache: Values::new(settings.entries),
            in_flight: InFlight::default(),
            freshness: Freshness::new(settings.lifetime),
            changes: AtomicU64::new(0),
            removals: AtomicU64::new(0),
            lookups: Arc::default(),
            start: clock.instant(),
            clock,
        }
    }

    /// A copy with another size: the same values, as far as they fit, and the same state of the feed.
    ///
    /// Must not run while a change is delivered.
    #[must_use]
    pub fn resized(&self, entries: u64) -> Self {
        let settings = FeedCacheSettings {
            entries,
            ..self.settings
        };
        let resized = Self {
            freshness: self.freshness.duplicate(),
            lookups: Arc::clone(&self.lookups),
            // The same zero: times of entries and losses count from it.
            start: self.start,
            ..Self::new(settings, Arc::clone(&self.clock))
        };
        let fitting = usize::try_from(entries).unwrap_or(usize::MAX);
        for (key, entry) in self.cache.iter(fitting) {
            resized.cache.insert(key, entry);
        }
        resized
    }

    /// Drops all values: for a cache that only requests in flight still use.
    pub fn clear(&self) {
        self.cache.invalidate_all();
    }

    /// Maximum number of values.
    pub const fn entries(&self) -> u64 {
        self.settings.entries
    }

    /// Lookups so far, and the values now.
    pub fn status(&self) -> CacheStatus {
        CacheStatus {
            lookups: Arc::clone(&self.lookups),
            entries: self.cache.count().iter().sum(),
        }
    }

    /// Values are used for this long after the feed was lost: `stale_seconds`.
    pub fn set_stale(&self, stale: Duration) {
        self.freshness.set_stale(stale);
    }

    /// How long cached values are used if the store does not answer from now on, or has not since the feed was lost; zero
    /// without a value. Not for requests.
    pub fn time_without_store(&self) -> Duration {
        match self.cache.count() {
            [0, _] => Duration::ZERO,
            _ => self.freshness.time_left(self.now()),
        }
    }

    /// Begins to read many values at once.
    pub fn begin_load(&self) -> Load {
        Load {
            read_at: self.freshness.begin_read(self.now()),
            changes: self.changes.load(Ordering::Acquire),
        }
    }

    /// Caches values that were read since `load` began, but for those that are cached and fresh. `false`: a value has changed
    /// meanwhile, so none of them is cached.
    pub fn load(&self, load: Load, values: impl IntoIterator<Item = (K, Option<V>)>) -> bool {
        let (read_at, now) = (load.read_at, self.now());
        let is_fresh = |entry: Entry<V>| self.freshness.is_fresh(entry.read_at, now);
        let mut values: Vec<_> = values.into_iter().collect();
        values.retain(|(key, _)| !self.cache.get(key).is_some_and(is_fresh));
        let is_current = || self.changes.load(Ordering::Acquire) == load.changes;
        if !is_current() {
            return false;
        }
        let keys: Vec<_> = values.iter().map(|(key, _)| *key).collect();
        for (key, value) in values {
            self.cache.insert(key, Entry { value, read_at });
        }
        // A change may have come meanwhile.
        let is_current = is_current();
        if !is_current {
            keys.iter().for_each(|key| self.cache.invalidate(key));
            self.removals.fetch_add(1, Ordering::AcqRel);
        }
        is_current
    }

    /// Fills a new cache with values that were known to be true this long ago, as if the feed had been lost then.
    pub fn restore(&self, age: Duration, values: impl IntoIterator<Item = (K, V)>) {
        let lost_at = self.now().saturating_sub(age);
        let read_at = self.freshness.begin_read(lost_at);
        self.freshness.mark_feed_lost(lost_at);
        for (key, value) in values {
            let value = Some(value);
            self.cache.insert(key, Entry { value, read_at });
        }
    }

    /// Counts a hit of a caller that kept a [`FreshValue`]. A value from [`Self::fresh`] is counted already.
    pub fn count_hit(&self) {
        self.lookups.count(Lookup::Hit);
    }

    /// The cached value of `key` if it needs no lookup, without waiting; `None` also if the key is known to be unknown.
    /// Only a value counts as a lookup: without one, the caller goes on to [`Self::find`].
    pub fn fresh(&self, key: &K) -> Option<FreshValue<V>> {
        // Before the value is taken: it may be removed right afterwards.
        let removals = self.removals.load(Ordering::Acquire);
        let entry = self.cache.get(key)?;
        let fresh = FreshValue {
            value: entry.value?,
            read_at: entry.read_at,
            removals,
        };
        let is_fresh = self.is_still_fresh(&fresh);
        is_fresh.then(|| {
            self.count_hit();
            fresh
        })
    }

    /// Whether a value needs no lookup either now. If any value changed since, it does.
    pub fn is_still_fresh(&self, fresh: &FreshValue<V>) -> bool {
        self.removals.load(Ordering::Acquire) == fresh.removals
            && self.freshness.is_fresh(fresh.read_at, self.now())
    }

    /// Returns the value of `key`: the cached one, or the result of `read`. An unneeded `read` is never polled.
    ///
    /// # Errors
    ///
    /// There is no usable cached value, and `read` failed.
    pub async fn find(
        &self,
        key: K,
        read: impl Future<Output = Result<Option<V>, E>>,
    ) -> LookupResult<V, E> {
        if let Some(entry) = self.cache.get(&key) {
            match self.freshness.check(entry.read_at, self.now()) {
                EntryState::Usable => {
                    self.count_hit();
                    return Ok(entry.value);
                }
                EntryState::Stale => {
                    // One caller reads while all others use the stale value. If the store does not answer, the reader
                    // uses it, too.
                    let lookup = self.lookup(key, read);
                    let Some(result) = self.in_flight.find_first(key, lookup).await else {
                        self.count_hit();
                        return Ok(entry.value);
                    };
                    return self.result_or_cached(key, result);
                }
                EntryState::Unconfirmed => {
                    let result = self.in_flight.find(key, self.lookup(key, read)).await;
                    return self.result_or_cached(key, result);
                }
                EntryState::Expired => {}
            }
        }
        self.lookups.count(Lookup::Miss);
        self.in_flight.find(key, self.lookup(key, read)).await
    }

    /// The result of a lookup, or the cached value if the store did not answer. Taken from the cache again: it may have
    /// been invalidated meanwhile.
    fn result_or_cached(&self, key: K, result: LookupResult<V, E>) -> LookupResult<V, E> {
        let Err(error) = result else {
            self.lookups.count(Lookup::Miss);
            return result;
        };
        let now = self.now();
        let cached = if error.is_unavailable() {
            self.freshness.back_off(now);
            let cached = self.cache.get(&key);
            cached.filter(|entry| !self.freshness.is_expired(entry.read_at, now))
        } else {
            self.cache.invalidate(&key);
            None
        };
        let lookup = cached.as_ref().map_or(Lookup::Miss, |_| Lookup::Stale);
        self.lookups.count(lookup);
        cached.map(|entry| entry.value).ok_or(error)
    }

    async fn lookup(
        &self,
        key: K,
        read: impl Future<Output = Result<Option<V>, E>>,
    ) -> LookupResult<V, E> {
        // Both before the read: the value may change right afterwards.
        let read_at = self.freshness.begin_read(self.now());
        let changes_before = self.changes.load(Ordering::Acquire);
        let value = read.await?;
        if value.is_none() && self.settings.unknown_keys == UnknownKeys::LookedUp {
            self.cache.invalidate(&key);
            return Ok(None);
        }
        let entry = Entry {
            value: value.clone(),
            read_at,
        };
        // Inserted before the check: a change between check and insert would be missed.
        self.cache.insert(key, entry);
        if self.changes.load(Ordering::Acquire) != changes_before {
            // The value may have changed since it was read: the next caller must read it again.
            self.cache.invalidate(&key);
            self.removals.fetch_add(1, Ordering::AcqRel);
        }
        Ok(value)
    }

    /// Applies a change from the feed. `keys_of` decodes what it concerns; if it returns `None`, all values are
    /// invalidated.
    pub fn on_change<Keys: IntoIterator<Item = K>>(
        &self,
        change: &Change,
        keys_of: impl FnOnce(&[u8]) -> Option<Keys>,
    ) {
        match change {
            Change::Item { topic, key } if *topic == self.settings.topic => match keys_of(key) {
                Some(keys) => keys.into_iter().for_each(|key| self.invalidate(key)),
                None => self.invalidate_all(),
            },
            Change::Item { .. } => {}
            Change::Lost => self.freshness.mark_feed_lost(self.now()),
            Change::Restored => {
                self.freshness.mark_feed_restored(self.now());
                // They began before: their results are unconfirmed.
                self.in_flight.detach_all();
            }
            Change::Everything => self.invalidate_all(),
        }
    }

    /// Invalidates one value.
    pub fn invalidate(&self, key: K) {
        // Before the removal: a lookup that inserts after it sees the new count, and removes its value itself.
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.cache.invalidate(&key);
        // After the removal: a value that was taken before it must not be used any more.
        self.removals.fetch_add(1, Ordering::AcqRel);
        self.in_flight.detach(key);
    }

    fn invalidate_all(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.cache.invalidate_all();
        self.removals.fetch_add(1, Ordering::AcqRel);
        self.in_flight.detach_all();
    }

    /// Begins with [`MAX_STALE`], so that values can be older than the cache.
    fn now(&self) -> Duration {
        let now = self.clock.instant();
        MAX_STALE + now.saturating_duration_since(self.start)
    }
}

#[cfg(test)]
mod tests;
