//! How far the clocks of clients are from the gateway's: the first thing to look at when clients fail.

use signpost_kit::metrics::cells::{Buckets, Histogram, Observed};
use signpost_protocol::sign::SignTime;

/// Up to the largest window, in milliseconds. Above 0: in OpenMetrics, a histogram with negative bounds has no sum.
const BUCKETS: Buckets = Buckets {
    bounds: &[500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000],
    units_per_second: 1e3,
};

/// Limit of a skew that is added to the sum, in milliseconds: an hour. Anyone can send any `time`, and one of the year
/// 5000 must not ruin the average of a day.
const MAX_SKEW_MS: u64 = 3_600_000;

/// The distance between a request's `time` and the gateway's, for all requests with a readable one.
#[derive(Debug)]
pub(crate) struct ClockSkew {
    /// By [`Self::index`].
    histograms: [Histogram; 4],
}

impl Default for ClockSkew {
    fn default() -> Self {
        Self {
            histograms: std::array::from_fn(|_| Histogram::new(BUCKETS)),
        }
    }
}

impl ClockSkew {
    /// Adds a request's `time`. `is_verified` if its signature is right: anyone can send the others.
    pub(super) fn observe(&self, time: SignTime, now: SignTime, is_verified: bool) {
        let distance = time.as_millis().abs_diff(now.as_millis());
        let histogram = &self.histograms[Self::index(is_verified, time < now)];
        histogram.observe(distance.min(MAX_SKEW_MS));
    }

    /// What was observed of requests whose signature is right, or of the others; of clients whose clock is behind, or
    /// of the others.
    #[must_use]
    pub(crate) fn observed(&self, is_verified: bool, is_behind: bool) -> Observed {
        self.histograms[Self::index(is_verified, is_behind)].observed()
    }

    fn index(is_verified: bool, is_behind: bool) -> usize {
        2 * usize::from(is_verified) + usize::from(is_behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_732_104_000_000;

    /// Whether the client is behind, the bucket of its skew, and the sum, both in seconds.
    fn observed(time: u64) -> (bool, f64, f64) {
        let skew = ClockSkew::default();
        skew.observe(
            SignTime::from_millis(time),
            SignTime::from_millis(NOW),
            true,
        );
        let count = |is_verified, is_behind| skew.observed(is_verified, is_behind).count();
        assert_eq!(count(false, true) + count(false, false), 0);
        let is_behind = count(true, true) == 1;
        let Observed { sum, buckets } = skew.observed(true, is_behind);
        let bucket = buckets.iter().find(|(_, count)| *count == 1).unwrap();
        (is_behind, bucket.0, sum)
    }

    #[test]
    fn a_skew_is_a_distance_in_seconds_and_a_direction() {
        for (milliseconds, bucket) in [
            (-300_001, f64::INFINITY),
            (-60_000, 60.0),
            (-59_999, 60.0),
            (-1, 0.5),
            (0, 0.5),
            (501, 1.0),
            (60_000, 60.0),
            (300_001, f64::INFINITY),
        ] {
            let time = NOW.checked_add_signed(milliseconds).unwrap();
            let expected = (milliseconds < 0, bucket, milliseconds.abs() as f64 / 1e3);
            assert_eq!(observed(time), expected, "{milliseconds}");
        }
    }

    #[test]
    fn an_absurd_time_cannot_ruin_the_sum() {
        assert_eq!(observed(0), (true, f64::INFINITY, 3600.0));
        for time in [u64::MAX, i64::MAX as u64, NOW * 1000] {
            assert_eq!(observed(time), (false, f64::INFINITY, 3600.0));
        }
    }
}
