//! Replay memory, rate limits, caches.

use std::{fmt, time::Instant};

use signpost_kit::{cache::write_caches, families, metrics::Scrape};

use crate::{request::quotas::RequestLimit, serve::Gateway};

families! {
    SIGNATURES = "signpost_replay_signatures", Gauge, [],
        "Signatures in the replay memory. Expired ones count until the next request of their application.";
    SHARED = "signpost_replay_shared_total", Counter, ["outcome"],
        "Signatures that were new to the gateway, by what the replay memory of all gateways said: accepted, replayed, \
         unavailable (rejected, or with replay_fallback accepted), full (rejected: too many wait).";
    LIMITED = "signpost_rate_limited_total", Counter, ["limit"],
        "Requests rejected by a rate limit: unsigned, address, app, path, replay_memory.";
    KEYS = "signpost_rate_limit_keys", Gauge, ["limit"],
        "Keys that have used tokens: client networks, applications, or either on a path; up to 65,536 of each limit. \
         The replay memory has none.";
    BODIES = "signpost_body_bytes", Gauge, ["where"],
        "Room that bodies other than forms have taken: memory, in pieces of 64 KiB, and spool, in pieces of 1 MiB.";
}

/// Writes the families.
pub(super) fn write(gateway: &Gateway, scrape: &mut Scrape<'_>) -> fmt::Result {
    let signatures = gateway.policy.verifier.stored_signatures() as u64;
    scrape.number(SIGNATURES, Some(signatures))?;
    scrape.label_counters(SHARED, gateway.policy.verifier.shared_signatures())?;
    scrape.label_counters(LIMITED, &gateway.state.records.limited)?;
    let now = Instant::now();
    let keys = RequestLimit::RATES.map(|limit| {
        let keys = gateway.policy.rate_limits.keys_in_use(limit, now);
        ([limit.as_str()], keys as u64)
    });
    scrape.numbers(KEYS, keys)?;
    let [spool, memory] = gateway.policy.spool.taken();
    scrape.numbers(BODIES, [(["memory"], memory), (["spool"], spool)])?;
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
