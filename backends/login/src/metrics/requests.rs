//! Requests by version, endpoint and status class, and their durations by version.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::StatusCode;
use signpost_kit::metrics::cells::{Buckets, Counters, Histogram, STATUS_CLASSES, status_class};

/// The endpoint of a request to a path without a route.
const OTHER: &str = "other";

/// The requests of each version of this process.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<BTreeMap<&'static str, Arc<VersionRequests>>>);

impl Requests {
    /// The counters of a version with these routes. A reload creates the same routes again, and gets the same counters.
    pub(crate) fn of_version(
        &self,
        version: &'static str,
        routes: impl IntoIterator<Item = &'static str>,
    ) -> Arc<VersionRequests> {
        let mut versions = self.lock();
        let requests = versions
            .entry(version)
            .or_insert_with(|| Arc::new(VersionRequests::new(version, routes)));
        Arc::clone(requests)
    }

    /// All versions so far.
    pub(super) fn all(&self) -> Vec<Arc<VersionRequests>> {
        self.lock().values().map(Arc::clone).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Arc<VersionRequests>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests of a version.
#[derive(Debug)]
pub(crate) struct VersionRequests {
    pub(super) version: &'static str,
    /// The paths of its routes, and [`OTHER`] at the end.
    endpoints: Vec<&'static str>,
    /// A counter for each endpoint and status class.
    counts: Counters,
    pub(super) durations: Histogram,
}

impl VersionRequests {
    fn new(version: &'static str, routes: impl IntoIterator<Item = &'static str>) -> Self {
        let routes: BTreeSet<_> = routes.into_iter().collect();
        let endpoints: Vec<_> = routes.into_iter().chain([OTHER]).collect();
        Self {
            version,
            counts: Counters::new(endpoints.len() * STATUS_CLASSES.len()),
            endpoints,
            durations: Histogram::new(Buckets::DURATION),
        }
    }

    /// The number of a path's endpoint.
    pub(crate) fn endpoint(&self, path: &str) -> usize {
        let other = self.endpoints.len() - 1;
        let mut routes = self.endpoints[..other].iter();
        routes.position(|route| *route == path).unwrap_or(other)
    }

    /// Counts an answered request. `duration` is without the waits of `/check`.
    pub(crate) fn count(&self, endpoint: usize, status: StatusCode, duration: Duration) {
        let class = status_class(status.as_u16());
        self.counts.add(endpoint * STATUS_CLASSES.len() + class, 1);
        self.durations.observe_duration(duration);
    }

    /// The numbers of requests that are not 0: endpoint, status class, number.
    pub(super) fn counted(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        let classes = STATUS_CLASSES.len();
        let number = move |index: usize| {
            let (endpoint, class) = (
                self.endpoints[index / classes],
                STATUS_CLASSES[index % classes],
            );
            (endpoint, class, self.counts.value(index))
        };
        let all = (0..self.endpoints.len() * classes).map(number);
        all.filter(|(.., number)| *number > 0)
    }
}
