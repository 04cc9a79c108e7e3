//! The tests' only clock for the time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// UTC milliseconds since the epoch, as in a request's `time`.
#[must_use]
pub fn now_ms() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "this is the tests' clock")]
    let now = SystemTime::now();
    let since = now
        .duration_since(UNIX_EPOCH)
        .expect("the clock is after 1970");
    i64::try_from(since.as_millis()).expect("the year is below 292 million")
}
