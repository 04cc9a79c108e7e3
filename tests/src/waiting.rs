//! Waiting for a condition, with a deadline: a test never sleeps for a fixed time.

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// How long a test waits for what should happen soon. Generous: two cores run many stacks at once.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Between two looks at a condition.
const INTERVAL: Duration = Duration::from_millis(10);

/// Looks until there is something to see.
///
/// # Panics
///
/// When nothing was seen for [`PATIENCE`], naming what was awaited.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, look: impl FnMut() -> F) -> T {
    match within(PATIENCE, look).await {
        Some(seen) => seen,
        None => panic!("waited {PATIENCE:?} in vain for: {what}"),
    }
}

/// Looks until there is something to see, or the time is over.
pub async fn within<T, F: Future<Output = Option<T>>>(
    patience: Duration,
    mut look: impl FnMut() -> F,
) -> Option<T> {
    let start = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return Some(seen);
        }
        if start.elapsed() > patience {
            return None;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
