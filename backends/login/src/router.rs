//! The routes of the service.

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
    service::{HandlerContext, Service},
    views::Views,
};

/// The routes of one version. CONTRACT 8.
///
/// # Panics
///
/// The version's name is invalid.
pub fn router<V: Views>(service: Arc<Service>) -> Router {
    let version = V::VERSION
        .parse()
        .expect("a version's name is a constant of its crate, and a test builds its router");
    let context = HandlerContext { service, version };
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
        .with_state(context.clone());
    let health = Router::new()
        .route("/healthz", gets(handlers::healthz))
        .route("/readyz", gets(handlers::readyz))
        .with_state(context.clone());
    middleware::around_everything(
        middleware::around_health(health).fallback_service(middleware::around_api(api, &context)),
        &context,
    )
}

fn gets<T: 'static, H: Handler<T, HandlerContext>>(handler: H) -> MethodRouter<HandlerContext> {
    // Without a handler for HEAD, axum would serve it as GET.
    get(handler).head(allow_get_only).fallback(allow_get_only)
}

fn posts<T: 'static, H: Handler<T, HandlerContext>>(handler: H) -> MethodRouter<HandlerContext> {
    post(handler).fallback(async || ([(ALLOW, "POST")], LoginError::MethodNotAllowed))
}

fn gets_and_posts<T, U, G, P>(get_handler: G, post_handler: P) -> MethodRouter<HandlerContext>
where
    T: 'static,
    U: 'static,
    G: Handler<T, HandlerContext>,
    P: Handler<U, HandlerContext>,
{
    let not_allowed = async || ([(ALLOW, "GET, POST")], LoginError::MethodNotAllowed);
    get(get_handler)
        .post(post_handler)
        .head(not_allowed)
        .fallback(not_allowed)
}

async fn allow_get_only() -> impl IntoResponse {
    ([(ALLOW, "GET")], LoginError::MethodNotAllowed)
}

#[cfg(test)]
mod tests;
