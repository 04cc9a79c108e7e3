//! The cached values, and apart from them the keys that the store is known not to have.

use std::hash::{Hash, RandomState};

use quick_cache::{
    OptionsBuilder, UnitWeighter,
    sync::{Cache, DefaultLifecycle, EntryAction, EntryResult},
};

use super::freshness::ReadAt;

/// Limit of cached unknown keys. In a smaller cache, the limit is the number of cached values.
const MAX_UNKNOWN: u64 = 10_000;

/// A value as it was read; `None` if the store has no such key.
#[derive(Clone)]
pub(super) struct Entry<V> {
    pub(super) value: Option<V>,
    pub(super) read_at: ReadAt,
}

/// Values and unknown keys have places of their own: so no stranger's key evicts a value.
pub(super) struct Values<K, V> {
    known: Entries<K, V>,
    unknown: Entries<K, V>,
}

/// Hashed with a secret key, as strangers choose unknown keys.
type Entries<K, V> = Cache<K, Entry<V>, UnitWeighter, RandomState>;

impl<K, V> Values<K, V>
where
    K: Copy + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// No expiry by age: a stale value may be needed while the store does not answer.
    pub(super) fn new(entries: u64) -> Self {
        let cache = |entries: u64| {
            let options = OptionsBuilder::new()
                // Of several shards, one would be full before the cache is: all values that fit have to stay.
                .shards(1)
                .estimated_items_capacity(usize::try_from(entries).unwrap_or(usize::MAX))
                .weight_capacity(entries)
                .build()
                .expect("a capacity is set");
            Cache::with_options(
                options,
                UnitWeighter,
                RandomState::new(),
                DefaultLifecycle::default(),
            )
        };
        Self {
            known: cache(entries),
            unknown: cache(entries.min(MAX_UNKNOWN)),
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<Entry<V>> {
        self.known.get(key).or_else(|| self.unknown.get(key))
    }

    /// Inserts an entry, unless one is cached that was read later: if the feed returned during a read, a later one may
    /// already have ended.
    pub(super) fn insert(&self, key: K, entry: Entry<V>) {
        let (cache, other) = match entry.value {
            Some(_) => (&self.known, &self.unknown),
            None => (&self.unknown, &self.known),
        };
        let read_at = entry.read_at;
        if other.get(&key).is_some_and(|other| other.read_at > read_at) {
            return;
        }
        // One atomic step for the key: of two reads that end together, the earlier must not overwrite the later.
        let inserted = cache.entry(&key, None, |_, cached| {
            if cached.read_at <= read_at {
                *cached = entry.clone();
            }
            EntryAction::Retain(())
        });
        if let EntryResult::Vacant(place) = inserted {
            // Fails if the key was invalidated meanwhile. Then nothing must be cached.
            let _ = place.insert(entry);
        }
        // After the insert: a caller in between finds an entry, and does not query the store.
        other.remove(&key);
    }

    pub(super) fn invalidate(&self, key: &K) {
        self.known.remove(key);
        self.unknown.remove(key);
    }

    pub(super) fn invalidate_all(&self) {
        self.known.clear();
        self.unknown.clear();
    }

    /// Up to `count` values.
    pub(super) fn iter(&self, count: usize) -> impl Iterator<Item = (K, Entry<V>)> {
        self.known.iter().take(count)
    }

    /// The number of values and of unknown keys.
    pub(super) fn count(&self) -> [u64; 2] {
        [&self.known, &self.unknown].map(|cache| cache.len() as u64)
    }
}
