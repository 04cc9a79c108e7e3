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
//! | [`store`] | the store, its pool and its change feed |

pub mod cells;
pub mod exposition;
pub mod process;
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

/// A family: its name without the suffixes of its type, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family<'n> {
    /// For example `signpost_requests`; a counter's samples end in `_total`, which the writer adds.
    pub name: &'n str,
    /// One sentence, for `# HELP`.
    pub help: &'n str,
}

/// Defines families as constants: `NAME = "name", "help";`.
#[macro_export]
macro_rules! families {
    ($($constant:ident = $name:literal, $help:literal;)*) => {
        $(const $constant: $crate::metrics::Family<'static> = $crate::metrics::Family {
            name: $name,
            help: $help,
        };)*
    };
}

/// Names and values of a sample's labels, in the order of its family.
pub type Labels<'l> = &'l [(&'static str, &'l str)];

/// What a scrape has collected so far.
#[derive(Debug)]
pub struct Scrape<'e>(DescriptorEncoder<'e>);

impl Scrape<'_> {
    /// Writes a counter. `samples` calls its argument once for each sample.
    ///
    /// # Errors
    ///
    /// The library cannot write the text, which does not happen in memory.
    pub fn counter<V: EncodeCounterValue>(
        &mut self,
        family: Family<'_>,
        samples: impl FnOnce(&mut dyn FnMut(Labels<'_>, V) -> fmt::Result) -> fmt::Result,
    ) -> fmt::Result {
        let mut metric = self.begin(family, MetricType::Counter)?;
        samples(&mut |labels, value| {
            write_sample(&mut metric, labels, |sample| {
                sample.encode_counter::<NoLabelSet, V, f64>(&value, None)
            })
        })
    }

    /// Writes a counter with a sample for each value of its only label.
    ///
    /// # Errors
    ///
    /// As [`Self::counter`].
    pub fn label_counters<L: Label>(
        &mut self,
        family: Family<'_>,
        label: &'static str,
        counters: &LabelCounters<L>,
    ) -> fmt::Result {
        self.counter(family, |add| {
            let mut values = L::VALUES.iter();
            values.try_for_each(|value| add(&[(label, value.text())], counters.value(*value)))
        })
    }

    /// Writes a gauge, likewise.
    ///
    /// # Errors
    ///
    /// As [`Self::counter`].
    pub fn gauge<V: EncodeGaugeValue>(
        &mut self,
        family: Family<'_>,
        samples: impl FnOnce(&mut dyn FnMut(Labels<'_>, V) -> fmt::Result) -> fmt::Result,
    ) -> fmt::Result {
        let mut metric = self.begin(family, MetricType::Gauge)?;
        samples(&mut |labels, value| {
            write_sample(&mut metric, labels, |sample| sample.encode_gauge(&value))
        })
    }

    /// Writes a histogram, likewise.
    ///
    /// # Errors
    ///
    /// As [`Self::counter`].
    pub fn histogram(
        &mut self,
        family: Family<'_>,
        samples: impl FnOnce(&mut dyn FnMut(Labels<'_>, &Observed) -> fmt::Result) -> fmt::Result,
    ) -> fmt::Result {
        let mut metric = self.begin(family, MetricType::Histogram)?;
        samples(&mut |labels, observed| {
            let (sum, count) = (observed.sum, observed.count());
            write_sample(&mut metric, labels, |sample| {
                sample.encode_histogram::<NoLabelSet>(sum, count, &observed.buckets, None)
            })
        })
    }

    /// Writes an info metric: a sample of value 1 whose labels say something.
    ///
    /// # Errors
    ///
    /// As [`Self::counter`].
    pub fn info(&mut self, family: Family<'_>, labels: Labels<'_>) -> fmt::Result {
        self.begin(family, MetricType::Info)?.encode_info(&labels)
    }

    fn begin<'s>(
        &'s mut self,
        Family { name, help }: Family<'s>,
        metric_type: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, metric_type)
    }
}

/// Writes a sample by `encode`. Without labels, it has no braces either.
fn write_sample(
    metric: &mut MetricEncoder<'_>,
    labels: Labels<'_>,
    encode: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    if labels.is_empty() {
        encode(metric)
    } else {
        encode(&mut metric.encode_family(&labels)?)
    }
}

#[cfg(test)]
mod tests;
