//! Times and durations of a life cycle: as the file has them, and as headers have them.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Serialize, Serializer};
use signpost_kit::clock::Timestamp;
use signpost_protocol::parse_digits;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// The last second that the formats have: 9999-12-31T23:59:59Z.
const MAX_SECONDS: i64 = 253_402_300_799;
/// Length of a date without a time: `2026-12-01`.
const DATE_LENGTH: usize = 10;

/// Parses a time of RFC 3339 in whole seconds, from 1970 on, or a date, which begins at 00:00 UTC.
pub(super) fn parse_time(text: &str) -> Option<Timestamp> {
    let time = match text.as_bytes().get(DATE_LENGTH) {
        None => OffsetDateTime::parse(&format!("{text}T00:00:00Z"), &Rfc3339),
        // The parser takes any separator, RFC 3339 has this one.
        Some(b'T' | b't') => OffsetDateTime::parse(text, &Rfc3339),
        Some(_) => return None,
    };
    // A leap second is parsed as the fraction before the next second.
    let time = time.ok().filter(|time| time.nanosecond() == 0)?;
    let seconds = time.unix_timestamp();
    let is_allowed = (0..=MAX_SECONDS).contains(&seconds);
    is_allowed.then(|| Timestamp::from_millis(seconds * 1000))
}

/// Parses a duration of ISO 8601 in whole seconds: weeks, days of 24 hours, hours, minutes and seconds, at least one of
/// them; for example `PT1H30M`.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.strip_prefix('P')?;
    let (days, time) = match text.split_once('T') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None if text.is_empty() => return None,
        None => (text, ""),
    };
    let days = sum(days, &[('W', 7 * 86_400), ('D', 86_400)])?;
    let time = sum(time, &[('H', 3600), ('M', 60), ('S', 1)])?;
    days.checked_add(time).map(Duration::from_secs)
}

/// Parses a time as [`parse_time`] does, or the time before `now` by which a duration has its beginning: `7d`, `1h30m`.
///
/// # Errors
///
/// What is allowed.
pub fn parse_since(text: &str, now: Timestamp) -> Result<Timestamp, &'static str> {
    let ago = || parse_short_duration(text).map(|duration| now.minus(duration));
    let since = parse_time(text).or_else(ago);
    since.ok_or("a date, a time of RFC 3339 with a time zone, or a duration as 7d, 12h, 30m")
}

/// Parses a duration in short: `7d`, `1h30m`.
pub fn parse_short_duration(text: &str) -> Option<Duration> {
    const UNITS: [(char, u64); 5] = [
        ('W', 7 * 86_400),
        ('D', 86_400),
        ('H', 3600),
        ('M', 60),
        ('S', 1),
    ];
    let seconds = sum(&text.to_ascii_uppercase(), &UNITS).filter(|_| !text.is_empty());
    seconds.map(Duration::from_secs)
}

/// The sum of numbers, each before its unit, in the order of the units; in seconds.
fn sum(mut text: &str, units: &[(char, u64)]) -> Option<u64> {
    let mut sum: u64 = 0;
    for &(unit, seconds) in units {
        if let Some((number, rest)) = text.split_once(unit) {
            let number: u64 = parse_digits(number)?;
            sum = sum.checked_add(number.checked_mul(seconds)?)?;
            text = rest;
        }
    }
    text.is_empty().then_some(sum)
}

/// A time as RFC 3339 writes it, in UTC: `2026-12-01T10:00:00Z`.
#[must_use]
pub fn rfc3339(time: Timestamp) -> String {
    let time = OffsetDateTime::from_unix_timestamp(seconds(time));
    let text = time.ok().and_then(|time| time.format(&Rfc3339).ok());
    text.unwrap_or_default()
}

/// A date of structured fields (RFC 9651): `@1735689600`.
pub(super) fn structured_date(time: Timestamp) -> String {
    format!("@{}", seconds(time))
}

/// A date of HTTP (RFC 9110 section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(super) fn http_date(time: Timestamp) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + time.since_epoch())
}

const fn seconds(time: Timestamp) -> i64 {
    time.as_millis().div_euclid(1000)
}

/// Writes a time, or none, as [`rfc3339`] does.
pub fn as_rfc3339<S: Serializer>(
    time: &(impl Copy + Into<Option<Timestamp>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let time: Option<Timestamp> = (*time).into();
    time.map(rfc3339).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_dates_are_parsed() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2025-01-01T00:00:00Z", 1_735_689_600),
            ("2025-01-01", 1_735_689_600),
            ("2025-01-01t01:30:00+01:30", 1_735_689_600),
            ("2024-02-29T23:59:59.000Z", 1_709_251_199),
            ("9999-12-31T23:59:59Z", MAX_SECONDS),
        ] {
            let time = parse_time(text);
            assert_eq!(time, Some(Timestamp::from_millis(seconds * 1000)), "{text}");
        }
    }

    #[test]
    fn other_times_are_rejected() {
        for text in [
            "",
            "soon",
            "2025",
            "2025-1-1",
            "2025-02-29",
            "2025-13-01",
            "2025-01-01T00:00:00",
            "2025-01-01T00:00Z",
            "2025-01-01 00:00:00Z",
            "2025-01-01T24:00:00Z",
            "2025-01-01T00:00:00.5Z",
            "2016-12-31T23:59:60Z",
            "2025-01-01T00:00:00Z[UTC]",
            "2025-01-01T00:00:00Z ",
            "1969-12-31T23:59:59Z",
            "9999-12-31T23:59:59-00:01",
            "+2025-01-01",
            "12025-01-01T00:00:00Z",
            "２０25-01-01",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_parsed() {
        for (text, seconds) in [
            ("PT1H", 3600),
            ("PT1H30M", 5400),
            ("PT90S", 90),
            ("P1D", 86_400),
            ("P1DT1S", 86_401),
            ("P1W", 604_800),
            ("PT0S", 0),
        ] {
            let duration = parse_duration(text);
            assert_eq!(duration, Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "P",
            "PT",
            "P1DT",
            "1H",
            "PT1",
            "PTH",
            "PT-1H",
            "PT+1H",
            "PT1.5H",
            "PT1M1H",
            "PT1H1H",
            "P1H",
            "P1M",
            "P1Y",
            "PT1D",
            "pt1h",
            "PT1H ",
            "PT99999999999999999999S",
            "PT9999999999999999999H",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_written_in_three_formats() {
        let time = Timestamp::from_millis(1_735_689_600_000);
        assert_eq!(rfc3339(time), "2025-01-01T00:00:00Z");
        assert_eq!(structured_date(time), "@1735689600");
        assert_eq!(http_date(time), "Wed, 01 Jan 2025 00:00:00 GMT");
        let last = Timestamp::from_millis(MAX_SECONDS * 1000);
        assert_eq!(rfc3339(last), "9999-12-31T23:59:59Z");
        assert_eq!(http_date(last), "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
