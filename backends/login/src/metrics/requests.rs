//! Requests by version, endpoint and status class, and their durations by version.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::StatusCode;
use signpost_kit::metrics::{
    cells::{Buckets, Counters, Histogram},
    labels::{STATUS_CLASSES, status_class},
};

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
    version: &'static str,
    /// The paths of its routes, and [`OTHER`] at the end.
    endpoints: Vec<&'static str>,
    /// A counter for each endpoint and status class.
    counts: Counters,
    durations: Histogram,
}

/// One of a version's endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint(usize);

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

    /// The endpoint of a path.
    pub(crate) fn endpoint(&self, path: &str) -> Endpoint {
        let other = self.endpoints.len() - 1;
        let route = self.endpoints[..other]
            .iter()
            .position(|route| *route == path);
        Endpoint(route.unwrap_or(other))
    }

    /// Counts an answered request. `duration` is without the waits of `/check`.
    pub(crate) fn count(&self, endpoint: Endpoint, status: StatusCode, duration: Duration) {
        let class = status_class(status.as_u16());
        self.counts
            .add(endpoint.0 * STATUS_CLASSES.len() + class, 1);
        self.durations.observe_duration(duration);
    }

    /// The version's name.
    pub(super) const fn version(&self) -> &'static str {
        self.version
    }

    /// The numbers of requests that are not 0: endpoint, status class, number.
    pub(super) fn counted(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        let all = self
            .endpoints
            .iter()
            .enumerate()
            .flat_map(move |(index, name)| {
                let classes = STATUS_CLASSES.iter().enumerate();
                classes.map(move |(class, class_name)| {
                    let number = self.counts.value(index * STATUS_CLASSES.len() + class);
                    (*name, *class_name, number)
                })
            });
        all.filter(|(.., number)| *number > 0)
    }

    /// The durations of all requests.
    pub(super) const fn durations(&self) -> &Histogram {
        &self.durations
    }
}
