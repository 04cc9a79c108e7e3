//! Metrics of traces: spans by what became of them.

use std::{fmt, sync::Arc};

use super::{Family, Scrape, Source};
use crate::trace::{SpanCounters, SpanResult};

const SPANS: Family = Family {
    name: "signpost_spans",
    help: "Spans that were exported, that the collector did not take, or that were dropped since the queue was full",
};

/// The spans of a program.
#[derive(Debug)]
pub struct SpanMetrics(pub Arc<SpanCounters>);

impl Source for SpanMetrics {
    fn write(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        scrape.counter(SPANS, |sample| {
            SpanResult::ALL
                .into_iter()
                .try_for_each(|result| sample(&[("result", result.as_str())], self.0.value(result)))
        })
    }
}
