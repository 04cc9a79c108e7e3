//! Counters and histograms for code that serves requests.
//!
//! An update is a relaxed addition to a cell of the thread's own shard: no lock, no allocation, no label. Threads beyond
//! the number of shards share one, so that an addition is atomic nevertheless. A scrape adds up the shards.

use std::{
    marker::PhantomData,
    sync::{
        LazyLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

/// Limit of shards: with more threads, some share one.
const MAX_SHARDS: usize = 64;

/// Cells of a pair of cache lines, which processors fetch together: shards share none.
const CELLS_PER_LINE: usize = 16;

/// The number of shards, a power of two: one for each processor, and one more thread's at least.
static SHARDS: LazyLock<usize> = LazyLock::new(|| {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    (processors + 1).next_power_of_two().min(MAX_SHARDS)
});

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// The number of this thread among those that have counted.
#[inline]
#[must_use]
pub fn thread_number() -> usize {
    THREAD.with(|thread| *thread)
}

/// A fixed number of counters, by index.
#[derive(Debug)]
pub struct Counters {
    cells: Box<[AtomicU64]>,
    /// Cells of a shard.
    stride: usize,
    /// The number of shards, less one.
    mask: usize,
}

impl Counters {
    /// `length` counters, all 0.
    #[must_use]
    pub fn new(length: usize) -> Self {
        let stride = length.next_multiple_of(CELLS_PER_LINE);
        let cells = stride * *SHARDS;
        Self {
            cells: (0..cells).map(|_| AtomicU64::new(0)).collect(),
            stride,
            mask: *SHARDS - 1,
        }
    }

    /// Adds to a counter. It wraps around, which takes longer than a machine lives.
    pub fn add(&self, index: usize, amount: u64) {
        self.shard()[index].fetch_add(amount, Ordering::Relaxed);
    }

    /// The cells of this thread's shard.
    fn shard(&self) -> &[AtomicU64] {
        let start = (thread_number() & self.mask) * self.stride;
        &self.cells[start..start + self.stride]
    }

    /// The value of a counter.
    #[must_use]
    pub fn value(&self, index: usize) -> u64 {
        let shards = self.cells.iter().skip(index).step_by(self.stride);
        shards.fold(0, |sum, cell| {
            sum.wrapping_add(cell.load(Ordering::Relaxed))
        })
    }
}

/// A counter for each value of a label.
#[derive(Debug)]
pub struct LabelCounters<L>(Counters, PhantomData<L>);

impl<L: Label> Default for LabelCounters<L> {
    fn default() -> Self {
        Self(Counters::new(L::VALUES.len()), PhantomData)
    }
}

impl<L: Label> LabelCounters<L> {
    /// Adds 1 to the counter of a value.
    pub fn count(&self, value: L) {
        self.add(value, 1);
    }

    /// Adds to the counter of a value.
    pub fn add(&self, value: L, amount: usize) {
        self.0.add(value.index(), amount as u64);
    }

    /// The counter of a value.
    #[must_use]
    pub fn value(&self, value: L) -> u64 {
        self.0.value(value.index())
    }
}

/// The buckets of a histogram: what is observed in whole units, and shown in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    /// The upper bounds, ascending, in units. Values above the last one are in `+Inf`.
    pub bounds: &'static [u64],
    /// Units in a second: 1,000,000 if values are microseconds.
    pub units_per_second: f64,
}

impl Buckets {
    /// From 10 µs to 60 s, in microseconds: a duration within the gateway, of a backend, or of a provider.
    pub const DURATION: Self = Self {
        bounds: &[
            10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000,
            250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
        ],
        units_per_second: 1e6,
    };
}

/// A histogram.
#[derive(Debug)]
pub struct Histogram {
    buckets: Buckets,
    /// The first bucket for values of each number of binary digits: one or two comparisons from there find the bucket.
    /// A search costs 40 instructions more.
    first: [u8; DIGITS],
    /// The sum of the values, the counts of the buckets, and the count of `+Inf`.
    cells: Counters,
}

/// Numbers of binary digits that a value can have, none included.
const DIGITS: usize = 65;

/// What a histogram has observed.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The sum of all values, in seconds.
    pub sum: f64,
    /// The upper bound of each bucket in seconds, and the number of values in it alone.
    pub buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// A histogram without values.
    #[must_use]
    pub fn new(buckets: Buckets) -> Self {
        let bounds = buckets.bounds;
        // The first bucket whose bound is not below a value.
        let bucket_of = |value| bounds.partition_point(|bound| *bound < value);
        // The bucket of the smallest value with this number of binary digits.
        let first = |digits: usize| {
            let smallest = digits.checked_sub(1).map_or(0, |zeros| 1 << zeros);
            u8::try_from(bucket_of(smallest)).unwrap_or(u8::MAX)
        };
        Self {
            buckets,
            first: std::array::from_fn(first),
            cells: Counters::new(buckets.bounds.len() + 2),
        }
    }

    /// Adds a value, in the unit of the buckets.
    pub fn observe(&self, value: u64) {
        let bounds = self.buckets.bounds;
        let digits = (u64::BITS - value.leading_zeros()) as usize;
        let mut bucket = usize::from(self.first[digits]);
        while bounds.get(bucket).is_some_and(|bound| *bound < value) {
            bucket += 1;
        }
        let cells = self.cells.shard();
        // Not one atomic step: a scrape in between has one value in the sum and not in the count.
        cells[0].fetch_add(value, Ordering::Relaxed);
        cells[1 + bucket].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a duration, if the unit is the microsecond.
    pub fn observe_duration(&self, duration: std::time::Duration) {
        self.observe(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    /// The values so far.
    #[must_use]
    pub fn observed(&self) -> Observed {
        let bounds = self.buckets.bounds;
        let in_seconds = |units: u64| units as f64 / self.buckets.units_per_second;
        let bounds_in_seconds = bounds.iter().map(|bound| in_seconds(*bound));
        let counts = (0..=bounds.len()).map(|bucket| self.cells.value(1 + bucket));
        Observed {
            sum: in_seconds(self.cells.value(0)),
            buckets: bounds_in_seconds
                .chain([f64::INFINITY])
                .zip(counts)
                .collect(),
        }
    }
}

impl Observed {
    /// The number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

/// The classes of a response's status: `none` if the client left without a response.
pub const STATUS_CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The index of a status' class. 0: a request without a response.
#[inline]
#[must_use]
pub fn status_class(status: u16) -> usize {
    usize::from(status / 100).min(STATUS_CLASSES.len() - 1)
}

/// The values of a label that are counted apart; [`counted_label`](crate::counted_label) implements it.
pub trait Label: Copy + 'static {
    /// All of them, in their order.
    const VALUES: &'static [Self];

    /// The index in [`Self::VALUES`].
    fn index(self) -> usize;

    /// The label's value in Prometheus' text format.
    fn text(self) -> &'static str;
}

/// Makes an enum of [`label_enum`](crate::label_enum) a [`Label`].
#[macro_export]
macro_rules! counted_label {
    ($name:ident) => {
        impl $crate::metrics::cells::Label for $name {
            const VALUES: &'static [Self] = &Self::ALL;

            fn index(self) -> usize {
                self as usize
            }

            fn text(self) -> &'static str {
                self.as_str()
            }
        }
    };
}
