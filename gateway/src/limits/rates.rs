//! The debts of all rate limits, which outlive a configuration.

use std::{sync::OnceLock, time::Instant};

use signpost_kit::limits::KeyedDebts;

use crate::request::quotas::Policy;

/// The debts of all rate limits. A table is created when it is first used.
#[derive(Debug, Default)]
pub(crate) struct RateDebts {
    addresses: OnceLock<KeyedDebts>,
    applications: OnceLock<KeyedDebts>,
    paths: OnceLock<KeyedDebts>,
}

impl RateDebts {
    /// The debts of client addresses.
    pub(crate) fn addresses(&self, now: Instant) -> &KeyedDebts {
        self.addresses.get_or_init(|| KeyedDebts::new(now))
    }

    /// The debts of applications.
    pub(crate) fn applications(&self, now: Instant) -> &KeyedDebts {
        self.applications.get_or_init(|| KeyedDebts::new(now))
    }

    /// The debts of applications and client addresses on paths.
    pub(crate) fn paths(&self, now: Instant) -> &KeyedDebts {
        self.paths.get_or_init(|| KeyedDebts::new(now))
    }

    /// The number of keys with a debt. Creates no table.
    pub(crate) fn keys_with_debt(&self, policy: Policy, now: Instant) -> usize {
        let table = match policy {
            Policy::Address => &self.addresses,
            Policy::Application => &self.applications,
            Policy::Path => &self.paths,
        };
        table.get().map_or(0, |debts| debts.keys_with_debt(now))
    }

    /// All tables.
    pub(crate) fn all(&self, now: Instant) -> [&KeyedDebts; 3] {
        [self.addresses(now), self.applications(now), self.paths(now)]
    }
}
