//! Keys of a backend that have no effect beside the others; reported as warnings.

use signpost_kit::config::Section;

use crate::config::version::backend::upstream::{Upstream, may_have_several};

/// Keys that only health checks use.
const CHECK_KEYS: [&str; 4] = [
    "path",
    "interval_seconds",
    "timeout_seconds",
    "unhealthy_after",
];

/// The keys of a backend that may turn out to have no effect.
pub(super) struct UnusedKeys {
    /// The table that has them, for example `versions.v1`.
    table: String,
    has_balance: bool,
    has_out_seconds: bool,
    has_check_keys: bool,
}

impl UnusedKeys {
    /// Records the keys of the backend's table.
    pub(super) fn new(section: &Section<'_>) -> Self {
        Self {
            table: section.table_path().to_owned(),
            has_balance: section.has("balance"),
            has_out_seconds: false,
            has_check_keys: false,
        }
    }

    /// Records the keys of the backend's `health` table.
    pub(super) fn record_health(&mut self, health: &Section<'_>) {
        self.has_out_seconds = health.has("out_seconds");
        self.has_check_keys = CHECK_KEYS.into_iter().any(|key| health.has(key));
    }

    /// One warning for each key that has no effect with this upstream.
    pub(super) fn warnings(&self, upstream: &Upstream) -> Vec<String> {
        let (is_one, is_checked) = match upstream {
            Upstream::Fixed(_) => (true, false),
            Upstream::Balanced(balancing) => {
                let is_one = !may_have_several(&balancing.addresses);
                (is_one, balancing.checks.is_some())
            }
        };
        let is_unchecked = !is_checked && self.has_check_keys;
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
                "health checks are off (active = false)",
            ),
        ];
        found
            .into_iter()
            .filter(|(is_unused, ..)| *is_unused)
            .map(|(_, key, why)| format!("{}.{key} has no effect: {why}", self.table))
            .collect()
    }
}
