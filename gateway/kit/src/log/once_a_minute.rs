//! Log lines limited to one a minute: for events that clients can cause at will.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Short enough that the line is seen, long enough that it does not flood the log.
const INTERVAL: Duration = Duration::from_secs(60);

/// Counts an event, and limits its log line to one a minute.
#[derive(Debug, Default)]
pub struct OnceAMinute(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    logged_at: Option<Instant>,
    unlogged: u64,
}

impl OnceAMinute {
    /// Creates a counter at 0.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Counted {
            logged_at: None,
            unlogged: 0,
        }))
    }

    /// Counts an event. If a line is due, returns the number of events since the last line, this one included.
    #[must_use]
    pub fn count(&self, now: Instant) -> Option<u64> {
        let mut counted = self.0.lock();
        counted.unlogged += 1;
        let is_due = counted
            .logged_at
            .is_none_or(|logged_at| now.saturating_duration_since(logged_at) >= INTERVAL);
        is_due.then(|| {
            counted.logged_at = Some(now);
            std::mem::take(&mut counted.unlogged)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_once_a_minute() {
        let now = Instant::now();
        let lines = OnceAMinute::new();
        assert_eq!(lines.count(now), Some(1));
        assert_eq!(lines.count(now), None);
        assert_eq!(lines.count(now + INTERVAL / 2), None);
        assert_eq!(lines.count(now + INTERVAL), Some(3));
        assert_eq!(lines.count(now + INTERVAL), None);
    }
}
