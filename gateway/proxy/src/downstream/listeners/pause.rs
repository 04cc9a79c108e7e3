//! Pauses accepting while file descriptors are short.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use signpost_kit::{log::once_a_minute::OnceAMinute, server::descriptors::Descriptors};
use tokio::time::sleep;

/// How often a paused listener checks whether it can go on.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Pauses accepting while only the reserve of descriptors is left: for management, backends and the store.
///
/// New connections then wait in the kernel's backlog. The pause is logged once, and so is its end.
#[derive(Debug)]
pub(super) struct AcceptPause {
    descriptors: Descriptors,
    paused: AtomicUsize,
    pauses: OnceAMinute,
    failures: OnceAMinute,
}

impl AcceptPause {
    pub(super) const fn new(descriptors: Descriptors) -> Self {
        Self {
            descriptors,
            paused: AtomicUsize::new(0),
            pauses: OnceAMinute::new(),
            failures: OnceAMinute::new(),
        }
    }

    /// Waits until a connection may be accepted.
    pub(super) async fn wait_for_room(&self) {
        if self.descriptors.has_room() {
            return;
        }
        // Every thread pauses by itself; one of them logs it.
        let is_first = self.paused.fetch_add(1, Ordering::Relaxed) == 0;
        let pauses = is_first
            .then(|| self.pauses.count(Instant::now()))
            .flatten();
        if let Some(pauses) = pauses {
            let (limit, reserve) = (self.descriptors.limit(), self.descriptors.reserve());
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
        self.paused.fetch_sub(1, Ordering::Relaxed);
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
