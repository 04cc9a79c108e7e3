//! The debts of all keys, in fixed memory.

use std::{
    hash::{BuildHasher, Hash, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{Quota, Rate, RateExceeded, SETS, WAYS};

/// The debts of all keys.
#[derive(Debug)]
pub(super) struct Debts {
    sets: Box<[Mutex<[Slot; WAYS]>]>,
    hasher: RandomState,
    started: Instant,
}

/// A rate, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Debt added by one event.
    pub cost: u64,
    /// Maximum debt of a key.
    pub credit: u64,
}

/// A key and its debt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    /// The key's hash. Collisions of 64 bits among 2^16 keys can be neglected.
    key: u64,
    /// When the debt is paid, in nanoseconds since the start.
    pub paid_at: u64,
}

/// A key's slot, locked.
pub(super) struct LockedSlot<'d> {
    slots: MutexGuard<'d, [Slot; WAYS]>,
    way: usize,
    /// The slot's number among all slots.
    pub position: usize,
    /// Whether the key had no slot before.
    pub is_new: bool,
}

impl Debts {
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
        now.unwrap_or(u64::MAX / 2)
    }

    /// Undoes the last [`Self::take`] of the key.
    pub(super) fn give_back(&self, key: &impl Hash, pace: Pace) {
        if let Some(mut slot) = self.find(key) {
            slot.give_back(pace);
        }
    }

    /// Adds an event of the key to its debt.
    pub(super) fn take(
        &self,
        key: &impl Hash,
        pace: Pace,
        now: Instant,
    ) -> Result<(), RateExceeded> {
        let now = self.elapsed(now);
        let mut slot = self.find_or_evict(key);
        slot.reduce(pace, now);
        match slot.take(pace, now) {
            Ok(_) => Ok(()),
            Err(retry_after) => Err(RateExceeded { retry_after }),
        }
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

    /// Locks the key's slot. If it has none, it gets the slot with the least debt of its set.
    pub(super) fn find_or_evict(&self, key: &impl Hash) -> LockedSlot<'_> {
        let key = self.hasher.hash_one(key);
        let (set, mut slots) = self.lock(key);
        let known = slots.iter().position(|slot| slot.key == key);
        let way = known.unwrap_or_else(|| {
            let debt = |way: &usize| slots[*way].paid_at;
            let evicted = (0..WAYS).min_by_key(debt).unwrap_or_default();
            slots[evicted] = Slot { key, paid_at: 0 };
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
            let slots = slots.lock().unwrap_or_else(PoisonError::into_inner);
            for (way, slot) in slots.iter().enumerate().filter(|(_, slot)| slot.key != 0) {
                visit(set * WAYS + way, slot);
            }
        }
    }

    /// The number of keys with a debt at `now`. Locks each set in turn, for nanoseconds.
    pub(super) fn keys_with_debt(&self, now: Instant) -> usize {
        let (now, mut keys) = (self.elapsed(now), 0);
        self.for_each(|_, slot| keys += usize::from(slot.debt(now) > 0));
        keys
    }

    fn lock(&self, key: u64) -> (usize, MutexGuard<'_, [Slot; WAYS]>) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lower bits of a hash are as good as any"
        )]
        let set = key as usize % SETS;
        let slots = self.sets[set].lock();
        (set, slots.unwrap_or_else(PoisonError::into_inner))
    }
}

impl Slot {
    /// Reduces the debt to the credit: an earlier rate may have allowed more.
    pub(super) fn reduce(&mut self, pace: Pace, now: u64) {
        self.paid_at = self.paid_at.min(now + pace.credit);
    }

    /// Adds an event, and returns the debt; or the time until one is allowed.
    pub(super) fn take(&mut self, pace: Pace, now: u64) -> Result<u64, Duration> {
        let paid_at = self.paid_at.max(now) + pace.cost;
        let debt = paid_at - now;
        if debt > pace.credit {
            return Err(Duration::from_nanos(debt - pace.credit));
        }
        self.paid_at = paid_at;
        Ok(debt)
    }

    /// Undoes the last [`Self::take`].
    pub(super) fn give_back(&mut self, pace: Pace) {
        self.paid_at = self.paid_at.saturating_sub(pace.cost);
    }

    /// The debt at `now`.
    pub(super) fn debt(&self, now: u64) -> u64 {
        self.paid_at.saturating_sub(now)
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
        let cost = 1_000_000_000 / u64::from(rate.per_second.get());
        Self {
            cost,
            credit: cost * u64::from(rate.burst.get()),
        }
    }

    /// The quota that this debt leaves.
    pub(super) fn quota(self, rate: Rate, debt: u64) -> Quota {
        let remaining = self.credit.saturating_sub(debt) / self.cost;
        Quota {
            burst: rate.burst,
            window: Duration::from_nanos(self.credit),
            remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
            whole_after: Duration::from_nanos(debt),
        }
    }
}
