//! The headers of a backend's answer as the client sees them. CONTRACT 1 and 5.

use gateway_protocol::header::{HeaderNames, X_REQUEST_ID};
use http::{HeaderName, HeaderValue, StatusCode, header};
use pingora::http::ResponseHeader;
use smallvec::SmallVec;

use super::{admit::connection_options, forward::is_internal, route::Route};
use crate::request_context::RequestContext;

/// Takes out what is not for clients, and says which version served the request, and why.
///
/// # Errors
///
/// pingora refuses a header; none of ours is of that kind.
pub fn answer(
    response: &mut ResponseHeader,
    context: &RequestContext,
    route: &Route,
    names: &HeaderNames,
) -> pingora::Result<()> {
    for name in not_for_clients(response) {
        response.remove_header(&name);
    }
    if response.status == StatusCode::NO_CONTENT || response.status.is_informational() {
        // RFC 9110 section 8.6: such an answer has no body that could have a length.
        response.remove_header(&header::CONTENT_LENGTH);
    }
    response.insert_header(names.version(), route.backend.name.clone())?;
    let source = HeaderValue::from_static(route.source.as_str());
    response.insert_header(names.version_source(), source)?;
    response.insert_header(X_REQUEST_ID, context.request_id.to_header())
}

/// Internal headers, their look-alikes, and what is of the backend's connection only (RFC 9110 section 7.6.1).
fn not_for_clients(response: &ResponseHeader) -> SmallVec<[HeaderName; 4]> {
    let nominated = response.headers.get_all(header::CONNECTION).iter();
    let nominated = nominated.flat_map(|value| connection_options(value.as_bytes()));
    // The framing is pingora's to say, whatever the backend calls it.
    let nominated = nominated
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .filter(|name| *name != header::CONTENT_LENGTH && *name != header::TRANSFER_ENCODING);
    let ours = response.headers.keys().filter(|name| {
        is_internal(name) || **name == header::TRAILER || name.as_str() == "keep-alive"
    });
    nominated.chain(ours.cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_backends_own_stays_with_it() {
        let mut response = ResponseHeader::build(200, None).unwrap();
        for (name, value) in [
            ("X-Gateway-App-Id", "7"),
            ("X_Gateway_App_Id", "7"),
            ("Keep-Alive", "timeout=5"),
            ("Connection", "keep-alive, X-Hop, Content-Length"),
            ("X-Hop", "1"),
            ("Trailer", "X-Gateway-App-Id"),
            ("Content-Length", "2"),
            ("X-Kept", "1"),
        ] {
            response.append_header(name, value).unwrap();
        }
        let gone = not_for_clients(&response);
        let mut gone: Vec<_> = gone.iter().map(HeaderName::as_str).collect();
        gone.sort_unstable();
        gone.dedup();
        assert_eq!(
            gone,
            [
                "keep-alive",
                "trailer",
                "x-gateway-app-id",
                "x-hop",
                "x_gateway_app_id"
            ]
        );
    }
}
