//! How polling logins go, and how much callers can start.

use std::time::Duration;

use signpost_kit::rate_limit::Rate;

use super::{
    problems::Problems,
    raw::{RawLimits, RawPolling},
};

/// Often enough to feel immediate, seldom enough for many clients.
const INTERVAL_SECONDS: u64 = 2;
/// Polling logins of one application: a busy game's evening. Rows last `login_ttl` and an hour.
const STARTS_PER_SECOND: u64 = 100;
const STARTS_BURST: u64 = 1_000;
/// Callbacks of one address: an office of a thousand people that comes to work within ten minutes.
const CALLBACKS_PER_SECOND: u64 = 2;
const CALLBACKS_BURST: u64 = 200;
/// Calls to providers in flight. A healthy provider answers within half a second: some 500 logins a second.
const PROVIDER_CALLS: u64 = 256;

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

/// How much callers can start. Each process counts by itself. CONTRACT 8.
#[derive(Clone, Copy, Debug)]
pub struct LoginLimits {
    /// Polling logins that one application begins; default 100 a second, 1,000 at once.
    pub starts: Rate,
    /// Callbacks of one client address (IPv6: one /64; a /48 may do four times as much) that ask a provider; default 2 a
    /// second, 200 at once.
    pub callbacks: Rate,
    /// Calls to providers in flight, 1 to 10,000, default 256. One client address (IPv6: one /48) has an eighth at most.
    pub provider_calls: usize,
}

impl LoginLimits {
    pub(super) fn read(raw: &RawLimits, problems: &mut Problems) -> Self {
        let mut number = |key: &str, given, default, most| {
            let number = problems.within(&format!("limits.{key}"), given, default, 1..=most);
            u32::try_from(number).unwrap_or(u32::MAX)
        };
        let mut rate = |name: &str, (per_second, burst), (usual, usual_burst): (u64, u64)| {
            let per_second = number(&format!("{name}_per_second"), per_second, usual, 100_000);
            let burst = number(&format!("{name}_burst"), burst, usual_burst, 1_000_000);
            Rate::new(per_second, burst).expect("the ranges begin with 1")
        };
        Self {
            starts: rate(
                "starts",
                (raw.starts_per_second, raw.starts_burst),
                (STARTS_PER_SECOND, STARTS_BURST),
            ),
            callbacks: rate(
                "callbacks",
                (raw.callbacks_per_second, raw.callbacks_burst),
                (CALLBACKS_PER_SECOND, CALLBACKS_BURST),
            ),
            provider_calls: number("provider_calls", raw.provider_calls, PROVIDER_CALLS, 10_000)
                as usize,
        }
    }
}
