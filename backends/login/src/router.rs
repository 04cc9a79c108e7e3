//! Every route of the service, on one screen.

use std::sync::Arc;

use axum::{
    Router,
    handler::Handler,
    response::IntoResponse,
    routing::{MethodRouter, get, post},
};
use http::header::ALLOW;

use crate::{
    error::LoginError,
    handlers, middleware,
    service::{Service, Serving},
    views::Views,
};

/// The routes of one version. CONTRACT 8.
///
/// # Panics
///
/// The version's name is not one that a version can have.
pub fn router<V: Views>(service: Arc<Service>) -> Router {
    let version = V::VERSION
        .parse()
        .expect("a version's name is a constant of its crate, and a test builds its router");
    let serving = Serving { service, version };
    let api = Router::new()
        .route(
            "/login",
            gets_and_posts(handlers::login::<V>, handlers::begin_polling),
        )
        .route(
            "/check",
            gets_and_posts(handlers::check::<V>, handlers::check::<V>),
        )
        .route("/user/login", posts(handlers::user_login::<V>))
        .route("/user/logout", posts(handlers::user_logout))
        .route("/user", gets(handlers::user::<V>))
        .route("/event/send", posts(handlers::event_send))
        .fallback(async || LoginError::NotFound)
        .with_state(serving.clone());
    let health = Router::new()
        .route("/healthz", gets(handlers::healthz))
        .route("/readyz", gets(handlers::readyz))
        .with_state(serving.clone());
    middleware::around_everything(
        middleware::around_health(health).fallback_service(middleware::around_api(api, &serving)),
        &serving,
    )
}

fn gets<T: 'static, H: Handler<T, Serving>>(handler: H) -> MethodRouter<Serving> {
    // Without the line for HEAD, axum would serve it as GET.
    get(handler).head(refuse_for_get).fallback(refuse_for_get)
}

fn posts<T: 'static, H: Handler<T, Serving>>(handler: H) -> MethodRouter<Serving> {
    post(handler).fallback(async || ([(ALLOW, "POST")], LoginError::MethodNotAllowed))
}

fn gets_and_posts<T, U, G, P>(get_handler: G, post_handler: P) -> MethodRouter<Serving>
where
    T: 'static,
    U: 'static,
    G: Handler<T, Serving>,
    P: Handler<U, Serving>,
{
    let refuse = async || ([(ALLOW, "GET, POST")], LoginError::MethodNotAllowed);
    get(get_handler)
        .post(post_handler)
        .head(refuse)
        .fallback(refuse)
}

async fn refuse_for_get() -> impl IntoResponse {
    ([(ALLOW, "GET")], LoginError::MethodNotAllowed)
}

#[cfg(test)]
mod tests;
