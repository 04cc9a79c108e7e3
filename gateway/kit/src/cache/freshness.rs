//! Whether a cached value may be used, by its age and by the state of the change feed. CONTRACT 4.
//!
//! Times are durations since the cache was created.

use std::{
    collections::VecDeque,
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    time::Duration,
};

use parking_lot::RwLock;

/// Default of `stale_seconds`: cached values are used for this long after the feed was lost, inclusive. CONTRACT 4.
pub const DEFAULT_STALE: Duration = Duration::from_secs(5 * 60);
/// Limit of `stale_seconds`: a week.
pub const MAX_STALE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Limit of the losses that a cache knows. Beyond it the oldest is dropped, and values from before it have expired.
const MAX_LOSSES: usize = 3000;
/// Back-off after a failed read: no stale value is read again meanwhile. A store that hangs takes seconds to fail.
pub const BACK_OFF: Duration = Duration::from_secs(1);

/// State of the change feed and of the back-off. Checked for each request: while the feed delivers, without a lock.
pub(super) struct Freshness {
    lifetime: Duration,
    /// Milliseconds for which values are used after the feed was lost.
    stale: AtomicU64,
    /// Counts losses and returns of the feed, so it is odd while the feed is lost. A period begins with an even number:
    /// the feed delivers, then it is lost.
    phase: AtomicU64,
    /// When the feed was lost; the last time is at the end. At most [`MAX_LOSSES`]; those after which nothing is used any
    /// more are dropped.
    losses: RwLock<VecDeque<Duration>>,
    /// End of the back-off, in milliseconds.
    backs_off_until: AtomicU64,
}

/// When a value was read.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) struct ReadAt {
    time: Duration,
    /// The number with which its period began.
    period: u64,
}

/// What a caller may do with a cached value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryState {
    /// Use it without reading.
    Usable,
    /// Refresh it; use it if that fails. Others may use it meanwhile.
    Stale,
    /// Changes may have been missed since it was read: read it again before it is used, and use it if that fails.
    Unconfirmed,
    /// Do not use it: the feed was lost for too long.
    Expired,
}

/// What the feed says of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// The feed has not been lost since, or it is lost now for the first time since.
    Current,
    /// The feed was lost since, and has returned.
    Unconfirmed,
    /// The first loss since was too long ago.
    Expired,
}

