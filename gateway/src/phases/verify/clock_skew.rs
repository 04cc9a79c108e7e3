//! How far the clocks of clients are from the gateway's: the first thing to look at when clients fail.

use gateway_protocol::sign::SignTime;
use signpost_kit::metrics::cells::{Buckets, Histogram, Observed};

/// Up to the largest window, either way, in milliseconds.
const BUCKETS: Buckets = Buckets {
    bounds: &[
        -300_000, -60_000, -30_000, -10_000, -5_000, -2_000, -1_000, -500, 0, 500, 1_000, 2_000,
        5_000, 10_000, 30_000, 60_000, 300_000,
    ],
    units_per_second: 1e3,
};

/// Limit of a skew that is added to the sum, in milliseconds: an hour. Anyone can send any `time`, and one of the year
/// 5000 must not ruin the average of a day.
const MAX_SKEW_MS: i64 = 3_600_000;

/// A request's `time` less the gateway's, for all requests with a readable one.
#[derive(Debug)]
pub(crate) struct ClockSkew {
    verified: Histogram,
    unverified: Histogram,
}

impl Default for ClockSkew {
    fn default() -> Self {
        Self {
            verified: Histogram::new(BUCKETS),
            unverified: Histogram::new(BUCKETS),
        }
    }
}

impl ClockSkew {
    /// Adds a request's `time`. `is_verified` if its signature is right: anyone can send the others.
    pub(super) fn observe(&self, time: SignTime, now: SignTime, is_verified: bool) {
        let distance = time.as_millis().abs_diff(now.as_millis());
        let distance = i64::try_from(distance).map_or(MAX_SKEW_MS, |one| one.min(MAX_SKEW_MS));
        let skew = if time < now { -distance } else { distance };
        self.histogram(is_verified).observe(skew);
    }

    /// What was observed of requests whose signature is right, or of the others.
    #[must_use]
    pub(crate) fn observed(&self, is_verified: bool) -> Observed {
        self.histogram(is_verified).observed()
    }

    const fn histogram(&self, is_verified: bool) -> &Histogram {
        if is_verified {
            &self.verified
        } else {
            &self.unverified
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_732_104_000_000;

    /// The bucket of a skew of this many milliseconds, and the sum, both in seconds.
    fn observed(time: u64) -> (f64, f64) {
        let skew = ClockSkew::default();
        skew.observe(
            SignTime::from_millis(time),
            SignTime::from_millis(NOW),
            true,
        );
        assert_eq!(skew.observed(false).count(), 0);
        let Observed { sum, buckets } = skew.observed(true);
        let bucket = buckets.iter().find(|(_, count)| *count == 1).unwrap();
        (bucket.0, sum)
    }

    #[test]
    fn a_skew_is_signed_and_in_seconds() {
        for (milliseconds, bucket) in [
            (-300_001, -300.0),
            (-60_000, -60.0),
            (-59_999, -30.0),
            (-1, 0.0),
            (0, 0.0),
            (1, 0.5),
            (60_000, 60.0),
            (300_001, f64::INFINITY),
        ] {
            let time = NOW.checked_add_signed(milliseconds).unwrap();
            let sum = milliseconds as f64 / 1e3;
            assert_eq!(observed(time), (bucket, sum), "{milliseconds}");
        }
    }

    #[test]
    fn an_absurd_time_cannot_ruin_the_sum() {
        assert_eq!(observed(0), (-300.0, -3600.0));
        for time in [u64::MAX, i64::MAX as u64, NOW * 1000] {
            assert_eq!(observed(time), (f64::INFINITY, 3600.0));
        }
    }
}
