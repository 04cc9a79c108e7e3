//! What this process counts of requests, logins and providers. It outlives a configuration.
//!
//! | module | subject |
//! | --- | --- |
//! | [`requests`] | requests, by version and endpoint |
//! | [`providers`] | logins and calls, by provider |
//! | [`checks`] | clients whose `/check` waits |
//! | [`own`] | what versions count of their own |
//! | [`families`] | all of it as metrics, at a scrape |
//!
//! Labels are names of versions, of their routes and of configured providers, and words of fixed lists. Nothing that a
//! client sends becomes one.

pub(crate) mod checks;
mod families;
pub(crate) mod own;
pub(crate) mod providers;
pub(crate) mod requests;

pub(crate) use self::families::FAMILIES;
use self::{checks::WaitingChecks, own::OwnMetrics, providers::Providers, requests::Requests};

/// The counters of a process.
#[derive(Debug, Default)]
pub(crate) struct LoginMetrics {
    pub(crate) requests: Requests,
    pub(crate) providers: Providers,
    pub(crate) checks: WaitingChecks,
    pub(crate) own: OwnMetrics,
}

#[cfg(test)]
mod tests;
