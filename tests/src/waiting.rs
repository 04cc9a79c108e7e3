//! Waiting for a condition, with a deadline: a test never sleeps for a fixed time.

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// Timeout of [`until`]. Generous: two cores run many stacks at once. A change in the store takes effect in every process
/// within the second that CONTRACT 4 and 8 allow, and each feed has a test of its own that demands the second.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Pause between two checks of a condition.
const INTERVAL: Duration = Duration::from_millis(10);

/// Calls `look` until it returns a value. `what` describes the condition in the panic message.
///
/// # Panics
///
/// When it returns none within [`WAIT_TIMEOUT`].
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, look: impl FnMut() -> F) -> T {
    until_within(WAIT_TIMEOUT, what, look).await
}

/// As [`until`], for what may take longer.
///
/// # Panics
///
/// When it returns none within `timeout`.
pub async fn until_within<T, F: Future<Output = Option<T>>>(
    timeout: Duration,
    what: &str,
    look: impl FnMut() -> F,
) -> T {
    match within(timeout, look).await {
        Some(seen) => seen,
        None => panic!("no result within {timeout:?}: {what}"),
    }
}

/// Calls `look` until it returns a value; `None` after the timeout.
pub async fn within<T, F: Future<Output = Option<T>>>(
    timeout: Duration,
    mut look: impl FnMut() -> F,
) -> Option<T> {
    let start = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return Some(seen);
        }
        if start.elapsed() > timeout {
            return None;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
