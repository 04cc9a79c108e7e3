//! Warnings about the life cycles of versions. They depend on the time.

use signpost_kit::clock::Timestamp;
use signpost_protocol::version::Version;

use crate::config::version::{
    Versions,
    life_cycle::{LifeCycle, Stage, rfc3339},
};

impl Versions {
    /// Warnings about versions that are, at this time, at another stage than an operator may expect.
    pub(in crate::config) fn life_cycle_warnings(&self, now: Timestamp) -> Vec<String> {
        let name = self.default().name();
        let mut warnings = Vec::new();
        let what = match self.default().stage(now) {
            Stage::Current => None,
            Stage::Deprecated => {
                Some("is deprecated, and requests that name no version still go to it")
            }
            Stage::PastSunset => {
                Some("is past its sunset, and requests that name no version still go to it")
            }
            Stage::Brownout { .. } => Some(
                "has a brown-out now: requests that name no version, or an unknown one, get 503 version_brownout",
            ),
            Stage::Retired => Some(
                "is retired: requests that name no version, or an unknown one, get 410 version_retired",
            ),
        };
        warnings.extend(what.map(|what| format!("default_version: {name} {what}")));
        for version in self.iter() {
            if let Some(life_cycle) = version.life_cycle() {
                warnings.extend(warnings_of(version.name(), life_cycle, now));
            }
        }
        warnings
    }
}

fn warnings_of(name: &Version, life_cycle: &LifeCycle, now: Timestamp) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(sunset) = life_cycle.sunset
        && life_cycle.stage(now) == Stage::PastSunset
    {
        let sunset = rfc3339(sunset);
        warnings.push(format!(
            "versions.{name}.sunset: {sunset} has passed, and the version is still served: after_sunset is \"serve\""
        ));
    }
    let brownouts = life_cycle.brownouts.iter();
    let over: Vec<_> = brownouts
        .filter(|brownout| brownout.end <= now)
        .map(|brownout| rfc3339(brownout.start))
        .collect();
    if !over.is_empty() {
        let over = over.join(", ");
        warnings.push(format!(
            "versions.{name}.brownouts: over, and without effect: {over}"
        ));
    }
    warnings
}
