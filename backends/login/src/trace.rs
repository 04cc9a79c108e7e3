//! The spans of a sampled request: one for the request, and below it one for each call to a provider.
//!
//! The gateway decides which requests are sampled, and its span is the parent. Nothing of a trace is sent to providers.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use http::HeaderMap;
use signpost_kit::{
    clock::Clock,
    trace::{
        ServiceName, Tracer,
        context::{TraceContext, new_span_id, new_trace_id},
        recording::Recording,
        span::{Attributes, Kind, Span},
    },
};
use signpost_protocol::header::TRACEPARENT;

/// The login service, in its spans.
pub(crate) const SERVICE: ServiceName = ServiceName {
    name: "signpost-login",
    version: env!("CARGO_PKG_VERSION"),
};

/// Limit of the spans of a request below its own. A callback has two calls.
const MAX_CALLS: usize = 8;

tokio::task_local! {
    /// The trace of the request that the task works for.
    static CURRENT: Arc<RequestTrace>;
}

/// What is recorded of a sampled request. The spans are handed over when the last task that works for it is done with
/// it, also if the client has left or the handler panicked.
pub(crate) struct RequestTrace {
    recording: Recording,
    begun: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    attributes: Attributes,
    is_error: bool,
    ended: Option<Instant>,
    calls: Vec<Span>,
}

impl RequestTrace {
    /// Begins the trace of a request that has passed the check of the gateway's secret; `None` if it is not sampled.
    pub(crate) fn begin(
        tracer: &Arc<Tracer>,
        headers: &HeaderMap,
        clock: &dyn Clock,
        attributes: impl FnOnce() -> Attributes,
    ) -> Option<Arc<Self>> {
        let begun = Instant::now();
        let parent = parent(headers);
        let trace_id = parent.map_or_else(new_trace_id, |parent| parent.trace_id);
        let mut digits = [0; 16];
        hex::encode_to_slice(&trace_id[8..], &mut digits).expect("two digits a byte");
        if !tracer.samples(parent.map(|parent| parent.is_sampled), digits) {
            return None;
        }
        let parent = parent.map(|parent| parent.span_id);
        let recording = Recording::begin(Arc::clone(tracer), trace_id, parent, clock);
        Some(Arc::new(Self {
            recording,
            begun,
            state: Mutex::new(State {
                attributes: attributes(),
                ..State::default()
            }),
        }))
    }

    /// Serves the request within its trace. `outcome` returns a response's status, and the code of its problem.
    pub(crate) async fn serve<T>(
        self: Arc<Self>,
        work: impl Future<Output = T>,
        outcome: impl FnOnce(&T) -> (u16, Option<&'static str>),
    ) -> T {
        let response = CURRENT.scope(Arc::clone(&self), work).await;
        let (status, problem) = outcome(&response);
        let mut state = self.lock();
        state.attributes.number("http.response.status_code", status);
        if let Some(code) = problem {
            state.attributes.text("signpost.problem.code", code);
        }
        state.is_error = status >= 500;
        state.ended = Some(Instant::now());
        drop(state);
        response
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestTrace {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let ended = state.ended.unwrap_or_else(Instant::now);
        let mut request = self.recording.request("request", self.begun, ended);
        request.attributes = std::mem::take(&mut state.attributes);
        // A panic is answered with 500, outside of this.
        request.is_error = state.is_error || std::thread::panicking();
        let mut spans = vec![request];
        spans.append(&mut state.calls);
        self.recording.finish(spans);
    }
}

/// The gateway's span for this request, if there is one valid `traceparent`.
fn parent(headers: &HeaderMap) -> Option<TraceContext> {
    let mut given = headers.get_all(TRACEPARENT).iter();
    // Two of them are invalid by W3C Trace Context: the request then begins a trace of its own.
    let only = given.next().filter(|_| given.next().is_none())?;
    TraceContext::parse(only.as_bytes())
}

/// Makes `work` part of the current request's trace, in a task of its own.
pub(crate) fn carried<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    // A spawned task does not inherit the values of the task that spawns it.
    let current = CURRENT.try_with(Arc::clone).ok();
    async move {
        match current {
            Some(current) => CURRENT.scope(current, work).await,
            None => work.await,
        }
    }
}

/// Records a call to a provider, if the request is sampled. Its URL is not recorded, only the host.
pub(crate) async fn recorded<T, E>(
    call: &'static str,
    provider: &str,
    url: &url::Url,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    // Most requests are not sampled, and then nothing is measured.
    let Ok(current) = CURRENT.try_with(Arc::clone) else {
        return work.await;
    };
    let begun = Instant::now();
    let result = work.await;
    let (id, ended) = (new_span_id(), Instant::now());
    let recording = &current.recording;
    let mut span = recording.step(id, call, Kind::Client, begun, ended);
    span.attributes
        .text("signpost.provider", provider.to_owned());
    if let Some(host) = url.host_str() {
        span.attributes.text("server.address", host.to_owned());
    }
    if let Some(port) = url.port_or_known_default() {
        span.attributes.number("server.port", port);
    }
    span.is_error = result.is_err();
    let mut state = current.lock();
    if state.calls.len() < MAX_CALLS {
        state.calls.push(span);
    }
    result
}
