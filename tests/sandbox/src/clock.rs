//! The provider's own time. It has none of Signpost's crates, since it stands in for a foreign program.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since the epoch.
#[expect(
    clippy::disallowed_methods,
    reason = "the only place of this program that reads the system clock"
)]
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
