//! A bounded cache in front of the store, invalidated by its change feed. CONTRACT 4 and 8.
//!
//! What changed is invalidated, so that a cached value is right as long as the feed is heard. A stale value is read again
//! all the same; while the store does not answer, it serves. When the feed was lost for more than [`MAX_OUTAGE`], nothing
//! cached serves, and when it is heard again, everything is read anew.

mod freshness;
mod in_flight;

use std::{
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use moka::sync::Cache;
use signpost_store::{Change, StoreError, Topic};

pub use self::freshness::{BACK_OFF, MAX_OUTAGE};
use self::{
    freshness::{Freshness, State},
    in_flight::InFlight,
};
use crate::clock::Clock;

/// What a look-up came to: a value, that there is none, or an error that all who waited for it share.
pub type LookUpResult<V, E> = Result<Option<V>, Arc<E>>;

/// Settings of a [`FeedCache`].
#[derive(Clone, Copy, Debug)]
pub struct FeedCacheSettings {
    /// The kind of thing that is cached: changes of others are none of its business.
    pub topic: Topic,
    /// Values at most.
    pub entries: u64,
    /// A value that is older is stale.
    pub lifetime: Duration,
    /// Whether it is cached that the store knows no such key.
    pub unknown: Unknown,
}

/// What becomes of a key that the store does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// It is cached that there is nothing: for keys that come again and again, and whose making the feed announces.
    Cached,
    /// It is looked up each time.
    LookedUp,
}

/// A failed look-up.
pub trait LookUpError {
    /// Whether the store did not answer. Otherwise it did, with something that cannot be used: then the cached value is
    /// over.
    fn is_unavailable(&self) -> bool;
}

impl LookUpError for StoreError {
    fn is_unavailable(&self) -> bool {
        !matches!(self, Self::Malformed(_))
    }
}

/// The cache. Values are cheap to clone: an `Arc`, as a rule.
///
/// A cached value costs a look into a shard and two atomics. At most one look-up of a key is in flight; all who ask for
/// it share the answer. A value that was read before a change and arrives after it is not cached.
pub struct FeedCache<K, V, E> {
    settings: FeedCacheSettings,
    cache: Cache<K, Entry<V>>,
    in_flight: InFlight<K, LookUpResult<V, E>>,
    freshness: Freshness,
    /// Counts changes, so that a value read before one is not cached after it.
    changes: AtomicU64,
    clock: Arc<dyn Clock>,
    start: Instant,
}

/// A value as it was read, or that there is none.
#[derive(Clone)]
struct Entry<V> {
    value: Option<V>,
    /// Since [`FeedCache::start`].
    read_at: Duration,
}

impl<K, V, E> FeedCache<K, V, E>
where
    K: Copy + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: LookUpError,
{
    /// An empty cache.
    pub fn new(settings: FeedCacheSettings, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings,
            // Nothing leaves by age, since a stale value may be needed while the store does not answer.
            cache: Cache::builder().max_capacity(settings.entries).build(),
            in_flight: InFlight::default(),
            freshness: Freshness::new(settings.lifetime),
            changes: AtomicU64::new(0),
            start: clock.instant(),
            clock,
        }
    }

    /// A cache of another size with the same values, as far as they fit, which knows as much of the feed. Only while no change
    /// is delivered.
    #[must_use]
    pub fn resized(&self, entries: u64) -> Self {
        let cache = Cache::builder().max_capacity(entries).build();
        let fitting = usize::try_from(entries).unwrap_or(usize::MAX);
        for (key, entry) in self.cache.iter().take(fitting) {
            cache.insert(*key, entry);
        }
        Self {
            settings: FeedCacheSettings {
                entries,
                ..self.settings
            },
            cache,
            in_flight: InFlight::default(),
            freshness: self.freshness.duplicate(),
            changes: AtomicU64::new(0),
            clock: Arc::clone(&self.clock),
            start: self.start,
        }
    }

    /// Drops all values: the cache is not used any more, but for requests that still hold it.
    pub fn clear(&self) {
        self.cache.invalidate_all();
    }

    /// Values at most.
    pub const fn entries(&self) -> u64 {
        self.settings.entries
    }

    /// The value of `key`: the cached one, or what `read` finds. `read` is dropped without being begun if it is not needed.
    ///
    /// # Errors
    ///
    /// Nothing is cached that may serve, and `read` failed.
    pub async fn find(
        &self,
        key: K,
        read: impl Future<Output = Result<Option<V>, E>>,
    ) -> LookUpResult<V, E> {
        if let Some(entry) = self.cache.get(&key) {
            match self.freshness.judge(entry.read_at, self.now()) {
                State::Serves => return Ok(entry.value),
                State::Stale => return self.refresh(key, entry, read).await,
                State::Expired => {}
            }
        }
        self.in_flight.find(key, self.look_up(key, read)).await
    }

    /// The stale value serves all others while one reads, and the reader if the store does not answer.
    async fn refresh(
        &self,
        key: K,
        stale: Entry<V>,
        read: impl Future<Output = Result<Option<V>, E>>,
    ) -> LookUpResult<V, E> {
        match self
            .in_flight
            .find_first(key, self.look_up(key, read))
            .await
        {
            None => Ok(stale.value),
            Some(Err(error)) => self.instead_of(key, error),
            Some(found) => found,
        }
    }

    /// What serves instead of a value that could not be read again. Looked up only now: it may have changed meanwhile.
    fn instead_of(&self, key: K, error: Arc<E>) -> LookUpResult<V, E> {
        if !error.is_unavailable() {
            self.cache.invalidate(&key);
            return Err(error);
        }
        let now = self.now();
        self.freshness.back_off(now);
        self.cache
            .get(&key)
            .filter(|_| !self.freshness.is_expired(now))
            .map(|entry| entry.value)
            .ok_or(error)
    }

    async fn look_up(
        &self,
        key: K,
        read: impl Future<Output = Result<Option<V>, E>>,
    ) -> LookUpResult<V, E> {
        // Before it is read: it may change right afterwards.
        let read_at = self.now();
        let changes_before = self.changes.load(Ordering::Acquire);
        let value = read.await?;
        if value.is_none() && self.settings.unknown == Unknown::LookedUp {
            self.cache.invalidate(&key);
            return Ok(None);
        }
        let entry = Entry {
            value: value.clone(),
            read_at,
        };
        self.cache.insert(key, entry);
        if self.changes.load(Ordering::Acquire) != changes_before {
            // It may have changed since it was read: then the next who asks reads it again.
            self.cache.invalidate(&key);
        }
        Ok(value)
    }

    /// Takes in what the feed says. `key_of` reads the key of a change; without one, all values are invalidated.
    pub fn on_change(&self, change: &Change, key_of: impl FnOnce(&[u8]) -> Option<K>) {
        match change {
            Change::Item { topic, key } if *topic == self.settings.topic => match key_of(key) {
                Some(key) => self.invalidate(key),
                None => self.invalidate_all(),
            },
            Change::Item { .. } => {}
            Change::Lost => self.freshness.lose_feed(self.now()),
            Change::Everything => {
                self.invalidate_all();
                // Last: no value from before may serve once more.
                self.freshness.restore_feed();
            }
        }
    }

    /// Invalidates one value.
    pub fn invalidate(&self, key: K) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.cache.invalidate(&key);
        self.in_flight.forget(key);
    }

    fn invalidate_all(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.cache.invalidate_all();
        self.in_flight.forget_all();
    }

    fn now(&self) -> Duration {
        let now = self.clock.instant();
        now.saturating_duration_since(self.start)
    }
}

#[cfg(test)]
mod tests;
