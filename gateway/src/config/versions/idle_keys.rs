//! Keys of a version that change nothing beside the others: somebody believes that they do.

use signpost_kit::config::Section;

use super::{Upstream, may_be_several};

/// What only checks use.
const OF_CHECKS: [&str; 5] = [
    "path",
    "interval_seconds",
    "timeout_seconds",
    "unhealthy_after",
    "healthy_after",
];

/// The keys of a version that may turn out to change nothing.
#[derive(Default)]
pub(super) struct IdleKeys {
    has_balance: bool,
    has_out_seconds: bool,
    is_about_checks: bool,
}

impl IdleKeys {
    /// Notes what the version's table has.
    pub(super) fn note(&mut self, version: &Section<'_>) {
        self.has_balance = version.has("balance");
    }

    /// Notes what the version's `health` table has.
    pub(super) fn note_health(&mut self, health: &Section<'_>) {
        self.has_out_seconds = health.has("out_seconds");
        self.is_about_checks = OF_CHECKS.into_iter().any(|key| health.has(key));
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
        let is_unchecked = !is_checked && self.is_about_checks;
        let found = [
            (
                is_one && self.has_balance,
                "balance",
                "there is one address",
            ),
            (
                is_one && self.has_out_seconds,
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
