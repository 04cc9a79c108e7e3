//! Pauses accepting while file descriptors are short.

use std::{
    io,
    time::{Duration, Instant},
};

use signpost_kit::{log::once_a_minute::OnceAMinute, server::descriptors::Descriptors};
use tokio::{sync::Mutex, time::sleep};

/// How often a paused listener checks whether it can go on.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Pauses accepting while only the reserve of descriptors is left: for management, backends and the store.
///
/// New connections then wait in the kernel's backlog. The pause is logged once, and so is its end.
#[derive(Debug)]
pub(super) struct AcceptPause {
    descriptors: Descriptors,
    /// Locked by the thread that logs the pause, as long as it pauses.
    logging: Mutex<()>,
    pauses: OnceAMinute,
    failures: OnceAMinute,
}

impl AcceptPause {
    pub(super) const fn new(descriptors: Descriptors) -> Self {
        Self {
            descriptors,
            logging: Mutex::const_new(()),
            pauses: OnceAMinute::new(),
            failures: OnceAMinute::new(),
        }
    }

    /// Waits until a connection may be accepted.
    pub(super) async fn wait_for_room(&self) {
        if self.descriptors.has_room() {
            return;
        }
        // Every thread pauses by itself; one of them logs it. A listener that closes within a pause drops the lock.
        let logging = self.logging.try_lock().ok();
        let pauses = logging
            .as_ref()
            .and_then(|_| self.pauses.count(Instant::now()));
        if let Some(pauses) = pauses {
            let (limit, reserve) = (self.descriptors.limit, self.descriptors.reserve());
            tracing::warn!(
                pauses,
                limit,
                reserve,
                "accepting connections paused: out of file descriptors"
            );
        }
        while !self.descriptors.has_room() {
            sleep(CHECK_INTERVAL).await;
        }
        if pauses.is_some() {
            tracing::info!("accepting connections resumed");
        }
    }

    /// Notes a failed accept, and waits before the next one: its usual cause lasts.
    pub(super) async fn failed(&self, cause: &io::Error) {
        if let Some(times) = self.failures.count(Instant::now()) {
            tracing::warn!(times, %cause, "cannot accept connections");
        }
        sleep(CHECK_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_listener_that_closes_within_a_pause_ends_it() {
        // All of it is the reserve.
        let pause = AcceptPause::new(Descriptors { limit: 32 });
        for _ in 0..2 {
            assert!(pause.wait_for_room().now_or_never().is_none());
        }
        // The first pause was logged at once. The second counts for the next line, and so does this one.
        let next_line = Instant::now() + Duration::from_secs(60);
        assert_eq!(pause.pauses.count(next_line), Some(2));
    }
}
