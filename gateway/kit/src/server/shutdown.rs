//! Graceful shutdown: its phases. [Signals](super::signals) begin it.
//!
//! On the first SIGTERM or SIGINT the program drains: for the drain delay `/readyz` answers 503, and new requests are
//! still served. Then listeners and idle connections are closed, and requests in flight may finish within the grace
//! period. A second signal ends the program immediately.

use std::time::Duration;

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

/// Requests that wait for another server give up this long before the end of the grace period, so that there is time to
/// store the outcome and to send the response. Three quarters of a short grace period.
const WAIT_MARGIN: Duration = Duration::from_secs(2);

/// Time for connections that were accepted just before a stop to send their first request.
pub const SETTLE_TIME: Duration = Duration::from_millis(50);

/// Limit of a stop's wait for a task that writes.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Has a task that writes every few seconds write once more, at a stop.
#[derive(Clone, Debug)]
pub struct LastWrite(mpsc::Sender<oneshot::Sender<()>>);

/// What that task receives. It sends a message back once it has written, and drops the sender if it cannot.
pub type WriteRequests = mpsc::Receiver<oneshot::Sender<()>>;

impl LastWrite {
    /// For a task that gets the second; if that is dropped or closed, there is nothing to write.
    #[must_use]
    pub fn new() -> (Self, WriteRequests) {
        let (sender, requests) = mpsc::channel(1);
        (Self(sender), requests)
    }

    /// Waits until the task has written, for 5 s at most; whether it has.
    pub async fn is_written(&self) -> bool {
        let written = async {
            let (done, written) = oneshot::channel();
            self.0.send(done).await.is_err() || written.await.is_ok()
        };
        timeout(WRITE_TIMEOUT, written).await.unwrap_or(false)
    }
}

/// The times of a graceful shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownSettings {
    /// Drain delay: from the signal until the listeners are closed. Default 5 s.
    pub drain_delay: Duration,
    /// Grace period for requests in flight, from then on. Default 65 s.
    pub grace: Duration,
}

impl ShutdownSettings {
    /// Part of the grace period after which waiting requests give up: all of it but 2 s.
    #[must_use]
    pub fn wait_timeout(&self) -> Duration {
        self.grace - WAIT_MARGIN.min(self.grace / 4 * 3)
    }
}

impl Default for ShutdownSettings {
    fn default() -> Self {
        Self {
            // Balancers notice within a few checks, and connections in use close with their next response.
            drain_delay: Duration::from_secs(5),
            // A gateway waits 60 s for a backend. `/check` waits 30 s, a login 9.5 s for its provider.
            grace: Duration::from_secs(65),
        }
    }
}

/// A phase of the shutdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// No shutdown has begun.
    #[default]
    Serving,
    /// New requests are served, and their connections closed.
    Draining,
    /// No new requests are accepted. Requests in flight may finish.
    Closing,
    /// The grace period is almost over: waiting requests give up now.
    GivingUp,
}

/// Waits until the shutdown reaches a phase, or a later one.
pub async fn wait_for_phase(phases: &watch::Sender<Phase>, phase: Phase) {
    // Fails only if the sender was dropped, which this borrow rules out.
    let _ = phases.subscribe().wait_for(|now| *now >= phase).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_requests_give_up_before_the_grace_period_ends() {
        for (grace, timeout) in [(10, 8000), (5, 3000), (2, 500), (1, 250)] {
            let settings = ShutdownSettings {
                grace: Duration::from_secs(grace),
                ..ShutdownSettings::default()
            };
            assert_eq!(settings.wait_timeout(), Duration::from_millis(timeout));
        }
    }

    #[tokio::test]
    async fn only_what_was_written_counts_as_written() {
        let (last, mut requests) = LastWrite::new();
        for sends in [true, false] {
            let task = async {
                let done = requests.recv().await.unwrap();
                if sends {
                    done.send(()).unwrap();
                }
            };
            let (is_written, ()) = tokio::join!(last.is_written(), task);
            assert_eq!(is_written, sends);
        }
        requests.close();
        assert!(last.is_written().await, "there is nothing to write");
    }

    #[tokio::test]
    async fn a_later_phase_also_ends_the_wait() {
        let phases = watch::Sender::new(Phase::Serving);
        let closing = wait_for_phase(&phases, Phase::Closing);
        tokio::pin!(closing);
        phases.send_replace(Phase::Draining);
        let waited = timeout(Duration::from_millis(20), &mut closing).await;
        assert!(waited.is_err());
        phases.send_replace(Phase::GivingUp);
        closing.await;
    }
}
