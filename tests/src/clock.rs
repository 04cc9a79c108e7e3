//! The tests' only clock for the time of day.

use std::time::{SystemTime, UNIX_EPOCH};

use time::{
    OffsetDateTime,
    format_description::well_known::{Rfc2822, Rfc3339},
};

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

/// A time as configuration files have it; `seconds` are since the epoch.
///
/// # Panics
///
/// When the year is not 0 to 9999.
#[must_use]
pub fn rfc3339(seconds: i64) -> String {
    let time = OffsetDateTime::from_unix_timestamp(seconds).expect("the time is near");
    time.format(&Rfc3339).expect("the year has four digits")
}

/// A time as HTTP's headers have it; `seconds` are since the epoch.
///
/// # Panics
///
/// When the year is not 1900 to 9999.
#[must_use]
pub fn http_date(seconds: i64) -> String {
    let time = OffsetDateTime::from_unix_timestamp(seconds).expect("the time is near");
    let date = time.format(&Rfc2822).expect("the year has four digits");
    date.replace("+0000", "GMT")
}
