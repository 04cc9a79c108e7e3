//! Deletes expired logins, credentials, events and rows of versions, in small batches.

use std::time::Duration;

use signpost_kit::task::Task;
use signpost_store::StoreError;

use super::running::Running;
use crate::service::Service;

/// Short enough that few rows accumulate. Several processes can sweep at once.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Retention of expired logins: tokens get `expired` for this long, then `login_unknown`. It also limits how many rows
/// an application can create by beginning logins.
const LOGIN_RETENTION: Duration = Duration::from_secs(60 * 60);
/// Rows of one transaction: few enough that logins do not wait noticeably for the write lock.
const BATCH_ROWS: usize = 500;
/// Batches of one round. A shutdown is noticed between two rounds.
const MAX_BATCHES: usize = 100;

/// Sweeps periodically until the process stops.
pub(super) async fn sweep_until_stopped(running: Running) {
    let state = running.state();
    let task = Task::new(
        "cannot delete expired rows",
        "expired rows are deleted again",
    );
    let turn = || async {
        match sweep(&running.service()).await {
            Ok(pause) => (Ok(true), pause),
            Err(error) => (Err(error), SWEEP_INTERVAL),
        }
    };
    task.run_until(state.wait_until_closing(), turn).await;
}

/// Deletes what has expired, and returns the pause before the next round: none if rows are left.
pub(crate) async fn sweep(service: &Service) -> Result<Duration, StoreError> {
    let (state, lifetimes) = (&service.state, &service.config.lifetimes);
    let sweeps = state.sweeps();
    for _ in 0..MAX_BATCHES {
        let now = state.clock.now();
        let begun_before = now.minus(LOGIN_RETENTION);
        let logins = state.logins.sweep(begun_before, now, BATCH_ROWS).await?;
        let credentials = state.credentials.sweep(now, BATCH_ROWS).await?;
        let events = match lifetimes.event {
            Some(age) => state.events.sweep(now.minus(age), BATCH_ROWS).await?,
            None => 0,
        };
        let mut largest = logins.max(credentials).max(events);
        for sweep in &sweeps {
            largest = largest.max(sweep.run(&state.database, now, BATCH_ROWS).await?);
        }
        // A full batch may have left rows behind.
        if largest < BATCH_ROWS {
            return Ok(SWEEP_INTERVAL);
        }
    }
    // Ends nevertheless: only between two calls the task notices a stop.
    Ok(Duration::ZERO)
}
