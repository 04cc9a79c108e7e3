//! Writes what differs to the store, every few seconds.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use signpost_kit::{
    clock::Clock,
    task::{Outcome, Task},
};
use signpost_store::Store;
use tokio::time::sleep;

use super::{
    Shadows,
    store::{ID_BYTES, read_starts, write},
};

/// From one write to the next: what the end of a process can lose, and the age of what reports show.
const INTERVAL: Duration = Duration::from_secs(5);

/// Writes until the process ends.
pub struct ShadowWriter {
    shadows: Arc<Shadows>,
    store: Store,
    clock: Arc<dyn Clock>,
    id: [u8; ID_BYTES],
}

impl ShadowWriter {
    /// A writer of these.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn new(shadows: Arc<Shadows>, store: Store, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let mut id = [0; ID_BYTES];
        getrandom::fill(&mut id).context("the system has no random numbers")?;
        Ok(Self {
            shadows,
            store,
            clock,
            id,
        })
    }

    /// Writes until the process ends.
    pub async fn run(self) {
        sleep(INTERVAL).await;
        let task = Task::quiet("what differs between versions cannot be written now");
        task.run(|| async { (self.write().await, INTERVAL) }).await;
    }

    /// Writes what has changed. What the store does not take stays in memory.
    async fn write(&self) -> Outcome {
        let now = self.clock.now();
        self.shadows.collect_dropped(now);
        if self.shadows.tallies().is_empty() {
            return Ok(false);
        }
        let starts = read_starts(&self.store).await?;
        self.shadows.tallies().begin_at(starts);
        let unwritten = self.shadows.tallies().take_unwritten(now);
        let mut outcome = Ok(true);
        for (hour, entry, tally) in unwritten {
            let written = write(&self.store, &self.id, (hour, &entry), &tally).await;
            // The loop goes on after an error: each tally is marked as written, and must be written or put back.
            if written.is_err() {
                self.shadows.tallies().put_back(hour, &entry);
            }
            outcome = outcome.and(written.map(|()| true));
        }
        outcome
    }
}
