//! Which requests have an access line.

use std::cell::Cell;

thread_local! {
    /// Successes of this thread since the last one that was logged.
    static SKIPPED: Cell<u32> = const { Cell::new(0) };
}

/// Whether a request has an access line, by `log.access_sample`: each failure, and one success in `one_in`. 0: none has.
#[must_use]
pub fn has_access_line(one_in: u32, is_failure: bool) -> bool {
    one_in > 0 && (is_failure || is_sampled(one_in))
}

/// Whether a success is logged if one in `one_in` is: each thread's first one, and then every so many. Costs a few
/// instructions, and no thread waits for another. Failures are always logged, and do not count here.
fn is_sampled(one_in: u32) -> bool {
    if one_in <= 1 {
        return true;
    }
    SKIPPED.with(|skipped| {
        let before = skipped.get();
        skipped.set(if before + 1 >= one_in { 0 } else { before + 1 });
        before == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_not_sampled_away_unless_no_request_has_a_line() {
        assert!(has_access_line(1, false) && has_access_line(1_000_000, true));
        assert!(!has_access_line(0, true) && !has_access_line(0, false));
    }

    #[test]
    fn one_success_in_so_many_is_logged_also_after_a_change() {
        let logged = |one_in, of| (0..of).filter(|_| is_sampled(one_in)).count();
        assert_eq!(logged(10, 1000), 100);
        assert_eq!(logged(1, 7), 7);
        assert_eq!(logged(1_000_000, 900_000), 1);
        // The counter is above the new rate, and begins again.
        assert!((99..=100).contains(&logged(10, 1000)));
    }
}
