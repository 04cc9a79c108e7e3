//! The canaries of a version: backends that serve a share of its requests. CONTRACT 5.

use signpost_kit::{
    config::{
        Read, Section,
        shared_keys::{GATEWAY_SECRET, gateway_secret},
    },
    secret::Secret,
};
use signpost_protocol::version::Version;

use super::Reading;
use crate::config::{
    readers::check_unique,
    version::backend::upstream::{DefaultChecks, Upstream},
};

/// Limit of `[[versions.NAME.canaries]]`.
const MAX_CANARIES: usize = 16;

/// Who always gets the same backend of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StickyBy {
    /// A client, by its address: IPv4, or IPv6 /64.
    Client,
    /// An application. A callback, which has none, counts by its client.
    App,
}

/// A canary as the file has it.
pub(super) struct Canary {
    /// Its name in logs.
    pub(super) name: Box<str>,
    /// Its share of the version's requests, in percent.
    pub(super) percent: u8,
    pub(super) upstream: Upstream,
    pub(super) secret: Option<Secret>,
}

/// Reads the canaries of a version, in the order of the file, and who keeps to one.
pub(super) fn read_canaries(
    section: &mut Section<'_>,
    reading: &mut Reading<'_>,
) -> Read<(StickyBy, Vec<Canary>)> {
    const KEY: &str = "canaries";
    let choices = [("client", StickyBy::Client), ("app", StickyBy::App)];
    let sticky_by = section.choice("sticky_by", &choices, StickyBy::Client);
    let canaries = section.tables(KEY, MAX_CANARIES, |section| read_canary(section, reading))?;
    if section.has("sticky_by") && !section.has(KEY) {
        reading.has_no_effect(section, "sticky_by", "there are no canaries");
    }
    let names = canaries.iter().map(|(value, canary)| (value, &canary.name));
    check_unique(names, "each name once")?;
    let canaries: Vec<_> = canaries.into_iter().map(|(_, canary)| canary).collect();
    // Three canaries of 100 percent are more than `u8` holds.
    let sum: u16 = canaries
        .iter()
        .map(|canary| u16::from(canary.percent))
        .sum();
    if sum > 100 {
        let total = format!("{sum} percent in all");
        return Err(section.problem(KEY, &total, "at most 100 percent in all"));
    }
    Ok((sticky_by?, canaries))
}

fn read_canary(section: &mut Section<'_>, reading: &mut Reading<'_>) -> Read<Canary> {
    let allowed = "1 to 32 letters, digits, dots, underscores or hyphens, for example \"next\"";
    let name = section.required::<Version>("name", allowed);
    let percent = section.required_number("percent", &(0..=100));
    // A canary that is down must be noticed, since its requests then go to the version's own backend.
    let upstream = Upstream::read(section, DefaultChecks::Always, reading);
    let secret = gateway_secret(section, GATEWAY_SECRET);
    Ok(Canary {
        name: name?.as_str().into(),
        percent: percent?,
        upstream: upstream?,
        secret: secret?,
    })
}
