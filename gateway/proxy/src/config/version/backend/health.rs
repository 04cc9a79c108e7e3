//! Settings of health checks.

use std::time::Duration;

use http::uri::PathAndQuery;
use signpost_kit::{
    config::{Read, Section},
    read_all,
};

const ALLOWED_PATH: &str =
    "a percent-encoded path, optionally with a query, for example \"/healthz\"";

/// Health checks: a GET to each address, which a healthy backend answers with 200.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthChecks {
    /// Path, optionally with a query.
    pub path: PathAndQuery,
    /// From the start of one check to the start of the next.
    pub interval: Duration,
    /// Timeout of a check.
    pub timeout: Duration,
    /// Consecutive failed checks that make an address unhealthy.
    pub unhealthy_after: usize,
}

impl HealthChecks {
    /// Reads the settings; `None` if checks are off. `default` is the default of `active`.
    pub(super) fn read(section: &mut Section<'_>, default: bool) -> Read<Option<Self>> {
        let is_active = section.flag("active", default);
        let checks = read_all!(Self {
            path: section.parsed_by("path", "/healthz", ALLOWED_PATH, path),
            interval: section.seconds("interval_seconds", 1..=3600, 2),
            timeout: section.seconds("timeout_seconds", 1..=60, 1),
            unhealthy_after: section.number("unhealthy_after", 1..=100, 3),
        });
        Ok(is_active?.then_some(checks?))
    }
}

/// Parses a request target in origin form: a path, optionally with a query (RFC 9112 section 3.2.1).
fn path(text: &str) -> Option<PathAndQuery> {
    let is_path = text.starts_with('/')
        && text.len() <= 1024
        && text.bytes().all(|byte| {
            byte.is_ascii_graphic() && !matches!(byte, b'#' | b'"' | b'<' | b'>' | b'\\')
        });
    let parsed: PathAndQuery = text.parse().ok().filter(|_| is_path)?;
    // The parser may normalize; the check must request exactly what is configured.
    (parsed.as_str() == text).then_some(parsed)
}
