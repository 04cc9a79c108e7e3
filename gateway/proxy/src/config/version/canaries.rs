//! Canaries: backends that serve a share of a version's or a route's requests. CONTRACT 5.

use http::{HeaderName, header::COOKIE};
use signpost_kit::{
    config::{
        Read, Section,
        shared_keys::{GATEWAY_SECRET, gateway_secret},
    },
    secret::Secret,
};
use signpost_protocol::version::Version;

use super::{Reading, backend::BackendIndex};
use crate::{
    config::{
        readers::check_unique,
        version::backend::upstream::{DefaultChecks, Upstream},
    },
    request::{Headers, is_named},
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
    /// Its share of the requests, in percent.
    pub(super) percent: u8,
    pub(super) tester: Option<Tester>,
    pub(super) upstream: Upstream,
    pub(super) secret: Option<Secret>,
}

/// The canaries of a version or a route, as the file has them.
pub(super) struct OwnCanaries {
    pub(super) sticky_by: StickyBy,
    pub(super) canaries: Vec<Canary>,
}

/// What a request has that goes to a canary whatever its share is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tester {
    /// A header's name and its value; of a cookie `Cookie`, and one of the pairs.
    name: HeaderName,
    value: Box<str>,
}

impl Tester {
    /// Whether a request with these headers is a tester's.
    pub(crate) fn matches(&self, headers: &(impl Headers + ?Sized)) -> bool {
        let is_cookie = self.name == COOKIE;
        headers.each().any(|(name, value)| {
            is_named(name, &self.name)
                && match is_cookie {
                    true => value
                        .split(|byte| *byte == b';')
                        .any(|pair| pair.trim_ascii() == self.value.as_bytes()),
                    false => value == self.value.as_bytes(),
                }
        })
    }

    fn header(text: &str) -> Option<Self> {
        let (name, value) = text.split_once(':')?;
        let name = name.parse().ok().filter(|name| *name != COOKIE)?;
        Self::new(name, value.trim())
    }

    fn cookie(text: &str) -> Option<Self> {
        let is_pair = text.contains('=') && !text.contains([';', ' ', ',']);
        is_pair.then(|| Self::new(COOKIE, text))?
    }

    fn new(name: HeaderName, value: &str) -> Option<Self> {
        let is_value = !value.is_empty() && value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        is_value.then(|| Self {
            name,
            value: value.into(),
        })
    }
}

/// How the requests of a version or a route are split among its backend and canaries.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    pub(super) sticky_by: StickyBy,
    /// Each canary: the end of its share, 0 to 100, ascending; its index.
    pub(super) canaries: Vec<(u8, BackendIndex)>,
    /// The canaries that testers reach.
    pub(super) testers: Vec<(Tester, BackendIndex)>,
}

impl Split {
    /// Who keeps to a backend.
    #[must_use]
    pub(crate) const fn sticky_by(&self) -> StickyBy {
        self.sticky_by
    }

    /// The canary whose tester sends these headers.
    pub(crate) fn tested(&self, headers: &(impl Headers + ?Sized)) -> Option<BackendIndex> {
        let mut testers = self.testers.iter();
        let found = testers.find(|(tester, _)| tester.matches(headers));
        found.map(|(_, index)| *index)
    }

    /// The canary whose share has this place, from 0 to 99. A share that grows keeps the places that it had, as long as
    /// those before it in the file do not change.
    #[must_use]
    pub(crate) fn at(&self, place: u8) -> Option<BackendIndex> {
        let mut canaries = self.canaries.iter();
        canaries
            .find(|(end, _)| place < *end)
            .map(|(_, index)| *index)
    }

    /// Whether a canary is one of these.
    pub(super) fn has(&self, index: BackendIndex) -> bool {
        self.canaries.iter().any(|(_, canary)| *canary == index)
    }

    /// Moves the indices of its canaries.
    pub(super) fn move_up(&mut self, by: usize) {
        let shares = self.canaries.iter_mut().map(|(_, index)| index);
        let testers = self.testers.iter_mut().map(|(_, index)| index);
        for index in shares.chain(testers) {
            index.move_up(by);
        }
    }

    /// The share of a canary; of none, what the canaries leave.
    pub(super) fn share(&self, index: Option<BackendIndex>) -> u8 {
        let Some(index) = index else {
            return 100 - self.canaries.last().map_or(0, |(end, _)| *end);
        };
        let mut start = 0;
        for (end, canary) in &self.canaries {
            if *canary == index {
                return end - start;
            }
            start = *end;
        }
        0
    }
}

/// Reads the canaries of a version or a route, in the order of the file, and who keeps to one.
pub(super) fn read_canaries(
    section: &mut Section<'_>,
    reading: &mut Reading<'_>,
) -> Read<OwnCanaries> {
    const KEY: &str = "canaries";
    let sticky_by = read_sticky_by(section);
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
    Ok(OwnCanaries {
        sticky_by: sticky_by?,
        canaries,
    })
}

/// Reads `sticky_by`.
pub(super) fn read_sticky_by(section: &mut Section<'_>) -> Read<StickyBy> {
    let choices = [("client", StickyBy::Client), ("app", StickyBy::App)];
    section.choice("sticky_by", &choices, StickyBy::Client)
}

fn read_canary(section: &mut Section<'_>, reading: &mut Reading<'_>) -> Read<Canary> {
    let allowed = "1 to 32 letters, digits, dots, underscores or hyphens, for example \"next\"";
    let name = section.required::<Version>("name", allowed);
    let percent = section.required_number("percent", &(0..=100));
    // A canary that is down must be noticed, since its requests then go to the version's own backend.
    let upstream = Upstream::read(section, DefaultChecks::Always, reading);
    let secret = gateway_secret(section, GATEWAY_SECRET);
    let allowed = "a header with its value, for example \"X-Canary: next\"";
    let header = section.optional_by("header", allowed, Tester::header);
    let allowed = "a cookie with its value, for example \"canary=next\"";
    let cookie = section.optional_by("cookie", allowed, Tester::cookie);
    Ok(Canary {
        name: name?.as_str().into(),
        percent: percent?,
        tester: header?.or(cookie?),
        upstream: upstream?,
        secret: secret?,
    })
}
