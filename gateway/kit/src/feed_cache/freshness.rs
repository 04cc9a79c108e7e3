//! Whether a cached value may be used, by its age and by the state of the change feed. CONTRACT 4.
//!
//! Times are durations since the cache was created, stored in whole milliseconds.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Cached values are used for this long after the feed was lost, inclusive. CONTRACT 4.
pub const MAX_OUTAGE: Duration = Duration::from_secs(5 * 60);
/// Back-off after a failed read: no stale value is read again meanwhile. A store that hangs takes seconds to fail.
pub const BACK_OFF: Duration = Duration::from_secs(1);

/// Stands for a time: the feed is not lost.
const NEVER: u64 = u64::MAX;

/// State of the change feed and of the back-off. Read for each request, so it has no lock.
pub(super) struct Freshness {
    lifetime: Duration,
    /// When the feed was lost, or [`NEVER`].
    lost_at: AtomicU64,
    /// End of the back-off.
    backs_off_until: AtomicU64,
}

/// What a caller may do with a cached value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Use it without reading.
    Usable,
    /// Refresh it; use it if that fails.
    Stale,
    /// Do not use it: the feed was lost for too long.
    Expired,
}

impl Freshness {
    /// A value is stale when it is older than `lifetime`.
    pub(super) const fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            lost_at: AtomicU64::new(NEVER),
            backs_off_until: AtomicU64::new(0),
        }
    }

    /// A copy with the same state.
    pub(super) fn duplicate(&self) -> Self {
        Self {
            lifetime: self.lifetime,
            lost_at: AtomicU64::new(self.lost_at.load(Relaxed)),
            backs_off_until: AtomicU64::new(self.backs_off_until.load(Relaxed)),
        }
    }

    /// Checks a value that was read at `read_at`; [`State::Stale`] may claim the next refresh.
    pub(super) fn check(&self, read_at: Duration, now: Duration) -> State {
        if self.is_expired(now) {
            State::Expired
        } else if now.saturating_sub(read_at) <= self.lifetime || !self.claim_refresh(now) {
            State::Usable
        } else {
            State::Stale
        }
    }

    /// Whether a value that was read at `read_at` is neither stale nor expired. Unlike [`Self::check`], this claims no
    /// refresh.
    pub(super) fn is_fresh(&self, read_at: Duration, now: Duration) -> bool {
        !self.is_expired(now) && now.saturating_sub(read_at) <= self.lifetime
    }

    /// Whether the feed has been lost for too long, so that no cached value may be used.
    pub(super) fn is_expired(&self, now: Duration) -> bool {
        let lost_at = self.lost_at.load(Relaxed);
        lost_at != NEVER && millis(now).saturating_sub(lost_at) > millis(MAX_OUTAGE)
    }

    /// The feed is lost from now on.
    pub(super) fn mark_feed_lost(&self, now: Duration) {
        // If it is lost already, the first time counts.
        let _ = self
            .lost_at
            .compare_exchange(NEVER, millis(now), Relaxed, Relaxed);
    }

    /// The feed delivers changes again.
    pub(super) fn mark_feed_restored(&self) {
        self.lost_at.store(NEVER, Relaxed);
        self.backs_off_until.store(0, Relaxed);
    }

    /// Begins a back-off after a failed read.
    pub(super) fn back_off(&self, now: Duration) {
        self.backs_off_until.store(millis(now + BACK_OFF), Relaxed);
    }

    /// Returns whether this caller may read now.
    ///
    /// While the feed is lost that is one caller per [`BACK_OFF`], for all keys together: the others must not wait for
    /// a store that most likely does not answer.
    fn claim_refresh(&self, now: Duration) -> bool {
        let backs_off_until = self.backs_off_until.load(Relaxed);
        if millis(now) < backs_off_until {
            return false;
        }
        let is_connected = self.lost_at.load(Relaxed) == NEVER;
        let next = millis(now + BACK_OFF);
        is_connected
            || self
                .backs_off_until
                .compare_exchange(backs_off_until, next, Relaxed, Relaxed)
                .is_ok()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = MAX_OUTAGE;
    const MILLI: Duration = Duration::from_millis(1);
    const NOW: Duration = Duration::from_secs(10_000);

    #[test]
    fn a_fresh_value_is_used_and_a_stale_one_is_read_again() {
        let freshness = Freshness::new(LIFETIME);
        let young = NOW.saturating_sub(LIFETIME);
        assert_eq!(freshness.check(young, NOW), State::Usable);
        for _ in 0..2 {
            assert_eq!(freshness.check(young - MILLI, NOW), State::Stale);
        }
        // Read by another thread, which took the time a moment later.
        assert_eq!(freshness.check(NOW + MILLI, NOW), State::Usable);
    }

    #[test]
    fn after_a_failed_read_no_value_is_read_during_the_back_off() {
        let freshness = Freshness::new(LIFETIME);
        freshness.back_off(NOW);
        let old = Duration::ZERO;
        assert_eq!(freshness.check(old, NOW + BACK_OFF - MILLI), State::Usable);
        assert_eq!(freshness.check(old, NOW + BACK_OFF), State::Stale);
    }

    #[test]
    fn while_the_feed_is_lost_one_caller_a_second_reads() {
        let freshness = Freshness::new(LIFETIME);
        freshness.mark_feed_lost(NOW);
        let old = Duration::ZERO;
        let reads = |now| freshness.check(old, now) == State::Stale;
        assert!(reads(NOW) && !reads(NOW) && !reads(NOW + BACK_OFF - MILLI));
        assert!(reads(NOW + BACK_OFF) && !reads(NOW + BACK_OFF));
        freshness.mark_feed_restored();
        assert!(reads(NOW + BACK_OFF) && reads(NOW + BACK_OFF));
    }

    #[test]
    fn no_value_is_used_when_the_feed_was_lost_for_too_long() {
        let freshness = Freshness::new(LIFETIME);
        freshness.mark_feed_lost(NOW);
        freshness.mark_feed_lost(NOW + MILLI);
        let end = NOW + MAX_OUTAGE;
        assert_eq!(freshness.check(NOW, end), State::Usable);
        // However recently it was read.
        for read_at in [NOW, end, end + MILLI] {
            assert_eq!(freshness.check(read_at, end + MILLI), State::Expired);
        }
        freshness.mark_feed_restored();
        assert_eq!(freshness.check(end, end + MILLI), State::Usable);
    }
}
