//! The layers around the routes, and the reasons for their order.

mod admit;
mod measure;
mod observe;
mod render;

use std::sync::Arc;

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
};
use tower_http::catch_panic::CatchPanicLayer;

use super::{Context, handlers::hide_health};
use crate::metrics::requests::VersionRequests;

/// Wraps the endpoints of the contract and the 404 response. The last layer is the outermost.
pub(crate) fn around_api(api: Router, context: &Context) -> Router {
    api
        // Inside the check of the secret, outside the handlers: each response must wait for the request's body.
        .layer(from_fn_with_state(context.clone(), admit::buffer_body))
        // Inside the check of the secret: a trace of anyone else is ignored.
        .layer(from_fn_with_state(context.clone(), measure::trace))
        // Outside the buffering: a request that was not verified by the gateway is rejected before its body is read.
        .layer(from_fn_with_state(context.clone(), admit::require_gateway))
}

/// Wraps the health endpoints.
pub(crate) fn around_health(health: Router) -> Router {
    health.route_layer(from_fn(hide_health))
}

/// Wraps all routes. The last layer is the outermost.
pub(crate) fn around_everything(
    all: Router,
    context: &Context,
    requests: Arc<VersionRequests>,
) -> Router {
    all
        // A panic must fail its request only, not the connection with the requests that follow.
        .layer(CatchPanicLayer::custom(render::panicked))
        // Outside the panics, so that they are reported in the client's language too.
        .layer(from_fn_with_state(context.clone(), render::render_problems))
        // Outside all that respond: each request gets an id, a span and one line in the access log, also after a panic.
        .layer(from_fn_with_state(context.clone(), observe::observe))
        // Outermost: every response is counted, whichever layer wrote it.
        .layer(from_fn_with_state(requests, measure::measure))
}
