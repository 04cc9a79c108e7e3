//! Traces: which requests are sampled, the spans of a sampled request, and their export to a collector.
//!
//! The rules are W3C Trace Context level 1 and OTLP over HTTP. The code that serves requests only hands
//! over finished spans; a thread of its own sends them. No request waits for it: if its queue is full, spans are dropped
//! and counted.
//!
//! | module | subject |
//! | --- | --- |
//! | [`context`] | `traceparent`: read and written |
//! | [`span`] | a finished span and its attributes |
//! | [`recording`] | the spans of a sampled request |
//! | `exporter` | the queue and the thread that exports |

pub mod context;
mod exporter;
pub mod recording;
pub mod span;

use std::{fmt, sync::Arc};

use self::exporter::Exporter;
pub use self::exporter::FLUSH_TIMEOUT;
use crate::{
    config::shared_keys::{Collector, TracingSettings},
    metrics::{Scrape, cells::LabelCounters},
};

/// The program, as its spans name it.
#[derive(Clone, Copy, Debug)]
pub struct ServiceName {
    /// `service.name`.
    pub name: &'static str,
    /// `service.version`.
    pub version: &'static str,
}

/// Decides which requests are sampled, and exports their spans, by one configuration.
#[derive(Debug)]
pub struct Tracer {
    sampler: Sampler,
    collector: Collector,
    exporter: Exporter,
    counters: Arc<SpanCounters>,
}

impl Tracer {
    /// The tracer of a configuration; `None` if that has no collector. After a reload, `before` exports for it too, if
    /// the collector is the same and its exporter is running.
    ///
    /// If the exporter cannot start, that is logged: traces are worth no outage. Without a thread there is no tracer.
    #[must_use]
    pub fn new(
        settings: &TracingSettings,
        service: ServiceName,
        counters: &Arc<SpanCounters>,
        before: Option<&Self>,
    ) -> Option<Arc<Self>> {
        let collector = settings.collector.clone()?;
        let running =
            before.filter(|before| before.collector == collector && before.exporter.is_running());
        let exporter = match running {
            Some(running) => Ok(running.exporter.clone()),
            None => Exporter::start(&collector, service, counters),
        };
        let failed = |error: &anyhow::Error| {
            tracing::error!(
                cause = %format_args!("{error:#}"),
                "no traces are exported: the exporter cannot start"
            );
        };
        Some(Arc::new(Self {
            sampler: Sampler::new(settings.sampled_per_million),
            exporter: exporter.inspect_err(failed).ok()?,
            collector,
            counters: Arc::clone(counters),
        }))
    }

    /// Whether a request is sampled. `parent` is the decision of a trusted parent, if it has one; `digits` are 16 hex
    /// digits in lower case that no client can choose, as the last ones of a generated trace id.
    #[must_use]
    pub fn samples(&self, parent: Option<bool>, digits: [u8; 16]) -> bool {
        parent.unwrap_or_else(|| self.sampler.samples(digits))
    }

    /// Exports what is queued, for at most [`FLUSH_TIMEOUT`]; blocks meanwhile.
    pub fn flush(&self) {
        self.exporter.flush();
    }
}

crate::families! {
    SPANS = "signpost_spans_total", Counter, ["result"],
        "Spans: exported; failed (the collector did not take them, or the exporter could not start); dropped (the \
         queue was full).";
}

crate::label_enum! {
    /// What became of a span: the label `result`.
    pub enum SpanResult {
        /// The collector took it.
        Exported = "exported",
        /// The collector did not take it, or the exporter could not start.
        Failed = "failed",
        /// The queue was full.
        Dropped = "dropped",
    }
}

crate::counted_label!(SpanResult);

/// Counts spans by what became of them.
pub type SpanCounters = LabelCounters<SpanResult>;

/// Writes the family.
///
/// # Errors
///
/// Only errors of `scrape`.
pub fn write_spans(scrape: &mut Scrape<'_>, spans: &SpanCounters) -> fmt::Result {
    scrape.label_counters(SPANS, spans)
}

/// A million: all requests.
const MILLION: u128 = 1_000_000;

/// The decision without a parent: samples a share of the requests, by the last digits of the trace id.
#[derive(Clone, Copy, Debug)]
struct Sampler {
    /// Digits below it are sampled. Hex digits in lower case are ordered as their numbers, so that none is decoded.
    below: [u8; 16],
    samples_all: bool,
}

impl Sampler {
    fn new(per_million: u32) -> Self {
        let below = (u128::from(per_million) << 64) / MILLION;
        let mut digits = [b'0'; 16];
        // A million gives 2^64, which is above all numbers of 16 digits.
        let samples_all = u64::try_from(below).is_err();
        let below = u64::try_from(below).unwrap_or(u64::MAX).to_be_bytes();
        hex::encode_to_slice(below, &mut digits).expect("two digits a byte");
        Self {
            below: digits,
            samples_all,
        }
    }

    /// Whether a trace whose id ends in these hex digits is sampled.
    fn samples(&self, digits: [u8; 16]) -> bool {
        u128::from_be_bytes(digits) < u128::from_be_bytes(self.below) || self.samples_all
    }
}

#[cfg(test)]
mod tests;
