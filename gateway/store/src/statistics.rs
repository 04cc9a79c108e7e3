//! What a database handle counts of its calls and of its change feed, for the metrics of its program.
//!
//! Plain atomics: an update is a few relaxed additions beside a call that takes many microseconds. `signpost-kit`, which
//! depends on this crate, writes them as metrics.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Upper bounds of the buckets of [`CallDurations`], in microseconds: from a read in memory to the longest timeouts.
pub const CALL_BOUNDS_MICROS: [u64; 18] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// The number of buckets: one for each bound, and one for longer calls.
const BUCKETS: usize = CALL_BOUNDS_MICROS.len() + 1;

/// Times are stored as microseconds since then, plus one: 0 is never.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A store at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStatistics {
    /// Calls that succeeded.
    pub succeeded: CallDurations,
    /// Calls that failed, also because no connection became free.
    pub failed: CallDurations,
    /// The connections of the pool.
    pub pool: PoolStatistics,
    /// Age of the change feed's last complete read; `None` before the first one.
    pub feed_lag: Option<Duration>,
    /// Changes that the feed has reported.
    pub changes: u64,
}

/// The durations of calls, from the beginning of the wait for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallDurations {
    /// The number of calls within each of [`CALL_BOUNDS_MICROS`] alone, and of longer ones.
    pub counts: [u64; BUCKETS],
    /// The sum of all durations, in microseconds.
    pub micros: u64,
}

/// The connections of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Open connections that no call uses.
    pub idle: usize,
    /// Connections that a call uses or opens.
    pub in_use: usize,
    /// Calls that wait for a connection. For SQLite, this includes calls that wait for the writer's turn.
    pub waiting: usize,
}

/// Counts what a database does. The clones of a handle share one.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    succeeded: CallHistogram,
    failed: CallHistogram,
    /// When the change feed began its last complete read.
    read_at: AtomicU64,
    changes: AtomicU64,
    /// Counts changes of the server: odd from one that takes no writes, or stops, until the next successful write.
    server: AtomicU64,
}

impl Statistics {
    /// Counts a call that has ended. One whose caller left before is not counted.
    pub(crate) fn count_call(&self, duration: Duration, is_success: bool) {
        let histogram = if is_success {
            &self.succeeded
        } else {
            &self.failed
        };
        histogram.add(duration);
    }

    /// Notes that the server takes no writes, or stops: its connections are closed.
    pub(crate) fn server_was_left(&self) {
        // An odd number stays: calls that notice the same loss count it once.
        self.server.fetch_or(1, Ordering::Relaxed);
    }

    /// Notes that the server takes writes.
    pub(crate) fn server_takes_writes(&self) {
        // An even number stays: only the first success after a loss counts.
        let even = |changes| Some((changes + 1) & !1);
        let _ = (self.server).fetch_update(Ordering::Relaxed, Ordering::Relaxed, even);
    }

    /// Another number once calls may have another server.
    pub(crate) fn server(&self) -> u64 {
        self.server.load(Ordering::Relaxed)
    }

    /// Notes that the change feed knows all changes before `begun_at`.
    pub(crate) fn feed_was_read(&self, begun_at: Instant) {
        self.read_at
            .store(micros_since_start(begun_at) + 1, Ordering::Relaxed);
    }

    /// Counts a change that the feed reports.
    pub(crate) fn count_change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts up to now, together with the pool's.
    pub(crate) fn read(&self, pool: PoolStatistics) -> StoreStatistics {
        let read_at = self.read_at.load(Ordering::Relaxed).checked_sub(1);
        let now = micros_since_start(Instant::now());
        StoreStatistics {
            succeeded: self.succeeded.read(),
            failed: self.failed.read(),
            pool,
            feed_lag: read_at.map(|read_at| Duration::from_micros(now.saturating_sub(read_at))),
            changes: self.changes.load(Ordering::Relaxed),
        }
    }
}

fn micros_since_start(time: Instant) -> u64 {
    in_micros(time.saturating_duration_since(*START))
}

/// Whole microseconds.
pub(crate) fn in_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Counts calls by duration.
#[derive(Debug, Default)]
struct CallHistogram {
    counts: [AtomicU64; BUCKETS],
    micros: AtomicU64,
}

impl CallHistogram {
    fn add(&self, duration: Duration) {
        let micros = in_micros(duration);
        let bucket = CALL_BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn read(&self) -> CallDurations {
        CallDurations {
            counts: std::array::from_fn(|bucket| self.counts[bucket].load(Ordering::Relaxed)),
            micros: self.micros.load(Ordering::Relaxed),
        }
    }
}

impl CallDurations {
    /// The number of calls.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod both_stores;
