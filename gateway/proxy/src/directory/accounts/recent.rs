//! Credentials that were checked a moment ago, in front of the cache: neither SHA-256 nor a look into the cache is needed.
//! That makes a check five times cheaper: 900 instructions instead of 5,000 without SHA instructions.
//!
//! A slot has a keyed hash of the header's value, not the credential. Two values with the same hash cannot be found
//! without the keys: the hash has 128 bits, and nobody sees one.

use std::{
    array,
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use signpost_kit::cache::FreshValue;

use super::CredentialClaims;

/// Number of slots. A value has one slot, and replaces what is in it.
const SLOTS: usize = 4096;

/// The hash of a header's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentKey([u64; 2]);

/// The slots.
pub(super) struct Recent {
    slots: Box<[Mutex<Option<Slot>>]>,
    hashers: [RandomState; 2],
}

struct Slot {
    key: SentKey,
    claims: FreshValue<Arc<CredentialClaims>>,
}

impl Recent {
    pub(super) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Mutex::default()).collect(),
            hashers: array::from_fn(|_| RandomState::new()),
        }
    }

    pub(super) fn key(&self, sent: &[u8]) -> SentKey {
        SentKey(array::from_fn(|index| self.hashers[index].hash_one(sent)))
    }

    /// What the value with this key proves, if that is known and `is_fresh`.
    pub(super) fn find(
        &self,
        key: SentKey,
        is_fresh: impl FnOnce(&FreshValue<Arc<CredentialClaims>>) -> bool,
    ) -> Option<Arc<CredentialClaims>> {
        let slot = self.slot(key);
        let entry = slot.as_ref().filter(|slot| slot.key == key)?;
        is_fresh(&entry.claims).then(|| Arc::clone(&entry.claims.value))
    }

    pub(super) fn insert(&self, key: SentKey, claims: FreshValue<Arc<CredentialClaims>>) {
        *self.slot(key) = Some(Slot { key, claims });
    }

    fn slot(&self, key: SentKey) -> MutexGuard<'_, Option<Slot>> {
        let slot = usize::try_from(key.0[0] % SLOTS as u64).unwrap_or_default();
        // A lock for each slot: two requests wait for each other only if their credentials share one.
        self.slots[slot]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
