//! The wall clock, read in one place. Rules take the time as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

use gateway_protocol::sign::SignTime;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// UTC now.
    fn now(&self) -> SignTime;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    fn now(&self) -> SignTime {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        SignTime::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }
}
