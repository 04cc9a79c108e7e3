//! The spans of a sampled request: one for the request, and one below it for each step that takes time.
//!
//! They say what the access log says, and when the steps began and ended. No query, body, signature, token, code, cookie
//! or credential is in them. A request that is not sampled costs the decision.

use std::{sync::Arc, time::Instant};

use http::HeaderValue;
use signpost_kit::{
    clock::Clock,
    trace::{
        Tracer,
        context::{SpanId, TraceContext, new_span_id},
        recording::Recording,
        span::{Attributes, Kind, Span},
    },
};
use signpost_protocol::{label_enum, log_text, request_id::RequestId};
use smallvec::SmallVec;

use super::outcome::{Outcome, Times};
use crate::{
    phases::admit::Admitted,
    request::{ids::RequestIds, rejection::Rejection},
};

/// Attributes of a request's span, at most.
const MAX_ATTRIBUTES: usize = 9;

label_enum! {
    /// A step of a request that has a span of its own; the backend's is made from the outcome.
    pub(crate) enum Step {
        /// Finding the application, in the cache or in the store.
        LookUpApplication = "look up application",
        /// Checking time, signature and replay.
        Verify = "verify",
        /// Checking the credential, in the cache or in the store.
        IdentifyAccount = "identify account",
    }
}

/// What is recorded of a sampled request.
#[derive(Debug)]
pub(crate) struct RequestSpans {
    recording: Recording,
    /// The id of the backend's span, which the backend gets as its parent.
    backend: SpanId,
    /// The steps so far. The last one may not have ended.
    steps: SmallVec<[(Step, Instant, Option<Instant>); 3]>,
}

/// Whether a request is sampled: a trusted proxy decides, or a share of the ids that the gateway generates, since no client
/// can choose them.
pub(crate) fn samples(tracer: &Tracer, own: &RequestId, admitted: &Admitted<'_>) -> bool {
    let parent = parent(admitted);
    let digits = own.as_bytes().last_chunk().copied().unwrap_or_default();
    tracer.samples(parent.map(|parent| parent.is_sampled), digits)
}

impl RequestSpans {
    /// Begins the spans of a sampled request, and makes the backend's one the parent of what the backend records.
    pub(crate) fn begin(
        tracer: &Arc<Tracer>,
        id: &RequestId,
        admitted: &mut Admitted<'_>,
        ids: &RequestIds,
        clock: &dyn Clock,
    ) -> Box<Self> {
        let parent = parent(admitted);
        let trace_id = parent.map_or_else(|| ids.trace_id(id), |parent| parent.trace_id);
        let parent = parent.map(|parent| parent.span_id);
        let recording = Recording::begin(Arc::clone(tracer), trace_id, parent, clock);
        let backend = new_span_id();
        admitted.traceparent = Some(header(&recording.context(backend)));
        Box::new(Self {
            recording,
            backend,
            steps: SmallVec::new(),
        })
    }

    /// Begins a step.
    pub(crate) fn begin_step(&mut self, step: Step) {
        self.steps.push((step, Instant::now(), None));
    }

    /// Ends the last step, if it has not ended.
    pub(crate) fn end_step(&mut self) {
        if let Some((_, _, ended @ None)) = self.steps.last_mut() {
            *ended = Some(Instant::now());
        }
    }

    /// Hands the spans of a request that has ended to the exporter. `with_client`: the access log has the client's address,
    /// too.
    pub(crate) fn record(&self, outcome: &Outcome<'_>, with_client: bool) {
        let Times {
            received, ended, ..
        } = outcome.times;
        let mut spans = Vec::with_capacity(2 + self.steps.len());
        spans.push(self.request(outcome, (received, ended), with_client));
        for (step, begun, end) in &self.steps {
            let end = end.unwrap_or(ended);
            let (id, kind) = (new_span_id(), Kind::Internal);
            spans.push(self.recording.step(id, step.as_str(), kind, *begun, end));
        }
        spans.extend(self.backend(outcome, ended));
        self.recording.finish(spans);
    }

    fn request(
        &self,
        outcome: &Outcome<'_>,
        (received, ended): (Instant, Instant),
        with_client: bool,
    ) -> Span {
        let mut span = self.recording.request("request", received, ended);
        // As OpenTelemetry has it for servers: a 4xx is the client's error, not the span's.
        span.is_error = outcome.sent.status >= 500;
        let mut attributes = Attributes::with_capacity(MAX_ATTRIBUTES);
        attributes.text("http.request.method", method(outcome));
        attributes.text("url.path", log_text::path(outcome.path).into_owned());
        attributes.text(
            "signpost.request.id",
            outcome.request_id.as_str().to_owned(),
        );
        if outcome.sent.status != 0 {
            attributes.number("http.response.status_code", outcome.sent.status);
        }
        if with_client {
            attributes.text("client.address", outcome.client.to_string());
        }
        if let Some(ident) = outcome.learnt.app.and_then(|app| app.ident.as_ref()) {
            attributes.text("signpost.app", ident.as_str().to_owned());
        }
        if let Some(route) = outcome.learnt.route {
            let version = route.version.name().as_str().to_owned();
            attributes.text("signpost.version", version);
            attributes.text("signpost.version.source", route.source.as_str());
        }
        if let Some(code) = outcome.problem_code() {
            attributes.text("signpost.problem.code", code.to_owned());
        }
        span.attributes = attributes;
        span
    }

    /// The span of the backend, with all its attempts: from forwarding to the end of the response. `None` if the request was
    /// not forwarded.
    fn backend(&self, outcome: &Outcome<'_>, ended: Instant) -> Option<Span> {
        let begun = outcome.times.forwarded?;
        let (id, kind) = (self.backend, Kind::Client);
        let mut span = self.recording.step(id, "backend", kind, begun, ended);
        let attributes = &mut span.attributes;
        attributes.text("http.request.method", method(outcome));
        if let Some(route) = outcome.learnt.route {
            attributes.text("signpost.backend", route.backend().name.to_string());
        }
        if let Some(address) = outcome.sent.backend {
            attributes.text("server.address", address.ip().to_string());
            attributes.number("server.port", address.port());
        }
        match outcome.rejection {
            None => attributes.number("http.response.status_code", outcome.sent.status),
            Some(rejection) => {
                if let Some(code) = rejection.code() {
                    attributes.text("error.type", code.as_str());
                }
            }
        }
        span.is_error =
            outcome.sent.status >= 500 || outcome.rejection.and_then(Rejection::failure).is_some();
        Some(span)
    }
}

/// The span of a trusted proxy. Read again here: a connection has no room for what few requests have.
fn parent(admitted: &Admitted<'_>) -> Option<TraceContext> {
    let traceparent = admitted.traceparent.as_ref()?;
    TraceContext::parse(traceparent.as_bytes())
}

fn header(context: &TraceContext) -> HeaderValue {
    HeaderValue::from_bytes(&context.to_header()).expect("hex digits and hyphens")
}

/// GET or POST. Requests with another method are rejected before they are sampled.
fn method(outcome: &Outcome<'_>) -> &'static str {
    match outcome.method {
        b"POST" => "POST",
        _ => "GET",
    }
}
