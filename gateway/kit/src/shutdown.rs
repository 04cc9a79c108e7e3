//! The phases of an orderly stop, and the signals that begin it.
//!
//! On the first SIGTERM or SIGINT the program drains: `/readyz` answers 503 and new work is still served, for the drain
//! delay. Then it closes: listeners and idle connections are closed, and what is in flight has the grace to end. A second
//! signal ends the program at once.

use std::{future::pending, io, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

/// Default of `shutdown.drain_delay_seconds`: nobody needs to notice the stop of a program that is alone.
pub const DRAIN_DELAY_SECONDS: u32 = 0;
/// Most of `shutdown.drain_delay_seconds`.
pub const MAX_DRAIN_DELAY_SECONDS: u32 = 300;
/// Default of `shutdown.grace_seconds`: a login that is being finished waits for its provider for up to 9.5 s.
pub const GRACE_SECONDS: u32 = 10;
/// Most of `shutdown.grace_seconds`.
pub const MAX_GRACE_SECONDS: u32 = 300;

/// Requests that still wait for somebody else give up this long before the end of the grace, so that their answers
/// and what the store is told of them still fit; three quarters of a short grace.
const MARGIN: Duration = Duration::from_secs(2);

/// How long a stop takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownSettings {
    /// From the signal to the closing of listeners. Default 0 s.
    pub drain_delay: Duration,
    /// From there to the end, for what is in flight. Default 10 s.
    pub grace: Duration,
}

impl ShutdownSettings {
    /// The part of the grace after which requests that still wait give up: all of it but 2 s.
    #[must_use]
    pub fn wait_timeout(&self) -> Duration {
        self.grace - MARGIN.min(self.grace / 4 * 3)
    }
}

impl Default for ShutdownSettings {
    fn default() -> Self {
        Self {
            drain_delay: Duration::from_secs(DRAIN_DELAY_SECONDS.into()),
            grace: Duration::from_secs(GRACE_SECONDS.into()),
        }
    }
}

/// How far a stop has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// No stop has begun.
    #[default]
    Serving,
    /// New work is served, but is asked to go elsewhere next time.
    Draining,
    /// Nothing new is accepted. What is in flight may end.
    Closing,
    /// The grace is almost over: what still waits gives up now.
    GivingUp,
}

/// Waits until a stop has come to a phase, or beyond.
pub async fn wait_for_phase(phases: &watch::Sender<Phase>, phase: Phase) {
    // An error would mean that the sender is gone, which this borrow rules out.
    let _ = phases.subscribe().wait_for(|now| *now >= phase).await;
}

/// SIGTERM and SIGINT.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Takes both signals over; from here on they end the process no more.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next of either.
    pub async fn next(&mut self) {
        let received = tokio::select! {
            received = self.terminate.recv() => received,
            received = self.interrupt.recv() => received,
        };
        if received.is_none() {
            pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_requests_give_up_before_the_grace_is_over() {
        for (grace, patience) in [(10, 8000), (5, 3000), (2, 500), (1, 250)] {
            let settings = ShutdownSettings {
                grace: Duration::from_secs(grace),
                ..ShutdownSettings::default()
            };
            assert_eq!(settings.wait_timeout(), Duration::from_millis(patience));
        }
    }

    #[tokio::test]
    async fn a_phase_is_reached_by_those_behind_it_too() {
        let phases = watch::Sender::new(Phase::Serving);
        let closing = wait_for_phase(&phases, Phase::Closing);
        tokio::pin!(closing);
        phases.send_replace(Phase::Draining);
        let waited = tokio::time::timeout(Duration::from_millis(20), &mut closing).await;
        assert!(waited.is_err());
        phases.send_replace(Phase::GivingUp);
        closing.await;
    }
}
