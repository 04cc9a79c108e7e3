//! The orderly stop, from the first signal to the end of the process.
//!
//! pingora's own way is a fixed wait, whether or not there is anything to wait for.

use std::sync::{Arc, mpsc::Sender};

use async_trait::async_trait;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use signpost_kit::{
    log_writer::LogWriter,
    shutdown::{Phase, ShutdownSettings, StopSignals},
};
use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    drain::{Drain, SETTLING},
    observe::access_log::AccessLog,
};

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
                let left = self.drain.in_flight();
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
        // The receiver ends the process.
        let _ = self.end.send(());
        std::future::pending().await
    }
}
