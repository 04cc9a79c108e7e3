//! The graceful shutdown, from the first signal to the end of the process.
//!
//! pingora's own shutdown always waits for a fixed time, even if no request is in flight.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use sd_notify::NotifyState;
use signpost_kit::{
    log::writer::LogWriter,
    server::{
        notify_service_manager,
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
#[derive(Clone)]
pub(crate) struct Stop {
    /// The gateway with the current configuration.
    current: Arc<ArcSwap<Gateway>>,
    /// Flushed before the process ends.
    log: LogWriter,
    /// Writes the last counts, once no request is left.
    usage: UsageFlush,
    /// Notified when the shutdown is complete; the receiver ends the process.
    end: Sender<()>,
    /// Notified when a new process has taken over the listening sockets.
    handed_over: Arc<Notify>,
}

/// What began the stop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// SIGTERM or SIGINT.
    Signal,
    /// A new process has taken over the listening sockets.
    HandOver,
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
        let cause = tokio::select! {
            () = signals.next() => Cause::Signal,
            () = self.handed_over.notified() => Cause::HandOver,
        };
        let mut second_signal = Box::pin(async move {
            if cause == Cause::HandOver {
                // Service managers send the signal that begins a stop to both processes of a hand-over.
                signals.next().await;
            }
            signals.next().await;
        });
        let gateway = self.current.load_full();
        let drain = &gateway.state.drain;
        drain.enter(Phase::Draining);
        let settings = gateway.policy.bounds.shutdown;
        let (drain_delay, grace) = match cause {
            Cause::Signal => (settings.drain_delay, settings.grace),
            Cause::HandOver => (HANDED_OVER_DRAIN_DELAY, settings.grace),
        };
        if cause == Cause::Signal {
            notify_service_manager(&[NotifyState::Stopping]);
        }
        tracing::info!(
            drain_delay_seconds = drain_delay.as_secs(),
            grace_seconds = grace.as_secs(),
            "stopping: new requests are served for the drain delay, then those in flight have the grace period"
        );
        tokio::select! {
            () = sleep(drain_delay) => {}
            () = &mut second_signal => self.end().await,
        }
        drain.enter(Phase::Closing);
        let (stop, drain) = (self.clone(), Arc::clone(drain));
        tokio::spawn(async move {
            let finished = async {
                finish(&drain, settings).await;
                stop.usage.flush().await;
            };
            tokio::select! {
                () = finished => {}
                () = second_signal => {}
            }
            stop.end().await;
        });
        ShutdownSignal::GracefulTerminate
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
    /// Also returns what receives a message when the process must end.
    pub(crate) fn new(
        current: Arc<ArcSwap<Gateway>>,
        log: LogWriter,
        usage: UsageFlush,
        handed_over: Arc<Notify>,
    ) -> (Self, Receiver<()>) {
        let (end, ended) = channel();
        let stop = Self {
            current,
            log,
            usage,
            end,
            handed_over,
        };
        (stop, ended)
    }

    /// Flushes the log and spans, and ends the process.
    async fn end(&self) {
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
