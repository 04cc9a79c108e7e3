//! The caches of the store, as metrics. conf/observe/README.md describes each family.

use std::{fmt, sync::Arc};

use signpost_kit::{
    cache::write_caches,
    metrics::{Scrape, Source},
};

use crate::service::State;

/// Writes the state of the caches as metrics.
pub(crate) struct CacheMetrics(pub(crate) Arc<State>);

impl Source for CacheMetrics {
    fn write(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        let applications = self.0.applications.cache_status();
        let credentials = self.0.credentials.cache_status();
        let caches = [("applications", applications), ("credentials", credentials)];
        write_caches(scrape, &caches)
    }
}

impl fmt::Debug for CacheMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CacheMetrics").finish_non_exhaustive()
    }
}
