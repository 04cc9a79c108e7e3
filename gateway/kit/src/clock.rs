//! The time: an argument of every rule, read from the system in one place.
//!
//! What a client claims is another type, [`SignTime`]: it can be any number.

use std::{
    fmt,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use gateway_protocol::sign::SignTime;
use signpost_store::StoredRow;

#[cfg(any(test, feature = "testing"))]
pub use self::manual::ManualClock;

#[cfg(any(test, feature = "testing"))]
mod manual;

/// A point in time: UTC milliseconds since the epoch. Signed, as both databases keep it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Takes milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This much later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// This much earlier.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// How long from `now` until this; zero once it is past.
    #[must_use]
    pub fn since(self, now: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(now.0)).unwrap_or(0))
    }

    /// How long after the epoch this is; zero if it is before.
    #[must_use]
    pub fn since_epoch(self) -> Duration {
        self.since(Self(0))
    }

    /// Whole seconds from `now` until this, begun ones counted; 0 once it is past.
    #[must_use]
    pub fn seconds_from(self, now: Self) -> u64 {
        self.since(now)
            .as_millis()
            .div_ceil(1000)
            .try_into()
            .unwrap_or(u64::MAX)
    }
}

/// For comparison with what a client claims. What is before the epoch is at its beginning.
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

/// Columns that hold a time: UTC milliseconds since the epoch.
pub trait StoredTime: StoredRow {
    /// A time.
    ///
    /// # Errors
    ///
    /// As [`StoredRow::number`].
    fn time(&self, column: &'static str) -> Result<Timestamp, Self::Error> {
        self.number(column).map(Timestamp::from_millis)
    }

    /// A time, or null.
    ///
    /// # Errors
    ///
    /// As [`StoredRow::optional_number`].
    fn optional_time(&self, column: &'static str) -> Result<Option<Timestamp>, Self::Error> {
        let millis = self.optional_number(column)?;
        Ok(millis.map(Timestamp::from_millis))
    }
}

impl<R: StoredRow> StoredTime for R {}

/// Where the time comes from: the system, or a test.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// The moment now, for how long something took: it does not go back when somebody sets the clock.
    fn instant(&self) -> Instant;
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place where it is read"
    )]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(millis(since_epoch))
    }

    fn instant(&self) -> Instant {
        Instant::now()
    }
}

/// Whole milliseconds, as stores count; those that no store can hold are its largest number.
#[must_use]
pub fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_begun_second_counts_and_the_past_is_zero() {
        let now = Timestamp::from_millis(10_000);
        assert_eq!(now.plus(Duration::from_millis(1)).seconds_from(now), 1);
        assert_eq!(now.plus(Duration::from_secs(2)).seconds_from(now), 2);
        assert_eq!(now.minus(Duration::from_secs(2)).seconds_from(now), 0);
    }

    #[test]
    fn a_time_before_the_epoch_is_its_beginning() {
        for (millis, expected) in [(-1, 0), (0, 0), (1_732_104_000_000, 1_732_104_000_000)] {
            let time = Timestamp::from_millis(millis);
            assert_eq!(SignTime::from(time).as_millis(), expected);
            assert_eq!(time.since_epoch().as_millis(), u128::from(expected));
        }
    }

    #[test]
    fn a_clock_of_a_test_goes_on_when_told_to() {
        let clock = ManualClock::default();
        let (then, instant) = (clock.now(), clock.instant());
        assert_eq!(clock.now(), then);
        let another = clock.clone();
        another.advance(Duration::from_secs(2));
        assert_eq!(clock.now(), then.plus(Duration::from_secs(2)));
        assert_eq!(clock.instant() - instant, Duration::from_secs(2));
    }
}
