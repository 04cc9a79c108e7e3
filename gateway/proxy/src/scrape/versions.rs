//! When versions end, and who still uses them.

use std::fmt;

use signpost_kit::{families, metrics::Scrape};

use crate::serve::Gateway;

families! {
    SUNSET = "signpost_version_sunset_timestamp_seconds", Gauge, ["version"],
        "When a version ends, in seconds since the epoch. A version without a sunset has no sample.";
    USERS = "signpost_version_users", Gauge, ["version"],
        "The applications with requests to a version in the last 7 days, of a version that ends, by what all gateways \
         have counted. Read from the store every 5 minutes.";
}

/// Writes the families.
pub(super) fn write(gateway: &Gateway, scrape: &mut Scrape<'_>) -> fmt::Result {
    let versions = gateway.policy.backends.versions.iter();
    let sunsets = versions.filter_map(|version| {
        let sunset = version.life_cycle()?.sunset?;
        Some(([version.name().as_str()], sunset.as_millis() as f64 / 1e3))
    });
    scrape.numbers(SUNSET, sunsets)?;
    let ends = gateway.state.version_ends.load();
    let users = ends.iter().map(|end| ([end.version.as_str()], end.users));
    scrape.numbers(USERS, users)
}
