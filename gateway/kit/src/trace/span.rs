//! A finished span and its attributes.

use std::{
    borrow::Cow,
    time::{SystemTime, UNIX_EPOCH},
};

use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{SpanContext, Status, TraceFlags, TraceState},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::context::{SpanId, TraceId};

/// What a span describes.
pub use opentelemetry::trace::SpanKind as Kind;

/// A finished span.
#[derive(Debug)]
pub struct Span {
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) has_remote_parent: bool,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) begun: SystemTime,
    pub(super) ended: SystemTime,
    /// Its attributes. Never a query, body, signature, token, code, cookie, credential or mail address.
    pub attributes: Attributes,
    /// Whether it failed by a fault of ours or of what we called, not of the client.
    pub is_error: bool,
}

/// The attributes of a span, by the names of OpenTelemetry's conventions where they have one.
#[derive(Debug, Default)]
pub struct Attributes(Vec<KeyValue>);

impl Attributes {
    /// None, with room for some.
    #[must_use]
    pub fn with_capacity(attributes: usize) -> Self {
        Self(Vec::with_capacity(attributes))
    }

    /// Adds a text.
    pub fn text(&mut self, key: &'static str, text: impl Into<Cow<'static, str>>) {
        self.0.push(KeyValue::new(key, text.into()));
    }

    /// Adds a number.
    pub fn number(&mut self, key: &'static str, number: impl Into<i64>) {
        self.0.push(KeyValue::new(key, number.into()));
    }
}

impl Span {
    /// The span as the exporter takes it.
    pub(super) fn into_data(self, trace: TraceId, scope: &InstrumentationScope) -> SpanData {
        let status = if self.is_error {
            Status::error("")
        } else {
            Status::Unset
        };
        SpanData {
            span_context: SpanContext::new(
                opentelemetry::TraceId::from_bytes(trace),
                opentelemetry::SpanId::from_bytes(self.id),
                TraceFlags::SAMPLED,
                false,
                TraceState::NONE,
            ),
            parent_span_id: opentelemetry::SpanId::from_bytes(self.parent.unwrap_or_default()),
            parent_span_is_remote: self.has_remote_parent,
            span_kind: self.kind,
            name: Cow::Borrowed(self.name),
            start_time: self.begun.max(UNIX_EPOCH),
            end_time: self.ended.max(self.begun),
            attributes: self.attributes.0,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status,
            instrumentation_scope: scope.clone(),
        }
    }
}
