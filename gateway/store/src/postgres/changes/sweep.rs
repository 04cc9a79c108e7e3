//! Removing records of changes that everybody has heard of.

use std::time::Duration;

use tokio::time::Instant;

use crate::{StoreError, postgres::PostgresDatabase};

/// How often a process sweeps. All do, so that it does not matter which of them run.
const INTERVAL: Duration = Duration::from_secs(60);
/// Few enough for a statement to be short, and always the oldest, by the index: others that sweep meet in the same order
/// and wait for each other, rather than each for the other.
const SWEEP: &str = "DELETE FROM changes WHERE id IN (SELECT id FROM changes \
    WHERE changed_at < now() - interval '10 minutes' ORDER BY changed_at LIMIT 500)";
const BATCH: u64 = 500;
/// As many batches in a row: thousands of changes a second are swept as they come.
const BATCHES: usize = 200;

/// When it is due next.
pub(super) struct Sweep(Instant);

impl Sweep {
    pub(super) fn new() -> Self {
        Self(Instant::now() + INTERVAL)
    }

    /// Sweeps beside whatever goes on, if it is time to.
    pub(super) fn begin_if_due(&mut self, database: &PostgresDatabase) {
        if Instant::now() < self.0 {
            return;
        }
        self.0 = Instant::now() + INTERVAL;
        let database = database.clone();
        tokio::spawn(async move {
            if let Err(error) = sweep(&database).await {
                // The next one, or another process, does it.
                tracing::debug!(cause = %error.in_short(), "old records of changes were not removed");
            }
        });
    }
}

/// Removes what is old.
pub(in crate::postgres) async fn sweep(database: &PostgresDatabase) -> Result<(), StoreError> {
    for _ in 0..BATCHES {
        let session = database.session().await?;
        if session.execute(SWEEP, &[]).await? < BATCH {
            break;
        }
    }
    Ok(())
}
