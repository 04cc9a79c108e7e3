//! Copies of requests to another version, whose responses are compared with those that clients got. CONTRACT 5.
//!
//! A request is copied after its client has the whole response. The copies go to a thread of their own with connections of
//! its own; a second thread compares. Only paths, kinds, counts and shapes of what differs are kept, never a value.
//!
//! | module | subject |
//! | --- | --- |
//! | [`copied`] | a copied request, and the response that its client got |
//! | [`send`] | sends a copy, and takes the response |
//! | [`compare`] | compares two responses |
//! | [`tallies`] | adds up what differs, by hour and entry |
//! | [`thread`] | the thread |
//! | [`store`] | the table `shadow_tallies` |
//! | [`writer`] | writes what was added up |

mod compare;
pub(crate) mod copied;
pub(crate) mod send;
pub(crate) mod store;
pub(crate) mod tallies;
mod thread;
pub(crate) mod writer;

use std::{
    cell::Cell,
    collections::BTreeMap,
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use signpost_kit::{clock::Timestamp, counted_label, label_enum, metrics::cells::LabelCounters};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use self::{
    copied::{Copied, Entry},
    tallies::{MAX_TALLIES, Tallies},
};

/// Limit of the copies of a process, from the request that is copied to the comparison; each has at most two heads, two
/// forms and three bodies of 64 KiB. A request beyond it is not copied.
pub(crate) const MAX_COPIES: usize = 256;

/// Limit of a body that is compared, in bytes.
pub(crate) const MAX_BODY: usize = 64 * 1024;

label_enum! {
    /// What became of a request that was chosen to be copied: the label `result`.
    pub enum CopyResult {
        /// The responses are alike.
        Equal = "equal",
        /// They differ.
        Different = "different",
        /// The other version gave no response in time.
        Failed = "failed",
        /// The other version refused the copy by `X-Gateway-Refused`.
        Refused = "refused",
        /// It was not copied, since there were too many copies already; or not counted, since memory was full.
        Dropped = "dropped",
        /// It was not compared: a response is too large, incomplete, or encoded in an unknown way.
        Skipped = "skipped",
        /// It was asked of its own version once more, to learn what differs by itself.
        Noise = "noise",
    }
}

counted_label!(CopyResult);

/// The copies of a process, and what was learnt by them.
#[derive(Debug)]
pub struct Shadows {
    places: Arc<Semaphore>,
    /// Where copies go; `None` if the thread could not be started.
    copies: OnceLock<Option<mpsc::UnboundedSender<Copied>>>,
    tallies: Mutex<Tallies>,
    /// Requests that were chosen and not copied, until the next write: a request must not wait for the tallies.
    dropped: Mutex<BTreeMap<Entry, u64>>,
    /// The requests that were chosen, by what became of them.
    pub counts: LabelCounters<CopyResult>,
    has_warned: AtomicBool,
}

impl Default for Shadows {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(MAX_COPIES)),
            copies: OnceLock::new(),
            tallies: Mutex::default(),
            dropped: Mutex::default(),
            counts: LabelCounters::default(),
            has_warned: AtomicBool::new(false),
        }
    }
}

/// A place for a copy. The comparison frees it.
#[derive(Debug)]
pub struct CopyPlace {
    _permit: OwnedSemaphorePermit,
}

impl Shadows {
    /// A place for a copy; `None` if there is none, which is counted.
    pub fn place(&self) -> Option<CopyPlace> {
        let permit = Arc::clone(&self.places).try_acquire_owned();
        if permit.is_err() {
            self.counts.count(CopyResult::Dropped);
        }
        permit.ok().map(|permit| CopyPlace { _permit: permit })
    }

    /// Notes that a chosen request was not copied.
    pub(crate) fn add_dropped(&self, entry: Entry) {
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        if dropped.len() < MAX_TALLIES || dropped.contains_key(&entry) {
            *dropped.entry(entry).or_default() += 1;
        }
    }

    /// Moves these to the tallies.
    fn collect_dropped(&self, now: Timestamp) {
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped = std::mem::take(&mut *dropped);
        let mut tallies = self.tallies();
        for (entry, number) in dropped {
            tallies.change(&entry, now, |tally| tally.dropped += number);
        }
    }

    /// Has a copy sent and compared. Starts the thread with the first one.
    pub fn submit(self: &Arc<Self>, copied: Copied) {
        let start = || match thread::start(Arc::clone(self)) {
            Ok(copies) => Some(copies),
            Err(cause) => {
                tracing::error!(%cause, "the thread for copies of requests cannot be started");
                None
            }
        };
        // A failed start is kept, too: another attempt, and another line in the log, for each copy would help nobody.
        let copies = self.copies.get_or_init(start).as_ref();
        if copies.is_none_or(|copies| copies.send(copied).is_err()) {
            self.counts.count(CopyResult::Dropped);
        }
    }

    /// Logs once that hours without a store have used up the memory for what differs.
    fn warn_full(&self) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "comparisons are lost: what differs cannot be written to the store, and memory holds no more of it"
            );
        }
    }

    fn tallies(&self) -> MutexGuard<'_, Tallies> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Chooses `per_million` of a million requests at random.
#[must_use]
pub(crate) fn is_chosen(per_million: u32) -> bool {
    match per_million {
        0 => false,
        1_000_000.. => true,
        _ => random() % 1_000_000 < u64::from(per_million),
    }
}

/// Random numbers that no client can foresee, one sequence for each thread.
fn random() -> u64 {
    thread_local! {
        static SEQUENCE: (RandomState, Cell<u64>) = (RandomState::new(), Cell::new(0));
    }
    SEQUENCE.with(|(keys, next)| {
        next.set(next.get().wrapping_add(1));
        let mut hasher = keys.build_hasher();
        hasher.write_u64(next.get());
        hasher.finish()
    })
}

#[cfg(test)]
mod tests;
