//! Deletes expired logins, credentials and events, in small batches.

use std::time::Duration;

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
    loop {
        let pause = match sweep(&running.service()).await {
            Ok(Swept::All) => SWEEP_INTERVAL,
            Ok(Swept::Part) => Duration::ZERO,
            Err(error) => {
                tracing::warn!(cause = %error, "cannot delete expired logins, credentials and events");
                SWEEP_INTERVAL
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = state.wait_until_closing() => return,
        }
    }
}

/// The result of a round.
enum Swept {
    /// No expired rows are left.
    All,
    /// More expired rows are left than one round deletes.
    Part,
}

async fn sweep(service: &Service) -> Result<Swept, StoreError> {
    for _ in 0..MAX_BATCHES {
        let state = &service.state;
        let now = state.clock.now();
        let logins = state
            .logins
            .sweep(now.minus(LOGIN_RETENTION), now, BATCH_ROWS)
            .await?;
        let credentials = state.credentials.sweep(now, BATCH_ROWS).await?;
        let events = match service.config().lifetimes.event {
            Some(age) => state.events.sweep(now.minus(age), BATCH_ROWS).await?,
            None => 0,
        };
        if logins.max(credentials).max(events) < BATCH_ROWS {
            return Ok(Swept::All);
        }
    }
    Ok(Swept::Part)
}
