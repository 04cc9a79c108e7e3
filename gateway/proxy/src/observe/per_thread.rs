//! What each thread counts on its own, and a cheap hash for what it counts by.
//!
//! No request waits for a collection. Each thread has two values: while the collector has one of them, the thread counts
//! in the other one.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
};

use signpost_kit::metrics::cells::thread_number;

/// Limit of shards. If there are more threads, some share one, and may wait for each other.
const MAX_THREADS: usize = 64;

/// Two values for each thread.
#[derive(Debug)]
pub(crate) struct PerThread<T>(Box<[Shard<T>]>);

/// Alone in its cache lines, so that threads do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard<T>([Mutex<T>; 2]);

impl<T: Default> Default for PerThread<T> {
    fn default() -> Self {
        Self((0..MAX_THREADS).map(|_| Shard::default()).collect())
    }
}

impl<T> PerThread<T> {
    /// A value of this thread: the first one, unless it is being collected.
    #[inline]
    pub(crate) fn own(&self) -> MutexGuard<'_, T> {
        let [first, second] = &self.0[thread_number() % MAX_THREADS].0;
        match first.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => lock(second),
        }
    }

    /// The values of all threads. The caller must drop each before it takes the next one: a thread may wait if both of its
    /// values are locked.
    pub(crate) fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().flat_map(|shard| shard.0.iter().map(lock))
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A map whose keys clients do not choose, so that their hash need not resist collisions.
pub(crate) type KeyMap<K, V> = HashMap<K, V, BuildHasherDefault<KeyHasher>>;

/// A hash of one multiplication for each number.
#[derive(Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        // A multiplication carries upwards only. The map chooses its bucket by the lower bits, so they need the upper
        // ones.
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_counts_on_while_one_of_its_values_is_collected() {
        let counts = PerThread::<u64>::default();
        *counts.own() += 1;
        let mut seen = 0;
        for mut value in counts.all() {
            // The same thread would wait for itself for ever.
            *counts.own() += 1;
            seen += std::mem::take(&mut *value);
        }
        let left: u64 = counts.all().map(|value| *value).sum();
        assert_eq!(seen + left, 1 + 2 * MAX_THREADS as u64);
    }

    #[test]
    fn collections_lose_nothing_that_threads_count_meanwhile() {
        const ROUNDS: u64 = 20_000;
        let counts = PerThread::<u64>::default();
        let collect = || -> u64 {
            let all = counts.all();
            all.map(|mut value| std::mem::take(&mut *value)).sum()
        };
        let collected: u64 = std::thread::scope(|scope| {
            let count = || (0..ROUNDS).for_each(|_| *counts.own() += 1);
            let counting = [(); 4].map(|()| scope.spawn(count));
            let mut collected = 0;
            while counting.iter().any(|thread| !thread.is_finished()) {
                collected += collect();
            }
            collected
        });
        assert_eq!(collected + collect(), 4 * ROUNDS);
    }
}
