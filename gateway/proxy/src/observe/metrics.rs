//! Counts requests for `/metrics`, when their responses have ended. `signpost metrics` lists what is shown.
//!
//! A request finds its cells by the number of its backend, and adds to them by index: no lock, no name, no allocation.
//! Requests by application are counted by [`usage`](super::usage).
//!
//! [`labels`] has the values of labels, and their indices.

pub(crate) mod labels;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use signpost_kit::metrics::cells::{Buckets, Counters, Histogram, Observed};

use self::labels::{CAUSES, ClassCounts, NO_SOURCE, PROBLEMS, SOURCES, STATUS_CLASSES, UNNAMED};
use super::outcome::Outcome;
use crate::{
    config::Versions, phases::verify::clock_skew::ClockSkew, request::rejection::Rejection,
};

/// The counts of all requests of the process. They outlive a configuration.
#[derive(Debug)]
pub struct RequestMetrics {
    named: Mutex<Named>,
    /// Requests that were rejected before they had a version.
    unrouted: VersionCells,
    /// The gateway's own time.
    own: Histogram,
    verification_failures: Counters,
    clock_skew: Arc<ClockSkew>,
    /// Requests of the labels in [`UNNAMED`], by class.
    unnamed: Counters,
    bridge_failures: Mutex<BridgeFailures>,
}

/// Limit of the changes whose failures are counted.
const MAX_CHANGES: usize = 1024;

/// Limit of names that no configuration has any more. Their counts stay, so that a version or backend that returns
/// continues; beyond the limit, those that were removed first are dropped.
const MAX_REMOVED: usize = 16;

/// Requests by version and by the change that did not apply: names of the configuration.
pub(crate) type BridgeFailures = BTreeMap<(String, Box<str>), u64>;

/// What the configuration names.
#[derive(Debug, Default)]
struct Named {
    versions: Registry<VersionCells>,
    backends: Registry<BackendCells>,
}

/// The requests of a version: some 12 KB for each thread, and at most 64 times that.
#[derive(Debug)]
struct VersionCells {
    /// By source, status class and problem code.
    requests: Counters,
    sources: &'static [&'static str],
    duration: Histogram,
}

/// The requests of a backend.
#[derive(Debug)]
struct BackendCells {
    /// From forwarding to the head of the backend's response.
    duration: Histogram,
    /// By the status class of the response that the client got.
    responses: Counters,
}

/// Where the requests of a configuration's versions and backends are counted, by their numbers.
#[derive(Debug)]
pub struct RequestCells {
    versions: Vec<Arc<VersionCells>>,
    backends: Vec<Arc<BackendCells>>,
}

/// Values of the labels of a number of requests: version, source, status class, problem code.
pub(crate) type RequestLabels<'l> = [&'l str; 4];

impl Default for RequestMetrics {
    fn default() -> Self {
        Self {
            named: Mutex::default(),
            unrouted: VersionCells::new(&NO_SOURCE),
            own: Histogram::new(Buckets::DURATION),
            verification_failures: Counters::new(CAUSES.len()),
            clock_skew: Arc::default(),
            unnamed: Counters::new(UNNAMED.len() * STATUS_CLASSES.len()),
            bridge_failures: Mutex::default(),
        }
    }
}

impl RequestMetrics {
    /// The cells of a configuration. Versions and backends keep the cells of earlier configurations with the same
    /// names.
    pub fn configure(&self, versions: &Versions) -> RequestCells {
        let names = || versions.iter().map(|version| version.name().to_string());
        let backends = || versions.backends().map(|backend| backend.name.to_string());
        let mut named = self.named();
        named.versions.configure(names());
        named.backends.configure(backends());
        RequestCells {
            versions: names().map(|name| named.versions.cells(&name)).collect(),
            backends: backends().map(|name| named.backends.cells(&name)).collect(),
        }
    }

    /// Counts a request whose response has ended. `cells` belong to the configuration of its route.
    pub fn count(&self, outcome: &Outcome<'_>, cells: &RequestCells) {
        let (times, learnt) = (&outcome.times, &outcome.learnt);
        let class = labels::status_class(outcome.sent.status);
        let (version, source) = match learnt.route {
            Some(route) => {
                let backend = &cells.backends[route.backend().number];
                if let Some(duration) = times.of_backend() {
                    backend.duration.observe_duration(duration);
                }
                if times.forwarded.is_some() {
                    backend.responses.add(class, 1);
                }
                (
                    &*cells.versions[route.version.number],
                    route.source as usize,
                )
            }
            None => (&self.unrouted, 0),
        };
        let problem = labels::problem(outcome.rejection, outcome.sent.problem.as_deref());
        version.requests.add(cell(source, class, problem), 1);
        version.duration.observe_duration(times.whole());
        self.own.observe_duration(times.own());
        if let Some(rejection) = outcome.rejection
            && let Some(cause) = labels::verification_failure(rejection)
        {
            self.verification_failures.add(cause, 1);
        }
        if let (Some(Rejection::BridgeFailed { change, .. }), Some(route)) =
            (outcome.rejection, learnt.route)
        {
            // By name, unlike the counts above: failures are few, and a change has no number.
            let key = (route.version.name().to_string(), change.clone());
            let mut failures = self.lock_bridge_failures();
            // Reloads can bring other names again and again.
            if failures.len() < MAX_CHANGES || failures.contains_key(&key) {
                *failures.entry(key).or_default() += 1;
            }
        }
        let unnamed = match learnt.app {
            None => 0,
            Some(app) if app.ident.is_none() => 1,
            Some(_) => return,
        };
        self.unnamed.add(unnamed * STATUS_CLASSES.len() + class, 1);
    }

