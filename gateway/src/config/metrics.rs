//! What is counted for `/metrics`. CONTRACT 10.

use signpost_kit::config::{Read, Section};

/// Default of `applications`: what a dashboard can show.
const DEFAULT_APPLICATIONS: usize = 20;

/// Limit of `applications`: each has up to six samples in every scrape.
pub(crate) const MAX_LISTED: usize = 1000;

/// What is counted for `/metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetricsSettings {
    /// Whether `/metrics` is served, and requests are counted for it. Default: true.
    pub enabled: bool,
    /// Applications with counts of their own: the busiest. 0 to 1000, default 20.
    pub applications: usize,
}

impl MetricsSettings {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let enabled = section.flag("enabled", true);
        let applications = section.number("applications", 0..=MAX_LISTED, DEFAULT_APPLICATIONS);
        Ok(Self {
            enabled: enabled?,
            applications: applications?,
        })
    }
}
