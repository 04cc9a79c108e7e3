//! One application's live signs: a hash table over one list of entries, and when each of them ends.
//!
//! 20 bytes an entry, 4 for its place in the table, 12 for its end, times up to two, since the lists grow by doubling:
//! 39 bytes each of 60,000. 16 more for every entry as soon as a sign of HMAC-SHA-256 is among them.
//!
//! Measured with 60,000: `HashSet` or `hashbrown` takes a third more time, 63 or 72 bytes, 2 ms to grow and not 0.4.
//! A set for each second would accept a sign again with another `time`, which layouts without separators allow.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use gateway_protocol::sign::Sign;

use super::NotRemembered;

/// Half of the longest sign, and all of an MD5.
type Half = [u8; 16];

/// A sign's bytes, the second half zeros where there is none.
#[derive(Clone, Copy)]
pub(super) struct Halves(Half, Half);

impl From<&Sign> for Halves {
    fn from(sign: &Sign) -> Self {
        let (halves, _) = sign.as_bytes().as_chunks();
        let half = |place| halves.get(place).copied().unwrap_or_default();
        Self(half(0), half(1))
    }
}

/// Where in the table a sign is looked for. Keyed: who may sign could otherwise try requests until he has many whose
/// signs lie in one place. One multiplication is enough for that, since a sign is a hash already and nobody learns
/// where it went.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaceHash([u64; 2]);

impl PlaceHash {
    /// With a key of its own, from the system's randomness.
    pub(super) fn new() -> Self {
        Self([0, 1].map(|number: u64| RandomState::new().hash_one(number)))
    }

    fn of(self, sign: Half) -> usize {
        let sign = u128::from_ne_bytes(sign);
        let (low, high) = (sign as u64 ^ self.0[0], (sign >> 64) as u64 ^ self.0[1]);
        let product = u128::from(low) * u128::from(high);
        (product as u64 ^ (product >> 64) as u64) as usize
    }
}

/// An entry's number, or [`NONE`].
type Place = u32;

const NONE: Place = Place::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    first_half: Half,
    /// The next one whose sign hashes alike, or the next one that is free.
    next: Place,
}

/// When an entry ends: the last millisecond (UTC) at which it is live. In halves, to take 12 bytes and not 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    high: u32,
    low: u32,
    place: Place,
}

impl End {
    fn new(millis: u64, place: Place) -> Self {
        Self {
            high: (millis >> 32) as u32,
            low: millis as u32,
            place,
        }
    }

    fn millis(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// The live signs of one application.
#[derive(Debug)]
pub(super) struct LiveSigns {
    entries: Vec<Entry>,
    /// As long as `entries`, or empty as long as they are all zeros.
    second_halves: Vec<Half>,
    /// The first entry of each place in the table; their number is a power of two.
    table: Vec<Place>,
    first_free: Place,
    ends: BinaryHeap<Reverse<End>>,
    /// When the last of them ends.
    last_end: u64,
    /// The latest time that ended signs were forgotten at: one that had ended by then may have been one of them.
    forgotten_at: u64,
}

impl Default for LiveSigns {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            second_halves: Vec::new(),
            table: Vec::new(),
            first_free: NONE,
            ends: BinaryHeap::new(),
            last_end: 0,
            forgotten_at: 0,
        }
    }
}

impl LiveSigns {
    /// Takes a sign in that is live up to and in the millisecond `last_live`, if it is not there, and fewer than
    /// `most` are.
    pub(super) fn remember(
        &mut self,
        sign: Halves,
        last_live: u64,
        now: u64,
        most: usize,
        hash: PlaceHash,
    ) -> Result<(), NotRemembered> {
        self.forget_ended(now, hash);
        if last_live < self.forgotten_at || self.contains(sign, hash) {
            return Err(NotRemembered::Replayed);
        }
        // `NONE` is no place.
        if self.ends.len() >= most.min(NONE as usize) {
            let first_end = self.ends.peek().map_or(now, |Reverse(end)| end.millis());
            let until_room = Duration::from_millis(first_end.saturating_sub(now) + 1);
            return Err(NotRemembered::Full { until_room });
        }
        let place = self.insert(sign, hash);
        self.ends.push(Reverse(End::new(last_live, place)));
        self.last_end = self.last_end.max(last_live);
        Ok(())
    }

    /// Whether no sign is live.
    pub(super) fn is_empty_at(&mut self, now: u64, hash: PlaceHash) -> bool {
        self.forget_ended(now, hash);
        self.ends.is_empty()
    }

    fn forget_ended(&mut self, now: u64, hash: PlaceHash) {
        self.forgotten_at = self.forgotten_at.max(now);
        if self.last_end < now {
            self.forget_all();
        }
        while let Some(&Reverse(end)) = self.ends.peek()
            && end.millis() < now
        {
            self.ends.pop();
            self.remove(end.place, hash);
        }
    }

    /// After a pause, instead of one by one: 60,000 would keep the lock for milliseconds.
    fn forget_all(&mut self) {
        if !self.ends.is_empty() {
            self.entries.clear();
            self.second_halves.clear();
            self.table.fill(NONE);
            self.first_free = NONE;
            self.ends.clear();
        }
    }

    fn contains(&self, sign: Halves, hash: PlaceHash) -> bool {
        let Some(&first) = self.table.get(self.slot(sign.0, hash)) else {
            return false;
        };
        let mut place = first;
        while let Some(entry) = self.entries.get(place as usize) {
            if entry.first_half == sign.0 && self.second_half(place) == sign.1 {
                return true;
            }
            place = entry.next;
        }
        false
    }

    fn insert(&mut self, sign: Halves, hash: PlaceHash) -> Place {
        let entry = Entry {
            first_half: sign.0,
            next: NONE,
        };
        let place = match self.entries.get_mut(self.first_free as usize) {
            Some(free) => {
                let place = self.first_free;
                self.first_free = free.next;
                *free = entry;
                place
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as Place
            }
        };
        if sign.1 != Half::default() || !self.second_halves.is_empty() {
            self.second_halves
                .resize(self.entries.len(), Half::default());
            self.second_halves[place as usize] = sign.1;
        }
        if self.entries.len() > self.table.len() {
            self.enlarge_table(hash);
        } else {
            self.link(place, hash);
        }
        place
    }

    /// A new table for twice as many. Happens only when no entry is free.
    #[cold]
    fn enlarge_table(&mut self, hash: PlaceHash) {
        const SMALLEST: usize = 4;
        let length = (self.table.len() * 2).max(SMALLEST);
        self.table = vec![NONE; length];
        for place in 0..self.entries.len() {
            self.link(place as Place, hash);
        }
    }

    fn link(&mut self, place: Place, hash: PlaceHash) {
        let slot = self.slot(self.entries[place as usize].first_half, hash);
        self.entries[place as usize].next = self.table[slot];
        self.table[slot] = place;
    }

    /// Takes an entry out of the table and makes it free.
    fn remove(&mut self, place: Place, hash: PlaceHash) {
        let Entry { first_half, next } = self.entries[place as usize];
        let slot = self.slot(first_half, hash);
        if self.table[slot] == place {
            self.table[slot] = next;
        } else {
            let mut before = self.table[slot];
            while self.entries[before as usize].next != place {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = next;
        }
        self.entries[place as usize].next = self.first_free;
        self.first_free = place;
    }

    fn slot(&self, first_half: Half, hash: PlaceHash) -> usize {
        hash.of(first_half) & self.table.len().wrapping_sub(1)
    }

    fn second_half(&self, place: Place) -> Half {
        self.second_halves
            .get(place as usize)
            .copied()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
