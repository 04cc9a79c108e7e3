//! What surrounds each call: its id, its language, the headers of its response, and the problem that it ends in.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, header};
use signpost_kit::server::listener::UntilSent;
use signpost_protocol::{header::X_REQUEST_ID, language::Language, request_id::RequestId};
use signpost_proxy::{Beginning, Drain};

use super::{ApiError, Shared, problem::Code};

/// A problem that is not written yet.
#[derive(Clone)]
struct Unrendered(Arc<ApiError>);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::default();
        response.extensions_mut().insert(Unrendered(Arc::new(self)));
        response
    }
}

/// What the problems of a call are written with.
#[derive(Clone)]
pub(super) struct Call {
    pub id: RequestId,
    pub language: Language,
}

/// The response, with its problem written.
pub(super) fn rendered(response: Response, call: &Call) -> Response {
    let Some(Unrendered(error)) = response.extensions().get::<Unrendered>() else {
        return response;
    };
    let allowed = allowed_methods(response.headers());
    error.render(call.language, call.id.as_str(), allowed.as_deref())
}

/// Puts all layers around the routes.
pub(super) fn around(routes: Router<Shared>, api: Shared) -> Router {
    let routes = routes
        .fallback(async || ApiError::from(Code::NotFound))
        .method_not_allowed_fallback(async || ApiError::from(Code::MethodNotAllowed))
        .with_state(Arc::clone(&api));
    // Outside, since only the whole router adds the methods of a path.
    Router::new()
        .fallback_service(routes)
        .layer(from_fn_with_state(api, serve))
}

async fn serve(State(api): State<Shared>, mut request: Request, next: Next) -> Response {
    let gateway = Arc::clone(&api.current.load().state);
    let (id, in_flight) = (
        gateway.ids.next(),
        Arc::new(gateway.drain.begin_connection()),
    );
    let accepted = request.headers().get_all(header::ACCEPT_LANGUAGE);
    let language = Language::of_request(None, accepted.iter().map(HeaderValue::as_bytes));
    let call = Call { id, language };
    let response = if is_cross_site(request.headers()) {
        ApiError::from(Code::CrossSite).into_response()
    } else {
        request.extensions_mut().insert(call.clone());
        run(request, next, &in_flight).await
    };
    let mut response = rendered(response, &call);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    if let Ok(id) = HeaderValue::from_str(call.id.as_str()) {
        headers.insert(X_REQUEST_ID, id);
    }
    until_stop(response, &gateway.drain, in_flight)
}

/// A call runs in a task of its own, for which a stop waits: it ends, keeps its turn until then, and is logged, also if the
/// client leaves.
async fn run(request: Request, next: Next, in_flight: &Arc<Beginning>) -> Response {
    let in_flight = Arc::clone(in_flight);
    let work = tokio::spawn(async move {
        let response = next.run(request).await;
        drop(in_flight);
        response
    });
    let response = work.await.map_err(ApiError::internal);
    response.unwrap_or_else(IntoResponse::into_response)
}

/// A stop waits until the response is sent. It ends a stream of events, which would not end by itself.
pub(crate) fn until_stop(
    mut response: Response,
    drain: &Arc<Drain>,
    in_flight: Arc<Beginning>,
) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if kind.is_some_and(|kind| kind == "text/event-stream") {
        let drain = Arc::clone(drain);
        let stopped = Box::pin(async move { drain.closing().await });
        return response.map(|body| {
            let events = body.into_data_stream().take_until(stopped);
            Body::from_stream(events)
        });
    }
    let extensions = response.extensions_mut();
    // Of the handler.
    let until_sent = extensions.remove::<UntilSent>();
    extensions.insert(UntilSent(Arc::new((in_flight, until_sent))));
    response
}

/// The methods of a path, which axum lists in a 405 without white space.
pub(crate) fn allowed_methods(headers: &HeaderMap) -> Option<String> {
    let methods = headers.get(header::ALLOW)?.to_str().ok()?;
    Some(methods.replace(',', ", "))
}

/// Whether a page of another site calls. Such a page has no token, but may have tricked an operator out of one.
///
/// Browsers send `Sec-Fetch-Site`. Old browsers send only `Origin`: its host equals the call's `Host` if the site is
/// the same.
pub(crate) fn is_cross_site(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site != "same-origin" && site != "none";
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        return false;
    };
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let own = origin.as_bytes().splitn(3, |byte| *byte == b'/').nth(2);
    own.is_none() || own != host
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_same_origin_may_call() {
        for (site, origin, expected) in [
            (None, None, false),
            (Some("none"), None, false),
            (Some("same-origin"), Some("http://127.0.0.1:8081"), false),
            (Some("same-site"), None, true),
            (Some("cross-site"), None, true),
            (Some(""), None, true),
            (None, Some("http://127.0.0.1:8081"), false),
            (None, Some("http://127.0.0.1:8080"), true),
            (None, Some("https://attacker.example"), true),
            (None, Some("null"), true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:8081"));
            for (name, value) in [("sec-fetch-site", site), ("origin", origin)] {
                if let Some(value) = value {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            assert_eq!(is_cross_site(&headers), expected, "{headers:?}");
        }
    }
}
