//! What the metrics show of a backend beside the state of its addresses. The counts outlive a configuration, as long as
//! it has a backend of this name.

use signpost_kit::{label_enum, metrics::cells::Counters};

label_enum! {
    /// Why an attempt to get a response failed: the label `cause`.
    pub(crate) enum FailureCause {
        /// No connection was established, also because that took too long.
        Connect = "connect",
        /// The TLS handshake failed, or took too long.
        Tls = "tls",
        /// The connection was closed or reset.
        Reset = "reset",
        /// The backend did not accept the request, or did not answer, in time.
        Timeout = "timeout",
        /// The response is malformed.
        Malformed = "malformed",
    }
}

/// The other events, after the failures.
#[derive(Clone, Copy, Debug)]
enum Event {
    Ejection = FailureCause::ALL.len() as isize,
    PassedCheck,
    FailedCheck,
    Retry,
}

/// Number of causes and events.
const LENGTH: usize = Event::Retry as usize + 1;

/// What happened to one backend so far.
#[derive(Debug)]
pub(crate) struct BackendCounts(Counters);

impl Default for BackendCounts {
    fn default() -> Self {
        Self(Counters::new(LENGTH))
    }
}

impl BackendCounts {
    /// An attempt failed.
    pub(crate) fn count_failure(&self, cause: FailureCause) {
        self.0.add(cause as usize, 1);
    }

    /// A request was sent again.
    pub(crate) fn count_retry(&self) {
        self.count(Event::Retry);
    }

    /// An address was ejected.
    pub(super) fn count_ejection(&self) {
        self.count(Event::Ejection);
    }

    /// An address was checked.
    pub(super) fn count_check(&self, has_passed: bool) {
        self.count(if has_passed {
            Event::PassedCheck
        } else {
            Event::FailedCheck
        });
    }

    /// Failed attempts with this cause.
    pub(crate) fn failures(&self, cause: FailureCause) -> u64 {
        self.0.value(cause as usize)
    }

    /// Requests that were sent again, each time.
    pub(crate) fn retries(&self) -> u64 {
        self.value(Event::Retry)
    }

    /// Ejections of addresses.
    pub(crate) fn ejections(&self) -> u64 {
        self.value(Event::Ejection)
    }

    /// Health checks that passed, and those that failed.
    pub(crate) fn checks(&self) -> (u64, u64) {
        (
            self.value(Event::PassedCheck),
            self.value(Event::FailedCheck),
        )
    }

    fn count(&self, event: Event) {
        self.0.add(event as usize, 1);
    }

    fn value(&self, event: Event) -> u64 {
        self.0.value(event as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_a_number_of_its_own() {
        let counts = BackendCounts::default();
        for cause in FailureCause::ALL {
            counts.count_failure(cause);
        }
        counts.count_retry();
        counts.count_ejection();
        counts.count_check(true);
        counts.count_check(false);
        for cause in FailureCause::ALL {
            assert_eq!(counts.failures(cause), 1, "{}", cause.as_str());
        }
        assert_eq!((counts.retries(), counts.ejections()), (1, 1));
        assert_eq!(counts.checks(), (1, 1));
    }
}
