//! What each thread counts on its own, and a cheap hash for what it counts by.
//!
//! A thread locks its own value; only those that collect the counts ever take the same lock, every few seconds.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

use signpost_kit::metrics::cells::thread_number;

/// Limit of values. If there are more threads, some share one.
const MAX_THREADS: usize = 64;

/// A value for each thread.
#[derive(Debug)]
pub(crate) struct PerThread<T>(Box<[Shard<T>]>);

/// Alone in its cache lines, so that threads do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard<T>(Mutex<T>);

impl<T: Default> Default for PerThread<T> {
    fn default() -> Self {
        Self((0..MAX_THREADS).map(|_| Shard::default()).collect())
    }
}

impl<T> PerThread<T> {
    /// The value of this thread.
    pub(crate) fn own(&self) -> MutexGuard<'_, T> {
        self.0[thread_number() % MAX_THREADS].lock()
    }

    /// The values of all threads, one after the other.
    pub(crate) fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(Shard::lock)
    }
}

impl<T> Shard<T> {
    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        self.0 ^ (self.0 >> 32)
    }
}
