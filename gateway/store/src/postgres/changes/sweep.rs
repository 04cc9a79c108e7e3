//! Removing old records of changes, which every process has seen.

use std::time::Duration;

use tokio::time::Instant;

use crate::{StoreError, postgres::PostgresDatabase};

/// Time between two sweeps. Every process sweeps, so that it does not matter which of them run.
const INTERVAL: Duration = Duration::from_secs(60);
/// Removes a batch, small enough for a short statement. Always the oldest records, by the index: concurrent sweeps lock
/// rows in the same order, so they cannot deadlock.
const SWEEP: &str = "DELETE FROM changes WHERE id IN (SELECT id FROM changes \
    WHERE changed_at < now() - interval '10 minutes' ORDER BY changed_at LIMIT 500)";
const BATCH: u64 = 500;
/// Limit on batches per sweep: enough for more than a thousand changes a second.
const MAX_BATCHES: usize = 200;

/// Sweeps once a minute.
pub(super) struct Sweep(Instant);

impl Sweep {
    pub(super) fn new() -> Self {
        Self(Instant::now() + INTERVAL)
    }

    /// Sweeps in the background, if a sweep is due.
    pub(super) fn begin_if_due(&mut self, database: &PostgresDatabase) {
        if Instant::now() < self.0 {
            return;
        }
        self.0 = Instant::now() + INTERVAL;
        let database = database.clone();
        tokio::spawn(async move {
            if let Err(error) = sweep(&database).await {
                // Only debug: the next sweep, or another process, removes them.
                tracing::debug!(cause = %error.in_short(), "cannot remove old records of changes");
            }
        });
    }
}

/// Removes all old records, up to the limit.
pub(in crate::postgres) async fn sweep(database: &PostgresDatabase) -> Result<(), StoreError> {
    for _ in 0..MAX_BATCHES {
        let session = database.session().await?;
        if session.execute(SWEEP, &[]).await? < BATCH {
            break;
        }
    }
    Ok(())
}
