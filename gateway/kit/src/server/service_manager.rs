//! Tells the service manager what the process does: systemd's `sd_notify(3)`.

use sd_notify::{NotifyState, notify};

/// Tells systemd, if it asked for it with `Type=notify`.
pub fn notify_service_manager(states: &[NotifyState<'_>]) {
    // Without `NOTIFY_SOCKET` this does nothing.
    if let Err(cause) = notify(false, states) {
        tracing::warn!(%cause, "cannot notify systemd");
    }
}
