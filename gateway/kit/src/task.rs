//! Tasks that a program repeats on the store, beside its requests: one loop, and one rule for the log.
//!
//! While a task fails, the log says so once a minute, and once that it succeeds again.

use std::{
    future::pending,
    time::{Duration, Instant},
};

use signpost_store::StoreError;
use tokio::time::sleep;

use crate::log::once_a_minute::OnceAMinute;

/// What a turn reports: whether it called the store and got a response. `false` says nothing about the store.
pub type Outcome = Result<bool, StoreError>;

/// The log of a repeated task.
#[derive(Debug)]
pub struct Task {
    failing: &'static str,
    succeeding: Option<&'static str>,
    failures: OnceAMinute,
    is_failing: bool,
}

impl Task {
    /// A task with warnings: what the log says when it fails, and when it succeeds again.
    #[must_use]
    pub const fn new(failing: &'static str, succeeding: &'static str) -> Self {
        Self {
            succeeding: Some(succeeding),
            ..Self::quiet(failing)
        }
    }

    /// A task whose failures are logged at `debug`: the change feed already warns of a store that does not answer.
    #[must_use]
    pub const fn quiet(failing: &'static str) -> Self {
        Self {
            failing,
            succeeding: None,
            failures: OnceAMinute::new(),
            is_failing: false,
        }
    }

    /// Repeats `turn` until the process ends. Each turn returns its outcome, and the pause until the next.
    pub async fn run<F: Future<Output = (Outcome, Duration)>>(self, turn: impl FnMut() -> F) {
        self.run_until(pending(), turn).await;
    }

    /// As [`run`](Self::run) until `stop`, which is noticed between two turns: none is cut off.
    pub async fn run_until<F: Future<Output = (Outcome, Duration)>>(
        mut self,
        stop: impl Future<Output = ()>,
        mut turn: impl FnMut() -> F,
    ) {
        tokio::pin!(stop);
        loop {
            let (outcome, pause) = turn().await;
            self.log(outcome);
            tokio::select! {
                () = sleep(pause) => {}
                () = &mut stop => return,
            }
        }
    }

    /// Logs an outcome, for a task with a loop of its own.
    pub fn log(&mut self, outcome: Outcome) {
        match (outcome, self.succeeding) {
            (Err(error), None) => tracing::debug!(cause = %error.in_short(), "{}", self.failing),
            // An unlogged failure does not set `is_failing`: no line reports the end of what none has reported.
            (Err(error), Some(_)) if self.failures.count(Instant::now()).is_some() => {
                self.is_failing = true;
                let cause = anyhow::Error::new(error);
                tracing::warn!(cause = %format_args!("{cause:#}"), "{}", self.failing);
            }
            (Ok(true), Some(succeeding)) if std::mem::take(&mut self.is_failing) => {
                tracing::info!("{succeeding}");
            }
            _ => {}
        }
    }
}
