//! The mistakes in `time` that are explained. CONTRACT 3.

use std::{fmt, time::Duration};

use super::{SignTime, Window};

/// Limit on a `time` whose mistake is searched, in bytes: longer than any date.
const MAX_BYTES: usize = 64;

label_enum! {
    /// A mistake in `time`, which the hint explains: the key of its text in the language files.
    pub enum TimeSlip {
        /// At most ten digits: seconds.
        Seconds = "hint_seconds",
        /// Sixteen digits: microseconds. As milliseconds it would be 30,000 years from now.
        Microseconds = "hint_microseconds",
        /// Nineteen digits: nanoseconds.
        Nanoseconds = "hint_nanoseconds",
        /// A decimal fraction, or a number with an exponent.
        Fraction = "hint_time_fraction",
        /// Digits in quotes or white space.
        Quoted = "hint_time_quoted",
        /// A date as text.
        Text = "hint_time_text",
        /// The client's local time as if it were UTC, or the reverse.
        LocalTime(LocalOffset = LocalOffset { minutes: 0 }) = "hint_local_time",
    }
}

impl TimeSlip {
    /// The mistake in a `time` that is not valid.
    #[cold]
    pub(super) fn of_invalid(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?;
        if text.len() > MAX_BYTES {
            return None;
        }
        let is_around = |letter: char| letter.is_whitespace() || "\"'`".contains(letter);
        let bare = text.trim_matches(is_around);
        let is_digits = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
        match (is_digits, text.len()) {
            (true, _) if bare != text => Some(Self::Quoted),
            (true, 1..=10) => Some(Self::Seconds),
            (true, SignTime::NANOSECOND_DIGITS) => Some(Self::Nanoseconds),
            (true, _) => None,
            (false, _) if is_fraction(bare) => Some(Self::Fraction),
            (false, _) => is_date(bare).then_some(Self::Text),
        }
    }

    /// The mistake in a `time` outside the window around `now`.
    #[must_use]
    pub fn of_distant(time: SignTime, now: SignTime, window: Window) -> Option<Self> {
        match time.as_millis() {
            1_000_000_000_000_000..=9_999_999_999_999_999 => Some(Self::Microseconds),
            _ => LocalOffset::between(time, now, window).map(Self::LocalTime),
        }
    }
}

/// The offset of a time zone from UTC, or its reverse. Shown as `+5 h 30 min`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalOffset {
    minutes: i16,
}

impl LocalOffset {
    const MAX_HOURS: u64 = 14;
    /// The offsets in minutes which are no whole hours, either way. Source: the tz database, zones of today.
    const BROKEN: [u64; 11] = [
        2 * 60 + 30,  // St. John's, in summer
        3 * 60 + 30,  // Tehran; St. John's
        4 * 60 + 30,  // Kabul
        5 * 60 + 30,  // Kolkata
        5 * 60 + 45,  // Kathmandu
        6 * 60 + 30,  // Yangon
        8 * 60 + 45,  // Eucla
        9 * 60 + 30,  // Darwin; the Marquesas
        10 * 60 + 30, // Lord Howe; Adelaide, in summer
        12 * 60 + 45, // the Chatham Islands
        13 * 60 + 45, // the Chatham Islands, in summer
    ];
    /// Limit on the deviation from an offset. A larger one, even if the window has it, would call a wrong clock local time:
    /// with 5 minutes, whole hours alone would be a sixth of all times.
    const MAX_DEVIATION: Duration = Duration::from_secs(60);

    /// The offset by which `time` differs from `now`, to within the window and a minute. Either sign: a program that reads
    /// UTC as local time is off by the reverse of its zone, as Python's `utcnow().timestamp()`.
    fn between(time: SignTime, now: SignTime, window: Window) -> Option<Self> {
        let distance = time.distance(now);
        let limit = window.duration().min(Self::MAX_DEVIATION);
        let is_near = |minutes: &u64| distance.abs_diff(Duration::from_secs(minutes * 60)) <= limit;
        let hours = (1..=Self::MAX_HOURS).map(|hours| hours * 60);
        let minutes = hours.chain(Self::BROKEN).find(is_near)?;
        let minutes = i16::try_from(minutes).ok()?;
        Some(Self {
            minutes: if time < now { -minutes } else { minutes },
        })
    }
}

impl fmt::Display for LocalOffset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.minutes < 0 { '-' } else { '+' };
        let minutes = self.minutes.unsigned_abs();
        match (minutes / 60, minutes % 60) {
            (hours, 0) => write!(formatter, "{sign}{hours} h"),
            (hours, minutes) => write!(formatter, "{sign}{hours} h {minutes} min"),
        }
    }
}

/// Whether it is a number with a decimal separator or an exponent.
fn is_fraction(text: &str) -> bool {
    // A digit first, since `f64` also parses `inf` and `nan`; some locales write a comma.
    text.starts_with(|letter: char| letter.is_ascii_digit())
        && text.replacen(',', ".", 1).parse::<f64>().is_ok()
}

