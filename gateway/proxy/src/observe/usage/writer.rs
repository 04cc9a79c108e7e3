//! Writes what was counted to the store, every few seconds and at a stop.
//!
//! Requests never wait for it. While the store is unavailable, counts stay in memory, bounded by applications, and are
//! written later. A process that is killed loses at most what it has counted since its last batch.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use signpost_kit::{
    clock::Clock,
    server::shutdown::{LastWrite, WriteRequests},
    task::{Outcome, Task},
};
use signpost_store::Store;
use tokio::time::sleep;

use super::{
    Day, Usage,
    batch::Batch,
    store::{self, ID_BYTES},
};

/// Interval in which the counters are read, and of batches: what a kill can lose, and the age of what the report shows.
pub(crate) const INTERVAL: Duration = Duration::from_secs(5);

/// Added to the interval of batches for each key of the last one: a key costs one or two rows, and writing shall take about a
/// hundredth of a processor however many applications there are.
const INTERVAL_PER_KEY: Duration = Duration::from_millis(5);

/// Limit of the interval of batches.
const MAX_INTERVAL: Duration = Duration::from_secs(60);

/// Batches from one deletion of old counts to the next: an hour.
const TURNS_PER_DELETION: u32 = 720;

/// Writes the counts of a process.
pub struct UsageWriter {
    usage: Arc<Usage>,
    store: Store,
    clock: Arc<dyn Clock>,
    id: [u8; ID_BYTES],
    /// The number of the last batch.
    sequence: i64,
    /// The last batch, if the store may not have it. It does not change any more.
    unwritten: Option<Arc<Batch>>,
    /// The number of the last batch's keys.
    last_keys: usize,
    has_begun: bool,
    turns_until_deletion: u32,
    task: Task,
    flushes: WriteRequests,
}

impl UsageWriter {
    /// A writer of these counters, and what a stop needs.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn new(
        usage: Arc<Usage>,
        store: Store,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<(Self, LastWrite)> {
        let mut id = [0; ID_BYTES];
        getrandom::fill(&mut id).context("the system has no random numbers")?;
        let (last_write, flushes) = LastWrite::new();
        let writer = Self {
            usage,
            store,
            clock,
            id,
            sequence: 0,
            unwritten: None,
            last_keys: 0,
            has_begun: false,
            turns_until_deletion: 0,
            task: Task::new(
                "the counts of requests cannot be written now, and stay in memory",
                "the counts of requests are written again",
            ),
            flushes,
        };
        Ok((writer, last_write))
    }

    /// Writes until the process ends.
    pub async fn run(mut self) {
        let mut last_batch = Instant::now();
        loop {
            if last_batch.elapsed() >= batch_interval(self.last_keys) || self.last_keys == 0 {
                self.turn().await;
                last_batch = Instant::now();
            } else {
                self.usage.read();
            }
            // A batch ends with the day.
            let now = self.clock.now();
            let wait = INTERVAL.min(Day::at(now).rest(now) + Duration::from_millis(1));
            tokio::select! {
                () = sleep(wait) => {}
                Some(done) = self.flushes.recv() => {
                    self.flush().await;
                    // The stop may have given up.
                    let _ = done.send(());
                }
            }
        }
    }

    /// Writes what was counted.
    pub(super) async fn turn(&mut self) {
        let outcome = self.write().await;
        self.task.log(outcome);
    }

    /// Writes everything: what is left of an outage, and what was counted since.
    pub(super) async fn flush(&mut self) {
        self.turn().await;
        // Not if the first write failed: the second would wait for the same store, and a stop has 3 s for both.
        if self.unwritten.is_none() && self.usage.requests() > 0 {
            self.turn().await;
        }
        let unwritten = self.unwritten.as_ref().map_or(0, |batch| batch.requests());
        let lost = unwritten + self.usage.requests();
        if lost > 0 {
            tracing::warn!(
                requests = lost,
                "requests are missing in the counts of signpost versions report: the store was unavailable"
            );
        }
    }

    /// Writes a batch if there is one.
    async fn write(&mut self) -> Outcome {
        self.usage.read();
        let now = self.clock.now();
        let mut was_called = false;
        if !self.has_begun {
            store::begin(&self.store, now).await?;
            (self.has_begun, was_called) = (true, true);
        }
        if self.unwritten.is_none() {
            let batch = self.usage.take_batch();
            if !batch.counts.is_empty() {
                // Numbered once: a write whose outcome is unknown is repeated with the same number, and counts once.
                self.sequence += 1;
                self.last_keys = batch.counts.len() + batch.paths.len();
                self.unwritten = Some(Arc::new(batch));
            }
        }
        if let Some(batch) = &self.unwritten {
            let number = (&self.id, self.sequence);
            store::add(&self.store, number, batch, now).await?;
            (self.unwritten, was_called) = (None, true);
        }
        if self.turns_until_deletion > 0 {
            self.turns_until_deletion -= 1;
        } else {
            let has_more = store::delete_old(&self.store, now).await?;
            was_called = true;
            self.turns_until_deletion = if has_more { 0 } else { TURNS_PER_DELETION - 1 };
        }
        Ok(was_called)
    }
}

/// The time from a batch with this number of keys to the next one. Slightly less than a multiple of [`INTERVAL`], since
/// timers are late.
fn batch_interval(keys: usize) -> Duration {
    let keys = u32::try_from(keys).unwrap_or(u32::MAX);
    let longer = INTERVAL.saturating_add(INTERVAL_PER_KEY.saturating_mul(keys));
    longer.min(MAX_INTERVAL) - INTERVAL / 2
}
