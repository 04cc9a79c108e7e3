//! The routes of the service.

use std::{collections::BTreeSet, sync::Arc};

use axum::{Router, body::Bytes, extract::Request, response::Response};
use serde_json::Value;
use signpost_protocol::version::Version as VersionName;
use tower::ServiceExt;

use super::{
    Context, Endpoints, HandlerContext, Own, Version,
    document::document,
    endpoints::EndpointsError,
    handlers::{self, described},
    middleware,
};
use crate::{config::Config, service::Service};

/// The routes of a version, or of several, with all layers around them.
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

/// The routes of one version: the shared ones (CONTRACT 8), and its own, inside the same layers.
///
/// # Errors
///
/// An endpoint of its own has a path of the library, or is there twice; two of its responses have the same name in the document;
/// or the version's name is invalid. The program then does not start.
pub(super) fn router<V: Version>(
    service: Arc<Service>,
    own: Own<V>,
    endpoints: Endpoints<V>,
) -> Result<Routes, EndpointsError> {
    check::<V>(&endpoints)?;
    let paths = shared_paths::<V>().into_iter().chain(endpoints.paths());
    let requests = service.state.metrics.requests.of_version(V::NAME, paths);
    // Wrong names end the start: the gateway could not route to them.
    let version = name_of::<V>()?;
    let api_paths = of_all_versions::<V>();
    let mut document = document(&service.config, &of_all_versions(), &endpoints)?;
    let document_by_name = Bytes::from(document.to_string());
    document["components"]["parameters"]["Version"]["required"] = false.into();
    let shared = Context {
        paths: api_paths.paths().chain(endpoints.paths()).collect(),
        document: Bytes::from(document.to_string()),
        document_by_name,
        service,
        version,
    };
    let context = HandlerContext {
        shared: shared.clone(),
        own,
    };
    let api = endpoints
        .add_to(of_all_versions().add_to(Router::new()))
        .fallback(handlers::not_found)
        .with_state(context.clone());
    let health = health().add_to(Router::new()).with_state(context);
    Ok(Routes(middleware::around_everything(
        // Health stands beside the API and not in it: what checks it has no secret of the gateway.
        middleware::around_health(health).fallback_service(middleware::around_api(api, &shared)),
        &shared,
        requests,
    )))
}

/// The document of a version under this configuration, and the routes that it must describe, for example `GET /user`.
pub(crate) fn document_and_routes<V: Version>(
    config: &Config,
) -> Result<(Value, BTreeSet<String>), EndpointsError> {
    let (shared, own) = (of_all_versions::<V>(), V::endpoints());
    let routes = shared.routes().chain(own.routes());
    let routes = routes.map(|(method, path)| format!("{method} {path}"));
    Ok((document(config, &shared, &own)?, routes.collect()))
}

/// The endpoints of all versions. CONTRACT 8.
fn of_all_versions<V: Version>() -> Endpoints<V> {
    Endpoints::new()
        .get("/login", handlers::login::<V>)
        .described(described::login::<V>())
        .post("/login", handlers::begin_polling::<V>)
        .described(described::begin_polling::<V>())
        .get("/check", handlers::check::<V>)
        .described(described::check::<V>())
        .post("/check", handlers::check::<V>)
        .described(described::check::<V>())
        .post("/user/login", handlers::user_login::<V>)
        .described(described::user_login::<V>())
        .post("/user/renew", handlers::user_renew::<V>)
        .described(described::user_renew::<V>())
        .post("/user/logout", handlers::user_logout::<V>)
        .described(described::user_logout::<V>())
        .get("/user", handlers::user::<V>)
        .described(described::user::<V>())
        .post("/event/send", handlers::event_send::<V>)
        .described(described::event_send::<V>())
        .get("/openapi.json", handlers::openapi)
        .described(described::openapi())
}

/// The health endpoints, for operators.
fn health<V: Version>() -> Endpoints<V> {
    Endpoints::new()
        .get("/healthz", handlers::healthz)
        .head("/healthz", handlers::healthz)
        .get("/readyz", handlers::readyz)
        .head("/readyz", handlers::readyz)
}

/// The paths that a version cannot have as its own.
fn shared_paths<V: Version>() -> Vec<&'static str> {
    let (shared, health) = (of_all_versions::<V>(), health::<V>());
    shared.paths().chain(health.paths()).collect()
}

/// The parsed name of a version.
pub(super) fn name_of<V: Version>() -> Result<VersionName, EndpointsError> {
    let name = V::NAME;
    let parsed = name.parse();
    parsed.map_err(|rule| EndpointsError(format!("version {name:?}: not a name; allowed: {rule}")))
}

/// Checks that endpoints of a version's own can be served.
pub(super) fn check<V: Version>(own: &Endpoints<V>) -> Result<(), EndpointsError> {
    own.check_beside(&shared_paths::<V>())
}

#[cfg(test)]
mod both_stores;
