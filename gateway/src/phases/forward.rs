//! The headers that a backend gets; nobody else writes `X-Gateway-*`. CONTRACT 1 and 9.
//!
//! They are written as the lines of a head, so that what passes goes on byte for byte.

use std::{io::Write, sync::Arc};

use gateway_protocol::header::{
    HeaderNames, TRACEPARENT, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO, X_GATEWAY_APP,
    X_GATEWAY_APP_ID, X_GATEWAY_SECRET, X_GATEWAY_VERSION, X_GATEWAY_VERSION_SOURCE, X_REQUEST_ID,
};
use http::{HeaderName, HeaderValue, header::FORWARDED};

use super::route::Route;
use crate::{request::write_line, request_context::Exchange, request_ids::RequestIds};

/// What forwarding goes by; the same for every request.
#[derive(Debug)]
pub struct Forwarding {
    /// The convention headers' names.
    pub names: Arc<HeaderNames>,
    /// What backends know the gateway by.
    pub secret: Option<HeaderValue>,
}

/// Makes a client's headers a backend's: leaves out what a client must not say, puts in what the gateway says.
/// `Host` and the form's length are for whoever writes the head to say.
pub fn forward(
    exchange: &Exchange,
    route: &Route,
    forwarding: &Forwarding,
    ids: &RequestIds,
    lines: &mut Vec<u8>,
) {
    let Exchange { head, context } = exchange;
    // The head was checked to have no line ends in names and values.
    for (name, value) in head.at(&context.passing) {
        write_line(lines, name, value);
    }
    let mut own = |name: HeaderName, value: &[u8]| {
        write_line(lines, name.as_str().as_bytes(), value);
    };
    if let Some(secret) = &forwarding.secret {
        own(X_GATEWAY_SECRET, secret.as_bytes());
    }
    if let Some(ident) = context.app.as_ref().and_then(|app| app.ident.as_ref()) {
        own(X_GATEWAY_APP, ident.as_str().as_bytes());
    }
    own(X_GATEWAY_VERSION, route.backend.version.as_str().as_bytes());
    own(X_GATEWAY_VERSION_SOURCE, route.source.as_str().as_bytes());
    own(X_REQUEST_ID, context.request_id.as_bytes());
    match &context.traceparent {
        Some(theirs) => own(TRACEPARENT, theirs.as_bytes()),
        None => own(TRACEPARENT, &ids.traceparent(&context.request_id)),
    }
    if let Some(origin) = &context.origin {
        if let Some(chain) = &origin.forwarded {
            own(FORWARDED, chain.as_bytes());
        }
        own(X_FORWARDED_FOR, origin.forwarded_for.as_bytes());
        own(X_FORWARDED_PROTO, origin.proto.as_bytes());
        for (_, host) in head.at(&[origin.host]) {
            own(X_FORWARDED_HOST, host);
        }
    }
    if let Some(app) = &context.app {
        // Writing to a Vec cannot fail.
        let _ = write!(lines, "{X_GATEWAY_APP_ID}: {}\r\n", app.id.get());
    }
}
