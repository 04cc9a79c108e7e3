//! The graceful shutdown, from the first signal to the end of the process.
//!
//! pingora's own shutdown always waits for a fixed time, even if no request is in flight.

use std::{
    sync::{Arc, mpsc::Sender},
    time::Duration,
};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use sd_notify::NotifyState;
use signpost_kit::{
    log::writer::LogWriter,
    server::{
        service_manager::notify_service_manager,
        shutdown::{Phase, ShutdownSettings, StopSignals},
    },
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    gateway::Gateway,
    observe::usage::writer::UsageFlush,
    request::drain::{Drain, SETTLE_TIME},
};

/// Shuts the gateway down on SIGTERM or SIGINT; a second signal ends it immediately.
pub(crate) struct Stop {
    /// The gateway with the current configuration.
    pub current: Arc<ArcSwap<Gateway>>,
    /// Flushed before the process ends.
    pub log: LogWriter,
    /// Writes the last counts, once no request is left.
    pub usage: UsageFlush,
    /// Notified when the shutdown is complete; the receiver ends the process.
    pub end: Sender<()>,
    /// Notified when a new process has taken over the listening sockets.
    pub handed_over: Arc<Notify>,
}

/// Drain delay of a process that has handed over: its open connections get `Connection: close` with their next response,
/// so that few are idle when idle ones are closed.
const HANDED_OVER_DRAIN_DELAY: Duration = Duration::from_secs(1);

#[async_trait]
impl ShutdownSignalWatch for Stop {
    /// Returns when pingora should close the listeners.
    async fn recv(&self) -> ShutdownSignal {
        let Ok(mut signals) = StopSignals::listen() else {
            // Without handlers, the signals end the process by default.
            return std::future::pending().await;
        };
        // The signal that begins the stop of a process that has handed over is a first one, too: service managers send it
        // to both processes.
        let is_handed_over = tokio::select! {
            () = signals.next() => false,
            () = self.handed_over.notified() => true,
        };
        let gateway = self.current.load_full();
        let drain = &gateway.state.drain;
        drain.enter(Phase::Draining);
        let settings = gateway.policy.bounds.shutdown;
        let ShutdownSettings {
            mut drain_delay,
            grace,
        } = settings;
        if is_handed_over {
            drain_delay = HANDED_OVER_DRAIN_DELAY;
        } else {
            notify_service_manager(&[NotifyState::Stopping]);
        }
        tracing::info!(
            drain_delay_seconds = drain_delay.as_secs(),
            grace_seconds = grace.as_secs(),
            "stopping: new requests are served for the drain delay, then those in flight have the grace period"
        );
        tokio::select! {
            () = sleep(drain_delay) => {}
            () = next_but(usize::from(is_handed_over), &mut signals) => self.end().await,
        }
        drain.enter(Phase::Closing);
        let drain = Arc::clone(drain);
        let stop = Self {
            current: Arc::clone(&self.current),
            log: self.log.clone(),
            usage: self.usage.clone(),
            end: self.end.clone(),
            handed_over: Arc::clone(&self.handed_over),
        };
        tokio::spawn(async move {
            let finished = async {
                finish(&drain, settings).await;
                stop.usage.flush().await;
            };
            tokio::select! {
                () = finished => {}
                () = next_but(usize::from(is_handed_over), &mut signals) => {}
            }
            stop.end().await;
        });
        ShutdownSignal::GracefulTerminate
    }
}

/// Waits for a signal, and ignores this number of signals before it.
async fn next_but(ignored: usize, signals: &mut StopSignals) {
    for _ in 0..=ignored {
        signals.next().await;
    }
}

/// Waits for the requests in flight, for at most the grace period.
async fn finish(drain: &Drain, settings: ShutdownSettings) {
    let closed_at = Instant::now();
    let all = async {
        sleep(SETTLE_TIME).await;
        drain.finished().await;
    };
    let give_up = async {
        sleep_until(closed_at + settings.wait_timeout()).await;
        drain.enter(Phase::GivingUp);
        sleep_until(closed_at + settings.grace).await;
    };
    tokio::select! {
        () = all => {}
        () = give_up => {
            tracing::warn!(
                requests = drain.in_flight(),
                grace_seconds = settings.grace.as_secs(),
                "aborted requests still in flight after the grace period"
            );
        }
    }
}

impl Stop {
    /// Flushes the logs and spans, and ends the process.
    async fn end(&self) {
        if let Some(access_log) = &self.current.load().state.records.access_log {
            access_log.flush();
        }
        if let Some(tracer) = self.current.load().policy.recording.tracer.clone() {
            // It blocks its thread, as does the log below: nothing is served any more.
            tracer.flush();
        }
        self.log.flush();
        // The receiver ends the process.
        let _ = self.end.send(());
        std::future::pending().await
    }
}
