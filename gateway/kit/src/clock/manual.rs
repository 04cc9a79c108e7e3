//! A clock for tests that moves only when advanced.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Clock, Timestamp, millis};

/// A clock that moves only when advanced. Clones share the same time.
#[derive(Clone, Debug)]
pub struct ManualClock {
    millis: Arc<AtomicI64>,
    begin: Instant,
}

impl ManualClock {
    /// Initial time; an arbitrary one.
    const BEGIN: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    /// Advances wall clock and instant together.
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
