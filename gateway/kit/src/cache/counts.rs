//! What the metrics show of a cache.

use std::{fmt, sync::Arc};

use crate::metrics::{Scrape, cells::LabelCounters};

crate::families! {
    LOOKUPS = "signpost_cache_lookups",
        "Lookups in the cache: hit, miss (the store was asked), stale (the store was unavailable)";
    ENTRIES = "signpost_cache_entries", "Entries in the cache";
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
    scrape.counter(LOOKUPS, |add| {
        for (cache, status) in caches {
            for result in Lookup::ALL {
                let labels = [("cache", *cache), ("result", result.as_str())];
                add(&labels, status.lookups.value(result))?;
            }
        }
        Ok(())
    })?;
    scrape.gauge(ENTRIES, |add| {
        let mut caches = caches.iter();
        caches.try_for_each(|(cache, status)| add(&[("cache", cache)], status.entries))
    })
}
