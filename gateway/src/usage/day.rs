//! Days in UTC.

use std::{fmt, time::Duration};

use signpost_kit::clock::Timestamp;

const MILLIS: i64 = 24 * 60 * 60 * 1000;

/// Days of 400 years: the calendar repeats after them.
const DAYS_OF_CYCLE: i64 = 146_097;

/// From 0000-03-01 to 1970-01-01. Years that begin in March have their leap day at the end.
const DAYS_BEFORE_EPOCH: i64 = 719_468;

/// A day in UTC: the number of days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day(i64);

impl Day {
    /// The day of a time.
    pub(crate) const fn at(time: Timestamp) -> Self {
        Self(time.as_millis().div_euclid(MILLIS))
    }

    /// The number in the store.
    pub(crate) const fn number(self) -> i64 {
        self.0
    }

    /// The first time of the day.
    pub(crate) const fn begin(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(MILLIS))
    }

    /// The day this many days earlier.
    pub(crate) fn minus(self, days: u16) -> Self {
        Self(self.0 - i64::from(days))
    }

    /// The time from `now`, a time on this day, to its end.
    pub(crate) fn rest(self, now: Timestamp) -> Duration {
        Self(self.0 + 1).begin().since(now)
    }

    /// Year, month and day.
    fn date(self) -> (i64, i64, i64) {
        let days = self.0 + DAYS_BEFORE_EPOCH;
        let (cycle, day) = (
            days.div_euclid(DAYS_OF_CYCLE),
            days.rem_euclid(DAYS_OF_CYCLE),
        );
        // The leap days of 4, 100 and 400 years: without them each year has 365 days.
        let year = (day - day / 1460 + day / 36_524 - day / (DAYS_OF_CYCLE - 1)) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        // From March on, five months have 153 days.
        let month = (5 * day + 2) / 153;
        let day_of_month = day - (153 * month + 2) / 5 + 1;
        let (month, next_year) = if month < 10 {
            (month + 3, 0)
        } else {
            (month - 9, 1)
        };
        (400 * cycle + year + next_year, month, day_of_month)
    }
}

/// As `2026-11-22`.
impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        write!(formatter, "{year:04}-{month:02}-{day:02}")
    }
}

/// A time as `2026-11-22T18:05:09Z`, to the second.
pub(crate) fn utc(time: Timestamp) -> String {
    let day = Day::at(time);
    let seconds = time.since(day.begin()).as_secs();
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{day}T{hour:02}:{minute:02}:{second:02}Z")
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
                utc(Timestamp::from_millis(seconds * 1000)),
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
