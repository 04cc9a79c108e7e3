//! Points in time, as both databases hold them.

use std::{fmt, time::Duration};

use signpost_protocol::sign::SignTime;

/// A point in time: UTC milliseconds since the epoch. Signed, as in both databases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates a timestamp from milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Adds a duration; saturates.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// Subtracts a duration; saturates.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// Duration from `now` until this time; zero if it is past.
    #[must_use]
    pub fn since(self, now: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(now.0)).unwrap_or(0))
    }

    /// Duration since the epoch; zero if the time is before it.
    #[must_use]
    pub fn since_epoch(self) -> Duration {
        self.since(Self(0))
    }

    /// Seconds from `now` until this time, rounded up; 0 if it is past.
    #[must_use]
    pub fn seconds_from(self, now: Self) -> u64 {
        self.since(now)
            .as_millis()
            .div_ceil(1000)
            .try_into()
            .unwrap_or(u64::MAX)
    }
}

/// For comparison with the time that a client sent. A time before the epoch becomes the epoch.
impl From<Timestamp> for SignTime {
    fn from(time: Timestamp) -> Self {
        Self::from_millis(u64::try_from(time.0).unwrap_or(0))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ms", self.0)
    }
}

/// Whole milliseconds as an `i64`, the type in both databases; saturates.
#[must_use]
pub fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up_and_zero_for_the_past() {
        let now = Timestamp::from_millis(10_000);
        assert_eq!(now.plus(Duration::from_millis(1)).seconds_from(now), 1);
        assert_eq!(now.plus(Duration::from_secs(2)).seconds_from(now), 2);
        assert_eq!(now.minus(Duration::from_secs(2)).seconds_from(now), 0);
    }

    #[test]
    fn a_time_before_the_epoch_becomes_the_epoch() {
        for (millis, expected) in [(-1, 0), (0, 0), (1_732_104_000_000, 1_732_104_000_000)] {
            let time = Timestamp::from_millis(millis);
            assert_eq!(SignTime::from(time).as_millis(), expected);
            assert_eq!(time.since_epoch().as_millis(), u128::from(expected));
        }
    }
}
