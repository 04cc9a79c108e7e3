//! Replay memory, rate limits, caches.

use std::{fmt, time::Instant};

use signpost_kit::{cache::write_caches, families, metrics::Scrape};

use crate::{request::quotas::RequestLimit, serve::Gateway};

families! {
    SIGNATURES = "signpost_replay_signatures", "Signatures in the replay memory";
    LIMITED = "signpost_rate_limited", "Requests that a rate limit rejected";
    KEYS = "signpost_rate_limit_keys", "Keys that have used tokens";
}

/// Writes the families.
pub(super) fn write(gateway: &Gateway, scrape: &mut Scrape<'_>) -> fmt::Result {
    scrape.gauge(SIGNATURES, |add| {
        add(&[], gateway.policy.verifier.stored_signatures() as u64)
    })?;
    scrape.label_counters(LIMITED, "limit", &gateway.state.records.limited)?;
    scrape.gauge(KEYS, |add| {
        let now = Instant::now();
        let mut limits = RequestLimit::RATES.into_iter();
        limits.try_for_each(|limit| {
            let keys = gateway.policy.rate_limits.keys_in_use(limit, now);
            add(&[("limit", limit.as_str())], keys as u64)
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
