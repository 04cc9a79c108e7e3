//! What applies for a while after a reload has changed the window.

use std::time::Duration;

use signpost_protocol::sign::{SignTime, Window};

/// Limit of `sign.window_seconds`.
const MAX_WINDOW: Duration = Duration::from_secs(300);

/// A temporary rule after the window grew: requests that must not be replayed are still judged by the previous window,
/// since the replay memory may have stored their signatures for no longer than that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transition {
    /// Applies to requests with an earlier `time`.
    until: SignTime,
    window: Window,
}

impl Transition {
    /// The rule after a window is replaced at `now`, given the rule before. Requests that began with the old window are
    /// verified within `in_flight`.
    pub(super) fn after(
        before: Option<Self>,
        (window, new): (Window, Window),
        now: SignTime,
        in_flight: Duration,
    ) -> Option<Self> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let grown = (new.duration() > window.duration()).then(|| {
            // The latest `time` that may have been stored for the smaller window.
            let until = now.as_millis() + millis(in_flight) + millis(window.duration());
            Self {
                until: SignTime::from_millis(until),
                window,
            }
        });
        // Until all of these requests are too old even for the largest window.
        let lasts =
            |transition: &Self| now.as_millis() < transition.until.as_millis() + millis(MAX_WINDOW);
        match (before.filter(lasts), grown) {
            // Two reloads in a row: the smaller window, for the longer time, is right for the signatures of both.
            (Some(before), Some(grown)) if before.window.duration() < window.duration() => {
                Some(Self {
                    until: grown.until.max(before.until),
                    window: before.window,
                })
            }
            (before, grown) => grown.or(before),
        }
    }

    /// The window that applies to requests with this `time`; `None`: the configuration's.
    pub(super) fn window_of(self, time: SignTime) -> Option<Window> {
        (time < self.until).then_some(self.window)
    }
}
