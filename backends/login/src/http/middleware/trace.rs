//! Records the spans of a sampled request. Off by default; then it costs a branch.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};

use super::render::Unrendered;
use crate::{
    service::HandlerContext,
    trace::{RequestTrace, TraceOutcome},
};

/// Serves a request within its trace, if it is sampled.
pub(super) async fn trace(
    State(context): State<HandlerContext>,
    request: Request,
    next: Next,
) -> Response {
    let tracer = context.service.tracer.as_ref();
    let begun = tracer.and_then(|tracer| RequestTrace::begin(tracer, &request, &context));
    match begun {
        Some(begun) => begun.serve(next.run(request), outcome).await,
        None => next.run(request).await,
    }
}

fn outcome(response: &Response) -> TraceOutcome {
    let problem = response.extensions().get::<Unrendered>();
    TraceOutcome {
        status: response.status().as_u16(),
        problem: problem.map(|Unrendered(error)| error.code()),
    }
}