/// Whether it looks like a date: digits with a separator inside.
fn is_date(text: &str) -> bool {
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    has_digit && text.bytes().skip(1).any(|byte| b":-/.T".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_time_is_explained() {
        use TimeSlip::{Fraction, Nanoseconds, Quoted, Seconds, Text};
        for (value, slip) in [
            ("1732104000", Some(Seconds)),
            ("0", Some(Seconds)),
            ("1732104000000123456", Some(Nanoseconds)),
            ("1732104000.123", Some(Fraction)),
            ("1732104000,123", Some(Fraction)),
            ("1732104000000.0", Some(Fraction)),
            ("1.732104E12", Some(Fraction)),
            ("1.732104e+12", Some(Fraction)),
            ("\"1732104000000\"", Some(Quoted)),
            ("'1732104000000'", Some(Quoted)),
            (" 1732104000000", Some(Quoted)),
            ("1732104000000\n", Some(Quoted)),
            ("\"1732104000.5\"", Some(Fraction)),
            ("2024-11-20", Some(Text)),
            ("2024-11-20T12:00:00Z", Some(Text)),
            ("2024-11-20T20:00:00.000+08:00", Some(Text)),
            ("20241120T120000Z", Some(Text)),
            ("Wed, 20 Nov 2024 12:00:00 GMT", Some(Text)),
            ("20.11.2024", Some(Text)),
            ("11/20/2024", Some(Text)),
            ("", None),
            ("\"\"", None),
            ("-1732104000000", None),
            ("+1732104000000", None),
            ("now", None),
            ("NaN", None),
            ("1a", None),
            ("18446744073709551616", None),
            ("１７３２１０４００００００", None),
            (&"1.".repeat(40), None),
        ] {
            assert_eq!(TimeSlip::of_invalid(value.as_bytes()), slip, "{value:?}");
        }
        assert_eq!(TimeSlip::of_invalid(b"2024-11-20\xff"), None);
    }

    #[test]
    fn a_distance_of_a_time_zone_is_local_time() {
        const MINUTE: i64 = 60_000;
        let now = SignTime::from_millis(1_732_104_000_000);
        let windows = [1, 60, 300].map(|seconds| Window::from_seconds(seconds).unwrap());
        let found = |offset: i64, window| {
            let time = SignTime::from_millis(now.as_millis().saturating_add_signed(offset));
            match TimeSlip::of_distant(time, now, window) {
                Some(TimeSlip::LocalTime(offset)) => Some(offset.to_string()),
                other => other.map(|slip| slip.as_str().to_owned()),
            }
        };
        for (minutes, expected) in [
            (8 * 60, Some("+8 h")),
            (-5 * 60, Some("-5 h")),
            (-(2 * 60 + 30), Some("-2 h 30 min")),
            (-(9 * 60 + 30), Some("-9 h 30 min")),
            (5 * 60 + 30, Some("+5 h 30 min")),
            (-(5 * 60 + 30), Some("-5 h 30 min")),
            (5 * 60 + 45, Some("+5 h 45 min")),
            (13 * 60 + 45, Some("+13 h 45 min")),
            (14 * 60, Some("+14 h")),
            // No zone has these.
            (2, None),
            (15, None),
            (30, None),
            (-30, None),
            (45, None),
            (-45, None),
            (-(60 + 30), None),
            (60 + 45, None),
            (5 * 60 + 15, None),
            (7 * 60 + 30, None),
            (11 * 60 + 30, None),
            (14 * 60 + 30, None),
            (15 * 60, None),
            (24 * 60, None),
        ] {
            for window in windows {
                let found = found(minutes * MINUTE, window);
                assert_eq!(found.as_deref(), expected, "{minutes} min");
            }
        }
        let eight_hours = 8 * 60 * MINUTE;
        for (deviation, is_found) in [
            (1_000, [true, true, true]),
            (1_001, [false, true, true]),
            (60_000, [false, true, true]),
            (60_001, [false, false, false]),
            (240_000, [false, false, false]),
        ] {
            for offset in [eight_hours + deviation, eight_hours - deviation] {
                let found = windows.map(|window| found(offset, window).is_some());
                assert_eq!(found, is_found, "{offset}");
            }
        }
        for offset in [i64::MIN, i64::MAX] {
            assert_eq!(found(offset, Window::default()), None);
        }
        for (time, slip) in [
            (173_210_400_000_000, None),
            (1_732_104_000_000_000, Some(TimeSlip::Microseconds)),
            (17_321_040_000_000_000, None),
            (u64::MAX, None),
        ] {
            let time = SignTime::from_millis(time);
            assert_eq!(
                TimeSlip::of_distant(time, now, Window::default()),
                slip,
                "{time}"
            );
        }
    }
}
