//! Explains mismatched signatures. Their number per second is limited, since each search costs many hashes.

use std::sync::atomic::{AtomicU64, Ordering};

use signpost_protocol::{
    app::AppId,
    sign::{
        AppKey, SignTime,
        explain::{Explanation, GivenSign, explain},
    },
};

use super::{SignedRequest, Verifier};

/// Limit of searches per second of all applications: each costs at most [`MAX_WORK`](signpost_protocol::sign::explain::MAX_WORK).
pub(super) const MAX_SEARCHES: u64 = 50;

/// Limit of searches per second of one application.
pub(super) const MAX_OF_APP: u64 = 10;

/// The searches of a second that any application may use. The others are for applications that had fewer than
/// [`FIRST_OF_APP`] in that second, so that a few applications cannot use them all.
pub(super) const MAX_UNRESERVED: u64 = 25;

/// The first searches of an application in a second, which the reserved ones are for.
pub(super) const FIRST_OF_APP: u64 = 2;

/// Counters of applications. Two applications with the same counter share its limit.
pub(super) const APP_COUNTERS: usize = 256;

/// Limits the searches: for each application, and for all.
#[derive(Debug)]
pub(super) struct SearchLimit {
    all: SecondCounter,
    /// By the application's id, modulo their number.
    of_apps: Box<[SecondCounter]>,
}

impl Default for SearchLimit {
    fn default() -> Self {
        Self {
            all: SecondCounter::default(),
            of_apps: (0..APP_COUNTERS)
                .map(|_| SecondCounter::default())
                .collect(),
        }
    }
}

impl SearchLimit {
    /// Counts a search; `false` if no further one is allowed in this second. In single-application mode only the limit
    /// of all applies.
    fn count(&self, app: AppId, now: SignTime) -> bool {
        // One application: a limit of its own would only withhold its hints.
        if app == AppId::SINGLE {
            return self.all.count(MAX_SEARCHES, now).is_some();
        }
        let index = app.get().unsigned_abs() % APP_COUNTERS as u64;
        let counter = usize::try_from(index).map(|index| &self.of_apps[index]);
        // The application's own limit first: beyond it, a search must not count against all others, either.
        let counted = counter
            .ok()
            .and_then(|counter| counter.count(MAX_OF_APP, now));
        counted.is_some_and(|before| {
            let limit = if before < FIRST_OF_APP {
                MAX_SEARCHES
            } else {
                MAX_UNRESERVED
            };
            self.all.count(limit, now).is_some()
        })
    }
}

/// Counts in a second: the second (UTC) of the last count, times 2^16, plus the number in it.
#[derive(Debug, Default)]
struct SecondCounter(AtomicU64);

impl SecondCounter {
    /// Counts one, and returns the number before it; `None` if that is the limit.
    fn count(&self, limit: u64, now: SignTime) -> Option<u64> {
        let second = now.as_millis() / 1000;
        let counted = |last: u64| {
            let (last_second, count) = (last >> 16, last & 0xffff);
            // Requests reach this line in another order than they read the clock.
            if last_second == second || last_second == second + 1 {
                (last_second, count)
            } else {
                (second, 0)
            }
        };
        let count_one = |last| {
            let (second, count) = counted(last);
            (count < limit).then_some(second << 16 | (count + 1))
        };
        let updated = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, count_one);
        updated.ok().map(|last| counted(last).1)
    }
}

impl Verifier {
    /// Counts a search for a request, if its application may have one.
    pub(super) fn may_search(&self, request: SignedRequest<'_, '_>) -> bool {
        self.state.searches.count(request.app.id, request.now)
    }

    /// The mistake that explains a mismatched signature, or why none was searched.
    pub(super) fn explain(
        &self,
        given: &GivenSign,
        expired_key: Option<&AppKey>,
        request: SignedRequest<'_, '_>,
        may_search: impl FnOnce() -> bool,
    ) -> Explanation {
        let SignedRequest { app, params, .. } = request;
        let target = request.target;
        let signed = (request.method.as_str(), target.host, target.path);
        let profile = self.profile_of(app);
        explain(
            given,
            profile,
            &app.key,
            expired_key,
            signed,
            params,
            may_search,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::{array, thread};

    use super::*;

    const NOW: SignTime = SignTime::from_millis(1_732_104_000_000);

    /// The searches of an application among so many attempts.
    fn searched(limit: &SearchLimit, app: i64, attempts: u64, now: SignTime) -> u64 {
        let allowed = (0..attempts).filter(|_| limit.count(AppId::new(app), now));
        allowed.count() as u64
    }

    #[test]
    fn a_single_application_has_all_searches() {
        let limit = SearchLimit::default();
        assert_eq!(searched(&limit, 0, 99, NOW), MAX_SEARCHES);
    }

    #[test]
    fn a_flood_of_a_few_applications_leaves_searches_to_each_other_one() {
        let limit = SearchLimit::default();
        for app in 1..5 {
            assert_eq!(searched(&limit, app, 1, NOW), 1);
        }
        let flooded: [u64; 4] = thread::scope(|scope| {
            let threads: [_; 8] = array::from_fn(|thread| {
                let (limit, app) = (&limit, 1 + (thread as i64) % 4);
                // The clocks of the threads are up to a second apart.
                let now = SignTime::from_millis(NOW.as_millis() - 1000 * (thread as u64 / 4));
                scope.spawn(move || (app, searched(limit, app, 10_000, now)))
            });
            let mut sums = [1; 4];
            for thread in threads {
                let (app, count) = thread.join().unwrap();
                sums[app as usize - 1] += count;
            }
            sums
        });
        assert!(
            flooded.iter().all(|count| *count <= MAX_OF_APP),
            "{flooded:?}"
        );
        let sum = flooded.iter().sum::<u64>();
        assert!(sum <= MAX_UNRESERVED + 4 * FIRST_OF_APP, "{flooded:?}");
        for other in 5..9 {
            assert_eq!(searched(&limit, other, 99, NOW), FIRST_OF_APP, "{other}");
        }
        let all: u64 = (9..200).map(|app| searched(&limit, app, 99, NOW)).sum();
        assert_eq!(sum + 4 * FIRST_OF_APP + all, MAX_SEARCHES);
        let later = SignTime::from_millis(NOW.as_millis() + 1000);
        assert_eq!(searched(&limit, 1, 99, later), MAX_OF_APP);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_stop_the_searches() {
        let limit = SearchLimit::default();
        assert_eq!(searched(&limit, 1, 99, NOW), MAX_OF_APP);
        let earlier = SignTime::from_millis(NOW.as_millis() - 3_600_000);
        assert_eq!(searched(&limit, 1, 99, earlier), MAX_OF_APP);
    }
}
