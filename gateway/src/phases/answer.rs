//! The headers of an answer as the client sees them. CONTRACT 1 and 5.

use gateway_protocol::header::{HeaderNames, INTERNAL_PREFIX, X_REQUEST_ID};
use http::{HeaderName, StatusCode, header};
use pingora::http::ResponseHeader;
use smallvec::SmallVec;

use super::admit::connection_options;
use crate::{request::write_line, request_context::RequestContext};

/// The lines that every answer to a request has, whoever gives it: the request's id and, once it has a route,
/// which version served it, and why. Each ends as header lines do.
#[must_use]
pub fn announcement(context: &RequestContext, names: &HeaderNames) -> Vec<u8> {
    let mut lines = Vec::with_capacity(192);
    let mut line = |name: &HeaderName, value: &[u8]| {
        write_line(&mut lines, name.as_str().as_bytes(), value);
    };
    line(&X_REQUEST_ID, context.request_id.as_bytes());
    if let Some(route) = &context.route {
        line(names.version(), route.backend.version.as_str().as_bytes());
        line(names.version_source(), route.source.as_str().as_bytes());
    }
    lines
}

/// Takes out of a backend's answer what is not for clients, and what the announcement says.
pub fn answer(response: &mut ResponseHeader, names: &HeaderNames) {
    for name in not_for_clients(response, names) {
        response.remove_header(&name);
    }
    if response.status == StatusCode::NO_CONTENT || response.status.is_informational() {
        // RFC 9110 section 8.6: such an answer has no body that could have a length.
        response.remove_header(&header::CONTENT_LENGTH);
    }
}

/// Internal headers, their look-alikes, what is of the backend's connection only (RFC 9110 section 7.6.1), and
/// what the gateway says itself.
fn not_for_clients(response: &ResponseHeader, names: &HeaderNames) -> SmallVec<[HeaderName; 4]> {
    let nominated = response.headers.get_all(header::CONNECTION).iter();
    let nominated = nominated.flat_map(|value| connection_options(value.as_bytes()));
    // The framing is pingora's to say, whatever the backend calls it.
    let nominated = nominated
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .filter(|name| *name != header::CONTENT_LENGTH && *name != header::TRANSFER_ENCODING);
    let ours = response.headers.keys().filter(|name| {
        **name == header::TRAILER
            || **name == X_REQUEST_ID
            || *name == names.version()
            || *name == names.version_source()
            || name.as_str() == "keep-alive"
            || is_internal(name)
    });
    nominated.chain(ours.cloned()).collect()
}

/// Whether a header of an answer is the gateway's own, or looks like it, and so not for clients.
fn is_internal(name: &HeaderName) -> bool {
    let alike = |(given, known): (u8, u8)| given == known || (given == b'_' && known == b'-');
    let prefix = INTERNAL_PREFIX.as_bytes();
    let name = name.as_str().as_bytes();
    name.len() >= prefix.len() && name.iter().copied().zip(prefix.iter().copied()).all(alike)
}

#[cfg(test)]
mod tests {
    use gateway_protocol::header::HeaderOverrides;

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
            ("X-Request-Id", "its own"),
            ("Acme-X-Version", "v9"),
        ] {
            response.append_header(name, value).unwrap();
        }
        let names =
            HeaderNames::new(&"Acme".parse().unwrap(), &HeaderOverrides::default()).unwrap();
        let gone = not_for_clients(&response, &names);
        let mut gone: Vec<_> = gone.iter().map(HeaderName::as_str).collect();
        gone.sort_unstable();
        gone.dedup();
        assert_eq!(
            gone,
            [
                "acme-x-version",
                "keep-alive",
                "trailer",
                "x-gateway-app-id",
                "x-hop",
                "x-request-id",
                "x_gateway_app_id"
            ]
        );
    }
}
