//! Metrics that versions have of their own. A version makes them at its start, so their number is fixed from then on.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use signpost_kit::metrics::{
    Family, Kind, NO_LABELS, Scrape,
    cells::{self, Buckets, Counters},
};

/// What the name of every such metric begins with; no other's does.
const PREFIX: &str = "signpost_own";

/// A counter, which only grows. Clones share it.
#[derive(Clone, Debug)]
pub struct Counter {
    cells: Arc<Counters>,
    index: usize,
}

impl Counter {
    /// Adds to it. This takes a few nanoseconds.
    pub fn add(&self, amount: u64) {
        self.cells.add(self.index, amount);
    }
}

/// A histogram of durations, with buckets from 10 µs to 60 s. Clones share it.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<cells::Histogram>);

impl Histogram {
    /// Adds a duration.
    pub fn observe(&self, duration: Duration) {
        self.0.observe_duration(duration);
    }
}

/// A metric that a version cannot have.
#[derive(Debug, thiserror::Error)]
#[error("metric {name:?}: {problem}; allowed: {allowed}")]
pub struct MetricError {
    name: String,
    problem: &'static str,
    allowed: &'static str,
}

/// The metrics of all versions of a process, by their whole names.
#[derive(Debug, Default)]
pub(crate) struct OwnMetrics(Mutex<BTreeMap<String, OwnMetric>>);

#[derive(Debug)]
struct OwnMetric {
    help: &'static str,
    samples: Samples,
}

#[derive(Debug)]
pub(crate) enum Samples {
    Counter(Counter),
    /// The label, and each with its word.
    Counters(&'static str, Vec<(&'static str, Counter)>),
    Histogram(Histogram),
}

/// A counter for each word of a label; with a new histogram, what a metric of its own consists of.
pub(crate) fn counters<const N: usize>(
    label: &'static str,
    words: [&'static str; N],
) -> Result<([Counter; N], Samples), MetricError> {
    if !is_name(label) {
        return Err(refused(label, "not a label", NAME));
    }
    let all: [Counter; N] = new_counters();
    let words = words.into_iter().zip(all.clone()).collect();
    Ok((all, Samples::Counters(label, words)))
}

/// A counter without a label.
pub(crate) fn counter() -> (Counter, Samples) {
    let [counter] = new_counters();
    (counter.clone(), Samples::Counter(counter))
}

/// A histogram, which must have a name that says what it measures.
pub(crate) fn histogram(name: &str) -> Result<(Histogram, Samples), MetricError> {
    if !name.ends_with("_seconds") {
        let allowed = "a name that ends in _seconds";
        return Err(refused(name, "not the name of a histogram", allowed));
    }
    let histogram = Histogram(Arc::new(cells::Histogram::new(Buckets::DURATION)));
    Ok((histogram.clone(), Samples::Histogram(histogram)))
}

impl OwnMetrics {
    /// Adds a metric of a version.
    pub(crate) fn add<T>(
        &self,
        version: &str,
        name: &str,
        help: &'static str,
        (metric, samples): (T, Samples),
    ) -> Result<T, MetricError> {
        // The library adds that suffix to each counter's samples.
        if !is_name(name) || name.ends_with("_total") {
            return Err(refused(name, "not a name", NAME));
        }
        // A version's name can have dots and hyphens, a metric's cannot.
        let version = version.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
        let whole = format!("{PREFIX}_{version}_{name}");
        match self.lock().insert(whole, OwnMetric { help, samples }) {
            None => Ok(metric),
            Some(_) => Err(refused(name, "made twice", "once")),
        }
    }

    pub(super) fn write(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        for (name, OwnMetric { help, samples }) in &*self.lock() {
            let family = |kind, labels| Family {
                name,
                kind,
                labels,
                help,
            };
            match samples {
                Samples::Counter(counter) => {
                    scrape.number(family(Kind::Counter, &[]), Some(counter.value()))?;
                }
                Samples::Counters(label, all) => {
                    let all = all.iter().map(|(word, counter)| ([*word], counter.value()));
                    scrape.numbers(family(Kind::Counter, &[label]), all)?;
                }
                Samples::Histogram(Histogram(cells)) => {
                    let all = [(NO_LABELS, cells.observed())];
                    scrape.histogram(family(Kind::Histogram, &[]), all)?;
                }
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, OwnMetric>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counter {
    fn value(&self) -> u64 {
        self.cells.value(self.index)
    }
}

/// Counters that share their cells.
fn new_counters<const N: usize>() -> [Counter; N] {
    let cells = Arc::new(Counters::new(N));
    std::array::from_fn(|index| Counter {
        cells: Arc::clone(&cells),
        index,
    })
}

/// The names of metrics and labels.
const NAME: &str = "1 to 64 of a-z, 0-9 and _, a letter first, without _total at the end";

fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(is_allowed)
}

fn refused(name: &str, problem: &'static str, allowed: &'static str) -> MetricError {
    let name = name.to_owned();
    MetricError {
        name,
        problem,
        allowed,
    }
}
