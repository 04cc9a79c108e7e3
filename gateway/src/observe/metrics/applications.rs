//! Counts requests by application, for the few that are shown.
//!
//! A request adds to a table of its thread. A scrape, and a task every few seconds, collect the tables and empty them, so
//! that any number of applications takes a bounded memory. [`Busiest`] decides which of them are shown.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use signpost_kit::metrics::cells::Counters;
use signpost_protocol::app::{AppId, AppIdent};

use super::{
    RequestMetrics,
    busiest::Busiest,
    labels::{ClassCounts, STATUS_CLASSES},
};
use crate::{
    directory::apps::App,
    observe::per_thread::{KeyMap, PerThread},
};

/// Limit of the applications in a table between two collections; half of it for unsigned requests, so that a flood of
/// those leaves room for signed ones. A table of that size takes 0.6 MB. Requests of further applications are counted
/// together. From the first full table on, applications that are shown have a place in it.
pub(super) const MAX_KEYS: usize = 2048;

/// Interval in which applications are ranked.
const INTERVAL: Duration = Duration::from_secs(5);

/// Requests of an application that is not among the busiest, or is called like one of these labels.
const OTHER: &str = "other";

/// Requests without a known application: malformed ones, preflights, redirects to https, callbacks.
const NONE: &str = "none";

/// Requests of the application of single-application mode.
const SINGLE: &str = "default";

/// Labels that stand for no application of the store, by their indices.
const FIXED: [&str; 3] = [NONE, SINGLE, OTHER];

/// Requests by application.
#[derive(Debug)]
pub(crate) struct AppCounts {
    /// Requests of the labels in [`FIXED`], by class.
    fixed: Counters,
    tables: PerThread<Table>,
    busiest: Mutex<Busiest>,
    /// Limit of the applications that are shown, from the next collection on.
    limit: AtomicUsize,
}

/// What a thread has counted since the last collection.
#[derive(Debug, Default)]
struct Table {
    slots: KeyMap<AppId, Slot>,
    /// Requests of applications that the table has no room for.
    overflow: ClassCounts,
}

/// The requests of an application.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub ident: AppIdent,
    /// Those that were signed with its key.
    pub signed: u64,
    /// All, by class.
    pub counts: ClassCounts,
}

impl Default for AppCounts {
    fn default() -> Self {
        Self {
            fixed: Counters::new(FIXED.len() * STATUS_CLASSES.len()),
            tables: PerThread::default(),
            busiest: Mutex::default(),
            limit: AtomicUsize::new(0),
        }
    }
}

impl AppCounts {
    /// Counts a request of this application.
    pub(super) fn count(&self, app: Option<&Arc<App>>, is_signed: bool, class: usize) {
        let fixed = match app.map(|app| (app.id, &app.ident)) {
            None => 0,
            Some((_, None)) => 1,
            Some((id, Some(ident))) if self.limit.load(Ordering::Relaxed) > 0 => {
                if self.tables.own().count(id, ident, is_signed, class) {
                    return;
                }
                2
            }
            Some(_) => 2,
        };
        self.fixed.add(fixed * STATUS_CLASSES.len() + class, 1);
    }

    /// Sets the limit of the applications that are shown.
    pub(super) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// The requests of each shown application and of all others, up to now.
    pub(crate) fn shown(&self) -> Vec<(Box<str>, ClassCounts)> {
        let busiest = self.collect();
        let fixed = FIXED.iter().enumerate().map(|(index, label)| {
            let first = index * STATUS_CLASSES.len();
            let mut counts = ClassCounts::default();
            for (class, count) in counts.iter_mut().enumerate() {
                *count = self.fixed.value(first + class);
            }
            if *label == OTHER {
                add(&mut counts, busiest.other());
            }
            ((*label).into(), counts)
        });
        let listed = busiest.listed();
        let listed = listed.map(|(ident, counts)| (ident.as_str().into(), *counts));
        fixed.chain(listed).collect()
    }

    /// Moves what the threads have counted into the list.
    fn collect(&self) -> MutexGuard<'_, Busiest> {
        let mut busiest = self.busiest.lock().unwrap_or_else(PoisonError::into_inner);
        busiest.set_limit(self.limit.load(Ordering::Relaxed));
        let mut collected = Vec::new();
        for mut table in self.tables.all() {
            let overflow = table.empty(&mut collected, &busiest);
            drop(table);
            busiest.add_other(&overflow);
            for (id, slot) in collected.drain(..) {
                busiest.add(id, &slot);
            }
        }
        busiest
    }

    /// Ranks the applications anew, some time after the last turn.
    pub(super) fn turn(&self, elapsed: Duration) {
        self.collect().rank(elapsed);
    }
}

/// Ranks the applications every few seconds, until the process ends.
pub(crate) async fn rank_applications(metrics: Arc<RequestMetrics>) {
    let mut last = Instant::now();
    loop {
        tokio::time::sleep(INTERVAL).await;
        metrics.applications.turn(last.elapsed());
        last = Instant::now();
    }
}

/// Whether an application is called like a label that stands for others: imported idents can be.
fn is_label(ident: &AppIdent) -> bool {
    FIXED.contains(&ident.as_str())
}

/// Adds to all classes.
pub(super) fn add(counts: &mut ClassCounts, further: &ClassCounts) {
    for (count, further) in counts.iter_mut().zip(further) {
        *count += further;
    }
}

impl Table {
    /// Counts a request; returns `false` for an application that is called like a label, which has no place here.
    fn count(&mut self, id: AppId, ident: &AppIdent, is_signed: bool, class: usize) -> bool {
        let max = if is_signed { MAX_KEYS } else { MAX_KEYS / 2 };
        let has_room = self.slots.len() < max;
        let slot = match self.slots.get_mut(&id) {
            Some(slot) => slot,
            // Compared only here, not for each request: that takes 130 instructions.
            None if is_label(ident) => return false,
            None if has_room => self.slots.entry(id).or_insert(Slot::new(*ident)),
            None => {
                self.overflow[class] += 1;
                return true;
            }
        };
        slot.signed += u64::from(is_signed);
        slot.counts[class] += 1;
        true
    }

    /// Moves the slots to `collected`, and returns the overflow. Applications that are shown keep their place; if the
    /// table was full, those that had none get one.
    fn empty(&mut self, collected: &mut Vec<(AppId, Slot)>, busiest: &Busiest) -> ClassCounts {
        self.slots.retain(|id, slot| {
            if slot.counts != ClassCounts::default() {
                collected.push((*id, *slot));
                *slot = Slot::new(slot.ident);
            }
            busiest.shows(*id)
        });
        let overflow = std::mem::take(&mut self.overflow);
        if overflow != ClassCounts::default() {
            for (id, ident) in busiest.idents() {
                self.slots.entry(id).or_insert(Slot::new(ident));
            }
        }
        overflow
    }
}

impl Slot {
    pub(super) const fn new(ident: AppIdent) -> Self {
        Self {
            ident,
            signed: 0,
            counts: [0; STATUS_CLASSES.len()],
        }
    }
}