impl Freshness {
    /// A value is stale when it is older than `lifetime`.
    pub(super) fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            stale: AtomicU64::new(millis(DEFAULT_STALE)),
            phase: AtomicU64::new(0),
            losses: RwLock::default(),
            backs_off_until: AtomicU64::new(0),
        }
    }

    /// A copy with the same state.
    pub(super) fn duplicate(&self) -> Self {
        let losses = self.losses.read();
        Self {
            lifetime: self.lifetime,
            stale: AtomicU64::new(self.stale.load(Relaxed)),
            phase: AtomicU64::new(self.phase.load(Relaxed)),
            losses: RwLock::new(losses.clone()),
            backs_off_until: AtomicU64::new(self.backs_off_until.load(Relaxed)),
        }
    }

    /// Values are used for this long after the feed was lost.
    pub(super) fn set_stale(&self, stale: Duration) {
        self.stale.store(millis(stale), Relaxed);
    }

    /// How long values that were read before the present outage are still used; the whole time if there is none.
    pub(super) fn time_left(&self, now: Duration) -> Duration {
        let losses = self.losses.read();
        let lost_at = losses.back().filter(|_| self.is_lost()).unwrap_or(&now);
        (*lost_at + self.stale()).saturating_sub(now)
    }

    fn stale(&self) -> Duration {
        Duration::from_millis(self.stale.load(Relaxed))
    }

    /// Marks a value that is read from now on.
    pub(super) fn begin_read(&self, now: Duration) -> ReadAt {
        ReadAt {
            time: now,
            period: self.phase.load(Acquire) & !1,
        }
    }

    /// Checks a value; [`EntryState::Stale`] and [`EntryState::Unconfirmed`] may claim the next refresh.
    pub(super) fn check(&self, read_at: ReadAt, now: Duration) -> EntryState {
        match self.trust(read_at, now) {
            Trust::Expired => EntryState::Expired,
            Trust::Current if self.is_young(read_at, now) => EntryState::Usable,
            // In a back-off an unconfirmed value is used, too: the store has just failed, and every request would wait.
            _ if !self.claim_refresh(now) => EntryState::Usable,
            Trust::Current => EntryState::Stale,
            Trust::Unconfirmed => EntryState::Unconfirmed,
        }
    }

    /// Whether a value can be used without reading it again. Unlike [`Self::check`], this claims no refresh.
    pub(super) fn is_fresh(&self, read_at: ReadAt, now: Duration) -> bool {
        self.trust(read_at, now) == Trust::Current && self.is_young(read_at, now)
    }

    /// Whether a value must not be used any more.
    pub(super) fn is_expired(&self, read_at: ReadAt, now: Duration) -> bool {
        self.trust(read_at, now) == Trust::Expired
    }

    fn is_young(&self, read_at: ReadAt, now: Duration) -> bool {
        now.saturating_sub(read_at.time) <= self.lifetime
    }

    fn trust(&self, read_at: ReadAt, now: Duration) -> Trust {
        if self.phase.load(Acquire) == read_at.period {
            return Trust::Current;
        }
        let losses = self.losses.read();
        // Read again under the lock, where phase and losses belong together.
        let phase = self.phase.load(Relaxed);
        // The time counts from the first loss since the value was read: no return of the feed prolongs it.
        let first = usize::try_from(phase.div_ceil(2) - read_at.period / 2)
            .ok()
            .and_then(|losses_since| losses.len().checked_sub(losses_since));
        match first.and_then(|first| losses.get(first)) {
            Some(lost_at) if !self.is_too_long_ago(*lost_at, now) => {
                if phase & !1 == read_at.period {
                    Trust::Current
                } else {
                    Trust::Unconfirmed
                }
            }
            _ => Trust::Expired,
        }
    }

    /// The feed is lost from now on. If it is lost already, the first time counts.
    pub(super) fn mark_feed_lost(&self, now: Duration) {
        let mut losses = self.losses.write();
        if self.is_lost() {
            return;
        }
        while losses.len() >= MAX_LOSSES
            || losses
                .front()
                .is_some_and(|lost_at| self.is_too_long_ago(*lost_at, now))
        {
            losses.pop_front();
        }
        losses.push_back(now);
        // After the loss is listed, and under its lock: `trust` finds the time of each loss that the number counts.
        self.phase.fetch_add(1, Release);
    }

    /// The feed delivers changes again.
    pub(super) fn mark_feed_restored(&self, now: Duration) {
        // Never without a loss: values from before must not count as current.
        self.mark_feed_lost(now);
        // Locked for the number alone: `trust` reads both as one.
        let _losses = self.losses.write();
        self.phase.fetch_add(1, Release);
        // The store answers again: unconfirmed values are read at once.
        self.backs_off_until.store(0, Relaxed);
    }

    /// Begins a back-off after a failed read.
    pub(super) fn back_off(&self, now: Duration) {
        self.backs_off_until.store(millis(now + BACK_OFF), Relaxed);
    }

    /// Returns whether this caller may read now.
    ///
    /// While the feed is lost, one caller may read per [`BACK_OFF`], for all keys together. The other callers must not
    /// wait for a store that most likely does not answer.
    fn claim_refresh(&self, now: Duration) -> bool {
        let backs_off_until = self.backs_off_until.load(Relaxed);
        if millis(now) < backs_off_until {
            return false;
        }
        let next = millis(now + BACK_OFF);
        !self.is_lost()
            || self
                .backs_off_until
                // Relaxed: the number publishes nothing else. Only one of several callers can win.
                .compare_exchange(backs_off_until, next, Relaxed, Relaxed)
                .is_ok()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.phase.load(Relaxed) % 2 == 1
    }

    fn is_too_long_ago(&self, lost_at: Duration, now: Duration) -> bool {
        now.saturating_sub(lost_at) > self.stale()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = DEFAULT_STALE;
    const MILLI: Duration = Duration::from_millis(1);
    const NOW: Duration = Duration::from_secs(10_000);

    #[test]
    fn a_fresh_value_is_used_and_a_stale_one_is_read_again() {
        let freshness = Freshness::new(LIFETIME);
        let young = freshness.begin_read(NOW.saturating_sub(LIFETIME));
        assert_eq!(freshness.check(young, NOW), EntryState::Usable);
        let old = freshness.begin_read(young.time - MILLI);
        for _ in 0..2 {
            assert_eq!(freshness.check(old, NOW), EntryState::Stale);
        }
        // Read by another thread, which took the time a moment later.
        let later = freshness.begin_read(NOW + MILLI);
        assert_eq!(freshness.check(later, NOW), EntryState::Usable);
    }

    #[test]
    fn after_a_failed_read_no_value_is_read_during_the_back_off() {
        let freshness = Freshness::new(LIFETIME);
        let old = freshness.begin_read(Duration::ZERO);
        freshness.back_off(NOW);
        assert_eq!(
            freshness.check(old, NOW + BACK_OFF - MILLI),
            EntryState::Usable
        );
        assert_eq!(freshness.check(old, NOW + BACK_OFF), EntryState::Stale);
    }

    #[test]
    fn while_the_feed_is_lost_one_caller_a_second_reads() {
        let freshness = Freshness::new(LIFETIME);
        let old = freshness.begin_read(Duration::ZERO);
        freshness.mark_feed_lost(NOW);
        let reads = |now| freshness.check(old, now) == EntryState::Stale;
        assert!(reads(NOW) && !reads(NOW) && !reads(NOW + BACK_OFF - MILLI));
        assert!(reads(NOW + BACK_OFF) && !reads(NOW + BACK_OFF));
        freshness.mark_feed_restored(NOW + BACK_OFF);
        for _ in 0..2 {
            assert_eq!(
                freshness.check(old, NOW + BACK_OFF),
                EntryState::Unconfirmed
            );
        }
    }

    #[test]
    fn no_value_is_used_when_the_feed_was_lost_for_too_long() {
        let freshness = Freshness::new(LIFETIME);
        let before = freshness.begin_read(NOW);
        freshness.mark_feed_lost(NOW);
        freshness.mark_feed_lost(NOW + MILLI);
        let end = NOW + DEFAULT_STALE;
        assert_eq!(freshness.check(before, end), EntryState::Usable);
        // However recently it was read.
        for read_at in [before, freshness.begin_read(end)] {
            assert_eq!(freshness.check(read_at, end + MILLI), EntryState::Expired);
        }
        freshness.mark_feed_restored(end);
        let after = freshness.begin_read(end);
        assert_eq!(freshness.check(after, end + MILLI), EntryState::Usable);
        assert_eq!(freshness.check(before, end), EntryState::Unconfirmed);
        assert_eq!(freshness.check(before, end + MILLI), EntryState::Expired);
    }

    #[test]
    fn a_value_expires_by_the_first_loss_since_it_was_read_however_often_the_feed_returns() {
        let freshness = Freshness::new(LIFETIME);
        let minute = Duration::from_secs(60);
        let mut read = Vec::new();
        for number in 0..10 {
            let lost_at = NOW + minute * number;
            // While the feed delivers, and while it is lost.
            read.push((freshness.begin_read(lost_at - MILLI), lost_at));
            freshness.mark_feed_lost(lost_at);
            read.push((freshness.begin_read(lost_at + MILLI), lost_at));
            let restored_at = lost_at + minute / 2;
            freshness.mark_feed_restored(restored_at);
            for (read_at, lost_at) in &read {
                let expected = if restored_at <= *lost_at + DEFAULT_STALE {
                    EntryState::Unconfirmed
                } else {
                    EntryState::Expired
                };
                assert_eq!(freshness.check(*read_at, restored_at), expected);
                assert!(!freshness.is_fresh(*read_at, restored_at));
                let end = *lost_at + DEFAULT_STALE;
                assert!(restored_at > end || !freshness.is_expired(*read_at, end));
                assert!(freshness.is_expired(*read_at, end + MILLI));
            }
        }
        assert!(freshness.losses.read().len() <= 6, "old losses are dropped");
    }

    #[test]
    fn the_losses_of_a_week_are_bounded() {
        let freshness = Freshness::new(LIFETIME);
        freshness.set_stale(MAX_STALE);
        let first = freshness.begin_read(NOW);
        freshness.mark_feed_restored(NOW);
        let second = freshness.begin_read(NOW);
        for _ in 0..MAX_LOSSES {
            assert!(!freshness.is_expired(second, NOW));
            freshness.mark_feed_restored(NOW);
        }
        assert!(freshness.is_expired(first, NOW) && !freshness.is_expired(second, NOW));
        assert_eq!(freshness.losses.read().len(), MAX_LOSSES);
    }

    #[test]
    fn another_limit_holds_for_an_outage_that_has_begun() {
        let freshness = Freshness::new(LIFETIME);
        let value = freshness.begin_read(NOW);
        assert_eq!(freshness.time_left(NOW), DEFAULT_STALE);
        freshness.mark_feed_lost(NOW);
        let later = NOW + MAX_STALE;
        assert!(freshness.is_expired(value, later));
        assert_eq!(freshness.time_left(later), Duration::ZERO);
        freshness.set_stale(MAX_STALE);
        assert!(!freshness.is_expired(value, later));
        freshness.set_stale(Duration::ZERO);
        assert!(!freshness.is_expired(value, NOW) && freshness.is_expired(value, NOW + MILLI));
    }
}
