//! Rate limits by key, in fixed memory: the generic cell rate algorithm (GCRA).
//!
//! Each event adds one interval of the rate to its key's debt; time pays the debt off. An event that would raise the
//! debt above the burst is rejected. Per key one number is stored: the time at which its debt is paid.
//!
//! Memory is fixed: [`TRACKED_KEYS`] keys, 1.1 MB, allocated at the start. A key whose debt is paid need not be stored.
//! If more keys than that are in debt at once, a new key evicts the one with the least debt among the eight of its set,
//! and that debt is forgiven. So no key is rejected because of the number of other keys, and the keys that send most
//! stay longest.
//!
//! [`RateLimiter`] has one rate for all keys, [`NetworkLimiter`] one for networks of clients, [`KeyedDebts`] one for each
//! event; the debts of the last can be shared between processes.
//!
//! Rates can change while the debts stay: a limiter with other rates shares the debts of the one it was created from.

mod debts;
mod keyed;
mod network;

use std::{
    hash::Hash,
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use self::debts::{Debts, Pace};
pub use self::{
    keyed::{Key, KeyedDebts, Subject, Used},
    network::{Network, NetworkLimiter},
};

/// Number of keys with a debt that are tracked at the same time.
pub const TRACKED_KEYS: usize = SETS * WAYS;
/// Number of sets, each with its own lock. A key's set depends on a hash with a secret of this process, so that no
/// client can target a set.
const SETS: usize = 8192;
/// Number of slots in a set.
const WAYS: usize = 8;

/// An allowed rate of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Sustained rate, in events per second.
    pub per_second: NonZeroU32,
    /// Events allowed at once, after a pause long enough to pay off all debt.
    pub burst: NonZeroU32,
}

impl Rate {
    /// Creates a rate; `None` if a number is 0.
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> Option<Self> {
        Some(Self {
            per_second: NonZeroU32::new(per_second)?,
            burst: NonZeroU32::new(burst)?,
        })
    }

    /// A rate and burst `factor` times as high.
    #[must_use]
    pub fn times(self, factor: NonZeroU32) -> Self {
        Self {
            per_second: self.per_second.saturating_mul(factor),
            burst: self.burst.saturating_mul(factor),
        }
    }
}

/// An event exceeds the rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateExceeded {
    /// Time until an event is allowed again.
    pub retry_after: Duration,
}

/// What a rate limit leaves of a key's burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Events allowed at once, after a pause long enough.
    pub burst: NonZeroU32,
    /// That pause.
    pub window: Duration,
    /// Events allowed at once now.
    pub remaining: u32,
    /// Time until the whole burst is allowed again, if there are no further events.
    pub whole_after: Duration,
}

/// An event exceeds the rate limit, and what that limit leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaExceeded {
    /// Time until an event is allowed again.
    pub retry_after: Duration,
    /// What remains; it is not enough for an event.
    pub quota: Quota,
}

/// The value of `Retry-After` (RFC 9110 section 10.2.3): whole seconds, rounded up. At least 1, since 0 would ask for a retry
/// at once.
#[must_use]
pub fn retry_after_seconds(wait: Duration) -> u64 {
    let seconds = wait.as_millis().div_ceil(1000).max(1);
    u64::try_from(seconds).unwrap_or(u64::MAX)
}

/// A rate limiter with the same rate for every key.
#[derive(Debug)]
pub struct RateLimiter {
    pace: Pace,
    debts: Arc<Debts>,
}

impl RateLimiter {
    /// Creates a limiter without debts. No later call may have an earlier time than `now`.
    #[must_use]
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self {
            pace: Pace::new(rate),
            debts: Arc::new(Debts::new(now)),
        }
    }

    /// A limiter with another rate and the same debts. A debt above the new burst is reduced to it.
    #[must_use]
    pub fn with_rate(&self, rate: Rate) -> Self {
        Self {
            pace: Pace::new(rate),
            debts: Arc::clone(&self.debts),
        }
    }

    /// Counts an event of `key`. Costs no allocation, and the lock of one set.
    ///
    /// # Errors
    ///
    /// The key has used up its burst. A rejected event is not counted.
    pub fn count(&self, key: &impl Hash, now: Instant) -> Result<(), RateExceeded> {
        self.debts.take(key, self.pace, now)
    }
}

#[cfg(test)]
mod tests;
