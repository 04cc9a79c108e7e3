//! The headers that a backend gets; nobody else writes `X-Gateway-*`. CONTRACT 1 and 9.

use std::sync::Arc;

use gateway_protocol::header::{
    self, HeaderNames, TRACEPARENT, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO,
    X_GATEWAY_APP, X_GATEWAY_APP_ID, X_GATEWAY_SECRET, X_GATEWAY_VERSION, X_GATEWAY_VERSION_SOURCE,
    X_REQUEST_ID,
};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONTENT_LENGTH, FORWARDED},
};

use super::route::Route;
use crate::{request_context::Exchange, request_ids::RequestIds};

/// What forwarding goes by; the same for every request.
#[derive(Debug)]
pub struct Forwarding {
    /// The convention headers' names.
    pub names: Arc<HeaderNames>,
    /// What backends know the gateway by.
    pub secret: Option<HeaderValue>,
}

/// As many headers as the gateway adds at the most.
const OWN: usize = 12;

/// Makes a client's headers a backend's: leaves out what a client must not say, puts in what the gateway says.
#[must_use]
pub fn forward(
    exchange: &Exchange,
    route: &Route,
    forwarding: &Forwarding,
    ids: &RequestIds,
) -> HeaderMap {
    let Exchange { head, context } = exchange;
    let mut headers = HeaderMap::with_capacity(context.passing.len() + OWN);
    for &place in &context.passing {
        // The head was checked to have nothing but tokens for names, and no control characters in values.
        if let Some((name, value)) = head.header(place.into())
            && let Ok(name) = HeaderName::from_bytes(name)
            && let Ok(value) = HeaderValue::from_maybe_shared(value)
        {
            headers.append(name, value);
        }
    }
    if let Some(length) = context.body_length {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    if let Some(secret) = &forwarding.secret {
        headers.insert(X_GATEWAY_SECRET, secret.clone());
    }
    if let Some(app) = &context.app {
        headers.insert(X_GATEWAY_APP_ID, app.id.get().into());
        if let Some(ident) = &app.ident {
            headers.insert(X_GATEWAY_APP, visible(ident.as_str()));
        }
    }
    headers.insert(X_GATEWAY_VERSION, route.backend.name.clone());
    headers.insert(
        X_GATEWAY_VERSION_SOURCE,
        HeaderValue::from_static(route.source.as_str()),
    );
    headers.insert(X_REQUEST_ID, context.request_id.to_header());
    let theirs = context.traceparent.clone();
    let traceparent = theirs.unwrap_or_else(|| ids.traceparent(&context.request_id));
    headers.insert(TRACEPARENT, traceparent);
    if let Some(origin) = &context.origin {
        if let Some(chain) = &origin.forwarded {
            headers.insert(FORWARDED, chain.clone());
        }
        headers.insert(X_FORWARDED_FOR, origin.forwarded_for.clone());
        headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(origin.proto));
        let host = head.header(origin.host).map(|(_, host)| host);
        if let Some(Ok(host)) = host.map(HeaderValue::from_maybe_shared) {
            headers.insert(X_FORWARDED_HOST, host);
        }
    }
    headers
}

fn visible(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("an ident is letters and digits")
}

/// Whether a header of an answer is the gateway's own, or looks like it, and so not for clients.
#[must_use]
pub fn is_internal(name: &HeaderName) -> bool {
    let alike = |(given, known): (u8, u8)| given == known || (given == b'_' && known == b'-');
    let prefix = header::INTERNAL_PREFIX.as_bytes();
    let name = name.as_str().as_bytes();
    name.len() >= prefix.len() && name.iter().copied().zip(prefix.iter().copied()).all(alike)
}
