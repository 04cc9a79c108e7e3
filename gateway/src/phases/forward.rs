//! The headers that a backend trusts; nobody else writes `X-Gateway-*`. CONTRACT 1 and 9.

use std::net::IpAddr;

use gateway_protocol::header::{
    self, HeaderNames, TRACEPARENT, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO,
    X_GATEWAY_APP, X_GATEWAY_APP_ID, X_GATEWAY_SECRET, X_GATEWAY_VERSION, X_GATEWAY_VERSION_SOURCE,
    X_REQUEST_ID,
};
use http::{
    HeaderName, HeaderValue,
    header::{CONTENT_LENGTH, CONTENT_TYPE, FORWARDED, HOST},
};
use pingora::http::RequestHeader;
use smallvec::SmallVec;

use super::{
    admit::{connection_options, is_stripped},
    route::Route,
};
use crate::{apps::App, request_context::RequestContext, request_ids::RequestIds};

/// What forwarding goes by; the same for every request.
#[derive(Debug)]
pub struct Forwarding {
    /// The convention headers' names.
    pub names: HeaderNames,
    /// What backends know the gateway by.
    pub secret: Option<HeaderValue>,
}

/// Makes a client's headers a backend's: takes out what a client must not say, puts in what the gateway says.
///
/// # Errors
///
/// pingora refuses a header; none of ours is of that kind.
pub fn forward(
    upstream: &mut RequestHeader,
    context: &RequestContext,
    route: &Route,
    app: Option<&App>,
    forwarding: &Forwarding,
    ids: &RequestIds,
) -> pingora::Result<()> {
    strip(upstream, context.is_from_trusted_proxy(), &forwarding.names);
    if let Some(length) = context.body_length {
        // The body was read whole: its length is known, however the client framed it.
        upstream.insert_header(CONTENT_LENGTH, length)?;
    }
    if let Some(secret) = &forwarding.secret {
        upstream.insert_header(X_GATEWAY_SECRET, secret.clone())?;
    }
    if let Some(app) = app {
        upstream.insert_header(X_GATEWAY_APP_ID, app.id.get())?;
        if let Some(ident) = &app.ident {
            upstream.insert_header(X_GATEWAY_APP, ident.as_str())?;
        }
    }
    upstream.insert_header(X_GATEWAY_VERSION, route.backend.version.as_str())?;
    upstream.insert_header(X_GATEWAY_VERSION_SOURCE, route.source.as_str())?;
    upstream.insert_header(X_REQUEST_ID, context.request_id.as_str())?;
    match &context.traceparent {
        Some(theirs) => upstream.insert_header(TRACEPARENT, theirs.as_str())?,
        None => upstream.insert_header(TRACEPARENT, ids.traceparent(&context.request_id))?,
    }
    if let Some(chain) = upstream
        .headers
        .get(FORWARDED)
        .and_then(|value| value.to_str().ok())
    {
        // Left of a trusted proxy's only; it is extended by that proxy (RFC 7239), as X-Forwarded-For is.
        let extended = match context.peer {
            Some(IpAddr::V6(peer)) => format!("{chain}, for=\"[{peer}]\""),
            Some(IpAddr::V4(peer)) => format!("{chain}, for={peer}"),
            None => chain.to_owned(),
        };
        upstream.insert_header(FORWARDED, extended)?;
    }
    if let Some(origin) = &context.origin {
        upstream.insert_header(X_FORWARDED_FOR, origin.forwarded_for.clone())?;
        upstream.insert_header(X_FORWARDED_PROTO, origin.proto.clone())?;
        upstream.insert_header(X_FORWARDED_HOST, origin.host.clone())?;
    }
    Ok(())
}

/// These say where a request goes and what its body is; the body was verified as that.
const ESSENTIAL: [HeaderName; 3] = [HOST, CONTENT_TYPE, CONTENT_LENGTH];

fn strip(upstream: &mut RequestHeader, from_trusted_proxy: bool, names: &HeaderNames) {
    let nominated = upstream.headers.get_all(http::header::CONNECTION).iter();
    let nominated = nominated.flat_map(|value| connection_options(value.as_bytes()));
    let nominated = nominated.filter_map(|name| HeaderName::from_bytes(name).ok());
    let stripped = upstream
        .headers
        .keys()
        .filter(|name| is_stripped(name.as_str(), names, from_trusted_proxy));
    let gone: SmallVec<[HeaderName; 8]> = nominated.chain(stripped.cloned()).collect();
    for name in &gone {
        // What a request cannot do without is not of one connection, whatever `Connection` says.
        if !ESSENTIAL.contains(name) {
            upstream.remove_header(name);
        }
    }
}

/// Whether a header of an answer is the gateway's own, or looks like it, and so not for clients.
#[must_use]
pub fn is_internal(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with(header::INTERNAL_PREFIX)
        || (name.contains('_') && name.replace('_', "-").starts_with(header::INTERNAL_PREFIX))
}

#[cfg(test)]
mod tests {
    use gateway_protocol::header::HeaderOverrides;

    use super::*;

    #[test]
    fn what_connection_names_is_stripped_but_not_the_host() {
        let names =
            HeaderNames::new(&"Acme".parse().unwrap(), &HeaderOverrides::default()).unwrap();
        let mut upstream = RequestHeader::build("GET", b"/", None).unwrap();
        for (name, value) in [
            ("host", "h"),
            ("connection", "Acme-X-App, host, x-own, content-type"),
            ("content-type", "application/x-www-form-urlencoded"),
            ("acme-x-app", "a"),
            ("x-own", "b"),
            ("acme_x_app", "c"),
            ("x-kept", "d"),
        ] {
            upstream.append_header(name, value).unwrap();
        }
        strip(&mut upstream, false, &names);
        let mut left: Vec<_> = upstream.headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-type", "host", "x-kept"]);
    }
}
