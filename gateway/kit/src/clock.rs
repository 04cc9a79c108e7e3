//! The time: an argument of every rule, read from the system in one place.
//!
//! The time that a client sends has its own type, [`SignTime`](signpost_protocol::sign::SignTime): it can be any number.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use signpost_store::time::{Timestamp, millis};

#[doc(hidden)]
pub use self::manual::ManualClock;

mod manual;

/// A source of time: the system, or a test.
pub trait Clock: Send + Sync + 'static {
    /// Current wall-clock time.
    fn now(&self) -> Timestamp;

    /// Current monotonic time, for measuring durations: setting the system clock does not affect it.
    fn instant(&self) -> Instant;

    /// Current wall-clock time as precisely as the clock has it, since the epoch: for spans, which are shorter than a
    /// millisecond.
    fn since_epoch(&self) -> Duration {
        self.now().since_epoch()
    }
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(millis(self.since_epoch()))
    }

    fn instant(&self) -> Instant {
        Instant::now()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the only place that reads the system clock"
    )]
    fn since_epoch(&self) -> Duration {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            // A clock before 1970 reads as 0, without a panic: the `time` of each request is then outside its window.
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_advanced() {
        let clock = ManualClock::default();
        let (then, instant) = (clock.now(), clock.instant());
        assert_eq!(clock.now(), then);
        let another = clock.clone();
        another.advance(Duration::from_secs(2));
        assert_eq!(clock.now(), then.plus(Duration::from_secs(2)));
        assert_eq!(clock.instant() - instant, Duration::from_secs(2));
    }
}
