//! Which applications have counts of their own in the metrics: the busiest, as many as `metrics.applications` says.
//!
//! | rule | reason |
//! | --- | --- |
//! | while there is a free place, an application gets one with its first request | a small installation shows all |
//! | an application is as busy as its signed requests since the last scrape | any client can send the others, and would decide which ones are shown |
//! | at a scrape, another one replaces the least busy one if it is more than [`LEAD`] times and [`MIN_LEAD`] requests busier | the list does not flap |
//! | a shown count only grows. With its application it disappears, and is moved nowhere | the rates of all labels add up to the rate of all requests, at any time |
//! | requests of an application without a place count as `other` | the rates of all labels add up, too |

use signpost_protocol::app::AppIdent;

use crate::observe::{
    metrics::labels::{ClassCounts, UNNAMED},
    per_thread::KeyMap,
};

/// How many times busier than a shown application another one must be to replace it.
const LEAD: u64 = 2;

/// How many requests busier, in addition.
const MIN_LEAD: u64 = 10;

/// Limit of the applications without a place whose requests are compared at the next scrape: 0.2 MB.
const MAX_CANDIDATES: usize = 4096;

/// The requests of an application that is not shown, or is called like a label that stands for others.
const OTHER: &str = "other";

/// The shown applications, and those that may replace them.
#[derive(Debug, Default)]
pub(super) struct Busiest {
    limit: usize,
    shown: KeyMap<i64, Shown>,
    candidates: KeyMap<i64, Candidate>,
    other: ClassCounts,
}

#[derive(Clone, Copy, Debug)]
struct Shown {
    counts: ClassCounts,
    rank: Candidate,
}

/// How busy an application is.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    ident: AppIdent,
    /// Signed requests since the last scrape.
    signed: u64,
}

impl Busiest {
    /// Sets the limit of shown applications. If there are more, the least busy ones lose their places.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        let surplus = self.shown.len().saturating_sub(limit);
        for (id, _) in self.by_requests().into_iter().take(surplus) {
            self.shown.remove(&id);
        }
    }

    /// Adds what a thread has counted of an application.
    pub(super) fn add(&mut self, id: i64, ident: AppIdent, is_signed: bool, counts: &ClassCounts) {
        let signed = if is_signed { counts.iter().sum() } else { 0 };
        if let Some(shown) = self.shown.get_mut(&id) {
            add(&mut shown.counts, counts);
            shown.rank.signed += signed;
            return;
        }
        let is_label = ident.as_str() == OTHER || UNNAMED.contains(&ident.as_str());
        if self.shown.len() < self.limit && !is_label {
            let (counts, rank) = (*counts, Candidate { ident, signed });
            self.shown.insert(id, Shown { counts, rank });
            return;
        }
        add(&mut self.other, counts);
        let has_room = self.candidates.len() < MAX_CANDIDATES;
        if signed > 0 && !is_label && (has_room || self.candidates.contains_key(&id)) {
            let new = Candidate { ident, signed: 0 };
            self.candidates.entry(id).or_insert(new).signed += signed;
        }
    }

    /// Adds requests of applications that nothing is known of.
    pub(super) fn add_other(&mut self, counts: &ClassCounts) {
        add(&mut self.other, counts);
    }

    /// Decides by the requests since the last scrape which applications are shown, and returns the requests of each and of
    /// all others.
    pub(super) fn scrape(&mut self) -> Vec<(Box<str>, ClassCounts)> {
        let mut candidates: Vec<_> = self.candidates.drain().collect();
        candidates.sort_by_key(|(_, candidate)| std::cmp::Reverse(candidate.signed));
        let mut candidates = candidates.into_iter();
        let free = self.limit.saturating_sub(self.shown.len());
        for (id, candidate) in candidates.by_ref().take(free) {
            self.show(id, candidate);
        }
        for ((id, candidate), (least, signed)) in candidates.zip(self.by_requests()) {
            // The busiest candidate meets the least busy application, the next meets the next: once a pair is too
            // close, all are.
            if candidate.signed <= (signed * LEAD).max(signed + MIN_LEAD) {
                break;
            }
            self.shown.remove(&least);
            self.show(id, candidate);
        }
        let other = (OTHER.into(), self.other);
        let shown = self.shown.values_mut().map(|shown| {
            shown.rank.signed = 0;
            (shown.rank.ident.as_str().into(), shown.counts)
        });
        [other].into_iter().chain(shown).collect()
    }

    /// The shown applications, the least busy one first. Of those that are equally busy, the one with fewer requests so far
    /// is first.
    fn by_requests(&self) -> Vec<(i64, u64)> {
        let mut shown: Vec<_> = self.shown.iter().collect();
        shown.sort_by_key(|(_, app)| (app.rank.signed, app.counts.iter().sum::<u64>()));
        let shown = shown.into_iter();
        shown.map(|(id, app)| (*id, app.rank.signed)).collect()
    }

    /// What was counted as other stays there, so that no request is counted twice.
    fn show(&mut self, id: i64, rank: Candidate) {
        let counts = ClassCounts::default();
        self.shown.insert(id, Shown { counts, rank });
    }
}

/// Adds to all classes.
fn add(counts: &mut ClassCounts, further: &ClassCounts) {
    for (count, further) in counts.iter_mut().zip(further) {
        *count += further;
    }
}

#[cfg(test)]
mod tests;
