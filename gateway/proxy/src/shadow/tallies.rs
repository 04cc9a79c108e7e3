//! What differs, added up by hour and entry until it is written.

use std::{collections::BTreeMap, time::Duration};

use signpost_bridge::{Comparison, Tally};
use signpost_kit::clock::Timestamp;

use super::copied::Entry;

/// Limit of the tallies in memory: of the current hour, and of those that the store has not got yet.
pub(super) const MAX_TALLIES: usize = 1024;

/// Limit of the paths, applications and renames in all of them, some hundred bytes each.
const MAX_COUNTS: usize = 100_000;

/// A tally with more of them is written once a minute only.
const LARGE: usize = 200;
const LARGE_INTERVAL: Duration = Duration::from_secs(60);

const HOUR_MS: i64 = 60 * 60 * 1000;

/// The hour that a time is in: its first millisecond, UTC.
#[must_use]
pub fn hour_of(time: Timestamp) -> i64 {
    time.as_millis() - time.as_millis().rem_euclid(HOUR_MS)
}

/// Of one gateway.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    all: BTreeMap<(i64, Entry), Added>,
    /// The number of paths, applications and renames in all of them.
    counts: usize,
    /// Since when the pairs of a version count: what is added up begins anew then.
    starts: BTreeMap<String, i64>,
}

#[derive(Debug, Default)]
struct Added {
    tally: Tally,
    is_written: bool,
    written_at: Option<Timestamp>,
}

impl Tallies {
    /// Adds a comparison with the other version, and one of the version with itself. Returns whether the former shows a
    /// difference that is not noise; `None` if there is no room.
    pub(super) fn add(
        &mut self,
        entry: &Entry,
        now: Timestamp,
        (pair, noise): (&Comparison, Option<&Comparison>),
        app: Option<&str>,
    ) -> Option<bool> {
        let added = self.of(entry, now)?;
        let counts = added.tally.len();
        if let Some(noise) = noise {
            added.tally.add_noise(noise);
        }
        let before = added.tally.differing;
        added.tally.add(pair, app);
        added.is_written = false;
        let (is_different, more) = (added.tally.differing > before, added.tally.len() - counts);
        self.counts += more;
        Some(is_different)
    }

    /// Changes a count of an entry that is no pair's.
    pub(super) fn change(
        &mut self,
        entry: &Entry,
        now: Timestamp,
        change: impl FnOnce(&mut Tally),
    ) {
        if let Some(added) = self.of(entry, now) {
            change(&mut added.tally);
            added.is_written = false;
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Learns since when pairs count.
    pub(super) fn begin_at(&mut self, starts: BTreeMap<String, i64>) {
        self.starts = starts;
    }

    /// The tally of an entry; `None` if there is no room.
    fn of(&mut self, entry: &Entry, now: Timestamp) -> Option<&mut Added> {
        let start = self.starts.get(&entry.version).copied().unwrap_or_default();
        let begun = hour_of(now).max(start.min(now.as_millis()));
        let key = (begun, entry.clone());
        let is_full = self.all.len() >= MAX_TALLIES && !self.all.contains_key(&key);
        let has_room = !is_full && self.counts < MAX_COUNTS;
        has_room.then(|| self.all.entry(key).or_default())
    }

    /// The tallies that the store does not have as they are. Drops what it has of earlier hours.
    pub(super) fn take_unwritten(&mut self, now: Timestamp) -> Vec<(i64, Entry, String)> {
        let this_hour = hour_of(now);
        self.all
            .retain(|(hour, _), added| *hour >= this_hour || !added.is_written);
        self.counts = self.all.values().map(|added| added.tally.len()).sum();
        let unwritten = self.all.iter_mut().filter(|((hour, _), added)| {
            let waits = *hour >= this_hour && added.tally.len() > LARGE;
            let is_recent = |at: Timestamp| at.plus(LARGE_INTERVAL) > now;
            !(added.is_written || waits && added.written_at.is_some_and(is_recent))
        });
        let rows = unwritten.filter_map(|((hour, entry), added)| {
            // Marked before the store has it: what is added during the write removes the mark, and is written next
            // time.
            (added.is_written, added.written_at) = (true, Some(now));
            // Serializing numbers and texts cannot fail.
            let tally = serde_json::to_string(&added.tally).ok()?;
            Some((*hour, entry.clone(), tally))
        });
        rows.collect()
    }

    /// The store did not get this one.
    pub(super) fn put_back(&mut self, hour: i64, entry: &Entry) {
        if let Some(added) = self.all.get_mut(&(hour, entry.clone())) {
            added.is_written = false;
        }
    }
}
