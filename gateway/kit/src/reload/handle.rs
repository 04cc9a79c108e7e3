//! Reloads for other parts of the same process.

use tokio::sync::{mpsc, oneshot, watch};

use super::Report;
use crate::config::{ConfigError, Settings};

/// Calls that are queued while another one runs; more wait for a place.
const MAX_QUEUED: usize = 1;

/// A call of a [`ReloadHandle`].
pub(super) struct Call {
    /// Otherwise it only compares.
    pub(super) is_reload: bool,
    pub(super) reply: oneshot::Sender<Result<Report, ConfigError>>,
}

/// Reloads and compares the configuration from within the process.
#[derive(Clone)]
pub struct ReloadHandle {
    calls: mpsc::Sender<Call>,
    running: watch::Receiver<Settings>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The files have problems, or could not be applied: nothing was changed.
    #[error(transparent)]
    Rejected(#[from] ConfigError),
    /// The program has handed over to a new process, or is about to end.
    #[error("this process no longer reloads: a new one has replaced it")]
    Ended,
}

impl ReloadHandle {
    /// A handle, and the calls of it and its clones.
    pub(super) fn new(running: watch::Receiver<Settings>) -> (Self, mpsc::Receiver<Call>) {
        let (calls, queue) = mpsc::channel(MAX_QUEUED);
        (Self { calls, running }, queue)
    }

    /// Reloads. A reload that has begun completes, even if the caller does not wait for it.
    ///
    /// # Errors
    ///
    /// Nothing was changed.
    pub async fn reload(&self) -> Result<Report, ReloadError> {
        self.call(true).await
    }

    /// What a reload would change.
    ///
    /// # Errors
    ///
    /// A reload would change nothing.
    pub async fn compare(&self) -> Result<Report, ReloadError> {
        self.call(false).await
    }

    /// The settings in effect. Must not be held while a reload is awaited.
    #[must_use]
    pub fn settings(&self) -> watch::Ref<'_, Settings> {
        self.running.borrow()
    }

    async fn call(&self, is_reload: bool) -> Result<Report, ReloadError> {
        let (reply, report) = oneshot::channel();
        let call = Call { is_reload, reply };
        let sent = self.calls.send(call).await;
        sent.map_err(|_| ReloadError::Ended)?;
        Ok(report.await.map_err(|_| ReloadError::Ended)??)
    }
}
