//! Rate limits by key, in fixed memory: the generic cell rate algorithm (GCRA).
//!
//! A key has as many tokens as its burst, and each event uses one. Used tokens are refilled at the rate. If no token is
//! left, the event is rejected. Per key one number is stored: the time at which all of its tokens are refilled.
//!
//! Memory is fixed: [`TRACKED_KEYS`] keys, 1.1 MB, allocated with the table. A key whose tokens are all refilled need not
//! be stored. If more keys than that have used tokens at once, a new key evicts the key that is refilled first among the
//! eight of its set. So no key is rejected because of the number of other keys, and the keys that send most stay longest.
//!
//! The caller gives a rate with each event. Rates can change, and used tokens stay used. Several processes can add up
//! the tokens that they have used: [`RateTable::begin_sharing`].

mod network;
mod slots;
mod table;
#[cfg(test)]
mod tests;

use std::{num::NonZeroU32, time::Duration};

pub use self::{
    network::{Network, SITE_FACTOR},
    table::{Key, RateTable, Subject, Used},
};

/// `Retry-After` of a 503 in seconds: an unreachable address and the store are tried again about every 5 s.
pub const RETRY_SECONDS: u16 = 5;

/// Number of keys with used tokens that are tracked at the same time.
pub const TRACKED_KEYS: usize = SETS * WAYS;
/// Number of sets, each with its own lock. A key's set depends on a hash with a secret of this process, so that no
/// client can target a set.
const SETS: usize = 8192;
/// Number of slots in a set.
const WAYS: usize = 8;

/// An allowed rate of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens that are refilled in a second: the sustained rate of events.
    pub per_second: NonZeroU32,
    /// All tokens of a key: events allowed at once, after a pause long enough.
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

/// What a rate limit leaves of a key's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Events allowed at once, after a pause of `window`.
    pub burst: NonZeroU32,
    /// Time in which all tokens of the burst are refilled.
    pub window: Duration,
    /// Tokens that are left: events allowed at once now.
    pub remaining: u32,
    /// Time until all tokens are refilled, if there are no further events.
    pub whole_after: Duration,
}

/// An event exceeds the rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
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
