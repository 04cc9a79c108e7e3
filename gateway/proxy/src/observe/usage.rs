//! Counts requests by application, version and path, for `/metrics` and for `signpost versions report`. `conf/guides/versions.md`.
//!
//! A request only adds to numbers of its own thread. A scrape shows the numbers of the busiest applications; every few
//! seconds a task writes the numbers of requests with a route to the store. In single-application mode there is no
//! store, and nothing is counted here.
//!
//! | module | subject |
//! | --- | --- |
//! | [`counters`] | the counters of each thread |
//! | [`paths`] | by which path a request is counted |
//! | [`busiest`] | which applications a scrape shows |
//! | [`batch`] | what is written at once |
//! | [`writer`] | writes batches, and the last one at a stop |
//! | [`store`] | writes the tables, which [`signpost_store::tables::usage`] reads |

mod batch;
mod busiest;
mod counters;
mod paths;
mod store;
#[cfg(test)]
mod tests;
pub(crate) mod writer;

use std::{fmt, time::Duration};

use signpost_kit::clock::Timestamp;
use signpost_protocol::version::VersionSource;

pub(crate) use self::counters::Usage;
pub use self::paths::MAX_PATTERNS;
use crate::config::rfc3339;

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// Days for which counts and clients are kept, today included: long enough for a client that runs once a quarter, short
/// enough for personal data.
pub const KEEP_DAYS: u16 = 90;

/// Stands for an application in the counts of callbacks, which have none. The ids of applications begin at 1.
pub const NO_APPLICATION: i64 = 0;

/// Stands for all applications that a batch has no room for.
pub const OTHER_APPLICATIONS: i64 = -1;

/// Requests by source, in the order of [`VersionSource::ALL`].
pub type Counts = [u64; VersionSource::ALL.len()];

/// A day in UTC: the number of days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i64);

impl Day {
    /// The day of a time.
    pub const fn at(time: Timestamp) -> Self {
        Self(time.as_millis().div_euclid(DAY_MILLIS))
    }

    /// The number in the store.
    pub const fn number(self) -> i64 {
        self.0
    }

    /// The first time of the day.
    pub const fn begin(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(DAY_MILLIS))
    }

    /// The day this many days earlier.
    pub fn minus(self, days: u16) -> Self {
        Self(self.0 - i64::from(days))
    }

    /// The time from `now`, a time on this day, to its end.
    pub fn rest(self, now: Timestamp) -> Duration {
        Self(self.0 + 1).begin().since(now)
    }
}

/// As `2026-11-22`.
impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begin = rfc3339(self.begin());
        formatter.write_str(begin.split('T').next().unwrap_or_default())
    }
}