    /// Calls `write` for each number of requests above 0.
    pub fn for_requests<E>(
        &self,
        mut write: impl FnMut(RequestLabels<'_>, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut write_all = |version: &str, cells: &VersionCells| {
            cells.for_requests(|[source, class, problem], count| {
                write([version, source, class, problem], count)
            })
        };
        write_all("", &self.unrouted)?;
        let versions = self.named().versions.all();
        versions
            .iter()
            .try_for_each(|(version, cells)| write_all(version, cells))
    }

    /// The durations of the requests of each version; an empty name stands for none.
    pub(crate) fn request_durations(&self) -> Vec<(Box<str>, Observed)> {
        let unrouted = ("".into(), self.unrouted.duration.observed());
        let versions = self.named().versions.all().into_iter();
        let versions = versions.map(|(version, cells)| (version, cells.duration.observed()));
        [unrouted].into_iter().chain(versions).collect()
    }

    /// The requests without an application of the store.
    pub(crate) fn unnamed(&self) -> impl Iterator<Item = (Box<str>, ClassCounts)> {
        UNNAMED.iter().enumerate().map(|(index, label)| {
            let first = index * STATUS_CLASSES.len();
            let counts = std::array::from_fn(|class| self.unnamed.value(first + class));
            ((*label).into(), counts)
        })
    }

    /// The gateway's own time.
    pub(crate) fn own_durations(&self) -> Observed {
        self.own.observed()
    }

    /// The time of each backend.
    pub(crate) fn backend_durations(&self) -> Vec<(Box<str>, Observed)> {
        let backends = self.named().backends.all().into_iter();
        backends
            .map(|(name, cells)| (name, cells.duration.observed()))
            .collect()
    }

    /// The responses of each backend.
    pub(crate) fn backend_responses(&self) -> Vec<(Box<str>, ClassCounts)> {
        let backends = self.named().backends.all().into_iter();
        backends
            .map(|(name, cells)| (name, cells.responses()))
            .collect()
    }

    /// The causes of failed verifications, and their numbers above 0.
    pub(crate) fn verification_failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |(index, cause): (usize, &&'static str)| {
            (*cause, self.verification_failures.value(index))
        };
        let causes = CAUSES.iter().enumerate().map(count);
        causes.filter(|(_, count)| *count > 0)
    }

    /// The changes that did not apply, and how often.
    pub(crate) fn bridge_failures(&self) -> BridgeFailures {
        self.lock_bridge_failures().clone()
    }

    fn lock_bridge_failures(&self) -> MutexGuard<'_, BridgeFailures> {
        self.bridge_failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The clocks of clients.
    pub(crate) const fn clock_skew(&self) -> &Arc<ClockSkew> {
        &self.clock_skew
    }

    fn named(&self) -> MutexGuard<'_, Named> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The index of a cell in [`VersionCells::requests`].
const fn cell(source: usize, class: usize, problem: usize) -> usize {
    (source * STATUS_CLASSES.len() + class) * PROBLEMS.len() + problem
}

impl VersionCells {
    fn new(sources: &'static [&'static str]) -> Self {
        Self {
            requests: Counters::new(sources.len() * STATUS_CLASSES.len() * PROBLEMS.len()),
            sources,
            duration: Histogram::new(Buckets::DURATION),
        }
    }

    fn for_requests<E>(
        &self,
        mut write: impl FnMut([&str; 3], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        for (source, source_name) in self.sources.iter().enumerate() {
            for (class, class_name) in STATUS_CLASSES.iter().enumerate() {
                for (problem, problem_name) in PROBLEMS.iter().enumerate() {
                    let count = self.requests.value(cell(source, class, problem));
                    if count > 0 {
                        write([source_name, class_name, problem_name], count)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Default for VersionCells {
    fn default() -> Self {
        Self::new(&SOURCES)
    }
}

impl Default for BackendCells {
    fn default() -> Self {
        Self {
            duration: Histogram::new(Buckets::DURATION),
            responses: Counters::new(STATUS_CLASSES.len()),
        }
    }
}

impl BackendCells {
    fn responses(&self) -> ClassCounts {
        std::array::from_fn(|class| self.responses.value(class))
    }
}

impl RequestCells {
    /// The responses of the backend with this number.
    pub(crate) fn responses(&self, backend: usize) -> ClassCounts {
        self.backends[backend].responses()
    }
}

/// The cells of each name, which keep their counts over reloads: first the removed names, the oldest first, then the
/// configuration's.
#[derive(Debug)]
struct Registry<C>(Vec<(Box<str>, Arc<C>)>);

impl<C> Default for Registry<C> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<C: Default> Registry<C> {
    /// Sets the names of the configuration.
    fn configure(&mut self, names: impl Iterator<Item = String>) {
        let mut names: BTreeSet<_> = names.map(String::into_boxed_str).collect();
        let all = std::mem::take(&mut self.0).into_iter();
        let (configured, mut removed): (Vec<_>, Vec<_>) =
            all.partition(|(name, _)| names.remove(name));
        removed.drain(..removed.len().saturating_sub(MAX_REMOVED));
        // `partition` has removed the names that have cells: what is left is new.
        let new = names.into_iter().map(|name| (name, Arc::default()));
        self.0 = removed.into_iter().chain(configured).chain(new).collect();
    }

    /// The cells of a name. One that the configuration does not have gets cells that nothing shows.
    fn cells(&self, name: &str) -> Arc<C> {
        let known = self.0.iter().find(|(known, _)| **known == *name);
        known.map_or_else(Arc::default, |(_, cells)| Arc::clone(cells))
    }

    /// All names and their cells, ordered by name.
    fn all(&self) -> Vec<(Box<str>, Arc<C>)> {
        let mut all = self.0.clone();
        all.sort_by(|(name, _), (other, _)| name.cmp(other));
        all
    }
}
