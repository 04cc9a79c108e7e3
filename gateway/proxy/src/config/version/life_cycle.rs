//! The life cycle of a version: since when it is deprecated, when it ends, and when it is switched off before that.
//! CONTRACT 5.

mod dates;
mod extension;
mod read;
pub(super) mod warnings;

use std::time::Duration;

use http::{HeaderName, HeaderValue, header::LINK};
use signpost_kit::clock::Timestamp;
use signpost_protocol::header::{DEPRECATION, SUNSET};

use self::dates::{http_date, structured_date};
pub use self::{
    dates::{as_rfc3339, parse_short_duration, parse_since, rfc3339},
    extension::Extension,
};

/// When a version or one of its endpoints ends, and what its clients are told. All times are whole seconds.
#[derive(Debug)]
pub struct LifeCycle {
    /// Since when it is deprecated, or will be.
    pub deprecated: Option<Timestamp>,
    /// When it ends.
    pub sunset: Option<Timestamp>,
    /// From when on its requests are rejected: 410 `version_retired`. `None`: the sunset is an announcement.
    pub gone: Option<Timestamp>,
    /// A page about the migration: an http or https URL.
    pub link: Option<Box<str>>,
    /// Ordered, and not overlapping.
    pub brownouts: Vec<Brownout>,
    /// The header fields of each response.
    fields: Vec<(HeaderName, HeaderValue)>,
}

/// A time in which a version's requests are rejected, so that forgotten clients are noticed: 503 `version_brownout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brownout {
    /// Its first instant.
    pub start: Timestamp,
    /// The first instant after it.
    pub end: Timestamp,
}

/// Where a version is in its life cycle at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing has begun: it may have dates in the future.
    Current,
    /// It is deprecated.
    Deprecated,
    /// It is switched off for a while.
    Brownout {
        /// Time until it is served again.
        ends_in: Duration,
    },
    /// Its sunset has passed, but it is still served.
    PastSunset,
    /// Its sunset has passed: it is no longer served.
    Retired,
}

impl LifeCycle {
    fn new(
        [deprecated, sunset, gone]: [Option<Timestamp>; 3],
        link: Option<Box<str>>,
        mut brownouts: Vec<Brownout>,
    ) -> Self {
        brownouts.sort_by_key(|brownout| brownout.start);
        brownouts.dedup_by(|later, kept| {
            let overlaps = later.start < kept.end;
            if overlaps {
                kept.end = kept.end.max(later.end);
            }
            overlaps
        });
        Self {
            fields: fields(deprecated, sunset, link.as_deref()),
            deprecated,
            sunset,
            gone,
            link,
            brownouts,
        }
    }

    /// The life cycle of an endpoint of a version: the earlier one of each date, the brown-outs of both, and the endpoint's
    /// link before the version's.
    pub(super) fn within(self, version: &Self) -> Self {
        let earlier = |own: Option<Timestamp>, other| own.into_iter().chain(other).min();
        let [sunset, gone] = [(self.sunset, version.sunset), (self.gone, version.gone)]
            .map(|(own, other)| earlier(own, other));
        let deprecated = earlier(self.deprecated, version.deprecated);
        // RFC 9745 section 4: not later than the sunset.
        let deprecated = deprecated.and_then(|since| earlier(sunset, Some(since)));
        let link = self.link.or_else(|| version.link.clone());
        let brownouts = [self.brownouts, version.brownouts.clone()].concat();
        Self::new([deprecated, sunset, gone], link, brownouts)
    }

    /// The life cycle for an application that may go on until then: before, there is neither a brown-out nor a sunset.
    #[must_use]
    pub fn extended(&self, until: Timestamp) -> Self {
        let later = |time: Option<Timestamp>| time.map(|time| time.max(until));
        let dates = [self.deprecated, later(self.sunset), later(self.gone)];
        let mut brownouts = self.brownouts.clone();
        brownouts.retain(|brownout| until < brownout.end);
        for brownout in &mut brownouts {
            brownout.start = brownout.start.max(until);
        }
        Self::new(dates, self.link.clone(), brownouts)
    }

    /// Where the version or endpoint is at this time.
    #[must_use]
    pub fn stage(&self, now: Timestamp) -> Stage {
        let has_passed = |time: Option<Timestamp>| time.is_some_and(|time| now >= time);
        if has_passed(self.gone) {
            return Stage::Retired;
        }
        if let Some(end) = self.end_of_brownout(now) {
            let ends_in = end.since(now);
            return Stage::Brownout { ends_in };
        }
        if has_passed(self.sunset) {
            return Stage::PastSunset;
        }
        if has_passed(self.deprecated) {
            return Stage::Deprecated;
        }
        Stage::Current
    }

    /// When the current brown-out ends; one that begins at its end prolongs it.
    fn end_of_brownout(&self, now: Timestamp) -> Option<Timestamp> {
        let mut end = None;
        // Sorted by start: a brown-out that follows without a gap comes after the brown-out that it prolongs.
        for brownout in &self.brownouts {
            let is_current = (brownout.start..brownout.end).contains(&now);
            if is_current || end == Some(brownout.start) {
                end = Some(brownout.end);
            }
        }
        end
    }

    /// The header fields of each response: they depend on the configuration alone, not on the time.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let fields = self.fields.iter();
        fields.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
    }

    /// The names of [`Self::fields`].
    pub(crate) fn field_names(&self) -> impl Iterator<Item = &HeaderName> {
        self.fields.iter().map(|(name, _)| name)
    }

    /// Whether its fields replace this one of a backend's response. `Link` is a list: a backend's own stays.
    #[must_use]
    pub fn replaces(&self, name: &[u8]) -> bool {
        let is_it = |own: &HeaderName| name.eq_ignore_ascii_case(own.as_str().as_bytes());
        self.field_names().any(|own| own != LINK && is_it(own))
    }
}

/// The header fields of a version with these dates: RFC 9745 and RFC 8594. `link` has no characters that a field's value
/// or a quoted URL cannot have.
fn fields(
    deprecated: Option<Timestamp>,
    sunset: Option<Timestamp>,
    link: Option<&str>,
) -> Vec<(HeaderName, HeaderValue)> {
    let relation = |name: &str, link: &str| format!("<{link}>; rel=\"{name}\"; type=\"text/html\"");
    // Without a date, a link announces that there will be one.
    let relations = [
        ("deprecation", deprecated.is_some() || sunset.is_none()),
        ("sunset", sunset.is_some()),
    ];
    let links = link.map(|link| {
        let names = relations.iter().filter(|(_, is_set)| *is_set);
        let links: Vec<_> = names.map(|(name, _)| relation(name, link)).collect();
        links.join(", ")
    });
    let fields = [
        (DEPRECATION, deprecated.map(structured_date)),
        (SUNSET, sunset.map(http_date)),
        (LINK, links),
    ];
    let field = |(name, value): (HeaderName, Option<String>)| {
        let value = HeaderValue::try_from(value?).ok()?;
        Some((name, value))
    };
    fields.into_iter().filter_map(field).collect()
}

#[cfg(test)]
mod tests;
