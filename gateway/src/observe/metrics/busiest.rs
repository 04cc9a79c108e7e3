//! Which applications have counts of their own: the busiest, as many as `metrics.applications` says.
//!
//! | rule | reason |
//! | --- | --- |
//! | while there is a free place, an application gets one with its first request | a small installation shows all |
//! | an application is as busy as its signed requests, each of which counts half after [`HALF_LIFE`] | anyone can send the others, and nobody may decide who is shown |
//! | another one replaces the least busy one if it is more than [`LEAD`] times and [`MIN_LEAD`] requests busier | the list does not flap |
//! | a shown count only grows. With its application it disappears, and is moved nowhere | the rates of all labels add up to that of all requests, at any time |
//! | requests of an application without a place count as `other` | likewise |

use std::time::Duration;

use signpost_protocol::app::{AppId, AppIdent};

use super::{
    applications::{Slot, add},
    labels::ClassCounts,
};
use crate::observe::per_thread::KeyMap;

/// Time in which an application's weight halves.
const HALF_LIFE: Duration = Duration::from_secs(600);

/// How many times busier than a shown application another one must be to replace it.
const LEAD: f64 = 2.0;

/// How many requests busier, in addition.
const MIN_LEAD: f64 = 10.0;

/// Limit of applications whose weight is known although they are not shown. Of twice as many, the busiest stay: 0.8 MB.
const MAX_CANDIDATES: usize = 2048;

/// A weight that is dropped: less than one request.
const MIN_WEIGHT: f64 = 0.5;

/// The shown applications, and those that may replace them.
#[derive(Debug, Default)]
pub(super) struct Busiest {
    limit: usize,
    listed: KeyMap<AppId, Listed>,
    candidates: KeyMap<AppId, Candidate>,
    other: ClassCounts,
}

#[derive(Clone, Copy, Debug)]
struct Listed {
    counts: ClassCounts,
    rank: Candidate,
}

/// How busy an application is.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    ident: AppIdent,
    weight: f64,
}

impl Busiest {
    /// Sets the limit of shown applications. If there are more, the least busy ones lose their places.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        let surplus = self.listed.len().saturating_sub(limit);
        if surplus == 0 {
            return;
        }
        for (id, _) in self.by_weight().into_iter().take(surplus) {
            self.unlist(id);
        }
        self.limit_candidates();
    }

    /// Adds what a thread has counted of an application.
    pub(super) fn add(&mut self, id: AppId, slot: &Slot) {
        let weight = slot.signed as f64;
        if let Some(listed) = self.listed.get_mut(&id) {
            add(&mut listed.counts, &slot.counts);
            listed.rank.weight += weight;
            return;
        }
        if self.listed.len() < self.limit {
            let before = self.candidates.remove(&id);
            let rank = Candidate {
                ident: slot.ident,
                weight: weight + before.map_or(0.0, |before| before.weight),
            };
            let counts = slot.counts;
            self.listed.insert(id, Listed { counts, rank });
            return;
        }
        add(&mut self.other, &slot.counts);
        if slot.signed > 0 {
            let new = Candidate {
                ident: slot.ident,
                weight: 0.0,
            };
            self.candidates.entry(id).or_insert(new).weight += weight;
            self.limit_candidates();
        }
    }

    /// Adds requests of applications that nothing is known of.
    pub(super) fn add_other(&mut self, counts: &ClassCounts) {
        add(&mut self.other, counts);
    }

    /// Decides anew which applications are shown. `elapsed` since the last time.
    pub(super) fn rank(&mut self, elapsed: Duration) {
        let factor = (-elapsed.as_secs_f64() / HALF_LIFE.as_secs_f64()).exp2();
        for listed in self.listed.values_mut() {
            listed.rank.weight *= factor;
        }
        self.candidates.retain(|_, candidate| {
            candidate.weight *= factor;
            candidate.weight >= MIN_WEIGHT
        });
        let mut candidates: Vec<_> = self
            .candidates
            .iter()
            .map(|(id, one)| (*id, *one))
            .collect();
        candidates.sort_by(|(_, one), (_, other)| other.weight.total_cmp(&one.weight));
        let mut candidates = candidates.into_iter();
        let free = self.limit.saturating_sub(self.listed.len());
        for (id, candidate) in candidates.by_ref().take(free) {
            self.list(id, candidate);
        }
        for ((id, candidate), (least, listed)) in candidates.zip(self.by_weight()) {
            if candidate.weight <= (listed * LEAD).max(listed + MIN_LEAD) {
                break;
            }
            self.unlist(least);
            self.list(id, candidate);
        }
    }

    /// Whether an application is shown.
    pub(super) fn shows(&self, id: AppId) -> bool {
        self.listed.contains_key(&id)
    }

    /// The shown applications.
    pub(super) fn idents(&self) -> impl Iterator<Item = (AppId, AppIdent)> {
        let listed = self.listed.iter();
        listed.map(|(id, listed)| (*id, listed.rank.ident))
    }

    /// The requests of the shown applications.
    pub(super) fn listed(&self) -> impl Iterator<Item = (AppIdent, &ClassCounts)> {
        let listed = self.listed.values();
        listed.map(|listed| (listed.rank.ident, &listed.counts))
    }

    /// The requests of all others.
    pub(super) const fn other(&self) -> &ClassCounts {
        &self.other
    }

    /// The shown applications, the least busy one first.
    fn by_weight(&self) -> Vec<(AppId, f64)> {
        let listed = self.listed.iter();
        let mut listed: Vec<_> = listed.map(|(id, one)| (*id, one.rank.weight)).collect();
        listed.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        listed
    }

    fn list(&mut self, id: AppId, rank: Candidate) {
        self.candidates.remove(&id);
        let counts = ClassCounts::default();
        self.listed.insert(id, Listed { counts, rank });
    }

    fn unlist(&mut self, id: AppId) {
        if let Some(listed) = self.listed.remove(&id) {
            self.candidates.insert(id, listed.rank);
        }
    }

    /// Drops the least busy half of too many candidates.
    fn limit_candidates(&mut self) {
        if self.candidates.len() < 2 * MAX_CANDIDATES {
            return;
        }
        let mut weights: Vec<_> = self.candidates.values().map(|one| one.weight).collect();
        // So that at most `MAX_CANDIDATES` are above the limit, however many there are.
        let least = weights.len() - MAX_CANDIDATES;
        let (_, limit, _) = weights.select_nth_unstable_by(least, f64::total_cmp);
        let limit = *limit;
        // Of those at the limit, as many stay as there is room.
        let above = |one: &Candidate| one.weight > limit;
        let busier = self.candidates.values().filter(|one| above(one)).count();
        let mut room = MAX_CANDIDATES.saturating_sub(busier);
        self.candidates.retain(|_, one| {
            let stays = above(one) || one.weight >= limit && room > 0;
            room -= usize::from(stays && !above(one));
            stays
        });
    }
}

#[cfg(test)]
mod tests;
