//! Values by key. A value is removed with its last holder.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Values by key, with the number of their holders. Clones share their contents.
pub(crate) struct HeldValues<K, V>(Arc<Mutex<HashMap<K, Counted<V>>>>);

struct Counted<V> {
    value: Arc<V>,
    holders: usize,
}

impl<K: Copy + Eq + Hash, V> HeldValues<K, V> {
    /// Holds the value of `key`, which its first holder creates; `None` if it has `limit` holders already.
    pub(crate) fn hold(
        &self,
        key: K,
        limit: usize,
        create: impl FnOnce() -> V,
    ) -> Option<Held<K, V>> {
        let mut values = self.lock();
        if values.get(&key).map_or(0, |counted| counted.holders) >= limit {
            return None;
        }
        let counted = values.entry(key).or_insert_with(|| Counted {
            value: Arc::new(create()),
            holders: 0,
        });
        counted.holders += 1;
        Some(Held {
            values: self.clone(),
            key,
            value: Arc::clone(&counted.value),
        })
    }

    /// Calls `act` with the value of `key`, if it has a holder.
    pub(crate) fn with(&self, key: &K, act: impl FnOnce(&V)) {
        if let Some(counted) = self.lock().get(key) {
            act(&counted.value);
        }
    }

    /// Calls `act` with every value.
    pub(crate) fn for_each(&self, act: impl Fn(&V)) {
        self.lock().values().for_each(|counted| act(&counted.value));
    }
}

impl<K, V> HeldValues<K, V> {
    /// The number of values.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Counted<V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Clone for HeldValues<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, V> Default for HeldValues<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// A holder of a value. When the last one is dropped, it removes the value.
pub(crate) struct Held<K: Copy + Eq + Hash, V> {
    values: HeldValues<K, V>,
    key: K,
    value: Arc<V>,
}

impl<K: Copy + Eq + Hash, V> Held<K, V> {
    pub(crate) fn value(&self) -> &Arc<V> {
        &self.value
    }
}

impl<K: Copy + Eq + Hash, V> Drop for Held<K, V> {
    fn drop(&mut self) {
        // Counted under the lock: of two that are dropped at once, exactly one is the last.
        let mut values = self.values.lock();
        if let Entry::Occupied(mut counted) = values.entry(self.key) {
            counted.get_mut().holders -= 1;
            if counted.get().holders == 0 {
                counted.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        thread,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn a_value_has_a_limited_number_of_holders() {
        let values = HeldValues::default();
        let one = values.hold(1, 2, || 'a').unwrap();
        let two = values.hold(1, 2, || 'b').unwrap();
        assert_eq!((**one.value(), **two.value()), ('a', 'a'));
        assert!(values.hold(1, 2, || 'c').is_none());
        assert!(values.hold(2, 0, || 'c').is_none());
        drop(one);
        let three = values.hold(1, 2, || 'd').unwrap();
        assert_eq!(**three.value(), 'a');
        drop((two, three));
        assert_eq!(values.len(), 0);
    }

    /// #22
    #[test]
    fn holders_that_end_at_once_leave_no_value() {
        // Both threads end in the same round: after so many, or after this time.
        const ROUNDS: u32 = 50_000;
        let begun = Instant::now();
        let (values, arrived) = (HeldValues::default(), AtomicU32::new(0));
        let last = AtomicU32::new(ROUNDS);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for round in 0..=ROUNDS {
                        let held = values.hold(round, 2, || ()).unwrap();
                        if begun.elapsed() > Duration::from_secs(5) {
                            last.fetch_min(round, Ordering::SeqCst);
                        }
                        arrived.fetch_add(1, Ordering::SeqCst);
                        while arrived.load(Ordering::SeqCst) < 2 * (round + 1) {
                            thread::yield_now();
                        }
                        drop(held);
                        if round == last.load(Ordering::SeqCst) {
                            break;
                        }
                    }
                });
            }
        });
        assert_eq!(values.len(), 0);
    }
}
