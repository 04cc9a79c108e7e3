//! The routes of the service.

use std::sync::Arc;

use axum::{Router, extract::Request, response::Response};
use tower::ServiceExt;

use super::{
    HandlerContext, handlers, middleware,
    version::{Endpoints, EndpointsError, Views},
};
use crate::{error::LoginError, service::Service};

/// Routes with all layers around them. [`crate::router()`] creates them, [`crate::program::Program`] serves them.
///
/// This is not an axum router on purpose: a route that were added to one would run outside the layers, without the
/// check of the gateway's secret, without limits, and without an access line.
#[derive(Clone, Debug)]
pub struct Routes(Router);

impl Routes {
    /// Routes that pass each request on to the routes of one of several versions.
    ///
    /// `choose` runs outside all layers, so it does no more than that: it calls [`Self::serve`] of what it chose, and
    /// may add headers to the response.
    pub fn choosing<F, R>(choose: F) -> Self
    where
        F: FnOnce(Request) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Response> + Send + 'static,
    {
        Self(Router::new().fallback(choose))
    }

    /// Serves a request.
    pub async fn serve(self, request: Request) -> Response {
        let served = self.0.oneshot(request).await;
        served.unwrap_or_else(|never| match never {})
    }
}

/// The routes of one version: those of all versions (CONTRACT 8), and `own`, inside the same layers.
///
/// # Errors
///
/// `own` has a path of the library, or the same endpoint twice; or the version's name is invalid. The program then does
/// not start.
pub fn router<V: Views>(service: Arc<Service>, own: Endpoints) -> Result<Routes, EndpointsError> {
    let name = V::VERSION;
    let version = name
        .parse()
        .map_err(|rule| EndpointsError(format!("version {name:?}: not a name; allowed: {rule}")))?;
    own.check::<V>()?;
    let paths = shared_paths::<V>().into_iter().chain(own.paths());
    let requests = service.state.metrics.requests.of_version(name, paths);
    let context = HandlerContext { service, version };
    let api = own
        .add_to(shared::<V>().add_to(Router::new()))
        .fallback(async || LoginError::NotFound)
        .with_state(context.clone());
    let health = health().add_to(Router::new()).with_state(context.clone());
    Ok(Routes(middleware::around_everything(
        middleware::around_health(health).fallback_service(middleware::around_api(api, &context)),
        &context,
        requests,
    )))
}

/// The endpoints of all versions. CONTRACT 8.
fn shared<V: Views>() -> Endpoints {
    Endpoints::new()
        .get("/login", handlers::login::<V>)
        .post("/login", handlers::begin_polling)
        .get("/check", handlers::check::<V>)
        .post("/check", handlers::check::<V>)
        .post("/user/login", handlers::user_login::<V>)
        .post("/user/logout", handlers::user_logout)
        .get("/user", handlers::user::<V>)
        .post("/event/send", handlers::event_send)
}

/// The health endpoints, for operators.
fn health() -> Endpoints {
    Endpoints::new()
        .get("/healthz", handlers::healthz)
        .get("/readyz", handlers::readyz)
}

/// The paths that a version cannot have as its own.
fn shared_paths<V: Views>() -> Vec<&'static str> {
    let (shared, health) = (shared::<V>(), health());
    shared.paths().chain(health.paths()).collect()
}

impl Endpoints {
    /// Checks what a program checks at its start. Call it in a test of the version.
    ///
    /// # Errors
    ///
    /// The first endpoint that cannot be served.
    pub fn check<V: Views>(&self) -> Result<(), EndpointsError> {
        self.check_beside(&shared_paths::<V>())
    }
}

#[cfg(test)]
mod both_stores;
