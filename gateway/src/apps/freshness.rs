//! How long what was read of the store may serve, by its age and by whether changes are heard of. CONTRACT 4.
//!
//! Times are those since some start, in whole milliseconds.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// What is older is read again; and with the store away, whatever is remembered serves so much longer. CONTRACT 4.
pub(super) const LONGEST_MEMORY: Duration = Duration::from_secs(5 * 60);
/// After a store did not answer, what is remembered is not read again for so long.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// In place of a time: changes are heard of.
const NEVER: u64 = u64::MAX;

/// Whether changes are heard of, and the store answers. Asked for each request, so it has no lock.
pub(super) struct Freshness {
    /// Since when no change is heard of.
    lost_at: AtomicU64,
    /// Until when nothing is read again.
    paused_until: AtomicU64,
}

/// What may be done with what is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It serves.
    Serves,
    /// It serves if it cannot be read again. Whoever is told so reads.
    ReadAgain,
    /// Too much may have changed unheard.
    Over,
}

impl Freshness {
    pub(super) const fn new() -> Self {
        Self {
            lost_at: AtomicU64::new(NEVER),
            paused_until: AtomicU64::new(0),
        }
    }

    /// Of what was read at `read_at`.
    pub(super) fn judge(&self, read_at: Duration, now: Duration) -> Verdict {
        if self.is_over(now) {
            Verdict::Over
        } else if now.saturating_sub(read_at) <= LONGEST_MEMORY || !self.takes_turn(now) {
            Verdict::Serves
        } else {
            Verdict::ReadAgain
        }
    }

    /// Whether nothing was heard for so long that nothing remembered serves.
    pub(super) fn is_over(&self, now: Duration) -> bool {
        let lost_at = self.lost_at.load(Relaxed);
        lost_at != NEVER && millis(now).saturating_sub(lost_at) > millis(LONGEST_MEMORY)
    }

    /// From now on nothing is heard.
    pub(super) fn lose(&self, now: Duration) {
        // Told again, it is still lost since the first time.
        let _ = self
            .lost_at
            .compare_exchange(NEVER, millis(now), Relaxed, Relaxed);
    }

    /// Changes are heard of again.
    pub(super) fn regain(&self) {
        self.lost_at.store(NEVER, Relaxed);
        self.paused_until.store(0, Relaxed);
    }

    /// The store did not answer.
    pub(super) fn pause(&self, now: Duration) {
        self.paused_until.store(millis(now + PAUSE), Relaxed);
    }

    /// Whether this caller may read again now. With the store away that is one a second, of all applications: the
    /// others need not wait to find out what is known.
    fn takes_turn(&self, now: Duration) -> bool {
        let paused_until = self.paused_until.load(Relaxed);
        if millis(now) < paused_until {
            return false;
        }
        let is_heard = self.lost_at.load(Relaxed) == NEVER;
        let next = millis(now + PAUSE);
        is_heard
            || self
                .paused_until
                .compare_exchange(paused_until, next, Relaxed, Relaxed)
                .is_ok()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);
    const NOW: Duration = Duration::from_secs(10_000);

    #[test]
    fn what_is_young_serves_and_what_is_older_is_read_again() {
        let freshness = Freshness::new();
        let young = NOW.saturating_sub(LONGEST_MEMORY);
        assert_eq!(freshness.judge(young, NOW), Verdict::Serves);
        for _ in 0..2 {
            assert_eq!(freshness.judge(young - MILLI, NOW), Verdict::ReadAgain);
        }
        // Read by another, who took the time a moment later.
        assert_eq!(freshness.judge(NOW + MILLI, NOW), Verdict::Serves);
    }

    #[test]
    fn after_a_failure_nothing_is_read_again_for_a_while() {
        let freshness = Freshness::new();
        freshness.pause(NOW);
        let old = Duration::ZERO;
        assert_eq!(freshness.judge(old, NOW + PAUSE - MILLI), Verdict::Serves);
        assert_eq!(freshness.judge(old, NOW + PAUSE), Verdict::ReadAgain);
    }

    #[test]
    fn while_nothing_is_heard_one_a_second_reads_again() {
        let freshness = Freshness::new();
        freshness.lose(NOW);
        let old = Duration::ZERO;
        let reads = |now| freshness.judge(old, now) == Verdict::ReadAgain;
        assert!(reads(NOW) && !reads(NOW) && !reads(NOW + PAUSE - MILLI));
        assert!(reads(NOW + PAUSE) && !reads(NOW + PAUSE));
        freshness.regain();
        assert!(reads(NOW + PAUSE) && reads(NOW + PAUSE));
    }

    #[test]
    fn nothing_serves_when_nothing_was_heard_for_too_long() {
        let freshness = Freshness::new();
        freshness.lose(NOW);
        freshness.lose(NOW + MILLI);
        let end = NOW + LONGEST_MEMORY;
        assert_eq!(freshness.judge(NOW, end), Verdict::Serves);
        // However lately it was read.
        for read_at in [NOW, end, end + MILLI] {
            assert_eq!(freshness.judge(read_at, end + MILLI), Verdict::Over);
        }
        freshness.regain();
        assert_eq!(freshness.judge(end, end + MILLI), Verdict::Serves);
    }
}
