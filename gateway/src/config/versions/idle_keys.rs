//! Keys of a version that change nothing beside the others: somebody believes that they do.

use super::{Upstream, may_be_several};
use crate::config::table::Section;

/// What only checks ask for.
const OF_CHECKS: [&str; 5] = [
    "path",
    "interval_seconds",
    "timeout_seconds",
    "unhealthy_after",
    "healthy_after",
];

/// The keys of a version that may turn out to change nothing.
pub(super) struct IdleKeys {
    has_balance: bool,
    /// Those under `health`.
    health: Vec<String>,
}

impl IdleKeys {
    /// Those in the version's table, of which nothing was taken yet.
    pub(super) fn of(section: &Section<'_>) -> Self {
        Self {
            has_balance: section.has("balance"),
            health: section.keys_of("health"),
        }
    }

    /// Those that change nothing for such an upstream, each in words.
    pub(super) fn beside(&self, upstream: &Upstream, version: &str) -> Vec<String> {
        let (is_one, is_checked) = match upstream {
            Upstream::Fixed(_) => (true, false),
            Upstream::Balanced(balancing) => {
                let is_one = !may_be_several(&balancing.addresses);
                (is_one, balancing.checks.is_some())
            }
        };
        let has = |key: &str| self.health.iter().any(|found| found == key);
        let is_unchecked = !is_checked && OF_CHECKS.into_iter().any(has);
        let found = [
            (
                is_one && self.has_balance,
                "balance",
                "there is one address",
            ),
            (
                is_one && has("out_seconds"),
                "health.out_seconds",
                "there is one address, which is always tried",
            ),
            (
                is_unchecked,
                "health",
                "it says how addresses are checked, but active = false",
            ),
        ];
        found
            .into_iter()
            .filter(|(is_idle, ..)| *is_idle)
            .map(|(_, key, why)| format!("versions.{version}.{key} changes nothing: {why}"))
            .collect()
    }
}
