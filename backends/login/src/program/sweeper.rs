//! Removes what nobody can ask for any more, a little at a time.

use std::time::Duration;

use signpost_store::StoreError;

use super::running::Running;
use crate::service::Service;

/// Often enough that rows never pile up; several processes may do it at once.
const EVERY: Duration = Duration::from_secs(60);
/// An old token is answered `expired` for this long, then as unknown. Also bounds what an application can have stored by
/// beginning logins.
const LOGINS_KEPT: Duration = Duration::from_secs(60 * 60);
/// Rows of one transaction: short enough that no login waits noticeably for the write lock.
const BATCH: usize = 500;
/// Batches of one round, between which a stop is noticed.
const BATCHES: usize = 100;

/// Sweeps now and then until the process stops.
pub(super) async fn sweep_until_stopped(running: Running) {
    let state = running.state();
    loop {
        let pause = match sweep(&running.service()).await {
            Ok(Swept::All) => EVERY,
            Ok(Swept::Part) => Duration::ZERO,
            Err(error) => {
                tracing::warn!(cause = %error, "old logins, credentials and events could not be swept");
                EVERY
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = state.stopped() => return,
        }
    }
}

/// How far a round came.
enum Swept {
    /// Nothing old is left.
    All,
    /// There is more: rows are written faster than one round removes them.
    Part,
}

async fn sweep(service: &Service) -> Result<Swept, StoreError> {
    for _ in 0..BATCHES {
        let state = service.state();
        let now = state.now();
        let logins = state
            .logins
            .store()
            .sweep(now.minus(LOGINS_KEPT), now, BATCH)
            .await?;
        let credentials = state.credentials.sweep(now, BATCH).await?;
        let events = match service.config().lifetimes().event {
            Some(kept) => state.events.sweep(now.minus(kept), BATCH).await?,
            None => 0,
        };
        if logins.max(credentials).max(events) < BATCH {
            return Ok(Swept::All);
        }
    }
    Ok(Swept::Part)
}
