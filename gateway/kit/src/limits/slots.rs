//! What all keys have used, in fixed memory.

use std::{
    hash::{BuildHasher, Hash, RandomState},
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};

use super::{Quota, Rate, SETS, WAYS};

/// What all keys have used.
///
/// The hash of a key chooses one set of [`WAYS`] slots, so a flood of keys takes neither more memory nor more time. If a
/// set is full, the key that would be refilled first gives up its slot: it has used least, so it gains least. The hash has
/// a random key, so no client can find keys that share the set of another one.
#[derive(Debug)]
pub(super) struct Slots {
    sets: Box<[Mutex<[Slot; WAYS]>]>,
    hasher: RandomState,
    started: Instant,
}

/// A rate, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The time in which a token is refilled.
    pub token: u64,
    /// The time in which all tokens of a key are refilled.
    pub burst: u64,
}

/// A key, and what it has used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    /// The key's hash. Collisions of 64 bits among 2^16 keys can be neglected.
    key: u64,
    /// When all tokens are refilled, in nanoseconds since the start.
    pub full_at: u64,
}

/// A key's slot, locked.
pub(super) struct LockedSlot<'s> {
    slots: MutexGuard<'s, [Slot; WAYS]>,
    way: usize,
    /// The slot's number among all slots.
    pub position: usize,
    /// Whether the key had no slot before.
    pub is_new: bool,
}

impl Slots {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            sets: (0..SETS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            started: now,
        }
    }

    /// Nanoseconds from the start to `now`.
    pub(super) fn elapsed(&self, now: Instant) -> u64 {
        let now = u64::try_from(now.saturating_duration_since(self.started).as_nanos());
        // Half of the range: a burst can be added without an overflow.
        now.unwrap_or(u64::MAX / 2)
    }

    /// Locks the key's slot, if it has one.
    pub(super) fn find(&self, key: &impl Hash) -> Option<LockedSlot<'_>> {
        let key = self.hasher.hash_one(key);
        let (set, slots) = self.lock(key);
        let way = slots.iter().position(|slot| slot.key == key)?;
        Some(LockedSlot {
            slots,
            way,
            position: set * WAYS + way,
            is_new: false,
        })
    }

    /// Locks the key's slot. If it has none, it gets the slot of its set that is refilled first.
    pub(super) fn find_or_evict(&self, key: &impl Hash) -> LockedSlot<'_> {
        let key = self.hasher.hash_one(key);
        let (set, mut slots) = self.lock(key);
        let known = slots.iter().position(|slot| slot.key == key);
        let way = known.unwrap_or_else(|| {
            // An empty slot has 0, and so is taken first.
            let full_at = |way: &usize| slots[*way].full_at;
            let evicted = (0..WAYS).min_by_key(full_at).unwrap_or_default();
            slots[evicted] = Slot { key, full_at: 0 };
            evicted
        });
        LockedSlot {
            slots,
            way,
            position: set * WAYS + way,
            is_new: known.is_none(),
        }
    }

    /// Calls `visit` with each slot in use and its number, while the slot's set is locked.
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize, &Slot)) {
        for (set, slots) in self.sets.iter().enumerate() {
            let slots = slots.lock();
            // 0 is an empty slot. One key in 2^64 has this hash, too, and is only missing here.
            for (way, slot) in slots.iter().enumerate().filter(|(_, slot)| slot.key != 0) {
                visit(set * WAYS + way, slot);
            }
        }
    }

    /// The number of keys that have used tokens at `now`. Locks each set in turn, for nanoseconds.
    pub(super) fn keys_in_use(&self, now: Instant) -> usize {
        let (now, mut keys) = (self.elapsed(now), 0);
        self.for_each(|_, slot| keys += usize::from(slot.used(now) > 0));
        keys
    }

    fn lock(&self, key: u64) -> (usize, MutexGuard<'_, [Slot; WAYS]>) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lower bits of a hash are as good as any"
        )]
        let set = key as usize % SETS;
        (set, self.sets[set].lock())
    }
}

impl Slot {
    /// Reduces what was used to the burst: an earlier rate may have allowed more.
    pub(super) fn reduce(&mut self, pace: Pace, now: u64) {
        self.full_at = self.full_at.min(now + pace.burst);
    }

    /// Uses a token, and returns what is used; or the time until one is left.
    pub(super) fn use_token(&mut self, pace: Pace, now: u64) -> Result<u64, Duration> {
        let used = self.used(now) + pace.token;
        if used > pace.burst {
            return Err(Duration::from_nanos(used - pace.burst));
        }
        self.full_at = now + used;
        Ok(used)
    }

    /// Undoes the last [`Self::use_token`].
    pub(super) fn give_back(&mut self, pace: Pace) {
        self.full_at = self.full_at.saturating_sub(pace.token);
    }

    /// What is used at `now`: the time until all tokens are refilled.
    pub(super) fn used(&self, now: u64) -> u64 {
        self.full_at.saturating_sub(now)
    }
}

impl std::ops::Deref for LockedSlot<'_> {
    type Target = Slot;

    fn deref(&self) -> &Slot {
        &self.slots[self.way]
    }
}

impl std::ops::DerefMut for LockedSlot<'_> {
    fn deref_mut(&mut self) -> &mut Slot {
        &mut self.slots[self.way]
    }
}

impl Pace {
    pub(super) fn new(rate: Rate) -> Self {
        let token = 1_000_000_000 / u64::from(rate.per_second.get());
        Self {
            token,
            burst: token * u64::from(rate.burst.get()),
        }
    }

    /// The quota after `used` nanoseconds of the burst.
    pub(super) fn quota(self, rate: Rate, used: u64) -> Quota {
        let remaining = self.burst.saturating_sub(used) / self.token;
        Quota {
            burst: rate.burst,
            window: Duration::from_nanos(self.burst),
            remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
            whole_after: Duration::from_nanos(used),
        }
    }
}
