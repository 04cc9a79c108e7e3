//! An orderly stop: what is in flight is finished first, within bounds.
//!
//! pingora's own way is a fixed wait, whether or not there is anything to wait for.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::Sender,
    },
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use signpost_process::{
    log_writer::LogWriter,
    shutdown::{Phase, ShutdownSettings, StopSignals},
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, Sleep, sleep, sleep_until},
};

use crate::phases::record::AccessLog;

/// Connections that were accepted last have so long to begin their request.
const SETTLING: Duration = Duration::from_millis(50);
/// How often a request that waits for its backend looks whether the grace is over.
const GIVE_UP_INTERVAL: Duration = Duration::from_millis(500);

/// Counts requests in flight, and knows how far a stop has come.
#[derive(Debug)]
pub struct Drain {
    in_flight: AtomicUsize,
    none_left: Notify,
    phase: watch::Sender<Phase>,
    closing: Notify,
}

/// A request in flight, as long as this lives.
#[derive(Debug)]
pub struct InFlight<'d>(&'d Drain);

impl Drain {
    /// Nothing is in flight, and no stop has begun.
    #[must_use]
    pub fn new() -> Self {
        Self {
            in_flight: AtomicUsize::new(0),
            none_left: Notify::new(),
            phase: watch::Sender::new(Phase::Serving),
            closing: Notify::new(),
        }
    }

    /// Begins a request.
    pub fn begin(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        InFlight(self)
    }

    /// Whether a stop has begun: then the gateway is not ready any more, and keeps no connection for a next request.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.has_reached(Phase::Draining)
    }

    /// Whether the grace is almost over: then requests give up that still wait for their backends.
    #[must_use]
    pub fn is_giving_up(&self) -> bool {
        self.has_reached(Phase::GivingUp)
    }

    /// Waits until idle connections are to be closed.
    pub async fn closing(&self) {
        // Made before the phase is looked at, so that a stop in between does not go unnoticed.
        let closing = self.closing.notified();
        if !self.has_reached(Phase::Closing) {
            closing.await;
        }
    }

    fn has_reached(&self, phase: Phase) -> bool {
        *self.phase.borrow() >= phase
    }

    fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
        if phase >= Phase::Closing {
            self.closing.notify_waiters();
        }
    }

    async fn finished(&self) {
        let none_left = self.none_left.notified();
        tokio::pin!(none_left);
        // Registered before it is looked at, so that the last request cannot end unnoticed in between.
        none_left.as_mut().enable();
        if self.in_flight.load(Ordering::SeqCst) > 0 {
            none_left.await;
        }
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let was_last = self.0.in_flight.fetch_sub(1, Ordering::SeqCst) == 1;
        if was_last && self.0.is_draining() {
            self.0.none_left.notify_waiters();
        }
    }
}

/// Ends waiting for a backend when the grace of a stop is almost over, so that the client still gets an answer.
#[derive(Debug)]
pub struct GiveUp {
    drain: Arc<Drain>,
    /// Made when something is first waited for. It runs on from wait to wait, so that most cost nothing.
    next_look: Option<Pin<Box<Sleep>>>,
}

impl GiveUp {
    /// For one connection.
    #[must_use]
    pub const fn new(drain: Arc<Drain>) -> Self {
        Self {
            drain,
            next_look: None,
        }
    }

    /// A read that is pending, or an error once the grace is almost over.
    pub fn watch(
        &mut self,
        context: &mut Context<'_>,
        pending: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let next_look = self
            .next_look
            .get_or_insert_with(|| Box::pin(sleep(GIVE_UP_INTERVAL)));
        while next_look.as_mut().poll(context).is_ready() {
            if self.drain.is_giving_up() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            next_look.as_mut().reset(Instant::now() + GIVE_UP_INTERVAL);
        }
        pending
    }
}

/// Stops the gateway on SIGTERM or SIGINT; a second signal ends it at once.
#[derive(Debug)]
pub struct Stop {
    /// How long it takes.
    pub settings: ShutdownSettings,
    /// Told how far the stop has come, and waited for.
    pub drain: Arc<Drain>,
    /// Written to its end.
    pub access_log: Option<AccessLog>,
    /// Written to its end.
    pub log: LogWriter,
    /// Told when nothing is left to do.
    pub end: Sender<()>,
}

#[async_trait]
impl ShutdownSignalWatch for Stop {
    /// Returns when pingora is to close the listeners.
    async fn recv(&self) -> ShutdownSignal {
        let Ok(mut signals) = StopSignals::listen() else {
            // Without handlers, signals end the process as they always do.
            return std::future::pending().await;
        };
        signals.next().await;
        self.drain.enter(Phase::Draining);
        let ShutdownSettings { drain_delay, grace } = self.settings;
        tracing::info!(
            "stopping: new requests are served for another {} s, then those in flight have {} s",
            drain_delay.as_secs(),
            grace.as_secs()
        );
        tokio::select! {
            () = sleep(drain_delay) => {}
            () = signals.next() => self.end().await,
        }
        self.drain.enter(Phase::Closing);
        let stop = Self {
            settings: self.settings,
            drain: Arc::clone(&self.drain),
            access_log: self.access_log.clone(),
            log: self.log.clone(),
            end: self.end.clone(),
        };
        tokio::spawn(async move {
            tokio::select! {
                () = stop.finish() => {}
                () = signals.next() => {}
            }
            stop.end().await;
        });
        ShutdownSignal::GracefulTerminate
    }
}

impl Stop {
    /// Waits for the requests in flight, as long as the grace lasts.
    async fn finish(&self) {
        let closed_at = Instant::now();
        let all = async {
            sleep(SETTLING).await;
            self.drain.finished().await;
        };
        let give_up = async {
            sleep_until(closed_at + self.settings.patience()).await;
            self.drain.enter(Phase::GivingUp);
            sleep_until(closed_at + self.settings.grace).await;
        };
        tokio::select! {
            () = all => {}
            () = give_up => {
                let left = self.drain.in_flight.load(Ordering::SeqCst);
                let grace = self.settings.grace.as_secs();
                tracing::warn!("{left} requests were still in flight after {grace} s, and are cut off");
            }
        }
    }

    /// Ends the process.
    async fn end(&self) {
        if let Some(access_log) = &self.access_log {
            access_log.flush();
        }
        self.log.flush();
        // Whoever is told ends the process.
        let _ = self.end.send(());
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn the_end_waits_for_what_is_in_flight() {
        let drain = Drain::new();
        drain.enter(Phase::Closing);
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
    async fn idle_connections_are_kept_while_it_drains() {
        let drain = Drain::new();
        assert!(!drain.is_draining());
        let closing = drain.closing();
        tokio::pin!(closing);
        drain.enter(Phase::Draining);
        assert!(drain.is_draining());
        let waited = tokio::time::timeout(Duration::from_millis(20), &mut closing).await;
        assert!(waited.is_err());
        drain.enter(Phase::Closing);
        closing.await;
        drain.closing().await;
    }

    #[tokio::test]
    async fn what_waits_gives_up_before_the_grace_is_over() {
        let drain = Arc::new(Drain::new());
        let mut give_up = GiveUp::new(Arc::clone(&drain));
        let mut wait = async |limit| {
            let waited = poll_fn(|context| give_up.watch(context, Poll::Pending));
            tokio::time::timeout(limit, waited).await
        };
        assert!(wait(2 * GIVE_UP_INTERVAL).await.is_err());
        drain.enter(Phase::GivingUp);
        let ended = wait(20 * GIVE_UP_INTERVAL).await.unwrap().unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
    }
}
