//! Days in UTC.

use std::{fmt, time::Duration};

use signpost_kit::clock::Timestamp;

use crate::config::rfc3339;

const MILLIS: i64 = 24 * 60 * 60 * 1000;

/// A day in UTC: the number of days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i64);

impl Day {
    /// The day of a time.
    pub const fn at(time: Timestamp) -> Self {
        Self(time.as_millis().div_euclid(MILLIS))
    }

    /// The number in the store.
    pub const fn number(self) -> i64 {
        self.0
    }

    /// The first time of the day.
    pub const fn begin(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(MILLIS))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_795_375_509, "2026-11-22T19:25:09Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(
                rfc3339(Timestamp::from_millis(seconds * 1000)),
                text,
                "{seconds}"
            );
        }
    }

    #[test]
    fn a_day_ends_at_midnight() {
        let day = Day::at(Timestamp::from_millis(1_795_375_509_000));
        let end = day.begin().plus(Duration::from_secs(86_400));
        assert_eq!(Day::at(end), Day(day.number() + 1));
        let last = Timestamp::from_millis(end.as_millis() - 1);
        assert_eq!(Day::at(last), day);
        assert_eq!(day.rest(last), Duration::from_millis(1));
        assert_eq!(day.minus(3).number(), day.number() - 3);
    }
}
