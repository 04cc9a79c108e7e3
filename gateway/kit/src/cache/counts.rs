//! What the metrics show of a cache.

use std::{fmt, sync::Arc};

use crate::metrics::{Scrape, cells::LabelCounters};

crate::families! {
    LOOKUPS = "signpost_cache_lookups_total", Counter, ["cache", "result"],
        "Lookups in a cache of the store: applications; at the gateway also accounts, at the login service \
         credentials. result is hit; miss (the store was asked); or stale (the store was asked and unavailable, so \
         the old entry was used). A gateway without a store, or before its first route with accounts, has no \
         samples.";
    ENTRIES = "signpost_cache_entries", Gauge, ["cache"],
        "Entries in the cache. At the gateway, the cache applications also has unknown idents.";
}

crate::label_enum! {
    /// The result of a lookup: the label `result`.
    pub enum Lookup {
        /// A cached value was used.
        Hit = "hit",
        /// The store was asked, by this lookup or by another one that it waited for.
        Miss = "miss",
        /// The store was asked and did not answer, so the cached value was used.
        Stale = "stale",
    }
}

crate::counted_label!(Lookup);

/// A cache's lookups so far, and its entries now.
#[derive(Clone, Debug)]
pub struct CacheStatus {
    /// Lookups, by their results.
    pub lookups: Arc<LabelCounters<Lookup>>,
    /// Values in the cache, absent keys included.
    pub entries: u64,
}

/// Writes the families of a program's caches, each by its name in the label `cache`.
///
/// # Errors
///
/// Only errors of `scrape`.
pub fn write_caches(scrape: &mut Scrape<'_>, caches: &[(&str, CacheStatus)]) -> fmt::Result {
    let lookups = caches.iter().flat_map(|(cache, status)| {
        Lookup::ALL.map(|result| ([*cache, result.as_str()], status.lookups.value(result)))
    });
    scrape.numbers(LOOKUPS, lookups)?;
    let entries = caches
        .iter()
        .map(|(cache, status)| ([*cache], status.entries));
    scrape.numbers(ENTRIES, entries)
}
