//! How long a cached value may serve, by its age and by whether the change feed is heard. CONTRACT 4.
//!
//! Times are those since some start, in whole milliseconds.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// How long cached values serve after the feed was lost; the edge is inside. CONTRACT 4.
pub const MAX_OUTAGE: Duration = Duration::from_secs(5 * 60);
/// After a read failed, nothing stale is read again for this long: a store that hangs takes seconds to fail.
pub const BACK_OFF: Duration = Duration::from_secs(1);

/// In place of a time: the feed is heard.
const NEVER: u64 = u64::MAX;

/// Whether the change feed is heard, and the store answers. Asked for each request, so it has no lock.
pub(super) struct Freshness {
    lifetime: Duration,
    /// When the feed was lost.
    lost_at: AtomicU64,
    /// The end of the back-off.
    backs_off_until: AtomicU64,
}

/// What may be done with a cached value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It serves.
    Serves,
    /// It serves if it cannot be read again. The caller reads.
    Stale,
    /// Too much may have changed unheard.
    Expired,
}

impl Freshness {
    /// A value is stale when it is older than `lifetime`; the edge is inside.
    pub(super) const fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            lost_at: AtomicU64::new(NEVER),
            backs_off_until: AtomicU64::new(0),
        }
    }

    /// Another one that knows as much.
    pub(super) fn duplicate(&self) -> Self {
        Self {
            lifetime: self.lifetime,
            lost_at: AtomicU64::new(self.lost_at.load(Relaxed)),
            backs_off_until: AtomicU64::new(self.backs_off_until.load(Relaxed)),
        }
    }

    /// Of a value that was read at `read_at`.
    pub(super) fn judge(&self, read_at: Duration, now: Duration) -> State {
        if self.is_expired(now) {
            State::Expired
        } else if now.saturating_sub(read_at) <= self.lifetime || !self.takes_turn(now) {
            State::Serves
        } else {
            State::Stale
        }
    }

    /// Whether the feed was lost for so long that no cached value serves.
    pub(super) fn is_expired(&self, now: Duration) -> bool {
        let lost_at = self.lost_at.load(Relaxed);
        lost_at != NEVER && millis(now).saturating_sub(lost_at) > millis(MAX_OUTAGE)
    }

    /// From now on no change is heard.
    pub(super) fn lose_feed(&self, now: Duration) {
        // Told again, it is still lost since the first time.
        let _ = self
            .lost_at
            .compare_exchange(NEVER, millis(now), Relaxed, Relaxed);
    }

    /// Changes are heard again.
    pub(super) fn restore_feed(&self) {
        self.lost_at.store(NEVER, Relaxed);
        self.backs_off_until.store(0, Relaxed);
    }

    /// A read failed.
    pub(super) fn back_off(&self, now: Duration) {
        self.backs_off_until.store(millis(now + BACK_OFF), Relaxed);
    }

    /// Whether this caller may read again now. While the feed is lost that is one in [`BACK_OFF`], of all keys: the others
    /// need not wait for a store that most likely does not answer.
    fn takes_turn(&self, now: Duration) -> bool {
        let backs_off_until = self.backs_off_until.load(Relaxed);
        if millis(now) < backs_off_until {
            return false;
        }
        let is_heard = self.lost_at.load(Relaxed) == NEVER;
        let next = millis(now + BACK_OFF);
        is_heard
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
    fn a_fresh_value_serves_and_a_stale_one_is_read_again() {
        let freshness = Freshness::new(LIFETIME);
        let young = NOW.saturating_sub(LIFETIME);
        assert_eq!(freshness.judge(young, NOW), State::Serves);
        for _ in 0..2 {
            assert_eq!(freshness.judge(young - MILLI, NOW), State::Stale);
        }
        // Read by another, who took the time a moment later.
        assert_eq!(freshness.judge(NOW + MILLI, NOW), State::Serves);
    }

    #[test]
    fn after_a_failed_read_nothing_is_read_for_a_while() {
        let freshness = Freshness::new(LIFETIME);
        freshness.back_off(NOW);
        let old = Duration::ZERO;
        assert_eq!(freshness.judge(old, NOW + BACK_OFF - MILLI), State::Serves);
        assert_eq!(freshness.judge(old, NOW + BACK_OFF), State::Stale);
    }

    #[test]
    fn while_nothing_is_heard_one_a_second_reads_again() {
        let freshness = Freshness::new(LIFETIME);
        freshness.lose_feed(NOW);
        let old = Duration::ZERO;
        let reads = |now| freshness.judge(old, now) == State::Stale;
        assert!(reads(NOW) && !reads(NOW) && !reads(NOW + BACK_OFF - MILLI));
        assert!(reads(NOW + BACK_OFF) && !reads(NOW + BACK_OFF));
        freshness.restore_feed();
        assert!(reads(NOW + BACK_OFF) && reads(NOW + BACK_OFF));
    }

    #[test]
    fn nothing_serves_when_nothing_was_heard_for_too_long() {
        let freshness = Freshness::new(LIFETIME);
        freshness.lose_feed(NOW);
        freshness.lose_feed(NOW + MILLI);
        let end = NOW + MAX_OUTAGE;
        assert_eq!(freshness.judge(NOW, end), State::Serves);
        // However lately it was read.
        for read_at in [NOW, end, end + MILLI] {
            assert_eq!(freshness.judge(read_at, end + MILLI), State::Expired);
        }
        freshness.restore_feed();
        assert_eq!(freshness.judge(end, end + MILLI), State::Serves);
    }
}
