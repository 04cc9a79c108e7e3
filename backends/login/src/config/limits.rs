//! How polling logins go, and how many logins may be under way.

use std::time::Duration;

use super::{
    problems::Problems,
    raw::{RawLimits, RawPolling},
};

/// Often enough to feel immediate, seldom enough for many clients.
const INTERVAL_SECONDS: u64 = 2;
/// A crowd that logs in within ten minutes; more is an attack or deserves a look.
const PENDING_PER_APPLICATION: u64 = 10_000;
/// A household, an office behind one address, or a test that means it.
const PENDING_PER_ADDRESS: u64 = 100;

/// How polling logins go.
#[derive(Clone, Copy, Debug)]
pub struct Polling {
    /// Whether the page asks the person to confirm; default yes. CONTRACT 8.
    pub confirm: bool,
    /// What clients are told to wait between two checks. 1 s to 60 s, default 2 s.
    pub interval: Duration,
}

impl Polling {
    pub(super) fn read(raw: RawPolling, problems: &mut Problems) -> Self {
        let interval = problems.within(
            "polling.interval_seconds",
            raw.interval_seconds,
            INTERVAL_SECONDS,
            1..=60,
        );
        Self {
            confirm: raw.confirm.unwrap_or(true),
            interval: Duration::from_secs(interval),
        }
    }
}

/// How many logins may be pending at once. CONTRACT 8.
#[derive(Clone, Copy, Debug)]
pub struct PendingBounds {
    /// Of one application, default 10,000.
    pub per_application: u64,
    /// Of one client address (IPv6: one /64), default 100.
    pub per_address: u64,
}

impl PendingBounds {
    pub(super) fn read(raw: RawLimits, problems: &mut Problems) -> Self {
        let mut bound = |key: &str, given, default| {
            problems.within(&format!("limits.{key}"), given, default, 1..=1_000_000)
        };
        Self {
            per_application: bound(
                "pending_per_application",
                raw.pending_per_application,
                PENDING_PER_APPLICATION,
            ),
            per_address: bound(
                "pending_per_address",
                raw.pending_per_address,
                PENDING_PER_ADDRESS,
            ),
        }
    }
}
