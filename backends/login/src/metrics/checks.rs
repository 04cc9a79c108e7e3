//! Clients whose `/check` waits, and for how long: a request's duration is without it.

use std::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

tokio::task_local! {
    /// The time that the request of this task has waited.
    static WAITED: Cell<Duration>;
}

/// Serves a request; also returns how long its `/check` has waited.
pub(crate) async fn with_waits<T>(request: impl Future<Output = T>) -> (T, Duration) {
    let serve = async {
        let response = request.await;
        // Read inside of the scope, which drops the value at its end.
        (response, WAITED.with(Cell::get))
    };
    WAITED.scope(Cell::new(Duration::ZERO), serve).await
}

/// The number of requests that wait.
#[derive(Debug, Default)]
pub(crate) struct WaitingChecks(AtomicUsize);

impl WaitingChecks {
    /// Counts a request as waiting until the guard is dropped, also if its client leaves.
    pub(crate) fn wait(&self) -> WaitingCheck<'_> {
        // Relaxed: only the metrics read the number, and no other memory depends on it.
        self.0.fetch_add(1, Ordering::Relaxed);
        WaitingCheck {
            checks: self,
            begun_at: Instant::now(),
        }
    }

    /// The number at this moment.
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A request that waits.
#[derive(Debug)]
pub(crate) struct WaitingCheck<'c> {
    checks: &'c WaitingChecks,
    begun_at: Instant,
}

impl Drop for WaitingCheck<'_> {
    fn drop(&mut self) {
        self.checks.0.fetch_sub(1, Ordering::Relaxed);
        let waited = self.begun_at.elapsed();
        // An error means that no request is measured.
        let _ = WAITED.try_with(|all| all.set(all.get() + waited));
    }
}
