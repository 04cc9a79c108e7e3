//! Reads the keys of a life cycle.

use std::time::Duration;

use serde_json::json;
use signpost_kit::{
    clock::Timestamp,
    config::{Read, Section, Value},
};
use url::Url;

use super::{
    Brownout, LifeCycle,
    dates::{parse_duration, parse_time, rfc3339},
};
use crate::config::{readers::each, version::Reading};

/// Limit of `link`, in bytes: each response of the version has it, twice if there is a sunset.
const MAX_LINK_BYTES: usize = 1024;
/// Limit of `brownouts`: each request of the version is compared with all of them.
const MAX_BROWNOUTS: usize = 64;
/// Limit of a brown-out. A longer one is an end: that is what `sunset` is for.
const MAX_BROWNOUT: Duration = Duration::from_secs(7 * 86_400);

const ALLOWED_TIME: &str =
    "a time or a date, for example \"2026-12-01T10:00:00Z\" or \"2026-12-01\" (00:00 UTC)";
const ALLOWED_BROWNOUT: &str =
    "a start and a duration of 1 s to 7 days, for example \"2026-12-01T10:00:00Z/PT1H\"";

impl LifeCycle {
    /// Reads the keys of a version or an endpoint; `None` if it has none of them, or none with an effect.
    pub(in super::super) fn read(
        section: &mut Section<'_>,
        reading: &mut Reading<'_>,
    ) -> Read<Option<Self>> {
        let deprecated = time(section, "deprecated");
        let sunset = sunset(section, deprecated.ok().flatten());
        let known_sunset = sunset.ok().flatten();
        // A sunset that is invalid is reported already.
        let has_sunset = known_sunset.is_some() || sunset.is_err();
        let is_gone = is_gone(section, has_sunset, reading);
        let link = link(section);
        let brownouts = brownouts(section, known_sunset);
        let (deprecated, sunset, brownouts) = (deprecated?, sunset?, brownouts?);
        let (is_gone, link) = (is_gone?, link?);
        if deprecated.is_none() && sunset.is_none() && brownouts.is_empty() {
            if link.is_some() {
                let why = "there is neither deprecated nor sunset nor a brown-out";
                reading.has_no_effect(section, "link", why);
            }
            return Ok(None);
        }
        let dates = [deprecated, sunset, sunset.filter(|_| is_gone)];
        Ok(Some(Self::new(dates, link, brownouts)))
    }
}

/// Reads a time, as a string or as a time of TOML.
fn time(section: &mut Section<'_>, key: &str) -> Read<Option<Timestamp>> {
    let Some(value) = section.find(key, ALLOWED_TIME) else {
        return Ok(None);
    };
    let text = value.as_time_text();
    let text = text.ok_or_else(|| value.invalid_unshown(ALLOWED_TIME))?;
    let time = parse_time(&text).ok_or_else(|| value.invalid(ALLOWED_TIME))?;
    section.set(key, rfc3339(time));
    Ok(Some(time))
}

fn sunset(section: &mut Section<'_>, deprecated: Option<Timestamp>) -> Read<Option<Timestamp>> {
    const KEY: &str = "sunset";
    let sunset = time(section, KEY)?;
    if let (Some(sunset), Some(deprecated)) = (sunset, deprecated)
        && sunset < deprecated
    {
        let early = format!("{}, which is before deprecated", rfc3339(sunset));
        let allowed = format!("{} or later", rfc3339(deprecated));
        return Err(section.problem(KEY, &early, &allowed));
    }
    Ok(sunset)
}

/// Whether requests are rejected from the sunset on.
fn is_gone(section: &mut Section<'_>, has_sunset: bool, reading: &mut Reading<'_>) -> Read<bool> {
    const KEY: &str = "after_sunset";
    let is_gone = section.choice(KEY, &[("serve", false), ("gone", true)], false)?;
    if !has_sunset && section.has(KEY) {
        if is_gone {
            return Err(section.problem(KEY, "\"gone\" without sunset", "\"gone\" with sunset"));
        }
        reading.has_no_effect(section, KEY, "there is no sunset");
    }
    Ok(is_gone)
}

