//! The canaries of a version: backends that serve a share of its requests. CONTRACT 5.

use std::net::SocketAddr;

use signpost_kit::config::{Read, Section};
use signpost_protocol::version::Version;

use crate::config::version::backend::upstream::{DefaultChecks, Upstream};

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
pub(super) struct WrittenCanary {
    /// Its name in logs.
    pub name: String,
    /// Its share of the version's requests, in percent.
    pub percent: u8,
    /// Where its requests go.
    pub upstream: Upstream,
}

/// Reads the canaries of a version, in the order of the file, and who keeps to one.
pub(super) fn read_canaries(
    section: &mut Section<'_>,
    own: &[SocketAddr],
    warnings: &mut Vec<String>,
) -> Read<(StickyBy, Vec<WrittenCanary>)> {
    const KEY: &str = "canaries";
    let choices = [("client", StickyBy::Client), ("app", StickyBy::App)];
    let is_named = section.has("sticky_by");
    let sticky_by = section.choice("sticky_by", &choices, StickyBy::Client);
    let canaries = section.tables(KEY, MAX_CANARIES, |section| {
        read_canary(section, own, warnings)
    })?;
    if is_named && !section.has(KEY) {
        let path = section.table_path();
        warnings.push(format!(
            "{path}.sticky_by has no effect: there are no canaries"
        ));
    }
    for (index, (item, canary)) in canaries.iter().enumerate() {
        if canaries[..index]
            .iter()
            .any(|(_, one)| one.name == canary.name)
        {
            let found = format!("\"{}\" twice", canary.name);
            return Err(item.problem(&found, "each name once"));
        }
    }
    let canaries: Vec<_> = canaries.into_iter().map(|(_, canary)| canary).collect();
    let all: u16 = canaries.iter().map(|one| u16::from(one.percent)).sum();
    if all > 100 {
        return Err(section.problem(
            KEY,
            &format!("{all} percent in all"),
            "at most 100 percent in all",
        ));
    }
    Ok((sticky_by?, canaries))
}

fn read_canary(
    section: &mut Section<'_>,
    own: &[SocketAddr],
    warnings: &mut Vec<String>,
) -> Read<WrittenCanary> {
    const PERCENT: &str = "percent";
    let allowed = "1 to 32 letters, digits, dots, underscores or hyphens, for example \"next\"";
    let name = section.required::<Version>("name", allowed);
    let percent = if section.has(PERCENT) {
        section.number(PERCENT, 0..=100, 0)
    } else {
        // Known, so that a misspelt key is compared with it.
        section.find(PERCENT);
        Err(section.missing(PERCENT, "a whole number from 0 to 100"))
    };
    // A canary that is down must be noticed, since its requests then go to the version's own backend.
    let upstream = Upstream::read(section, own, DefaultChecks::Always, warnings);
    Ok(WrittenCanary {
        name: name?.to_string(),
        percent: percent?,
        upstream: upstream?,
    })
}
