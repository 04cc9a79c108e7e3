//! The routes of the service.

use std::sync::Arc;

use axum::{
    Router,
    handler::Handler,
    routing::{MethodRouter, get, post},
};
use http::header::ALLOW;

use crate::{
    error::LoginError,
    http::{
        endpoints::{Endpoints, EndpointsError},
        handlers, middleware,
        routes::Routes,
        views::Views,
    },
    service::{HandlerContext, Service},
};

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
        .map_err(|rule| EndpointsError::Version { name, rule })?;
    own.check::<V>()?;
    let paths = shared_paths::<V>().into_iter().chain(own.paths());
    let requests = service.state.metrics.requests.of_version(name, paths);
    let context = HandlerContext { service, version };
    let api = own
        .add_to(add(Router::new(), shared::<V>()))
        .fallback(async || LoginError::NotFound)
        .with_state(context.clone());
    let health = add(Router::new(), health()).with_state(context.clone());
    Ok(Routes::new(middleware::around_everything(
        middleware::around_health(health).fallback_service(middleware::around_api(api, &context)),
        &context,
        requests,
    )))
}

type Route = (&'static str, MethodRouter<HandlerContext>);

/// The endpoints of every version.
fn shared<V: Views>() -> [Route; 6] {
    [
        (
            "/login",
            gets_and_posts(handlers::login::<V>, handlers::begin_polling),
        ),
        (
            "/check",
            gets_and_posts(handlers::check::<V>, handlers::check::<V>),
        ),
        ("/user/login", posts(handlers::user_login::<V>)),
        ("/user/logout", posts(handlers::user_logout)),
        ("/user", gets(handlers::user::<V>)),
        ("/event/send", posts(handlers::event_send)),
    ]
}

/// The health endpoints, for operators.
fn health() -> [Route; 2] {
    [
        ("/healthz", gets(handlers::healthz)),
        ("/readyz", gets(handlers::readyz)),
    ]
}

/// The paths that a version cannot have as its own.
pub(crate) fn shared_paths<V: Views>() -> Vec<&'static str> {
    let shared = shared::<V>().into_iter().chain(health());
    shared.map(|(path, _)| path).collect()
}

fn add<const N: usize>(
    router: Router<HandlerContext>,
    routes: [Route; N],
) -> Router<HandlerContext> {
    routes.into_iter().fold(router, |router, (path, methods)| {
        router.route(path, methods)
    })
}

fn gets<T: 'static, H: Handler<T, HandlerContext>>(handler: H) -> MethodRouter<HandlerContext> {
    with_methods(get(handler), "GET")
}

fn posts<T: 'static, H: Handler<T, HandlerContext>>(handler: H) -> MethodRouter<HandlerContext> {
    with_methods(post(handler), "POST")
}

fn gets_and_posts<T, U, G, P>(get_handler: G, post_handler: P) -> MethodRouter<HandlerContext>
where
    T: 'static,
    U: 'static,
    G: Handler<T, HandlerContext>,
    P: Handler<U, HandlerContext>,
{
    with_methods(get(get_handler).post(post_handler), "GET, POST")
}

/// Answers all methods without a handler: 405 with `Allow`.
pub(crate) fn with_methods(
    handlers: MethodRouter<HandlerContext>,
    allow: &'static str,
) -> MethodRouter<HandlerContext> {
    let not_allowed = async move || ([(ALLOW, allow)], LoginError::MethodNotAllowed);
    // Without a handler for HEAD, axum would serve it as GET.
    handlers.head(not_allowed).fallback(not_allowed)
}

#[cfg(test)]
mod tests;
