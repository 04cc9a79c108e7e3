//! The graceful shutdown, from the first signal to the end of the process.
//!
//! pingora's own shutdown always waits for a fixed time, even if no request is in flight.

use std::{
    future::pending,
    net::SocketAddr,
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
        backlog::LAST_ACCEPTS,
        notify_service_manager,
        shutdown::{LastWrite, Phase, ShutdownSettings},
        signals::StopSignals,
    },
};
use signpost_proxy::{
    Gateway,
    program::{ListeningSockets, State},
};
use tokio::{
    runtime::Builder,
    sync::{Mutex, Notify, watch},
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::process::{listeners::Listeners, presence::OwnRow};

/// Shuts the gateway down on SIGTERM or SIGINT; a second signal ends it immediately.
#[derive(Clone)]
pub(crate) struct Stop {
    /// The gateway with the current configuration.
    current: Arc<ArcSwap<Gateway>>,
    /// No new connections are begun just before these are closed.
    sockets: Arc<ListeningSockets>,
    /// The management listener's address. It serves until the process ends.
    management: SocketAddr,
    /// The management listener's phase: after a hand-over it closes. Its receivers are dropped with its last connection.
    management_phase: watch::Sender<Phase>,
    /// Flushed before the process ends.
    log: LogWriter,
    /// Made once no request is left.
    last_writes: LastWrites,
    /// Deleted then.
    row: Option<Arc<OwnRow>>,
    /// Notified when the shutdown is complete; the receiver ends the process.
    end: Sender<()>,
    /// Notified when a new process has taken over the listening sockets.
    handed_over: Arc<Notify>,
    /// Taken by the wait for the first one.
    signals: Arc<Mutex<Option<StopSignals>>>,
}

/// What is written every few seconds, and once more at a stop.
#[derive(Clone, Debug)]
pub(crate) struct LastWrites {
    /// The counts of requests.
    pub usage: LastWrite,
    /// The snapshot of the applications. A process that has handed over leaves it to the new one.
    pub snapshot: LastWrite,
}

/// How long idle connections stay open after the listeners closed, at most as long as the drain delay. A balancer that
/// checks by connecting has then noticed, and uses none of them any more: conf/front/haproxy.cfg checks twice in 2 s.
const MAX_IDLE_DELAY: Duration = Duration::from_secs(3);
/// Drain delay of a process that has handed over: what its listeners had accepted begins.
const HANDED_OVER_DRAIN_DELAY: Duration = Duration::from_secs(1);
/// Limit of a process that has handed over. Its requests end by their own timeouts, except for responses without end.
const HANDED_OVER_LIMIT: Duration = Duration::from_secs(3600);
/// Limit of the wait for connections of its management listener.
const MANAGEMENT_LIMIT: Duration = Duration::from_secs(60);
/// How often a stop checks whether connections are open.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

#[async_trait]
impl ShutdownSignalWatch for Stop {
    /// Never returns: when it would, pingora would only wait.
    async fn recv(&self) -> ShutdownSignal {
        let signals = self.signals.lock().await.take();
        if let Some(mut signals) = signals {
            tokio::select! {
                // With both, the new process serves.
                biased;
                () = self.handed_over.notified() => self.leave(signals).await,
                () = signals.next() => self.stop(signals).await,
            }
            self.end().await;
        }
        pending().await
    }
}

impl Stop {
    /// Whether no new process has taken over the listening sockets.
    fn serves_alone(&self) -> bool {
        *self.management_phase.borrow() == Phase::Serving
    }

    /// After a signal: drains, closes listeners and then idle connections, and waits for the requests in flight.
    async fn stop(&self, mut signals: StopSignals) {
        let gateway = self.current.load_full();
        let ShutdownSettings { drain_delay, grace } = gateway.policy.bounds.shutdown;
        gateway.state.drain.enter(Phase::Draining);
        notify_service_manager(&[NotifyState::Stopping]);
        tracing::info!(
            drain_delay_seconds = drain_delay.as_secs(),
            grace_seconds = grace.as_secs(),
            "stopping: new requests are served for the drain delay, then those in flight have the grace period"
        );
        let stopped = async {
            sleep(drain_delay).await;
            if self.serves_alone() {
                // Closing a socket resets the connections in its backlog, with requests that clients may have sent. So
                // the kernel begins no more of them, and the workers accept what is left. After a hand-over this is not
                // done: the filter would also hold connections of the new process, which has the same sockets.
                self.sockets.hold(self.management);
                sleep(LAST_ACCEPTS).await;
            }
            let idle_delay = drain_delay.min(MAX_IDLE_DELAY);
            self.finish(&gateway.state, idle_delay, gateway.policy.bounds.shutdown)
                .await;
            if self.serves_alone() && !self.last_writes.snapshot.is_written().await {
                tracing::warn!(
                    "the snapshot of the applications may lack the last changes: it was not written"
                );
            }
        };
        tokio::select! {
            () = stopped => {}
            // A second signal drops the wait and its requests: the operator does not want to wait.
            () = signals.next() => {}
        }
    }

    /// After a new process took over the listening sockets: nothing hurries. Idle connections stay open for as long as
    /// usual, and requests end by their own timeouts.
    async fn leave(&self, mut signals: StopSignals) {
        let gateway = self.current.load_full();
        let bounds = &gateway.policy.bounds;
        tracing::info!(
            idle_seconds = bounds.timeouts.idle.as_secs(),
            "stopping: a new process serves; this one waits for its requests and for idle connections"
        );
        gateway.state.drain.enter(Phase::Draining);
        let left = async {
            sleep(HANDED_OVER_DRAIN_DELAY).await;
            let unhurried = ShutdownSettings {
                grace: HANDED_OVER_LIMIT,
                ..bounds.shutdown
            };
            self.finish(&gateway.state, bounds.timeouts.idle, unhurried)
                .await;
            // What that listener accepted before has its own timeouts.
            let _ = timeout(MANAGEMENT_LIMIT, self.management_phase.closed()).await;
        };
        tokio::select! {
            () = left => {}
            // Service managers send the signal that begins a stop to both processes.
            () = signals.next() => self.stop(signals).await,
        }
    }

    /// Closes the listeners, after `idle_delay` the idle connections, and waits for the requests in flight, for at most the
    /// grace period.
    async fn finish(&self, state: &State, idle_delay: Duration, settings: ShutdownSettings) {
        let (drain, closed_at) = (&state.drain, Instant::now());
        drain.close(idle_delay);
        let all = async {
            let idle_until = closed_at + drain.idle_delay();
            // Connections of the backlog are accepted meanwhile.
            sleep(CHECK_INTERVAL).await;
            // Idle connections come first: while they are open a client can begin a request on one, so that a count of
            // 0 says nothing. They are not in flight, so only the count of open connections shows them.
            while Instant::now() < idle_until && state.open_connections.are_open() {
                sleep(CHECK_INTERVAL).await;
            }
            drain.finished().await;
        };
        let give_up = async {
            sleep_until(closed_at + settings.wait_timeout()).await;
            tracing::warn!(
                requests = drain.in_flight(),
                grace_seconds = settings.grace.as_secs(),
                "cutting off requests still in flight at the end of the grace period"
            );
            // Each request that still waits gets 504 `gateway_stopping`; the rest of the grace period is for these
            // responses.
            drain.enter(Phase::GivingUp);
            // Not by the clock of the stop: after a pause of the machine, the responses would have no time.
            sleep(settings.grace - settings.wait_timeout()).await;
        };
        tokio::select! {
            () = all => {}
            () = give_up => {}
        }
        // After the last request, so that it is counted.
        if !self.last_writes.usage.is_written().await {
            tracing::warn!(
                "the last counts of requests may be missing in signpost versions report: the store did not answer in time"
            );
        }
        // The row goes last: until here operators see that this process still finishes requests.
        if let Some(row) = &self.row {
            row.remove().await;
        }
    }

    /// Also returns what receives a message when the process must end. From here on a signal begins a stop: connections are
    /// served before pingora asks for one.
    ///
    /// # Errors
    ///
    /// The system does not allow handlers of signals.
    pub(crate) fn new(
        current: Arc<ArcSwap<Gateway>>,
        listeners: &Listeners,
        log: LogWriter,
        last_writes: LastWrites,
        row: Option<Arc<OwnRow>>,
        handed_over: Arc<Notify>,
        management_phase: watch::Sender<Phase>,
    ) -> anyhow::Result<(Self, Receiver<()>)> {
        let (end, ended) = channel();
        // Any runtime may register a handler, and every other one then delivers the signal.
        let registering = Builder::new_current_thread().enable_io().build()?;
        let signals = {
            let _entered = registering.enter();
            StopSignals::listen()?
        };
        let stop = Self {
            current,
            sockets: listeners.sockets(),
            management: listeners.management,
            management_phase,
            log,
            last_writes,
            row,
            end,
            handed_over,
            signals: Arc::new(Mutex::new(Some(signals))),
        };
        Ok((stop, ended))
    }

    /// Flushes the log and spans, and ends the process.
    async fn end(&self) {
        // Spans before the log: the exporter logs what the collector did not take.
        if let Some(tracer) = self.current.load().policy.recording.tracer.clone() {
            // It blocks its thread, as does the log below: nothing is served any more.
            tracer.flush();
        }
        self.log.flush();
        // The receiver ends the process.
        let _ = self.end.send(());
        pending().await
    }
}
