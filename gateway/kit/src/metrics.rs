//! Metrics of a program, in the text formats of Prometheus and OpenMetrics 1.0. `conf/guides/operate.md`.
//!
//! Code that serves requests adds to [`cells`], which it alone or few threads write. Everything else is read when the
//! metrics are scraped: a source writes the families of one subject, each family in one place.
//!
//! | module | subject |
//! | --- | --- |
//! | [`cells`] | counters and histograms that many threads update without waiting for each other |
//! | [`exposition`] | the response to a scrape, in the format that the scraper asks for |
//! | [`process`] | the process and its build |
//! | [`shared`] | the list of the families that every program has |
//! | [`store`] | the store, its pool and its change feed |

pub mod cells;
pub mod exposition;
pub mod process;
pub mod shared;
pub mod store;

use std::fmt::{self, Debug};

use prometheus_client::{
    collector::Collector,
    encoding::{
        DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet,
    },
    metrics::MetricType,
    registry::Registry,
};
use serde::Serialize;

use self::cells::{Label, LabelCounters, Observed};

/// The sources of a program.
#[derive(Debug, Default)]
pub struct Metrics(Registry);

impl Metrics {
    /// Adds the source of one subject. At each scrape it writes each of its families, once, also while it has no samples.
    /// No other source may write the same families.
    #[must_use]
    pub fn with(
        mut self,
        source: impl Fn(&mut Scrape<'_>) -> fmt::Result + Send + Sync + 'static,
    ) -> Self {
        self.0.register_collector(Box::new(Source(source)));
        self
    }
}

/// What writes the metrics of one subject at each scrape.
struct Source<W>(W);

impl<W> Debug for Source<W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Source(…)")
    }
}

impl<W: Fn(&mut Scrape<'_>) -> fmt::Result + Send + Sync + 'static> Collector for Source<W> {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        (self.0)(&mut Scrape(encoder))
    }
}

/// A family: what `/metrics` and the command `metrics` say of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Family<'n> {
    /// As in Prometheus' text format, for example `signpost_requests_total`.
    pub name: &'n str,
    /// Counter, gauge, histogram or info.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// The names of its labels: each sample has a value for each.
    pub labels: &'n [&'n str],
    /// Its meaning, in whole sentences.
    #[serde(rename = "meaning")]
    pub help: &'n str,
}

crate::label_enum! {
    /// The type of a family.
    #[derive(Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Kind {
        /// A number that only grows. Its name ends in `_total`.
        Counter = "counter",
        /// A number that rises and falls.
        Gauge = "gauge",
        /// Observed values.
        Histogram = "histogram",
        /// A 1 whose labels say something: a gauge in Prometheus' text format. Its name ends in `_info`.
        Info = "info",
    }
}

/// Families of one subject.
pub type Families = &'static [Family<'static>];

/// Defines families as constants, `NAME = "name", Type, ["label", …], "help";`, and the list of them: `FAMILIES`.
#[macro_export]
macro_rules! families {
    ($($constant:ident = $name:literal, $kind:ident, $labels:tt, $help:literal;)*) => {
        $(const $constant: $crate::metrics::Family<'static> = $crate::metrics::Family {
            name: $name,
            kind: $crate::metrics::Kind::$kind,
            labels: &$labels,
            help: $help,
        };)*

        pub(crate) const FAMILIES: $crate::metrics::Families = &[$($constant),*];
    };
}

/// The labels of a family without labels.
pub const NO_LABELS: [&str; 0] = [];

/// What a scrape has collected so far.
#[derive(Debug)]
pub struct Scrape<'e>(DescriptorEncoder<'e>);

/// Each writer fails if the library cannot write the text, which does not happen in memory.
#[expect(clippy::missing_errors_doc, reason = "above, for all writers")]
impl Scrape<'_> {
    /// Writes a counter or a gauge: samples with the values of its labels.
    pub fn numbers<const N: usize, L: AsRef<str>, V: EncodeCounterValue + EncodeGaugeValue>(
        &mut self,
        family: Family<'_>,
        samples: impl IntoIterator<Item = ([L; N], V)>,
    ) -> fmt::Result {
        self.write(family, samples, |sample, value| match family.kind {
            Kind::Counter => sample.encode_counter::<NoLabelSet, V, f64>(&value, None),
            _ => sample.encode_gauge(&value),
        })
    }

    /// Writes a counter or a gauge without labels; `None` if nothing tells its value.
    pub fn number<V: EncodeCounterValue + EncodeGaugeValue>(
        &mut self,
        family: Family<'_>,
        value: Option<V>,
    ) -> fmt::Result {
        self.numbers(family, value.map(|value| (NO_LABELS, value)))
    }

    /// Writes a counter with a sample for each value of its only label.
    pub fn label_counters<L: Label>(
        &mut self,
        family: Family<'_>,
        counters: &LabelCounters<L>,
    ) -> fmt::Result {
        let values = L::VALUES.iter();
        self.numbers(
            family,
            values.map(|value| ([value.text()], counters.value(*value))),
        )
    }

    /// Writes a histogram.
    pub fn histogram<const N: usize, L: AsRef<str>>(
        &mut self,
        family: Family<'_>,
        samples: impl IntoIterator<Item = ([L; N], Observed)>,
    ) -> fmt::Result {
        self.write(family, samples, |sample, observed| {
            let (sum, count) = (observed.sum, observed.count());
            sample.encode_histogram::<NoLabelSet>(sum, count, &observed.buckets, None)
        })
    }

    /// Writes an info metric.
    pub fn info<const N: usize>(&mut self, family: Family<'_>, values: [&str; N]) -> fmt::Result {
        self.begin(family)?.encode_info(&labels(family, &values))
    }

    fn write<const N: usize, L: AsRef<str>, V>(
        &mut self,
        family: Family<'_>,
        samples: impl IntoIterator<Item = ([L; N], V)>,
        encode: impl Fn(&mut MetricEncoder<'_>, V) -> fmt::Result,
    ) -> fmt::Result {
        let mut metric = self.begin(family)?;
        samples.into_iter().try_for_each(|(values, value)| match N {
            // Without braces.
            0 => encode(&mut metric, value),
            _ => encode(&mut metric.encode_family(&labels(family, &values))?, value),
        })
    }

    fn begin<'s>(&'s mut self, family: Family<'s>) -> Result<MetricEncoder<'s>, fmt::Error> {
        let (kind, suffix) = match family.kind {
            Kind::Counter => (MetricType::Counter, "_total"),
            Kind::Gauge => (MetricType::Gauge, ""),
            Kind::Histogram => (MetricType::Histogram, ""),
            Kind::Info => (MetricType::Info, "_info"),
        };
        // The library adds the suffix.
        let name = family.name.strip_suffix(suffix).unwrap_or(family.name);
        self.0.encode_descriptor(name, family.help, None, kind)
    }
}

/// The labels of a sample with these values.
fn labels<'l, L: AsRef<str>>(family: Family<'l>, values: &'l [L]) -> Vec<(&'l str, &'l str)> {
    let names = family.labels;
    debug_assert_eq!(names.len(), values.len(), "labels of {}", family.name);
    let values = values.iter().map(AsRef::as_ref);
    names.iter().copied().zip(values).collect()
}

#[cfg(test)]
mod tests;
