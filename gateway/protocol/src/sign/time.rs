//! `time`, and the window in which it must be. CONTRACT 3.

mod slip;

use std::{fmt, str::FromStr, time::Duration};

pub use self::slip::{LocalOffset, TimeSlip};
use crate::word::ParseError;

/// UTC milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SignTime(u64);

impl SignTime {
    /// The number of digits of nanoseconds. As milliseconds they would be 30 million years from now.
    const NANOSECOND_DIGITS: usize = 19;

    /// Creates a time from milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The absolute difference between two times.
    #[must_use]
    pub fn distance(self, other: Self) -> Duration {
        Duration::from_millis(self.0.abs_diff(other.0))
    }
}

impl FromStr for SignTime {
    type Err = ParseSignTimeError;

    fn from_str(digits: &str) -> Result<Self, Self::Err> {
        Self::try_from(digits.as_bytes())
    }
}

impl TryFrom<&[u8]> for SignTime {
    type Error = ParseSignTimeError;

    fn try_from(digits: &[u8]) -> Result<Self, Self::Error> {
        let add = |sum: u64, digit: &u8| {
            let value = digit.wrapping_sub(b'0');
            let sum = sum.checked_mul(10)?.checked_add(u64::from(value))?;
            (value < 10).then_some(sum)
        };
        match digits.iter().try_fold(0, add) {
            // Also rejects an empty text, whose sum is 0.
            Some(millis) if digits.len() > 10 && digits.len() != Self::NANOSECOND_DIGITS => {
                Ok(Self(millis))
            }
            _ => Err(ParseSignTimeError {
                slip: TimeSlip::of_invalid(digits),
            }),
        }
    }
}

impl fmt::Display for SignTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The value of `time` is invalid: not only decimal digits, ten of them or fewer, 19, or more than a `u64` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than ten decimal digits: milliseconds since the epoch")]
pub struct ParseSignTimeError {
    /// The mistake that explains it, if one is found.
    pub slip: Option<TimeSlip>,
}

/// Maximum deviation from the gateway's clock in either direction, inclusive. 1 s to 300 s, default 60 s. CONTRACT 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window(Duration);

impl Window {
    /// Creates a window from whole seconds.
    ///
    /// # Errors
    ///
    /// The number is not from 1 to 300.
    pub fn from_seconds(seconds: u64) -> Result<Self, ParseError> {
        if (1..=300).contains(&seconds) {
            Ok(Self(Duration::from_secs(seconds)))
        } else {
            Err(ParseError("1 to 300 seconds"))
        }
    }

    /// Whether `time` is in the window around `now`.
    #[must_use]
    pub fn contains(self, time: SignTime, now: SignTime) -> bool {
        time.distance(now) <= self.0
    }

    /// For how long `time` will be in the window.
    #[must_use]
    pub const fn left(self, time: SignTime, now: SignTime) -> Duration {
        let ahead = Duration::from_millis(time.0.saturating_sub(now.0));
        let behind = Duration::from_millis(now.0.saturating_sub(time.0));
        self.0.saturating_add(ahead).saturating_sub(behind)
    }

    /// Maximum deviation in either direction.
    #[must_use]
    pub fn duration(self) -> Duration {
        self.0
    }
}

impl Default for Window {
    fn default() -> Self {
        Self(Duration::from_secs(60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_inclusive_in_both_directions() {
        let window = Window::from_seconds(30).unwrap();
        let now = SignTime::from_millis(1_732_104_000_000);
        for (millis, inside) in [
            (1_732_103_970_000, true),
            (1_732_103_969_999, false),
            (1_732_104_030_000, true),
            (1_732_104_030_001, false),
        ] {
            assert_eq!(
                window.contains(SignTime::from_millis(millis), now),
                inside,
                "{millis}"
            );
        }
    }

    #[test]
    fn ten_digits_or_fewer_look_like_seconds() {
        assert_eq!(
            "1732104000".parse::<SignTime>(),
            Err(ParseSignTimeError {
                slip: Some(TimeSlip::Seconds)
            })
        );
        assert_eq!(
            "17321040000".parse::<SignTime>().unwrap().as_millis(),
            17_321_040_000
        );
    }

    #[test]
    fn anything_but_digits_is_rejected() {
        for bad in [
            "",
            "1a",
            "-1732104000000",
            "+1732104000000",
            "1732104000000.0",
            "1732104000000000000",
            "１７３２１０４００００００",
            "18446744073709551616",
            &"9".repeat(21),
        ] {
            assert!(bad.parse::<SignTime>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_window_is_1_to_300_seconds() {
        assert!(Window::from_seconds(0).is_err());
        assert!(Window::from_seconds(1).is_ok());
        assert!(Window::from_seconds(300).is_ok());
        assert!(Window::from_seconds(301).is_err());
    }
}
