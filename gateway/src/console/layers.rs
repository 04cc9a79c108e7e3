//! What surrounds each page: the headers of its response, and the rejection of other sites' forms.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, Method, header};
use signpost_kit::server::listener::UntilSent;

use super::{Shared, failure::Failure, is_of_api, page::Reader};
use crate::api::{allowed_methods, is_cross_site};

/// The Content-Security-Policy: everything is from the listener itself, but a page's empty icon. `form-action` and `base-uri`
/// do not fall back to `default-src`.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Adds the headers. A page of another site cannot send forms; it can have links to pages.
pub(super) async fn around(
    State(console): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    if is_of_api(request.uri().path()) {
        return next.run(request).await;
    }
    let drain = &console.current.load().state.drain;
    let in_flight = UntilSent(Arc::new(drain.begin_connection()));
    let reader = Reader::of_request(request.headers());
    let is_form = request.method() == Method::POST;
    let mut response = if is_form && is_cross_site(request.headers()) {
        Failure::cross_site(reader).into_response()
    } else {
        let response = next.run(request).await;
        match allowed_methods(response.headers()) {
            Some(methods) => {
                let page = Failure::not_allowed(reader, methods.clone());
                ([(header::ALLOW, methods)], page).into_response()
            }
            None => response,
        }
    };
    // A stop waits until it is sent.
    response.extensions_mut().insert(in_flight);
    let headers = response.headers_mut();
    let fixed = HeaderValue::from_static;
    headers.insert(header::CONTENT_SECURITY_POLICY, fixed(POLICY));
    // For browsers that do not know `frame-ancestors`.
    headers.insert(header::X_FRAME_OPTIONS, fixed("DENY"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff"));
    headers.insert(header::REFERRER_POLICY, fixed("no-referrer"));
    headers.insert("cross-origin-opener-policy", fixed("same-origin"));
    headers.insert("cross-origin-resource-policy", fixed("same-origin"));
    let caching = headers.entry(header::CACHE_CONTROL);
    caching.or_insert(fixed("no-store"));
    response
}
