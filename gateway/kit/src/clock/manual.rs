//! A clock for tests, which goes on when it is told to.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Clock, Timestamp, millis};

/// Stands still until it is told to go on; clones are the same clock.
#[derive(Clone, Debug)]
pub struct ManualClock {
    millis: Arc<AtomicI64>,
    begin: Instant,
}

impl ManualClock {
    /// Where it begins; any time will do.
    const BEGIN: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    /// Goes on, wall clock and instant alike.
    pub fn advance(&self, duration: Duration) {
        self.millis.fetch_add(millis(duration), Ordering::Relaxed);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self {
            millis: Arc::new(AtomicI64::new(Self::BEGIN.as_millis())),
            begin: Instant::now(),
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.load(Ordering::Relaxed))
    }

    fn instant(&self) -> Instant {
        self.begin + self.now().since(Self::BEGIN)
    }
}
