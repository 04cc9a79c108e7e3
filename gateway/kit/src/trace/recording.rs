//! The spans of a sampled request.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{
    Tracer,
    context::{SpanId, TraceContext, TraceId, new_span_id},
    exporter::FinishedSpans,
    span::{Attributes, Kind, Span},
};
use crate::clock::Clock;

/// A sampled request: its place in the trace, and the clock of its spans. A request that is not sampled has none.
#[derive(Debug)]
pub struct Recording {
    tracer: Arc<Tracer>,
    trace_id: TraceId,
    /// The span of the whole request.
    request: SpanId,
    /// The caller's span.
    parent: Option<SpanId>,
    /// The wall clock, read once, and the instant at which it was read.
    clock: (Duration, Instant),
}

impl Recording {
    /// Begins the spans of a request. `parent` is its caller's span, if it is trusted.
    #[must_use]
    pub fn begin(
        tracer: Arc<Tracer>,
        trace_id: TraceId,
        parent: Option<SpanId>,
        clock: &dyn Clock,
    ) -> Self {
        Self {
            tracer,
            trace_id,
            request: new_span_id(),
            parent,
            // One reading for all spans: setting the wall clock within a request moves none against the others.
            clock: (clock.since_epoch(), clock.instant()),
        }
    }

    /// The context of a call of this request, whose span is `span`.
    #[must_use]
    pub fn context(&self, span: SpanId) -> TraceContext {
        TraceContext {
            trace_id: self.trace_id,
            span_id: span,
            is_sampled: true,
        }
    }

    /// The span of the whole request.
    #[must_use]
    pub fn request(&self, name: &'static str, begun: Instant, ended: Instant) -> Span {
        Span {
            parent: self.parent,
            has_remote_parent: self.parent.is_some(),
            ..self.step(self.request, name, Kind::Server, begun, ended)
        }
    }

    /// A span below the request's span.
    #[must_use]
    pub fn step(
        &self,
        id: SpanId,
        name: &'static str,
        kind: Kind,
        begun: Instant,
        ended: Instant,
    ) -> Span {
        Span {
            id,
            parent: Some(self.request),
            has_remote_parent: false,
            name,
            kind,
            begun: self.time(begun),
            ended: self.time(ended),
            attributes: Attributes::default(),
            is_error: false,
        }
    }

    /// Hands the request's spans to the exporter; they are dropped and counted if its queue is full.
    pub fn finish(&self, spans: Vec<Span>) {
        let trace_id = self.trace_id;
        let finished = FinishedSpans { trace_id, spans };
        self.tracer.exporter.send(finished, &self.tracer.counters);
    }

    /// The wall-clock time of an instant.
    fn time(&self, instant: Instant) -> SystemTime {
        let (wall, at) = self.clock;
        // An instant may be from before the recording: one of the differences is 0.
        let later = instant.saturating_duration_since(at);
        let earlier = at.saturating_duration_since(instant);
        UNIX_EPOCH + (wall + later).saturating_sub(earlier)
    }
}
