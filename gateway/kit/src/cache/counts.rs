//! What the metrics show of a cache.

use std::fmt;

use crate::metrics::{Scrape, cells::Counters};

crate::families! {
    LOOKUPS = "signpost_cache_lookups",
        "Lookups in the cache: hit, miss (the store was asked), stale (the store was unavailable)";
    ENTRIES = "signpost_cache_entries", "Entries in the cache";
}

/// The result of a lookup, as the metrics show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// A cached value was used.
    Hit,
    /// The store was asked, by this lookup or by another one that it waited for.
    Miss,
    /// The store was asked and did not answer, so the cached value was used.
    Stale,
}

/// Lookups so far, by their results.
#[derive(Debug)]
pub(super) struct LookupCounts(Counters);

impl Default for LookupCounts {
    fn default() -> Self {
        Self(Counters::new(3))
    }
}

impl LookupCounts {
    /// Counts a lookup.
    pub(super) fn count(&self, lookup: Lookup) {
        self.0.add(lookup as usize, 1);
    }

    fn value(&self, lookup: Lookup) -> u64 {
        self.0.value(lookup as usize)
    }

    /// The counts, beside this number of entries.
    pub(super) fn status(&self, entries: u64) -> CacheStatus {
        CacheStatus {
            hits: self.value(Lookup::Hit),
            misses: self.value(Lookup::Miss),
            stale: self.value(Lookup::Stale),
            entries,
        }
    }
}

/// A cache's lookups so far, and its entries now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStatus {
    /// Lookups that a cached value answered.
    pub hits: u64,
    /// Lookups for which the store was asked.
    pub misses: u64,
    /// Lookups that an old value answered, because the store did not.
    pub stale: u64,
    /// Values in the cache, absent keys included.
    pub entries: u64,
}

/// Writes the families of a program's caches, each by its name in the label `cache`.
///
/// # Errors
///
/// Those of `scrape`.
pub fn write_caches(scrape: &mut Scrape<'_>, caches: &[(&str, CacheStatus)]) -> fmt::Result {
    scrape.counter(LOOKUPS, |add| {
        for (cache, status) in caches {
            for (result, value) in [
                ("hit", status.hits),
                ("miss", status.misses),
                ("stale", status.stale),
            ] {
                add(&[("cache", cache), ("result", result)], value)?;
            }
        }
        Ok(())
    })?;
    scrape.gauge(ENTRIES, |add| {
        let mut caches = caches.iter();
        caches.try_for_each(|(cache, status)| add(&[("cache", cache)], status.entries))
    })
}
