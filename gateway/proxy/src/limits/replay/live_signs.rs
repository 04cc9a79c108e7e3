//! One application's live signatures: a hash table over one list of entries, and a heap of their expiries.
//!
//! Memory: 20 bytes per entry, 4 for its table slot, 12 for its expiry, times up to two, since the lists grow by
//! doubling: 39 bytes each at 60,000. With at least one HMAC-SHA-256 signature, 16 bytes more per entry.
//!
//! Measured with 60,000: `HashSet` or `hashbrown` takes a third more time, 63 or 72 bytes, and 2 ms instead of 0.4 to
//! grow. One set per second would accept a signature again with another `time`, which layouts without separators allow.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use signpost_protocol::sign::Sign;

use super::ReplayInsertError;

/// Half of an HMAC-SHA-256, or a whole MD5.
type Half = [u8; 16];

/// A signature's bytes; for MD5 the second half is zeros.
#[derive(Clone, Copy)]
pub(super) struct Halves(Half, Half);

impl From<&Sign> for Halves {
    fn from(sign: &Sign) -> Self {
        let (halves, _) = sign.as_bytes().as_chunks();
        let half = |index| halves.get(index).copied().unwrap_or_default();
        Self(half(0), half(1))
    }
}

/// A keyed hash from signatures to table slots. Without a key, a client could search for requests whose signatures
/// share one slot. One multiplication is enough: a signature is a hash already, and slots are never observable.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotHash([u64; 2]);

impl SlotHash {
    /// Creates a random key.
    pub(super) fn new() -> Self {
        Self([0, 1].map(|number: u64| RandomState::new().hash_one(number)))
    }

    fn slot_of(self, sign: Half) -> usize {
        // In the processor's own byte order: slots never leave the process.
        let sign = u128::from_ne_bytes(sign);
        let (low, high) = (sign as u64 ^ self.0[0], (sign >> 64) as u64 ^ self.0[1]);
        let product = u128::from(low) * u128::from(high);
        (product as u64 ^ (product >> 64) as u64) as usize
    }
}

/// Index of an entry, or [`NONE`].
type EntryIndex = u32;

const NONE: EntryIndex = EntryIndex::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    first_half: Half,
    /// The next entry in the same slot, or the next free entry.
    next: EntryIndex,
}

/// The last millisecond (UTC) in which an entry is live. In halves, to take 12 bytes instead of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Expiry {
    high: u32,
    low: u32,
    index: EntryIndex,
}

impl Expiry {
    fn new(millis: u64, index: EntryIndex) -> Self {
        Self {
            high: (millis >> 32) as u32,
            low: millis as u32,
            index,
        }
    }

    fn millis(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// The live signatures of one application.
#[derive(Debug)]
pub(super) struct LiveSigns {
    entries: Vec<Entry>,
    /// As many as `entries`, or empty while all of them are zeros.
    second_halves: Vec<Half>,
    /// The first entry of each slot; the number of slots is a power of two.
    table: Vec<EntryIndex>,
    first_free: EntryIndex,
    expiries: BinaryHeap<Reverse<Expiry>>,
    /// The latest expiry in the heap.
    last_expiry: u64,
    /// The latest time at which expired signatures were removed. One that expired before it may have been among them,
    /// so it counts as a replay.
    expired_before: u64,
}

impl Default for LiveSigns {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            second_halves: Vec::new(),
            table: Vec::new(),
            first_free: NONE,
            expiries: BinaryHeap::new(),
            last_expiry: 0,
            expired_before: 0,
        }
    }
}

impl LiveSigns {
    /// Inserts a signature that is live up to and including the millisecond `last_live`, unless it is stored already or
    /// `max` signatures are live.
    pub(super) fn insert(
        &mut self,
        sign: Halves,
        last_live: u64,
        now: u64,
        max: usize,
        hash: SlotHash,
    ) -> Result<(), ReplayInsertError> {
        self.remove_expired(now, hash);
        // A clock that is set back would open the window for signatures that were removed as expired: they are refused.
        if last_live < self.expired_before || self.contains(sign, hash) {
            return Err(ReplayInsertError::Replayed);
        }
        // `NONE` is not an index.
        if self.expiries.len() >= max.min(NONE as usize) {
            let first_expiry = self
                .expiries
                .peek()
                .map_or(now, |Reverse(end)| end.millis());
            // A millisecond more: in its last one, the first signature is still live.
            let until_room = Duration::from_millis(first_expiry.saturating_sub(now) + 1);
            return Err(ReplayInsertError::Full { until_room });
        }
        let index = self.insert_entry(sign, hash);
        self.expiries.push(Reverse(Expiry::new(last_live, index)));
        self.last_expiry = self.last_expiry.max(last_live);
        Ok(())
    }

