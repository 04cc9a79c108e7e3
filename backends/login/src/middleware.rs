//! Every layer around the routes, in order, and why it stands there.

mod hide_health;
mod observe;
mod render;
mod require_gateway;
mod take_body;

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
};
use tower_http::catch_panic::CatchPanicLayer;

use crate::service::Serving;

/// Around the contract's routes, and what is not found among them; read from the bottom, too.
pub(crate) fn around_api(api: Router, serving: &Serving) -> Router {
    api
        // Before anything is answered: an answer must not overtake the request's body.
        .layer(from_fn_with_state(serving.clone(), take_body::take_body))
        // Before any of the body is read: what does not come from the gateway was not verified.
        .layer(from_fn_with_state(
            serving.clone(),
            require_gateway::require_gateway,
        ))
}

/// Around the routes for whoever runs the service.
pub(crate) fn around_health(health: Router) -> Router {
    health.route_layer(from_fn(hide_health::hide_health))
}

/// Around everything; read from the bottom, which is outermost.
pub(crate) fn around_everything(all: Router, serving: &Serving) -> Router {
    all
        // A bug in one request must not take its connection, with other requests, along.
        .layer(CatchPanicLayer::custom(render::panicked))
        // Around the panics, so that they are answered in the caller's language too.
        .layer(from_fn(render::render_problems))
        // Outermost: every request has an id, a span and its one access line, whatever happens inside.
        .layer(from_fn_with_state(serving.clone(), observe::observe))
}