fn link(section: &mut Section<'_>) -> Read<Option<Box<str>>> {
    let allowed = format!(
        "an http or https URL of at most {MAX_LINK_BYTES} bytes, without user name and password, for example \
         \"https://api.example.com/docs/v2\""
    );
    section.optional_by("link", &allowed, parse_link)
}

/// Parses a URL that can stand in `Link: <URL>`.
fn parse_link(text: &str) -> Option<Box<str>> {
    let url = Url::parse(text).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    let is_public = url.username().is_empty() && url.password().is_none();
    // A parsed URL has been percent-encoded. This does not rely on it.
    let is_quotable =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"' | b'\\');
    let text = url.as_str();
    let is_valid =
        is_web && is_public && text.len() <= MAX_LINK_BYTES && text.bytes().all(is_quotable);
    is_valid.then(|| text.into())
}

fn brownouts(section: &mut Section<'_>, sunset: Option<Timestamp>) -> Read<Vec<Brownout>> {
    const KEY: &str = "brownouts";
    let allowed = format!("a list of at most {MAX_BROWNOUTS}, each {ALLOWED_BROWNOUT}");
    let texts =
        json!({ "type": "array", "maxItems": MAX_BROWNOUTS, "items": { "type": "string" } });
    section.describe(KEY, &allowed, texts);
    let Some(value) = section.find(KEY, &allowed) else {
        section.set(KEY, "[]");
        return Ok(Vec::new());
    };
    let items = value.items();
    let items = items.ok_or_else(|| value.invalid_unshown(&allowed))?;
    if items.len() > MAX_BROWNOUTS {
        return Err(value.problem(&format!("a list of {}", items.len()), &allowed));
    }
    let mut brownouts = each(&items, |item| brownout(item, sunset))?;
    // Before they are sorted: a report names the place in the file.
    for (index, brownout) in brownouts.iter().enumerate() {
        let overlaps = |other: &Brownout| brownout.start < other.end && other.start < brownout.end;
        if let Some(other) = brownouts[..index].iter().position(overlaps) {
            let overlap = format!("one that overlaps {KEY}[{other}]");
            return Err(items[index].problem(&overlap, "brown-outs that do not overlap"));
        }
    }
    brownouts.sort_by_key(|brownout| brownout.start);
    let shown =
        |Brownout { start, end }: &Brownout| format!("{}/{}", rfc3339(*start), rfc3339(*end));
    let shown: Vec<_> = brownouts.iter().map(shown).collect();
    section.set(KEY, format!("[{}]", shown.join(", ")));
    Ok(brownouts)
}

fn brownout(value: &Value<'_>, sunset: Option<Timestamp>) -> Read<Brownout> {
    let text = value.as_str();
    let text = text.ok_or_else(|| value.invalid_unshown(ALLOWED_BROWNOUT))?;
    let brownout = parse_brownout(text).ok_or_else(|| value.invalid(ALLOWED_BROWNOUT))?;
    match sunset {
        Some(sunset) if sunset < brownout.end => {
            let late = format!("one that ends at {}", rfc3339(brownout.end));
            let allowed = format!("an end at the sunset, {}, or before", rfc3339(sunset));
            Err(value.problem(&late, &allowed))
        }
        _ => Ok(brownout),
    }
}

fn parse_brownout(text: &str) -> Option<Brownout> {
    let (start, duration) = text.split_once('/')?;
    let (start, duration) = (parse_time(start)?, parse_duration(duration)?);
    let is_allowed = !duration.is_zero() && duration <= MAX_BROWNOUT;
    // The end must be a time that can be written.
    let end = start.plus(duration);
    parse_time(&rfc3339(end))?;
    is_allowed.then_some(Brownout { start, end })
}