    /// The number of stored signatures, expired ones included.
    pub(super) fn len(&self) -> usize {
        self.expiries.len()
    }

    /// Whether no signature is live at `now`.
    pub(super) fn is_empty_at(&mut self, now: u64, hash: SlotHash) -> bool {
        self.remove_expired(now, hash);
        self.expiries.is_empty()
    }

    fn remove_expired(&mut self, now: u64, hash: SlotHash) {
        self.expired_before = self.expired_before.max(now);
        if self.last_expiry < now {
            self.clear();
        }
        while let Some(&Reverse(end)) = self.expiries.peek()
            && end.millis() < now
        {
            self.expiries.pop();
            self.remove(end.index, hash);
        }
    }

    /// Removes all entries at once, if all have expired. One by one, 60,000 would hold the lock for milliseconds.
    fn clear(&mut self) {
        if !self.expiries.is_empty() {
            // The lists keep their memory, which a busy application needs again at once. A sweep frees what an idle one
            // has.
            self.entries.clear();
            self.second_halves.clear();
            self.table.fill(NONE);
            self.first_free = NONE;
            self.expiries.clear();
        }
    }

    fn contains(&self, sign: Halves, hash: SlotHash) -> bool {
        let Some(&first) = self.table.get(self.slot(sign.0, hash)) else {
            return false;
        };
        // Chains stay short, since there is a slot for each entry. The comparison needs no constant time: whoever sent
        // the signature has shown that they know it.
        let mut index = first;
        while let Some(entry) = self.entries.get(index as usize) {
            if entry.first_half == sign.0 && self.second_half(index) == sign.1 {
                return true;
            }
            index = entry.next;
        }
        false
    }

    fn insert_entry(&mut self, sign: Halves, hash: SlotHash) -> EntryIndex {
        let entry = Entry {
            first_half: sign.0,
            next: NONE,
        };
        let index = match self.entries.get_mut(self.first_free as usize) {
            Some(free) => {
                let index = self.first_free;
                self.first_free = free.next;
                *free = entry;
                index
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as EntryIndex
            }
        };
        // Once the list exists, zeros are written, too: a reused entry still has the half of its last signature.
        if sign.1 != Half::default() || !self.second_halves.is_empty() {
            self.second_halves
                .resize(self.entries.len(), Half::default());
            self.second_halves[index as usize] = sign.1;
        }
        if self.entries.len() > self.table.len() {
            self.enlarge_table(hash);
        } else {
            self.link(index, hash);
        }
        index
    }

    /// Doubles the table. Called only if no entry is free.
    #[cold]
    fn enlarge_table(&mut self, hash: SlotHash) {
        const MIN_SLOTS: usize = 4;
        let length = (self.table.len() * 2).max(MIN_SLOTS);
        self.table = vec![NONE; length];
        for index in 0..self.entries.len() {
            self.link(index as EntryIndex, hash);
        }
    }

    fn link(&mut self, index: EntryIndex, hash: SlotHash) {
        let slot = self.slot(self.entries[index as usize].first_half, hash);
        self.entries[index as usize].next = self.table[slot];
        self.table[slot] = index;
    }

    /// Removes an entry from the table and adds it to the free list.
    fn remove(&mut self, index: EntryIndex, hash: SlotHash) {
        let Entry { first_half, next } = self.entries[index as usize];
        let slot = self.slot(first_half, hash);
        if self.table[slot] == index {
            self.table[slot] = next;
        } else {
            let mut before = self.table[slot];
            while self.entries[before as usize].next != index {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = next;
        }
        self.entries[index as usize].next = self.first_free;
        self.first_free = index;
    }

    fn slot(&self, first_half: Half, hash: SlotHash) -> usize {
        // Without a table, the index is beyond every table, and `contains` finds nothing.
        hash.slot_of(first_half) & self.table.len().wrapping_sub(1)
    }

    fn second_half(&self, index: EntryIndex) -> Half {
        self.second_halves
            .get(index as usize)
            .copied()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
