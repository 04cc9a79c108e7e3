//! What a program needs to serve: a listener and its last connections, the one for operators, its health, its stop, and its open files.

pub mod backlog;
pub mod descriptors;
pub mod health;
pub mod listener;
#[cfg(feature = "operators")]
pub mod management;
pub mod shutdown;
pub mod signals;
pub mod socket;

use sd_notify::{NotifyState, notify};

/// Tells systemd what the process does (`sd_notify(3)`), if it asked for it with `Type=notify`.
pub fn notify_service_manager(states: &[NotifyState<'_>]) {
    // Without `NOTIFY_SOCKET` this does nothing.
    if let Err(cause) = notify(states) {
        tracing::warn!(%cause, "cannot notify systemd");
    }
}
