//! The numbers that ids are made of: different from each other, and generated without a system call.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// The next number: a counter, hashed with a random key of the process, so that none can be guessed from others.
#[must_use]
pub fn next() -> u64 {
    KEY.hash_one(COUNTER.fetch_add(1, Ordering::Relaxed))
}
