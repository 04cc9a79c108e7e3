//! Replay memory, rate limits, caches.

use std::{fmt, time::Instant};

use signpost_kit::{
    cache::write_caches,
    metrics::{Family, Scrape},
};

use crate::{
    gateway::Gateway,
    request::quotas::{Policy, RequestLimit},
};

const SIGNATURES: Family = Family {
    name: "signpost_replay_signatures",
    help: "Signatures in the replay memory",
};
const LIMITED: Family = Family {
    name: "signpost_rate_limited",
    help: "Requests that a rate limit rejected",
};
const KEYS: Family = Family {
    name: "signpost_rate_limit_keys",
    help: "Keys with a debt",
};

/// Writes the families.
pub(super) fn write(gateway: &Gateway, scrape: &mut Scrape<'_>) -> fmt::Result {
    scrape.gauge(SIGNATURES, |add| {
        add(&[], gateway.policy.verifier.stored_signatures() as u64)
    })?;
    scrape.counter(LIMITED, |add| {
        let mut limits = RequestLimit::ALL.into_iter();
        limits.try_for_each(|limit| {
            let requests = gateway.state.records.limited.value(limit);
            add(&[("limit", limit.as_str())], requests)
        })
    })?;
    scrape.gauge(KEYS, |add| {
        let now = Instant::now();
        let unsigned = gateway.policy.limiter.as_ref();
        let unsigned = unsigned.map_or(0, |limiter| limiter.keys_with_debt(now));
        add(
            &[("limit", RequestLimit::Unsigned.as_str())],
            unsigned as u64,
        )?;
        let mut policies = [Policy::Address, Policy::Application, Policy::Path].into_iter();
        policies.try_for_each(|policy| {
            let keys = gateway.policy.rate_limits.keys_with_debt(policy, now);
            add(&[("limit", policy.as_str())], keys as u64)
        })
    })?;
    let applications = gateway.policy.apps.cache_status();
    let accounts = gateway.state.accounts.get();
    let accounts = accounts.map(|accounts| accounts.directory.cache_status());
    let caches = [("applications", applications), ("accounts", accounts)];
    let caches = caches.into_iter();
    let caches: Vec<_> = caches
        .filter_map(|(name, status)| Some((name, status?)))
        .collect();
    write_caches(scrape, &caches)
}
