//! What surrounds each page: the headers of its response, and the rejection of other sites' forms.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{ConnectInfo, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, Method, header};

use super::{
    Shared, failure::Failure, fields::read_form, is_of_api, links::parameter, page::Reader,
    visitor::Refused,
};
use crate::api::{ApiError, allowed_methods, form_once, is_cross_site, until_stop};

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
    let drain = Arc::clone(&console.current.load().state.drain);
    let in_flight = Arc::new(drain.begin_connection());
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
    until_stop(response, &drain, in_flight)
}

/// Makes a form with a key once: what is sent again gets the same page.
pub(super) async fn once(
    State(console): State<Shared>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let (mut head, body) = request.into_parts();
    let session = console.sessions.find(&head.headers);
    let (Some(session), &Method::POST) = (session, &head.method) else {
        return next.run(Request::from_parts(head, body)).await;
    };
    let reader = Reader::new(&head.headers, &session);
    let body = match read_form(&console, head.uri.path(), body).await {
        Ok(body) => body,
        Err(error) => return Failure::of_error(&error, reader).into_response(),
    };
    let key = parameter(str::from_utf8(&body).ok(), "once");
    if key.is_empty() {
        return next.run(Request::from_parts(head, body.into())).await;
    }
    let who = (session.proof.clone(), address);
    // What it has done is kept although the browser leaves.
    let work = tokio::spawn(async move {
        let form = (&*key, &head.clone(), &body);
        let run = async |refused: Option<ApiError>| {
            head.extensions.insert(Refused(refused.map(Arc::new)));
            next.run(Request::from_parts(head, body.clone().into()))
                .await
        };
        form_once(&console.operations, who, form, run).await
    });
    let response = work.await;
    response.unwrap_or_else(|_| Failure::internal(reader).into_response())
}
