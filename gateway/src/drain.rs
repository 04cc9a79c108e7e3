//! An orderly end: what is under way is finished first, within bounds.
//!
//! pingora's own way is a fixed wait, whether or not there is anything to wait for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::Sender,
    },
    time::Duration,
};

use async_trait::async_trait;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{Notify, watch},
};

use crate::phases::record::AccessLog;

/// Requests under way get so long to end; then they are cut off.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts requests, and tells everybody that the end has come.
#[derive(Debug)]
pub struct Drain {
    under_way: AtomicUsize,
    none_left: Notify,
    is_draining: watch::Sender<bool>,
}

/// A request under way, as long as this lives.
#[derive(Debug)]
pub struct UnderWay<'d>(&'d Drain);

impl Drain {
    /// Nothing is under way, and nothing ends.
    #[must_use]
    pub fn new() -> Self {
        let (is_draining, _) = watch::channel(false);
        Self {
            under_way: AtomicUsize::new(0),
            none_left: Notify::new(),
            is_draining,
        }
    }

    /// Begins a request.
    pub fn begin(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        UnderWay(self)
    }

    /// Whether the end has come: then no connection is kept for a next request.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        *self.is_draining.borrow()
    }

    async fn finished(&self) {
        let none_left = self.none_left.notified();
        tokio::pin!(none_left);
        // Registered before it is looked at, so that the last request cannot end unnoticed in between.
        none_left.as_mut().enable();
        if self.under_way.load(Ordering::SeqCst) > 0 {
            none_left.await;
        }
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let was_last = self.0.under_way.fetch_sub(1, Ordering::SeqCst) == 1;
        if was_last && self.0.is_draining() {
            self.0.none_left.notify_waiters();
        }
    }
}

/// SIGTERM and SIGINT: the first begins the end, a second does not wait for it.
#[derive(Debug)]
pub struct Signals {
    /// Told that the end has come, and waited for.
    pub drain: Arc<Drain>,
    /// Written to its end.
    pub access_log: Option<AccessLog>,
    /// Told when nothing is left to do.
    pub end: Sender<()>,
}

#[async_trait]
impl ShutdownSignalWatch for Signals {
    async fn recv(&self) -> ShutdownSignal {
        any_signal().await;
        tracing::info!("finishing what is under way");
        self.drain.is_draining.send_replace(true);
        tokio::select! {
            () = self.drain.finished() => {}
            () = any_signal() => {}
            () = tokio::time::sleep(PATIENCE) => {
                let left = self.drain.under_way.load(Ordering::SeqCst);
                tracing::warn!("{left} requests were still under way after {} s", PATIENCE.as_secs());
            }
        }
        if let Some(access_log) = &self.access_log {
            access_log.flush();
        }
        // Whoever is told ends the process.
        let _ = self.end.send(());
        std::future::pending().await
    }
}

async fn any_signal() {
    let (mut terminate, mut interrupt) = match (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        // Without handlers, signals end the process as they always do.
        _ => return std::future::pending().await,
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_waits_for_what_is_under_way() {
        let drain = Drain::new();
        drain.is_draining.send_replace(true);
        let one = drain.begin();
        let other = drain.begin();
        drop(one);
        assert!(
            tokio::time::timeout(Duration::from_millis(20), drain.finished())
                .await
                .is_err()
        );
        let end = drain.finished();
        tokio::pin!(end);
        assert!(
            tokio::time::timeout(Duration::ZERO, &mut end)
                .await
                .is_err()
        );
        drop(other);
        end.await;
    }

    #[tokio::test]
    async fn everybody_is_told_that_the_end_has_come() {
        let drain = Drain::new();
        assert!(!drain.is_draining());
        drain.is_draining.send_replace(true);
        assert!(drain.is_draining());
    }
}
