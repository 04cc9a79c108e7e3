//! How the addresses of a version's backend are checked.

use std::time::Duration;

use http::uri::PathAndQuery;
use signpost_kit::config::{Read, Section};

const ALLOWED_PATH: &str =
    "a path as it goes over the wire, and perhaps a query, for example \"/healthz\"";

/// How addresses are checked: each by a GET, which a healthy backend answers 200.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HealthChecks {
    /// What is asked for: a path, and perhaps a query. Default `/healthz`.
    pub path: PathAndQuery,
    /// From the beginning of one check to that of the next. 1 s to 3600 s, default 2 s.
    pub interval: Duration,
    /// A check that takes longer has failed. 1 s to 60 s, default 1 s.
    pub timeout: Duration,
    /// So many failed checks in a row take an address out. 1 to 100, default 3.
    pub unhealthy_after: usize,
    /// So many in a row that did not fail bring it back. 1 to 100, default 1.
    pub healthy_after: usize,
}

impl HealthChecks {
    /// The checks, if there are any: by default if they are `wanted`.
    pub(super) fn read(section: &mut Section<'_>, wanted: bool) -> Read<Option<Self>> {
        let is_active = section.flag("active", wanted);
        let path = section.parsed_by("path", "/healthz", ALLOWED_PATH, path);
        let interval = section.seconds("interval_seconds", 1..=3600, 2);
        let timeout = section.seconds("timeout_seconds", 1..=60, 1);
        let unhealthy_after = section.number("unhealthy_after", 1..=100, 3);
        let healthy_after = section.number("healthy_after", 1..=100, 1);
        let checks = Self {
            path: path?,
            interval: interval?,
            timeout: timeout?,
            unhealthy_after: unhealthy_after?,
            healthy_after: healthy_after?,
        };
        Ok(is_active?.then_some(checks))
    }
}

/// What can be asked for: a path, and perhaps a query (RFC 9112 section 3.2.1).
fn path(text: &str) -> Option<PathAndQuery> {
    let is_path = text.starts_with('/')
        && text.len() <= 1024
        && text.bytes().all(|byte| {
            byte.is_ascii_graphic() && !matches!(byte, b'#' | b'"' | b'<' | b'>' | b'\\')
        });
    let parsed: PathAndQuery = text.parse().ok().filter(|_| is_path)?;
    // It must be asked for as it is written.
    (parsed.as_str() == text).then_some(parsed)
}
